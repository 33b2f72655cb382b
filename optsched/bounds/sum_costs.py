"""Sum objectives as ``sum w_j max(0, C_j - c_j)``, and the least cost of each job alone, exactly.

c_j is the moment from which completion is counted: 0 for completion times, r_j for flow times, d_j (the due date) for
tardiness. w_j is 1 for the unweighted objectives. Every job costs at least its share in the schedule in which it never
waits, since C_j >= r_j + p_j with p_j its duration.
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
    """Arrays f64[n] of a sum objective, times in seconds.

    A job without a due date costs nothing: its weight here is 0. Under ``total_utility`` a job costs ``- gain_j / (C_j
    - r_j)`` with gain_j = w_j N_j, and its ``weight`` is 0.

    Attributes
    ----------
    objective
        Name of the objective.
    weight
        Weight w_j.
    release
        Release date r_j.
    duration
        Least seconds from release to completion.
    counted
        Moment c_j from which completion is counted.
    late
        Whether release + duration > c_j, bool[n].
    gain
        Utility gain_j; 0 for other objectives.
    """

    objective: str
    weight: Floats
    release: Floats
    duration: Floats
    counted: Floats
    late: Bools
    gain: Floats

    def alone(self, weight: Floats) -> Fraction:
        """Return ``sum weight_j max(0, r_j + p_j - c_j)``: the cost if no job ever waits.

        Parameters
        ----------
        weight
            Weights of the jobs, f64[n].
        """
        weight = np.where(self.late, weight, 0.0)
        value = exact_dot(weight, self.duration)
        if self.objective not in FLOW:
            value += exact_dot(weight, self.release)
        if self.objective in TARDINESS:
            value -= exact_dot(weight, self.counted)
        return value

    def data(self) -> dict[str, Any]:
        """Return what a certificate states: for flow times the constant ``sum w_j r_j``, which is subtracted."""
        if self.objective not in FLOW:
            return {}
        return {"flow_constant": ratio_text(exact_dot(self.weight, self.release))}


def sum_costs(instance: Instance, objective: str, duration: Floats | None = None) -> SumCosts:
    """Return the costs of a sum objective (one of `COMPLETION`, `FLOW`, `TARDINESS`) or of utility.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    objective
        Name of the objective.
    duration
        Least seconds from release to completion of every job, f64[n]; None: those of its gang alone.
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
    """Return whether ``release + duration > moment`` without rounding, bool[n].

    Rounding is monotone, so that the rounded sum decides unless it equals ``moment``; then its error decides.

    Parameters
    ----------
    release
        Release dates in seconds, f64[n].
    duration
        Durations in seconds, f64[n].
    moment
        Times to compare with, in seconds, f64[n].
    """
    end, error = two_sum(release, duration)
    after: Bools = (end > moment) | ((end == moment) & (error > 0))
    return after


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the rounded sum of two arrays and its error, which together are exactly ``a + b``.

    Parameters
    ----------
    a
        Numbers, f64[n].
    b
        Numbers, f64[n].

    Raises
    ------
    InputError
        A sum of seconds is beyond the largest float.

    References
    ----------
    Knuth, TAOCP vol. 2, 4.2.2, theorem B.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = a + b
        part = total - a
        error = (a - (total - part)) + (b - part)
    if not np.all(np.isfinite(total)):
        raise InputError("arrival + duration is beyond the largest float64", field="duration", legal="shorter times")
    return total, error
