"""Objectives in Graham's notation. C_j completion, r_j arrival, w_j weight, d_j due date, N_j work.

All are minimised but `Utility`, a gain: there every bound is from above, and a ratio is bound / value. `FairSlowdown`
divides by the flow time of an equal share, which is then what is called d_j. `Objective.value` is for float arrays;
`Objective.exact` adds the same terms as fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Floats
from optsched.problem.fair_share import SharingJobs, fair_flow_times
from optsched.registry import Registry

Term = Callable[[Any, Any, Any, Any], Any]
Exact = int | Fraction  # whole numbers as integers, with which arithmetic is ten times as fast
DEFAULT = "total_flow_time"


def exact_number(x: Any) -> Any:
    """Return a number as an integer or a fraction; floats are taken as exact, and those that are not finite stay.

    Parameters
    ----------
    x
        Number.
    """
    if isinstance(x, int | Fraction):
        return x
    number = float(x)
    return int(number) if number.is_integer() else Fraction(number) if math.isfinite(number) else number


class JudgedJobs(SharingJobs, Protocol):
    """The part of an instance that decides the value of completion times."""

    @property
    def weight(self) -> Floats:
        """Weights w_j, f64[n]."""

    @property
    def due(self) -> Floats:
        """Due dates in seconds, f64[n]; infinite for a job without one."""

    @property
    def epoch(self) -> float:
        """First arrival, in seconds on the log's clock."""

    @property
    def objective(self) -> str | None:
        """Objective that is meant when none is named."""


@dataclass(frozen=True)
class Objective:
    """A sum or maximum over jobs of ``term(C_j, r_j, w_j, d_j)``.

    A maximum is over C_j less a constant of the job, or a multiple of that.

    ``completion_form`` names the completion-time objective that a flow-time objective differs from by the
    constant ``sum w_j r_j`` (``sum r_j`` unweighted); None elsewhere. ``clocked``: completion times appear
    alone in it, so that its value moves with the epoch of the log (`clock_part`).
    """

    name: str
    graham: str
    term: Term
    maximum: bool = False
    weighted: bool = False
    completion_form: str | None = None
    clocked: bool = False

    @property
    def gain(self) -> bool:
        """True if the objective is maximised."""
        return False

    def value(self, completion: Floats, arrival: Floats, weight: Floats, due: Floats) -> float:
        """Return the value of completion times; nan when a job has none.

        Parameters
        ----------
        completion
            Completion times in seconds, f64[n].
        arrival
            Release dates in seconds, f64[n].
        weight
            Weights, f64[n].
        due
            The d_j of the terms (`dates`), f64[n].
        """
        if completion.size == 0:
            return 0.0
        terms = self.term(completion, arrival, weight, due)
        return float(np.max(terms)) if self.maximum else float(np.sum(terms))

    def exact(self, completion: Sequence[Any], arrival: Floats, weight: Floats, due: Floats) -> Fraction:
        """Return the value in fractions.

        Parameters
        ----------
        completion
            Completion times; fractions, integers or floats, which are taken as exact.
        arrival
            Release dates in seconds, f64[n].
        weight
            Weights, f64[n].
        due
            The d_j of the terms (`dates`), f64[n].
        """
        rows = zip(completion, arrival.tolist(), weight.tolist(), due.tolist(), strict=True)
        terms = [self.exact_term(*map(exact_number, row)) for row in rows]
        return Fraction(max(terms, default=0) if self.maximum else sum(terms))

    def exact_term(self, completion: Exact, arrival: Exact, weight: Exact, due: Exact | float) -> Exact:
        """Return the term of one job, exactly.

        Parameters
        ----------
        completion
            Completion time in seconds.
        arrival
            Release date in seconds.
        weight
            Weight.
        due
            The d_j of the term; infinite if there is none.
        """
        row = completion, arrival, weight, due
        term = self.term(*row)
        if isinstance(term, int | Fraction):
            return term
        return Fraction(self.term(*(Fraction(x) if isinstance(x, int) else x for x in row)))  # it divides

    def dates(self, instance: JudgedJobs) -> Floats:
        """Return the d_j of the terms, f64[n]: due dates in seconds.

        Parameters
        ----------
        instance
            Jobs.
        """
        return instance.due

    def of(self, instance: JudgedJobs, completion: Floats) -> float:
        """Return the value of completion times of the jobs of an instance.

        Parameters
        ----------
        instance
            Jobs.
        completion
            Completion times in seconds, f64[n].
        """
        return self.value(completion, instance.arrival, instance.weight, self.dates(instance))

    def exact_of(self, instance: JudgedJobs, completion: Sequence[Any]) -> Fraction:
        """Return the value in fractions of completion times of the jobs of an instance.

        Parameters
        ----------
        instance
            Jobs.
        completion
            Completion times; fractions, integers or floats, which are taken as exact.
        """
        return self.exact(completion, instance.arrival, instance.weight, self.dates(instance))

    def clock_part(self, instance: JudgedJobs) -> Fraction:
        """Return the part of a value that comes from the log's clock: epoch x (n, sum w_j or 1), or 0.

        A value on the log's clock is larger by it than the value of times that count from the first arrival.

        Parameters
        ----------
        instance
            Jobs.
        """
        if not self.clocked or instance.n == 0:
            return Fraction(0)
        epoch = Fraction(instance.epoch)
        if self.maximum:
            return epoch
        return epoch * (sum(map(Fraction, instance.weight.tolist())) if self.weighted else instance.n)


