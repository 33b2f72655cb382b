"""The most throughput for the money, with or without due dates: max sum_mr (T_mr / cost_r) X_mr."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from optsched.errors import InputError
from optsched.models.gavel_allocation import ActiveJobs, rates_by_deadline
from optsched.policies.gavel_allocations import ALLOCATIONS, AllocationRule, JobClasses, Setting
from optsched.policies.gavel_allocations.analytic_centre import centred
from optsched.policies.gavel_allocations.share_program import ShareProgram
from optsched.problem.arrays import Floats
from optsched.simulation.policy import Knowledge


@ALLOCATIONS.register("max_sum_throughput_perf")
class MaxSumThroughputPerf(AllocationRule):
    """max sum_mr T_mr X_mr: steps of different models count alike, so small models win.

    With ``deadlines`` every job is a class of its own: it has its own demand.
    """

    deadlines: ClassVar[bool] = False

    def __init__(self, setting: Setting) -> None:
        self.capacity, self.costs = setting.capacity, self._costs(setting)
        self.program = ShareProgram(setting.capacity, total=True)

    def _costs(self, setting: Setting) -> Floats:
        return np.ones(setting.capacity.size)

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]."""
        classes = JobClasses.single(jobs) if self.deadlines else JobClasses.alike(jobs)
        few = jobs.some(classes.first)
        fastest = few.rate.max(axis=1)
        gain, load = few.rate / fastest[:, None], classes.copies * few.gang
        worth = classes.copies[:, None] * few.rate / self.costs
        need = np.full(few.gang.size, -np.inf)
        if self.deadlines:
            need = rates_by_deadline(few) / fastest
        slots = self.program.open(classes.keys, gain, load)
        self.program.reward(slots, worth)
        self.program.demand(slots, need)
        found = self.program.solve(slots)
        if found is None:
            need[:] = -np.inf
            self.program.demand(slots, need)
            found = self.program.solve(slots)
        if found is None:
            raise AssertionError("dividing time without demands is always feasible")
        return centred(found[0], gain, need, load, classes.copies, self.capacity, worth)[classes.of]


@ALLOCATIONS.register("min_cost")
class MinCost(MaxSumThroughputPerf):
    """max sum_mr (T_mr / cost_r) X_mr; `InputError` where the price of a GPU-hour of a type is not stated."""

    name: ClassVar[str] = "min_cost"

    def _costs(self, setting: Setting) -> Floats:
        missing = [name for name in setting.types if name.lower() not in setting.costs]
        if missing:
            message = f"policy {self.name} needs the price of a GPU-hour"
            legal = f"costs={'/'.join(f'{name}:PRICE' for name in setting.types)}"
            raise InputError(message, field="costs", value=missing[0], legal=legal)
        return np.array([setting.costs[name.lower()] for name in setting.types])


@ALLOCATIONS.register("min_cost_slo")
class MinCostSlo(MinCost):
    """As `min_cost` with thr_m(X) >= left_m / time_left_m for every job with a due date ahead.

    Where that is infeasible: without these constraints, as Gavel does.
    """

    name = "min_cost_slo"
    knowledge = Knowledge.CLAIRVOYANT
    deadlines = True
