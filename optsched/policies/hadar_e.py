"""HadarE: every job is forked into copies that train at the same time on different nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.fork_assignment import Assignment, by_payoff, by_work, fill
from optsched.policies.job_tracker import JobTracker
from optsched.policies.round_clock import RoundClock
from optsched.policies.throughput_estimates import KINDS, ThroughputEstimates
from optsched.policies.ties import leading
from optsched.problem.arrays import Floats, Ints
from optsched.simulation.policy import Decision, Ended, Knowledge, Start, Stop, View, Wake
from optsched.simulation.rounds import require_rounds
from optsched.speeds.group_rates import GroupRates

RULES = ("work", "payoff")


@POLICIES.register("hadar-e")
@dataclass
class HadarE:
    """HadarE: rounds in which a job trains in up to ``copies`` copies (0: as many as there are nodes) on different nodes.

    At the begin of a round of ``round`` seconds, ``overhead`` of which go to saving, loading and aggregating, nodes get
    copies: ``rule=work``, node by node, the fastest first, the job with the most planned work; ``payoff``, by falling
    w_j X_jh / left_j. Nodes left idle are filled along augmenting paths. The job tracker splits a job's work X_jh (L - o)
    a copy, scaled so that all copies of a job that can finish end together; at the end of the round it adds up what they
    did (their parameters: `optsched.policies.parameter_averaging`). X_jh is what it believes (``estimate``: ``true``,
    ``device``, or ``noisy`` with a relative ``error`` drawn from ``seed``: `optsched.policies.throughput_estimates`) and
    corrects after every round. A gang larger than any node is not forked: it takes the fastest free nodes before the others.
    ``copies=1`` does not fork: its schedules are of the class gang.

    **Problem** R | r_j, size_j, forking, online-r_j | C_max. **Knowledge** clairvoyant (steps are known, speeds as far as
    ``estimate`` says). **Guarantee** where all gangs are alike, no round leaves a node idle that could be busy: min(n, x J)
    are, if every job runs on every node; hence, on identical nodes with one copy a node and all jobs there at 0,
    C_max <= L ceil(S/n), S = sum ceil(p_j/(L - o)) (`optsched.guarantees.hadar_e`). **Counterexample** to more: with J >= n
    jobs an ideal preemptive schedule without forking is as short. **Complexity** O(copies J) a round for J active jobs.
    **Reference** Sultana, Pakka, Xu, Yuan, Chen, Tzeng, arXiv 2503.10918, as far as its structure is known; its rules,
    splitting and theorems as they stand here are this project's own.
    """

    copies: int = 0
    round: float = 360.0
    overhead: float = 10.0
    rule: str = "work"
    estimate: str = "true"
    error: float = 0.3
    seed: int = 0

    name: ClassVar[str] = "hadar-e"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT
    uses: ClassVar[tuple[str, ...]] = ("copies",)

    _tracker: JobTracker = field(init=False, repr=False)
    _estimates: ThroughputEstimates = field(init=False, repr=False)
    _jobs: int = field(init=False, repr=False)
    _groups: GroupRates = field(init=False, repr=False)
    _clock: RoundClock = field(init=False, repr=False)
    _members: set[int] = field(init=False, repr=False)  # of the present round
    _ended: list[Ended] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for key, value, known in (("rule", self.rule, RULES), ("estimate", self.estimate, KINDS)):
            check_legal(value in known, f"hadar-e: {key}", value, ", ".join(known))
        check_legal(0 < self.round < math.inf, "hadar-e: round", self.round, "a finite number of seconds > 0")
        legal = f"0 or more seconds, less than the round of {self.round:g}"
        check_legal(0 <= self.overhead < self.round, "hadar-e: overhead", self.overhead, legal)
        check_legal(0 <= self.error < math.inf, "hadar-e: error", self.error, "a finite number >= 0")
        check_legal(self.seed >= 0, "hadar-e: seed", self.seed, "an integer >= 0")

    @property
    def restart(self) -> float:
        """Every copy pays the overhead of its round."""
        return self.overhead

    @property
    def first_start(self) -> float:
        """The first ones, too."""
        return self.overhead

    @property
    def knows_rates(self) -> bool:
        """``device`` believes what the devices' performance says."""
        return self.estimate != "device"

    @property
    def tracker(self) -> JobTracker:
        """Parents, copies and their steps in the last run."""
        return self._tracker

    @property
    def believed(self) -> Floats:
        """The rates that it believes in now, f64[n, M]."""
        return self._estimates.rates.copy()

    def begin(self, view: View) -> None:
        """A new run: forget the last one."""
        self._groups, self._clock = view.groups, RoundClock(self.round)
        self._members, self._ended = set(), []
        self._estimates = ThroughputEstimates(self._groups, self.estimate, self.error, self.seed)
        self._jobs = int(self._groups.hosts.shape[0])
        self._tracker = JobTracker(max(self._jobs, 1))
        best, hosted = self._estimates.rates.max(axis=1, initial=0.0), self._groups.hosts.any(axis=1)
        longest = float((view.left[hosted] / best[hosted]).max(initial=0.0)) / self._groups.node_gpus.size
        require_rounds(self.name, self.round, longest)

    def decide(self, view: View) -> Iterator[list[Decision] | Decision]:
        """At the begin of a round: add up what the copies did, and send them out anew; between two rounds nothing."""
        active = view.active
        if not (self._clock.due(view.now) or self._members.isdisjoint(active.tolist())):
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
        if self.rule == "work":
            by_work(round_, left[jobs], seconds)
        else:
            by_payoff(round_, left[jobs], weight)
        fill(round_)
        for k, j in enumerate(jobs.tolist()):
            on = round_.on[k]
            targets = self._tracker.split(float(left[j]), rates[k, groups.node_group[on]], seconds)
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
        # Add up what the copies did, and correct what was believed of their speeds.
        work: dict[int, list[float]] = {}
        for each in ended:
            work.setdefault(each.job, []).append(each.work)
            if len(each.on) == 1:
                group = int(self._groups.node_group[each.on[0][0]])
                self._estimates.learn(each.job, group, each.work / each.seconds)
        for j, steps in work.items():
            self._tracker.aggregate(j, steps)

    def notes(self) -> dict[str, Floats]:
        """``copies``: most copies of every job at once; ``aggregations``: rounds in which it had several, f64[n]."""
        found = {"copies": self._tracker.most, "aggregations": self._tracker.aggregations}
        return {key: np.array([each.get(j, 0) for j in range(self._jobs)], float) for key, each in found.items()}
