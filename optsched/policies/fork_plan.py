"""Copies as the linear program of forking wants them: which nodes work for which job, and for how long.

The program is `optsched.models.hadar_e_forking`, here by groups of alike nodes: min T with sum_m X_jm y_jm >= left_j and
sum_j y_jm <= n_m T - the work that the n_m nodes of group m have begun. Every y_jm is a block of work. A node that is free
takes the longest of its blocks whose job runs nowhere else; copies of one job at once, which must be brought together at
the end of every round, start only where there is no other block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array

from optsched.errors import OptschedError
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.session import DUAL, Session

WORTH = 2.0  # overheads that a block must last, where the job has another one to go into
ALL = 1 - 1e-9  # of a job's work: the rest is rounding


@dataclass(frozen=True)
class Copy:
    """A copy that runs: ``work`` begun at ``start`` (overhead included), at ``rate`` units a second."""

    start: float
    work: float
    rate: float

    def left(self, now: float) -> float:
        """Return the units of work that are left, at most all of them.

        Parameters
        ----------
        now
            The present, in seconds.
        """
        return min(self.work, max(0.0, self.work - (now - self.start) * self.rate))


class ForkPlan:
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
        """Return the nodes on which copies of a job run.

        Parameters
        ----------
        job
            Number of the job.
        """
        return [node for j, node in self._copies if j == job]

    @property
    def joint(self) -> list[int]:
        """The jobs with several copies at once."""
        jobs = [j for j, _ in self._copies]
        return sorted({j for j in jobs if jobs.count(j) > 1})

    def ended(self, job: int, node: int, work: float) -> None:
        """Remove a copy that has ended; what it did not do is a block again.

        Parameters
        ----------
        job
            Number of the job.
        node
            Node on which the copy ran.
        work
            Units of work that it did.
        """
        copy = self._copies.pop((job, node))
        self._blocks[job][self._group[node]] += max(0.0, copy.work - work) / copy.rate

    def lacks(self, free: Bools) -> bool:
        """Return true if there is a free node without a block.

        Parameters
        ----------
        free
            Which nodes are free, bool[N].
        """
        planned = sum(self._blocks.values(), np.zeros(self._nodes.size))
        return bool((free & ~(planned > 0)[self._group]).any())

    def solve(self, now: float, jobs: Sequence[int], left: Floats, rates: Floats) -> None:
        """Compute new blocks for the work that running copies do not do.

        Parameters
        ----------
        now
            The present, in seconds.
        jobs
            Numbers of the J active jobs.
        left
            Units of work that are left, f64[J].
        rates
            Units of work a second on a node of each group, f64[J, M].
        """
        begun, work = np.zeros(self._nodes.size), left.copy()
        row = {j: k for k, j in enumerate(jobs)}
        for (j, node), copy in self._copies.items():
            rest = copy.left(now)
            begun[self._group[node]] += max(copy.start - now, 0.0) + rest / copy.rate
            if j in row:
                work[row[j]] -= rest
        work[work < (1 - ALL) * left] = 0.0
        seconds, self._horizon = self._program.least(work, rates, begun)
        small = seconds < WORTH * self._overhead
        small &= seconds < seconds.max(axis=1, keepdims=True)
        kept = np.where(small, 0.0, seconds)
        done = (rates * kept).sum(axis=1)
        scale = np.divide(work, done, out=np.ones_like(work), where=done > 0)
        self._blocks = dict(zip(jobs, kept * scale[:, None], strict=True))

    def next(self, now: float, until: float, free: Sequence[int]) -> tuple[list[int], dict[int, list[int]]]:
        """Return the jobs to stop, and by job the nodes of the copies to start.

        Parameters
        ----------
        now
            The present, in seconds.
        until
            End of the round, in seconds.
        free
            Free nodes.
        """
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
        """Return node and units of work of each copy of a job that starts now.

        Parameters
        ----------
        job
            Number of the job.
        nodes
            Nodes of the copies.
        now
            The present, in seconds.
        until
            End of the round, in seconds.
        left
            Units of work that are left of the job.
        rates
            Units of work a second on a node of each group, f64[M].
        """
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


class MakespanProgram:
    """The program in one HiGHS for a whole run: every solve begins without a basis.

    Parameters
    ----------
    nodes
        Nodes of every group, f64[M].
    """

    def __init__(self, nodes: Floats) -> None:
        self._nodes = nodes
        self._session: Session | None = None

    def least(self, work: Floats, rates: Floats, begun: Floats) -> tuple[Floats, float]:
        """Return y f64[J, M] and T; a job whose work has all begun has no blocks.

        Parameters
        ----------
        work
            Units of work that are left to plan, f64[J].
        rates
            Units of work a second on a node of each group, f64[J, M].
        begun
            Seconds of work that the nodes of each group have begun, f64[M].

        Raises
        ------
        OptschedError
            The solver fails.
        """
        (jobs, groups), best = rates.shape, rates.max(axis=1)
        j, m = np.nonzero((rates > 0) & (work > 0)[:, None])
        if not j.size:
            return np.zeros_like(rates), 0.0
        need = work / best  # seconds on the best group
        scale, upper = float(need.max()), np.append(-need, -begun)
        # Column by column: the work of the job and the time of the group; at last T.
        values = np.append(np.column_stack([-rates[j, m] / best[j], np.ones(j.size)]), -self._nodes)
        rows = np.append(np.column_stack([j, jobs + m]), jobs + np.arange(groups))
        begins = np.append(2 * np.arange(j.size + 1), values.size)
        matrix = csc_array((values, rows, begins), shape=(jobs + groups, j.size + 1))
        cost = np.append(np.zeros(j.size), 1.0)
        program = LinearProgram.from_arrays(cost, matrix, np.full(upper.size, -np.inf), upper / scale)
        if self._session is None:
            self._session = Session(program, options={"solver": "simplex", "simplex_strategy": DUAL})
        else:
            self._session.replace(program)
        x = self._session.solve().x
        if x is None:
            raise OptschedError("HiGHS: blocks of work: there is no optimum")
        seconds = np.zeros_like(rates)
        seconds[j, m] = np.maximum(x[:-1], 0.0) * scale
        return np.where(seconds * rates > 1e-9 * work[:, None], seconds, 0.0), float(x[-1]) * scale
