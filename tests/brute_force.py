"""Optima of tiny instances by exhaustion, in plain Python fractions: the independent method of many tests.

`optimum` searches non-preemptive schedules of rigid gangs, `preemptive_optimum` those that preempt at multiples of a
slot. Both are for instances in which every job may use every GPU, so that only the number of GPUs counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache

from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective


class Case:
    """The numbers of an instance as fractions, and what each job costs when it completes at a given time."""

    def __init__(self, instance: Instance, objective: str) -> None:
        if not instance.unrestricted:
            raise ValueError("brute force is for instances in which every job may use every GPU")
        self.total = instance.cluster.gpus
        self.release = [Fraction(r) for r in instance.arrival.tolist()]
        self.duration = [Fraction(d) for d in instance.duration.tolist()]
        self.gpus = instance.gpus.tolist()
        self.objective = get_objective(objective)
        self.weight = [Fraction(w) for w in instance.weight.tolist()]
        self.due = [d if d == float("inf") else Fraction(d) for d in instance.due.tolist()]
        self.n = instance.n

    def cost(self, j: int, completion: Fraction) -> Fraction:
        """The job's term of the objective."""
        return Fraction(self.objective.term(completion, self.release[j], self.weight[j], self.due[j]))

    def add(self, first: Fraction, second: Fraction) -> Fraction:
        """Costs of two sets of jobs together."""
        return max(first, second) if self.objective.maximum else first + second

    def earliest(self, j: int, placed: list[tuple[Fraction, Fraction, int]]) -> Fraction:
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
    best: list[Fraction] = []

    def search(left: frozenset[int], placed: list[tuple[Fraction, Fraction, int]], cost: Fraction | None) -> None:
        if not left:
            best[:] = [min([*best, cost if cost is not None else Fraction(0)])]
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
    return best[0]


def preemptive_optimum(instance: Instance, objective: str, slot: Fraction = Fraction(1)) -> Fraction:
    """The best schedule (class ``gang``) that starts, stops and resumes gangs at multiples of ``slot`` seconds only.

    Releases and durations must be multiples of the slot. An upper bound on the optimum of the class; the optimum itself
    where slots suffice (one machine with integer data and slots of one second). For some four short jobs.
    """
    case = Case(instance, objective)
    if any(x % slot for x in case.release + case.duration):
        raise ValueError("releases and durations must be multiples of the slot")

    @cache
    def best(step: int, left: tuple[int, ...]) -> Fraction | None:
        if not any(left):
            return None
        here = [j for j, slots in enumerate(left) if slots and case.release[j] <= step * slot]
        if not here:
            return best(int(min(case.release[j] for j, slots in enumerate(left) if slots) / slot), left)
        values = []
        for chosen in maximal_sets(here, case.gpus, case.total):
            after = tuple(slots - (j in chosen) for j, slots in enumerate(left))
            costs = [case.cost(j, (step + 1) * slot) for j in chosen if after[j] == 0]
            later = best(step + 1, after)
            costs += [] if later is None else [later]
            values.append(max(costs) if case.objective.maximum else sum(costs, Fraction(0)))
        return min(values)

    value = best(0, tuple(int(d / slot) for d in case.duration))
    return Fraction(0) if value is None else value


def maximal_sets(jobs: list[int], gpus: list[int], total: int) -> Iterator[frozenset[int]]:
    """All sets of jobs that fit together and to which no further one can be added."""
    for bits in range(1, 1 << len(jobs)):
        chosen = frozenset(j for i, j in enumerate(jobs) if bits >> i & 1)
        free = total - sum(gpus[j] for j in chosen)
        if free >= 0 and all(gpus[j] > free for j in jobs if j not in chosen):
            yield chosen
