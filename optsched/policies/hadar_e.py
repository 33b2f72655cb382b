"""HadarE: every job is forked into copies that train at the same time on different nodes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.fork_assignment import Assignment, by_payoff, by_work, fill
from optsched.policies.fork_plan import ForkPlan
from optsched.policies.round_clock import RoundClock
from optsched.policies.throughput_estimates import KINDS, ThroughputEstimates
from optsched.policies.ties import leading
from optsched.problem.arrays import Floats, Ints
from optsched.simulation.policy import Decision, Ended, Knowledge, Start, Stop, View, Wake
from optsched.simulation.rounds import require_rounds
from optsched.speeds.group_rates import GroupRates

RULES = ("lp", "work", "payoff")


@POLICIES.register("hadar-e")
@dataclass
class HadarE:
    """HadarE: rounds in which a job trains in up to ``copies`` copies (0: as many as there are nodes) on different nodes.

    ``rule=lp``, where gangs are whole nodes that are not alike: blocks of work by the linear program `hadar-e-forking`, new
    ones every round; a copy that is alone stays on its node, copies of one job at once begin anew with every round of
    ``round`` seconds (`optsched.policies.fork_plan`). Elsewhere, and with fewer copies than nodes, lp is ``work``: at the
    begin of a round, node by node, the fastest first, the job with the most planned work. ``payoff``: by falling
    w_j X_jh / left_j. With these two, nodes left idle are filled along augmenting paths, and `split` divides a job's
    work X_jh (L - o) a copy, scaled so that all copies of a job that can finish end together. A start costs ``overhead``
    seconds, o, for saving, loading and averaging the copies. X_jh is what is believed (``estimate``: ``true``, ``device``,
    or ``noisy`` with a relative ``error`` drawn from ``seed``) and corrected by what copies do. A gang larger than any node
    is not forked: it takes the fastest free nodes before the others. ``copies=1`` does not fork: its schedules are of the
    class gang.

    **Problem** R | r_j, size_j, forking, online-r_j | C_max. **Knowledge** clairvoyant (steps are known, speeds as far as
    ``estimate`` says). **Guarantee** by ``work`` and ``payoff``, where all gangs are alike, no round leaves a node idle that
    could be busy: min(n, x J) are, if every job runs on every node; hence, on identical nodes with one copy a node and all
    jobs there at 0, C_max <= L ceil(S/n), S = sum ceil(p_j/(L - o)) (`optsched.guarantees.hadar_e`). **Counterexample** to
    more: with J >= n jobs an ideal preemptive schedule without forking is as short. **Complexity** O(copies J) a round for J
    active jobs; with lp a linear program of J M columns, M groups of alike nodes.
    **Reference** Sultana, Pakka, Xu, Yuan, Chen, Tzeng, arXiv 2503.10918, as far as its structure is known; its rules,
    splitting and theorems here are this project's own.
    """

    copies: int = 0
    round: float = 360.0
    overhead: float = 10.0
    rule: str = "lp"
    estimate: str = "true"
    error: float = 0.3
    seed: int = 0

    name: ClassVar[str] = "hadar-e"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT
    uses: ClassVar[tuple[str, ...]] = ("copies",)

    _estimates: ThroughputEstimates = field(init=False, repr=False)
    _most: Floats = field(init=False, repr=False)  # copies of each job at once
    _several: Floats = field(init=False, repr=False)  # rounds in which it had several
    _groups: GroupRates = field(init=False, repr=False)
    _clock: RoundClock = field(init=False, repr=False)
    _members: set[int] = field(init=False, repr=False)  # of the present round
    _ended: list[Ended] = field(init=False, repr=False)
    _plan: ForkPlan | None = field(init=False, repr=False)  # of rule lp, where it applies
    _until: float = field(init=False, repr=False)  # the end of its round

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
    def believed(self) -> Floats:
        """The rates that it believes in now, f64[n, M]."""
        return self._estimates.rates.copy()

    def begin(self, view: View) -> None:
        """A new run: forget the last one."""
        self._groups, self._clock = view.groups, RoundClock(self.round)
        self._members, self._ended = set(), []
        self._estimates = ThroughputEstimates(self._groups, self.estimate, self.error, self.seed)
        self._most, self._several = np.zeros((2, self._groups.hosts.shape[0]))
        best, hosted = self._estimates.rates.max(axis=1, initial=0.0), self._groups.hosts.any(axis=1)
        longest = float((view.left[hosted] / best[hosted]).max(initial=0.0)) / self._groups.node_gpus.size
        require_rounds(self.name, self.round, longest)
        self._plan = ForkPlan(self._groups.node_group, self.overhead) if self._plans() else None

    def _plans(self) -> bool:
        # The program is of gangs that are whole nodes, in as many copies as there are nodes; alike nodes need none.
        nodes, alike = self._groups.node_gpus.size, not np.ptp(self._estimates.rates, axis=1).any()
        return self.rule == "lp" and self._groups.whole_nodes and not 0 < self.copies < nodes and not alike

    def decide(self, view: View) -> Iterator[list[Decision] | Decision]:
        """At the begin of a round: add up what the copies did, and send them out anew; between two rounds nothing.

        By the plan of rule lp a copy that is alone goes on from round to round, and a node that is done takes a new block.
        """
        active = view.active
        if self._plan is not None:
            yield from self._follow(self._plan, view)
            return
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
            self._until = self._clock.begin(now)
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
        for each in ended[heard:]:
            plan.ended(each.job, each.on[0][0], each.work)
        self._ended += ended[heard:]
        done = [each for each in self._ended if not plan.nodes_of(each.job)]
        self._ended = [each for each in self._ended if plan.nodes_of(each.job)]
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
        for each in (each for each in ended if each.work > 0):  # others were stopped before they had loaded anything
            copies[each.job] += 1
            if len(each.on) == 1 and each.seconds > 0:
                group = int(self._groups.node_group[each.on[0][0]])
                self._estimates.learn(each.job, group, each.work / each.seconds)
        for j, count in copies.items():
            self._most[j] = max(self._most[j], count)
            self._several[j] += count > 1

    def notes(self) -> dict[str, Floats]:
        """``copies``: most copies of every job at once; ``aggregations``: rounds in which it had several, f64[n]."""
        return {"copies": self._most, "aggregations": self._several}


def split(left: float, rates: Sequence[float] | Floats, seconds: float) -> Floats:
    """Targets of copies with these rates for ``seconds`` of work: d_h = X_h s, f64[copies], at most ``left`` in all.

    Where the whole round would do more than is left, all targets shrink by one factor: all copies end together.
    """
    targets = np.asarray(rates, dtype=np.float64) * seconds
    total = float(targets.sum())
    return targets * (left / total) if total > left else targets
