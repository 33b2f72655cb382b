"""Shortest paths of `optsched.solvers.single_machine`, and the ascents of the multipliers that price them, compiled.

Jobs are arcs (j, s); ``alive`` bool[n, H + 1] are the arcs that are left, ``u`` f64[n] is the price of each job on a path.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optsched.compiled import njit
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.solvers.generation import copy_to

NOTHING = 1e18  # no path
QUANTUM = 4096.0  # multipliers are multiples of 1 / QUANTUM
SQUARE = 0.01  # first mean of squared subgradients
SHORTER = 0.995  # factor from step to step of an ascent without the rules


class Jobs(NamedTuple):
    """Jobs of a machine: starting job j at s costs ``max(rise[j] s + base[j], 0)``; f64[n], lengths and releases i64[n].

    ``before[i, j]`` bool[n, n]: i is before j in the lexicographically smallest best sequence, if that sequence is among the
    starts of the current node; it is computed again for every node.
    """

    rise: Floats
    base: Floats
    length: Ints
    release: Ints
    before: Bools

    @classmethod
    def of(cls, rise: Floats, base: Floats, length: Ints, release: Ints) -> Jobs:
        """Return jobs without known orders.

        Parameters
        ----------
        rise
            Rise of the cost of a late start by slot, f64[n].
        base
            Cost of a start at 0 if it were late, f64[n]; negative if it is early.
        length
            Durations in slots, i64[n].
        release
            First starts, i64[n].
        """
        return cls(rise, base, length, release, np.zeros((length.size, length.size), dtype=bool))


@njit(forceinline=True)
def cost_of(j: int, s: int, jobs: Jobs) -> float:
    """Return the cost of starting a job at s.

    Parameters
    ----------
    j
        Number of the job.
    s
        Its start.
    jobs
        The jobs.
    """
    return max(jobs.rise[j] * s + jobs.base[j], 0.0)


@njit(forceinline=True)
def may_follow(i: int, a: int, j: int, s: int, jobs: Jobs) -> bool:
    """Return whether j, started at s, may follow i, started at a, by the rule of pairs.

    Parameters
    ----------
    i
        Number of the job before.
    a
        Its start.
    j
        Number of the job after.
    s
        Its start.
    jobs
        The jobs.
    """
    if s == a + jobs.length[i] and jobs.release[j] <= a:
        as_is = cost_of(i, a, jobs) + cost_of(j, s, jobs)
        exchanged = cost_of(j, a, jobs) + cost_of(i, a + jobs.length[j], jobs)
        if as_is > exchanged or (as_is == exchanged and i > j):
            return False
    return not jobs.before[j, i]


@njit(forceinline=True)
def nearest(rank: Ints, known: int, count: int, value: Floats) -> int:
    """Return the next index in order of ``value``, and sort it in.

    Parameters
    ----------
    rank
        Indices, i64: ``rank[:known]`` are sorted, ``rank[known:count]`` are not; changed.
    known
        Number of sorted indices.
    count
        Number of indices.
    value
        Values, f64.
    """
    best = known
    for k in range(known + 1, count):
        if value[rank[k]] < value[rank[best]]:
            best = k
    found = rank[best]
    rank[best] = rank[known]
    rank[known] = found
    return int(found)


@njit(interpreted=False)
def clear_cores(length: Ints, alive: Bools) -> bool:
    """Remove arcs of other jobs from times at which a job certainly runs; return False if a job has no start left.

    Parameters
    ----------
    length
        Durations in slots, i64[n].
    alive
        Arcs that are left, bool[n, H + 1]; changed.
    """
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


@njit(forceinline=True)
def _growth(j: int, t: int, jobs: Jobs) -> float:
    """Return the growth of j's cost if it ends at t + 1 instead of t."""
    s = t - jobs.length[j]
    return cost_of(j, s + 1, jobs) - cost_of(j, s, jobs)


@njit(interpreted=False)
def _grows(i: int, j: int, soonest: int, latest: int, jobs: Jobs) -> bool:
    """Return whether i's cost grows no less than j's from each completion from ``soonest`` to ``latest`` - 1.

    A cost grows at one rate before the completion at which the job becomes late, at another one after the next completion.
    """
    if soonest >= latest:
        return True
    if _growth(i, soonest, jobs) < _growth(j, soonest, jobs):
        return False
    for q in (i, j):
        if jobs.rise[q] > 0:
            late = jobs.length[q] + np.floor(-jobs.base[q] / jobs.rise[q])
            for t in (late - 1, late, late + 1):
                if soonest < t < latest and _growth(i, np.int64(t), jobs) < _growth(j, np.int64(t), jobs):
                    return False
    return True


