"""Deadlines that jobs cannot all meet: for GPUs by type and time they would pay more than all GPUs are worth.

**Problem**: every class of schedules of `optsched.bounds.priced_time` except that of jobs with tasks, whose turns may
save what they pay | max (C_j - r_j) / d_j, d_j the flow time under equal sharing (`optsched.problem.fair_share`).
**Bound**: R, for prices omega_kt >= 0 of a second of a GPU of type t in cell k of time, 0 outside all cells, with

    sum_j m_j > sum_kt G_t length_k omega_kt,      m_j = the least that j's work costs within [r_j, r_j + R d_j].

**Proof**: in a schedule of value R or less, job j is done by r_j + R d_j. At every moment its jobs can be given parts
of their modes that do the work done at that moment and pay for at most G_t GPUs of every type t
(`optsched.bounds.modes`). With these parts j pays at least m_j, and all jobs pay at most the worth of all GPUs: there
is no such schedule.
**Computation of m_j**: in a moment a job does more and more work along the lower hull of cost over speed, in one mode
at a time, so that it cannot crowd into the cheapest moments. It buys its work where that is cheapest.
**Search**: prices are the duals of a program: all jobs meet their deadlines, in parts of their modes, and the largest
load of a type in a cell is least. A load above 1 is a proof; R rises until the load is 1. Then cells are cut where
prices change.
**Relations**: `fair_share` has one price of a type at all times, and lets a job run on all GPUs at once. With cells
fine enough this is the optimum of all schedules of fluid gangs; for the makespan that is `priced_machine.makespan`.
**Guarantee** none. **Complexity** some twenty linear programs with a variable for each job, cell and mode; 16 to 512
jobs.
**Reference**: Lawler and Labetoulle, J. ACM 25 (1978), the program for unrelated machines; deadlines by intervals.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from optsched.bounds.certificate import Proof, best_proof, ratio_text
from optsched.bounds.modes import Modes, modes_for
from optsched.bounds.priced_time import FEWEST_JOBS, MOST_JOBS, SAFE, SAFE_TIME, Rounded
from optsched.bounds.priced_time_search import PricedTime
from optsched.bounds.proof import proved_bound
from optsched.bounds.sum_costs import FAIR
from optsched.classes import names_where
from optsched.problem.arrays import Floats
from optsched.problem.fair_share import fair_flow_times
from optsched.problem.instance import Instance

# A search for prices of GPUs by type and time at which jobs cannot pay for their work until their deadlines.
#
# Floats only, on the safe side: `Payments.least` is what jobs pay less what rounding may have added. So what is found
# holds, and the verifier says the same of it.

CELLS, MOST_CELLS = 16, 64  # at first, at last
ROUNDS, LAST, PROGRAMS = 8, 2, 5  # of cuts, of these without much gain; in each of them
MOST_VARIABLES = 100_000  # of a program: seconds
CLOSE, CHANGE, FLATTEST = 1e-3, 1e-6, -0.1  # of ratios; of prices, in parts of the largest; of slopes
ABOVE, FINE = 1 + 1e-5, 1e-7  # less than what a job takes alone no program has; steps of ratios


class Deadlines:
    """Deadlines r_j + R d_j for ratios R.

    Parameters
    ----------
    modes
        Modes of the jobs.
    fair
        Flow time d_j of every job on an equal share, in seconds, f64[n].

    Attributes
    ----------
    alone
        The largest R of a job that never waits.
    slope
        Estimated slope of the logarithm of the load over that of R.
    """

    def __init__(self, modes: Modes, fair: Floats) -> None:
        self.modes, self.fair, self.release = modes, fair, modes.release
        self.alone = float(np.max(modes.alone / fair)) * ABOVE
        self.slope = -1.0  # of the logarithm of a load over that of R

    def search(self) -> PricedTime | None:
        """Return the prices that prove the most in finer and finer cells; None if no prices prove anything."""
        best, low, closed = None, self.alone, 0
        moments = np.linspace(self.release.min(), self._ends(low).max(), CELLS + 1)
        for _ in range(ROUNDS):
            highest = self._highest(moments, low)
            if highest is None:
                break
            closed, (low, best) = closed + 1 if highest[0] <= low * (1 + CLOSE) else 0, highest
            if closed == LAST:
                break
            moments = _cut(best)
        return best

    def _highest(self, moments: Floats, low: float) -> tuple[float, PricedTime] | None:
        """Return (R, prices that prove it), R >= ``low``, with cells between these moments; None if there is none."""
        best, high, limit, before = None, math.inf, low, None
        for _ in range(PROGRAMS):
            ends = self._ends(limit)
            few = self.release.size <= MOST_CELLS // 2
            cells = np.union1d(self.release, ends) if few else np.union1d(moments, max(moments[-1], ends.max()))
            answer = self.least_load(cells, limit)
            if answer is None:
                break
            load, priced = answer
            reached = self.reach(priced, limit) if load > 1 else None
            if load <= 1:
                high = limit
            elif reached is not None and reached >= low:
                low, best = reached, (reached, priced)
            if high <= low * (1 + CLOSE):
                break
            if before is not None:
                self.slope = min(math.log(load / before[1]) / math.log(limit / before[0]), FLATTEST)
            before = limit, load
            limit *= (load / (1 + CLOSE / 2)) ** (-1 / self.slope)  # a little less is proved, a little more is not
            if not low < limit < high:
                limit = (low + high) / 2 if high < math.inf else low * (1 + CLOSE)
        return best

    def _ends(self, ratio: float) -> Floats:
        return self.release + ratio * self.fair

    def reach(self, priced: PricedTime, low: float | None = None) -> float | None:
        """Return a ratio that prices prove, the largest one from ``low`` on; None if they prove none.

        Parameters
        ----------
        priced
            Prices of GPUs.
        low
            Least ratio that is tried; None: ``alone``.
        """
        payments, low, step = Payments(self.modes, priced), self.alone if low is None else low, CLOSE
        worth = float((priced.price * priced.lengths * self.modes.capacity).sum())

        def proved(ratio: float) -> bool:
            paid = payments.least(self._ends(ratio))
            return bool(np.isfinite(paid).all() and paid.sum() > worth * (1 + SAFE))

        if not proved(low):
            return None
        while proved(low * (1 + step)):
            low, step = low * (1 + step), 2 * step
        while step > FINE:
            step /= 2
            low = low * (1 + step) if proved(low * (1 + step)) else low
        return low

    def least_load(self, moments: Floats, ratio: float) -> tuple[float, PricedTime] | None:
        """Return the least largest load of a type in a cell if all deadlines are met, and prices that prove it.

        The variables of the program are the part of its time in a cell in which a job is in a mode, and the load.

        Parameters
        ----------
        moments
            Ends of the cells in seconds, rising, f64[C + 1].
        ratio
            R, the ratio of the deadlines.

        Returns
        -------
        tuple | None
            Load and prices; None if the program is too large or the solver gives no answer.
        """
        from scipy.optimize import linprog  # imported where it is used: it takes longer than most runs
        from scipy.sparse import csr_array, vstack

        modes, work, types = self.modes, self.modes.work, self.modes.capacity.size
        begin = np.maximum(moments[:-1], self.release[:, None])
        spans = np.minimum(moments[1:], self._ends(ratio)[:, None]) - begin
        job, cell = np.nonzero(spans > 0)
        seconds = spans[job, cell]
        count = np.diff(modes.start)[modes.kind[job]]
        pair = np.repeat(np.arange(job.size), count)
        mode = np.arange(pair.size) - np.repeat(np.cumsum(count) - count - modes.start[modes.kind[job]], count)
        size = pair.size + 1
        if size > MOST_VARIABLES:
            return None
        done = modes.rate[mode] * seconds[pair] / work[job[pair]]
        column = np.arange(pair.size)
        works = csr_array((-done, (job[pair], column)), shape=(work.size, size))
        least = np.full(job.size, np.inf)
        np.minimum.at(least, pair, done)
        crowded = (least < 1)[pair] & (not modes.adds)  # else no mode could be chosen for longer
        single = csr_array((np.ones(crowded.sum()), (pair[crowded], column[crowded])), shape=(job.size, size))
        room = (np.diff(moments)[:, None] * modes.capacity).reshape(-1)
        place = cell[pair] * types + modes.gpu_type[mode]
        entries = np.concatenate([modes.gpus[mode] * seconds[pair] / room[place], -np.ones(room.size)])
        lines = np.concatenate([place, np.arange(room.size)]), np.concatenate([column, np.full(room.size, size - 1)])
        loads = csr_array((entries, lines), shape=(room.size, size))
        limits = np.concatenate([-np.ones(work.size), np.ones(job.size), np.zeros(room.size)])
        last = np.arange(size) == size - 1
        bounds = np.column_stack([np.zeros(size), np.where(last, np.inf, 1.0)])
        solution = linprog(last, A_ub=vstack([works, single, loads]), b_ub=limits, bounds=bounds, method="highs-ipm")
        if solution.x is None:
            return None
        dual = np.maximum(-solution.ineqlin.marginals[-room.size :], 0.0)
        return float(solution.fun), PricedTime(moments, (dual / room).reshape(-1, types))


def _cut(priced: PricedTime) -> Floats:
    """Return ends of cells where prices change, and halfway to the neighbouring moments."""
    change = np.abs(np.diff(priced.price, axis=0)).sum(axis=1)
    largest = np.argsort(-change, kind="stable")[: MOST_CELLS // 3]
    changes = 1 + np.sort(largest[change[largest] > CHANGE * priced.price.max()])
    moments = priced.moments
    beside = [(moments[changes] + moments[changes - 1]) / 2, (moments[changes] + moments[changes + 1]) / 2]
    return np.unique(np.concatenate([moments[[0, -1]], moments[changes], *beside]))


class Payments:
    """Costs of every job's work at given prices: pieces by rising price of a unit, f64[n, P] units a second.

    Parameters
    ----------
    modes
        Modes of the jobs.
    priced
        Prices of GPUs.
    """

    def __init__(self, modes: Modes, priced: PricedTime) -> None:
        self.modes, self.moments = modes, priced.moments
        free = np.zeros((1, modes.capacity.size))  # after the last moment
        unit, speed = _pieces(modes, np.vstack([priced.price, free]))
        order = np.argsort(unit, axis=1, kind="stable")
        self.cell = (order // (unit.shape[1] // priced.moments.size))[modes.kind]
        self.unit = np.take_along_axis(unit, order, axis=1)[modes.kind]
        self.speed = np.take_along_axis(speed, order, axis=1)[modes.kind]
        self.dearest = modes.most_gpus * float(priced.price.max(initial=0.0))

    def least(self, ends: Floats) -> Floats:
        """Return the least that every job pays if it is done by its deadline, f64[n]; inf if it cannot be.

        Parameters
        ----------
        ends
            Deadlines in seconds, f64[n].
        """
        begin, end = self.moments, np.append(self.moments[1:], np.inf)
        spans = np.minimum(end, ends[:, None]) - np.maximum(begin, self.modes.release[:, None])
        units = self.speed * np.take_along_axis(np.maximum(spans, 0.0), self.cell, axis=1)
        reached = np.minimum(np.cumsum(units, axis=1), self.modes.work[:, None])
        bought = np.diff(reached, axis=1, prepend=0.0)
        paid = (self.unit * bought).sum(axis=1)
        dearest = np.where(bought > 0, self.unit, 0.0).max(axis=1)
        time = max(float(np.abs(self.moments).max()), float(np.abs(ends).max()))
        lost = SAFE * paid + SAFE_TIME * (time * self.dearest + self.modes.work * dearest)
        return np.where(reached[:, -1] < self.modes.work, np.inf, paid - lost)


def _pieces(modes: Modes, price: Floats) -> tuple[Floats, Floats]:
    """Return (price of a unit, units a second) of every kind's steps to higher rates, cheapest first, f64[K, C M]."""
    count = np.diff(modes.start)
    kind = np.repeat(np.arange(count.size), count)
    place = np.arange(kind.size) - modes.start[kind]
    rate, cost = np.zeros((count.size, 1, count.max())), np.full((count.size, len(price), count.max()), np.inf)
    rate[kind, 0, place] = modes.rate
    cost[kind, :, place] = (price[:, modes.gpu_type] * modes.gpus).T
    rates = np.broadcast_to(rate, cost.shape)
    unit, speed = np.zeros(cost.shape), np.zeros(cost.shape)
    if modes.adds:
        unit[kind, :, place], speed[kind, :, place] = cost[kind, :, place] / modes.rate[:, None], modes.rate[:, None]
    reached, paid = np.zeros((*cost.shape[:2], 1)), np.zeros((*cost.shape[:2], 1))
    for m in range(0 if modes.adds else cost.shape[2]):
        more = rates - reached
        slope = np.divide(cost - paid, more, out=np.full(cost.shape, np.inf), where=more > 0)
        least = slope.min(axis=2, keepdims=True)
        to = np.argmax(np.where(slope == least, rates, -1.0), axis=2)[:, :, None]
        live = np.isfinite(least)
        unit[:, :, m] = np.where(live, np.maximum(least, 0.0), 0.0)[:, :, 0]
        speed[:, :, m] = np.where(live, np.take_along_axis(more, to, axis=2), 0.0)[:, :, 0]
        reached = np.where(live, np.take_along_axis(rates, to, axis=2), reached)
        paid = np.where(live, np.take_along_axis(cost, to, axis=2), paid)
    return unit.reshape(count.size, -1), speed.reshape(count.size, -1)


KIND = "priced-deadlines"


@proved_bound(
    KIND,
    objectives=(FAIR,),
    classes=names_where(verified=True, whole=True),
    statement="deadlines cost more than all GPUs, by type and time",
)
def build(instance: Instance, objective: str, schedule_class: str) -> Proof | None:
    """Return the proof with the largest ratio found.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    objective
        Name of the objective.
    schedule_class
        Name of the class of schedules.

    Returns
    -------
    Proof | None
        The ratio, and as data the ratio, moments and prices, and charges if GPUs are shared. None for few and for very
        many jobs, and if no ratio above that of a job alone is found.
    """
    if not FEWEST_JOBS <= instance.n <= MOST_JOBS:
        return None
    fair, proofs = fair_flow_times(instance), []
    for modes, more in modes_for(instance, schedule_class):
        deadlines = Deadlines(modes, fair)
        best = deadlines.search()
        rounded = None if best is None else Rounded(best)
        limit = None if rounded is None else deadlines.reach(rounded.at)
        if rounded is not None and limit is not None:
            data = {"limit": ratio_text(Fraction(limit)), **rounded.data(modes), **more}
            proofs.append((Fraction(limit), data))
    return best_proof(proofs)
