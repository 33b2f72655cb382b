"""Exact optima of `clocked_instances` by trying everything, in fractions of the floats as given, clock and all.

Nothing of the package computes here but the instance itself and the seconds of a job on given nodes, which are part of the
problem (`optsched.speeds`). Whole gangs: every order, every placement, each job as early as it fits. Two jobs that share:
every vertex of the (start, start) plane. Three: every order of starts and ends, a linear program each (scipy's HiGHS).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog
from speeds.random_profiles import exact_alpha

from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.speeds.network import Network

Way = tuple[tuple[int, ...], Fraction]  # GPUs of every node, seconds
Spans = list[tuple[Fraction, Fraction, tuple[int, ...]]]


def ways(instance: Instance, j: int) -> list[Way]:
    """Every (GPUs a node, seconds) in which job j can run."""
    room, suits, job = instance.cluster.node_gpus.tolist(), instance.eligible(j), instance.job(j)
    counts = itertools.product(*(range(size + 1 if ok else 1) for size, ok in zip(room, suits, strict=True)))
    return [(held, _seconds(instance, j, held)) for held in counts if sum(held) == job.gpus]


def _seconds(instance: Instance, j: int, held: tuple[int, ...]) -> Fraction:
    job, cluster = instance.job(j), instance.cluster
    if job.duration is not None:
        return Fraction(job.duration)
    assert job.profile is not None
    assert job.iterations is not None
    if instance.throughputs is not None:
        (node,) = [v for v, count in enumerate(held) if count]
        gpu = cluster.gpu_types[cluster.node_type[node]]
        # what a job takes is a float64 (see `optsched.bounds.certificate`)
        return Fraction(float(job.iterations) * (1 / instance.throughputs.entries[job.profile, gpu, job.gpus].together))
    nodes = [v for v, count in enumerate(held) for _ in range(count)]
    return Fraction(job.iterations) * exact_alpha(instance.profiles[job.profile], Network.of(cluster), nodes)


def gang_optimum(instance: Instance, objective: str) -> Fraction:
    """The best schedule of class ``gang-nonpreemptive``; branches that cannot be better are cut."""
    goal, room = get_objective(objective), instance.cluster.node_gpus.tolist()
    release = [Fraction(r) for r in instance.arrival.tolist()]
    weight = [Fraction(w) for w in instance.weight.tolist()]
    due = [d if d == float("inf") else Fraction(d) for d in goal.dates(instance).tolist()]
    own = [ways(instance, j) for j in range(instance.n)]
    best: list[Fraction] = []

    def cost(j: int, end: Fraction) -> Fraction:
        return Fraction(goal.term(end, release[j], weight[j], due[j]))

    def add(one: Fraction, other: Fraction) -> Fraction:
        return max(one, other) if goal.maximum else one + other

    floor = [min(cost(j, release[j] + seconds) for _, seconds in own[j]) for j in range(instance.n)]

    def earliest(j: int, way: Way, placed: Spans) -> Fraction:
        for start in sorted({release[j], *(end for _, end, _ in placed if end > release[j])}):
            end = start + way[1]
            moments = [start, *(s for s, _, _ in placed if start < s < end)]
            held = ([h for s, e, h in placed if s <= moment < e] for moment in moments)
            if all(
                way[0][v] + sum(h[v] for h in some) <= room[v] for some in map(list, held) for v in range(len(room))
            ):
                return start
        raise AssertionError("after the last end every job fits")

    def search(left: tuple[int, ...], placed: Spans, paid: Fraction | None) -> None:
        if not left:
            best[:] = [min([*best, paid if paid is not None else Fraction(0)])]
        for j in left:
            others = tuple(k for k in left if k != j)
            for way in own[j]:
                start = earliest(j, way, placed)
                total = cost(j, start + way[1]) if paid is None else add(paid, cost(j, start + way[1]))
                least = total
                for k in others:
                    least = add(least, floor[k])
                if not best or least < best[0]:
                    search(others, [*placed, (start, start + way[1], way[0])], total)

    search(tuple(range(instance.n)), [], None)
    return best[0]


# --- jobs that share GPUs ----------------------------------------------------------------------------------------------


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
