"""Copies as the linear program of forking wants them: which nodes work for which job, and for how long.

The program is `optsched.models.hadar_e_forking`, here by groups of alike nodes: min T with sum_m X_jm y_jm >= left_j and
sum_j y_jm <= n_m T - the work that the n_m nodes of group m have begun. Every y_jm is a block of work. A node that is free
takes the longest of its blocks whose job runs nowhere else; copies of one job at once, which must be brought together at
the end of every round, start only where there is no other block.

Copies and blocks are arrays, so that an event costs as much as the nodes that are free at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csc_array

from optsched.errors import OptschedError
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.session import DUAL, Session

WORTH = 2.0  # overheads that a block must last, where the job has another one to go into
ALL = 1 - 1e-9  # of a job's work: the rest is rounding
NOISE = 1e-7  # of T: shorter blocks are rounding, or within the tolerance of the solver


class ForkPlan:
    """The blocks of work of the active jobs on N nodes in M groups, and the copies that run: one on a node.

    ``node_group`` i64[N]; ``overhead``: seconds of a start. Complexity: one linear program with J M columns a round; O(J +
    copies that end or start) an event.
    """

    def __init__(self, node_group: Ints, overhead: float) -> None:
        self._group, self._overhead = node_group, overhead
        self._group_of: list[int] = node_group.tolist()
        self._nodes = np.bincount(node_group).astype(np.float64)
        self._program = MakespanProgram(self._nodes)
        # The copy on every node, if any: its job; its work, begun at ``start`` (overhead included) at ``rate`` a second.
        self._job = np.zeros(node_group.size, dtype=np.int64)
        self._start, self._work, self._rate = np.zeros((3, node_group.size))
        self._busy: dict[int, None] = {}  # nodes with a copy, in the order of their starts
        self._on: dict[int, list[int]] = {}  # nodes of every job's copies, in the order of their starts
        self._jobs = np.zeros(0, dtype=np.int64)  # active at the last program
        self._row: dict[int, int] = {}
        self._blocks = np.zeros((0, self._nodes.size))  # y of these jobs, seconds by group
        self._horizon = 0.0  # T

    def runs(self, job: int) -> bool:
        """Return True if a copy of a job runs.

        Parameters
        ----------
        job
            Number of the job.
        """
        return job in self._on

    @property
    def joint(self) -> list[int]:
        """The jobs with several copies at once."""
        return sorted(job for job, nodes in self._on.items() if len(nodes) > 1)

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
        del self._busy[node]
        nodes = self._on[job]
        nodes.remove(node)
        if not nodes:
            del self._on[job]
        undone = (float(self._work[node]) - work) / float(self._rate[node])
        if undone > NOISE * self._horizon:
            self._blocks[self._row[job], self._group_of[node]] += undone

    def lacks(self, free: Ints) -> bool:
        """Return true if there is a free node without a block.

        Parameters
        ----------
        free
            Free nodes, i64[].
        """
        planned: Bools = np.asarray((self._blocks > 0).any(axis=0))
        return not planned.all() and not bool(planned[self._group[free]].all())

    def solve(self, now: float, jobs: Sequence[int] | Ints, left: Floats, rates: Floats) -> None:
        """Compute new blocks for the work that running copies do not do.

        Parameters
        ----------
        now
            The present, in seconds.
        jobs
            Numbers of the J active jobs, i64[J].
        left
            Units of work that are left, f64[J].
        rates
            Units of work a second on a node of each group, f64[J, M].
        """
        self._jobs = np.asarray(jobs, dtype=np.int64)
        self._row = {j: k for k, j in enumerate(self._jobs.tolist())}
        busy = np.fromiter(self._busy, np.int64, len(self._busy))
        start, begun_work, rate = self._start[busy], self._work[busy], self._rate[busy]
        rest = np.minimum(begun_work, np.maximum(0.0, begun_work - (now - start) * rate))
        # Both sums add up in the order of the starts, on which their rounding depends.
        seconds = np.maximum(start - now, 0.0) + rest / rate
        begun = np.zeros(self._nodes.size)
        np.add.at(begun, self._group[busy], seconds)
        work = left.copy()
        np.subtract.at(work, np.array([self._row[j] for j in self._job[busy].tolist()], dtype=np.int64), rest)
        work[work < (1 - ALL) * left] = 0.0
        seconds, self._horizon = self._program.least(self._jobs.tolist(), work, rates, begun)
        small = seconds < max(WORTH * self._overhead, NOISE * self._horizon)
        small &= seconds < (1 - NOISE) * seconds.max(axis=1, keepdims=True)
        kept = np.where(small, 0.0, seconds)
        done = (rates * kept).sum(axis=1)
        scale = np.divide(work, done, out=np.ones_like(work), where=done > 0)
        self._blocks = kept * scale[:, None]

    def next(self, now: float, until: float, free: Sequence[int]) -> tuple[list[int], dict[int, list[int]]]:
        """Return the jobs to stop, and by job the nodes of the copies to start.

        Parameters
        ----------
        now
            The present, in seconds.
        until
            End of the round, in seconds.
        free
            Free nodes, ascending.
        """
        group = self._group_of
        choices = {m: self._choices(m) for m in dict.fromkeys(group[h] for h in free)}
        idle = {m: (j for j in jobs if j not in self._on) for m, jobs in choices.items()}  # each is passed once
        joined: dict[int, int | None] = {}  # by group, the job whose running copies a node joins
        started: dict[int, list[int]] = {}
        for h in sorted(free, key=lambda h: len(choices[group[h]])):
            m = group[h]
            alone = next((j for j in idle[m] if j not in started), None)
            if alone is not None:
                started[alone] = [h]
                continue
            if m not in joined:  # to join copies that run costs each of them a start
                gain = until - now - self._overhead
                # Blocks of rounding are not joined: without overhead all copies would start again and again for them.
                least = NOISE * min(
                    gain, now + self._horizon
                )  # of the round, or of the whole schedule if it is shorter
                worth = (j for j in choices[m] if self._blocks[self._row[j], m] > least)
                may = (j for j in worth if gain > self._overhead * (1 + len(self._on.get(j, ()))))
                joined[m] = next(may, None)
            j = joined[m]
            if j is not None:
                started.setdefault(j, []).append(h)
        stops = [j for j in started if j in self._on]
        for j in stops:
            started[j] = self._on[j] + started[j]
        return stops, started

    def _choices(self, m: int) -> list[int]:
        # The jobs with a block on a group, the longest block first.
        block = self._blocks[:, m]
        rows = np.flatnonzero(block > 0)
        jobs: list[int] = self._jobs[rows[np.lexsort((self._jobs[rows], -block[rows]))]].tolist()
        return jobs

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
        y, most = self._blocks[self._row[job]], max(self._horizon, WORTH * self._overhead)
        if len(nodes) == 1:
            m = self._group_of[nodes[0]]
            parts = [min(float(y[m]), most) * float(rates[m])]
            total = parts[0]
        else:
            group = self._group[nodes]
            sharing = np.bincount(group, minlength=y.size)
            seconds = np.minimum(y[group] / sharing[group], most)
            work = np.minimum(seconds, until - now - self._overhead) * rates[group]
            parts, total = work.tolist(), float(work.sum())
        rest = float((y * rates).sum()) - total
        if total > 0 and (total >= ALL * left or rest <= (1 - ALL) * left):
            parts = [part * (left / total) for part in parts]
        starts = [(node, part) for node, part in zip(nodes, parts, strict=True) if part > 0]
        for node, part in starts:
            m = self._group_of[node]
            rate = float(rates[m])
            block = float(y[m]) - part / rate
            y[m] = block if block > NOISE * self._horizon else 0.0
            self._job[node], self._start[node] = job, now + self._overhead
            self._work[node], self._rate[node] = part, rate
            self._busy[node] = None
            self._on.setdefault(job, []).append(node)
        return starts


class MakespanProgram:
    """The program in one HiGHS for a whole run: a solve begins with the basis of the last one.

    The matrix stays until a job comes or a rate changes, which begins without a basis. A job that has no work left keeps its
    row, and its columns are fixed at 0.

    Parameters
    ----------
    nodes
        Nodes of every group, f64[M].
    """

    def __init__(self, nodes: Floats) -> None:
        self._nodes = nodes
        self._session: Session | None = None
        self._row: dict[int, int] = {}  # of every job in the matrix
        self._speeds = np.zeros((0, nodes.size))  # of these jobs, relative to the best group
        self._columns: Any = np.nonzero(self._speeds)  # row of the job i64[k], and group i64[k]
        self._upper = np.zeros(0)  # bounds of the columns

    def least(self, jobs: Sequence[int], work: Floats, rates: Floats, begun: Floats) -> tuple[Floats, float]:
        """Return y f64[J, M] and T; a job whose work has all begun has no blocks.

        Parameters
        ----------
        jobs
            Numbers of the J jobs.
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
        if not (work > 0).any():
            return np.zeros_like(rates), 0.0
        fresh, best = self._session is None, rates.max(axis=1)
        session, rows = self._loaded(jobs, rates / best[:, None])
        need = np.zeros(len(self._row))
        need[rows] = work / best  # seconds on the best group
        scale = float(need.max())
        j, m = self._columns
        upper = np.where(need[j] > 0, np.inf, 0.0)
        changed = np.flatnonzero(upper != self._upper)
        if changed.size:
            session.set_bounds(np.zeros(changed.size), upper[changed], changed)
            self._upper = upper
        session.set_rows(np.full(need.size + begun.size, -np.inf), np.append(-need, -begun) / scale)
        x = session.solve().x
        if x is None and not fresh:
            self._session = None  # work that is left by rounding alone can mislead a solve that begins with a basis
            return self.least(jobs, work, rates, begun)
        if x is None:
            raise OptschedError("HiGHS: blocks of work: there is no optimum")
        seconds = np.zeros_like(self._speeds)
        seconds[j, m] = np.maximum(x[:-1], 0.0) * scale
        seconds = seconds[rows]
        return np.where(seconds * rates > 1e-9 * work[:, None], seconds, 0.0), float(x[-1]) * scale

    def _loaded(self, jobs: Sequence[int], speeds: Floats) -> tuple[Session, list[int]]:
        # A HiGHS whose matrix has these jobs, and their rows.
        rows = [self._row.get(job, -1) for job in jobs]
        if self._session is not None and min(rows) >= 0 and np.array_equal(self._speeds[rows], speeds):
            return self._session, rows
        self._row, self._speeds = {job: k for k, job in enumerate(jobs)}, speeds
        j, m = self._columns = np.nonzero(speeds > 0)
        self._upper = np.full(j.size, np.inf)
        count, groups = speeds.shape
        # Column by column: the work of the job and the time of the group; at last T.
        values = np.append(np.column_stack([-speeds[j, m], np.ones(j.size)]), -self._nodes)
        places = np.append(np.column_stack([j, count + m]), count + np.arange(groups))
        begins = np.append(2 * np.arange(j.size + 1), values.size)
        matrix = csc_array((values, places, begins), shape=(count + groups, j.size + 1))
        cost, bounds = np.append(np.zeros(j.size), 1.0), np.full((2, count + groups), -np.inf)
        bounds[1] = 0.0
        program = LinearProgram.from_arrays(cost, matrix, *bounds)
        if self._session is None:
            # A basis leaves nothing to presolve, which takes longer than these programs.
            options = {"solver": "simplex", "simplex_strategy": DUAL, "presolve": "off"}
            self._session = Session(program, options=options)
        else:
            self._session.replace(program)
        return self._session, list(self._row.values())
