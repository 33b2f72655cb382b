"""What GPUs are worth to jobs in one round of `optsched.policies.goodput`, whose docstring tells the formulas."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from optsched.problem.arrays import Floats
from optsched.problem.cluster import Places
from optsched.simulation.policy import View

SMALL = 1e-3  # added to every speed-up: a job without GPUs has a large cost, not an infinite one


class GoodputRound:
    """The worth of numbers and places of GPUs for ``jobs`` now; ``p`` the exponent of the mean, ``restart`` in seconds."""

    def __init__(self, view: View, jobs: list[int], p: float, restart: float) -> None:
        self.view, self.jobs, self.p, self.restart = view, jobs, p, restart
        self.gpus = view.cluster_gpus
        self.goodputs = view.goodputs
        fair = -(-self.gpus // len(jobs))
        self.rates = {j: self.goodputs.table(j).max(axis=1) for j in jobs}
        scale = view.groups.node_gpus.size / self.gpus
        self.unit = {j: scale / _fair_rate(self.rates[j], fair) for j in jobs}

    def values(self, j: int) -> Floats:
        """The worth of r GPUs for job ``j``, f64[G + 1]; -inf where it cannot run on r."""
        rates, held = self.rates[j], self.view.held(j)
        rate = rates * self.kept_share(j)
        if held:
            rate[sum(count for _, count in held)] = self.goodputs.rate(j, held)
        value = self.worth(rate * self.unit[j])
        value[rates == 0] = -np.inf
        value[0] = self.worth(np.zeros(1))[0]
        return value

    def kept_share(self, j: int) -> float:
        """The share of its life that restarts leave job ``j`` if it is resized now."""
        starts, restart = self.view.starts(j), self.view.restart(j, self.restart)
        if not starts or restart == 0:
            return 1.0
        age = self.view.now - self.view.arrival(j)
        return max(age - (starts - 1) * restart, 0.0) / (age + restart)

    def worth(self, speed_up: Floats) -> Floats:
        """The summand of the power mean, increasing in the speed-up."""
        p, y = self.p, speed_up + SMALL
        return np.log(y) if p == 0 else np.sign(p) * y**p

    def total(self, plan: Mapping[int, Places]) -> float:
        """What places are worth to all jobs together."""
        rates = np.zeros(len(self.jobs))
        for k, j in enumerate(self.jobs):
            on = plan.get(j, ())
            if on:
                share = 1.0 if on == self.view.held(j) else self.kept_share(j)
                rates[k] = self.goodputs.rate(j, on) * share * self.unit[j]
        return float(self.worth(rates).sum())


def _fair_rate(rates: Floats, fair: int) -> float:
    """The rate with a fair share, or with the next smaller number that can run; the smallest possible where none is."""
    can = np.flatnonzero(rates)
    if not can.size:
        return 1.0  # it cannot run at all
    below = can[can <= fair]
    return float(rates[below[-1] if below.size else can[0]])
