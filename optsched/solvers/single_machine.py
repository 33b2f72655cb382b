"""Exact single-machine scheduling on an integer time axis: Lagrangian bounds on a graph that grows where they are weak.

**Problem** 1 | r_j | sum f_j(C_j), f_j(C) = max(w_j (C - k_j), 0), with integer r_j, p_j and values (also clusters on which
no two gangs fit together).

**Relaxation.** Jobs are arcs (j, s) from time s to s + p_j of a time line 0..H, a schedule is a path, and a multiplier u_j
prices "every job once". A shortest path, which may repeat or leave out jobs, plus sum u is a lower bound. Three
rules make paths similar to optimal schedules:

* a job starts at max(r_j, end of the job before it): left-shifted schedules suffice;
* i is directly followed by j (no idle time, r_j <= start of i) only if exchanging the two is dearer, or costs the same and
  i < j. The rule forbids j after j, too;
* three jobs follow each other directly only if no other sequence of them is cheaper, or as cheap and lexicographically
  smaller (only with release dates). The lexicographically smallest optimal sequence obeys these rules everywhere, so some
  optimum always remains.

**Multipliers** come from subgradient ascents over ever stronger relaxations: any paths; paths on which no job directly
follows itself, O(n H); the rule of pairs; counted jobs. The first multipliers are what the incumbent saves without each
job. A step follows the mean of the last subgradients, in units of their size; steps shrink at a fixed rate. Every now and
then local search improves the order of the jobs on a path.

**Orders.** i comes before j if even the earliest end of j is later than the last start of i. Without releases i also comes
before j if i < j is no longer than j and its cost grows no less than j's from the first end of j to the last end of i.
Proof: were j before i, exchanging them would cost no more (i ends no later than j did, jobs in between start no later, and i
gains at least what j loses) and give a smaller sequence (Emmons; it holds for any costs that never fall). Orders narrow
windows of starts, windows give orders.

**Elimination.** Arcs that lie on no path of value ``upper - 1`` or less are in no better schedule (values are integers) and
are removed for good. When no path is left, ``upper`` is the optimum.

**Sublimation.** Job after job is counted: its visits become part of the state, so that paths visit it exactly once. A state
is a *junction*: a time with the set of the counted jobs that are done. Arcs lead from junction to junction, and counting a
job doubles the arcs between its first start and its last end. Jobs are counted until there are a third more arcs. Then
multipliers are improved and arcs are removed again, mostly more than were added. The next job is the one that paths miss or
repeat most in relation to the share of arcs that double. Jobs that are known to come before or after it then do so on all
paths that are left. With release dates the machine may wait: then jobs are counted on the graph of the pairs that are left,
on which paths obey the rule of three, too.

**Branching** only where the graph would become larger than memory: on the starts of a job. A job whose starts all lie in
[a, b] with b < a + p_j occupies [b, a + p_j) and removes all other jobs from there.

All numbers are multiples of 2^-12, and no sum of them along a path exceeds 2^40 (`EXACT` bounds value x slots), apart from
costs that no better schedule has: float arithmetic on them is exact, and so is the proof.

**Complexity** pseudo-polynomial: O(n^2 H) a bound (mostly O(n H)), O(n H) memory; exponential in the worst case.

References: Emmons, One-machine sequencing to minimize certain functions of job tardiness, Operations Research 17 (1969);
Abdul-Razaq and Potts, Dynamic programming state-space relaxation for single-machine scheduling, JORS 39 (1988);
Ibaraki and Nakamura, A dynamic programming method for single machine scheduling, EJOR 76 (1994); Tanaka, Fujikuma and Araki,
An exact algorithm for single-machine scheduling without machine idle time, J. Scheduling 12 (2009).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optsched.deadline import NEVER, Deadline, Late
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.solvers.sequence_graph import SequenceGraph, graph_of_pairs
from optsched.solvers.sequence_pairs import PairPaths
from optsched.solvers.sequence_paths import (
    NOTHING,
    SQUARE,
    Ascent,
    Jobs,
    cheapest_paths,
    clear_cores,
    find_orders,
    simple_ascend,
    step,
)
from optsched.solvers.sequence_search import improve_gapless, improve_sequence

EXACT = 2.0**39  # value x slots: a multiplier is at most the value, a path has at most one job a slot
# largest number of steps of an ascent: without rules, by pairs, on a graph, and by pairs within a node
PLAIN, RULES, GRAPH, CHILD = 1000, 400, 200, 30
APART = 0.3  # first factor of steps where no job directly follows itself
STILL = 1e-3  # factor of steps at which an ascent ends
# It also ends when SOME steps close no more than a part of the gap: before any job is counted, and afterwards.
SOME, LITTLE, ENOUGH = 25, 0.03, 0.1
Progress = Callable[[int, int, int], None] | None  # (value, bound, stages)
CHUNK = 3e7  # arcs looked at in a call of the plain ascent, between two checks of the time: a tenth of a second
SEARCH, PORTION = 30_000_000, 20_000_000  # positions looked at in a local search, and in one call of it
# length of the first step of an ascent, as a part of the gap, by pairs and on a graph
FIRST, LATER = 0.3, 0.06
SHORTER = 0.985  # factor from step to step; MANY jobs and more need proportionally more steps
MANY = 150
EVERY = 10  # steps between two reductions
# largest number of jobs that are counted together, and growth of the number of arcs (or edges) at which no further job is
TOGETHER, GROWTH = 20, 1.3
EDGES = 20_000_000  # largest number of edges of a graph, or of arcs: some 700 MB


@dataclass(frozen=True)
class SingleMachine:
    """Jobs of one machine: starting job j at s costs ``max(rise[j] s + base[j], 0)``.

    Costs of integer starts are integers and never fall.

    Shapes: rise, base f64[n], length, release i64[n]. The horizon H must be late enough for every left-shifted schedule
    that could be better than the incumbent; without releases it is the sum of the lengths.
    """

    rise: Floats
    base: Floats
    length: Ints
    release: Ints
    horizon: int

    @property
    def idle(self) -> bool:
        """True if the machine may have to wait (some job is released after 0)."""
        return bool(self.release.max(initial=0) > 0)

    @property
    def size(self) -> int:
        """Number of jobs."""
        return int(self.length.size)

    def cost(self, job: Ints, start: Ints | int) -> Floats:
        """Return the costs of starting jobs, f64[k].

        Parameters
        ----------
        job
            Numbers of the jobs, i64[k].
        start
            Starts in slots, i64[k] or one for all.
        """
        return np.maximum(self.rise[job] * start + self.base[job], 0.0)

    def sorted(self, order: Ints) -> SingleMachine:
        """Return the jobs in another order.

        Parameters
        ----------
        order
            Present numbers of the jobs, i64[n].
        """
        return SingleMachine(self.rise[order], self.base[order], self.length[order], self.release[order], self.horizon)


@dataclass(frozen=True)
class SequenceProof:
    """Result of a proof.

    ``bound`` holds for every schedule; ``starts`` i64[n] is a better schedule than the incumbent, if one was found.
    ``stages``: jobs counted and nodes split. ``proved``: bound = value.
    """

    bound: int
    value: int
    starts: Ints | None
    stages: int

    @property
    def proved(self) -> bool:
        """True if the best known schedule is optimal."""
        return self.bound == self.value


def prove_single_machine(
    machine: SingleMachine,
    upper: int,
    *,
    order: Ints | None = None,
    deadline: Deadline = NEVER,
    stage_limit: int | None = None,
    priced: Callable[[Floats, float], None] | None = None,
    progress: Progress = None,
) -> SequenceProof:
    """Prove ``upper`` optimal, or find a better schedule, or report how far the proof came.

    Parameters
    ----------
    machine
        The jobs.
    upper
        Value of a known schedule.
    order
        Sequence from which local search begins, i64[n] (default: by release).
    deadline
        Time at which to stop (checked every tenth of a second or so).
    stage_limit
        Largest number of stages; unlike a deadline it gives the same result on every machine.
    priced
        Function called with the best multipliers f64[n] without sequencing rules, and the bound that they prove;
        most of the remaining time is for finding them.
    progress
        Function called with (value, bound, stages) after every stage.
    """
    if machine.size == 1:
        return _alone(machine, upper, priced)
    # Shorter jobs, and jobs whose costs grow more, get smaller numbers: such a job can be proved to come first.
    jobs = np.arange(machine.size)
    sort = np.lexsort((machine.cost(jobs, 0) - machine.cost(jobs, machine.horizon), machine.length))
    place = np.argsort(sort)
    machine = machine.sorted(sort)
    order = np.argsort(machine.release, kind="stable") if order is None else place[order]
    proof = _Proof(machine, upper, order, deadline, stage_limit, progress)
    with suppress(Late):
        u = proof.relaxed()
        if priced is not None:
            priced(u[place], proof.plain(u))
        u = proof.apart(u)
        proof.open(proof.alive.copy(order="F"), u, RULES, -NOTHING)
        while proof.nodes and not proof.full:
            proof.branch()
    starts = None if proof.starts is None else proof.starts[place]
    return SequenceProof(proof.bound, proof.upper, starts, proof.stages)


def _alone(machine: SingleMachine, upper: int, priced: Callable[[Floats, float], None] | None) -> SequenceProof:
    # One job starts at its release. A table of one row is in the order of C and of Fortran: numba has another type for it,
    # for which all loops over ``alive`` would be compiled once more.
    cost = float(machine.cost(np.array([0]), machine.release)[0])
    if priced is not None:
        priced(np.array([cost]), cost)
    value = min(int(cost), upper)
    return SequenceProof(value, value, machine.release.copy() if value < upper else None, 0)


@dataclass(frozen=True)
class _Node:
    bound: float
    alive: Bools
    u: Floats
    job: int
    time: int


class _Proof:
    """Open nodes, that of the smallest bound last; ``current`` bounds the node in work (`NOTHING`: none).

    `Late` may end it anywhere: ``bound`` holds at every moment.
    """

    def __init__(
        self, machine: SingleMachine, upper: int, order: Ints, deadline: Deadline, limit: int | None, progress: Progress
    ) -> None:
        self.machine, self.upper, self.deadline, self.limit, self.progress = machine, upper, deadline, limit, progress
        self.order, n = order, machine.length.size
        self.slowly = max(n / MANY, 1.0)
        self.jobs = Jobs.of(machine.rise, machine.base, machine.length, machine.release)
        self.starts: Ints | None = None
        self.nodes: list[_Node] = []
        self.current, self.stages = -NOTHING, 0
        self.missed, self._seen = np.zeros(n), np.argsort(order)
        self._random = np.array([1])

    @property
    def bound(self) -> int:
        """Smallest bound of all open nodes, an integer because values are; the incumbent when no node is open."""
        least = min([self.current, *(node.bound for node in self.nodes)])
        return self.upper if least >= self.upper else max(int(np.ceil(least)), 0)

    @property
    def full(self) -> bool:
        """True if the limit of stages is reached."""
        return self.limit is not None and self.stages >= self.limit

    @cached_property
    def alive(self) -> Bools:
        """Starts that no schedule of the horizon rules out, bool[n, H + 1]."""
        m, at = self.machine, np.arange(self.machine.horizon + 1)[:, None]
        return ((at >= m.release) & (at + m.length <= m.horizon)).T

    def relaxed(self) -> Floats:
        """Return multipliers of the plain relaxation, f64[n], by an ascent that has most of the time."""
        self.search(SEARCH * self.order.size**2 // 10_000)
        return self._simple_ascent(Ascent.at(self._saved()), False)

    def apart(self, u: Floats) -> Floats:
        """Return multipliers of the relaxation in which no job directly follows itself, f64[n].

        Parameters
        ----------
        u
            Multipliers of the plain relaxation, f64[n].
        """
        return self._simple_ascent(Ascent.at(u, APART), True)

    def _simple_ascent(self, ascent: Ascent, apart: bool) -> Floats:
        m, most = self.machine, self.deadline.share(0.7)
        theta, rounds, some = float(ascent.state[0]), PLAIN, int(max(CHUNK / (ascent.u.size * m.horizon), 1))
        while theta >= STILL and rounds > 0 and not most.passed:
            steps = min(rounds, some)
            theta = simple_ascend(self.jobs, ascent, self.alive, m.idle, apart, float(self.upper), steps)
            rounds -= some
        return ascent.u

    def _saved(self) -> Floats:
        """Return what the best known schedule saves without each job, f64[n]: its cost, and the delay of later jobs."""
        starts, saved = self.starts_of(self.order), np.zeros(self.order.size)
        cost = self.machine.cost
        for k, j in enumerate(self.order.tolist()):
            later = self.order[k + 1 :]
            sooner = starts[later] - self.machine.length[j]
            saved[j] = cost(self.order[k : k + 1], starts[j])[0] + np.sum(
                cost(later, starts[later]) - cost(later, sooner)
            )
        return np.minimum(saved, float(self.upper))

    def plain(self, u: Floats) -> float:
        """Return the bound that multipliers prove without sequencing rules."""
        m, path = self.machine, np.empty(self.machine.horizon + 1)
        cheapest_paths(self.jobs, u, self.alive, m.idle, path)
        return float(path[-1] + u.sum())

    def search(self, budget: int) -> None:
        """Search locally from the best sequence, in portions, until the budget is spent or the bound is reached."""
        value = np.inf
        while budget > 0 and value > self.bound and not self.deadline.passed:
            portion = min(budget, PORTION)
            value = self._improve(self.order, portion)
            budget -= portion
        self._try(self.order)

    def _improve(self, order: Ints, budget: int) -> float:
        if self.machine.idle:
            return improve_sequence(order, budget, float(self.bound), self._random, self.jobs)
        return improve_gapless(order, budget, float(self.bound), self._random, self.jobs)

    def _follow(self, starts: Ints) -> None:
        """Search locally from the order of the jobs on a path; a job that the path misses keeps its last start."""
        self._seen = np.where(starts >= 0, starts, self._seen)
        order = np.argsort(self._seen, kind="stable")
        self._improve(order, SEARCH * order.size // 1000)
        self._try(order)

    def _try(self, order: Ints) -> None:
        self.improve(self.starts_of(order))

    def starts_of(self, order: Ints) -> Ints:
        """Return the starts of the jobs in an order, i64[n].

        Parameters
        ----------
        order
            The jobs in order, i64[n].
        """
        starts, now = np.empty(order.size, dtype=np.int64), 0
        for j in order.tolist():
            starts[j] = max(now, int(self.machine.release[j]))
            now = int(starts[j] + self.machine.length[j])
        return starts

    def improve(self, starts: Ints) -> None:
        """Keep a schedule if it is better than the incumbent."""
        value = int(self.machine.cost(np.arange(starts.size), starts).sum())
        if value < self.upper:
            self.upper, self.starts, self.order = value, starts.copy(), np.argsort(starts, kind="stable")
            self.nodes = [node for node in self.nodes if node.bound <= value - 1]

    def open(self, alive: Bools, u: Floats, iterations: int, inherited: float) -> None:
        """Look for better schedules among the arcs; keep a node if the search did not finish."""
        self.current = inherited
        if not self._closed(alive, u, iterations) and alive.any(axis=1).all():
            windows = alive.sum(axis=1)
            if windows.max() == 1:
                self._try(np.argsort(np.argmax(alive, axis=1), kind="stable"))  # at least as good as the only schedule
            else:  # keep a node for later; it is split at the middle start of a long job that paths miss or repeat
                job = int(np.argmax(np.where(windows > 1, self.missed * self.machine.length + 1e-6 * windows, -1.0)))
                window = np.flatnonzero(alive[job])
                self.nodes.append(_Node(self.current, alive, u, job, int(window[(window.size - 1) // 2])))
                self.nodes.sort(key=lambda node: -node.bound)
        self.current = NOTHING

    def _closed(self, alive: Bools, u: Floats, iterations: int) -> bool:
        self.jobs.before[:] = False
        self.deadline.check()
        if self._ordered(alive) is None or not clear_cores(self.machine.length, alive):
            return True
        self.search(SEARCH)  # an incumbent far above the optimum removes little, and makes steps too long
        pairs = PairPaths(self.jobs, alive, self.machine.idle, self.deadline)
        if self.ascend(pairs, u, iterations, FIRST, LITTLE, iterations // 4):
            return True
        self.search(SEARCH * u.size // (10 if self.machine.idle else 50))
        self.deadline.check()
        paths: PairPaths | SequenceGraph = pairs
        if self.machine.idle:
            graph = graph_of_pairs(pairs, u, self.upper - 1 - float(u.sum()), EDGES)
            alive &= pairs.alive()
            del pairs
            if graph is None:
                return False
            paths = SequenceGraph(self.jobs, graph, self.machine.horizon)
            if self.ascend(paths, u, GRAPH, LATER, ENOUGH):
                return True
        if self._sublimated(paths, u, alive):
            return True
        alive &= paths.alive()
        return False

    def _ordered(self, alive: Bools) -> tuple[Ints, Ints] | None:
        """Return first and last start of each job, after orders have narrowed ``alive``; None: it has no better schedule."""
        if not alive.any(axis=1).all():
            return None
        first, last = alive.argmax(axis=1), self.machine.horizon - alive[:, ::-1].argmax(axis=1)
        if not find_orders(self.jobs, first, last, self.machine.idle):
            return None
        at = np.arange(self.machine.horizon + 1)
        alive &= (at >= first[:, None]) & (at <= last[:, None])
        return first, last

    def _sublimated(self, paths: PairPaths | SequenceGraph, u: Floats, alive: Bools) -> bool:
        """Count one job after another; return whether no better path is left.

        False: there are too many arcs or edges, or a limit came.
        """
        counted = np.zeros(u.size, dtype=bool)
        while not self.full and paths.size <= EDGES // 2 and not counted.all():
            # gain by cost: how often paths miss or repeat the job, and which part of the graph doubles
            gain = np.where(counted, -1.0, self.missed / (paths.doubled() + 1e-4))
            alive &= paths.alive()
            windows = self._ordered(alive)
            if windows is None:
                return True
            most = GROWTH * paths.size
            for k, job in enumerate(np.argsort(-gain, kind="stable")[:TOGETHER].tolist()):
                if k and (gain[job] <= 0 or paths.size >= most):
                    break
                self.deadline.check()
                counted[job] = True
                paths.count(job, *windows)
            if paths.size == 0 or self.ascend(paths, u, GRAPH, LATER, ENOUGH):
                return True
            self._told()
        return False

    def _told(self) -> None:
        self.stages += 1
        if self.progress is not None:
            self.progress(self.upper, self.bound, self.stages)

    def ascend(
        self, paths: PairPaths | SequenceGraph, u: Floats, rounds: int, theta: float, enough: float, least: int = 0
    ) -> bool:
        """Make a subgradient ascent (Polyak steps, deflected) over multipliers, removing arcs on the way; changes ``u``.

        It returns True if no path is better than the incumbent, which may have become better here. Else ``missed``
        f64[n] is the mean of (visits - 1)^2 of each job.
        """
        trial, mean, square = u.copy(), np.zeros(u.size), np.full(u.size, SQUARE)
        bound, due, missed, before = -NOTHING, 0, np.zeros(u.size), -NOTHING
        scale, slowly = self.machine.length.astype(np.float64), self.slowly
        some = int(SOME * slowly)
        for k in range(int(rounds * slowly)):
            total = float(trial.sum())
            value = paths.cheapest(trial) + total
            if value > self.upper - 1:
                return True
            if np.all(paths.visits == 1):  # the cheapest path is a schedule: the best one of this node
                self.improve(paths.starts)
                return True
            missed += (paths.visits - 1) ** 2
            if value > bound:
                before = max(before, value) if k == 0 else before
                bound = value
                u[:] = trial
                self.current = max(self.current, bound)
                if k >= due:
                    self._follow(paths.starts)
                    paths.reduce(u, self.upper - 1 - total)
                    due = k + EVERY
            if k % some == some - 1 and k >= least:
                if bound - before < enough * (self.upper - bound):
                    break
                before = bound
            self.deadline.check()
            if theta < STILL:
                break
            step(trial, mean, square, paths.visits, scale, theta * (self.upper - bound), float(self.upper))
            theta *= SHORTER ** (1 / slowly)
        self.missed = missed / (k + 1)
        total = float(u.sum())
        paths.cheapest(u)
        paths.reduce(u, self.upper - 1 - total)
        return False

    def branch(self) -> None:
        """Split the node of the smallest bound into its two children."""
        node = self.nodes[-1]  # the node stays in the list until both children are opened, so that its bound counts
        for early in (True, False):
            alive = node.alive.copy(order="F")
            window = slice(node.time + 1, None) if early else slice(0, node.time + 1)
            alive[node.job, window] = False
            self.open(alive, node.u.copy(), CHILD, node.bound)
        self.nodes = [other for other in self.nodes if other is not node]
        self._told()
