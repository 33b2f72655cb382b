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
from optsched.policies.round_clock import RoundClock
from optsched.policies.ties import leading
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.registry import Seconds
from optsched.simulation.policy import Decision, Ended, Knowledge, Policy, Start, Stop, View, Wake
from optsched.simulation.wakes import require_rounds
from optsched.speeds.throughput_table import performance_ratio
from optsched.speeds.type_speeds import GroupRates

RULES = ("lp", "work", "payoff")


@POLICIES.register("hadar-e")
@dataclass
class HadarE(Policy):
    """HadarE: rounds in which a job trains in up to ``copies`` copies (0: as many as there are nodes) on different nodes.

    ``rule=lp``, where gangs are whole nodes that are not alike: blocks of work by the linear program `hadar-e-forking`, new
    ones every round; a copy that is alone stays on its node, copies of one job at once begin anew with every round of
    ``round`` seconds (`optsched.policies.hadar_e`). Elsewhere, and with fewer copies than nodes, lp is ``work``: at the
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
    jobs there at 0, C_max <= L ceil(S/n), S = sum ceil(p_j/(L - o)) (`rounds_of_copies`). **Counterexample** to
    more: with J >= n jobs an ideal preemptive schedule without forking is as short. **Complexity** O(copies J) a round for J
    active jobs; with lp a linear program of J M columns, M groups of alike nodes.
    **Reference** Sultana, Pakka, Xu, Yuan, Chen, Tzeng, arXiv 2503.10918, as far as its structure is known; its rules,
    splitting and theorems here are this project's own.
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
        """A new run: forget the last one."""
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
        """At the begin of a round: add up what the copies did, and send them out anew; between two rounds nothing.

        By the plan of rule lp a copy that is alone goes on from round to round, and a node that is done takes a new block.
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


KINDS = ("true", "device", "noisy")
WEIGHT = 0.5  # of a measurement against what was believed


