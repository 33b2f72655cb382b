"""HadarE: every job is forked into copies that train at the same time on different nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from optsched.compiled import entry, worked
from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.fork_assignment import by_payoff, deal, tally
from optsched.policies.fork_books import ENTRIES, STARTS, books, mean_rates
from optsched.policies.fork_plan import ForkPlan
from optsched.policies.round_clock import RoundClock
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.registry import Seconds
from optsched.simulation.policy import Decision, EndedCopies, Knowledge, Moves, Policy, View, Wake
from optsched.simulation.wakes import require_rounds
from optsched.speeds.throughput_sources import performance_ratio
from optsched.speeds.type_speeds import GroupRates

RULES = ("lp", "work", "payoff")


@POLICIES.register("hadar-e")
@dataclass
class HadarE(Policy):
    """HadarE: rounds in which a job trains in up to ``copies`` copies (0: one a node) on different nodes.

    **Two algorithms.** Where every gang fills a node, nodes are not alike and a job may have a copy on each of them,
    ``rule=lp`` (the default) follows the linear program of forking, `hadar-e-forking`: it gives every job blocks of
    work on the nodes, new ones in every round; a copy that is alone stays on its node, and the copies of one job begin
    again with every round of ``round`` seconds. Elsewhere ``lp`` is ``work``: at the beginning of a round, node by
    node, the fastest first, the job with the most planned work takes the node.

    ``payoff`` takes pairs of job and node by falling w_j X_jh / left_j. With ``work`` and ``payoff``, nodes that are
    left idle are filled along augmenting paths, and `split` divides the work of a job X_jh (L - o) a copy, scaled so
    that all copies of a job that can finish end together. A start costs ``overhead`` seconds, o, for saving, loading
    and averaging the copies. X_jh is the rate that the policy believes in (``estimate``: ``true``, ``device``, or
    ``noisy`` with a relative ``error`` drawn from ``seed``), corrected by what copies do. A gang larger than any node
    is not forked: it takes the fastest free nodes before the others. ``copies=1`` does not fork: its schedules are of
    the class gang. There are no prices in any of this.

    **Problem** R | r_j, size_j, forking, online-r_j | C_max. **Knowledge** clairvoyant (steps are known, speeds as far
    as ``estimate`` says). **Guarantee** by ``work`` and ``payoff``, where all gangs are alike, no round leaves a node
    idle that could be busy: min(n, x J) are, if every job runs on every node; hence, on identical nodes with one copy a
    node and all jobs there at 0, C_max <= L ceil(S/n), S = sum ceil(p_j/(L - o)) (`optsched list guarantees hadar-e`).
    **Counterexample** to more: with J >= n jobs an ideal preemptive schedule without forking is as short.
    **Complexity** O(copies J) a round for J active jobs; with lp a linear program of J M columns, M groups of alike
    nodes. **Reference** Sultana, Pakka, Xu, Yuan, Chen, Tzeng, arXiv 2503.10918, as far as its structure is known; its
    rules, splitting and theorems here are this project's own.
    """

    copies: int = 0
    round: Seconds = 360.0
    overhead: Seconds = 10.0
    rule: str = "lp"
    estimate: str = "true"
    error: float = 0.3
    seed: int = 0

    name = "hadar-e"
    knowledge = Knowledge.CLAIRVOYANT
    uses = ("copies",)

    def __post_init__(self) -> None:
        for key, value, known in (("rule", self.rule, RULES), ("estimate", self.estimate, KINDS)):
            check_legal(value in known, f"hadar-e: {key}", value, ", ".join(known))
        check_legal(0 < self.round < math.inf, "hadar-e: round", self.round, "a finite number of seconds > 0")
        legal = f"0 or more seconds, less than the round of {self.round:g}"
        check_legal(0 <= self.overhead < self.round, "hadar-e: overhead", self.overhead, legal)
        check_legal(0 <= self.error < math.inf, "hadar-e: error", self.error, "a finite number >= 0")
        check_legal(self.seed >= 0, "hadar-e: seed", self.seed, "an integer >= 0")
        self.restart = self.first_start = self.overhead  # every copy pays the overhead of its round
        self.knows_rates = self.estimate != "device"  # which believes what the devices' performance says

    @property
    def believed(self) -> Floats:
        """The rates that it believes in now, f64[n, M]."""
        return self._estimates.rates.copy()

    def begin(self, view: View) -> None:
        """Forget the last run.

        Parameters
        ----------
        view
            The view of the new run.
        """
        self._groups, self._clock = view.groups, RoundClock(self.round)
        self._hosted: Bools = np.any(self._groups.hosts, axis=1)
        self._apart: EndedCopies | None = None  # that the plan has not brought together
        self._estimates = ThroughputEstimates(self._groups, self.estimate, self.error, self.seed)
        self._books = books(self._groups, self._estimates.rates)
        self._rows: dict[int, int] = {}  # of ``eligible`` in the books, by kind of job
        self._members, self._heard = 0, 0  # active jobs of the present round; executions whose end has been heard of
        # copies of each job at once, and rounds in which it had several
        self._most, self._several = np.zeros((2, self._hosted.size))
        self._scratch, self._left = np.zeros(self._hosted.size, dtype=np.int64), np.zeros(self._hosted.size)
        best = self._estimates.rates.max(axis=1, initial=0.0)
        longest = float((view.left[self._hosted] / best[self._hosted]).max(initial=0.0)) / self._groups.node_gpus.size
        require_rounds(self.name, self.round, longest)
        # The program is of gangs that are whole nodes, in as many copies as there are nodes; alike nodes need none.
        nodes, differ = self._groups.node_gpus.size, np.ptp(self._estimates.rates, axis=1).any()
        plans = self.rule == "lp" and self._groups.whole_nodes and not 0 < self.copies < nodes and differ
        self._plan = ForkPlan(self._groups.node_group, self.overhead) if plans else None  # of rule lp

    def decide(self, view: View) -> Iterable[Decision]:
        """Add up what the copies did at the beginning of a round, and start the copies of the round.

        Between two rounds nothing happens, but by the plan of rule lp a copy that is alone goes on from round to round,
        and a node that is done takes a new block.

        Parameters
        ----------
        view
            The present state.
        """
        if self._plan is not None:
            return self._follow(self._plan, view)
        for j in view.arrived:
            if not self._hosted[j]:
                self._meet(view, j)
        self._members -= len(view.finished)
        return self._round(view) if self._members <= 0 or self._clock.due(view.now) else ()

    def _meet(self, view: View, j: int) -> None:
        # A gang larger than any node: the nodes that it may use.
        kind = view.kind(j)
        if kind not in self._rows:
            if not self._rows:
                ones = np.ones(self._groups.hosts.shape)
                spread = np.ascontiguousarray(self._groups.spread_rates) if self.knows_rates else ones
                self._books = self._books._replace(spread=spread)
            self._rows[kind] = len(self._rows)
            self._books = self._books._replace(eligible=np.vstack([self._books.eligible, view.eligible(j)]))
        self._books.row[j] = self._rows[kind]

    def _round(self, view: View) -> Iterator[Decision]:
        active = view.active
        yield Moves(stop=active[view.runs(active)])
        ended = view.ended_from(self._heard)
        self._heard += ended.job.size
        self._collect(ended)
        active = view.active
        copies = self._copies(view, active)
        yield copies
        self._members = active.size
        if not self._clock.due(view.now) or not copies.start.size:  # nothing was left to do, or nothing can run here
            self._clock.stop()
        if copies.start.size:
            yield Wake(self._clock.begin(view.now))

    def _follow(self, plan: ForkPlan, view: View) -> Iterator[Moves | Wake]:
        # Stops come first: what is left of a job is known when its copies have ended.
        now, begins = view.now, self._clock.due(view.now)
        self._hear(plan, view)
        if begins:
            yield Moves(stop=np.array(plan.joint, dtype=np.int64))
            self._hear(plan, view)
        active = view.active
        active = active[self._hosted[active]]
        if not active.size:
            self._clock.stop()
            return
        if begins:
            self._until = self._clock.begin(now)  # the end of its round
            yield Wake(self._until)
        free = np.flatnonzero(view.free)
        if begins or plan.lacks(free):
            plan.solve(now, active, view.left_of(active), self._estimates.rates[active])
        if not free.size:
            return
        stops, nodes = plan.next(now, self._until, free.tolist())
        if stops:
            yield Moves(stop=np.array(stops, dtype=np.int64))
            self._hear(plan, view)
        yield from self._begin(plan, view, nodes)

    def _begin(self, plan: ForkPlan, view: View, nodes: dict[int, list[int]]) -> Iterator[Moves]:
        # Start copies of jobs on nodes; a job may have ended with the copies that were stopped.
        active = set(view.active.tolist())
        jobs = [j for j in nodes if j in active]
        if not jobs:
            return
        left, rates = view.left_of(np.array(jobs, dtype=np.int64)).tolist(), self._estimates.rates
        copies = [
            (j, node, work)
            for j, rest in zip(jobs, left, strict=True)
            for node, work in plan.begin(j, nodes[j], view.now, self._until, rest, rates[j])
        ]
        if copies:
            start, node, work = zip(*copies, strict=True)
            of = np.array(start, dtype=np.int64)
            yield Moves(
                start=of, work=np.array(work), first=np.arange(of.size + 1), node=np.array(node, dtype=np.int64),
                count=self._books.gang[of],
            )  # fmt: skip

    def _hear(self, plan: ForkPlan, view: View) -> None:
        # What has ended; copies are brought together when the last of their job has ended.
        ended = view.ended_from(self._heard)
        if not ended.job.size:
            return
        self._heard += ended.job.size
        jobs = ended.job.tolist()
        for j, node, work in zip(jobs, ended.node.tolist(), ended.work.tolist(), strict=True):
            plan.ended(j, node, work)
        if self._apart is not None:
            ended = self._apart.followed_by(ended)
            jobs = ended.job.tolist()
        apart = [plan.runs(j) for j in jobs]
        if not any(apart):
            self._apart = None
            self._collect(ended)
            return
        rows = np.array(apart)
        self._apart = ended.chosen(rows)
        if not all(apart):
            self._collect(ended.chosen(~rows))

    def _copies(self, view: View, active: Ints) -> Moves:
        # The copies of the round that begins.
        b, nodes, pairs = self._books, self._groups.node_gpus.size, np.zeros(0, dtype=np.int64)
        left = self._left
        left[active] = view.left_of(active)
        if self.rule == "payoff":
            jobs = active[self._hosted[active]]
            weight = np.array([view.weight(j) for j in jobs.tolist()])
            pairs = by_payoff(b.rates[jobs], left[jobs], weight)
        copies, by_pairs = min(self.copies or nodes, nodes), self.rule == "payoff"
        entry(deal)(b, active, left, copies, self.round - self.overhead, pairs, by_pairs)
        starts, entries = b.counts[[STARTS, ENTRIES]].tolist()
        worked(deal, active.size + nodes + starts)
        return Moves(
            start=b.start[:starts], work=b.work[:starts], first=b.first[: starts + 1],
            node=b.node[:entries], count=b.gpus[:entries],
        )  # fmt: skip

    def _collect(self, ended: EndedCopies) -> None:
        # Count the copies that did something, and correct what was believed of their speeds.
        entry(tally)(ended.job, ended.work, self._scratch, self._most, self._several)
        if self._estimates.learns:
            measured = (ended.work > 0) & (ended.nodes == 1) & (ended.seconds > 0)
            job, group = ended.job[measured], self._groups.node_group[ended.node[measured]]
            rate = ended.work[measured] / ended.seconds[measured]
            for j, m, x in zip(job.tolist(), group.tolist(), rate.tolist(), strict=True):
                self._estimates.learn(j, m, x)
            self._books.mean[job] = mean_rates(self._estimates.rates[job], self._groups.node_group)

    def notes(self) -> dict[str, Floats]:
        """Return ``copies``, most of every job at once, and ``aggregations``, its rounds with several copies, f64[n]."""
        return {"copies": self._most, "aggregations": self._several}


KINDS = ("true", "device", "noisy")
WEIGHT = 0.5  # of a measurement against what was believed


class ThroughputEstimates:
    """The rates that are believed, f64[n, M]: units of work a second of a copy of a job on a node of a group; 0: forbidden.

    ``kind`` says where it begins: ``true``, the real rates (everything was profiled beforehand); ``device``, the rate
    on the first node group that can host the job, times the ratio of the devices' peak performance; ``noisy``, the real
    rates times exp(``error`` z), z standard normal from ``seed``. After a round X <- 0.5 measured + 0.5 X.

    Raises `InputError` for ``device`` on GPU types of unknown performance.
    """

    def __init__(self, groups: GroupRates, kind: str = "true", error: float = 0.0, seed: int = 0) -> None:
        self.learns = kind != "true"
        if kind == "device":
            gpus, hosts = groups.gpu, groups.hosts
            several = len({gpu.casefold() for gpu in gpus}) > 1
            self.rates = np.zeros(hosts.shape)
            for j in np.flatnonzero(hosts.any(axis=1)).tolist():
                group, rate = groups.reference(j)
                self.rates[j] = [rate * (performance_ratio(gpu, gpus[group]) if several else 1.0) for gpu in gpus]
            self.rates[~hosts] = 0.0
        else:
            self.rates = groups.rates
            if kind == "noisy":
                self.rates *= np.exp(error * np.random.default_rng(seed).standard_normal(self.rates.shape))

    def learn(self, job: int, group: int, measured: float) -> None:
        """Correct a rate by a measurement.

        Parameters
        ----------
        job
            Number of the job.
        group
            Group of nodes of which the copy ran on one.
        measured
            Units of work a second.
        """
        if self.learns:
            self.rates[job, group] = WEIGHT * measured + (1 - WEIGHT) * self.rates[job, group]
