"""A later clock shifts the schedule, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from optsched.contract.check import Broken, check
from optsched.contract.levels import SHIFT, later
from optsched.contract.subject import Subject


@check("clock", f"when everything happens {SHIFT:g} s later, so does the schedule, and nothing else changes")
def clock(subject: Subject) -> Iterator[Broken]:
    """Exact where the times of an instance are integers."""
    for instance in subject.level.shifted():
        moved = later(instance)
        shifted = subject.level.rows(subject.known_run(instance), lambda time: time + SHIFT)
        if subject.level.rows(subject.run(moved)) != shifted:
            yield Broken(f"on a clock that is {SHIFT:g} s later it decides otherwise", (instance, moved))
