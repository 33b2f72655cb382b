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

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optsched.compiled import njit
from optsched.problem.arrays import Bools, Floats, Ints

NOTHING = 1e18  # no path
QUANTUM = 4096.0  # multipliers are multiples of its inverse
EXACT = 2.0**37  # of value x slots: multipliers are at most 4 values, a path has at most a job a slot
ROOT_WORK = 5e9  # arc pairs looked at in the root's ascent: some ten seconds


@dataclass(frozen=True)
class SingleMachine:
    """``cost[j, s]`` of starting job j at s (integers, never falling in s), lengths, releases, horizon H.

    Shapes: cost f64[n, H + 1], length, release i64[n]. H must leave room for every left-shifted schedule that could
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


@njit(inline="always")
def _may_follow(i: int, a: int, j: int, s: int, cost: Floats, length: Ints, release: Ints) -> bool:
    # j starts at s after i, which started at a
    if s != a + length[i] or release[j] > a:
        return True
    as_is = cost[i, a] + cost[j, s]
    exchanged = cost[j, a] + cost[i, a + length[j]]
    return as_is < exchanged or (as_is == exchanged and i < j)


# nogil: a call may take many seconds, in which another thread must be able to hear Ctrl-C
@njit(interpreted=False, nogil=True)
def _forward(cost: Floats, u: Floats, length: Ints, release: Ints, alive: Bools, best: Floats, before: Ints) -> None:
    """best[e, j]: cheapest path whose last arc is j, ending at e; ``before`` = its state before, e' n + i."""
    n, horizon = length.size, alive.shape[1] - 1
    best[:] = NOTHING
    for j in range(n):
        s = release[j]
        if alive[j, s]:
            best[s + length[j], j] = cost[j, s] - u[j]
            before[s + length[j], j] = -1
    for e in range(1, horizon + 1):
        for i in range(n):
            here = best[e, i]
            if here >= NOTHING:
                continue
            for j in range(n):
                s = max(e, release[j])
                if j == i or s > horizon or not alive[j, s]:
                    continue
                value = here + cost[j, s] - u[j]
                if value < best[s + length[j], j] and _may_follow(i, e - length[i], j, s, cost, length, release):
                    best[s + length[j], j] = value
                    before[s + length[j], j] = e * n + i


@njit(interpreted=False, nogil=True)
def _backward(cost: Floats, u: Floats, length: Ints, release: Ints, alive: Bools, ends: Bools, rest: Floats) -> None:
    """rest[e, i]: cheapest continuation after i ended at e."""
    n, horizon = length.size, alive.shape[1] - 1
    rest[:] = NOTHING
    for e in range(horizon, 0, -1):
        for i in range(n):
            a = e - length[i]
            if a < release[i] or not alive[i, a]:
                continue
            least = 0.0 if ends[e] else NOTHING
            for j in range(n):
                s = max(e, release[j])
                if j == i or s > horizon or not alive[j, s]:
                    continue
                value = rest[s + length[j], j] + cost[j, s] - u[j]
                if value < least and _may_follow(i, a, j, s, cost, length, release):
                    least = value
            rest[e, i] = least


@njit(interpreted=False)
def _eliminate(best: Floats, rest: Floats, total: float, cutoff: float, length: Ints, alive: Bools) -> int:
    """Remove arcs on no path of value <= cutoff; returns how many are left."""
    left = 0
    for j in range(length.size):
        for s in range(alive.shape[1] - length[j]):
            if alive[j, s]:
                if best[s + length[j], j] + rest[s + length[j], j] + total > cutoff:
                    alive[j, s] = False
                else:
                    left += 1
    return left


@njit(interpreted=False)
def _clear_cores(length: Ints, alive: Bools) -> bool:
    """Evict others from where a job surely runs; False when some job has no start left."""
    n, horizon = length.size, alive.shape[1] - 1
    for j in range(n):
        first, last = -1, -1
        for s in range(horizon + 1):
            if alive[j, s]:
                first = s if first < 0 else first
                last = s
        if first < 0:
            return False
        for i in range(n):
            if i != j:  # an arc (i, s) overlaps the core [last, first + p_j)
                for s in range(max(0, last - length[i] + 1), min(horizon + 1, first + length[j])):
                    alive[i, s] = False
    return True


@njit(interpreted=False)
def _step(u: Floats, direction: Floats, visits: Floats, length: float, upper: float) -> None:
    """Move along the subgradient 1 - visits, deflected by the last direction; stay on the grid of exact numbers."""
    # Where successive subgradients nearly cancel the step is long: measured, that is what leaves plateaus.
    square = 0.0
    for k in range(u.size):
        direction[k] = 1 - visits[k] + 0.7 * direction[k]
        square += direction[k] * direction[k]
    if square == 0:
        return
    length /= square
    for k in range(u.size):
        moved = np.round((u[k] + length * direction[k]) * QUANTUM) / QUANTUM
        u[k] = min(max(moved, -4 * upper), 4 * upper)


