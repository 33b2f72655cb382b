"""Copies as the linear program of forking wants them: which nodes work for which job, and for how long, until all is done.

The program (`optsched.models.hadar_e_forking`, here by groups of alike nodes): min T with sum_m X_jm y_jm >= left_j and
sum_j y_jm <= n_m T - what the n_m nodes of group m have begun. Every y_jm is a block of work. A node that is free takes the
longest of its blocks whose job runs nowhere else; copies of one job at once, which must be brought together at the end of
every round, only where there is no other block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optsched.problem.arrays import Bools, Floats, Ints

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
