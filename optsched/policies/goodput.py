"""Goodput: an elastic scheduler in the spirit of Pollux, with a solver in place of its genetic search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.goodput_deals import GoodputDeals
from optsched.problem.arrays import Floats
from optsched.registry import Seconds
from optsched.simulation.policy import Decision, Knowledge, Policy, View

SMALL = 1e-3  # added to every speed-up: a job without GPUs has a large cost, not an infinite one


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
    around them; or all jobs are packed again, if the mean is then larger. `optsched.policies.goodput_deals` does both
    in arrays and decides the same, with fewer states of the knapsack (`optsched.policies.goodput_numbers`).

    **Not Pollux**: a solver, no genetic search; jobs at the level of rates, with the efficiency of their whole
    training instead of the present one; the true rates from the start, where Pollux fits a model while it runs and
    takes at most twice the GPUs that it has seen; no rule that two spread gangs share no node; a first start is not
    discounted. **Guarantee** none known. **Complexity** O(n k G) a round in the worst case, for n active jobs with k numbers
    of GPUs worth considering; usually O(n k), whatever the cluster. **Reference** Qiao et al.,
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

    def begin(self, view: View) -> None:
        """Forget the last run.

        Parameters
        ----------
        view
            State of the run.
        """
        object.__setattr__(self, "_deals", GoodputDeals(view, self.worth, self.restart, self.round))

    def worth(self, speed_up: Floats) -> Floats:
        """Return the summand of the power mean, which increases in the speed-up.

        Parameters
        ----------
        speed_up
            Speed-ups, f64[].
        """
        p, y = self.p, speed_up + SMALL
        return np.log(y) if p == 0 else np.sign(p) * y**p

    def decide(self, view: View) -> Iterator[list[Decision]]:
        """Stop the jobs whose GPUs change, then start the jobs on their new GPUs.

        Parameters
        ----------
        view
            State of the run.
        """
        deals: GoodputDeals = self._deals  # type: ignore[attr-defined]
        yield from deals.decide()