@njit(interpreted=False)
def find_orders(jobs: Jobs, first: Ints, last: Ints, idle: bool) -> bool:
    """Fill ``jobs.before`` and narrow windows of starts until no new order is found.

    Orders that were known before narrow the windows only if new ones are found. Jobs must be in order of their lengths.
    O(n^3) each time that orders are found.

    Parameters
    ----------
    jobs
        The jobs; ``before`` is changed.
    first
        First start of every job, i64[n]; changed.
    last
        Last start of every job, i64[n]; changed.
    idle
        The machine may have to wait.

    Returns
    -------
    bool
        False if the orders contradict each other: the smallest best sequence does not start within these windows.
    """
    n, before, length = jobs.length.size, jobs.before, jobs.length
    horizon = (last + length).max()
    while True:
        changed = False
        for i in range(n):
            for j in range(n):
                if i == j or before[i, j]:
                    continue
                soonest, latest = first[j] + length[j], last[i] + length[i]
                if last[i] < soonest or (i < j and not idle and _grows(i, j, soonest, latest, jobs)):
                    before[i, j], changed = True, True
        if not changed:
            return True
        for k in range(n):
            for i in range(n):
                if before[i, k]:
                    for j in range(n):
                        before[i, j] |= before[k, j]
        start, end = first.copy(), last + length
        heads, tails = np.argsort(start), np.argsort(-end)
        for j in range(n):
            if before[j, j]:
                return False
            soonest, latest = 0, horizon
            for k in range(n):
                h, t = heads[k], tails[k]
                if before[h, j]:
                    soonest = max(soonest, start[h]) + length[h]
                if before[j, t]:
                    latest = min(latest, end[t]) - length[t]
            first[j], last[j] = max(first[j], soonest), min(last[j], latest - length[j])
            if first[j] > last[j]:
                return False


@njit(interpreted=False)
def step(u: Floats, mean: Floats, square: Floats, visits: Floats, scale: Floats, length: float, upper: float) -> None:
    """Move along the mean of the last subgradients 1 - visits, in units of their size; stay on the grid of exact numbers.

    Parameters
    ----------
    u
        Multipliers, f64[n]; changed.
    mean
        Mean of the last subgradients, f64[n]; changed.
    square
        Mean of their squares, f64[n]; changed. The price of a job that paths seldom miss or repeat moves further.
    visits
        Visits of each job on the cheapest path, f64[n].
    scale
        Scale of each multiplier, f64[n]: prices of longer jobs are larger.
    length
        Rise of the bound along the step if it rose as ``mean`` says.
    upper
        Value of the incumbent; multipliers are no larger.
    """
    slope = 0.0
    for k in range(u.size):
        missed = 1 - visits[k]
        mean[k] = 0.8 * mean[k] + 0.2 * missed
        square[k] = 0.98 * square[k] + 0.02 * missed * missed
        slope += scale[k] * mean[k] * mean[k] / np.sqrt(square[k])
    if slope <= 0:
        return
    for k in range(u.size):
        moved = np.rint((u[k] + length / slope * scale[k] * mean[k] / np.sqrt(square[k])) * QUANTUM) / QUANTUM
        u[k] = min(max(moved, -upper), upper)


@njit(interpreted=False)
def cheapest_paths(jobs: Jobs, u: Floats, alive: Bools, idle: bool, best: Floats) -> None:
    """Compute best[t], the cheapest path from 0 to t without any sequencing rule.

    Parameters
    ----------
    jobs
        The jobs.
    u
        Multipliers, f64[n].
    alive
        Arcs that are left, bool[n, H + 1].
    idle
        Waiting is allowed and free.
    best
        Output, f64[H + 1].
    """
    length, horizon = jobs.length, alive.shape[1] - 1
    best[:] = NOTHING
    best[0] = 0.0
    for s in range(horizon):
        here = best[s]
        if idle and here < best[s + 1]:
            best[s + 1] = here
        if here < NOTHING:
            for j in range(length.size):
                if alive[j, s] and here + (cost_of(j, s, jobs) - u[j]) < best[s + length[j]]:
                    best[s + length[j]] = here + (cost_of(j, s, jobs) - u[j])


