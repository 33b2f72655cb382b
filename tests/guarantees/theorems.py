"""Theorems for tests: filed while a test runs, and gone afterwards."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

from optsched.guarantees.guarantee import GUARANTEES, Guarantee
from optsched.guarantees.list_scheduling import GRAHAM


def false_theorem(**changes: object) -> Guarantee:
    """Graham's theorem with a factor of 1.2, which is too small from two machines on, and without its audit."""
    said = {"id": "false", "ratio": lambda policy, run: 1.2, "audit": lambda policy, run: []}
    return dataclasses.replace(GRAHAM, **{**said, **changes})


@contextmanager
def filed(theorem: Guarantee) -> Iterator[Guarantee]:
    """The theorem is registered inside the block."""
    GUARANTEES.register(theorem.id)(theorem)
    try:
        yield theorem
    finally:
        GUARANTEES._things.pop(theorem.id)
