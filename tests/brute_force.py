"""Optima of tiny instances by exhaustion, in exact numbers: the independent method of many tests.

`optimum` searches non-preemptive schedules of rigid gangs of which only the number of GPUs counts, `placed_optimum` those
whose speed depends on their nodes, `preemptive_optimum` those that preempt at multiples of a slot. Nothing of the package
computes here but the instance itself. Where only numbers count, times are in the largest unit of which all are multiples
(floats are fractions, so there is one): integers are many times faster.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, reduce
from math import isfinite, lcm
from typing import Any

from speeds.random_profiles import exact_alpha

from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.speeds.network import Network

Way = tuple[tuple[int, ...], Any]  # GPUs of every node, seconds
Span = tuple[Any, Any, tuple[int, ...]]  # start, end, GPUs of every node


def earliest(release: Any, way: Way, placed: Sequence[Span], sizes: Sequence[int]) -> Any:
    """The first moment from which the way fits beside those placed, on nodes of these sizes, until it is done."""
    held, seconds = way
    for start in sorted({release, *(end for _, end, _ in placed if end > release)}):
        moments = [start, *(s for s, _, _ in placed if start < s < start + seconds)]
        if all(
            held[v] + sum(used[v] for s, e, used in placed if s <= at < e) <= size
            for at in moments
            for v, size in enumerate(sizes)
        ):
            return start
    raise AssertionError("after the last end every job fits")


def best_order(
    own: Sequence[Sequence[Way]],
    release: Sequence[Any],
    sizes: Sequence[int],
    cost: Callable[[int, Any], Any],
    *,
    maximum: bool = False,
) -> Any:
    """The least sum, or ``maximum``, of ``cost(j, completion)``, which does not fall with the completion.

    Serial generation over all orders and every job's ``own`` ways, each at its earliest feasible start, makes all active
    schedules, and one of them is optimal. What cannot be better is cut: jobs not placed yet would run at once.
    """
    add: Callable[[Any, Any], Any] = max if maximum else operator.add
    floor = [min(cost(j, release[j] + seconds) for _, seconds in ways) for j, ways in enumerate(own)]
    best: list[Any] = []

    def search(left: tuple[int, ...], placed: list[Span], paid: Any) -> None:
        if not left:
            best[:] = [min([*best, 0 if paid is None else paid])]
        for j in left:
            others = tuple(k for k in left if k != j)
            for way in own[j]:
                start = earliest(release[j], way, placed, sizes)
                end = start + way[1]
                total = cost(j, end) if paid is None else add(paid, cost(j, end))
                if not best or reduce(add, (floor[k] for k in others), total) < best[0]:
                    search(others, [*placed, (start, end, way[0])], total)

    search(tuple(range(len(own))), [], None)
    return best[0]


class Case:
    """The numbers of an instance in whole ``unit`` seconds, and what each job costs when it completes at a given time."""

    def __init__(self, instance: Instance, objective: str, slot: Fraction = Fraction(1)) -> None:
        if not instance.unrestricted:
            raise ValueError("brute force is for instances in which every job may use every GPU")
        self.objective = get_objective(objective)
        columns = [each.tolist() for each in (instance.arrival, instance.duration, instance.due)]
        times = [slot, *(Fraction(x) for column in columns for x in column if isfinite(x))]
        self.unit = Fraction(1, lcm(*(x.denominator for x in times)))
        self.release, self.duration, self.due = ([self._whole(x) for x in column] for column in columns)
        self.slot = self._whole(slot)
        self.total = instance.cluster.gpus
        self.gpus = instance.gpus.tolist()
        if objective == "max_fair_slowdown":  # times over seconds: the terms themselves grow as the times do
            self.due = [Fraction(d) for d in self.objective.dates(instance).tolist()]
        self.weight = [int(w) if w.is_integer() else Fraction(w) for w in instance.weight.tolist()]
        self.n = instance.n

    def _whole(self, time: Any) -> Any:
        return int(Fraction(time) / self.unit) if isfinite(time) else time

    def cost(self, j: int, completion: int) -> Any:
        """The job's term of the objective, in units: every objective grows as the times in it do."""
        return self.objective.term(completion, self.release[j], self.weight[j], self.due[j])