@njit(interpreted=False)
def _two_cheapest(jobs: Jobs, u: Floats, alive: Bools, idle: bool, apart: bool, best: Floats, last: Ints) -> None:
    """Compute best[0, t], the cheapest path from 0 to t, and best[1, t], the cheapest with another last job.

    ``best`` is f64[2, H + 1]. ``last`` i64[2, H + 1] are the last jobs; -1: the path waits last. With ``apart`` no job
    directly follows itself.
    """
    length, horizon = jobs.length, alive.shape[1] - 1
    best[:] = NOTHING
    last[:] = -2
    best[0, 0], last[0, 0] = 0.0, -1
    for s in range(horizon):
        if idle and best[0, s] < best[1, s + 1]:
            first = best[0, s] < best[0, s + 1]
            best[1, s + 1], last[1, s + 1] = (best[0, s + 1], last[0, s + 1]) if first else (best[0, s], -1)
            if first:
                best[0, s + 1], last[0, s + 1] = best[0, s], -1
        if best[0, s] >= NOTHING:
            continue
        for j in range(length.size):
            if alive[j, s]:
                value = best[1 if apart and last[0, s] == j else 0, s] + (cost_of(j, s, jobs) - u[j])
                t = s + length[j]
                if value < best[1, t]:
                    if value < best[0, t]:
                        best[1, t], last[1, t] = best[0, t], last[0, t]
                        best[0, t], last[0, t] = value, j
                    else:
                        best[1, t], last[1, t] = value, j


class Ascent(NamedTuple):
    """State of an ascent without the rules: best multipliers ``u``, those to try next, ``mean`` and ``square`` of `step`.

    All are f64[n]. ``state`` f64[2]: the factor theta of its steps and the best value.
    """

    u: Floats
    trial: Floats
    mean: Floats
    square: Floats
    state: Floats

    @classmethod
    def at(cls, u: Floats, theta: float = 1.0) -> Ascent:
        """Return the state at the beginning.

        Parameters
        ----------
        u
            First multipliers, f64[n].
        theta
            First factor of the steps.
        """
        return cls(u.copy(), u.copy(), np.zeros(u.size), np.full(u.size, SQUARE), np.array([theta, -NOTHING]))


@njit(interpreted=False)
def simple_ascend(
    jobs: Jobs, ascent: Ascent, alive: Bools, idle: bool, apart: bool, upper: float, iterations: int
) -> float:
    """Make a subgradient ascent without the rules of pairs: O(nH) an iteration, a good start for the multipliers.

    Parameters
    ----------
    jobs
        The jobs.
    ascent
        State of the ascent; changed.
    alive
        Arcs that are left, bool[n, H + 1].
    idle
        Waiting is allowed and free.
    apart
        No job directly follows itself.
    upper
        Value of the incumbent.
    iterations
        Largest number of steps.

    Returns
    -------
    float
        The current factor theta of the steps. Below 1e-3 the ascent is done; it is 0 if nothing better than
        ``upper`` is left.
    """
    u, trial, mean, square, state = ascent
    theta, bound = state[0], state[1]
    length, n, horizon, scale = jobs.length, jobs.length.size, alive.shape[1] - 1, jobs.length.astype(np.float64)
    best, last, visits = np.empty((2, horizon + 1)), np.empty((2, horizon + 1), dtype=np.int64), np.empty(n)
    for _ in range(iterations):
        _two_cheapest(jobs, trial, alive, idle, apart, best, last)
        value = best[0, horizon] + trial.sum()
        if value > bound:
            bound = value
            copy_to(u, trial)
        visits[:] = 0
        t, j = horizon, last[0, horizon]
        while t > 0:
            if j < 0:
                t -= 1
            else:
                visits[j] += 1
                t -= length[j]
            j = last[1 if apart and j >= 0 and last[0, t] == j else 0, t]
        if np.all(visits == 1) or theta < 1e-3 or value > upper - 1:
            return 0.0
        step(trial, mean, square, visits, scale, theta * (upper - bound), upper)
        theta *= SHORTER
    state[0], state[1] = theta, bound
    return float(theta)
