"""A policy says plainly what it is."""

from __future__ import annotations

import math
from collections.abc import Iterator

from optsched.contract.check import Broken, check
from optsched.contract.subject import Subject
from optsched.parameters import parameters_of
from optsched.policies.specification import METHODS
from optsched.simulation.policy import uses_of

SECONDS = ("restart", "first_start", "round", "interval")


@check("parameters", "it decides in one way, its numbers of seconds are legal, its parameters are kept as given")
def parameters(subject: Subject) -> Iterator[Broken]:
    """Name, knowledge and what it uses were legal, or there would be no subject."""
    policy = subject.policy
    uses_of(policy)
    found = [method for method in METHODS if callable(getattr(policy, method, None))]
    if len(found) != 1:
        yield Broken(f"it has {' and '.join(found)}: nobody knows which of them decides")
    for name in SECONDS:
        seconds = getattr(policy, name, 0)
        if not (isinstance(seconds, int | float) and math.isfinite(seconds) and seconds >= 0):
            yield Broken(f"{name} = {seconds!r} is no finite number of seconds >= 0")
    defaults = parameters_of(type(policy))
    for name, value in parameters_of(type(policy)).items():
        try:
            kept = getattr(type(policy)(**{name: value}), name, ...)
        except Exception as error:  # whatever somebody's constructor raises
            yield Broken(f"its own default {name} = {value!r} is refused: {type(error).__name__}: {error}")
            continue
        if kept is not ... and kept != defaults[name]:
            yield Broken(f"{name} = {value!r} becomes {kept!r}")
