"""Goodput: an elastic scheduler in the spirit of Pollux, with a solver in place of its genetic search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.goodput_allocation import best_counts, place
from optsched.problem.arrays import Floats
from optsched.problem.cluster import Places
from optsched.registry import Seconds
from optsched.simulation.policy import Decision, Knowledge, Policy, Start, Stop, View

SMALL = 1e-3  # added to every speed-up: a job without GPUs has a large cost, not an infinite one


class GoodputRound:
    """Values of numbers and places of GPUs for the jobs of a round.

    Parameters
    ----------
    view
        State of the run.
    jobs
        Numbers of the active jobs.
    p
        Exponent of the power mean.
    restart
        Overhead of a restart, in seconds.
    """

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
        """Return the value of every number of GPUs for a job, f64[G + 1]; -inf where it cannot run.

        Parameters
        ----------
        j
            Number of the job.
        """
        rates, held = self.rates[j], self.view.held(j)
        rate = rates * self.kept_share(j)
        if held:
            rate[sum(count for _, count in held)] = self.goodputs.rate(j, held)
        value = self.worth(rate * self.unit[j])
        value[rates == 0] = -np.inf
        value[0] = self.worth(np.zeros(1))[0]
        return value

    def kept_share(self, j: int) -> float:
        """Return the share of its life that restarts leave a job if it is resized now.

        Parameters
        ----------
        j
            Number of the job.
        """
        starts, restart = self.view.starts(j), self.view.restart(j, self.restart)
        if not starts or restart == 0:
            return 1.0
        age = self.view.now - self.view.arrival(j)
        return max(age - (starts - 1) * restart, 0.0) / (age + restart)

    def worth(self, speed_up: Floats) -> Floats:
        """Return the summand of the power mean, which increases in the speed-up.

        Parameters
        ----------
        speed_up
            Speed-ups, f64[].
        """
        p, y = self.p, speed_up + SMALL
        return np.log(y) if p == 0 else np.sign(p) * y**p

    def total(self, plan: Mapping[int, Places]) -> float:
        """Return the value of a plan to all jobs together.

        Parameters
        ----------
        plan
            Places of the jobs with GPUs.
        """
        rates = np.zeros(len(self.jobs))
        for k, j in enumerate(self.jobs):
            on = plan.get(j, ())
            if on:
                share = 1.0 if on == self.view.held(j) else self.kept_share(j)
                rates[k] = self.goodputs.rate(j, on) * share * self.unit[j]
        return float(self.worth(rates).sum())


@POLICIES.register("goodput")
@dataclass(frozen=True)
class Goodput(Policy):
    """GoodputMax: every ``round`` seconds the GPUs are dealt again to maximise a power mean of the jobs' speed-ups.

    **Problem** jobs of any number of GPUs and any batch (`optsched.speeds.goodput_rates`), online-r_j | sum (C_j -
    r_j). **Knowledge** non-clairvoyant about lengths; it knows the true rates of a job on any GPUs with any batch.
    **Method** x_j(r) = v_j(r) / v_j(fair) is the speed-up of r GPUs over a fair share of ceil(G / active jobs). With N
    nodes and y_j = (N / G) x_j + 0.001 the policy maximises the power mean with exponent ``p`` of the y_j (p = -1: the
    harmonic mean, fair to the slowest; p = 0: the geometric mean; p = 1: the sum). The rate on a number of GPUs other
    than the present one counts max(a - k o, 0) / (a + o) of itself, for a job of age a that was resized k times: the
    share of its life that restarts of o seconds (``restart``) leave it. A first start is not discounted, because it
    cannot be avoided. Numbers are found by an exact knapsack, places by a heuristic
    (`optsched.policies.goodput_allocation`): jobs that keep their number keep their GPUs, and the others are packed
    around them; or all jobs are packed again, if the mean is then larger.

    **Not Pollux**: a solver, no genetic search; jobs at the level of rates, with the efficiency of their whole
    training instead of the present one; the true rates from the start, where Pollux fits a model while it runs and
    takes at most twice the GPUs that it has seen; no rule that two spread gangs share no node; a first start is not
    discounted. **Guarantee** none known. **Complexity** O(active jobs x G^2) a round. **Reference** Qiao et al.,
    Pollux, OSDI 2021, and the simulator of petuum/adaptdl (branch osdi21-artifact).

    Parameters
    ----------
    round
        Seconds between two decisions.
    restart
        Overhead of every start, in seconds.
    p
        Exponent of the power mean.
    """

    round: Seconds = 60.0
    restart: Seconds = 30.0
    p: float = -1.0
    name = "goodput"
    knowledge = Knowledge.NON_CLAIRVOYANT
    uses = ("widths", "rounds")

    def __post_init__(self) -> None:
        check_legal(-10 <= self.p <= 1, "goodput: p", self.p, "a number from -10 to 1")
        object.__setattr__(self, "first_start", self.restart)  # the fields are frozen; a first start costs the same

    def decide(self, view: View) -> Iterator[list[Decision]]:
        """Stop the jobs whose GPUs change, then start the jobs on their new GPUs.

        Parameters
        ----------
        view
            State of the run.
        """
        plan = self.plan(view)
        moved = [j for j in view.running if plan.get(j) != view.held(j)]
        yield [Stop(j) for j in moved]
        yield [Start(j, on=on) for j, on in plan.items() if not view.held(j)]

    def plan(self, view: View) -> dict[int, Places]:
        """Compute the numbers of GPUs, then the places, of every job.

        Parameters
        ----------
        view
            State of the run.

        Returns
        -------
        dict
            (node, GPUs) of every job with GPUs.
        """
        jobs = view.active.tolist()
        case = GoodputRound(view, jobs, self.p, self.restart)
        counts = dict(zip(jobs, best_counts([case.values(j) for j in jobs], case.gpus), strict=True))
        held = {j: view.held(j) for j in jobs}
        eligible = {j: view.eligible(j) for j in jobs}
        sizes = view.groups.node_gpus
        plans = [place(counts, present, sizes, eligible) for present in (held, {})]
        return {j: tuple(sorted(on)) for j, on in max(plans, key=case.total).items()}
