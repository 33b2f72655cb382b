"""Hadar, commit on arrival: the primal-dual algorithm with a guarantee, carried out on the cluster."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.exponential_prices import ABOVE
from optsched.policies.gpu_pools import gpu_pools
from optsched.policies.hadar_auction import Auction, Where
from optsched.policies.hadar_jobs import EXPONENTS, LEVELS, UTILITIES, HadarJobs, require_one_of
from optsched.policies.hadar_reservations import Plan, Request, Reservations
from optsched.policies.round_clock import SHORTEST, RoundClock
from optsched.problem.arrays import Floats, Ints
from optsched.registry import Seconds
from optsched.simulation.policy import Decision, Knowledge, Policy, View, Wake

HEADROOM = 4.0  # Up at first: so many times what the first job is worth, so that others seldom raise it
FLOOR = 1e-3  # Lo, if not given: this part of what the first job pays for a device and round


@POLICIES.register("hadar-commit")
@dataclass
class HadarCommit(Policy):
    """Hadar that decides at the arrival: the plan of largest payoff at present prices, kept to the end, or none.

    Time is cut into rounds of ``round`` seconds from the first arrival on. A resource is one GPU type (``price_level``;
    nodes of a type that suit different jobs count as types of their own), or one node, in one round. At its arrival a job
    is offered every plan of S_j: a speed x, as many rounds as its work takes at x, from the next boundary on, neighbours
    or not, and in each of them a gang of GPUs on which it runs at x or faster (`optsched.policies.hadar_reservations`, with
    the exact argmax). At prices by type a plan does not know its nodes and counts on the slower of the rates together and
    spread. If the best payoff U - prices is positive the plan is bought and kept; ``restart`` seconds of each of its
    rounds are set aside, so that it holds however often the job is preempted. Prices: ``price_exponent`` safe or naive
    (`optsched.policies.exponential_prices`) between ``low`` = Lo and ``high`` = Up. What is not given (0) is taken from the
    jobs: Lo from the first one, Up and the widest gang as they come; what raising them costs the proof is noted and counted.
    ``utility``: as in the auctions of `hadar`, here the effective throughput w_j N_j / (f_j - r_j), the objective
    ``total_utility``; ``fairness`` is w_j T_j / (f_j - r_j), T_j the seconds alone on an equal share of the cluster.

    A rejected job would never finish. ``fill`` (on by default; without it a job without a plan runs only when
    nothing is bought for the round): GPUs that no plan uses in a round go to the other jobs by the rule of `hadar`, rejected
    ones and those whose plan is later. That is outside of the theorem's accounting and can only add to the value.

    **Problem** P | r_j, size_j, pmtn, online-r_j | max sum w_j N_j/(C_j - r_j), speeds by GPU type. **Knowledge**
    clairvoyant: work and rates at the arrival.

    **Guarantee** (safe prices) ALG >= OPT_LP / (R_eff + D_0/ALG) against all plans on these rounds, D_0 = Lo sum c_q; with
    Lo sum c_q <= theta OPT that is at least (1 - theta) OPT_LP / R_eff. Against all gang schedules: see
    `optsched.guarantees.hadar_theorem`. None with naive prices. **Counterexample**: see the prices.
    **Complexity** O(X R (T + log k)) an arrival for X speeds, R rounds up to the end of the plans and T types.
    **Reference** Sultana et al., Hadar, IPDPS 2024 (arXiv 2503.10918); OASiS, INFOCOM 2018; S_j, the safe exponent and the
    proof are this project's own.
    """

    utility: str = "throughput"
    round: Seconds = 360.0
    restart: Seconds = 0.0
    price_level: str = "type"
    price_exponent: str = "safe"
    low: float = 0.0
    high: float = 0.0
    fill: bool = True

    name = "hadar-commit"
    knowledge = Knowledge.CLAIRVOYANT
    uses = ("nodes",)
    plays_rounds = True
    sleeps = True
    noted_times = ("hadar_end",)

    def __post_init__(self) -> None:
        require_one_of(self, utility=UTILITIES, price_level=LEVELS, price_exponent=EXPONENTS)
        for name, number, holds, meant in (
            ("round", self.round, SHORTEST <= self.round < math.inf, f"a finite number of seconds >= {SHORTEST:g}"),
            ("restart", self.restart, 0 <= self.restart < self.round, "seconds >= 0, less than a round"),
            ("low", self.low, 0 <= self.low < math.inf, "a finite price > 0, or 0: from the first job"),
            ("high", self.high, 0 <= self.high < math.inf, "a finite price > 0, or 0: from the jobs"),
            ("low", self.low, not (self.low and self.high) or self.low < self.high, "less than high"),
        ):
            check_legal(holds, f"hadar-commit: {name}", number, meant)

    def begin(self, view: View) -> None:
        """Forget the last run."""
        self._pools = gpu_pools(view)
        self._known = HadarJobs(view, self._pools, self.utility, self.round)
        self._reservations = Reservations(self._capacity, self.round, safe=self.price_exponent == "safe")
        self._clock = RoundClock(self.round)  # never stopped: round 0 begins at the first arrival
        self._asked = -1  # the last round whose beginning was asked to be woken at
        self._late = False  # its beginning is put off by a moment
        self._asleep = False  # no round can better anything until a job comes or goes
        self._plans: dict[int, Plan] = {}
        self._due: dict[int, dict[int, Ints]] = defaultdict(dict)  # round -> job -> devices of each resource
        n, count = self._known.gang.size, self._capacity.size
        self._first = np.full(n, np.nan)  # the first round that a job could have bought
        self._alone, self._shared = np.zeros((2, n, count))

    def decide(self, view: View) -> Iterator[Decision]:
        """Commit to plans of new jobs; at the beginning of a round carry out what is due."""
        active, clock = view.active, self._clock
        self._known.meet(view, active.size)
        if not active.size:
            self._late = False
            return
        if math.isnan(clock.zero):
            clock.zero = view.now
        for j in view.finished:
            self._release(j)
        number = clock.number
        if clock.begins(number) < view.now and (not self._late or clock.begins(number + 1) <= view.now):
            clock.upcoming(view.now)
            self._forget_from(number)
        for j in view.arrived:
            self._commit(j, clock.number if view.arrival(j) <= clock.begins(clock.number) else clock.number + 1)
        if clock.due(view.now):
            self._late = self._known.about_to_end(view, clock.begins(clock.number))
            if self._late:
                return  # that completion is the next event
            number = clock.number
            yield from self._carry_out(view, active, self._due.pop(number, {}))
            clock.begin(view.now)
            self._forget_from(number + 1)
            if self._asleep:
                return
        if self._asked < clock.number:
            self._asked = clock.number
            yield Wake(clock.begins(clock.number))

    def _forget_from(self, number: int) -> None:
        # Rounds from this one on that were slept through, or that the clock is too coarse for, are gone.
        if number < self._clock.number:
            for past in [each for each in self._due if each < self._clock.number]:
                del self._due[past]

    def _release(self, j: int) -> None:
        # A job that is done, maybe before its plan is: its rounds stay sold, so that prices never fall.
        for number in self._plans[j].rounds.tolist() if j in self._plans else ():
            if number in self._due:
                self._due[number].pop(j, None)
                if not self._due[number]:
                    del self._due[number]

    @property
    def _capacity(self) -> Ints:
        return self._pools.size if self.price_level == "machine" else self._pools.capacity

    def _commit(self, j: int, first: int) -> None:
        request = self._request(j, first)
        if request.restart >= self.round:  # a round that it pays for may do nothing: there are no plans for it
            return
        utility, rounds = self._reservations.alone(request)
        if utility <= 0:
            return
        high = max(self.high, ABOVE * utility / request.least * (1.0 if self._reservations.price_of else HEADROOM))
        low = self.low or FLOOR * utility / (request.gang * rounds)
        self._reservations.raise_to(low, high, request.gang)
        self._first[j], self._alone[j], self._shared[j] = first, request.alone, request.shared
        plan = self._reservations.best(request, first)
        if plan is None:
            return
        self._reservations.sell(plan)
        self._plans[j] = plan
        for k, number in enumerate(plan.rounds.tolist()):
            self._due[number][j] = plan.take[k]

    def _request(self, j: int, first: int) -> Request:
        known, pools, gang = self._known, self._pools, int(self._known.gang[j])
        alone, shared = known.together[j], known.spread[j]
        if self.price_level == "machine":
            alone, shared = alone[pools.pool], shared[pools.pool]
        else:
            # A plan knows no nodes: where a type has several, it counts on the slower of the two rates.
            apart = np.where(pools.largest >= gang, np.minimum(alone, shared), shared)
            alone = alone if gang == 1 else np.where(np.bincount(pools.pool) == 1, alone, apart)
        # without the rounding of late clocks
        age = max(0.0, first * self.round - (float(known.arrival[j]) - self._clock.zero))
        utility = float(known.scale[j]), float(known.span[j])
        own = float(known.restart[j])
        restart = self.restart if math.isnan(own) else own
        return Request(gang, float(known.work[j]), age, alone, shared, *utility, restart)

    def _carry_out(self, view: View, active: Ints, due: dict[int, Ints]) -> list[Decision]:
        """What is due in this round, and on what is left the others."""
        left = set(active.tolist())
        due = {j: take for j, take in due.items() if j in left}
        held = {j: view.held(j) for j in view.running}
        places = {j: held[j] for j, take in due.items() if j in held and self._is(held[j], take)}
        kept = set(places)
        free = self._pools.size.copy()
        for j, take in sorted(due.items(), key=lambda each: each[0] not in kept):
            places[j] = places[j] if j in kept else self._place(take, free)
            for node, count in places[j]:
                free[node] -= count
        others = np.array([j for j in active.tolist() if j not in due], dtype=np.int64)
        if others.size and free.any() and (self.fill or not due):
            bidders = self._known.bidders(view, others, self.restart)
            for grant in Auction(length=self.round).grants(bidders, replace(self._pools, size=free)):
                places[int(others[grant.job])] = grant.on
                kept |= {int(others[grant.job])} if grant.kept else set()
        stopped = [j for j in held if j not in kept]
        started = [(j, where) for j, where in places.items() if j not in kept]
        decisions = self._known.moved(stopped, started, view.now, self._clock.begins(self._clock.number))
        self._asleep = not self._due and len(places) == active.size and self._known.at_best(active)
        return decisions

    def _is(self, where: Where, take: Ints) -> bool:
        # Does it hold what the plan says? By type any nodes will do.
        counts = np.zeros_like(take)
        for node, count in where:
            counts[node if self.price_level == "machine" else self._pools.pool[node]] += count
        return bool((counts == take).all())

    def _place(self, take: Ints, free: Ints) -> Where:
        if self.price_level == "machine":
            return tuple((int(h), int(take[h])) for h in np.flatnonzero(take))
        found: list[tuple[int, int]] = []
        for p in np.flatnonzero(take).tolist():
            nodes, need = np.flatnonzero(self._pools.pool == p), int(take[p])
            roomy = [h for h in nodes.tolist() if free[h] >= need]
            if roomy:
                found.append((min(roomy, key=lambda h: (free[h], h)), need))
                continue
            for h in sorted(nodes.tolist(), key=lambda h: (-free[h], h)):
                here = min(need, int(free[h]))
                if here > 0:
                    found.append((h, here))
                    need -= here
        return tuple(found)

    def notes(self) -> dict[str, Floats]:
        """The dual solution and what was promised, for `optsched.guarantees.hadar_theorem`.

        Of all jobs, f64[n]: ``hadar_payoff`` mu_j (0: rejected), ``hadar_utility`` u_j of the plan (0: none), ``hadar_end``
        its completion (inf: none), ``hadar_first`` the first round it could buy (nan: worthless); f64[n, H] ``hadar_alone``
        and ``hadar_shared``, the rates it counted on. ``hadar_resource`` f64[N] of every node; ``hadar_prices`` f64[R, H]
        at the end, ``hadar_sold`` f64[R, H], ``hadar_capacity`` and ``hadar_widest`` f64[H], ``hadar_constants``: Lo, Up,
        what raising them added to the dual value, when round 0 began.
        """
        n, reservations = self._known.gang.size, self._reservations
        payoff, utility, end = np.zeros(n), np.zeros(n), np.full(n, np.inf)
        for j, plan in self._plans.items():
            payoff[j], utility[j] = plan.payoff, plan.utility
            end[j] = self._known.arrival[j] + plan.age
        capacity, prices = reservations.capacity, reservations.price_of
        low, high = (0.0, 0.0) if prices is None else (prices.low, prices.high)
        widest = np.ones_like(capacity) if prices is None else prices.widest
        resource = np.arange(self._pools.pool.size) if self.price_level == "machine" else self._pools.pool
        return {
            "hadar_payoff": payoff,
            "hadar_utility": utility,
            "hadar_end": end,
            "hadar_first": self._first,
            "hadar_alone": self._alone,
            "hadar_shared": self._shared,
            "hadar_resource": resource.astype(np.float64),
            "hadar_prices": reservations.prices,
            "hadar_sold": reservations.sold[: reservations.used].astype(np.float64),
            "hadar_capacity": capacity.astype(np.float64),
            "hadar_widest": widest.astype(np.float64),
            "hadar_constants": np.array([low, high, reservations.jumps, self._clock.zero]),
        }
