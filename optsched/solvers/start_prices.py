"""Prices that gangs pay for running in slots of a grid of time, and the bounds they prove for starts and parts of schedules.

**Bound**: for any prices delta_jt >= 0 that job j pays for running in slot t, and D_t(g) the most that gangs which fit on g
GPUs together pay in slot t, every non-preemptive schedule on G GPUs costs at least

    sum_j m_j - sum_t D_t(G),        m_j = min_s m_js,    m_js = c_js + sum_{s <= t < s + p_j} delta_jt,

where c_js is the cost of j when it starts in slot s: the gangs that run in a slot fit together. It is the Lagrangian dual of
the time-indexed program in which every slot has a convex combination of sets of gangs that fit: all rows of its knapsack
polytopes at once. **Starts**: a schedule in which j starts at s costs at least m_js - m_j more than the bound; starts that
are above a limit are given up, and the prices of the remaining starts prove more. **The rest of a schedule**: if the jobs of
R are left, start at e_j or later and have g_t GPUs free in slot t, they cost at least

    sum_{j in R} min_{s >= e_j} m_js - sum_t D_t(g_t).

**Method** ascent along averages of the slopes, as in `optsched.bounds.priced_gangs`, in floats. The proved bound is
computed in integers: prices are rounded to a power of two of a step of values. **Complexity** O(P G) a step for P pairs of a
job and a slot in which it may run. **References**: van den Akker, Hurkens and Savelsbergh, INFORMS J. Comput. 12 (2000).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from optsched.compiled import njit
from optsched.deadline import Deadline
from optsched.models.time_grid import TimeGrid, rounded_grid
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.solvers.outcome import there
from optsched.solvers.solve_state import CLOSE, SolveState
from optsched.speeds.duration import fixed_durations

MOVE, FORGETS, KEEPS, CALM = 0.3, 0.05, 0.9, 0.02  # of the ascent, as in RMSProp with momentum
TOGETHER = 50  # steps between two checks of the time
BEYOND, MOST_BITS = 1 << 60, 16  # cost of a start that is given up; largest number of bits of prices


@dataclass(frozen=True, eq=False)
class StartJobs:
    """Gangs in slots, by arrival: ``release``, ``length``, ``gpus`` i64[n] on ``total`` GPUs, and the starts of interest.

    ``cost`` f64[n, H]: of a start, integers; ``open`` bool[n, H]: the starts of some schedule that is good enough.
    """

    release: Ints
    length: Ints
    gpus: Ints
    total: int
    cost: Floats
    open: Bools

    @cached_property
    def window(self) -> tuple[Ints, Ints]:
        """First and last open start of every job."""
        return self.open.argmax(axis=1), self.open.shape[1] - 1 - self.open[:, ::-1].argmax(axis=1)

    @property
    def slots(self) -> int:
        """Number of slots in which a job may run."""
        return int(self.open.shape[1] + self.length.max())

    @cached_property
    def running(self) -> tuple[Ints, Ints]:
        """Pair (where every slot begins i64[slots + 1], the jobs that may run in it)."""
        first, last = self.window
        span = last + self.length - first
        job = np.repeat(np.arange(span.size), span)
        slot = np.arange(job.size) - np.repeat(np.cumsum(span) - span - first, span)
        begin = np.concatenate([[0], np.cumsum(np.bincount(slot, minlength=self.slots))])
        return begin, job[np.argsort(slot, kind="stable")]

    def ascend(self, own: Floats, steps: int, deadline: Deadline) -> Floats:
        """Return the best prices f64[n, slots] met on an ascent from given ones.

        Parameters
        ----------
        own
            Prices to begin with, f64[n, slots].
        steps
            Number of steps.
        deadline
            Time at which to stop.
        """
        first, last = self.window
        every = np.arange(first.size)
        slope = float(np.mean((self.cost[every, last] - self.cost[every, first]) / np.maximum(last - first, 1)))
        jobs = first, last, self.length, self.gpus, self.cost, self.open
        own, kept, best = own.copy(), own.copy(), -math.inf
        speed, squares = np.zeros(own.shape), np.zeros(own.shape)
        for done in range(0, steps, TOGETHER):
            if done and deadline.passed:
                break
            move = MOVE * slope * (1 - done / steps)
            best = _climb(*jobs, *self.running, self.total, own, speed, squares, kept, best, move, TOGETHER)
        return kept

    def prove(self, own: Floats, bits: int | None = None) -> StartBounds:
        """Return the bounds that prices prove when they are rounded to integers.

        Parameters
        ----------
        own
            Prices, f64[n, slots].
        bits
            Number of bits as in `StartBounds`; None: as many as fit.
        """
        costs = np.where(self.open, self.cost, 0.0)
        largest = float(costs.max(axis=1).sum() + own.sum()) + 1
        bits = max(min(MOST_BITS, int(math.log2(BEYOND / 4 / largest))), 0) if bits is None else bits
        prices, costs = np.rint(own * 2.0**bits).astype(np.int64), costs.astype(np.int64) << bits
        total, starts = np.pad(np.cumsum(prices, axis=1), ((0, 0), (1, 0))), costs.shape[1]
        whole = [row[p : p + starts] - row[:starts] for row, p in zip(total, self.length.tolist(), strict=True)]
        paid = np.where(self.open, costs + np.array(whole), BEYOND)
        least = np.minimum.accumulate(np.pad(paid, ((0, 0), (0, 1)), constant_values=BEYOND)[:, ::-1], axis=1)[:, ::-1]
        return StartBounds(self, bits, costs, prices, paid, np.ascontiguousarray(least))

    def without(self, bounds: StartBounds, limit: int) -> StartJobs | None:
        """Return the jobs without the starts that cost more than ``limit`` steps; None if a job has none left.

        Parameters
        ----------
        bounds
            Bounds of the prices.
        limit
            Largest value of a schedule, in steps.
        """
        spare = (limit << bounds.bits) - bounds.value
        open_ = self.open & (bounds.paid - bounds.least[np.arange(self.release.size), self.release][:, None] <= spare)
        return replace(self, open=open_) if open_.any(axis=1).all() else None


@dataclass(frozen=True, eq=False)
class StartBounds:
    """Bounds of prices, in integers: steps over two to the power of ``bits``.

    ``costs`` c_js i64[n, H], ``prices`` i64[n, slots]; ``paid`` i64[n, H] is m_js, `BEYOND` where the start is not open;
    ``least`` i64[n, H + 1]: the least of all starts from one on.
    """

    jobs: StartJobs
    bits: int
    costs: Ints
    prices: Ints
    paid: Ints
    least: Ints

    @cached_property
    def _payers(self) -> tuple[Ints, Ints, Bools]:
        """Slot and job of every pair in which the job may pay, by slot; True if its price is positive."""
        begin, who = self.jobs.running
        slot = np.repeat(np.arange(begin.size - 1), np.diff(begin))
        return slot, who, self.prices[who, slot] > 0

    def payers(self, gone: Bools) -> tuple[Ints, Ints]:
        """Return (where every slot begins i64[slots + 1], the jobs with a positive price in it).

        Parameters
        ----------
        gone
            Jobs that do not count, bool[n].
        """
        slot, who, pays = self._payers
        pays = pays & ~gone[who]
        return np.concatenate([[0], np.cumsum(np.bincount(slot[pays], minlength=self.jobs.slots))]), who[pays]

    def after(self, gone: Bools, payers: tuple[Ints, Ints] | None = None, first: int = 0) -> Ints:
        """Return sum_{u >= t} D_u(g) for slots t from the first one on, i64[G + 1, slots + 1], without jobs that are gone.

        Parameters
        ----------
        gone
            Jobs that do not count, bool[n].
        payers
            Result of `payers` for some of these jobs; None: it is computed.
        first
            First slot of interest.
        """
        begin, who = self.payers(gone) if payers is None else payers
        return _after(begin, who, self.jobs.gpus, self.prices, self.jobs.total, gone, first)

    @cached_property
    def value(self) -> int:
        """Bound over schedules of open starts."""
        jobs = self.jobs
        return int(self.later[0] - self.after(np.zeros(jobs.release.size, dtype=bool))[jobs.total, 0])

    @cached_property
    def later(self) -> Ints:
        """Least cost and payment of the jobs from one on, i64[n]."""
        each = self.least[np.arange(self.jobs.release.size), self.jobs.release]
        return np.ascontiguousarray(np.cumsum(each[::-1])[::-1])

    @property
    def steps(self) -> int:
        """Bound in whole steps."""
        return -(-self.value >> self.bits)


# --- compiled ------------------------------------------------------------------------------------------------------------


@njit(interpreted=False)
def _climb(first, last, length, gpus, cost, open_, begin, who, total, own, speed, squares, kept, best, move, steps):  # type: ignore[no-untyped-def]
    """Return the largest value met; ``own`` f64[n, slots] moves on, ``kept`` are the prices of that value."""
    slope = np.zeros(own.shape)
    filled, take = np.zeros(total + 1), np.zeros((first.size, total + 1), dtype=np.bool_)
    for _ in range(steps):
        slope[:] = 0.0
        value = 0.0
        for j in range(first.size):
            paid = 0.0
            for t in range(first[j], first[j] + length[j]):
                paid += own[j, t]
            least, at = np.inf, 0
            for s in range(first[j], last[j] + 1):
                if open_[j, s] and cost[j, s] + paid < least:
                    least, at = cost[j, s] + paid, s
                paid += own[j, s + length[j]] - own[j, s]
            value += least
            for t in range(at, at + length[j]):
                slope[j, t] += 1.0
        for t in range(begin.size - 1):
            value -= _fill(who[begin[t] : begin[t + 1]], t, gpus, total, own, slope, filled, take)
        if value > best:
            best = value
            kept[:] = own
        for j in range(first.size):
            step = move * math.sqrt(gpus[j])
            for t in range(first[j], last[j] + length[j]):
                squares[j, t] += FORGETS * (slope[j, t] * slope[j, t] - squares[j, t])
                speed[j, t] += (1.0 - KEEPS) * (slope[j, t] - speed[j, t])
                own[j, t] = max(own[j, t] + step * speed[j, t] / (math.sqrt(squares[j, t]) + CALM), 0.0)
    return best


@njit(interpreted=False)
def _fill(who, t, gpus, total, own, slope, filled, take):  # type: ignore[no-untyped-def]
    """Return the most that gangs which fit together pay in slot t; their ``slope`` falls by one."""
    wanted, paid = 0, 0.0
    for j in who:
        if own[j, t] > 0.0:
            wanted, paid = wanted + gpus[j], paid + own[j, t]
    if wanted <= total:
        for j in who:
            slope[j, t] -= 1.0 if own[j, t] > 0.0 else 0.0
        return paid
    filled[:] = 0.0
    for i in range(who.size):
        j = who[i]
        take[i, :] = False
        for c in range(total, gpus[j] - 1, -1):
            if filled[c - gpus[j]] + own[j, t] > filled[c]:
                filled[c], take[i, c] = filled[c - gpus[j]] + own[j, t], True
    c = total
    for i in range(who.size - 1, -1, -1):
        if take[i, c]:
            slope[who[i], t] -= 1.0
            c -= gpus[who[i]]
    return filled[total]


@njit
def _after(begin, who, gpus, prices, total, gone, first):  # type: ignore[no-untyped-def]
    paid_from, filled = np.zeros((total + 1, begin.size), dtype=np.int64), np.zeros(total + 1, dtype=np.int64)
    for t in range(begin.size - 2, first - 1, -1):
        filled[:] = 0
        for i in range(begin[t], begin[t + 1]):
            j = who[i]
            if not gone[j]:
                for c in range(total, gpus[j] - 1, -1):
                    filled[c] = max(filled[c], filled[c - gpus[j]] + prices[j, t])
        for c in range(total + 1):
            paid_from[c, t] = paid_from[c, t + 1] + filled[c]
    return paid_from


# Units of the search over gangs: of times, of slots for prices, and of values.
#
# If times and values have common units that float64 represents, these are the units. Else times are rounded down to
# 2^-50 of the whole time, and costs to 2^-42 of what a schedule costs beyond the minimum. A schedule then remains
# feasible, and costs no more. A bound of the rounded problem holds, and an optimum is exact up to `CLOSE` of what is at
# stake.

MOST_SLOTS = 10_000  # more slots cost time and gain little
LARGEST, VALUES = 1 << 44, 42  # largest value in steps; bits of a value if the step is chosen here
EXACT = 2.0**53


class Times(NamedTuple):
    """Jobs of `StartJobs` in units of time, 2^``shift`` a slot: ``release``, ``length`` i64[n].

    Started at t, job j costs max(floor(rise_j (t - release_j) + base_j), 0) steps more than on arrival, f64[n]. ``before``
    i64[n]: see `alike`.
    """

    release: Ints
    length: Ints
    shift: int
    rise: Floats
    base: Floats
    before: Ints

    def cost(self, starts: Ints) -> Floats:
        """Return the cost of starting job j at each of its starts, f64[n, S].

        Parameters
        ----------
        starts
            Starts in units of time, i64[n, S].
        """
        waits = self.rise[:, None] * (starts - self.release[:, None])
        return np.asarray(np.maximum(np.floor(waits + self.base[:, None]), 0.0))


@dataclass(frozen=True, eq=False)
class Clock:
    """Units of times and of values.

    Times are in units of ``grid``, 2^``shift`` a slot; values in a ``step``, from ``zero`` on, the least cost of the jobs.

    A better value is lower by a ``margin``. ``rise`` and ``base`` f64[n] as in `Times`.
    """

    grid: TimeGrid
    step: Fraction
    zero: Fraction
    margin: Fraction
    rise: Floats
    base: Floats

    @classmethod
    def of(cls, state: SolveState) -> Clock:
        """Return the common units of times and values if floats represent them; else both are rounded down to fine ones.

        Parameters
        ----------
        state
            The solve, with an incumbent.
        """
        duration, arrival, value = fixed_durations(state.instance), state.instance.arrival, there(state.value)
        soonest = [Fraction(r) + Fraction(p) for r, p in zip(arrival.tolist(), duration.tolist(), strict=True)]
        zero = sum((cost.at(end) for cost, end in zip(state.costs, soonest, strict=True)), Fraction(0))
        late = [min(end - cost.kink, Fraction(0)) for cost, end in zip(state.costs, soonest, strict=True)]
        grid, step = state.grid, state.finest_step
        margin = step or state.at_stake * Fraction(CLOSE) / 2
        if grid is not None and step is not None and (value - zero) / step < LARGEST:
            slopes = [cost.slope / step for cost in state.costs]
            rates = [(slope * grid.unit, slope * wait) for slope, wait in zip(slopes, late, strict=True)]
            if max(rise * grid.end - base for rise, base in rates) < EXACT:
                return cls(grid, step, zero, margin, *np.array(rates, dtype=np.float64).T)
        grid = rounded_grid(state.instance)
        step = Fraction(2) ** math.frexp(float(max((value - zero) / 2**VALUES, margin / 2**10)))[1]
        rise = np.array([float(cost.slope * grid.unit / step) for cost in state.costs])
        base = np.array([float(cost.slope * wait / step) for cost, wait in zip(state.costs, late, strict=True)])
        # one unit more: floor(t) - floor(r) may exceed t - r by that; the rest is for rounding of floats
        return cls(grid, step, zero, margin, rise, base * (1 + 2.0**-50) - rise - 2)

    @property
    def shift(self) -> int:
        """Bits of a slot in units of time; 0 if slots of one unit are few enough."""
        return (self.grid.end // MOST_SLOTS).bit_length()

    @property
    def slots(self) -> int:
        """Number of slots by which every left-shifted schedule is over."""
        return (self.grid.end >> self.shift) + 1


def alike(state: SolveState, order: Ints) -> Ints:
    """Return for each job the last job before it that is alike but for its arrival, i64[n]; -1 if there is none.

    Parameters
    ----------
    state
        The solve.
    order
        The jobs in order, i64[n]; results are positions in it.
    """
    before, last = np.full(order.size, -1), dict[tuple[object, ...], int]()
    duration, arrival = fixed_durations(state.instance), state.instance.arrival
    for k, j in enumerate(order.tolist()):
        cost = state.costs[j]
        length = float(duration[j])
        if cost.kink <= Fraction(float(arrival[j])) + Fraction(length):  # from then on it pays the same amount a second
            kind = length, int(state.instance.gpus[j]), cost.slope
            before[k], last[kind] = last.get(kind, -1), k
    return before
