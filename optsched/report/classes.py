"""Which ratios of a table may be compared: those to bounds of one class of schedules, and no others.

A class with more freedom (preemption, sharing, other numbers of GPUs) has a smaller optimum, so that a ratio to its bound is
larger for the same schedule: 1.18 in one class may be the better schedule beside 1.17 in another.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from string import ascii_lowercase

UNLIKE = "ratios with different letters are to bounds of different classes of schedules: they cannot be compared"


def marks(bounds: Sequence[Mapping[str, Hashable]]) -> list[str]:
    """A letter for every row of a table, the same for rows that may be compared; "" for all where all may be.

    ``bounds``: of every row what its ratio on an instance is to, by instance: a class of schedules, or the value of a bound.
    Rows may be compared where these are the same on all instances that both have.
    """
    first: list[Mapping[str, Hashable]] = []
    groups = []
    for row in bounds:
        alike = (
            k for k, other in enumerate(first) if all(row[name] == other[name] for name in row.keys() & other.keys())
        )
        group = next(alike, len(first))
        if group == len(first):
            first.append(row)
        groups.append(group)
    if len(first) < 2:
        return [""] * len(groups)
    return [ascii_lowercase[group] if group < len(ascii_lowercase) else f"({group + 1})" for group in groups]
