"""Max-min fairness (least attained service, LAS) over classes of jobs: the least normalised throughput as large as can be.

    max min_m  (gang_m / w_m) thr_m(X) / thr_m(X^equal)

and, with ``fill``, beyond the bottleneck (water filling): those who cannot rise are fixed, the others rise on, until all are
fixed. A demand with a price is tight in every optimal X (complementary slackness), so its class can rise no more unless
another falls; prices sum to 1, so each round fixes at least one. The outcome is lexicographically largest, and unique.
Reference: Radunovic and Le Boudec, A unified framework for max-min and min-max fairness, IEEE/ACM Trans. Netw. 15 (2007),
1073-1083; Gavel finds the bottlenecks by a small mixed-integer program.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from optsched.models.gavel_allocation import ActiveJobs, level_rates
from optsched.policies.gavel_allocations import ALLOCATIONS, AllocationRule, JobClasses, Setting
from optsched.policies.gavel_allocations.analytic_centre import centred
from optsched.policies.gavel_allocations.share_program import ShareProgram
from optsched.problem.arrays import Floats, Ints

PRICED = 1e-9  # of a total price of 1


@ALLOCATIONS.register("max_min_fairness_perf")
class MaxMinFairnessPerf(AllocationRule):
    """max min_m (gang_m / w_m) thr_m(X) / thr_m(X^equal), aware of types: one small program, warm."""

    fill: ClassVar[bool] = False

    def __init__(self, setting: Setting) -> None:
        self.capacity = setting.capacity
        self.program = ShareProgram(setting.capacity)

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]."""
        if not self.aware:
            jobs = jobs.agnostic()
        if not (jobs.weight > 0).any():
            jobs = replace(jobs, weight=np.ones_like(jobs.weight))
        classes = JobClasses.alike(jobs)
        few = jobs.some(classes.first)
        gain, load = level_rates(few, self.capacity), classes.copies * few.gang
        slots = self.program.open(classes.keys, gain, load)
        asking = np.flatnonzero(few.weight > 0)
        self.program.demand(slots, np.where(few.weight > 0, 0.0, -np.inf))
        shares, level, prices = self.program.solved(slots)
        levels = np.where(few.weight > 0, -level, -np.inf)
        if self.fill:
            shares, levels = self._filled(slots, shares, levels, prices, asking)
        return centred(shares, gain, levels, load, classes.copies, self.capacity)[classes.of]

    def _filled(
        self, slots: Ints, shares: Floats, levels: Floats, prices: Floats, asking: Ints
    ) -> tuple[Floats, Floats]:
        rising = asking
        while True:
            stuck = rising[prices[rising] > PRICED]
            self.program.demand(slots[stuck], levels[stuck] * (1 - PRICED))
            self.program.excuse(slots[stuck], False)
            rising = np.setdiff1d(rising, stuck)
            if not rising.size or not stuck.size:
                break
            shares, level, prices = self.program.solved(slots)
            levels[rising] = np.maximum(-level, levels[rising])
        self.program.excuse(slots[np.setdiff1d(asking, rising)], True)
        return shares, levels


@ALLOCATIONS.register("max_min_fairness")
class MaxMinFairness(MaxMinFairnessPerf):
    """As `max_min_fairness_perf` with rate 1 on every type: it takes all GPU types for equally fast."""

    aware = False


@ALLOCATIONS.register("max_min_fairness_water_filling_perf")
class MaxMinFairnessWaterFillingPerf(MaxMinFairnessPerf):
    """The lexicographic maximum of the normalised throughputs, smallest first: fair also beyond the bottleneck."""

    fill = True


@ALLOCATIONS.register("max_min_fairness_water_filling")
class MaxMinFairnessWaterFilling(MaxMinFairness):
    """As `max_min_fairness_water_filling_perf` with rate 1 on every type."""

    fill = True
