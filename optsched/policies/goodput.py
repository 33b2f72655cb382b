"""Goodput: an elastic scheduler in the spirit of Pollux, with a solver in the place of its genetic search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.goodput_allocation import best_counts, place
from optsched.policies.goodput_round import GoodputRound
from optsched.problem.cluster import Places
from optsched.simulation.policy import Decision, Knowledge, Start, Stop, View


@POLICIES.register("goodput")
@dataclass(frozen=True)
class Goodput:
    """GoodputMax: every ``round`` seconds the GPUs are dealt anew so that a power mean of the jobs' speed-ups is largest.

    **Problem** jobs of any number of GPUs and any batch (`optsched.speeds.goodput`), online-r_j | sum (C_j - r_j).
    **Knowledge** non-clairvoyant about lengths; of rates it knows the truth: how fast a job is on any GPUs with any batch.
    **Method** x_j(r) = v_j(r) / v_j(fair), the speed-up of r GPUs over a fair share of ceil(G / active jobs); with N nodes
    and y_j = (N / G) x_j + 0.001 it maximises the power mean with exponent ``p`` of the y_j (p = -1: the harmonic mean, fair
    to the slowest; p = 0: the geometric one; p = 1: the sum). A number of GPUs other than a job has counts
    max(a - k o, 0) / (a + o) of it, for a job of age a that was resized k times: the share of its life that restarts of o
    seconds (``restart``) leave it. (Not at its first start, which cannot be had without.) Numbers by an exact knapsack,
    places by a heuristic (`optsched.policies.goodput_allocation`): those who keep their number keep their GPUs, and the
    others are packed around them; or all are packed anew, if the mean is larger so.

    **Not Pollux**: a solver, no genetic search; jobs at the level of rates, with the efficiency of their whole training
    instead of that of the moment; the true rates from the start, where Pollux fits a model while it runs, and takes at most
    twice the GPUs that it has seen; no rule that two spread gangs share no node; a first start is not discounted.
    **Guarantee** none known. **Complexity** O(active jobs x G^2) a round.
    **Reference** Qiao et al., Pollux, OSDI 2021, and the simulator of petuum/adaptdl (branch osdi21-artifact).
    """

    round: float = 60.0
    restart: float = 30.0
    p: float = -1.0
    name: ClassVar[str] = "goodput"
    knowledge: ClassVar[Knowledge] = Knowledge.NON_CLAIRVOYANT
    uses: ClassVar[tuple[str, ...]] = ("widths", "rounds")

    def __post_init__(self) -> None:
        check_legal(-10 <= self.p <= 1, "goodput: p", self.p, "a number from -10 to 1")

    @property
    def first_start(self) -> float:
        """A job's first start costs what a restart does."""
        return self.restart

    def decide(self, view: View) -> Iterator[list[Decision]]:
        """Who is given other GPUs gives his own back first."""
        plan = self.plan(view)
        moved = [j for j in view.running if plan.get(j) != view.held(j)]
        yield [Stop(j) for j in moved]
        yield [Start(j, on=on) for j, on in plan.items() if not view.held(j)]

    def plan(self, view: View) -> dict[int, Places]:
        """The numbers of GPUs, then the places, by job."""
        jobs = view.active.tolist()
        case = GoodputRound(view, jobs, self.p, self.restart)
        counts = dict(zip(jobs, best_counts([case.values(j) for j in jobs], case.gpus), strict=True))
        held = {j: view.held(j) for j in jobs}
        eligible = {j: view.eligible(j) for j in jobs}
        sizes = view.groups.node_gpus
        plans = [place(counts, kept, sizes, eligible) for kept in (held, {})]
        return {j: tuple(sorted(on)) for j, on in max(plans, key=case.total).items()}
