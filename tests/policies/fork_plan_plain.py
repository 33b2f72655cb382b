"""The plan of HadarE's rule lp written plainly: copies and blocks by name, every decision by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optsched.policies.fork_plan import ALL, NOISE, WORTH, MakespanProgram
from optsched.policies.hadar_e import HadarE
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.simulation.policy import Decision, Ended, EndedCopies, Start, Stop, View, Wake


@dataclass(frozen=True)
class Copy:
    """A copy that runs: ``work`` begun at ``start`` (overhead included), at ``rate`` units a second."""

    start: float
    work: float
    rate: float

    def left(self, now: float) -> float:
        """Return the units of work that are left, at most all of them."""
        return min(self.work, max(0.0, self.work - (now - self.start) * self.rate))


class PlainForkPlan:
    """The blocks of work of the active jobs on N nodes in M groups, and the copies that run: one on a node.

    ``node_group`` i64[N]; ``overhead``: seconds of a start. Complexity: one linear program with J M columns a round.
    """

    def __init__(self, node_group: Ints, overhead: float) -> None:
        self._group, self._overhead = node_group, overhead
        self._nodes = np.bincount(node_group).astype(np.float64)
        self._program = MakespanProgram(self._nodes)
        self._copies: dict[tuple[int, int], Copy] = {}  # by job and node
        self._blocks: dict[int, Floats] = {}  # y of every active job, seconds by group
        self._horizon = 0.0  # T

    def nodes_of(self, job: int) -> list[int]:
        """Return the nodes on which copies of a job run."""
        return [node for j, node in self._copies if j == job]

    @property
    def joint(self) -> list[int]:
        """The jobs with several copies at once."""
        jobs = [j for j, _ in self._copies]
        return sorted({j for j in jobs if jobs.count(j) > 1})

    def ended(self, job: int, node: int, work: float) -> None:
        """Remove a copy that has ended; what it did not do is a block again."""
        copy = self._copies.pop((job, node))
        undone = (copy.work - work) / copy.rate
        if undone > NOISE * self._horizon:
            self._blocks[job][self._group[node]] += undone

    def lacks(self, free: Bools) -> bool:
        """Return true if there is a free node without a block."""
        planned = sum(self._blocks.values(), np.zeros(self._nodes.size))
        return bool((free & ~(planned > 0)[self._group]).any())

    def solve(self, now: float, jobs: Sequence[int], left: Floats, rates: Floats) -> None:
        """Compute new blocks for the work that running copies do not do."""
        begun, work = np.zeros(self._nodes.size), left.copy()
        row = {j: k for k, j in enumerate(jobs)}
        for (j, node), copy in self._copies.items():
            rest = copy.left(now)
            begun[self._group[node]] += max(copy.start - now, 0.0) + rest / copy.rate
            if j in row:
                work[row[j]] -= rest
        work[work < (1 - ALL) * left] = 0.0
        seconds, self._horizon = self._program.least(jobs, work, rates, begun)
        small = seconds < max(WORTH * self._overhead, NOISE * self._horizon)
        small &= seconds < (1 - NOISE) * seconds.max(axis=1, keepdims=True)
        kept = np.where(small, 0.0, seconds)
        done = (rates * kept).sum(axis=1)
        scale = np.divide(work, done, out=np.ones_like(work), where=done > 0)
        self._blocks = dict(zip(jobs, kept * scale[:, None], strict=True))

    def next(self, now: float, until: float, free: Sequence[int]) -> tuple[list[int], dict[int, list[int]]]:
        """Return the jobs to stop, and by job the nodes of the copies to start."""
        where: dict[int, list[int]] = {j: self.nodes_of(j) for j in self._blocks}
        started: dict[int, list[int]] = {}
        choices = {h: [j for j, y in self._blocks.items() if y[self._group[h]] > 0] for h in free}
        for h in sorted(free, key=lambda h: (len(choices[h]), h)):
            block = {j: float(self._blocks[j][self._group[h]]) for j in choices[h]}
            alone = [j for j in block if not where[j]]
            if not alone:  # to join copies that run costs each of them a start
                gain = until - now - self._overhead
                worth = [j for j in block if block[j] > NOISE * min(gain, now + self._horizon)]
                alone = [j for j in worth if gain > self._overhead * (1 + len(self.nodes_of(j)))]
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
        """Return node and units of work of each copy of a job that starts now."""
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
            block = y[m] - part / rates[m]
            y[m] = block if block > NOISE * self._horizon else 0.0
            self._copies[job, node] = Copy(now + self._overhead, part, float(rates[m]))
        return starts


class PlainPlanHadarE(HadarE):
    """HadarE with the plain plan, decision by decision."""

    def begin(self, view: View) -> None:
        """Forget the last run."""
        super().begin(view)
        assert self._plan is not None  # rule lp follows a plan here
        self._plan = PlainForkPlan(self._groups.node_group, self.overhead)  # type: ignore[assignment]
        self._over = list[Ended]()  # copies that have not been brought together

    def _follow(self, plan: Any, view: View) -> Iterator[list[Decision] | Decision]:
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

    def _hear(self, plan: PlainForkPlan, view: View, heard: int) -> int:
        # What has ended; copies are brought together when the last of their job has ended.
        ended = view.ended
        for copy in ended[heard:]:
            plan.ended(copy.job, copy.on[0][0], copy.work)
        self._over += ended[heard:]
        done = [copy for copy in self._over if not plan.nodes_of(copy.job)]
        self._over = [copy for copy in self._over if plan.nodes_of(copy.job)]
        if done:
            self._collect(_arrays(done))
        return len(ended)


def _arrays(ended: Sequence[Ended]) -> EndedCopies:
    rows = [(copy.job, copy.on[0][0], len(copy.on)) for copy in ended]
    job, node, nodes = np.ascontiguousarray(np.array(rows, dtype=np.int64).reshape(-1, 3).T)
    work, seconds = np.array([copy.work for copy in ended]), np.array([copy.seconds for copy in ended])
    return EndedCopies(job, node, nodes, work, seconds)
