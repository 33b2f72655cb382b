"""The optimum that an instance states, and the part of it that this installation has proved.

Anybody can write an optimum into a file. It counts as the optimum only if optsched proved it: for a shipped instance in
``instances/index.csv`` (by the digest of the instance), for an instance that optsched made and solved itself
(`proved_here`), or by files next to the instance file that are verified again (`optsched.evaluation.stored_certificates`).
Otherwise it is *stated*: it is never a bound and never in a ratio, but every run and bound is compared with it and may
refute it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from optsched.io.index import entries
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective

SHIPPED_CLASS = "gang-nonpreemptive"  # of an optimum that names none
Stated = tuple[str, str, str, Fraction]  # digest, objective, class of schedules, value

_proved: set[Stated] = set()  # by this process


def stating(value: float, objective: str, schedule_class: str, *proved_by: str) -> dict[str, Any]:
    """Return the statement of an optimum in an instance.

    Parameters
    ----------
    value
        The optimum.
    objective
        Name of the objective.
    schedule_class
        Name of the class of schedules among which it is the optimum.
    *proved_by
        What proves it.
    """
    return {"objective": objective, "class": schedule_class, "value": value, "proved_by": list(proved_by)}


def exact_optimum(instance: Instance, objective: str) -> tuple[Fraction, str] | None:
    """Return the optimum that an instance states for an objective, and its class of schedules; None if it states none.

    A flow time and its completion time differ by a constant, so that either states the other.

    Parameters
    ----------
    instance
        The instance.
    objective
        Name of the objective.
    """
    if not instance.optimum:
        return None
    between = shift(instance, str(instance.optimum["objective"]), objective)
    if between is None:
        return None
    return Fraction(instance.optimum["value"]) + between, str(instance.optimum.get("class", SHIPPED_CLASS))


def proved_here(instance: Instance) -> Instance:
    """Return an instance whose optimum this process, or a theorem of the package, has just proved.

    It is for code that makes instances with their optimum; nothing that is read from a file passes through it.

    Parameters
    ----------
    instance
        The instance.
    """
    stated = _stated(instance)
    if stated is not None:
        _proved.add(stated)
    return instance


def is_proved(instance: Instance) -> bool:
    """Return whether this installation proved the optimum that the instance states.

    Complexity O(n), and a look at the index of shipped instances.

    Parameters
    ----------
    instance
        The instance.
    """
    stated = _stated(instance)
    if stated is None:
        return False
    return stated in _proved or any(
        each.digest == stated[0]
        and each.optimum is not None
        and (each.objective, each.schedule_class, Fraction(each.optimum)) == stated[1:]
        for each in entries()
    )


def _stated(instance: Instance) -> Stated | None:
    stated = instance.optimum
    if not stated:
        return None
    objective = get_objective(str(stated["objective"])).name
    return instance.digest, objective, str(stated.get("class", SHIPPED_CLASS)), Fraction(stated["value"])


def shift(instance: Instance, known: str, wanted: str) -> Fraction | None:
    """Return the constant between the values of two objectives; None if their difference is no constant.

    Parameters
    ----------
    instance
        The instance.
    known
        Name of the objective whose value is given.
    wanted
        Name of the objective whose value is wanted.
    """
    have, want = get_objective(known), get_objective(wanted)
    if have.name == want.name:
        return Fraction(0)
    if (have.completion_form or have.name) != (want.completion_form or want.name):
        return None
    weight = instance.weight.tolist() if want.weighted else [1.0] * instance.n
    rows = zip(weight, instance.arrival.tolist(), strict=True)
    constant = sum((Fraction(w) * Fraction(r) for w, r in rows), Fraction(0))
    return constant if have.completion_form else -constant