@njit(interpreted=False, nogil=True)
def _ascend(
    cost: Floats,
    u: Floats,
    length: Ints,
    release: Ints,
    alive: Bools,
    ends: Bools,
    upper: float,
    iterations: int,
    theta: float,
    path: Ints,
) -> tuple[float, int]:
    """Subgradient ascent (Polyak steps, deflected) over multipliers, removing arcs on the way.

    Changes ``u`` to the best multipliers and ``alive``; ``path[j]`` becomes the last start of j on the path of the
    best bound, -1 where j is not on it. Returns (bound, arcs of that path); arcs < 0: the path is a schedule.
    """
    n, horizon = length.size, alive.shape[1] - 1
    best = np.empty((horizon + 1, n))
    rest = np.empty((horizon + 1, n))
    before = np.empty((horizon + 1, n), dtype=np.int64)
    trial, direction, visits = u.copy(), np.zeros(n), np.empty(n)
    starts = np.empty(n, dtype=np.int64)
    bound, arcs, stalled = -NOTHING, 0, 0
    for iteration in range(iterations):
        _forward(cost, trial, length, release, alive, best, before)
        value, e, j = NOTHING, 0, 0
        for end in range(horizon + 1):
            if ends[end]:
                for last in range(n):
                    if best[end, last] < value:
                        value, e, j = best[end, last], end, last
        total = trial.sum()
        value = value + total if value < NOTHING else NOTHING
        if value > upper - 1:
            return value, 0
        visits[:] = 0
        starts[:] = -1
        count = 0
        while True:
            s = e - length[j]
            visits[j] += 1
            starts[j] = max(starts[j], s)
            count += 1
            previous = before[e, j]
            if previous < 0:
                break
            e, j = previous // n, previous % n
        feasible = np.all(visits == 1)
        if value > bound or feasible:
            bound, arcs, stalled = value, count, 0
            u[:] = trial
            path[:] = starts
        else:
            stalled += 1
            if stalled >= 15:
                theta, stalled = theta * 0.8, 0
        if feasible:
            return value, -count
        if iteration % 20 == 9:
            _backward(cost, trial, length, release, alive, ends, rest)
            _eliminate(best, rest, total, upper - 1, length, alive)
        if theta < 1e-3:
            break
        _step(trial, direction, visits, theta * (upper - value), upper)
    return bound, arcs


@njit(interpreted=False, nogil=True)
def cheapest_paths(cost: Floats, u: Floats, length: Ints, alive: Bools, idle: bool, best: Floats) -> None:
    """best[t]: cheapest path from 0 to t without any sequencing rule; ``idle``: waiting is allowed and free."""
    horizon = alive.shape[1] - 1
    best[0] = 0.0
    for t in range(1, horizon + 1):
        least = best[t - 1] if idle else NOTHING
        for j in range(length.size):
            s = t - length[j]
            if s >= 0 and alive[j, s] and best[s] < NOTHING:
                least = min(least, best[s] + cost[j, s] - u[j])
        best[t] = least


@njit(interpreted=False, nogil=True)
def _simple_ascend(
    cost: Floats, u: Floats, length: Ints, alive: Bools, idle: bool, upper: float, iterations: int
) -> float:
    """The same ascent without the rules: O(nH) an iteration, a good start for the multipliers. Changes ``u``."""
    n, horizon = length.size, alive.shape[1] - 1
    best = np.empty(horizon + 1)
    trial, direction, visits = u.copy(), np.zeros(n), np.empty(n)
    bound, stalled, theta = -NOTHING, 0, 1.0
    for _ in range(iterations):
        cheapest_paths(cost, trial, length, alive, idle, best)
        value = best[horizon] + trial.sum()
        if value > bound:
            bound, stalled = value, 0
            u[:] = trial
        else:
            stalled += 1
            if stalled >= 30:
                theta, stalled = theta * 0.8, 0
        visits[:] = 0
        t = horizon
        while t > 0:
            if idle and best[t] == best[t - 1]:
                t -= 1
                continue
            for j in range(n):
                s = t - length[j]
                if s >= 0 and alive[j, s] and best[t] == best[s] + cost[j, s] - trial[j]:
                    visits[j] += 1
                    t = s
                    break
        if np.all(visits == 1) or theta < 1e-3 or value > upper - 1:
            break
        _step(trial, direction, visits, theta * (upper - value), upper)
    return bound


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
    deadline: float | None = None,
    node_limit: int | None = None,
    search: Callable[[int], tuple[int, Ints] | None] | None = None,
    progress: Callable[[int, int, int], None] | None = None,
) -> SequenceProof:
    """Prove ``upper`` (the value of a known schedule) optimal, or find better, or say how far the proof came.

    Parameters
    ----------
    deadline : `time.perf_counter` at which to stop (looked at between nodes).
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
        if deadline is not None and time.perf_counter() > deadline:
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
        _simple_ascend(m.cost, u, m.length, alive, m.idle, float(self.upper), 2000)
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
        if not _clear_cores(m.length, alive):
            return
        bound, arcs = _ascend(
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
        _forward(m.cost, u, m.length, m.release, alive, best, before)
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
