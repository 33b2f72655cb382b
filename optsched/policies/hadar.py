"""Hadar: heterogeneity-aware rounds in which jobs bid for GPUs at prices that rise as these are sold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from optsched.errors import check_legal
from optsched.models.gavel_allocation import ActiveJobs
from optsched.policies import POLICIES
from optsched.policies.gavel_allocations.level_search import LevelSearch
from optsched.policies.gpu_pools import GpuPools, gpu_pools
from optsched.policies.hadar_allocation import SLACK
from optsched.policies.hadar_auction import ANYWHERE, LATER, Auction, Bidders, Grant, Where
from optsched.policies.hadar_jobs import SHARE, UTILITIES, HadarJobs
from optsched.policies.round_clock import SHORTEST, RoundClock
from optsched.policies.ties import leading
from optsched.problem.arrays import Floats, Ints
from optsched.registry import near_matches
from optsched.simulation.policy import Decision, Knowledge, Start, Stop, View, Wake

MAKESPAN, FAIRNESS = "makespan", "fairness"
AIMS = (*UTILITIES, MAKESPAN)
QUEUES = ("greedy", "window", "dp")
LEVELS = ("type", "machine")
EXPONENTS = ("safe", "naive")
COSTS = ("remaining", "round")
WIDEST = 16  # jobs in a window: 2^16 ways to take or skip them


@POLICIES.register("hadar")
@dataclass
class Hadar:
    """Hadar, round by round: every job may take GPUs of several types and nodes, and new prices settle who gets which.

    A round lasts ``round`` seconds; the first begins at an arrival in an idle cluster, and between two rounds nothing is
    decided. In a round nothing is sold at first. Each active job is valued by its best allocation
    (`optsched.policies.hadar_allocation`, exact): the ``utility`` of its completion if it kept these GPUs to the end,
    less the price of its GPUs over all of these rounds (``cost=remaining``) or over this one (``round``), less ``comm``
    on several nodes. Jobs are served by payoff per GPU and round, the largest first; a payoff that the prices have
    turned negative is refused. ``queue``: ``greedy`` one at a time, ``window`` the best way to take or skip each
    ``window`` jobs (exact), ``dp`` the same for 16 jobs at once, hence for all of a small state. A job that keeps its
    GPUs pays no ``restart`` (s). With ``fill`` the GPUs that nobody bought go to the others in the same order, each to
    where it ends first.

    ``utility``, x = age at completion: ``slowdown`` w_j d_j / x (effective throughput in units of the job's own best rate;
    d_j is at least a round), ``throughput`` w_j N_j / x in iterations/s, ``jct`` w_j / x, ``deadline``
    w_j max(0, 1 - x / D_j). ``makespan`` and ``fairness`` are no such functions and hold no auction: who runs on which type
    follows from the makespan LP of the work that is left, and for ``fairness`` who goes first from due dates that keep the
    largest x / T_j where it is, T_j the time alone on a 1/n share at the arrival, weights counting for nothing
    (`optsched.policies.hadar`). Then only ``round``, ``restart`` and ``fill`` matter. For ``fairness`` a round ends
    early when nothing runs, as Gavel's do: else the cluster would idle while short jobs wait.

    ``price_level`` type or machine: what has a price of its own; ``price_exponent`` safe or naive: how it rises
    (`optsched.policies.hadar_round._reprice`) between the least and the greatest value of a device among the active
    jobs (`hadar_auction.Auction._price_range`).

    The defaults are those with a good mean JCT: value per GPU and round of the whole remaining schedule is Smith's rule, so
    that short jobs go first; ``slowdown`` keeps models with many iterations a second from going before all others, as
    they do with ``throughput``; and ``fill`` keeps GPUs busy, since here prices need not save them for later arrivals.

    **Problem** P | r_j, size_j, pmtn, online-r_j | max sum U_j(C_j - r_j), speeds by GPU type. **Knowledge** clairvoyant:
    remaining work and rates. **Guarantee** none: one round's prices know nothing of other rounds; `hadar-commit` has one.
    **Complexity** O(m T^2 + m log m) a round for m jobs and T types, O(nodes) for each job served, times 2^``window``.
    **Reference** Sultana et al., Hadar, IPDPS 2024 (arXiv 2503.10918) for the system; the rules in detail are this
    project's own (the paper's are known from summaries only).
    """

    utility: str = "slowdown"
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
        # makespan: any, without an auction nobody asks
        utility = {MAKESPAN: "jct", FAIRNESS: SHARE}.get(self.utility, self.utility)
        self._known = HadarJobs(view, self._pools, utility, self.round)

    def decide(self, view: View) -> list[Decision]:
        """At the beginning of a round: the auction, and what it changes; between two rounds nothing."""
        now, active = view.now, view.active
        self._known.meet(view, active.size)
        asleep, self._asleep = self._asleep, False
        if self.utility == FAIRNESS and not len(view.running):
            self._clock.stop()  # nothing runs: the round is over
            asleep = False
        if not active.size:
            self._clock.stop()
            return []
        if asleep and self._clock.upcoming(now) > now:
            return [Wake(self._clock.upcoming(now))]
        boundary = self._clock.boundary(now)
        if not self._clock.due(now) or self._known.about_to_end(view, boundary):
            return []
        bidders = self._known.bidders(view, active, self.restart)
        auction = self._auction_of(active.size)
        if self.utility in (MAKESPAN, FAIRNESS):
            grants = auction.placed(bidders, self._pools, *self._planned.plan(active, bidders, self.round))
        else:
            grants = auction.grants(bidders, self._pools)
        decisions = self._changes(now, boundary, active.tolist(), bidders.held, grants)
        end = self._clock.begin(now)
        self._asleep = len(grants) == active.size and self._known.at_best(active)
        return decisions if self._asleep else [*decisions, Wake(end)]

    def _changes(
        self, now: float, boundary: float, active: list[int], held: Sequence[Where], grants: list[Grant]
    ) -> list[Decision]:
        # Stops first: others start on their GPUs.
        decisions: list[Decision] = []
        kept = {grant.job for grant in grants if grant.kept}
        for k, where in enumerate(held):
            if where and k not in kept:
                self._known.stops(active[k])
                decisions.append(Stop(active[k]))
        for grant in grants:
            if not grant.kept:
                job = active[grant.job]
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


# Hadar's rounds for the makespan, and for fairness: who goes next, on which type, by the makespan LP of the work left.

CRITICAL = 0.95  # of T: a job that still needs so long goes first
MEANT = 1e-6  # of the time that a job needs: less of it on a pool is rounding of the LP


class MakespanRounds:
    """Shares of the fluid LP (`optsched.models.hadar_makespan`), solved again in every round from its last basis.

        min T   s.t.  sum_r x_jr y_jr >= left_j,  sum_r y_jr <= T (all j),  sum_j W_j y_jr <= c_r T (all r),  y >= 0

    With prices l_r of a GPU-second and u_j of a unit of work, its dual, a job has y_jr > 0 only where its payoff
    x_jr u_j - W_j l_r is the largest that it can have: the LP's shares are what these prices would sell, and they also say
    who runs where payoffs are equal, as those of all jobs but the critical ones are (0). So the shares decide.

    ``fair``: the same shares, another order. R is the largest (age + seconds left at best) / T_j that any job has come to,
    T_j its ``scale``, the seconds on a share 1/n; nobody is served better for being below R, so a job is due R T_j after its
    arrival, and the earliest due date is first: the rule that keeps a ratio on one machine if any does (Bender et al. 1998).
    """

    def __init__(self, pools: GpuPools, fair: bool = False) -> None:
        self._pools, self._fair, self._worst = pools, fair, 0.0
        self._search = LevelSearch(pools.capacity.astype(np.float64))

    def plan(self, ids: Ints, b: Bidders, length: float) -> tuple[Ints, Ints]:
        """(order i64[m] of service, pool i64[m] to run on, `ANYWHERE` or `LATER`) in a round of ``length`` s.

        For fairness by due dates. Else first who needs `CRITICAL` T or more, the longest first; then the others, the
        shortest first: they have time, and mean JCT gains. In this order a job gets the pool that it is on, if it has time
        left to spend there and it fits the pool, else the one where it has most. A gang larger than every pool takes what
        is left of several. O(m P + m log m) and the LP.
        """
        rate, needs, meant, T = self._times(ids, b, length)
        critical = needs >= CRITICAL * T
        first = np.where(critical, -needs, needs)
        if self._fair:
            first, meant = self._due(b, rate, needs, meant)
            critical[:] = True
        order = np.lexsort((np.arange(needs.size), -b.gang, leading(first), ~critical))
        stock, chosen = self._pools.capacity.copy(), np.full(needs.size, LATER)
        for j in order.tolist():
            if not stock.any():
                break
            gang, held = b.gang[j], b.held[j]
            may = (meant[j] > MEANT * needs[j]) & (stock >= gang)
            if may.any():
                here = int(self._pools.pool[held[0][0]]) if held else LATER
                chosen[j] = here if held and may[here] else np.where(may, meant[j], -1.0).argmax()
                stock[chosen[j]] -= gang
            elif not meant[j].any():
                usable = np.where(b.spread[j] > 0, stock, 0)
                if usable.sum() >= gang:
                    chosen[j] = ANYWHERE
                    stock -= np.diff(np.minimum(np.cumsum(usable), gang), prepend=0)
        return order, chosen

    def _due(self, b: Bidders, rate: Floats, needs: Floats, meant: Floats) -> tuple[Floats, Floats]:
        """(seconds until every job is due f64[m], seconds on each pool f64[m, P]), for fairness.

        Who would be late on all pools that the LP means for it takes the fastest with GPUs enough.
        """
        alone = b.left / np.maximum(b.together, b.spread).max(axis=1)
        self._worst = max(self._worst, float(((b.age + alone) / b.scale).max()))
        due = self._worst * b.scale - b.age
        kept = np.where(b.left[:, None] <= due[:, None] * rate, meant, 0.0)
        fastest = rate.max(axis=1, keepdims=True)
        late = ~kept.any(axis=1, keepdims=True) & (fastest > 0)
        return due, np.where(late, needs[:, None] * rate / np.where(late, fastest, 1.0), kept)

    def _times(self, ids: Ints, b: Bidders, length: float) -> tuple[Floats, Floats, Floats, float]:
        """(rate on each pool f64[m, P], seconds needed f64[m], of these on each pool f64[m, P], T).

        No pool: the gang is larger than each of them.
        """
        pools, best = self._pools, np.maximum(b.together, b.spread)
        left = np.maximum(b.left, SLACK * length * best.max(axis=1))  # what rounding has left is not nothing
        rate = np.where(b.gang[:, None] <= pools.largest, b.together, b.spread)
        rate = np.where(b.gang[:, None] <= pools.capacity, rate, 0.0)
        meant, T = np.zeros_like(rate), 0.0
        housed = np.flatnonzero(rate.any(axis=1))
        if housed.size:
            some, unused = rate[housed], np.full(housed.size, np.nan)
            jobs = ActiveJobs(ids[housed], some, b.gang[housed], unused, unused, left[housed], unused)
            share, T = self._search.least(jobs, np.zeros(housed.size), np.ones(housed.size))
            fastest = np.arange(rate.shape[1]) == some.argmax(axis=1)[:, None]
            share = np.where(share.any(axis=1, keepdims=True), share * (some > 0), fastest)  # shorter than LPs can see
            meant[housed] = share * (left[housed] / (share * some).sum(axis=1))[:, None]
        slowest = np.where(b.spread > 0, b.spread, np.inf).min(axis=1)
        needs = np.where(meant.any(axis=1), meant.sum(axis=1), left / slowest)
        return rate, needs, meant, max(T, float(needs.max()))