class ThroughputEstimates:
    """X f64[n, M] as believed: units of work a second of a copy of job j on one node of group m; 0 where it may not run.

    ``kind`` says where it begins: ``true``, the real rates (everything was profiled beforehand); ``device``, the rate on the
    first node group that can host the job, times the ratio of the devices' peak performance; ``noisy``, the real rates
    times exp(``error`` z), z standard normal from ``seed``. After a round X <- 0.5 measured + 0.5 X.

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
        """A copy of ``job`` did ``measured`` units of work a second on a node of ``group``."""
        if self._learns:
            self.rates[job, group] = WEIGHT * measured + (1 - WEIGHT) * self.rates[job, group]


# Copies as the linear program of forking wants them: which nodes work for which job, and for how long, until all is
# done.
#
# The program (`optsched.models.hadar_e_forking`, here by groups of alike nodes): min T with sum_m X_jm y_jm >= left_j
# and sum_j y_jm <= n_m T - what the n_m nodes of group m have begun. Every y_jm is a block of work. A node that is free
# takes the longest of its blocks whose job runs nowhere else; copies of one job at once, which must be brought together
# at the end of every round, only where there is no other block.

WORTH = 2.0  # overheads that a block must last, where the job has another one to go into
ALL = 1 - 1e-9  # of a job's work: the rest is rounding


@dataclass(frozen=True)
class Copy:
    """``work`` begun at ``start`` (overhead included), at ``rate`` units a second."""

    start: float
    work: float
    rate: float

    def left(self, now: float) -> float:
        """Units of work, at most all of them."""
        return min(self.work, max(0.0, self.work - (now - self.start) * self.rate))


class ForkPlan:
    """Blocks of work of the active jobs on N nodes in M groups, and the copies that run: one on a node.

    ``node_group`` i64[N]; ``overhead``: seconds of a start. Complexity: one linear program with J M columns a round.
    """

    def __init__(self, node_group: Ints, overhead: float) -> None:
        self._group, self._overhead = node_group, overhead
        self._nodes = np.bincount(node_group).astype(np.float64)
        self._copies: dict[tuple[int, int], Copy] = {}  # by job and node
        self._blocks: dict[int, Floats] = {}  # y of every active job, seconds by group
        self._horizon = 0.0  # T

    def nodes_of(self, job: int) -> list[int]:
        """Where its copies run."""
        return [node for j, node in self._copies if j == job]

    @property
    def joint(self) -> list[int]:
        """Jobs with several copies at once."""
        jobs = [j for j, _ in self._copies]
        return sorted({j for j in jobs if jobs.count(j) > 1})

    def ended(self, job: int, node: int, work: float) -> None:
        """A copy has ended, after so much work: what it did not do is a block again."""
        copy = self._copies.pop((job, node))
        self._blocks[job][self._group[node]] += max(0.0, copy.work - work) / copy.rate

    def lacks(self, free: Bools) -> bool:
        """Is there a free node without a block? bool[N]."""
        planned = sum(self._blocks.values(), np.zeros(self._nodes.size))
        return bool((free & ~(planned > 0)[self._group]).any())

    def solve(self, now: float, jobs: Sequence[int], left: Floats, rates: Floats) -> None:
        """New blocks for what copies that run do not do. ``left`` f64[J] units, ``rates`` f64[J, M]."""
        begun, work = np.zeros(self._nodes.size), left.copy()
        row = {j: k for k, j in enumerate(jobs)}
        for (j, node), copy in self._copies.items():
            rest = copy.left(now)
            begun[self._group[node]] += max(copy.start - now, 0.0) + rest / copy.rate
            if j in row:
                work[row[j]] -= rest
        work[work < (1 - ALL) * left] = 0.0
        seconds, self._horizon = _least_makespan(work, rates, self._nodes, begun)
        small = seconds < WORTH * self._overhead
        small &= seconds < seconds.max(axis=1, keepdims=True)
        kept = np.where(small, 0.0, seconds)
        done = (rates * kept).sum(axis=1)
        scale = np.divide(work, done, out=np.ones_like(work), where=done > 0)
        self._blocks = dict(zip(jobs, kept * scale[:, None], strict=True))

    def next(self, now: float, until: float, free: Sequence[int]) -> tuple[list[int], dict[int, list[int]]]:
        """(jobs to stop, nodes of the copies to start by job) for the ``free`` nodes; the round ends at ``until``."""
        where: dict[int, list[int]] = {j: self.nodes_of(j) for j in self._blocks}
        started: dict[int, list[int]] = {}
        choices = {h: [j for j, y in self._blocks.items() if y[self._group[h]] > 0] for h in free}
        for h in sorted(free, key=lambda h: (len(choices[h]), h)):
            block = {j: float(self._blocks[j][self._group[h]]) for j in choices[h]}
            alone = [j for j in block if not where[j]]
            if not alone:  # to join copies that run costs each of them a start
                gain = until - now - self._overhead
                alone = [j for j in block if gain > self._overhead * (1 + len(self.nodes_of(j)))]
            if alone:
                j = max(alone, key=lambda j: (block[j], -j))
                where[j].append(h)
                started.setdefault(j, []).append(h)
        stops = [j for j in started if self.nodes_of(j)]
        for j in stops:
            started[j] = where[j]
        return stops, started

    def begin(
        self, job: int, nodes: Sequence[int], now: float, until: float, left: float, rates: Floats
    ) -> list[tuple[int, float]]:
        """(node, units of work) of the copies of a job that start on ``nodes`` now, ``left`` of it in all."""
        y, group = self._blocks[job], self._group[list(nodes)]
        sharing = np.bincount(group, minlength=y.size)
        seconds = np.minimum(y[group] / sharing[group], max(self._horizon, WORTH * self._overhead))
        if len(nodes) > 1:
            seconds = np.minimum(seconds, until - now - self._overhead)
        work = seconds * rates[group]
        rest = float((y * rates).sum() - work.sum())
        if work.sum() >= ALL * left or rest <= (1 - ALL) * left:
            work *= left / work.sum()
        starts = [(node, part) for node, part in zip(nodes, work.tolist(), strict=True) if part > 0]
        for node, part in starts:
            m = self._group[node]
            y[m] = max(0.0, y[m] - part / rates[m])
            self._copies[job, node] = Copy(now + self._overhead, part, float(rates[m]))
        return starts


def _least_makespan(work: Floats, rates: Floats, nodes: Floats, begun: Floats) -> tuple[Floats, float]:
    # y f64[J, M] and T of the program; a job whose work has all begun has no blocks.
    from scipy.optimize import linprog  # takes a while to import
    from scipy.sparse import coo_array

    (jobs, groups), best = rates.shape, rates.max(axis=1)
    j, m = np.nonzero((rates > 0) & (work > 0)[:, None])
    if not j.size:
        return np.zeros_like(rates), 0.0
    need = work / best  # seconds on the best group
    scale, column, last = float(need.max()), np.arange(j.size), np.full(groups, j.size)
    rows = np.concatenate([j, jobs + m, jobs + np.arange(groups)])
    values = np.concatenate([-rates[j, m] / best[j], np.ones(j.size), -nodes])
    matrix = coo_array((values, (rows, np.concatenate([column, column, last]))), shape=(jobs + groups, j.size + 1))
    cost = np.append(np.zeros(j.size), 1.0)
    found = linprog(cost, A_ub=matrix.tocsr(), b_ub=np.append(-need, -begun) / scale, method="highs-ds")
    seconds = np.zeros_like(rates)
    seconds[j, m] = np.maximum(found.x[:-1], 0.0) * scale
    return np.where(seconds * rates > 1e-9 * work[:, None], seconds, 0.0), float(found.x[-1]) * scale
