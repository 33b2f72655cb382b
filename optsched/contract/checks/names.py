"""Names are names."""

from __future__ import annotations

from collections.abc import Iterator

from optsched.contract.check import Broken, check
from optsched.contract.levels import renamed
from optsched.contract.subject import Subject


@check("names", "names of jobs, users and groups do not matter")
def names(subject: Subject) -> Iterator[Broken]:
    """Nor those of models, where no speed depends on them."""
    for run, before in zip(subject.base, subject.base_rows, strict=True):
        other = renamed(run.instance)
        if subject.level.rows(subject.run(other)) != before:
            yield Broken("with other names of jobs and users it decides otherwise", (run.instance, other))
