"""Hadar: rounds on GPUs of several types, assigned by a linear program of the work left, or sold at prices that rise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from optsched.errors import OptschedError, check_legal
from optsched.models.gavel_allocation import ActiveJobs
from optsched.policies import POLICIES
from optsched.policies.gavel_allocations.level_search import LevelSearch
from optsched.policies.gavel_allocations.share_program import ShareProgram
from optsched.policies.gpu_pools import GpuPools, gpu_pools
from optsched.policies.hadar_allocation import SLACK
from optsched.policies.hadar_auction import ANYWHERE, LATER, Auction, Bidders, Grant
from optsched.policies.hadar_jobs import EXPONENTS, LEVELS, SHARE, UTILITIES, HadarJobs, require_one_of
from optsched.policies.round_clock import SHORTEST, RoundClock
from optsched.policies.ties import leading
from optsched.problem.arrays import Floats, Ints
from optsched.registry import Seconds
from optsched.simulation.policy import Decision, Knowledge, Policy, View, Wake

WAITED = 1  # rounds: a job that then would still need longer than T is critical and goes first
TINY = 1e-12  # instead of a weight of 0
MEANT = 1e-6  # of the time that a job needs: less of it on a pool is rounding of the LP


class MakespanRounds:
    """Shares of the makespan LP of single types, solved again in every round from its last basis.

        min T   s.t.  sum_r x_jr y_jr >= left_j,  sum_r y_jr <= T (all j),  sum_j W_j y_jr <= c_r T (all r),  y >= 0

    With prices l_r of a GPU-second and u_j of a unit of work, its dual, a job has y_jr > 0 only where its payoff
    x_jr u_j - W_j l_r is the largest that it can have: the LP's shares are what these prices would sell, and they also say
    who runs where payoffs are equal, as those of all jobs but the critical ones are (0). So no price is computed:
    the shares decide, and of the optimal ones those of least GPU time, by a second LP: min sum_jr W_j y_jr at that T.

    Gangs larger than every pool have no share. `optsched.models.hadar_makespan` has this LP (``single``) as a formulation.
    ``scale`` of the bidders is their weight. ``fair``: the same shares, another order. R is the largest (age + seconds left
    at best) / T_j that any job has come to, T_j its ``scale``, the seconds on a share 1/n; nobody is served better for
    being below R, so a job is due R T_j after its arrival, and the earliest due date is first: the rule that keeps a ratio
    on one machine if any does (Bender et al. 1998).
    """

    def __init__(self, pools: GpuPools, fair: bool = False) -> None:
        self._pools, self._fair, self._worst = pools, fair, 0.0
        self._search = LevelSearch(pools.capacity.astype(np.float64))
        self._thrift = ShareProgram(pools.capacity.astype(np.float64), total=True)

    def plan(self, ids: Ints, b: Bidders, length: float) -> tuple[Ints, Ints]:
        """(order i64[m] of service, pool i64[m] to run on, `ANYWHERE` or `LATER`) in a round of ``length`` s.

        Who ends within the round on what it has keeps that. For fairness the others go by due dates; else, where the longest
        job alone decides T, first who could not wait `WAITED` rounds and end by T, the longest first; then by Smith's rule,
        the least GPU time a unit of weight first: they have time, and mean JCT gains. In this order a job keeps its pool, if
        it has time left to spend there or would gain nothing by moving, else it gets the one where it has most. A gang
        larger than every pool takes what is left of several. O(m P + m log m) and two LPs.
        """
        rate, needs, meant, T = self._times(ids, b, length)
        critical = (needs > T - WAITED * length) & (needs.max() * (1 + MEANT) >= T)  # else capacity alone decides T
        first = np.where(critical, -needs, needs * b.gang / np.maximum(b.scale, TINY))
        if self._fair:
            first, meant = self._due(b, rate, needs, meant)
            critical[:] = True
        held = [{int(self._pools.pool[node]) for node, _ in where} for where in b.held]
        here = np.array(
            [pools.pop() if len(pools) == 1 else LATER for pools in held]
        )  # the one pool of what a job holds
        staying = np.where(here < 0, np.inf, b.left / np.maximum(rate[np.arange(here.size), np.maximum(here, 0)], TINY))
        ends = staying <= length
        order = np.lexsort((np.arange(needs.size), -b.gang, leading(first), ~critical, ~ends))
        stock, chosen = self._pools.capacity.copy(), np.full(needs.size, LATER)
        for j in order.tolist():
            if not stock.any():
                break
            gang, may = b.gang[j], (meant[j] > MEANT * needs[j]) & (stock >= b.gang[j])
            if may.any() or ends[j]:
                there = int(np.where(may, meant[j], -1.0).argmax())
                stays = here[j] >= 0 and stock[here[j]] >= gang
                stays = stays and (ends[j] or may[here[j]] or staying[j] <= b.restart[j] + b.left[j] / rate[j, there])
                chosen[j] = here[j] if stays else there
                stock[chosen[j]] -= gang
            elif not meant[j].any():
                usable = np.where(b.spread[j] > 0, stock, 0)
                if usable.sum() >= gang:
                    chosen[j] = ANYWHERE
                    stock -= np.diff(np.minimum(np.cumsum(usable), gang), prepend=0)
        return order, chosen

    def by_urgency(self, b: Bidders) -> Ints:
        """The order of jobs that wait within a round: by Smith's rule; for fairness by due dates."""
        alone = b.left / np.maximum(b.together, b.spread).max(axis=1)
        first = self._worst * b.scale - b.age if self._fair else alone * b.gang / np.maximum(b.scale, TINY)
        return np.lexsort((np.arange(alone.size), leading(first)))

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

    def _cheapest(self, jobs: ActiveJobs, share: Floats, T: float) -> Floats:
        # Of the shares that reach T those of least GPU time: where one long job needs T, others go to where they are fast.
        fastest = jobs.rate.max(axis=1)
        slots = self._thrift.open(jobs.ids.tolist(), jobs.rate / fastest[:, None], jobs.gang.astype(np.float64))
        self._thrift.reward(slots, -np.broadcast_to(jobs.gang[:, None], jobs.rate.shape).astype(np.float64))
        self._thrift.demand(slots, jobs.left / fastest / (T * (1 + MEANT)))
        try:
            found = self._thrift.solve(slots)
        except OptschedError:  # lost on its last basis: the next round begins from none
            self._thrift, found = ShareProgram(self._thrift.capacity, total=True), None
        return share if found is None else found[0]

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
            jobs = ActiveJobs(ids[housed], some, b.gang[housed], unused, unused, left[housed])
            share, T = self._search.least(jobs, np.zeros(housed.size), np.ones(housed.size))
            share = self._cheapest(jobs, share, T)
            fastest = np.arange(rate.shape[1]) == some.argmax(axis=1)[:, None]
            share = np.where(share.any(axis=1, keepdims=True), share * (some > 0), fastest)  # shorter than LPs can see
            meant[housed] = share * (left[housed] / (share * some).sum(axis=1))[:, None]
        slowest = np.where(b.spread > 0, b.spread, np.inf).min(axis=1)
        needs = np.where(meant.any(axis=1), meant.sum(axis=1), left / slowest)
        return rate, needs, meant, max(T, float(needs.max()))


