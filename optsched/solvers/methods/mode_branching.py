"""The method ``mode-branching``: branch and bound over (order, mode) for gangs whose speed depends on their placement.

**Problem** P | r_j, size_j, alpha_j(placement) | f, f regular, for a handful of jobs; times may be any real numbers.

The method is serial generation extended by modes: put the jobs one after the other, each in some mode
(`optsched.models.mapped_modes`), at its earliest feasible start given those before it. Fix the modes of an optimal schedule
with the smallest sum of completions and list its jobs by (start, position): no job can move to the left, so generation in
this order gives every job its start. Hence it is enough to look at

* sequences whose (start, position) increase: each start is then the first moment, not before the previous start, at
  which the jobs that still run leave enough GPUs for the mode;
* starts before some other open job could have run and ended (it would have, and no job would be later);
* one of several modes that differ only by alike nodes on which the same GPUs become free at the same times.

A node is pruned if its cost so far and the least cost of every open job, in its best mode together with the running jobs,
add up to no less than the best known value. Exponential: about n! B^n without pruning. This method shares only the modes
with the formulations. Reference: Sprecher and Drexl, Eur. J. Oper. Res. 107 (1998), 431-450.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from optsched.bounds.regular import regular_cost
from optsched.compiled import njit
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.objectives import Objective
from optsched.solvers.linear_program import Size
from optsched.solvers.method import MethodReport, add_method
from optsched.solvers.outcome import there
from optsched.solvers.solve_state import SolveState

NAME = "mode-branching"
JOBS = 12
NODES = 200_000  # nodes between two checks of the time
ROUNDING = 1e-11  # relative to what is at stake: sums of times that lie on no grid depend on their order


def problem_of(instance: Instance, goal: Objective, offset: Ints, held: Ints, seconds: Floats) -> Problem:
    """Return the arrays of an instance and its modes.

    Parameters
    ----------
    instance
        Jobs and cluster.
    goal
        The objective.
    offset
        First mode of every job as in `MappedModes`, i64[n + 1].
    held
        GPUs of every mode on every node, i64[B, N].
    seconds
        Duration of every mode, f64[B].
    """
    cost, cluster = regular_cost(goal, instance), instance.cluster
    return Problem(
        *(instance.arrival.copy(), offset, held, seconds, cluster.node_gpus.copy(), cluster.node_group.copy()),
        *(cost.slope, cost.kink, cost.base, cost.maximum),
    )


def _applies(state: SolveState) -> str | None:
    if not state.placed:
        return "the speed of no job depends on its placement: other models are stronger"
    if state.instance.n > JOBS:
        return f"it is for at most {JOBS} jobs, not for {state.instance.n}"
    if state.modes is None:
        return "a gang has too many placements"
    if state.horizon is not None:
        return "it does not support a horizon"
    return None


def _run(state: SolveState) -> MethodReport:
    modes, incumbent = there(state.modes), there(state.value)
    problem = problem_of(state.instance, state.goal, modes.offset, modes.held, modes.seconds)
    seen, done = 0, False
    # If values have a step, they differ by far more than rounding. Else a value that is lower by less than this is no
    # better.
    margin = 0.0 if state.step is not None else float(state.at_stake) * ROUNDING + float(state.rounding_of_times) / 8
    stack = empty_stack(state.instance.n, modes.job.size, float(incumbent))
    while not done and not state.late:
        value_before = stack.best[0]
        done, nodes = branch(problem, stack, modes.job, margin, NODES)
        seen += nodes
        if stack.best[0] < value_before:
            state.offer(modes.schedule(state.instance, stack.best_mode.copy(), stack.best_start.copy(), NAME))
        state.report(seen)
    size = Size(columns=modes.job.size)
    if not done:
        return MethodReport("branch and bound", size, seen, note=f"the time limit came after {seen} nodes")
    if state.value is not None:
        state.raise_bound(state.value - 2 * Fraction(margin), "solver")
    return MethodReport("branch and bound", size, seen)


add_method(NAME, _applies, _run)


# The search of `mode_branching`, compiled: depth first, resumable, best child first.
class Problem(NamedTuple):
    """Arrays of `MappedModes` and `RegularCost`: n jobs, B modes, N nodes. ``alike`` i64[N]: the group of a node."""

    release: Floats
    offset: Ints
    held: Ints
    seconds: Floats
    capacity: Ints
    alike: Ints
    slope: Floats
    kink: Floats
    base: Floats
    maximum: bool


class Stack(NamedTuple):
    """State of the search. Level k has k jobs placed; its children are (mode, start, least value), best last."""

    level: Ints  # [the level]
    job: Ints  # i64[n] placed at each level, with mode, start, value up to there
    mode: Ints
    start: Floats
    paid: Floats
    children: Ints  # number of children that are left, i64[n]
    child: Ints  # i64[n, B]
    child_start: Floats
    child_least: Floats
    best: Floats  # [value]
    best_mode: Ints
    best_start: Floats


def empty_stack(n: int, modes: int, value: float) -> Stack:
    """Return the state of a search that has not begun.

    Parameters
    ----------
    n
        Number of jobs.
    modes
        Number of modes.
    value
        Value of a known schedule.
    """

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, dtype=np.int64)

    return Stack(
        np.array([-1]), ints(n), ints(n), np.zeros(n), np.zeros(n + 1), ints(n), ints(n, modes), np.zeros((n, modes)),
        np.zeros((n, modes)), np.array([value]), np.full(n, -1), np.zeros(n),
    )  # fmt: skip


@njit(interpreted=False)
def _cost(p: Problem, j: int, completion: float) -> float:
    return p.base[j] + p.slope[j] * max(completion - p.kink[j], 0.0)


@njit(interpreted=False)
def _add(p: Problem, first: float, second: float) -> float:
    return max(first, second) if p.maximum else first + second


@njit(interpreted=False)
def _free_profile(p: Problem, s: Stack, k: int, times: Floats, free: Ints) -> int:
    # Compute the free GPUs of every node from the last start on, free[i] from times[i] to the next; return their
    # number.
    now, nodes = s.start[k - 1] if k else -np.inf, p.capacity.size
    for v in range(nodes):
        free[0, v] = p.capacity[v]
    times[0] = now
    count = 1
    ends, order, running = np.empty(k), np.empty(k, dtype=np.int64), 0
    for i in range(k):
        ends[i] = s.start[i] + p.seconds[s.mode[i]]
        if ends[i] <= now:
            continue
        at = running  # sort by end; loops, because the array operations of numpy take seconds to compile
        while at > 0 and ends[order[at - 1]] > ends[i]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i
        running += 1
        for v in range(nodes):
            free[0, v] -= p.held[s.mode[i], v]
    for i in order[:running]:
        if ends[i] > times[count - 1]:
            times[count] = ends[i]
            for v in range(nodes):
                free[count, v] = free[count - 1, v]
            count += 1
        for v in range(nodes):
            free[count - 1, v] += p.held[s.mode[i], v]
    return count


@njit(interpreted=False)
def _earliest(p: Problem, b: int, release: float, times: Floats, free: Ints, count: int) -> float:
    # Free GPUs only grow, so a mode that fits once fits from then on.
    for i in range(count):
        fits = True
        for v in range(p.capacity.size):
            fits = fits and p.held[b, v] <= free[i, v]
        if fits:
            return max(release, times[i])
    return np.inf


@njit(interpreted=False)
def _twins(p: Problem, free: Ints, count: int) -> Bools:
    # [u, v], u < v: alike nodes with the same free GPUs at all later times
    n = p.capacity.size
    same = np.zeros((n, n), dtype=np.bool_)
    for u in range(n):
        for v in range(u + 1, n):
            same[u, v] = p.alike[u] == p.alike[v]
            for i in range(count):
                same[u, v] = same[u, v] and free[i, u] == free[i, v]
    return same


@njit(interpreted=False)
def _mirrored(p: Problem, b: int, twins: Bools) -> bool:
    for u in range(p.capacity.size):
        for v in range(u + 1, p.capacity.size):
            if twins[u, v] and p.held[b, u] < p.held[b, v]:
                return True
    return False


@njit(interpreted=False)
def _expand(p: Problem, s: Stack, k: int, placed: Bools, margin: float) -> None:
    # Find the children that can still be better of the node with k jobs placed, best last.
    n, nodes = p.release.size, p.capacity.size
    times, free = np.empty(k + 1), np.zeros((k + 1, nodes), dtype=np.int64)
    count = _free_profile(p, s, k, times, free)
    twins = _twins(p, free, count)
    start = np.empty(p.seconds.size)
    soonest, least = np.full(n, np.inf), np.zeros(n)
    for j in range(n):
        if placed[j]:
            continue
        for b in range(p.offset[j], p.offset[j + 1]):
            start[b] = _earliest(p, b, p.release[j], times, free, count)
            soonest[j] = min(soonest[j], start[b] + p.seconds[b])
        least[j] = _cost(p, j, soonest[j])
    s.children[k] = 0
    last, last_job = (s.start[k - 1], s.job[k - 1]) if k else (-np.inf, -1)
    for j in range(n):
        if placed[j]:
            continue
        others, first = s.paid[k], np.inf
        for i in range(n):
            if i != j and not placed[i]:
                others = _add(p, others, least[i])
                first = min(first, soonest[i])
        for b in range(p.offset[j], p.offset[j + 1]):
            if start[b] >= first or (start[b] == last and j < last_job) or _mirrored(p, b, twins):
                continue
            bound = _add(p, others, _cost(p, j, start[b] + p.seconds[b]))
            if bound < s.best[0] - margin:
                _insert(s, k, b, start[b], bound)


@njit(interpreted=False)
def _insert(s: Stack, k: int, b: int, start: float, bound: float) -> None:
    # sorted by bound, then start, both falling: the last child is explored first
    i = s.children[k]
    while i > 0 and (
        s.child_least[k, i - 1] < bound or (s.child_least[k, i - 1] == bound and s.child_start[k, i - 1] < start)
    ):
        s.child[k, i] = s.child[k, i - 1]
        s.child_start[k, i] = s.child_start[k, i - 1]
        s.child_least[k, i] = s.child_least[k, i - 1]
        i -= 1
    s.child[k, i] = b
    s.child_start[k, i] = start
    s.child_least[k, i] = bound
    s.children[k] += 1


@njit(interpreted=False)
def branch(p: Problem, s: Stack, owner: Ints, margin: float, nodes: int) -> tuple[bool, int]:
    """Continue the search for a limited number of nodes.

    Parameters
    ----------
    p
        The problem.
    s
        State of the search; changed.
    owner
        Job of every mode, i64[B].
    margin
        Amount by which a better value must be lower.
    nodes
        Largest number of nodes.

    Returns
    -------
    done
        Whether the search is complete.
    seen
        Number of nodes looked at.
    """
    n, seen = p.release.size, 0
    placed = np.zeros(n, dtype=np.bool_)
    for i in range(s.level[0]):
        placed[s.job[i]] = True
    if s.level[0] < 0:
        s.level[0] = 0
        s.paid[0] = -np.inf if p.maximum else 0.0
        _expand(p, s, 0, placed, margin)
    while seen < nodes:
        k = s.level[0]
        # children are sorted by bound: if the best of them cannot be better, none can
        if s.children[k] == 0 or s.child_least[k, s.children[k] - 1] >= s.best[0] - margin:
            if k == 0:
                return True, seen
            s.level[0] = k - 1
            placed[s.job[k - 1]] = False
            continue
        seen += 1
        s.children[k] -= 1
        b, start = s.child[k, s.children[k]], s.child_start[k, s.children[k]]
        j = owner[b]
        s.job[k], s.mode[k], s.start[k] = j, b, start
        s.paid[k + 1] = _add(p, s.paid[k], _cost(p, j, start + p.seconds[b]))
        if k + 1 == n:
            if s.paid[n] < s.best[0] - margin:
                s.best[0] = s.paid[n]
                for i in range(n):
                    s.best_mode[s.job[i]] = s.mode[i]
                    s.best_start[s.job[i]] = s.start[i]
            continue
        placed[j] = True
        s.level[0] = k + 1
        _expand(p, s, k + 1, placed, margin)
    return False, seen
