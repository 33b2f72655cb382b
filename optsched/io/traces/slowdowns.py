"""Parameter ``xi`` of recipes whose jobs may share GPUs: a number, a law, or a measured table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from optsched.io.traces.generate import Parameter
from optsched.problem.interference import MOST, Interference
from optsched.speeds.interference_sources import random_interference

EXPONENTIAL = "exp"
EXCESS = 0.5  # mean of xi - 1


def slowdowns(default: str, *words: str) -> Parameter:
    """Return the parameter: a number >= 1 for every pair, ``exp``, or one of ``words``.

    ``exp`` means xi = 1 + Exp(0.5) for every ordered pair of kinds.

    Parameters
    ----------
    default
        Default value.
    *words
        Further legal words.
    """
    named = (EXPONENTIAL, *words)

    def parse(value: object) -> float | str:
        if value in named:
            return str(value)
        number = float(str(value))
        if isinstance(value, bool) or not 1 <= number <= MOST:
            raise ValueError(value)
        return number

    return Parameter(default, f"a number >= 1, or {' or '.join(named)}", "slow-down of two jobs on one GPU", parse)


def interference_of(
    xi: float | str,
    kinds: Sequence[str],
    rng: np.random.Generator,
    tables: Mapping[str, Interference] = MappingProxyType({}),
) -> Interference:
    """Return the interference that a value of the parameter means for jobs of the given kinds.

    Parameters
    ----------
    xi
        Value of the parameter.
    kinds
        Kinds of the jobs.
    rng
        Random generator.
    tables
        Meaning of the further words.
    """
    if isinstance(xi, float):
        return Interference(xi)
    if xi == EXPONENTIAL:
        return random_interference(kinds, EXCESS, int(rng.integers(2**31)))
    return tables[xi].restricted(kinds)
