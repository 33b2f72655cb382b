"""Shortest paths of `optsched.solvers.single_machine`, and the ascents of the multipliers that price them, compiled.

Jobs are arcs (j, s); ``alive`` bool[n, H + 1] says which are left, ``u`` f64[n] what a job pays for being on the path.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import njit
from optsched.problem.arrays import Bools, Floats, Ints

NOTHING = 1e18  # no path
QUANTUM = 4096.0  # multipliers are multiples of its inverse


@njit(forceinline=True)
def _may_follow(i: int, a: int, j: int, s: int, cost: Floats, length: Ints, release: Ints) -> bool:
    # j starts at s after i, which started at a
    if s != a + length[i] or release[j] > a:
        return True
    as_is = cost[i, a] + cost[j, s]
    exchanged = cost[j, a] + cost[i, a + length[j]]
    return as_is < exchanged or (as_is == exchanged and i < j)


# nogil: a call may take many seconds, in which another thread must be able to hear Ctrl-C
@njit(interpreted=False, nogil=True)
def forward(cost: Floats, u: Floats, length: Ints, release: Ints, alive: Bools, best: Floats, before: Ints) -> None:
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
def clear_cores(length: Ints, alive: Bools) -> bool:
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
def _keep(kept: Any, found: Any) -> None:
    # As `kept[:] = found`, which takes two seconds to compile: it can say in words what does not fit.
    for k in range(kept.size):
        kept[k] = found[k]


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
        moved = np.rint((u[k] + length * direction[k]) * QUANTUM) / QUANTUM
        u[k] = min(max(moved, -4 * upper), 4 * upper)


@njit(interpreted=False, nogil=True)
def ascend(
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
        forward(cost, trial, length, release, alive, best, before)
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
            _keep(u, trial)
            _keep(path, starts)
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
def simple_ascend(
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
            _keep(u, trial)
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
