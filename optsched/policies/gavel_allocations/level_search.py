"""The least level rho at which all demands fit: finish-time fairness, and the makespan as its special case.

    min rho   s.t.  thr_m(X) >= d_m(rho) = left_m / (rho D_m - e_m) for all m,  X a division of time

D_m is the unit of rho in seconds, e_m the seconds gone (makespan: D = 1, e = 0, rho = T). With rates scaled by the
job's fastest, demands are b_m(rho) = d_m / max_r T_mr, and s(rho) is the least shortage that must be granted to all
(`ShareProgram`): rho is enough iff s(rho) <= 0. Prices y >= 0 of the demands, sum y = 1, prove y b(rho') - s(rho') <=
y b(rho) - s(rho) for every rho': the rho' where y b(rho') = y b(rho) - s(rho) is a lower bound, and the next trial
(Newton's method on the piecewise convex s, or Dinkelbach's on the ratio). From the second on trials rise to the
optimum. A trial changes right-hand sides only, so each program starts from the last one's basis, dual feasible.
"""

from __future__ import annotations

import math

import numpy as np

from optsched.errors import OptschedError
from optsched.models.gavel_allocation import ActiveJobs
from optsched.policies.gavel_allocations.analytic_centre import centred
from optsched.policies.gavel_allocations.share_program import ShareProgram
from optsched.problem.arrays import Floats

CLOSE = 1e-9  # of a job's fastest rate, and relative of a level: HiGHS's own tolerance of feasibility
TRIALS = 60


class LevelSearch:
    """Finds levels at successive times; starts from the last level found.

    Parameters
    ----------
    capacity
        GPUs of every type, f64[T].
    """

    def __init__(self, capacity: Floats) -> None:
        self.program = ShareProgram(capacity)
        self._last = 0.0

    def least(self, jobs: ActiveJobs, gone: Floats, span: Floats) -> tuple[Floats, float]:
        """Return an allocation f64[m, T] and its level, the least possible.

        Parameters
        ----------
        jobs
            Active jobs; every job has a type on which it runs.
        gone
            e, f64[m] >= 0 seconds.
        span
            D, f64[m] > 0 seconds.

        Raises
        ------
        OptschedError
            The solver fails, also without the basis of the last program.
        """
        try:
            return self._least(jobs, gone, span)
        except OptschedError:  # failed from its last basis: try again without one
            self.program = ShareProgram(self.program.capacity)
            return self._least(jobs, gone, span)

    def _least(self, jobs: ActiveJobs, gone: Floats, span: Floats) -> tuple[Floats, float]:
        fastest = jobs.rate.max(axis=1)
        slots = self.program.open(jobs.ids.tolist(), jobs.rate / fastest[:, None], jobs.gang.astype(np.float64))
        alone = jobs.left / fastest
        least = float(((gone + alone) / span).max())  # no job is faster than alone on its fastest type
        level = max(least, self._last)
        for _ in range(TRIALS):
            need = alone / (level * span - gone)
            self.program.demand(slots, need)
            shares, shortage = self.program.solved(slots)
            prices = np.maximum(self.program.prices(slots), 0.0)
            reach = float(prices @ need) - shortage
            proved = max(least, _root(prices, alone, gone, span, reach, least)) if prices.any() else least
            if shortage <= CLOSE and (level <= least or proved >= level * (1 - CLOSE)):
                self._last = level
                return shares, level
            level = proved if proved > level or shortage < 0 else level * (1 + CLOSE)
        raise OptschedError(f"no level found after {TRIALS} programs")

    def centred(self, shares: Floats, jobs: ActiveJobs, gone: Floats, span: Floats, level: float) -> Floats:
        """Return the centre of the allocations that reach a level, f64[m, T].

        Parameters
        ----------
        shares
            An optimal allocation, f64[m, T].
        jobs
            Active jobs.
        gone
            e, f64[m] >= 0 seconds.
        span
            D, f64[m] > 0 seconds.
        level
            Level, at least the optimal one.
        """
        fastest = jobs.rate.max(axis=1)
        need = jobs.left / fastest / (level * span - gone)
        load = jobs.gang.astype(np.float64)
        return centred(shares, jobs.rate / fastest[:, None], need, load, np.ones(load.size), self.program.capacity)


def _root(prices: Floats, alone: Floats, gone: Floats, span: Floats, reach: float, least: float) -> float:
    # Where sum prices alone / (rho span - gone), falling and convex, is ``reach``: Newton from the left of the root.
    held = prices > 0
    y, a, e, d = prices[held], alone[held], gone[held], span[held]
    rho = max(least, float(((e + y * a / max(reach, 1e-300)) / d).max()))  # each term alone is at most the sum
    for _ in range(200):
        slack = rho * d - e
        terms = y * a / slack
        over = float(terms.sum()) - reach
        if over <= 1e-14 * reach:
            break
        step = over / float((terms * d / slack).sum())
        rho += step
        if step <= 1e-15 * rho:
            break
    return rho if math.isfinite(rho) else least
