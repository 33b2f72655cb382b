"""Gavel: an allocation rule sets the share of time of each job on each GPU type; rounds carry the shares out."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import numpy as np

from optsched.errors import check_legal
from optsched.models.gavel_allocation import ActiveJobs
from optsched.policies import POLICIES
from optsched.policies.gavel_allocations import ALLOCATIONS, Setting, reference_order
from optsched.policies.gavel_rounds import RoundDevices, ServiceAccount
from optsched.policies.gpu_pools import GpuPools, gpu_pools
from optsched.policies.round_clock import RoundClock
from optsched.problem.arrays import Floats, Ints
from optsched.registry import Seconds
from optsched.simulation.policy import Decision, Knowledge, Moves, Policy, Start, View, Wake

SEVERAL, IDLE = -1, -2  # in place of a type: a gang on several types, a job that does not run
_NOBODY = np.zeros(0, dtype=np.int64)
_NO_PAUSES = np.zeros(0), _NOBODY


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
        self._pools, n = gpu_pools(view), len(view.speeds.together)
        self._types = types = tuple(view.speeds.types[t] for t in self._pools.type)  # of every pool
        self._rule = ALLOCATIONS.get(self.policy)(Setting(types, self._pools.capacity.astype(np.float64)))
        self._jobs = GavelJobs(n, self._pools, self.round)
        self._book = ServiceAccount(n, len(types), self.round)
        self._devices = RoundDevices(n, self._pools.pool, self._pools.size)
        self._clock = RoundClock(self.round)
        self._order = reference_order(types, tuple(self.type_order.lower().split("/")))
        self._draw = np.random.default_rng(self.seed)
        self._published_draw = random.Random(self.seed + 5)  # the seed and the generator of Gavel's simulator
        self._type: Ints = np.full(n, IDLE)  # type of every job
        self._active = _NOBODY  # arrived and not finished, in order of (arrival, index)
        self._members, self._began = _NOBODY, 0.0  # jobs of this round, and its beginning
        self._pauses = _NO_PAUSES  # (times, jobs) that stop before the round ends, in order
        self._changed = False  # jobs have arrived or completed since the last computation of shares
        self._found, self._first = -math.inf, math.nan  # times of the last and the first computation of shares

    def decide(self, view: View) -> list[Decision]:
        """Choose the jobs of a round at its beginning; in between, end it early if no job runs to its end.

        Parameters
        ----------
        view
            State of the run.
        """
        now = view.now
        self._hear(view)
        # Jobs that have stopped as planned since the last call.
        times, jobs = self._pauses
        over = int(times.searchsorted(now, side="right"))
        if over:
            self._pauses = times[over:], jobs[over:]
            ran = self._type[jobs[:over]] != IDLE
            self._leave(jobs[:over][ran], times[:over][ran])
        running = self._running()
        if not running.size:
            self._clock.stop()
        if not self._clock.due(now):
            return self._wake_when_idle(running)
        self._book.record(running, self._type[running], np.full(running.size, now - self._began))
        active = self._active
        self._began, self._pauses = now, _NO_PAUSES
        decisions: list[Decision] = []
        if active.size:
            self._allocate(view, active)
            decisions = self._serve(active, running)
        running = self._running()
        if running.size:
            decisions.append(Wake(self._clock.begin(now)))
            if self.whole_iterations and not self.restart:
                decisions += self._plan_pauses()
        return decisions + self._wake_when_idle(running)

    def _running(self) -> Ints:
        return self._members[self._type[self._members] != IDLE]

    def _hear(self, view: View) -> None:
        if view.finished:
            ended = np.array(view.finished)
            self._leave(ended, np.full(ended.size, view.now))
            self._active = self._active[~np.isin(self._active, ended)]
        if view.arrived:
            self._active = np.append(self._active, view.arrived)
        for j in view.arrived:
            self._jobs.meet(view, j)
            if view.restart(j, self.restart) > 0:
                self._jobs.whole[j] = 0.0  # a pause would cost more than it saves
            self._book.arrive(j)
        self._changed = self._changed or bool(view.finished or view.arrived)

    def _leave(self, jobs: Ints, times: Floats) -> None:
        # Record that these jobs stopped at these times.
        self._book.record(jobs, self._type[jobs], times - self._began)
        self._type[jobs] = IDLE
        self._devices.leave(jobs)

    def _plan_pauses(self) -> list[Decision]:
        # Iterations that fit into the round; a job too slow for one runs to the end of the round.
        types = self._type[self._members]
        until = self._began + self._jobs.whole[self._members, types]
        short = (until > self._began) & (types != SEVERAL)
        jobs, until = self._members[short], until[short]
        order = np.lexsort((jobs, until))
        self._pauses = until[order], jobs[order]
        return [Moves(stop=self._pauses[1], at=self._pauses[0])]

    def _wake_when_idle(self, running: Ints) -> list[Decision]:
        # The round ends early with the last pause, if no job runs to its end.
        times, jobs = self._pauses
        if not 0 < running.size <= jobs.size:
            return []
        pausing = np.flatnonzero(self._type[jobs] != IDLE)
        return [Wake(float(times[pausing[-1]]))] if pausing.size == running.size else []

    def _allocate(self, view: View, active: Ints) -> None:
        if not self._changed:
            return
        usable = active[self._jobs.housed[active]]
        waited = view.now - self._found
        early = self._found == self._first or not self._book.share[usable].any()
        if not usable.size or not (waited >= self.reset or early):
            return
        left = view.left[usable] if self.knowledge is Knowledge.CLAIRVOYANT else np.full(usable.size, np.nan)
        share = self._rule.shares(self._jobs.active(usable, view.now, left))
        self._book.reset(usable, share, waited if math.isfinite(waited) else 0.0)
        self._changed, self._found = False, view.now
        self._first = view.now if math.isnan(self._first) else self._first

    def _serve(self, active: Ints, running: Ints) -> list[Decision]:
        rate, gang = self._jobs.rate[active], self._jobs.gang[active]
        chosen = self._book.selection(active, rate, gang, self._pools.capacity, self._service_order())
        if self.as_published:
            chosen[~self._book.settled[active]] = -1  # the GPUs for which they were chosen stay idle
        served = np.flatnonzero(chosen >= 0)
        jobs, types = active[served], chosen[served]
        stayed, moved = self._devices.give(jobs, types, gang[served])
        mixed = self._left_over(active[~self._jobs.housed[active]]) if self.mixed else {}
        self._type[running] = IDLE
        self._type[stayed] = SEVERAL  # any value other than IDLE
        stopped = running[self._type[running] == IDLE]
        self._type[jobs] = types
        several = np.array(list(mixed), dtype=np.int64)
        self._type[several], self._members = SEVERAL, np.concatenate([jobs, several])
        moves = Moves(stopped, None, moved, *self._devices.places(moved))
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
        free = self._devices.free
        for j in homeless.tolist():
            nodes = np.flatnonzero((free > 0) & self._jobs.may[j, self._pools.pool])
            before = np.cumsum(free[nodes]) - free[nodes]
            missing = int(self._jobs.gang[j]) - before
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
            shares[f"share_{name}"] = shares.get(f"share_{name}", 0.0) + self._book.share[:, k]
        return shares


ROUNDED = 1e-9  # relative: a product of floats that is closer to an integer is taken as that integer


class GavelJobs:
    """Facts about n jobs on T pools of GPUs; the entries of a job are filled when it arrives.

    ``rate`` f64[n, T]: units of work a second of the whole gang, on one node if a node can hold it, otherwise over
    several; 0 if it may not run there or the pool is too small. ``may`` bool[n, T]: the job may use these GPUs
    together with others. ``whole`` f64[n, T]: seconds of its iterations that fit into a round; 0 if they fill the
    round, or none fits.

    Parameters
    ----------
    n
        Number of jobs of the instance.
    pools
        Pools of the cluster.
    length
        Length of a round, in seconds.
    """

    def __init__(self, n: int, pools: GpuPools, length: float) -> None:
        self._pools, self._length = pools, length
        self.rate = np.zeros((n, pools.type.size))
        self.may = np.zeros((n, pools.type.size), dtype=np.bool_)
        self.whole = np.zeros((n, pools.type.size))
        self.housed = np.zeros(n, dtype=np.bool_)  # some pool can hold all of it
        self.gang = np.zeros(n, dtype=np.int64)
        self.weight = np.zeros(n)
        self.arrival = np.zeros(n)

    def meet(self, view: View, job: int) -> None:
        """Fill in the entries of a job that arrives.

        Parameters
        ----------
        view
            State of the run.
        job
            Number of the job.
        """
        together, spread = self._pools.rates(view, job)
        gang = view.gpus(job)
        fits = np.where(gang <= self._pools.largest, together, spread)
        rate = self.rate[job] = np.where(gang <= self._pools.capacity, fits, 0.0)
        # where the rate is 0, the number of iterations is 0, too
        whole = np.floor(rate * self._length * (1 + ROUNDED)) / np.where(rate > 0, rate, 1.0)
        self.whole[job] = np.where(whole < self._length * (1 - ROUNDED), whole, 0.0)
        self.may[job], self.housed[job] = together > 0, bool(self.rate[job].any())
        self.gang[job], self.weight[job] = gang, view.weight(job)
        self.arrival[job] = view.arrival(job)

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
        return ActiveJobs(ids, self.rate[ids], self.gang[ids], self.weight[ids], now - self.arrival[ids], left)
