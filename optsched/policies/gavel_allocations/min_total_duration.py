"""`min_total_duration`: complete all present jobs as soon as possible (makespan)."""

from __future__ import annotations

import numpy as np

from optsched.models.gavel_allocation import ActiveJobs
from optsched.policies.gavel_allocations import ALLOCATIONS, AllocationRule, Setting, reference_order
from optsched.policies.gavel_allocations.level_search import LevelSearch
from optsched.problem.arrays import Floats
from optsched.simulation.policy import Knowledge

SHORTEST, LONGEST, CLOSE = 100.0, 1e6, 1.05


def bisected(makespan: float) -> float:
    """Return the makespan at which Gavel's bisection stops.

    It starts between 100 s and 1e6 s (longer if needed) and stops as soon as upper <= 1.05 lower.

    Parameters
    ----------
    makespan
        The optimal makespan, in seconds.
    """
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

    T is computed exactly; as in Gavel, the allocation aims at the end of its bisection, at most 5 % above.
    """

    knowledge = Knowledge.CLAIRVOYANT

    def __init__(self, setting: Setting) -> None:
        self._search = LevelSearch(setting.capacity)
        self._reference = None if self.aware else reference_order(setting.types)

    def shares(self, jobs: ActiveJobs) -> Floats:
        """Return X f64[m, T]; the optimum is kept as ``makespan``, in seconds from now.

        Parameters
        ----------
        jobs
            Active jobs.
        """
        if self._reference is not None:
            jobs = jobs.agnostic(self._reference)
        nothing, one = np.zeros(jobs.gang.size), np.ones(jobs.gang.size)
        shares, self.makespan = self._search.least(jobs, nothing, one)
        return self._search.centred(shares, jobs, nothing, one, bisected(self.makespan))


@ALLOCATIONS.register("min_total_duration")
class MinTotalDuration(MinTotalDurationPerf):
    """`min_total_duration_perf` with the speed of V100 GPUs (else P100, K80, another) on every type."""

    aware = False
