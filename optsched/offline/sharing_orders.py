"""All orders of the 2n events, a linear program each: the optimum of very few jobs that share GPUs, with starts anywhere.

**Problem**: `optsched.models.shared_jobs`, minimise sum C_j. **Method**: enumerate the GPUs of all jobs (of choices that are
alike one: `optsched.offline.sharing_places`; on one gang set it does not matter), their sub-batches, and the orders of
starts and ends in which the active jobs may run at once; on one gang set these are at most two: 6, 54, 648, 9,720 orders for
n = 2..5. An order says who runs beside whom between any two events, so that for

    t >= 0 seconds of the first event, d_e >= 0 seconds between events e and e + 1, e = 0..2n-2,

j active from event s_j to event f_j, x_je the worst xi_{j|k} of the jobs k that are on a GPU of j in e, 1 if there is none,

    min  sum_j ( t + sum_{e < f_j} d_e )
    s.t. sum_{s_j <= e < f_j} d_e / x_je >= e_j                  every j    (1)  done, multiplier u_j >= 0
         t + sum_{e < s_j} d_e >= r_j                            every j    (2)  released, multiplier w_j >= 0

(1) allows a job to idle on its GPUs. That does not lower the optimum: let the same starts run without idling; as long as
every job is at least as far as before, those that still run are among those that ran before, so none is slower.
With it every order is feasible and its dual too, which gives a certificate.

**Certificate**: u, w >= 0 prove sum_j (e_j u_j + r_j w_j) for an order if sum_j w_j <= n and, for every e,
sum_{j active in e} u_j / x_je + sum_{s_j > e} w_j <= the number of ends after e. Both right sides are >= 1, so multipliers
of the solver are made feasible in exact arithmetic by one division; the least value over all orders bounds the optimum.

**Guarantee**: exact over all schedules, to the tolerance of the LP solver. **Complexity**: one LP of 2n columns and rows an
order, many of them side by side in one call of the solver: some 0.15 ms each.
**Reference**: 4.1 (A) of the SJF-BSBF sheet of this project; several GPUs: this project.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, product

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from optsched.errors import InputError, OptschedError
from optsched.instance import Instance
from optsched.models.gang_set import first_gangs, one_gang_set
from optsched.models.shared_jobs import Gang, SharedJobs, may_be_on, on_events, shared_completions
from optsched.offline.linear_program import LinearProgram
from optsched.offline.session import Session
from optsched.offline.sharing_places import Places
from optsched.schedule import SharedSchedule

__all__ = ["MOST", "SharedOrderOptimum", "best_shared_order", "choices", "possible_orders"]

Floats = npt.NDArray[np.float64]
Order = tuple[int, ...]  # the job of every event: first its start, then its end

MOST, MOST_PROGRAMS = 5, 300_000  # jobs; orders, some of which are not possible: (2n)! / 2^n a choice
SIDE_BY_SIDE = 100  # orders in one call of the solver
NEAR = 1e-8  # relative to sum C_j: a start of the LP this near to an event is at the event
NAME = "sharing-orders"


@dataclass(frozen=True)
class SharedOrderOptimum:
    """``value`` sum C_j, ``order`` of the events, ``start`` f64[n] seconds, GPUs, options; ``orders`` were solved.

    ``bound``: the exact lower bound that the multipliers of all orders prove, None where it was not asked for.
    """

    jobs: SharedJobs
    value: float
    order: Order
    start: Floats
    gangs: tuple[Gang, ...]
    options: tuple[int, ...]
    orders: int
    bound: Fraction | None

    @property
    def schedule(self) -> SharedSchedule:
        """The schedule that these starts lead to."""
        start = on_events(self.jobs, self.start.tolist(), self.gangs, self.options, NEAR * self.value)
        end = shared_completions(self.jobs, start, self.gangs, self.options)
        return self.jobs.schedule(start, end, self.gangs, self.options, NAME)


@dataclass(frozen=True)
class _Alternative:
    """One choice of GPUs and sub-batches: e_j, and ``rates[active][j]`` for every set of jobs that may be active (bits)."""

    jobs: SharedJobs
    gangs: tuple[Gang, ...]
    options: tuple[int, ...]
    seconds: tuple[float, ...]
    rates: dict[int, list[Fraction]]

    @classmethod
    def of(cls, jobs: SharedJobs, gangs: tuple[Gang, ...], options: tuple[int, ...]) -> _Alternative:
        seconds = tuple(jobs.seconds(j, o, gang) for j, (o, gang) in enumerate(zip(options, gangs, strict=True)))
        rates = {}
        for bits in range(1 << jobs.n):
            some = [j for j in range(jobs.n) if bits >> j & 1]
            if all(may_be_on(jobs, [j for j in some if g in gangs[j]], g, options) for g in range(len(jobs.gpu_node))):
                rates[bits] = [_rate(jobs, j, some, gangs) if j in some else Fraction(0) for j in range(jobs.n)]
        return cls(jobs, gangs, options, seconds, rates)


def _rate(jobs: SharedJobs, j: int, active: list[int], gangs: tuple[Gang, ...]) -> Fraction:
    beside = [k for k in active if k != j and not set(gangs[j]).isdisjoint(gangs[k])]
    return 1 / Fraction(max([1.0, *(jobs.xi[j][k] for k in beside)]))


def best_shared_order(instance: Instance | SharedJobs, *, certify: bool = False) -> SharedOrderOptimum:
    """Solve the program of every order; ``certify``: also prove a bound in fractions.

    Raises `InputError` for no jobs, more than `MOST`, and more than `MOST_PROGRAMS` programs.
    """
    jobs = instance if isinstance(instance, SharedJobs) else SharedJobs.of(instance)
    if not 1 <= jobs.n <= MOST:
        raise InputError("not a number of jobs to enumerate", field="n", value=jobs.n, legal=f"1 to {MOST}")
    best: SharedOrderOptimum | None = None
    bound: Fraction | None = None
    solved = 0
    for gangs, options in choices(jobs):
        found = _best_of(_Alternative.of(jobs, gangs, options), certify)
        solved += found.orders
        if found.bound is not None:
            bound = found.bound if bound is None else min(bound, found.bound)
        if best is None or found.value < best.value:
            best = found
    assert best is not None  # every job has GPUs and an option
    return replace(best, orders=solved, bound=bound)


def choices(jobs: SharedJobs) -> list[tuple[tuple[Gang, ...], tuple[int, ...]]]:
    """GPUs and options of all jobs, of choices that are alike one; `InputError` for more than `MOST_PROGRAMS` programs."""
    assignments = [first_gangs(jobs)] if one_gang_set(jobs) is None else Places(jobs).assignments()
    most = MOST_PROGRAMS * 2**jobs.n // math.factorial(2 * jobs.n)
    every = ((gangs, options) for gangs in assignments for options in product(*jobs.options))
    found = list(islice(every, most + 1))
    if len(found) > most:
        legal = f"at most {most} for {jobs.n} jobs"
        raise InputError("too many choices of GPUs and sub-batches", field="jobs", value=len(found), legal=legal)
    return found


def possible_orders(n: int, sets: Container[int]) -> Iterator[Order]:
    """Every order of the 2n events in which the active jobs are always one of ``sets`` (of jobs, as bits)."""

    def grow(order: Order, active: int, coming: frozenset[int]) -> Iterator[Order]:
        if len(order) == 2 * n:
            yield order
        for j in range(n):
            after = active ^ 1 << j
            if active >> j & 1 or (j in coming and after in sets):
                yield from grow((*order, j), after, coming - {j})

    return grow((), 0, frozenset(range(n)))


def _best_of(own: _Alternative, certify: bool) -> SharedOrderOptimum:
    jobs, width = own.jobs, 2 * own.jobs.n
    unit = max(r + e for r, e in zip(jobs.release, own.seconds, strict=True))
    value, order, times, solved = math.inf, Order(), np.zeros(width), 0
    bound: Fraction | None = None
    orders = possible_orders(jobs.n, own.rates)
    while batch := list(islice(orders, SIDE_BY_SIDE)):
        program = _program(own, batch, unit)
        session = Session(program)
        outcome = session.solve()
        if outcome.status != "optimal" or outcome.x is None:
            raise OptschedError(f"the programs of {len(batch)} orders of events were not solved: {outcome.status}")
        x = outcome.x.reshape(-1, width)
        values = (program.c.reshape(-1, width) * x).sum(axis=1) * unit
        k = int(np.argmin(values))
        if values[k] < value:
            value, order, times = float(values[k]), batch[k], np.cumsum(x[k]) * unit
        if certify:
            rows = session.duals().reshape(-1, width)
            proved = min(_proved(own, one, row) for one, row in zip(batch, rows, strict=True))
            bound = proved if bound is None else min(bound, proved)
        solved += len(batch)
    start = times[[order.index(j) for j in range(jobs.n)]]
    return SharedOrderOptimum(jobs, value, order, start, own.gangs, own.options, solved, bound)


def _program(own: _Alternative, orders: list[Order], unit: float) -> LinearProgram:
    """The programs of ``orders`` side by side, times in ``unit`` seconds: columns t, d_0, ...; rows (1), then (2)."""
    n = len(own.seconds)
    width, column, speeds = 2 * n, np.arange(2 * n), np.zeros((1 << n, n))
    for some, rates in own.rates.items():
        speeds[some] = [float(rate) for rate in rates]
    at = np.array(orders, dtype=np.int64)
    ends = np.sort(np.argsort(at, axis=1, kind="stable").reshape(-1, n, 2), axis=2)  # [order, j]: both events of j
    active = np.bitwise_xor.accumulate(1 << at, axis=1)[:, :-1]
    A = np.zeros((len(orders), width, width))
    A[:, :n, 1:] = speeds[active].transpose(0, 2, 1)
    A[:, n:, :] = column <= ends[:, :, :1]
    cost = (column <= ends[:, :, 1:]).sum(axis=1).astype(np.float64)
    block, row, col = np.nonzero(A)
    shape = (len(orders) * width, len(orders) * width)
    matrix = sp.csc_array(sp.coo_array((A[block, row, col], (block * width + row, block * width + col)), shape=shape))
    need = np.tile(np.concatenate([own.seconds, own.jobs.release]) / unit, len(orders))
    return LinearProgram.from_arrays(cost.ravel(), matrix, need, np.full(need.size, np.inf))


def _proved(own: _Alternative, order: Order, multipliers: Floats) -> Fraction:
    n, zero = len(own.seconds), Fraction(0)
    y = [max(Fraction(value), zero) for value in multipliers.tolist()]
    u, w = y[:n], y[n:]
    coming, open_, active = set(range(n)), n, 0
    excess = max(Fraction(1), sum(w, zero) / n)
    for j in order[:-1]:
        open_ -= j not in coming
        coming.discard(j)
        active ^= 1 << j
        load = sum((u[i] * rate for i, rate in enumerate(own.rates[active]) if rate), zero)
        excess = max(excess, (load + sum((w[i] for i in coming), zero)) / open_)
    return (
        sum((Fraction(own.seconds[j]) * u[j] + Fraction(own.jobs.release[j]) * w[j] for j in range(n)), zero) / excess
    )
