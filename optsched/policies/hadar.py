"""Hadar: GPUs of several types are sold to jobs as they arrive, at prices that rise as they are sold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.arrived_jobs import MOMENT, ULPS, UTILITIES, ArrivedJobs, require_one_of
from optsched.policies.exponential_prices import ABOVE
from optsched.policies.gpu_pools import GpuPools, gpu_pools
from optsched.policies.hadar_deal import (
    AHEAD,
    BEST,
    BUYERS,
    ENDING,
    ENTRIES,
    MOVES,
    NAMED,
    OPEN,
    SAME,
    STOPS,
    books,
    deal,
    survey,
    with_entries,
    with_segments,
)
from optsched.policies.hadar_purchases import (
    FLOOR,
    HEADROOM,
    HELD,
    RAISE,
    ROUNDS,
    SEGMENTS,
    TERMS,
    HadarTurns,
    new_turns,
    with_sold,
)
from optsched.policies.hadar_reservations import Plan, Request, Reservations
from optsched.policies.hadar_turns import turns_loop
from optsched.policies.round_clock import SHORTEST, RoundClock
from optsched.problem.arrays import Floats, Ints
from optsched.registry import Seconds
from optsched.simulation.policy import Decision, Knowledge, KnownJobs, Moves, Order, Policy, View, Wake
from optsched.simulation.policy_loop import weigh
from optsched.simulation.state import State


@POLICIES.register("hadar")
@dataclass
class Hadar(Policy):
    """Hadar's primal-dual auction: at its arrival a job buys the plan of largest payoff at present prices, or none.

    Time is cut into rounds of ``round`` seconds from the first arrival on. A resource q is one GPU type in one round (nodes
    of a type that suit different jobs count as types of their own) with c_q GPUs, of which z_q are sold.

    * **Primal** max sum_js u_js x_js over plans s of jobs j, at most one plan a job and c_q GPUs of q.
    * **Dual** min sum_j mu_j + sum_q c_q k_q with payoffs mu_j >= u_js - sum_q k_q w_q^js, w_q^js the GPUs of q in plan s.
    * **Price** k_q = Lo (Up / Lo)^min(1, z_q / (c_q - w_q + 1)), w_q the widest gang so far: from ``low`` = Lo to ``high`` =
      Up, more than any job pays (`optsched.policies.exponential_prices.exponential_price`).
    * **At the arrival of j** take the plan s of largest payoff m_s = u_js - sum_q k_q w_q^js. If m_s > 0, the job buys it:
      mu_j = m_s, and z_q grows by w_q^js. Otherwise mu_j = 0, and the job is rejected.

    A plan is a speed x, as many rounds as the work takes at x, neighbours or not, and in each of them a gang of GPUs on
    which the job runs at x or faster; the best one is found exactly (`optsched.policies.hadar_reservations`). It does not
    know its nodes and counts on the slower of the rates on one node and on several. ``restart`` seconds of each of its
    rounds are set aside, so that it holds however often the job is preempted.

    ``low`` and ``high`` that are not given (0) are taken from the jobs: Lo from the first one, Up as they come; what raising
    Up costs the proof is noted and counted. ``utility`` is that of the completion, x its age: by default the effective
    throughput w N / x, which is the objective ``total_utility``; ``slowdown``, ``jct`` and ``deadline`` as in
    `auction-rounds`; ``fairness`` w T / x, T the seconds alone on an equal share of the cluster.

    The paper's problem ends here: a rejected job would never finish. With ``fill`` (on by default; without it a job
    without a plan runs only when nothing is bought for the round) GPUs that no plan uses in a round are sold to the other
    jobs, rejected ones and those whose plan is later, by the auction of `auction-rounds`. The theorem does not count that;
    it can only add to the value.

    **Problem** P | r_j, size_j, pmtn, online-r_j | max sum w_j N_j/(C_j - r_j), speeds by GPU type. **Knowledge**
    clairvoyant: work and rates at the arrival.

    **Guarantee** Theorem: OPT_LP <= D_0 + R_eff ALG against all plans on these rounds, with D_0 = Lo sum_q c_q and

        R_eff = max(1, max_{q, w <= w_q} (c_q / w) ((Up / Lo)^min(1, w / (c_q - w_q + 1)) - 1)).

    So ALG >= (1 - theta) OPT_LP / R_eff if D_0 <= theta OPT_LP. R_eff tends to ln(Up / Lo) as gangs become small compared
    with c_q: the factor of the paper. Proof: the prices at the end and the payoffs are a feasible dual solution, and every
    plan that is bought adds at most R_eff u_js to its value (`optsched.policies.exponential_prices`). Against all gang
    schedules: `optsched.guarantees`, which checks the dual solution after every run. **Counterexample** to ln(Up / Lo) for
    gangs as large as a resource: ``sold-out``.
    **Complexity** O(X R (T + log k)) an arrival for X speeds, R rounds up to the end of the plans and T types.
    **Reference** Sultana et al., Hadar, IPDPS 2024 (arXiv 2503.10918), known from summaries only; Bao et al. (OASiS),
    INFOCOM 2018. The plans, the exponent that needs no small jobs and the proof are this project's own. A running system
    repeats the auction in every round instead of keeping plans: that is `auction-rounds`, which has no guarantee.
    """

    utility: str = "throughput"
    round: Seconds = 360.0
    restart: Seconds = 0.0
    low: float = 0.0
    high: float = 0.0
    fill: bool = True

    name = "hadar"
    knowledge = Knowledge.CLAIRVOYANT
    uses = ("nodes",)
    plays_rounds = True
    sleeps = True
    noted_times = ("hadar_end",)

    def __post_init__(self) -> None:
        require_one_of(self, utility=UTILITIES)
        for name, number, holds, meant in (
            ("round", self.round, SHORTEST <= self.round < math.inf, f"a finite number of seconds >= {SHORTEST:g}"),
            ("restart", self.restart, 0 <= self.restart < self.round, "seconds >= 0, less than a round"),
            ("low", self.low, 0 <= self.low < math.inf, "a finite price > 0, or 0: from the first job"),
            ("high", self.high, 0 <= self.high < math.inf, "a finite price > 0, or 0: from the jobs"),
            ("low", self.low, not (self.low and self.high) or self.low < self.high, "less than high"),
        ):
            check_legal(holds, f"hadar: {name}", number, meant)

    def begin(self, view: View) -> None:
        """Forget the last run.

        Parameters
        ----------
        view
            The view of the new run.
        """
        self._forget(gpu_pools(view), len(view.speeds.together))
        self._books, self._segments = books(self._pools, self._arrived), 0
        self._clock = RoundClock(self.round)  # never stopped: round 0 begins at the first arrival
        self._asked = -1  # the last round whose beginning was asked to be woken at
        self._late = False  # its beginning is put off by a moment
        self._asleep = False  # no round can better anything until a job comes or goes
        self._alike = np.bincount(self._pools.pool) == 1  # pools of one node

    def _forget(self, pools: GpuPools, n: int) -> None:
        # What both forms of a run keep.
        self._pools, self._arrived = pools, ArrivedJobs(n, pools, self.utility, self.round)
        self._reservations = Reservations(pools.capacity, self.round)
        self._payoff, self._utility, self._end = np.zeros(n), np.zeros(n), np.full(n, np.inf)
        self._first = np.full(n, np.nan)  # the first round that a job could have bought
        self._alone, self._shared = np.zeros((2, n, pools.capacity.size))
        self._turns: HadarTurns | None = None  # of a compiled run

    def accelerator(self, jobs: KnownJobs) -> Order:
        """Return the same decisions in compiled form.

        Parameters
        ----------
        jobs
            Jobs of the run.
        """
        self._forget(gpu_pools(jobs), jobs.n)
        self._arrived.meet_all(jobs)
        self._turns = new_turns(
            self._pools, self._arrived, self._reservations, payoff=self._payoff, utility=self._utility, end=self._end,
            first=self._first, alone=self._alone, shared=self._shared,
        )  # fmt: skip
        w = self._turns.facts[0]
        w.length, w.restart, w.low, w.high = self.round, self.restart, self.low, self.high
        w.fill, w.counting = self.fill, self._arrived.counts_active

        def step(state: State, turns: HadarTurns) -> HadarTurns:
            weigh(turns_loop, turns.facts[0])
            self._turns = self._step(jobs, int(state.engine[0].next - state.engine[0].finished), turns)
            return self._turns

        return Order(jobs.arrival, restart=self.restart, plan=self._turns, loop=turns_loop, step=step)

    def _step(self, jobs: KnownJobs, active: int, t: HadarTurns) -> HadarTurns:
        # What the compiled form leaves to Python.
        w, b, arrived, reservations = t.facts[0], t.books, self._arrived, self._reservations
        j = int(w.job)
        if w.asks == TERMS:
            weight, due, gang = float(jobs.weight[j]), float(jobs.due[j] - jobs.arrival[j]), int(jobs.gpus[j])
            arrived.scale[j], arrived.span[j] = arrived.terms(j, weight, due, gang, active)
            t.valued[j] = True
        elif w.asks == RAISE:
            reservations.used = int(w.used)
            reservations.raise_to(float(w.want_low), float(w.want_high), int(arrived.gang[j]))
            prices = reservations.price_of
            assert prices is not None
            w.priced, w.price_low, w.price_high, w.log_range = 1, prices.low, prices.high, prices.log_range
            w.widest, t.scale[:], t.known[:] = max(w.widest, arrived.gang[j]), prices.scale, 0
        elif w.asks == ROUNDS:
            reservations.make_room(int(w.want))
            t = with_sold(t, reservations.sold)
        elif w.asks == SEGMENTS:
            t = t._replace(books=with_segments(b, int(w.segments + w.want)))
        elif w.asks == HELD:
            t = t._replace(books=with_entries(b))
        return t

    def decide(self, view: View) -> Iterator[Decision]:
        """Sell plans to new jobs; at the beginning of a round carry out the plans that are due.

        Parameters
        ----------
        view
            The present state.
        """
        active, clock, now = view.active, self._clock, view.now
        self._arrived.meet(view, active.size)
        if not active.size:
            self._late = False
            return
        if math.isnan(clock.zero):
            clock.zero = now
        for j in view.finished:
            self._books.gone[j] = True  # maybe before its plan is done: its rounds stay sold, so that prices never fall
        if clock.begins(clock.number) < now and (not self._late or clock.begins(clock.number + 1) <= now):
            clock.upcoming(now)
        for j in view.arrived:
            self._buy(j, clock.number + (float(self._arrived.arrival[j]) > clock.begins(clock.number)))
        if clock.due(now):
            change = self._survey(view, active)
            self._late = change == ENDING
            if self._late:
                return  # that completion is the next event
            if change != SAME:
                yield self._moves(view, active, change == OPEN)
            self._asleep = not self._books.counts[AHEAD] and bool(self._books.counts[BEST])
            clock.begin(now)
            if self._asleep:
                return
        if self._asked < clock.number:
            self._asked = clock.number
            yield Wake(clock.begins(clock.number))

    def _buy(self, j: int, first: int) -> None:
        # The paper's step: the plan of largest payoff from round ``first`` on, at the prices of what is sold so far.
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
        self._payoff[j], self._utility[j] = plan.payoff, plan.utility
        self._end[j] = self._arrived.arrival[j] + plan.age
        self._keep(j, plan)

    def _keep(self, j: int, plan: Plan) -> None:
        # Write down the plan of a job: neighbouring rounds with the same GPUs are one segment.
        rounds, take = plan.rounds, plan.take
        begins, apart = np.zeros(1, dtype=np.int64), rounds[-1] - rounds[0] >= rounds.size
        if apart or (take.shape[1] > 1 and (take != take[0]).any()):
            begins = np.append(True, (np.diff(rounds) > 1) | (take[1:] != take[:-1]).any(axis=1)).nonzero()[0]
        at, end, b = self._segments, self._segments + begins.size, self._books
        if end > b.first.size:
            b = self._books = with_segments(b, end)
        b.first[at:end], b.take[at:end] = rounds[begins], take[begins]
        b.last[at:end] = rounds[np.append(begins[1:], rounds.size) - 1]
        b.at[j], b.until[j], b.buyer[b.counts[BUYERS]] = at, end, j
        b.counts[BUYERS] += 1
        self._segments = end

    def _request(self, j: int, first: int) -> Request:
        jobs, pools, gang = self._arrived, self._pools, int(self._arrived.gang[j])
        alone, shared = jobs.together[j], jobs.spread[j]
        # A plan knows no nodes: where a type has several, it counts on the slower of the two rates.
        apart = np.where(pools.largest >= gang, np.minimum(alone, shared), shared)
        alone = alone if gang == 1 else np.where(self._alike, alone, apart)
        # without the rounding of late clocks
        age = max(0.0, first * self.round - (float(jobs.arrival[j]) - self._clock.zero))
        utility = float(jobs.scale[j]), float(jobs.span[j])
        restart = self.restart if math.isnan(jobs.restart[j]) else float(jobs.restart[j])
        return Request(gang, float(jobs.work[j]), age, alone, shared, *utility, restart)

    def _survey(self, view: View, active: Ints) -> int:
        # Read the round that begins; plans that are due are carried out.
        now, length, boundary = view.now, self.round, self._clock.begins(self._clock.number)
        moment = MOMENT * length + ULPS * math.ulp(max(now, length))
        terms = np.array([boundary - now, moment, length, self.restart])
        return int(survey(self._books, active, view.left_of(active), self._clock.number, now, terms, self.fill))

    def _moves(self, view: View, active: Ints, sells: bool) -> Moves:
        # The moves of a round: jobs run by their plans, the others on the GPUs that are left.
        b, now = self._books, view.now
        if b.counts[ENTRIES] + b.node.size > b.jobs.held_machine.size:
            b = self._books = with_entries(b)
        late = max(0.0, now - self._clock.begins(self._clock.number)) + ULPS * math.ulp(now)
        deal(b, active, late, sells)
        stops, starts, entries = b.counts[[STOPS, MOVES, NAMED]].tolist()
        return Moves(
            stop=b.stop[:stops], start=b.start[:starts], first=b.begins[: starts + 1],
            node=b.node[:entries], count=b.gpus[:entries],
        )  # fmt: skip

    def notes(self) -> dict[str, Floats]:
        """Return the dual solution and what was promised, for `optsched.guarantees.dual_solution`.

        Returns
        -------
        dict
            Of all jobs, f64[n]: ``hadar_payoff`` mu_j (0: rejected), ``hadar_utility`` u_j of the plan (0: none),
            ``hadar_end`` its completion (inf: none), ``hadar_first`` the first round that the job could buy (nan: it is
            worthless); f64[n, H]: ``hadar_alone`` and ``hadar_shared``, the rates that it counted on. ``hadar_resource``
            f64[N] of every node; at the end ``hadar_prices`` and ``hadar_sold`` f64[R, H]; ``hadar_capacity`` and
            ``hadar_widest`` f64[H]; ``hadar_constants``: Lo, Up, what raising them added to the dual value, and when round
            0 began.
        """
        reservations, turns = self._reservations, self._turns
        if turns is not None:
            reservations.used = int(turns.facts[0].used)
        zero = self._clock.zero if turns is None else float(turns.facts[0].zero)
        capacity, prices = reservations.capacity, reservations.price_of
        low, high = (0.0, 0.0) if prices is None else (prices.low, prices.high)
        widest = np.ones_like(capacity) if prices is None else prices.widest
        return {
            "hadar_payoff": self._payoff,
            "hadar_utility": self._utility,
            "hadar_end": self._end,
            "hadar_first": self._first,
            "hadar_alone": self._alone,
            "hadar_shared": self._shared,
            "hadar_resource": self._pools.pool.astype(np.float64),
            "hadar_prices": reservations.prices,
            "hadar_sold": reservations.sold[: reservations.used].astype(np.float64),
            "hadar_capacity": capacity.astype(np.float64),
            "hadar_widest": widest.astype(np.float64),
            "hadar_constants": np.array([low, high, reservations.jumps, zero]),
        }
