"""Gavel without rounds: jobs run at their effective throughputs, as if every share of time were served at every instant.

That is what Gavel's ``--ideal`` flag simulates: between two events job m does sum_r T_mr X_mr units of work a second, and X
is found anew at every arrival and completion. It is a fluid, **not a schedule**: no GPU has one job at a time, gangs need
not fit beside each other, and it bounds nothing. It shows what the allocation policy is worth apart from the round
mechanism; ``gavel:ideal=true`` comes near it with a schedule that can be checked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optsched.errors import SimulationError
from optsched.models.gavel_allocation import ActiveJobs
from optsched.policies.gavel import Gavel
from optsched.policies.gavel_allocations import ALLOCATIONS, Setting
from optsched.policies.gavel_jobs import costs_in
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.speeds.type_speeds import type_speeds

DONE = 1e-12  # of a job's work: rounding


@dataclass(frozen=True)
class IdealRun:
    """``completion`` f64[n] seconds; inf for a job whose gang no GPU type holds. ``allocations``: how many were computed."""

    policy: str
    arrival: Floats
    completion: Floats
    allocations: int

    @property
    def mean_jct(self) -> float:
        """Mean of completion - arrival over the jobs that complete, seconds."""
        jct = self.completion - self.arrival
        return float(jct[np.isfinite(jct)].mean())

    @property
    def makespan(self) -> float:
        """Last completion minus first arrival, seconds."""
        return float(self.completion[np.isfinite(self.completion)].max() - self.arrival.min())


def ideal(instance: Instance, policy: Gavel | str = "max_min_fairness_perf") -> IdealRun:
    """Fluid completion times under one of Gavel's allocation policies.

    Parameters
    ----------
    policy : the name of an allocation policy, or a `Gavel` with the parameters it needs (``costs``, ``seed``); rounds,
        resets and restarts have no part in this.

    Raises
    ------
    InputError
        For an unknown policy (with near matches).

    Complexity: one allocation an arrival or completion.
    """
    gavel = policy if isinstance(policy, Gavel) else Gavel(policy=policy)
    speeds = type_speeds(instance)
    together, spread = speeds.together, speeds.together if speeds.one_gpu_nodes else speeds.spread
    gang = instance.gpus[:, None]
    rate = np.where(gang <= speeds.largest_node[None, :], together, spread)
    rate = np.where(gang <= speeds.capacity[None, :], rate, 0.0)
    setting = Setting(speeds.types, speeds.capacity.astype(np.float64), gavel.seed, costs_in(gavel.costs))
    rule = ALLOCATIONS.get(gavel.policy)(setting)
    fluid = _Fluid(instance, rate)
    allocations = 0
    while True:
        active = fluid.active()
        if active.size:
            share = rule.shares(fluid.jobs(active))
            allocations += 1
            flow = (rate[active] * share).sum(axis=1)
        else:
            flow = np.zeros(0)
        if not fluid.advance(active, flow):
            return IdealRun(gavel.policy, instance.arrival, fluid.completion, allocations)


class _Fluid:
    """Clock, work left and completions; jobs that no type can hold stay away."""

    def __init__(self, instance: Instance, rate: Floats) -> None:
        self._instance, self._rate = instance, rate
        self._left = instance.work.astype(np.float64)
        self._runs = rate.any(axis=1)
        arrivals = np.unique(instance.arrival[self._runs])
        self._later = arrivals[::-1].tolist()
        self.now = self._later.pop() if self._later else math.inf
        self.completion = np.full(instance.n, math.inf)

    def active(self) -> Ints:
        here = (self._instance.arrival <= self.now) & np.isinf(self.completion) & self._runs
        jobs = np.flatnonzero(here)
        return jobs[np.argsort(self._instance.arrival[jobs], kind="stable")]

    def jobs(self, ids: Ints) -> ActiveJobs:
        i = self._instance
        elapsed, time_left = self.now - i.arrival[ids], i.due[ids] - self.now
        return ActiveJobs(ids, self._rate[ids], i.gpus[ids], i.weight[ids], elapsed, self._left[ids], time_left)

    def advance(self, active: Ints, flow: Floats) -> bool:
        """To the next arrival or completion; False when there is none."""
        arrival = self._later[-1] if self._later else math.inf
        with np.errstate(divide="ignore"):
            ends = self._left[active] / flow
        first = float(ends.min(initial=math.inf))
        step = min(first, arrival - self.now)
        if not math.isfinite(step):
            if active.size:
                raise SimulationError(f"{active.size} jobs have no share of any GPU type, and nobody else comes")
            return False
        self._left[active] -= flow * step
        if arrival - self.now <= first:
            self.now = self._later.pop()
        else:
            self.now += first
        done = active[(self._left[active] <= DONE * self._instance.work[active]) | (ends <= step)]
        self.completion[done] = self.now
        return True
