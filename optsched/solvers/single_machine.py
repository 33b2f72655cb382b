"""Exact single-machine scheduling on an integer time axis: Lagrangian bound by dynamic programming, then branching.

**Problem** 1 | r_j | sum f_j(C_j) for any costs f_j that never fall, integer r_j, p_j and f_j (also clusters on which no two
gangs fit together).

**Relaxation.** Jobs are arcs (j, s) from time s to s + p_j of a time line 0..H, a schedule is a path, and "every job once"
is priced with a multiplier u_j a job. A shortest path, whatever it repeats or leaves out, plus sum u is a lower bound. Two
rules make paths look like optimal schedules:

* a job starts at max(r_j, end of the job before it): left-shifted schedules suffice;
* i is directly followed by j (no idle time, r_j <= start of i) only if exchanging the two is dearer, or costs the same and
  i < j. The lexicographically smallest optimal sequence obeys this rule everywhere, so some optimum always remains.
  The rule forbids j after j, too.

**Elimination.** An arc whose best path costs more than ``upper - 1`` is in no better schedule (values are integers) and is
removed for good. When no path is left, ``upper`` is the optimum.

**Branching.** On a job j that the best path repeats: j starts at most at, or after, a time between two of its arcs.
A job whose starts all lie in [a, b] with b < a + p_j occupies [b, a + p_j) and evicts everybody else from there.

All numbers are multiples of 2^-12, and no sum of them along a path exceeds 2^40 (`EXACT` bounds value x slots): float
arithmetic on them is exact, and so is the proof.

**Complexity** pseudo-polynomial: O(n^2 H) a bound, O(n H) memory; exponential in the worst case.

References: Abdul-Razaq and Potts, Dynamic programming state-space relaxation for single-machine scheduling, JORS 39 (1988);
Tanaka, Fujikuma and Araki, An exact algorithm for single-machine scheduling without machine idle time, J. Scheduling 12
(2009), whose adjacency rules and eliminations these are (their method refines the state space where this one branches).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optsched.deadline import NEVER, Deadline
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.solvers.sequence_paths import NOTHING, ascend, clear_cores, forward, simple_ascend

EXACT = 2.0**37  # of value x slots: multipliers are at most 4 values, a path has at most a job a slot
ROOT_WORK = 5e9  # arc pairs looked at in the root's ascent: some ten seconds


@dataclass(frozen=True)
class SingleMachine:
    """``cost[j, s]`` of starting job j at s (integers, never falling in s), lengths, releases, horizon H.

    Shapes: cost f64[n, H + 1], length, release i64[n]. H must be late enough for every left-shifted schedule that could
    be better than the incumbent.
    """

    cost: Floats
    length: Ints
    release: Ints
    horizon: int

    @property
    def idle(self) -> bool:
        """May the machine have to wait (some job is released after 0)?"""
        return bool(self.release.max(initial=0) > 0)


@dataclass(frozen=True)
class SequenceProof:
    """What a proof left behind. ``bound`` holds for every schedule; ``starts`` i64[n] is a better schedule than the
    incumbent, if one was found; ``multipliers`` f64[n] are the best without sequencing rules. ``proved``: bound = value."""

    bound: int
    value: int
    starts: Ints | None
    nodes: int
    multipliers: Floats

    @property
    def proved(self) -> bool:
        """Is the best known schedule optimal?"""
        return self.bound == self.value


def prove_single_machine(
    machine: SingleMachine,
    upper: int,
    *,
    deadline: Deadline = NEVER,
    node_limit: int | None = None,
    search: Callable[[int], tuple[int, Ints] | None] | None = None,
    progress: Callable[[int, int, int], None] | None = None,
) -> SequenceProof:
    """Prove ``upper`` (the value of a known schedule) optimal, or find better, or say how far the proof came.

    Parameters
    ----------
    deadline : when to stop (looked at between nodes).
    node_limit : the same result on every machine, unlike a deadline.
    search : called once with the bound if the root leaves a gap; may return a better (value, start slots).
    progress : called with (value, bound, nodes) after every node.
    """
    tree = _Tree(machine, upper)
    multipliers = tree.open_root()
    better = search(tree.bound) if search is not None and tree.nodes else None
    if better is not None and better[0] < tree.upper:
        # steps are measured by the distance to the incumbent: with a better one the ascent begins anew
        tree = _Tree(machine, better[0], better[1])
        multipliers = tree.open_root()
    nodes = 0
    while tree.nodes and not (node_limit is not None and nodes >= node_limit):
        if deadline.passed:
            break
        nodes += 1
        tree.branch()
        if progress is not None:
            progress(tree.upper, tree.bound, nodes)
    return SequenceProof(tree.bound, tree.upper, tree.starts, nodes, multipliers)


@dataclass(frozen=True)
class _Node:
    bound: float
    alive: Bools
    u: Floats
    branch_job: int
    branch_time: int


class _Tree:
    """The open nodes, the node of the smallest bound last."""

    def __init__(self, machine: SingleMachine, upper: int, starts: Ints | None = None) -> None:
        self.machine, self.upper, self.starts = machine, upper, starts
        self.nodes: list[_Node] = []
        # without releases the machine never waits, and every path ends at the horizon
        self.ends = np.full(machine.horizon + 1, machine.idle)
        self.ends[machine.horizon] = True
        self.rounds = int(np.clip(ROOT_WORK / (machine.length.size**2 * machine.horizon), 20, 400))

    def open_root(self) -> Floats:
        """Bound all schedules; returns the multipliers that are best without sequencing rules."""
        m = self.machine
        at = np.arange(m.horizon + 1)
        alive = (at >= m.release[:, None]) & (at + m.length[:, None] <= m.horizon)
        u = np.zeros(m.length.size)
        simple_ascend(m.cost, u, m.length, alive, m.idle, float(self.upper), 2000)
        multipliers = u.copy()
        self.open(alive, u, self.rounds, 1.0, -NOTHING)
        return multipliers

    @property
    def bound(self) -> int:
        """Smallest bound of the open nodes, an integer because values are; the incumbent when none is open."""
        least = min((node.bound for node in self.nodes), default=float(self.upper))
        return min(int(np.ceil(least)), self.upper)

    def open(self, alive: Bools, u: Floats, iterations: int, theta: float, inherited: float) -> None:
        """Bound a node; keep it when it may hold a better schedule."""
        m = self.machine
        path = np.empty(m.length.size, dtype=np.int64)
        if not clear_cores(m.length, alive):
            return
        bound, arcs = ascend(
            m.cost, u, m.length, m.release, alive, self.ends, float(self.upper), iterations, theta, path
        )
        if bound > self.upper - 1:
            return
        if arcs < 0:  # the path is a schedule, and the bound is its value: the best of this node
            self.improve(path)
            return
        visits = self._path(alive, u)
        if visits is None:  # eliminations after the best bound have left no path
            return
        if all(len(starts) == 1 for starts in visits):
            self.improve(np.array(visits, dtype=np.int64)[:, 0])
            return
        windows = alive.sum(axis=1)
        if windows.min() == 0:  # eliminations have left a job without a start
            return
        if windows.max() == 1:  # one start each: the only schedule of this node, if it is one
            starts = np.argmax(alive, axis=1)
            if self._is_schedule(starts):
                self.improve(starts)
            return
        self.nodes.append(_Node(max(bound, inherited), alive, u, *self._choose(visits, alive)))
        self.nodes.sort(key=lambda node: -node.bound)

    def _is_schedule(self, starts: Ints) -> bool:
        """Does no job start before its release, or before the one before it has ended?"""
        order = np.argsort(starts, kind="stable")
        end = (starts + self.machine.length)[order]
        return bool(np.all(starts >= self.machine.release) and np.all(starts[order][1:] >= end[:-1]))

    def improve(self, starts: Ints) -> None:
        """A schedule better than the incumbent."""
        value = int(self.machine.cost[np.arange(starts.size), starts].sum())
        if value < self.upper:
            self.upper, self.starts = value, starts
            self.nodes = [node for node in self.nodes if node.bound <= value - 1]

    def _path(self, alive: Bools, u: Floats) -> list[list[int]] | None:
        """The starts of every job on the best path; None when there is no path."""
        m = self.machine
        n, horizon = m.length.size, m.horizon
        best = np.empty((horizon + 1, n))
        before = np.empty((horizon + 1, n), dtype=np.int64)
        forward(m.cost, u, m.length, m.release, alive, best, before)
        best[~self.ends] = NOTHING
        e, j = (int(k) for k in np.unravel_index(np.argmin(best), best.shape))
        if best[e, j] >= NOTHING:
            return None
        starts: list[list[int]] = [[] for _ in range(n)]
        while True:
            starts[j].append(e - int(m.length[j]))
            previous = int(before[e, j])
            if previous < 0:
                return starts
            e, j = previous // n, previous % n

    def _choose(self, visits: list[list[int]], alive: Bools) -> tuple[int, int]:
        """A long job whose repetitions on the best path lie far apart, and a time between them.

        Spread times length: proves the hardest of the first 25 wt40 instances in 108 nodes, spread alone not in 400.
        A path without repetitions misses a job: that one's starts (or, if it has
        only one left, somebody's) are split in the middle.
        """
        length = self.machine.length
        spread, job = max(((max(s) - min(s)) * int(length[j]) if s else -1, j) for j, s in enumerate(visits))
        if spread > 0:
            return job, (min(visits[job]) + max(visits[job])) // 2
        windows = alive.sum(axis=1)
        missing = [j for j, s in enumerate(visits) if not s and windows[j] > 1]
        job = max(missing or range(len(visits)), key=lambda j: int(windows[j]))
        window = np.flatnonzero(alive[job])
        return job, int(window[(window.size - 1) // 2])

    def branch(self) -> None:
        """Split the node of the smallest bound into its two children."""
        node = self.nodes.pop()
        for early in (True, False):
            alive = node.alive.copy()
            window = slice(node.branch_time + 1, None) if early else slice(0, node.branch_time + 1)
            alive[node.branch_job, window] = False
            self.open(alive, node.u.copy(), min(self.rounds, 60), 1.0, node.bound)
