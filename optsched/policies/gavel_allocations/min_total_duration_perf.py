"""`min_total_duration_perf`: all present jobs done as soon as possible (makespan)."""

from __future__ import annotations

import numpy as np

from optsched.policies.gavel_allocations import ALLOCATIONS, ActiveJobs, AllocationRule, Setting
from optsched.policies.gavel_allocations.level_search import LevelSearch
from optsched.simulation.policy import Floats, Knowledge

SHORTEST, LONGEST, CLOSE = 100.0, 1e6, 1.05


def bisected(makespan: float) -> float:
    """Where Gavel's bisection stops: between 100 s and 1e6 s (longer when need be), as soon as upper <= 1.05 lower."""
    lower, upper = SHORTEST, LONGEST
    while upper < makespan:
        lower, upper = upper, 10 * upper
    while CLOSE * lower < upper:
        middle = (lower + upper) / 2
        lower, upper = (lower, middle) if middle >= makespan else (middle, upper)
    return upper


@ALLOCATIONS.register("min_total_duration_perf")
class MinTotalDurationPerf(AllocationRule):
    """min T with thr_m(X) >= left_m / T.

    T is found exactly; as Gavel's, the allocation aims at the end of its bisection, at most 5 % above.
    """

    knowledge = Knowledge.CLAIRVOYANT

    def __init__(self, setting: Setting) -> None:
        self._search = LevelSearch(setting.capacity)

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]; the optimum is kept as ``makespan``, in seconds from now."""
        nothing, one = np.zeros(jobs.gang.size), np.ones(jobs.gang.size)
        shares, self.makespan = self._search.least(jobs, nothing, one)
        return self._search.centred(shares, jobs, nothing, one, bisected(self.makespan))
