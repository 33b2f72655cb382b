"""Another unit of time changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optsched.contract.check import Broken, check
from optsched.contract.levels import FASTER, faster
from optsched.contract.subject import Subject


@check(
    "unit",
    f"on a clock that ticks {FASTER} times as fast it decides the same",
    exempt=lambda subject: subject.own_seconds,
)
def unit(subject: Subject) -> Iterator[Broken]:
    """A power of two, so that nothing is rounded otherwise. Asked of policies without seconds of their own."""
    for instance in subject.level.scaled():
        made, scaled = subject.known_run(instance), faster(instance)
        other = subject.run(scaled)
        if subject.level.gangs:
            later, sooner = other.schedule.completion, made.schedule.completion
            same = np.array_equal(later / FASTER, sooner, equal_nan=True)
        else:
            same = subject.level.rows(other, lambda time: time / FASTER) == subject.level.rows(made)
        if not same:
            yield Broken(f"with every time {FASTER} times as long it decides otherwise", (instance, scaled))
