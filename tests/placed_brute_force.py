"""Optima of tiny instances whose speed depends on the placement: every order, every node for every replica, in fractions.

No branch is cut off and nothing is shared with the package but the instance: iteration times come replica by replica from
`rates.random_profiles.exact_alpha`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

from speeds.random_profiles import exact_alpha

from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.speeds.network import Network

Way = tuple[tuple[int, ...], Fraction]  # GPUs of every node, seconds


def ways(instance: Instance, j: int) -> list[Way]:
    """Every (GPUs a node, seconds) in which job j can run: nobody else sees which replica sits where, so the fastest."""
    room, suits = instance.cluster.node_gpus.tolist(), instance.eligible(j)
    job, least = instance.job(j), dict[tuple[int, ...], Fraction]()
    network = Network.of(instance.cluster) if job.profile is not None else None
    for nodes in itertools.product(range(len(room)), repeat=job.gpus):
        counts = tuple(nodes.count(v) for v in range(len(room)))
        if any(count > size or (count and not ok) for count, size, ok in zip(counts, room, suits, strict=True)):
            continue
        if network is None or job.profile is None or job.iterations is None:
            seconds = Fraction(job.duration or 0)
        else:
            seconds = Fraction(job.iterations) * exact_alpha(instance.profiles[job.profile], network, nodes)
        least[counts] = min(seconds, least.get(counts, seconds))
    return list(least.items())


def placed_optimum(instance: Instance, objective: str) -> Fraction:
    """The best schedule of class ``gang-nonpreemptive``, for three or four small jobs."""
    goal, room = get_objective(objective), instance.cluster.node_gpus.tolist()
    release = [Fraction(r) for r in instance.arrival.tolist()]
    weight = [Fraction(w) for w in instance.weight.tolist()]
    due = [d if d == float("inf") else Fraction(d) for d in goal.dates(instance).tolist()]
    own = [ways(instance, j) for j in range(instance.n)]

    def earliest(j: int, way: Way, placed: list[tuple[Fraction, Fraction, tuple[int, ...]]]) -> Fraction:
        for start in sorted({release[j], *(end for _, end, _ in placed if end > release[j])}):
            end = start + way[1]
            moments = [start, *(s for s, _, _ in placed if start < s < end)]
            if all(
                way[0][v] + sum(held[v] for s, e, held in placed if s <= moment < e) <= room[v]
                for moment in moments
                for v in range(len(room))
            ):
                return start
        raise AssertionError("after the last end every job fits")

    def values(left: tuple[int, ...], placed: list[tuple[Fraction, Fraction, tuple[int, ...]]]) -> Iterator[Fraction]:
        if not left:
            yield Fraction(0)
        for j in left:
            rest = tuple(k for k in left if k != j)
            for way in own[j]:
                start = earliest(j, way, placed)
                end = start + way[1]
                cost = Fraction(goal.term(end, release[j], weight[j], due[j]))
                for later in values(rest, [*placed, (start, end, way[0])]):
                    yield max(cost, later) if goal.maximum else cost + later

    return min(values(tuple(range(instance.n)), []))
