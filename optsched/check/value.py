"""Values of completion times, by formulas that are written here independently: exact for any floats and fractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from optsched.errors import InputError
from optsched.problem.instance import Instance
from optsched.speeds.equal_share import equal_share_times

DEFAULT_OBJECTIVE = "total_flow_time"

# Of every job, with C_j, r_j and d_j as multiples of one unit: its term, and whether w_j multiplies it.
TERMS: dict[str, tuple[Callable[[int, int, int], int], bool]] = {
    "total_completion_time": (lambda c, r, d: c, False),
    "total_weighted_completion_time": (lambda c, r, d: c, True),
    "total_flow_time": (lambda c, r, d: c - r, False),
    "total_weighted_flow_time": (lambda c, r, d: c - r, True),
    "makespan": (lambda c, r, d: c, False),
    "max_flow_time": (lambda c, r, d: c - r, False),
    "total_weighted_tardiness": (lambda c, r, d: max(c - d, 0), True),
}
MAXIMA = ("makespan", "max_flow_time")
FAIR = "max_fair_slowdown"  # max (C_j - r_j) / d_j, d_j the flow time on an equal share
UTILITY = "total_utility"  # the one that is maximised: sum w_j N_j / (C_j - r_j), N_j the work
UTILITY_UNIT = 2**100  # its terms are rounded down to multiples of 1 / this

Times = Sequence[float] | Sequence[Fraction]


def known_objective(instance: Instance, objective: str | None) -> str:
    """Return the name of an objective, by default that of the instance.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    objective
        Name of the objective, or None.

    Raises
    ------
    InputError
        There is no such objective.
    """
    name = (objective or instance.objective or DEFAULT_OBJECTIVE).replace("-", "_")
    if name not in (*TERMS, FAIR, UTILITY):
        raise InputError("not an objective", field="objective", value=name, legal=", ".join([*TERMS, FAIR, UTILITY]))
    return name


def exact_value(instance: Instance, completion: Times, objective: str) -> Fraction:
    """Return the exact value of completion times: a sum of integers in a common unit.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    completion
        Completion time of every job in seconds.
    objective
        Name of the objective.
    """
    if instance.n == 0:
        return Fraction(0)
    arrival, weight = instance.arrival.tolist(), instance.weight.tolist()
    ends: list[float | Fraction] = list(completion)
    if objective == UTILITY:
        rows = zip(*(map(Fraction, each) for each in (weight, instance.work.tolist(), ends, arrival)), strict=True)
        return Fraction(sum(int(w * work * UTILITY_UNIT / (c - r)) for w, work, c, r in rows), UTILITY_UNIT)
    if objective == FAIR:
        shares = zip(ends, arrival, equal_share_times(instance), strict=True)
        return max((Fraction(c) - Fraction(r)) / d for c, r, d in shares)
    term, weighted = TERMS[objective]
    # a job without a due date is never late
    due = [d if np.isfinite(d) else c for d, c in zip(instance.due.tolist(), ends, strict=True)]
    (c, r, d), unit = _in_common_unit(ends, arrival, due)
    terms = map(term, c, r, d)
    if not weighted:
        return Fraction(max(terms) if objective in MAXIMA else sum(terms), unit)
    (w,), weight_unit = _in_common_unit(weight)
    return Fraction(sum(map(int.__mul__, w, terms)), unit * weight_unit)


def _in_common_unit(*columns: Sequence[float | Fraction]) -> tuple[list[list[int]], int]:
    """The numbers as integers of ``1 / unit``: every float is a multiple of some power of two."""
    ratios = [[x.as_integer_ratio() for x in column] for column in columns]
    unit = math.lcm(*{q for row in ratios for _, q in row})
    return [[p * (unit // q) for p, q in row] for row in ratios], unit
