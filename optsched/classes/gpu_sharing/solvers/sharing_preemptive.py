"""Optimum of all schedules that share GPUs and may preempt, for very few jobs that cannot run apart.

**Problem**: n jobs of which every two meet on some GPU and no three fit at once (`meet_in_pairs`; for example jobs that need
all GPUs of a cluster), at most two on a GPU, slow-downs xi; minimise sum C_j. Jobs may be interrupted and resumed without
cost. It is the optimum of the class ``gpu-sharing``, to which exclusive preemptive schedules belong.
`sharing_orders` computes the optimum without preemption, which is no smaller.

**Method**: one linear program for every order of the 2 n events, releases (in their own order) and completions. t_q: time
of event q, known for a release; d_qS: seconds of interval q in which the set S of one or two jobs runs, released before
and complete after q;

    min  sum of t_q over completions
    s.t. t_q <= t_{q+1},  sum_S d_qS <= t_{q+1} - t_q                            every q    (1)
         sum_q ( d_q{j} + sum_k d_q{j,k} / xi_{j|k} ) >= e_j                      every j    (2)

States of an interval may follow each other in any order, so that a solution is a schedule, and every schedule gives a
solution of its own order. For n = 2 at one time: a closed form, `optsched.speeds.sharing_pair`.

**Guarantee**: exact, to the tolerance of the LP solver. **Complexity**: (2 n)! / (2^n n!) orders, 3, 15, 105 and 945 for
n = 2..5; O(n^3) columns each. **Reference**: this project.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from optsched.errors import InputError
from optsched.problem.instance import Instance
from optsched.speeds.duration import seconds_alone

MOST = 5
Event = tuple[int, bool]  # job, and whether the event is its completion
Piece = tuple[float, tuple[int, ...]]  # seconds, jobs that run


@dataclass(frozen=True)
class PreemptiveSharing:
    """Optimum ``value`` sum C_j in seconds, and the number of ``programs`` solved.

    ``pieces``: (seconds, jobs that run), in turn from time 0.
    """

    value: float
    pieces: tuple[Piece, ...]
    programs: int


def meet_in_pairs(instance: Instance) -> str | None:
    """Return why the method does not apply, or None: every two gangs meet, no three run at once, and places do not matter.

    Parameters
    ----------
    instance
        Jobs and cluster.
    """
    if instance.at_task_level or instance.interference is None:
        return "the cost of sharing is unknown"
    width, total = np.sort(instance.gpus), instance.cluster.gpus
    if instance.n > 1 and width[:2].sum() <= total:
        return "some two jobs can run at once without sharing"
    if instance.n > 2 and width[:3].sum() <= 2 * total:
        return "some three jobs may run at once"
    if bool((width < total).any() and np.isnan(instance.duration).any()) or not instance.unrestricted:
        return "it matters where some job runs"
    two = np.sort(instance.gpu_memory)[-2:].sum()
    return None if bool((two <= instance.cluster.node_memory).all()) else "some two jobs do not fit in memory"


def preemptive_sharing_optimum(instance: Instance) -> PreemptiveSharing:
    """Return the least sum of completion times, with sharing and preemption.

    Parameters
    ----------
    instance
        Jobs and cluster.

    Raises
    ------
    InputError
        If there are no jobs or more than 5, or for a reason of `meet_in_pairs`.
    """
    if not 1 <= instance.n <= MOST:
        raise InputError("not a number of jobs to enumerate", field="n", value=instance.n, legal=f"1 to {MOST}")
    against = meet_in_pairs(instance)
    if against is not None:
        raise InputError(f"not one set of GPUs: {against}", field="jobs", legal="jobs that cannot run apart")
    assert instance.interference is not None
    counted, unit = instance.relative, float(seconds_alone(instance).max())
    alone, release = seconds_alone(counted) / unit, counted.arrival / unit
    xi = instance.interference.table(instance.kinds)
    best: PreemptiveSharing | None = None
    programs = 0
    for events in _orders(release):
        programs += 1
        optimum = _program(events, alone, release, xi)
        if optimum is not None and (best is None or optimum.value < best.value):
            best = optimum
    assert best is not None  # some order is feasible: any jobs one after the other
    # the solver's tolerances are absolute: it gets the longest job as 1, and time from the first arrival
    pieces = tuple(
        (seconds * unit + (instance.epoch if k == 0 else 0.0), who) for k, (seconds, who) in enumerate(best.pieces)
    )
    return PreemptiveSharing(best.value * unit + instance.n * instance.epoch, pieces, programs)


def _orders(release: np.ndarray) -> Iterator[list[Event]]:
    # Yield every order in which releases rise and a job completes after its release.
    rising = np.argsort(release, kind="stable").tolist()
    n = len(rising)

    def extended(events: list[Event], come: int, there: frozenset[int]) -> Iterator[list[Event]]:
        if len(events) == 2 * n:
            yield events
            return
        if come < n:
            j = rising[come]
            yield from extended([*events, (j, False)], come + 1, there | {j})
        for j in sorted(there):
            yield from extended([*events, (j, True)], come, there - {j})

    yield from extended([], 0, frozenset())


def _program(events: list[Event], alone: np.ndarray, release: np.ndarray, xi: np.ndarray) -> PreemptiveSharing | None:
    from scipy.optimize import linprog  # imported here because the import takes longer than most runs

    # Columns: t of the 2n events, then d of every interval and state.
    n, count = alone.size, len(events)
    states: list[tuple[int, tuple[int, ...]]] = []
    present: set[int] = set()
    for q, (j, ends) in enumerate(events[:-1]):
        present = present - {j} if ends else present | {j}
        pairs = (pair for pair in combinations(sorted(present), 2) if np.isfinite(xi[pair]))
        states += [(q, state) for state in [*((k,) for k in sorted(present)), *pairs]]
    room = np.zeros((count - 1, count + len(states)))
    work = np.zeros((n, count + len(states)))
    for q in range(count - 1):
        room[q, [q, q + 1]] = 1, -1
    for column, (q, state) in enumerate(states, count):
        room[q, column] = 1
        for j in state:
            work[j, column] = 1 / max([1.0, *(xi[j, k] for k in state if k != j)])
    cost = np.zeros(count + len(states))
    cost[:count] = [float(ends) for _, ends in events]
    bounds = [(0.0, None) if ends else (release[j], release[j]) for j, ends in events] + [(0.0, None)] * len(states)
    solved = linprog(
        cost, np.vstack([room, -work]), np.concatenate([np.zeros(count - 1), -alone]), bounds=bounds, method="highs"
    )
    if solved.status != 0:
        return None
    pieces: list[Piece] = [(float(solved.x[0]), ())]
    for q in range(count - 1):
        own = [(float(d), s) for d, (at, s) in zip(solved.x[count:], states, strict=True) if at == q and d > 0]
        pieces += [*own, (float(solved.x[q + 1] - solved.x[q]) - sum(d for d, _ in own), ())]
    return PreemptiveSharing(float(solved.fun), tuple(pieces), 1)
