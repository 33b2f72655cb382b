"""HadarE: every job is forked into copies that train at the same time on different nodes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.fork_assignment import Assignment, by_payoff, by_work, fill
from optsched.policies.fork_plan import ForkPlan
from optsched.policies.round_clock import RoundClock
from optsched.policies.ties import leading
from optsched.problem.arrays import Floats, Ints
from optsched.registry import Seconds
from optsched.simulation.policy import Decision, Ended, Knowledge, Policy, Start, Stop, View, Wake
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
        self._members, self._ended = set[int](), list[Ended]()  # of the present round
        self._estimates = ThroughputEstimates(self._groups, self.estimate, self.error, self.seed)
        # copies of each job at once, and rounds in which it had several
        self._most, self._several = np.zeros((2, self._groups.hosts.shape[0]))
        best, hosted = self._estimates.rates.max(axis=1, initial=0.0), self._groups.hosts.any(axis=1)
        longest = float((view.left[hosted] / best[hosted]).max(initial=0.0)) / self._groups.node_gpus.size
        require_rounds(self.name, self.round, longest)
        # The program is of gangs that are whole nodes, in as many copies as there are nodes; alike nodes need none.
        nodes, differ = self._groups.node_gpus.size, np.ptp(self._estimates.rates, axis=1).any()
        plans = self.rule == "lp" and self._groups.whole_nodes and not 0 < self.copies < nodes and differ
        self._plan = ForkPlan(self._groups.node_group, self.overhead) if plans else None  # of rule lp

    def decide(self, view: View) -> Iterator[list[Decision] | Decision]:
        """Add up what the copies did at the beginning of a round, and start the copies of the round.

        Between two rounds nothing happens, but by the plan of rule lp a copy that is alone goes on from round to round,
        and a node that is done takes a new block.

        Parameters
        ----------
        view
            The present state.
        """
        if self._plan is not None:
            yield from self._follow(self._plan, view)
            return
        if not (self._clock.due(view.now) or self._members.isdisjoint(view.active.tolist())):
            self._ended += view.ended
            return
        yield [Stop(j) for j in view.running]
        self._collect(self._ended + view.ended)
        active, self._ended = view.active, []
        copies = list(self._copies(view, active))
        yield copies
        self._members = set(active.tolist())
        if not self._clock.due(view.now) or not copies:  # nothing was left to do, or nothing can run here
            self._clock.stop()
        if copies:
            yield Wake(self._clock.begin(view.now))

    def _follow(self, plan: ForkPlan, view: View) -> Iterator[list[Decision] | Decision]:
        # Stops come first: what is left of a job is known when its copies have ended.
        now, heard, begins = view.now, self._hear(plan, view, 0), self._clock.due(view.now)
        if begins:
            yield [Stop(j) for j in plan.joint]
            heard = self._hear(plan, view, heard)
        active = view.active[self._groups.hosts[view.active].any(axis=1)]
        if not active.size:
            self._clock.stop()
            return
        if begins:
            self._until = self._clock.begin(now)  # the end of its round
            yield Wake(self._until)
        left, rates = view.left, self._estimates.rates
        if begins or plan.lacks(view.free > 0):
            plan.solve(now, active.tolist(), left[active], rates[active])
        stops, nodes = plan.next(now, self._until, np.flatnonzero(view.free > 0).tolist())
        yield [Stop(j) for j in stops]
        self._hear(plan, view, heard)
        left, active = view.left, view.active
        yield [
            Start(j, on=((node, view.gpus(j)),), work=work)
            for j, on in nodes.items()
            if j in active
            for node, work in plan.begin(j, on, now, self._until, float(left[j]), rates[j])
        ]

    def _hear(self, plan: ForkPlan, view: View, heard: int) -> int:
        # What has ended; copies are brought together when the last of their job has ended.
        ended = view.ended
        for copy in ended[heard:]:
            plan.ended(copy.job, copy.on[0][0], copy.work)
        self._ended += ended[heard:]
        done = [copy for copy in self._ended if not plan.nodes_of(copy.job)]
        self._ended = [copy for copy in self._ended if plan.nodes_of(copy.job)]
        self._collect(done)
        return len(ended)

    def _copies(self, view: View, active: Ints) -> Iterator[Decision]:
        # The copies of the round that begins.
        groups, left, seconds = self._groups, view.left, self.round - self.overhead
        free, nodes = groups.node_gpus.copy(), groups.node_gpus.size
        hosted = groups.hosts[active].any(axis=1)
        wide = active[~hosted].tolist()
        speed = groups.spread_rates if wide and self.knows_rates else np.ones(groups.hosts.shape)
        for j in wide:
            yield from self._spread(j, view, free, speed[j, groups.node_group], float(left[j]))
        jobs = active[hosted]
        gang = np.array([view.gpus(j) for j in jobs.tolist()], dtype=np.int64)
        weight = np.array([view.weight(j) for j in jobs.tolist()])
        rates = self._estimates.rates[jobs]
        round_ = Assignment(rates, gang, groups.node_group, free, min(self.copies or nodes, nodes))
        if self.rule != "payoff":
            by_work(round_, left[jobs], seconds)
        else:
            by_payoff(round_, left[jobs], weight)
        fill(round_)
        for k, j in enumerate(jobs.tolist()):
            on = round_.on[k]
            targets = split(float(left[j]), rates[k, groups.node_group[on]], seconds)
            for node, target in zip(on, targets.tolist(), strict=True):
                yield Start(j, on=((node, int(gang[k])),), work=target)

    def _spread(self, j: int, view: View, free: Ints, speed: Floats, left: float) -> Iterator[Decision]:
        # One copy over several nodes, as fast as its slowest: the fastest types, few nodes. It gets the whole round.
        on: list[tuple[int, int]] = []
        missing = view.gpus(j)
        may = np.flatnonzero(view.eligible(j) & (free > 0))
        for node in may[np.lexsort((-free[may], -leading(speed[may])))].tolist():
            count = min(missing, int(free[node]))
            on, missing = [*on, (node, count)], missing - count
            if missing == 0:
                for used, taken in on:
                    free[used] -= taken
                yield Start(j, on=tuple(on), work=left)
                return

    def _collect(self, ended: list[Ended]) -> None:
        # Count the copies that did something, and correct what was believed of their speeds.
        copies: Counter[int] = Counter()
        for copy in (copy for copy in ended if copy.work > 0):  # others were stopped before they had loaded anything
            copies[copy.job] += 1
            if len(copy.on) == 1 and copy.seconds > 0:
                group = int(self._groups.node_group[copy.on[0][0]])
                self._estimates.learn(copy.job, group, copy.work / copy.seconds)
        for j, count in copies.items():
            self._most[j] = max(self._most[j], count)
            self._several[j] += count > 1

    def notes(self) -> dict[str, Floats]:
        """Return ``copies``, most of every job at once, and ``aggregations``, its rounds with several copies, f64[n]."""
        return {"copies": self._most, "aggregations": self._several}


def split(left: float, rates: Sequence[float] | Floats, seconds: float) -> Floats:
    """Return the targets of the copies of a job, f64[copies].

    A copy does X_h s units. If the whole round would do more than is left, all targets shrink by one factor, so that
    all copies end together.

    Parameters
    ----------
    left
        Units of work that are left of the job.
    rates
        Units of work a second of every copy, f64[copies].
    seconds
        Seconds of work in the round.
    """
    targets = np.asarray(rates, dtype=np.float64) * seconds
    total = float(targets.sum())
    return targets * (left / total) if total > left else targets


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
        self._learns = kind != "true"
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
        if self._learns:
            self.rates[job, group] = WEIGHT * measured + (1 - WEIGHT) * self.rates[job, group]
