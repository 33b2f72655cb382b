"""What an instance states of its optimum, and what of it this installation has proved.

Anybody can write an optimum into a file. It is the optimum here only where optsched proved it: for a shipped instance in
``instances/index.csv`` (by the digest of the instance), for an instance that optsched made and solved itself
(`proved_here`), or by files beside the instance file that are proved anew (`optsched.evaluation.optimum_bounds`).
Otherwise it is *stated*: never a bound, never in a ratio, but held against every run and bound, which may refute it.
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
    """What an instance states of its optimum: its value among the schedules of a class, and what proves it."""
    return {"objective": objective, "class": schedule_class, "value": value, "proved_by": list(proved_by)}


def exact_optimum(instance: Instance, objective: str) -> tuple[Fraction, str] | None:
    """(value, class of schedules) of the optimum that the instance states for this objective, or None.

    A flow time and its completion time differ by a constant, so that either states the other.
    """
    if not instance.optimum:
        return None
    between = shift(instance, str(instance.optimum["objective"]), objective)
    if between is None:
        return None
    return Fraction(instance.optimum["value"]) + between, str(instance.optimum.get("class", SHIPPED_CLASS))


def proved_here(instance: Instance) -> Instance:
    """``instance``, whose optimum this process has just proved, or that of a theorem which optsched holds it against.

    For code that makes instances with their optimum; nothing that is read from a file passes through here.
    """
    stated = _stated(instance)
    if stated is not None:
        _proved.add(stated)
    return instance


def is_proved(instance: Instance) -> bool:
    """Did this installation prove the optimum that the instance states? O(n), and a look at the index of what is shipped."""
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
    """What turns a value of the objective ``known`` into one of ``wanted``; None where no constant does."""
    have, want = get_objective(known), get_objective(wanted)
    if have.name == want.name:
        return Fraction(0)
    if (have.completion_form or have.name) != (want.completion_form or want.name):
        return None
    weight = instance.weight.tolist() if want.weighted else [1.0] * instance.n
    rows = zip(weight, instance.arrival.tolist(), strict=True)
    constant = sum((Fraction(w) * Fraction(r) for w, r in rows), Fraction(0))
    return constant if have.completion_form else -constant
