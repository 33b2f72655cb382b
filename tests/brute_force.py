"""Optima of tiny instances by exhaustion, in exact integers: the independent method of many tests.

`optimum` searches non-preemptive schedules of rigid gangs, `preemptive_optimum` those that preempt at multiples of a
slot. Both are for instances in which every job may use every GPU, so that only the number of GPUs counts. Times are
counted in the largest unit of which all are multiples (floats are fractions, so there is one): integers are many times
faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from math import isfinite, lcm
from typing import Any

from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective


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

    def add(self, first: Any, second: Any) -> Any:
        """Costs of two sets of jobs together."""
        return max(first, second) if self.objective.maximum else first + second

    def earliest(self, j: int, placed: list[tuple[int, int, int]]) -> int:
        """The first moment from which job j fits beside (start, end, gpus) until it is done."""
        for start in sorted({self.release[j], *(end for _, end, _ in placed if end > self.release[j])}):
            end = start + self.duration[j]
            moments = [start, *(s for s, _, _ in placed if start < s < end)]
            if all(self.gpus[j] + sum(g for s, e, g in placed if s <= moment < e) <= self.total for moment in moments):
                return start
        raise AssertionError("after the last end every job fits")


def optimum(instance: Instance, objective: str) -> Fraction:
    """The best non-preemptive schedule (class ``gang-nonpreemptive``), for up to seven jobs or so.

    Serial generation, every job at its earliest feasible start, over all orders makes all active schedules, and one
    of them is optimal for any objective that is nondecreasing in the completion times.
    """
    case = Case(instance, objective)
    floor = [case.cost(j, case.release[j] + case.duration[j]) for j in range(case.n)]
    best: list[Any] = []

    def search(left: frozenset[int], placed: list[tuple[int, int, int]], cost: Any) -> None:
        if not left:
            best[:] = [min([*best, cost if cost is not None else 0])]
            return
        for j in sorted(left):
            start = case.earliest(j, placed)
            end = start + case.duration[j]
            total = case.cost(j, end) if cost is None else case.add(cost, case.cost(j, end))
            rest = total
            for k in left - {j}:
                rest = case.add(rest, floor[k])
            if not best or rest < best[0]:
                search(left - {j}, [*placed, (start, end, case.gpus[j])], total)

    search(frozenset(range(case.n)), [], None)
    return Fraction(best[0]) * case.unit


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
