"""The most throughput for the money, with or without due dates: max sum_mr (T_mr / cost_r) X_mr."""

from __future__ import annotations

import numpy as np

from optsched.errors import InputError
from optsched.policies.gavel_allocations import ActiveJobs, Setting
from optsched.policies.gavel_allocations.centre import centred
from optsched.policies.gavel_allocations.job_classes import JobClasses
from optsched.policies.gavel_allocations.share_program import ShareProgram
from optsched.simulation.policy import Floats


def costs_of(policy: str, setting: Setting) -> Floats:
    """The price of a GPU-hour of every type; `InputError` where one is not stated."""
    missing = [name for name in setting.types if name.lower() not in setting.costs]
    if missing:
        legal = f"costs={'/'.join(f'{name}:PRICE' for name in setting.types)}"
        raise InputError(f"policy {policy} needs the price of a GPU-hour", field="costs", value=missing[0], legal=legal)
    return np.array([setting.costs[name.lower()] for name in setting.types])


class TotalWorth:
    """The programs of one run. With ``deadlines`` every job is a class of its own: it has its own demand."""

    def __init__(self, capacity: Floats, costs: Floats, *, deadlines: bool = False) -> None:
        self.capacity, self.costs, self.deadlines = capacity, costs, deadlines
        self.program = ShareProgram(capacity, total=True)

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]."""
        classes = JobClasses.single(jobs) if self.deadlines else JobClasses.alike(jobs)
        few = jobs.some(classes.first)
        fastest = few.rate.max(axis=1)
        gain, load = few.rate / fastest[:, None], classes.copies * few.gang
        worth = classes.copies[:, None] * few.rate / self.costs
        need = np.full(few.gang.size, -np.inf)
        if self.deadlines:
            pressed = np.isfinite(few.time_left) & (few.time_left > 0)
            need[pressed] = (few.left / fastest)[pressed] / few.time_left[pressed]
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
