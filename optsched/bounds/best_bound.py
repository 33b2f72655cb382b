"""The registry of lower bounds, and the best bound for an instance."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from optsched.bounds.certificate import GANG_CLASSES, Certificate
from optsched.classes import CLASSES, class_names, classes_of, usual_class
from optsched.deadline import NEVER, Deadline
from optsched.errors import InputError
from optsched.problem.instance import Instance, Source, instance_of
from optsched.problem.objectives import get_objective, objective_of
from optsched.registry import Registry, near_matches


class NoBoundError(InputError):
    """No registered bound serves the objective and the class of schedules."""


# (instance, objective, schedule class) -> certificate; None where the bound has nothing to say
Build = Callable[[Instance, str, str], Certificate | None]


@dataclass(frozen=True)
class Bound:
    """A registered lower bound.

    Attributes
    ----------
    build
        Function of (instance, objective, class of schedules) that returns a certificate, or None if it finds none.
    objectives
        Objectives that it bounds.
    classes
        Names of the classes of schedules that it is valid for.
    statement
        The bound in one line.
    strong
        True if it takes long, so that it is computed on request only.
    """

    build: Build
    objectives: frozenset[str]
    classes: tuple[str, ...]
    statement: str
    strong: bool = False


BOUNDS: Registry[Bound] = Registry("bound", package="optsched.bounds")


def lower_bound(
    name: str,
    *,
    objectives: Iterable[str],
    statement: str,
    classes: Iterable[str] = GANG_CLASSES,
    strong: bool = False,
) -> Callable[[Build], Build]:
    """Return a decorator that registers the builder of a bound under its name.

    Parameters
    ----------
    name
        Name of the bound.
    objectives
        Objectives that it bounds.
    statement
        The bound in one line.
    classes
        Names of the classes of schedules that it is valid for.
    strong
        True if it takes long, so that it is computed on request only.
    """

    def add(build: Build) -> Build:
        BOUNDS.register(name)(Bound(build, frozenset(objectives), tuple(classes), statement, strong))
        return build

    return add


def bound(
    instance: Source,
    objective: str | None = None,
    schedule_class: str | None = None,
    *,
    deadline: Deadline = NEVER,
    strong: bool = False,
) -> Certificate:
    """Return the largest of all registered lower bounds on the optimum of an objective over a class of schedules.

    For an objective that is maximised it is the smallest upper bound. Of equal bounds the one with the shortest data is
    returned.

    Parameters
    ----------
    instance
        Jobs and a cluster, or a SOURCE that `optsched.load` reads.
    objective
        Name of the objective; None: the instance's own, else ``total_flow_time``.
    schedule_class
        ``gang``, ``gang-nonpreemptive`` or ``forking``; ``gpu-sharing`` for jobs with interference; ``task-sharing``
        for jobs with tasks, which have no other class; ``elastic`` for jobs with scaling profiles. See
        `optsched.bounds.certificate`. None: the usual class of the instance.
    deadline
        After it no further bound is begun, once there is one.
    strong
        Also compute the bounds that take up to a minute, for rigid gangs (`optsched.bounds.priced_gangs` and
        `optsched.bounds.priced_log`). The kind of the certificate says whether one of them is the largest (`is_strong`).

    Returns
    -------
    Certificate
        A certificate that has not been verified yet: `Certificate.verify` uses another method than the builder.

    Raises
    ------
    InputError
        The objective or the class is unknown, or jobs of the class hold GPUs alone while those of the instance share
        them.
    NoBoundError
        No bound serves the objective, or the instance has no schedules of the class.

    Examples
    --------
    >>> import optsched as osd
    >>> low = osd.bound("rigid-06-1", "total_completion_time")
    >>> low.verify("rigid-06-1")  # raises if it does not hold
    >>> low.kind, low.schedule_class, low.value <= 156
    ('split-busy-time', 'gang', True)
    """
    instance = instance_of(instance)
    schedule_class = _class_of(instance, schedule_class)
    name = objective_of(instance, objective).name
    return _best(instance.relative, name, schedule_class, deadline, strong).on_clock(instance)


def is_strong(kind: str) -> bool:
    """Return whether certificates of a kind are computed on request only.

    Parameters
    ----------
    kind
        Kind of a certificate.
    """
    return kind in BOUNDS and BOUNDS.get(kind).strong


def _best(instance: Instance, name: str, schedule_class: str, deadline: Deadline, strong: bool) -> Certificate:
    """Return the best bound for an instance whose times count from its first arrival."""
    certificates: list[Certificate] = []
    kind = CLASSES.get(schedule_class)
    bounds = BOUNDS.items((kind.name, *kind.inside))
    serving = ((b, kind.bounded_by(b.classes)) for _, b in bounds if strong or not b.strong)
    every = [(candidate, larger) for candidate, larger in serving if larger is not None]
    for candidate, larger in every:
        if name in candidate.objectives and not (certificates and deadline.passed):
            certificate = candidate.build(instance, name, larger)
            if certificate is not None:
                certificates.append(certificate)
    if not certificates:
        served = sorted({o for candidate, _ in every for o in candidate.objectives})
        raise NoBoundError(
            f"no lower bound on this objective for the class {schedule_class}",
            field="objective",
            value=name,
            legal=", ".join(served),
        )
    sign = -1 if get_objective(name).gain else 1
    return max(certificates, key=lambda c: (sign * c.value, -len(json.dumps(c.data))))


MEANT = {
    **dict.fromkeys(
        ("preemptive", "preemption"), "gang? its schedules may preempt; those of gang-nonpreemptive may not"
    ),
    **dict.fromkeys(("nonpreemptive", "non-preemptive"), "gang-nonpreemptive? its schedules may not preempt"),
    "sharing": "gpu-sharing? or task-sharing, where jobs have tasks",
}


def _class_of(instance: Instance, asked: str | None) -> str:
    """Return the class of schedules that is meant; `InputError` if the instance has no schedules of it."""
    served = classes_of(instance)
    if asked is None:
        return served[0]
    asked = asked.lower()
    if asked not in CLASSES:
        legal = near_matches(asked, list(class_names()), kind="class", meant=MEANT)
        raise InputError("unknown class of schedules", field="class", value=asked, legal=legal)
    if asked not in served:
        legal = ", ".join(served)
        if usual_class(instance).only:
            raise InputError("jobs of this instance share GPUs", field="class", value=asked, legal=legal)
        lacking = CLASSES.get(asked).lacking
        raise NoBoundError(
            f"no lower bound: jobs of this instance have no {lacking}", field="class", value=asked, legal=legal
        )
    return asked
