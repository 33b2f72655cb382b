"""Gavel: an allocation rule sets the share of time of each job on each GPU type; rounds carry the shares out."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import numpy as np

from optsched.compiled import entry, worked
from optsched.errors import check_legal
from optsched.models.gavel_allocation import ActiveJobs
from optsched.policies import POLICIES
from optsched.policies.gavel_allocations import ALLOCATIONS, Setting, reference_order
from optsched.policies.gavel_rounds import (
    ENTRIES,
    MEMBERS,
    PAUSES,
    SEVERAL,
    STARTS,
    STOPS,
    RoundBooks,
    advance,
    close,
    reset,
    round_books,
    serve,
)
from optsched.policies.gavel_turns import ORDERS, SHARES, WAKES, GavelTurns, new_turns, turns_loop
from optsched.policies.gpu_pools import GpuPools, PoolRates, gpu_pools
from optsched.policies.round_clock import RoundClock
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.registry import Seconds
from optsched.simulation.policy import Decision, Knowledge, KnownJobs, Moves, Order, Policy, Start, View, Wake
from optsched.simulation.policy_loop import weigh
from optsched.simulation.state import State

ORDERS_AT_ONCE = 1_000  # random orders of types
_NOBODY = np.zeros(0, dtype=np.int64)


@POLICIES.register("gavel")
@dataclass
class Gavel(Policy):
    """Gavel: shares of time by an optimisation ``policy``, carried out in rounds of ``round`` seconds.

    X_mr is the share of its time that job m should spend on GPU type r. The shares are computed again at the first
    round after an arrival or a completion that begins at least ``reset`` seconds after the last computation (the
    second computation is immediate, as in Gavel). A round serves the jobs with the largest X_mr / (share of r's time
    that m had), type by type in ``type_order`` (for policies that do not know that types differ in speed: in a random
    order, drawn with ``seed``). Jobs that do not fit are passed over; a gang runs on one type. A job that continues
    keeps its GPUs if they are free; otherwise it pays ``restart`` seconds. GPUs of a job that ends are idle until the
    round ends; a round ends early when no job runs. With ``whole_iterations`` (and no restart cost) a job stops before
    it would begin an iteration that the round cuts off, as in Gavel's simulator.

    A job that arrives after the last computation has no share until the next one. It runs on GPUs that other jobs leave.
    Gavel's public simulator (commit c4fa400) chooses it for the same GPUs, but then starts only jobs that have a share:
    until the next computation the job waits, and the GPUs are idle. ``as_published`` repeats this, and draws the
    random order of types as the simulator does. On a trace of 100 arrivals (36 GPUs of each of three types) the wait
    adds 7 to 10 % to the mean JCT. With it, the mean JCT is within 0.2 % of the simulator's for four policies, and 2.2 %
    below for min_total_duration_perf, for which the simulator's solver picks another of many optimal allocations.

    If several X are optimal, the analytic centre is taken: no job is favoured by chance, and identical jobs get the
    same. A gang that no type can hold alone never runs; with ``mixed`` it takes GPUs of several types that are left
    over (not so in Gavel).

    **Problem** R | r_j, size_j, pmtn, online-r_j | the policy's own objective at every instant. **Knowledge** by
    policy: non-clairvoyant, or clairvoyant (work left) for finish-time fairness and makespan; always the throughputs.

    **Guarantee** none known: the shares are optimal for the present jobs, their sequence is not. **Complexity** a
    round O(m T log m); an allocation one to a few warm linear programs, over classes of equal jobs or over jobs.
    **Reference** Narayanan, Santhanam, Kazhamiaka, Phanishayee, Zaharia, OSDI 2020, 481-498.

    Parameters
    ----------
    policy
        Allocation rule: max_min_fairness(_perf), finish_time_fairness(_perf), min_total_duration(_perf) or
        max_sum_throughput_perf.
    round
        Length of a round, in seconds.
    reset
        Least time between two computations of the shares, in seconds.
    type_order
        Order in which the GPU types are served, separated by ``/``.
    restart
        Overhead of a job that starts on other GPUs, in seconds.
    whole_iterations
        Stop a job before an iteration that the round would cut off.
    seed
        Seed of the random order of types.
    mixed
        Let a gang that no type can hold use several types.
    as_published
        Do as Gavel's public simulator where it differs: a job waits for its first share, on reserved GPUs.
    """

    policy: str = "max_min_fairness_perf"
    round: Seconds = 360.0
    reset: Seconds = 1920.0
    type_order: str = "v100/p100/k80"
    restart: Seconds = 0.0
    whole_iterations: bool = True
    seed: int = 0
    mixed: bool = False
    as_published: bool = False

    name = "gavel"
    uses = ("nodes",)
    plays_rounds = True

    def __post_init__(self) -> None:
        self.knowledge = ALLOCATIONS.get(self.policy).knowledge
        check_legal(0 < self.round < math.inf, "gavel: round", self.round, "a finite number of seconds > 0")
        for name, value in (("reset", self.reset), ("restart", self.restart)):
            check_legal(0 <= value < math.inf, f"gavel: {name}", value, "a finite number of seconds >= 0")
        check_legal(self.seed >= 0, "gavel: seed", self.seed, "an integer >= 0")

    def begin(self, view: View) -> None:
        """Forget the last run.

        Parameters
        ----------
        view
            State of the run.
        """
        self._forget(view)
        self._clock = RoundClock(self.round)
        self._began = 0.0  # of this round
        self._changed = False  # jobs have arrived or completed since the last computation of shares
        self._found, self._first = -math.inf, math.nan  # times of the last and the first computation of shares

    def _forget(self, view: View | KnownJobs) -> None:
        # What both forms of a run keep.
        self._pools, n = gpu_pools(view), len(view.speeds.together)
        self._types = types = tuple(view.speeds.types[t] for t in self._pools.type)  # of every pool
        self._rule = ALLOCATIONS.get(self.policy)(Setting(types, self._pools.capacity.astype(np.float64)))
        self._books = round_books(n, self._pools.pool, self._pools.size, self._pools.capacity)
        self._jobs = GavelJobs(view, self._books, self._pools, self.round)
        self._order = reference_order(types, tuple(self.type_order.lower().split("/")))
        self._draw = np.random.default_rng(self.seed)
        self._published_draw = random.Random(self.seed + 5)  # the seed and the generator of Gavel's simulator

    def accelerator(self, jobs: KnownJobs) -> Order | None:
        """Return the same decisions in compiled form; None if gangs may use several types.

        Parameters
        ----------
        jobs
            Jobs of the run.
        """
        if self.mixed:
            return None
        self._forget(jobs)
        self._jobs.meet_all(jobs)
        books, pays = self._books, np.where(np.isnan(jobs.restart), self.restart, jobs.restart) > 0
        books.whole[pays] = 0.0  # a pause would cost more than it saves
        orders = self._orders(1 if self._rule.aware else ORDERS_AT_ONCE)
        turns = new_turns(books, self._jobs.housed, orders, random=not self._rule.aware)
        w = turns.facts[0]
        w.length, w.reset, w.waits = self.round, self.reset, self.as_published
        w.pauses = self.whole_iterations and not self.restart
        return Order(jobs.arrival, restart=self.restart, plan=turns, loop=turns_loop, step=self._step)

    def _orders(self, count: int) -> Ints:
        return np.array([self._service_order() for _ in range(count)])

    def _step(self, state: State, t: GavelTurns) -> GavelTurns:
        # What the compiled form leaves to Python.
        w, now = t.facts[0], float(state.engine[0].now)
        weigh(turns_loop, w)
        if w.asks == SHARES:
            usable, waited = t.usable[: w.usable].copy(), now - float(w.found)
            clairvoyant = self.knowledge is Knowledge.CLAIRVOYANT
            left = t.left[: w.usable].copy() if clairvoyant else np.full(usable.size, np.nan)
            share = self._rule.shares(self._jobs.active(usable, now, left))
            reset(self._books, usable, share, waited if math.isfinite(waited) else 0.0, self.round)
            w.changed, w.found = 0, now
            w.first = now if math.isnan(w.first) else w.first
        elif w.asks == ORDERS:
            t.orders[:], w.drawn = self._orders(ORDERS_AT_ONCE), 0
        elif w.asks == WAKES:
            t = t._replace(wakes=np.resize(t.wakes, 2 * t.wakes.size))
        return t

    def decide(self, view: View) -> list[Decision]:
        """Choose the jobs of a round at its beginning; in between, end it early if no job runs to its end.

        Parameters
        ----------
        view
            State of the run.
        """
        now, b = view.now, self._books
        running = self._hear(view, now)
        if not running:
            self._clock.stop()
        if not self._clock.due(now):
            return self._wake_when_idle()
        entry(close)(b, now - self._began)
        active = view.active
        self._began = now
        decisions: list[Decision] = []
        if active.size:
            self._allocate(view, active)
            decisions = self._serve(active)
            running = int(b.counts[MEMBERS])
        if not running:
            return decisions
        decisions.append(Wake(self._clock.begin(now)))
        pauses = int(b.counts[PAUSES])
        if pauses:
            decisions.append(Moves(stop=b.pause[:pauses].copy(), at=b.until[:pauses].copy()))
        return decisions + self._wake_when_idle()

    def _hear(self, view: View, now: float) -> int:
        # Jobs that have come and gone; the number of those that run.
        arrived, finished = view.arrived, view.finished
        running = int(entry(advance)(self._books, np.array(finished) if finished else _NOBODY, self._began, now))
        for j in arrived:
            self._jobs.meet(view, j)
            if view.restart(j, self.restart) > 0:
                self._books.whole[j] = 0.0  # a pause would cost more than it saves
        self._changed = self._changed or bool(finished or arrived)
        return running

    def _wake_when_idle(self) -> list[Decision]:
        # The round ends early with the last pause, if no job runs to its end.
        time = float(self._books.last[0])
        return [] if math.isnan(time) else [Wake(time)]

    def _allocate(self, view: View, active: Ints) -> None:
        if not self._changed:
            return
        usable = active[self._jobs.housed[active]]
        waited = view.now - self._found
        early = self._found == self._first or not self._books.share[usable].any()
        if not usable.size or not (waited >= self.reset or early):
            return
        left = view.left[usable] if self.knowledge is Knowledge.CLAIRVOYANT else np.full(usable.size, np.nan)
        share = self._rule.shares(self._jobs.active(usable, view.now, left))
        reset(self._books, usable, share, waited if math.isfinite(waited) else 0.0, self.round)
        self._changed, self._found = False, view.now
        self._first = view.now if math.isnan(self._first) else self._first

    def _serve(self, active: Ints) -> list[Decision]:
        b, pauses = self._books, self.whole_iterations and not self.restart
        entry(serve)(b, active, self._service_order(), self._began, self.as_published, pauses)
        worked(serve, active.size)
        mixed = self._left_over(active[~self._jobs.housed[active]]) if self.mixed else {}
        stops, starts, entries = b.counts[[STOPS, STARTS, ENTRIES]].tolist()
        for j in mixed:
            b.type[j], b.member[b.counts[MEMBERS]] = SEVERAL, j
            b.counts[MEMBERS] += 1
            b.last[0] = math.nan  # it runs to the end of the round
        moves = Moves(
            stop=b.stop[:stops], start=b.start[:starts], first=b.on[: starts + 1],
            node=b.start_node[:entries], count=b.start_gpus[:entries],
        )  # fmt: skip
        return [moves, *(Start(j, on=on) for j, on in mixed.items())]

    def _service_order(self) -> Ints:
        if self._rule.aware:
            return self._order
        if not self.as_published:
            return self._draw.permutation(self._order)
        order = self._order.tolist()
        self._published_draw.shuffle(order)
        return np.array(order)

    def _left_over(self, homeless: Ints) -> dict[int, tuple[tuple[int, int], ...]]:
        # Gangs larger than any type they may use take the GPUs that are left, node by node.
        plan: dict[int, tuple[tuple[int, int], ...]] = {}
        free = self._books.free
        for j in homeless.tolist():
            nodes = np.flatnonzero((free > 0) & self._jobs.may[j, self._pools.pool])
            before = np.cumsum(free[nodes]) - free[nodes]
            missing = int(self._books.gang[j]) - before
            if nodes.size and missing[-1] <= free[nodes[-1]]:
                part = np.minimum(free[nodes], missing)
                plan[j] = tuple((h, c) for h, c in zip(nodes.tolist(), part.tolist(), strict=True) if c > 0)
                for h, c in plan[j]:
                    free[h] -= c
        return plan

    def notes(self) -> dict[str, Floats]:
        """Return ``share_TYPE`` f64[n] of every GPU type: the last share of time that every job should have there."""
        shares: dict[str, Floats] = {}
        for k, name in enumerate(self._types):
            shares[f"share_{name}"] = shares.get(f"share_{name}", 0.0) + self._books.share[:, k]
        return shares


ROUNDED = 1e-9  # relative: a product of floats that is closer to an integer is taken as that integer


class GavelJobs:
    """Facts about jobs on T pools of GPUs: the entries of jobs that have arrived, here and in the books.

    ``may`` bool[n, T]: the job may use these GPUs together with others. ``housed``: some pool can hold all of it.

    Parameters
    ----------
    view
        State of the run, or its jobs before it begins.
    books
        Books of the rounds; their rates are written.
    pools
        Pools of the cluster.
    length
        Length of a round, in seconds.
    """

    def __init__(self, view: View | KnownJobs, books: RoundBooks, pools: GpuPools, length: float) -> None:
        self._books, self._rates, self._first = books, PoolRates(view, pools), pools.first
        gang, n = view.speeds.gang[:, None], books.gang.size
        together, spread = self._rates.together, self._rates.spread
        fits = np.where(gang <= pools.largest, together, spread)
        rate = books.rate[:] = np.where(gang <= pools.capacity, fits, 0.0)
        # where the rate is 0, the number of iterations is 0, too
        whole = np.floor(rate * length * (1 + ROUNDED)) / np.where(rate > 0, rate, 1.0)
        books.whole[:] = np.where(whole < length * (1 - ROUNDED), whole, 0.0)
        books.gang[:], books.small[:], books.received[:] = gang[:, 0], -gang[:, 0], length / 2
        self.may: Bools = together > 0
        self.housed: Bools = np.any(rate > 0, axis=1)
        self.weight, self.arrival = np.zeros((2, n))

    def meet(self, view: View, job: int) -> None:
        """Fill in what is known when a job arrives.

        Parameters
        ----------
        view
            State of the run.
        job
            Number of the job.
        """
        self.weight[job], self.arrival[job] = view.weight(job), view.arrival(job)
        forbidden = self._rates.forbidden(view, job)
        if forbidden is not None:
            self._books.rate[job, forbidden] = self._books.whole[job, forbidden] = 0.0
            self.may[job, forbidden] = False
            self.housed[job] = bool(self._books.rate[job].any())

    def meet_all(self, jobs: KnownJobs) -> None:
        """Fill in all jobs before a run, as `meet` does at their arrivals.

        Parameters
        ----------
        jobs
            Jobs of the run.
        """
        b, may = self._books, jobs.eligible[:, self._first][jobs.kind]
        self.weight[:], self.arrival[:] = jobs.weight, jobs.arrival
        b.rate[:], b.whole[:] = np.where(may, b.rate, 0.0), np.where(may, b.whole, 0.0)
        self.may &= may
        self.housed[:] = np.any(b.rate > 0, axis=1)

    def active(self, ids: Ints, now: float, left: Floats) -> ActiveJobs:
        """Return some jobs in the form that an allocation rule takes.

        Parameters
        ----------
        ids
            Numbers of the jobs, i64[m].
        now
            Time in seconds.
        left
            Work left of each, f64[m]; nan if the rule must not know it.
        """
        b = self._books
        return ActiveJobs(ids, b.rate[ids], b.gang[ids], self.weight[ids], now - self.arrival[ids], left)
