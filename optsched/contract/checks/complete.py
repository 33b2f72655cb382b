"""No job is lost."""

from __future__ import annotations

from collections.abc import Iterator

from optsched.contract.check import Broken, check
from optsched.contract.subject import Subject


@check("complete", "every job finishes")
def complete(subject: Subject) -> Iterator[Broken]:
    """Every job of `Level.instances` fits on GPUs of one type, so that nothing excuses a policy that leaves one waiting."""
    for run in subject.base:
        if run.unfinished:
            first, *others = run.unfinished
            yield Broken(f"job {first!r} never finishes, nor do {len(others)} others", (run.instance,))
