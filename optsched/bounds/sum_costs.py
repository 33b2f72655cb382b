"""Sum objectives as ``sum w_j max(0, C_j - c_j)`` and what each job costs at least on its own, exactly.

c_j is the moment from which completion is counted: 0 for completion times, r_j for flow times, d_j (the due date) for
tardiness; w_j is 1 for the unweighted objectives. Every job costs at least its share in the schedule in which it
never waits, since C_j >= r_j + p_j with p_j its duration.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.bounds.certificate import ratio_text
from optsched.bounds.exact_dot import exact_dot
from optsched.errors import InputError
from optsched.problem.arrays import Bools, Floats
from optsched.problem.instance import Instance
from optsched.speeds.duration import seconds_alone

COMPLETION = ("total_completion_time", "total_weighted_completion_time")
FLOW = ("total_flow_time", "total_weighted_flow_time")
TARDINESS = ("total_weighted_tardiness",)
SUMS = (*COMPLETION, *FLOW, *TARDINESS)
MAKESPAN, LARGEST_FLOW, FAIR, UTILITY = "makespan", "max_flow_time", "max_fair_slowdown", "total_utility"
_UNWEIGHTED = ("total_completion_time", "total_flow_time")


@dataclass(frozen=True)
class SumCosts:
    """Arrays f64[n] of an objective: ``weight`` w_j, ``release``, ``duration``, ``counted`` c_j (seconds).

    Jobs without a due date cost nothing: their weight here is 0. ``late`` marks the jobs with release + duration > c_j.
    Of ``total_utility`` a job costs ``- gain_j / (C_j - r_j)``, gain_j = w_j N_j, beside its ``weight``, which is 0.
    """

    objective: str
    weight: Floats
    release: Floats
    duration: Floats
    counted: Floats
    late: Bools
    gain: Floats

    def alone(self, weight: Floats) -> Fraction:
        """``sum weight_j max(0, r_j + p_j - c_j)``: the cost when nobody ever waits."""
        weight = np.where(self.late, weight, 0.0)
        value = exact_dot(weight, self.duration)
        if self.objective not in FLOW:
            value += exact_dot(weight, self.release)
        if self.objective in TARDINESS:
            value -= exact_dot(weight, self.counted)
        return value

    def data(self) -> dict[str, Any]:
        """For a flow-time objective the constant ``sum w_j r_j`` that parts it from its completion-time form."""
        if self.objective not in FLOW:
            return {}
        return {"flow_constant": ratio_text(exact_dot(self.weight, self.release))}


def sum_costs(instance: Instance, objective: str, duration: Floats | None = None) -> SumCosts:
    """The costs of a sum objective (one of `COMPLETION`, `FLOW`, `TARDINESS`) or of utility.

    ``duration`` f64[n]: seconds that a job takes at least from its release to its completion, if not its gang's alone.
    """
    release, duration = instance.arrival, seconds_alone(instance) if duration is None else duration
    weight = np.ones(instance.n) if objective in _UNWEIGHTED else instance.weight
    counted = np.zeros(instance.n)
    if objective in FLOW:
        counted = release
    elif objective in TARDINESS:
        promised = np.isfinite(instance.due)
        weight = np.where(promised, weight, 0.0)
        counted = np.where(promised, instance.due, 0.0)
    elif objective == UTILITY:
        weight = np.zeros(instance.n)
    late = ends_after(release, duration, counted) if objective in TARDINESS else np.ones(instance.n, dtype=bool)
    gain = instance.weight * instance.work if objective == UTILITY else np.zeros(instance.n)
    return SumCosts(objective, weight, release, duration, counted, late, gain)


def ends_after(release: Floats, duration: Floats, moment: Floats) -> Bools:
    """Is ``release + duration > moment``, without rounding? bool[n].

    Rounding is monotone, so the rounded sum decides unless it equals ``moment``; then its error does.
    """
    end, error = two_sum(release, duration)
    after: Bools = (end > moment) | ((end == moment) & (error > 0))
    return after


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """(rounded sum, its error): together exactly ``a + b`` (Knuth, TAOCP vol. 2, 4.2.2, theorem B).

    Raises `InputError` where a sum of seconds is beyond the largest float.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = a + b
        part = total - a
        error = (a - (total - part)) + (b - part)
    if not np.all(np.isfinite(total)):
        raise InputError("arrival + duration is beyond the largest float64", field="duration", legal="shorter times")
    return total, error
