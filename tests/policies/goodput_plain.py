"""`goodput` written plainly: every round values, counts and places all jobs from the view alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from optsched.policies.goodput import SMALL, Goodput
from optsched.policies.goodput_allocation import best_counts, place
from optsched.problem.arrays import Floats
from optsched.problem.cluster import Places
from optsched.simulation.policy import Decision, Start, Stop, View


class GoodputRound:
    """Values of numbers and places of GPUs for the jobs of a round."""

    def __init__(self, view: View, jobs: list[int], p: float, restart: float) -> None:
        self.view, self.jobs, self.p, self.restart = view, jobs, p, restart
        self.gpus = view.cluster_gpus
        self.goodputs = view.goodputs
        fair = -(-self.gpus // len(jobs))
        self.rates = {j: self.goodputs.table(j).max(axis=1) for j in jobs}
        self.unit: dict[int, float] = {}
        for j, rates in self.rates.items():
            # the rate with a fair share, or with the next smaller number of GPUs on which the job can run
            can = np.flatnonzero(rates)
            below = can[can <= fair]
            rate = float(rates[below[-1] if below.size else can[0]]) if can.size else 1.0
            self.unit[j] = view.groups.node_gpus.size / self.gpus / rate

    def values(self, j: int) -> Floats:
        """Return the value of every number of GPUs for a job, f64[G + 1]; -inf where it cannot run."""
        rates, held = self.rates[j], self.view.held(j)
        rate = rates * self.kept_share(j)
        if held:
            rate[sum(count for _, count in held)] = self.goodputs.rate(j, held)
        value = self.worth(rate * self.unit[j])
        value[rates == 0] = -np.inf
        value[0] = self.worth(np.zeros(1))[0]
        return value

    def kept_share(self, j: int) -> float:
        """Return the share of its life that restarts leave a job if it is resized now."""
        starts, restart = self.view.starts(j), self.view.restart(j, self.restart)
        if not starts or restart == 0:
            return 1.0
        age = self.view.now - self.view.arrival(j)
        return max(age - (starts - 1) * restart, 0.0) / (age + restart)

    def worth(self, speed_up: Floats) -> Floats:
        """Return the summand of the power mean, which increases in the speed-up."""
        p, y = self.p, speed_up + SMALL
        return np.log(y) if p == 0 else np.sign(p) * y**p

    def total(self, plan: Mapping[int, Places]) -> float:
        """Return the value of a plan to all jobs together."""
        rates = np.zeros(len(self.jobs))
        for k, j in enumerate(self.jobs):
            on = plan.get(j, ())
            if on:
                share = 1.0 if on == self.view.held(j) else self.kept_share(j)
                rates[k] = self.goodputs.rate(j, on) * share * self.unit[j]
        return float(self.worth(rates).sum())


class PlainGoodput(Goodput):
    """The plain form."""

    def decide(self, view: View) -> Iterator[list[Decision]]:
        """Stop the jobs whose GPUs change, then start the jobs on their new GPUs."""
        plan = self.plan(view)
        moved = [j for j in view.running if plan.get(j) != view.held(j)]
        yield [Stop(j) for j in moved]
        yield [Start(j, on=on) for j, on in plan.items() if not view.held(j)]

    def plan(self, view: View) -> dict[int, Places]:
        """Compute the numbers of GPUs, then the places, of every job."""
        jobs = view.active.tolist()
        case = GoodputRound(view, jobs, self.p, self.restart)
        counts = dict(zip(jobs, best_counts([case.values(j) for j in jobs], case.gpus), strict=True))
        held = {j: view.held(j) for j in jobs}
        eligible = {j: view.eligible(j) for j in jobs}
        sizes = view.groups.node_gpus
        plans = [place(counts, present, sizes, eligible) for present in (held, {})]
        return {j: tuple(sorted(on)) for j, on in max(plans, key=case.total).items()}