MAKESPAN, FAIRNESS = "makespan", "fairness"
AIMS = (MAKESPAN, *UTILITIES)
QUEUES = ("greedy", "window", "dp")
COSTS = ("remaining", "round")
WIDEST = 16  # jobs in a window: 2^16 ways to take or skip them


@POLICIES.register("hadar")
@dataclass
class Hadar(Policy):
    """Hadar, round by round: jobs may take GPUs of several types and nodes; a program or an auction says who gets which.

    A round lasts ``round`` seconds; the first begins at an arrival in an idle cluster, and it ends early when nothing runs.
    With ``fill`` GPUs that are free within a round go to jobs that wait, by the rule of the round, at once; without it
    nothing is decided between two rounds. A job that keeps its GPUs pays no ``restart`` (s).

    ``utility=makespan``: the makespan LP of the work that is left says who runs on which type; no price is charged.
    Critical jobs go first, then the others by Smith's rule. ``fairness``: the same types, and who goes first follows
    from due dates that keep the largest x / T_j where it is, x = age at completion, T_j the time alone on a 1/n share at
    the arrival, weights counting for nothing (`MakespanRounds`). Only ``round``, ``restart`` and ``fill``
    matter to both.

    The others hold an auction in which at first nothing is sold. Each active job is valued by its best allocation
    (`optsched.policies.hadar_allocation`, exact): the ``utility`` of its completion if it kept these GPUs to the end,
    less the price of its GPUs over all of these rounds (``cost=remaining``) or over this one (``round``), less ``comm``
    on several nodes. Jobs are served by payoff per GPU and round, the largest first; a payoff that the prices have
    turned negative is refused. ``queue``: ``greedy`` one at a time, ``window`` the best way to take or skip each
    ``window`` jobs (exact), ``dp`` the same for 16 jobs at once, so for all where no more are active. With ``fill`` the GPUs
    that nobody bought go to the others in the same order, each to where it ends first.

    ``utility`` of an auction: ``slowdown`` w_j d_j / x (effective throughput in units of the job's own best rate; d_j is at
    least a round), ``throughput`` w_j N_j / x in iterations/s, ``jct`` w_j / x, ``deadline`` w_j max(0, 1 - x / D_j).
    ``price_level`` type or machine: what has a price of its own. It rises (`optsched.policies.hadar_round._reprice`) from a
    quarter of the least value of a device among the active jobs to the greatest, which it has, with ``price_exponent``
    naive, where all devices are sold; safe: where the widest gang finds one too few (`hadar_auction.Auction._price_range`).

    The defaults have the best total time and the best mean JCT, on one GPU type and on several. Of the auctions
    ``slowdown`` keeps models with many iterations a second from going before all others, as they do with ``throughput``.
    ``fill`` keeps GPUs busy, since here prices need not save them for later arrivals: short jobs that came within a round
    waited for longer than they ran.

    **Problem** P | r_j, size_j, pmtn, online-r_j | max sum U_j(C_j - r_j), speeds by GPU type. **Knowledge** clairvoyant:
    remaining work and rates. **Guarantee** none: a round's shares and prices know nothing of later arrivals; `hadar-commit`
    has one.
    **Complexity** the LP (m T shares), or O(m T^2 + m log m) for m jobs and T types, times 2^``window``, a round; O(nodes)
    for each job served.
    **Reference** Sultana et al., Hadar, IPDPS 2024 (arXiv 2503.10918) for the system; the rules in detail are this
    project's own (the paper's are known from summaries only).
    """

    utility: str = "makespan"
    queue: str = "greedy"
    window: int = 8
    round: Seconds = 360.0
    restart: Seconds = 10.0
    price_level: str = "type"
    price_exponent: str = "safe"
    cost: str = "remaining"
    comm: float = 0.0
    fill: bool = True

    name = "hadar"
    knowledge = Knowledge.CLAIRVOYANT
    uses = ("nodes",)
    plays_rounds = True
    sleeps = True

    def __post_init__(self) -> None:
        require_one_of(self, utility=AIMS, queue=QUEUES, price_level=LEVELS, price_exponent=EXPONENTS, cost=COSTS)
        check_legal(1 <= self.window <= WIDEST, "hadar: window", self.window, f"an integer from 1 to {WIDEST}")
        check_legal(
            SHORTEST <= self.round < math.inf, "hadar: round", self.round, f"a finite number of seconds >= {SHORTEST:g}"
        )
        check_legal(0 <= self.restart < math.inf, "hadar: restart", self.restart, "a finite number of seconds >= 0")
        check_legal(0 <= self.comm < math.inf, "hadar: comm", self.comm, "a finite number >= 0")

    def begin(self, view: View) -> None:
        """Forget the last run."""
        self._pools, self._clock = gpu_pools(view), RoundClock(self.round)
        self._asleep = False  # no round can better anything until a job comes or goes
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
        bidders = self._known.bidders(view, jobs, self.restart)
        auction = Auction(
            length=self.round,
            width={"greedy": 1, "window": self.window, "dp": min(WIDEST, jobs.size)}[self.queue],
            by_machine=self.price_level == "machine",
            safe=self.price_exponent == "safe",
            all_rounds=self.cost == "remaining",
            comm=self.comm,
            fill=self.fill,
        )
        if self.utility not in (MAKESPAN, FAIRNESS):
            return auction.grants(bidders, pools)
        if pools is self._pools:
            return auction.placed(bidders, pools, *self._planned.plan(jobs, bidders, self.round))
        return auction.placed(bidders, pools, self._planned.by_urgency(bidders), np.full(jobs.size, LATER))

    def _changes(self, now: float, boundary: float, jobs: Ints, grants: list[Grant]) -> list[Decision]:
        kept = {grant.job for grant in grants if grant.kept}
        stopped = [int(jobs[k]) for k in np.flatnonzero(self._known.runs(jobs)).tolist() if k not in kept]
        started = [(int(jobs[grant.job]), grant.on) for grant in grants if not grant.kept]
        return self._known.moved(stopped, started, now, boundary)
