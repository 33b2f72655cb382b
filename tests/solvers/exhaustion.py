"""Exact optima of jobs that share GPUs by trying everything, in fractions of the floats as given, clock and all.

Two jobs: every vertex of the (start, start) plane. Three: every order of starts and ends, a linear program each (scipy's
HiGHS). Nothing of the package computes here but the instance itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from optsched.problem.instance import Instance


def sharing_optimum(instance: Instance, objective: str) -> Fraction:
    """The least sum of completion (or flow) times of two or three jobs that may share GPUs; three: to 1e-9 of the flow."""
    before = sum(map(Fraction, instance.arrival.tolist())) if objective == "total_flow_time" else Fraction(0)
    return (_of_pair(instance) if instance.n == 2 else _of_three(instance)) - before


def _slow(instance: Instance, j: int, k: int) -> Fraction:
    known = instance.interference
    assert known is not None
    return max(Fraction(1), Fraction(known.ratios[j][k] or 0 if known.ratios else known.ratio))


def _of_pair(instance: Instance) -> Fraction:
    release = [Fraction(r) for r in instance.arrival.tolist()]
    work = [Fraction(p) for p in instance.duration.tolist()]
    apart = sum(release) + sum(work)
    if _fit_apart(instance):
        return apart
    slow = _slow(instance, 0, 1), _slow(instance, 1, 0)
    return min(_sum_of_ends(s, release, work, slow) for s in _vertices(release, work, slow))


def _fit_apart(instance: Instance) -> bool:
    room, need = instance.cluster.node_gpus.tolist(), instance.gpus.tolist()
    splits = [
        c for c in itertools.product(*(range(size + 1) for size in room)) if sum(c) == need[0]
    ]  # what the first job holds
    return any(sum(size - c for size, c in zip(room, split, strict=True)) >= need[1] for split in splits)


def _vertices(
    release: list[Fraction], work: list[Fraction], slow: tuple[Fraction, ...]
) -> Iterator[tuple[Fraction, ...]]:
    # The sum of ends is piecewise linear in the two starts. Its pieces meet where a start is a release, the other start or
    # the other end, or where both end at once; so some best pair of starts is where two of these hold.
    for first, second in ((0, 1), (1, 0)):
        for s in {release[first], max(release)}:
            whole = work[first], work[second]
            tie = s + whole[0] - whole[1] * slow[second] / slow[first]  # both end at once, the second starts here
            for t in {release[second], s, s + whole[0], tie}:
                if t >= s and t >= release[second]:
                    yield (s, t) if first == 0 else (t, s)
        for t in {release[second], max(release)}:
            for s in (t - work[first], t - work[first] + work[second] * slow[second] / slow[first]):
                if release[first] <= s <= t:
                    yield (s, t) if first == 0 else (t, s)


def _sum_of_ends(
    start: tuple[Fraction, ...], release: list[Fraction], work: list[Fraction], slow: tuple[Fraction, ...]
) -> Fraction:
    a, b = (0, 1) if start[0] <= start[1] else (1, 0)  # a starts first
    left = work[a] - (start[b] - start[a])
    if left <= 0:
        return start[a] + work[a] + start[b] + work[b]
    ends = start[b] + left * slow[a], start[b] + work[b] * slow[b]
    if ends[0] <= ends[1]:
        return ends[0] + ends[0] + work[b] - (ends[0] - start[b]) / slow[b]
    return ends[1] + ends[1] + left - (ends[1] - start[b]) / slow[a]


def _of_three(instance: Instance) -> Fraction:
    """Three jobs on one GPU: two at a time."""
    assert instance.cluster.gpus == 1
    first = min(instance.arrival.tolist())
    after = [Fraction(r) - Fraction(first) for r in instance.arrival.tolist()]
    unit = max(map(Fraction, instance.duration.tolist()))
    release, work = [float(r / unit) for r in after], [float(Fraction(p) / unit) for p in instance.duration.tolist()]
    rate = [[1.0 if j == k else float(1 / _slow(instance, j, k)) for k in range(3)] for j in range(3)]
    least = min(_of_order(order, release, work, rate) for order in _orders(3))
    return Fraction(least) * unit + 3 * Fraction(first)


def _orders(n: int) -> Iterator[tuple[int, ...]]:
    for order in sorted(set(itertools.permutations(tuple(range(n)) * 2))):
        active = list(itertools.accumulate(order, lambda now, j: now ^ {j}, initial=frozenset()))
        if max(map(len, active)) <= 2:
            yield order


def _of_order(order: tuple[int, ...], release: list[float], work: list[float], rate: list[list[float]]) -> float:
    # columns: the times of the events
    n, count = len(work), len(order)
    places = [[k for k, j in enumerate(order) if j == job] for job in range(n)]
    cost, rows, right = np.zeros(count), [], []
    for k in range(count - 1):
        row = np.zeros(count)
        row[k], row[k + 1] = 1, -1
        rows.append(row)
        right.append(0.0)
    active: set[int] = set()
    done = np.zeros((n, count))
    for k, j in enumerate(order[:-1]):
        active ^= {j}
        for i in active:
            speed = min(rate[i][other] for other in active)
            done[i, k] -= speed
            done[i, k + 1] += speed
    for j in range(n):
        cost[places[j][1]] = 1
        rows.append(-done[j])
        right.append(-work[j])
    bounds = [(0.0, None)] * count
    for j in range(n):
        bounds[places[j][0]] = (release[j], None)
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(cost, np.array(rows), np.array(right), bounds=bounds, method="highs", options=tight)
    return float(found.fun) if found.status == 0 else float("inf")
