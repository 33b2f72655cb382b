"""Which known family does an instance resemble? Jobs are compared as points, whatever their order and unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from optsched.guarantees.family import FAMILIES, Member
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.speeds.duration import seconds_alone

NEAR = 0.12  # distance up to which two instances are said to be alike
MOST_JOBS = 200  # of a member that is compared
UNMATCHED = 1.0  # what a job without a partner costs


@dataclass(frozen=True)
class Resemblance:
    """The nearest member of a family; ``distance`` from 0, the same up to order and unit, to about 1."""

    member: str
    distance: float
    ratio: float | None

    @property
    def text(self) -> str:
        """In words."""
        ratio = "" if self.ratio is None else f", whose ratio is {self.ratio:.6g}"
        how = "is" if self.distance < 1e-9 else "resembles"
        return f"{how} {self.member}{ratio}"


def resemblance(instance: Instance, objective: str) -> Resemblance | None:
    """The nearest member of the families with this objective, or None where none is near. O(members n^3)."""
    own = _points(instance)
    found = [
        Resemblance(member.text, distance(own, _points(other)), None if member.ratio is None else float(member.ratio))
        for member, other in _members(instance, objective)
    ]
    near = min(found, key=lambda each: each.distance, default=None)
    return near if near is not None and near.distance <= NEAR else None


def distance(first: Floats, second: Floats) -> float:
    """Mean distance of the best pairs of two sets of points f64[n, 4], f64[m, 4]; `UNMATCHED` for a job without one."""
    cost = np.abs(first[:, None, :] - second[None, :, :]).sum(axis=2)
    rows, columns = linear_sum_assignment(cost)
    most = max(len(first), len(second))
    return float(cost[rows, columns].sum() + UNMATCHED * (most - len(rows))) / most


def _members(instance: Instance, objective: str) -> Iterator[tuple[Member, Instance]]:
    goal = _completion_form(objective)
    for name in FAMILIES.names():
        family = FAMILIES.get(name)
        if _completion_form(family.objective) != goal:
            continue
        for size in family.sizes:
            member = family.of_size(size)
            other = member.instance
            if other.n > MOST_JOBS or other.n > 4 * instance.n:
                break
            if _kind(other) == _kind(instance):
                yield member, other


def _completion_form(objective: str) -> str:
    goal = get_objective(objective)
    return goal.completion_form or goal.name


def _kind(instance: Instance) -> tuple[bool, bool, bool]:
    return instance.at_task_level, instance.interference is not None, instance.cluster.gpus == 1


def _points(instance: Instance) -> Floats:
    """Arrival, time alone, gang and weight of every job, each as a part of the largest; arrivals in the unit of times."""
    alone = (
        instance.message + instance.forward + instance.backward if instance.at_task_level else seconds_alone(instance)
    )
    longest = float(alone.max()) or 1.0
    arrival = (instance.arrival - instance.arrival.min()) / longest
    part = np.column_stack(
        [
            arrival,
            alone / longest,
            instance.gpus / instance.cluster.gpus,
            instance.weight / max(instance.weight.max(), 1.0),
        ]
    )
    points: Floats = np.minimum(part, 2.0)
    return points
