"""A policy goes to other processes."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

from optsched.contract.check import Broken, check
from optsched.contract.subject import Subject
from optsched.policies.simulate import simulate
from optsched.policies.specification import Specification, specify


@check("pickles", "it can be pickled, and what comes back decides the same")
def pickles(subject: Subject) -> Iterator[Broken]:
    """Several processes run it, as in sweeps and searches."""
    chosen, first = specify(subject.text), subject.base[0]
    try:
        back = pickle.loads(pickle.dumps(chosen.policy))
    except Exception as error:  # whatever somebody's object raises
        yield Broken(f"it cannot be pickled: {type(error).__name__}: {error}")
        return
    subject.asked = first.instance
    run = simulate(first.instance, Specification(subject.text, back, chosen.placement))
    if subject.level.rows(run) != subject.base_rows[0]:
        yield Broken("what comes out of the pickle decides otherwise", (first.instance,))
