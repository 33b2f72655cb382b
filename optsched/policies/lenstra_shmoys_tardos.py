"""Lenstra, Shmoys and Tardos: jobs that arrive together are assigned by rounding a linear program."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import maximum_bipartite_matching

from optsched.errors import InputError, OptschedError
from optsched.policies import POLICIES
from optsched.policies.slot_queues import Slot, SlotQueues, places_of
from optsched.policies.ties import leading_of
from optsched.problem.arrays import Floats, Ints
from optsched.simulation.policy import Decision, Knowledge, Policy, Start, View
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.session import Session


@POLICIES.register("lenstra-shmoys-tardos")
@dataclass
class LenstraShmoysTardos(Policy):
    """LST rounding, not preemptive: jobs that arrive together are bound to GPUs by rounding a linear program.

    The program is that of `rounded_assignment`, on GPUs that are busy with the jobs bound before; a vertex of it is
    rounded. A gang is bound before the one-GPU jobs, where it completes first: to GPUs of one node if one is large
    enough, otherwise of one type; a job that arrives alone is bound in the same way. On every GPU jobs run in the
    order in which they were bound.

    **Problem** R || C_max; here also with release dates and gangs. **Knowledge** clairvoyant.

    **Guarantee** one-GPU jobs that come at once: 2, proved by the prices of the program for every run
    (`optsched.guarantees.unrelated_machines`). None for gangs or release dates. **Tight family** a long
    job that the program divides among all machines, 2 m / (m + 1) (``torn-job``). **Complexity** O(log(n m)) linear
    programs of n m columns for n jobs that come together.
    **Reference** Lenstra, Shmoys and Tardos, Approximation algorithms for scheduling unrelated parallel machines,
    Mathematical Programming 46 (1990), 259-271.
    """

    name = "lenstra-shmoys-tardos"
    knowledge = Knowledge.CLAIRVOYANT
    uses = ("nodes",)

    def begin(self, view: View) -> None:
        """Forget the last run.

        Parameters
        ----------
        view
            State of the run.
        """
        self._queues = SlotQueues(view)
        self._notes: dict[str, Floats] = {}

    def notes(self) -> dict[str, Floats]:
        """Return ``assignment_prices`` of every GPU in the last program and ``assignment_limit``, its limit tau."""
        return self._notes

    def decide(self, view: View) -> Iterator[Decision]:
        """Bind the jobs that have arrived; start the jobs whose turn has come.

        Parameters
        ----------
        view
            State of the run.
        """
        turn = [job for done in view.finished for job in self._queues.leave(done)]
        single = [job for job in view.arrived if view.gpus(job) == 1]
        together = single if len(single) > 1 else []
        turn += [job for job in view.arrived if job not in together and self._bind_gang(view, job)]
        turn += self._bind_together(view, together)
        for job in turn:
            yield Start(job, on=self._queues.places(job))

    def _bind_together(self, view: View, jobs: list[int]) -> list[int]:
        """Bind jobs by rounding and return those that are the first in their queues."""
        if not jobs:
            return []
        slots = list(self._queues.ready)
        node = np.array([slot[0] for slot in slots])
        speeds = view.speeds  # of one-GPU jobs; 0: the job may not use the GPU
        rate = np.array([np.where(view.eligible(j), speeds.together[j, speeds.node_type], 0.0)[node] for j in jobs]).T
        work = np.array([view.remaining(job) for job in jobs])
        seconds = np.divide(work, rate, out=np.full(rate.shape, np.inf), where=rate > 0)
        busy = np.array([max(self._queues.ready[slot] - view.now, 0.0) for slot in slots])
        assignment = rounded_assignment(seconds, busy)
        self._notes = {"assignment_prices": assignment.price, "assignment_limit": np.array([assignment.limit])}
        chosen = list(zip(jobs, assignment.machine.tolist(), strict=True))
        return [job for k, (job, i) in enumerate(chosen) if self._bind(view, job, [slots[i]], float(seconds[i, k]))]

    def _bind_gang(self, view: View, job: int) -> bool:
        """Bind a job where it completes first; return True if it is the first in all of its queues."""
        choices = []
        for part in places_of(view, job, self._queues.ready):
            slots = sorted(part, key=lambda slot: (max(self._queues.ready[slot], view.now), slot))[: view.gpus(job)]
            seconds = view.remaining(job) / view.speeds.rate(job, {node for node, _ in slots})
            free = max(view.now, *(self._queues.ready[slot] for slot in slots))
            choices.append((leading_of(free + seconds), slots, seconds))
        _, slots, seconds = min(choices)
        return self._bind(view, job, slots, seconds)

    def _bind(self, view: View, job: int, slots: list[Slot], seconds: float) -> bool:
        start = max(view.now, *(self._queues.ready[slot] for slot in slots))
        return self._queues.bind(job, slots, start + seconds)


# Lenstra, Shmoys and Tardos 1990: jobs to unrelated machines by rounding a vertex of a linear program.
#
# **Problem** R || C_max, p_ij seconds of job j on machine i, which is busy until b_i; a job stays on one machine.
# **Program** for a limit tau, over the pairs with p_ij <= tau,
#
#     (1) min T     (2) sum_i x_ij = 1 for all j     (3) b_i + sum_j p_ij x_ij <= T for all i     (4) x >= 0.
#
# **Method** Bisection finds the least tau among the p_ij for which T is less than the next larger p_ij; T* = max(tau, T). A
# vertex of the program has at most as many positive x_ij as there are jobs and machines. So its divided jobs and their
# machines form a graph in which every component is a tree, or a tree with one more edge: each of these jobs can have a
# machine of its own, on which it has a part. Every machine gets its whole jobs, at most T, and one more job of at most tau.
# **Guarantee** C_max <= T* + tau <= 2 T*, and no schedule without preemption is shorter than T*. Prices y_i >= 0 prove
# this: a schedule shorter than the least p_ij > tau uses only pairs of the program, and takes at least (sum_i y_i b_i +
# sum_j min_i y_i p_ij) / sum_i y_i.

NOTHING = 1e-9  # parts of jobs up to this size are rounding errors
OPTIONS = {"solver": "simplex", "primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}


@dataclass(frozen=True, eq=False)
class RoundedAssignment:
    """An assignment, with the proof that no other is less than half as long.

    ``machine`` i64[n]: machine of every job. ``price`` f64[m] >= 0 and ``limit`` tau are the proof.
    """

    machine: Ints
    price: Floats
    limit: float


@dataclass(frozen=True, eq=False)
class _Vertex:
    """The optimum of the program of one limit: ``share`` f64[m, n], ``price`` f64[m], ``value`` T."""

    limit: float
    value: float
    share: Floats
    price: Floats


def rounded_assignment(seconds: Floats, busy: Floats) -> RoundedAssignment:
    """Assign n > 0 jobs to m machines by rounding.

    Parameters
    ----------
    seconds
        Processing times, f64[m, n] > 0; inf: the machine may not run the job.
    busy
        Time at which each machine is free, f64[m] >= 0.

    Raises
    ------
    InputError
        No machine may run a job.
    """
    least = seconds.min(axis=0)
    if not np.isfinite(least).all():
        raise InputError(f"no machine may run job {int(np.argmax(~np.isfinite(least)))}")
    unit = math.ldexp(1.0, math.frexp(float(least.max()))[1])  # a power of two: the solver's tolerances are absolute
    p, b = seconds / unit, busy / unit
    limits = np.unique(p[np.isfinite(p) & (p >= p.min(axis=0).max())])

    @cache
    def vertex(k: int) -> _Vertex:
        return _program(p, b, float(limits[k]))

    k = bisect_left(range(limits.size - 1), True, key=lambda k: bool(vertex(k).value < limits[k + 1]))
    chosen = vertex(k)
    proof = chosen if chosen.value >= chosen.limit or k == 0 else vertex(k - 1)
    return RoundedAssignment(_rounded(p, chosen), proof.price, proof.limit * unit)


def _program(p: Floats, busy: Floats, limit: float) -> _Vertex:
    (m, n), (i, j) = p.shape, np.nonzero(p <= limit)
    pairs, last = np.arange(i.size), i.size  # T is the last column
    rows = np.concatenate([j, n + i, n + np.arange(m)])
    columns = np.concatenate([pairs, pairs, np.full(m, last)])
    entries = np.concatenate([np.ones(last), p[i, j], np.full(m, -1.0)])
    program = LinearProgram.from_arrays(
        np.append(np.zeros(last), 1.0),
        sp.csc_array((entries, (rows, columns)), shape=(n + m, last + 1)),
        np.concatenate([np.ones(n), np.full(m, -math.inf)]),
        np.concatenate([np.ones(n), -busy]),
    )
    session = Session(program, options=OPTIONS)
    outcome = session.solve()
    if outcome.x is None or outcome.value is None or outcome.status != "optimal":
        raise OptschedError(f"the program of the limit {limit:g} ended with {outcome.status}")
    share = np.zeros((m, n))
    share[i, j] = outcome.x[:-1]
    return _Vertex(limit, outcome.value, share, np.maximum(-session.duals()[n:], 0.0))


def _rounded(p: Floats, vertex: _Vertex) -> Ints:
    """Return the machine of every job: the given one for whole jobs, one by a matching of the forest for the others."""
    share = np.where(vertex.share > NOTHING, vertex.share, 0.0)
    machine = np.asarray(share.argmax(axis=0), dtype=np.int64)
    parts = np.flatnonzero((share > 0).sum(axis=0) > 1)
    if parts.size:
        graph = sp.csr_array(share[:, parts].T > 0)
        matched = maximum_bipartite_matching(graph, perm_type="column")
        machine[parts] = np.where(matched >= 0, matched, p[:, parts].argmin(axis=0))
    return machine