def optimum(instance: Instance, objective: str) -> Fraction:
    """The best non-preemptive schedule (class ``gang-nonpreemptive``), for up to seven jobs or so."""
    case = Case(instance, objective)
    own = [[((gang,), seconds)] for gang, seconds in zip(case.gpus, case.duration, strict=True)]
    best = best_order(own, case.release, [case.total], case.cost, maximum=case.objective.maximum)
    return Fraction(best) * case.unit


def ways(instance: Instance, j: int) -> list[Way]:
    """Every (GPUs a node, seconds) in which job j can run: nobody else sees which replica sits where, so the fastest."""
    cluster, job, least = instance.cluster, instance.job(j), dict[tuple[int, ...], Fraction]()
    room, suits = cluster.node_gpus.tolist(), instance.eligible(j)
    network = Network.of(cluster) if job.profile is not None and instance.throughputs is None else None
    for nodes in itertools.product(range(len(room)), repeat=job.gpus):
        counts = tuple(nodes.count(v) for v in range(len(room)))
        if any(count > size or (count and not ok) for count, size, ok in zip(counts, room, suits, strict=True)):
            continue
        if job.duration is not None:
            seconds = Fraction(job.duration)
        elif network is not None:
            seconds = Fraction(job.iterations) * exact_alpha(instance.profiles[job.profile], network, nodes)
        else:  # of one node; what a job takes is a float64 (see `optsched.bounds.certificate`)
            gpu = cluster.gpu_types[cluster.node_type[nodes[0]]]
            rate = instance.throughputs.entries[job.profile, gpu, job.gpus].together
            seconds = Fraction(float(job.iterations) * (1 / rate))
        least[counts] = min(seconds, least.get(counts, seconds))
    return list(least.items())


def placed_optimum(instance: Instance, objective: str, own: Sequence[Sequence[Way]] | None = None) -> Fraction:
    """The best schedule of class ``gang-nonpreemptive`` on the nodes as they are, for three or four small jobs.

    ``own``: the ways of every job; None: those of `ways`.
    """
    goal, release = get_objective(objective), [Fraction(r) for r in instance.arrival.tolist()]
    weight = [Fraction(w) for w in instance.weight.tolist()]
    due = [d if d == float("inf") else Fraction(d) for d in goal.dates(instance).tolist()]

    def cost(j: int, end: Fraction) -> Fraction:
        return Fraction(goal.term(end, release[j], weight[j], due[j]))

    own = own or [ways(instance, j) for j in range(instance.n)]
    return Fraction(best_order(own, release, instance.cluster.node_gpus.tolist(), cost, maximum=goal.maximum))


def preemptive_optimum(instance: Instance, objective: str, slot: Fraction = Fraction(1)) -> Fraction:
    """The best schedule (class ``gang``) that starts, stops and resumes gangs at multiples of ``slot`` seconds only.

    Releases and durations must be multiples of the slot. An upper bound on the optimum of the class; the optimum itself
    where slots suffice (one machine with integer data and slots of one second). For some four short jobs.
    """
    case = Case(instance, objective, slot)
    if any(x % case.slot for x in case.release + case.duration):
        raise ValueError("releases and durations must be multiples of the slot")

    @cache
    def best(step: int, left: tuple[int, ...]) -> Any:
        if not any(left):
            return None
        here = [j for j, slots in enumerate(left) if slots and case.release[j] <= step * case.slot]
        if not here:
            return best(min(case.release[j] for j, slots in enumerate(left) if slots) // case.slot, left)
        values = []
        for chosen in maximal_sets(here, case.gpus, case.total):
            after = tuple(slots - (j in chosen) for j, slots in enumerate(left))
            costs = [case.cost(j, (step + 1) * case.slot) for j in chosen if after[j] == 0]
            later = best(step + 1, after)
            costs += [] if later is None else [later]
            values.append(max(costs) if case.objective.maximum else sum(costs))
        return min(values)

    value = best(0, tuple(d // case.slot for d in case.duration))
    return Fraction(0) if value is None else Fraction(value) * case.unit


def maximal_sets(jobs: list[int], gpus: list[int], total: int) -> Iterator[frozenset[int]]:
    """All sets of jobs that fit together and to which no further one can be added."""
    for bits in range(1, 1 << len(jobs)):
        chosen = frozenset(j for i, j in enumerate(jobs) if bits >> i & 1)
        free = total - sum(gpus[j] for j in chosen)
        if free >= 0 and all(gpus[j] > free for j in jobs if j not in chosen):
            yield chosen