@dataclass(frozen=True)
class FairSlowdown(Objective):
    """max_j (C_j - r_j) / d_j, d_j the flow time under equal sharing of all GPUs (`optsched.problem.fair_share`).

    If it is at most 1, nobody is worse off than on an equal share. Unlike the metric ``max_ftf``, whose yardstick is the
    number of jobs in the schedule that is judged, it can be bounded: d_j is a number of the instance.
    """

    def dates(self, instance: JudgedJobs) -> Floats:
        """Return the flow times under equal sharing, f64[n], in seconds.

        Parameters
        ----------
        instance
            Jobs.
        """
        return fair_flow_times(instance)


GAIN_BITS = 100  # terms of a gain are quotients: rounded to multiples of 2**-100, so that their sum stays short


@dataclass(frozen=True)
class Utility(Objective):
    """sum_j w_j N_j / (C_j - r_j), to be maximised: what jobs get done a second of their stay (effective throughput).

    N_j = work: iterations, or seconds of a job with a duration. Of a schedule's values and bounds only `of` and `exact_of`
    are defined, since a term depends on the work.
    """

    @property
    def gain(self) -> bool:
        """True: utility is maximised."""
        return True

    def of(self, instance: JudgedJobs, completion: Floats) -> float:
        """Return the value of completion times; nan when a job has none.

        Parameters
        ----------
        instance
            Jobs.
        completion
            Completion times in seconds, f64[n].
        """
        with np.errstate(divide="ignore"):
            return float(np.sum(instance.weight * instance.work / (completion - instance.arrival)))

    def exact_of(self, instance: JudgedJobs, completion: Sequence[Any]) -> Fraction:
        """Return the value in fractions, every term rounded down to a multiple of 2**-100.

        Parameters
        ----------
        instance
            Jobs.
        completion
            Completion times; fractions, integers or floats, which are taken as exact.
        """
        stay = [Fraction(c) - Fraction(r) for c, r in zip(completion, instance.arrival.tolist(), strict=True)]
        gained = [
            Fraction(w) * Fraction(n) for w, n in zip(instance.weight.tolist(), instance.work.tolist(), strict=True)
        ]
        scaled = sum(int(gain * 2**GAIN_BITS // time) for gain, time in zip(gained, stay, strict=True))
        return Fraction(scaled, 2**GAIN_BITS)


def _no_term(c: Any, r: Any, w: Any, d: Any) -> Any:
    raise InputError(
        "maximised, and it depends on the jobs' work",
        field="objective",
        value="total_utility",
        legal="an objective that is minimised; optsched.models.hadar_offline maximises utility over rounds",
    )


_MEAN = "total_flow_time? it is the mean JCT times the number of jobs, so that the same schedules are best"
_METRIC = "that is a metric, which run prints whatever the objective"
# metrics and names from elsewhere, and what is meant
_MEANT = {
    **dict.fromkeys(("mean-jct", "avg-jct", "average-jct", "jct", "mean-flow-time", "mean-completion-time"), _MEAN),
    **dict.fromkeys(("p50-jct", "p95-jct", "p99-jct", "max-jct"), f"max_flow_time, the largest JCT? {_METRIC}"),
    **dict.fromkeys(("mean-queueing", "queueing", "gpu-hours"), f"total_flow_time? {_METRIC}"),
    **dict.fromkeys(("utilization", "utilisation", "util"), f"makespan? {_METRIC}"),
    **dict.fromkeys(("max-ftf", "mean-ftf", "ftf"), f"max_fair_slowdown? {_METRIC}"),
    **dict.fromkeys(("cmax", "c-max"), "makespan? it is C_max"),
}
OBJECTIVES: Registry[Objective] = Registry("objective", meant=_MEANT)


def _tardiness(c: Any, r: Any, w: Any, d: Any) -> Any:
    if isinstance(c, np.ndarray):
        return w * np.maximum(c - d, 0.0)
    return w * max(c - d, Fraction(0)) if d != float("inf") else Fraction(0)


for _objective in (
    Objective("total_completion_time", "sum C_j", lambda c, r, w, d: c, clocked=True),
    Objective("total_weighted_completion_time", "sum w_j C_j", lambda c, r, w, d: w * c, weighted=True, clocked=True),
    Objective(
        "total_flow_time",
        "sum (C_j - r_j)",
        lambda c, r, w, d: c - r,
        completion_form="total_completion_time",
    ),
    Objective(
        "total_weighted_flow_time",
        "sum w_j (C_j - r_j)",
        lambda c, r, w, d: w * (c - r),
        weighted=True,
        completion_form="total_weighted_completion_time",
    ),
    Objective("makespan", "C_max", lambda c, r, w, d: c, maximum=True, clocked=True),
    Objective("max_flow_time", "F_max", lambda c, r, w, d: c - r, maximum=True),
    FairSlowdown(
        "max_fair_slowdown",
        "max (C_j - r_j) / d_j, d_j on an equal share",
        lambda c, r, w, d: (c - r) / d,
        maximum=True,
    ),
    Objective("total_weighted_tardiness", "sum w_j max(C_j - d_j, 0)", _tardiness, weighted=True),
    Utility("total_utility", "max sum w_j N_j / (C_j - r_j)", _no_term, weighted=True),
):
    OBJECTIVES.register(_objective.name)(_objective)


def get_objective(name: str) -> Objective:
    """Return the objective of a name.

    Parameters
    ----------
    name
        Name, with ``_`` or ``-``.

    Raises
    ------
    InputError
        If there is none, with near matches.
    """
    return OBJECTIVES.get(name.replace("-", "_") if name not in OBJECTIVES else name)


def objective_of(instance: JudgedJobs, name: str | None = None) -> Objective:
    """Return the objective of a name, else the instance's own, else ``total_flow_time``.

    Parameters
    ----------
    instance
        Jobs.
    name
        Name of the objective; None for the instance's own.

    Raises
    ------
    InputError
        If there is no objective of that name.
    """
    return get_objective(name or instance.objective or DEFAULT)
