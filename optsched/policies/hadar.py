"""Hadar: rounds on GPUs of several types, dealt by a linear program of the work left, or sold at prices that rise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.gpu_pools import GpuPools, gpu_pools
from optsched.policies.hadar_auction import LATER, Auction, Grant
from optsched.policies.hadar_jobs import SHARE, UTILITIES, HadarJobs
from optsched.policies.hadar_makespan import MakespanRounds
from optsched.policies.round_clock import SHORTEST, RoundClock
from optsched.problem.arrays import Ints
from optsched.registry import near_matches
from optsched.simulation.policy import Decision, Knowledge, Start, Stop, View, Wake

MAKESPAN, FAIRNESS = "makespan", "fairness"
AIMS = (MAKESPAN, *UTILITIES)
QUEUES = ("greedy", "window", "dp")
LEVELS = ("type", "machine")
EXPONENTS = ("safe", "naive")
COSTS = ("remaining", "round")
WIDEST = 16  # jobs in a window: 2^16 ways to take or skip them


@POLICIES.register("hadar")
@dataclass
class Hadar:
    """Hadar, round by round: jobs may take GPUs of several types and nodes; a program or an auction says who gets which.

    A round lasts ``round`` seconds; the first begins at an arrival in an idle cluster, and it ends early when nothing runs.
    With ``fill`` GPUs that are free within a round go to jobs that wait, by the rule of the round, at once; without it
    nothing is decided between two rounds. A job that keeps its GPUs pays no ``restart`` (s).

    ``utility=makespan``: the makespan LP of the work that is left says who runs on which type; no price is charged.
    Critical jobs go first, then the others by Smith's rule. ``fairness``: the same types, and who goes first follows
    from due dates that keep the largest x / T_j where it is, x = age at completion, T_j the time alone on a 1/n share at
    the arrival, weights counting for nothing (`optsched.policies.hadar_makespan`). Only ``round``, ``restart`` and ``fill``
    matter to both.

    The others hold an auction in which at first nothing is sold. Each active job is valued by its best allocation
    (`optsched.policies.hadar_allocation`, exact): the ``utility`` of its completion if it kept these GPUs to the end,
    less the price of its GPUs over all of these rounds (``cost=remaining``) or over this one (``round``), less ``comm``
    on several nodes. Jobs are served by payoff per GPU and round, the largest first; a payoff that the prices have
    turned negative is refused. ``queue``: ``greedy`` one at a time, ``window`` the best way to take or skip each
    ``window`` jobs (exact), ``dp`` the same for 16 jobs at once, hence for all of a small state. With ``fill`` the GPUs
    that nobody bought go to the others in the same order, each to where it ends first.

    ``utility`` of an auction: ``slowdown`` w_j d_j / x (effective throughput in units of the job's own best rate; d_j is at
    least a round), ``throughput`` w_j N_j / x in iterations/s, ``jct`` w_j / x, ``deadline`` w_j max(0, 1 - x / D_j).
    ``price_level`` type or machine: what has a price of its own; ``price_exponent`` safe or naive: how it rises
    (`optsched.policies.hadar_round._reprice`) between the least and the greatest value of a device among the active
    jobs (`hadar_auction.Auction._price_range`).

    The defaults have the best total time and the best mean JCT, on one GPU type and on several. Of the auctions
    ``slowdown`` keeps models with many iterations a second from going before all others, as they do with ``throughput``.
    ``fill`` keeps GPUs busy, since here prices need not save them for later arrivals: short jobs that came within a round
    waited for longer than they ran.

    **Problem** P | r_j, size_j, pmtn, online-r_j | max sum U_j(C_j - r_j), speeds by GPU type. **Knowledge** clairvoyant:
    remaining work and rates. **Guarantee** none: one round's prices know nothing of other rounds; `hadar-commit` has one.
    **Complexity** the LP (m T shares), or O(m T^2 + m log m) for m jobs and T types, times 2^``window``, a round; O(nodes)
    for each job served.
    **Reference** Sultana et al., Hadar, IPDPS 2024 (arXiv 2503.10918) for the system; the rules in detail are this
    project's own (the paper's are known from summaries only).
    """

    utility: str = "makespan"
    queue: str = "greedy"
    window: int = 8
    round: float = 360.0
    restart: float = 10.0
    price_level: str = "type"
    price_exponent: str = "safe"
    cost: str = "remaining"
    comm: float = 0.0
    fill: bool = True

    name: ClassVar[str] = "hadar"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT
    uses: ClassVar[tuple[str, ...]] = ("nodes",)
    plays_rounds: ClassVar[bool] = True
    sleeps: ClassVar[bool] = True

    _pools: GpuPools = field(init=False, repr=False)
    _known: HadarJobs = field(init=False, repr=False)
    _planned: MakespanRounds = field(init=False, repr=False)
    _clock: RoundClock = field(init=False, repr=False)
    _asleep: bool = field(init=False, repr=False)  # no round can better anything until a job comes or goes

    def __post_init__(self) -> None:
        for name, value, legal in (
            ("utility", self.utility, AIMS),
            ("queue", self.queue, QUEUES),
            ("price_level", self.price_level, LEVELS),
            ("price_exponent", self.price_exponent, EXPONENTS),
            ("cost", self.cost, COSTS),
        ):
            check_legal(value in legal, f"hadar: {name}", value, near_matches(value, list(legal)))
        check_legal(1 <= self.window <= WIDEST, "hadar: window", self.window, f"an integer from 1 to {WIDEST}")
        check_legal(
            SHORTEST <= self.round < math.inf, "hadar: round", self.round, f"a finite number of seconds >= {SHORTEST:g}"
        )
        check_legal(0 <= self.restart < math.inf, "hadar: restart", self.restart, "a finite number of seconds >= 0")
        check_legal(0 <= self.comm < math.inf, "hadar: comm", self.comm, "a finite number >= 0")

    def begin(self, view: View) -> None:
        """Forget the last run."""
        self._pools, self._clock, self._asleep = gpu_pools(view), RoundClock(self.round), False
        self._planned = MakespanRounds(self._pools, fair=self.utility == FAIRNESS)
        # makespan: the scale of jct is the weight, by which jobs that are not critical are ordered
        utility = {MAKESPAN: "jct", FAIRNESS: SHARE}.get(self.utility, self.utility)
        self._known = HadarJobs(view, self._pools, utility, self.round)

    def decide(self, view: View) -> list[Decision]:
        """At the beginning of a round: who gets which GPUs, and what that changes; within one: who takes what is free."""
        now, active = view.now, view.active
        self._known.meet(view, active.size)
        asleep, self._asleep = self._asleep, False
        if not len(view.running):
            self._clock.stop()  # the round is over: else the cluster would idle while short jobs wait
            asleep = False
        if not active.size:
            return []
        within = asleep and self._clock.upcoming(now) > now  # slept through boundaries
        boundary = self._clock.boundary(now)
        if not within and self._clock.due(now):
            if self._known.about_to_end(view, boundary):
                return []
            grants = self._grants(view, active, self._pools)
            decisions = self._changes(now, boundary, active, grants)
            end = self._clock.begin(now)
            self._asleep = len(grants) == active.size and self._known.at_best(active)
            return decisions if self._asleep else [*decisions, Wake(end)]
        decisions = self._fill(view, active) if self.fill else []
        return [*decisions, Wake(self._clock.upcoming(now))] if asleep else decisions

    def _fill(self, view: View, active: Ints) -> list[Decision]:
        # Within a round: GPUs that are free, to those that wait.
        waiting = active[~self._known.runs(active)]
        if not view.free_gpus or not waiting.size:
            return []
        return self._changes(
            view.now, view.now, waiting, self._grants(view, waiting, replace(self._pools, size=view.free))
        )

    def _grants(self, view: View, jobs: Ints, pools: GpuPools) -> list[Grant]:
        bidders, auction = self._known.bidders(view, jobs, self.restart), self._auction_of(jobs.size)
        if self.utility not in (MAKESPAN, FAIRNESS):
            return auction.grants(bidders, pools)
        if pools is self._pools:
            return auction.placed(bidders, pools, *self._planned.plan(jobs, bidders, self.round))
        return auction.placed(bidders, pools, self._planned.by_urgency(bidders), np.full(jobs.size, LATER))

    def _changes(self, now: float, boundary: float, jobs: Ints, grants: list[Grant]) -> list[Decision]:
        # Stops first: others start on their GPUs.
        decisions: list[Decision] = []
        kept = {grant.job for grant in grants if grant.kept}
        for k in np.flatnonzero(self._known.runs(jobs)).tolist():
            if k not in kept:
                self._known.stops(int(jobs[k]))
                decisions.append(Stop(int(jobs[k])))
        for grant in grants:
            if not grant.kept:
                job = int(jobs[grant.job])
                self._known.starts(job, grant.on, now, boundary)
                decisions.append(Start(job, on=grant.on))
        return decisions

    def _auction_of(self, jobs: int) -> Auction:
        width = {"greedy": 1, "window": self.window, "dp": min(WIDEST, jobs)}[self.queue]
        return Auction(
            length=self.round,
            width=width,
            by_machine=self.price_level == "machine",
            safe=self.price_exponent == "safe",
            whole_cost=self.cost == "remaining",
            comm=self.comm,
            fill=self.fill,
        )
