"""A policy forgets one run before the next."""

from __future__ import annotations

from collections.abc import Iterator

from optsched.contract.check import Broken, check
from optsched.contract.subject import Subject
from optsched.policies.simulate import simulate
from optsched.policies.specification import specify


@check("memory", "one object serves several runs, and remembers nothing of one in the next")
def memory(subject: Subject) -> Iterator[Broken]:
    """The first instance, another one, and the first again; each as in a run of a new policy."""
    chosen, runs = specify(subject.text), subject.base
    for k in (0, min(2, len(runs) - 1), 0):
        subject.asked = runs[k].instance
        if subject.level.rows(simulate(runs[k].instance, chosen)) != subject.base_rows[k]:
            yield Broken("in a further run of the same object it decides otherwise", (runs[k].instance,))
