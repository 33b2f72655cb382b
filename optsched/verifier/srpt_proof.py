"""Theorems srpt and srpt-due-dates, of completion times, flow times and tardiness.

On one machine SRPT (shortest remaining processing time first) has the earliest k-th completion for every k. For tardiness
these completions are compared with the due dates in order. Weights are cut into levels, and each level is a sum of its own.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

from .certified_case import Case, Proof
from .document_fields import Data, read_field, read_ratio, written
from .exact_numbers import integers
from .refusal import DUAL, need
from .tick_machine import dues, srpt_ends

MOST_LEVELS = 16


def srpt(case: Case, data: Data) -> Proof:
    """Prove the sum over completions of SRPT, level by level of weight.

    Parameters
    ----------
    case
        What the certificate is about.
    data
        Data of the certificate: ``levels``, and those of the machine.

    Returns
    -------
    tuple
        The value, and the data that the certificate must state.
    """
    on, value, levels = case.machine(data), case.least, stated_levels(data)
    due = dues(case.moment, case.unit, on) if case.late else []
    tails, parts = integers(on.tail or [0.0] * case.n)
    for lower, level in pairwise([Fraction(0), *levels]):
        least = math.ceil(level * case.shares)
        chosen = [j for j, w in enumerate(case.weight) if w >= least and on.work[j] > 0]
        ends = srpt_ends([on.release[j] for j in chosen], [on.work[j] for j in chosen])
        if case.late:
            ends = [max(end - d, 0) for end, d in zip(ends, sorted([due[j] for j in chosen]), strict=True)]
        waited = sum(ends) / on.second
        if not case.late:
            waited += Fraction(sum([tails[j] for j in chosen]), parts)
        never = sum([case.alone[j] for j in chosen])
        if case.flow:
            never += sum([case.release[j] for j in chosen])
        value += (level - lower) * (waited - Fraction(never, case.unit))
    return value, {**case.stated, **on.stated, "levels": [written(level) for level in levels]}


def stated_levels(data: Data) -> list[Fraction]:
    """Return the levels of weight that the data of a certificate state.

    Parameters
    ----------
    data
        Data of the certificate: ``levels``, fractions that ascend from above 0.
    """
    levels = [read_ratio(text, "data.levels") for text in read_field(list, data, "levels")[: MOST_LEVELS + 1]]
    need(len(levels) <= MOST_LEVELS, f"data.levels: more than {MOST_LEVELS}")
    need(all(a < b for a, b in pairwise([Fraction(0), *levels])), "data.levels must ascend from above 0", DUAL)
    return levels
