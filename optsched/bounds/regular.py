"""Regular objectives as numbers: ``base_j + slope_j max(C_j - kink_j, 0)``, summed or maximised over jobs.

Completion and flow times have their kink at 0, tardiness at the due date. Compiled loops and exact certificates read
these numbers and do not call an `Objective`, so that every objective whose term has this shape is served.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.problem.objectives import Exact, Objective, exact_number

__all__ = ["ExactCost", "RegularCost", "exact_cost", "exact_costs", "regular_cost"]


@dataclass(frozen=True)
class RegularCost:
    """Costs of jobs: job j that completes at C (seconds) costs ``base[j] + slope[j] max(C - kink[j], 0)``; f64[n] each.

    ``maximum``: the objective is the largest cost, not the sum.
    """

    slope: Floats
    kink: Floats
    base: Floats
    maximum: bool

    def value(self, completion: Floats) -> float:
        """Return the objective of completion times.

        Parameters
        ----------
        completion
            Completion times in seconds, f64[n].
        """
        cost = self.base + self.slope * np.maximum(completion - self.kink, 0.0)
        if cost.size == 0:
            return 0.0
        return float(cost.max() if self.maximum else cost.sum())


@dataclass(frozen=True)
class ExactCost:
    """The `RegularCost` of one job, in fractions."""

    slope: Fraction
    kink: Fraction
    base: Fraction

    def at(self, completion: Fraction) -> Fraction:
        """Return the cost of a completion time.

        Parameters
        ----------
        completion
            Completion time in seconds.
        """
        return self.base + self.slope * max(completion - self.kink, Fraction(0))


@lru_cache(maxsize=4096)  # few different jobs: a search asks for the same ones in thousands of small instances
def exact_cost(objective: Objective, release: float, weight: float, due: float) -> ExactCost:
    """Return the cost of a job, which is read off the objective's own term at a few points.

    Parameters
    ----------
    objective
        The objective.
    release
        Release date in seconds.
    weight
        Weight.
    due
        Date of the term in seconds (`Objective.dates`); infinite if there is none.

    Raises
    ------
    InputError
        The term does not have the shape of `RegularCost`: no bound or search of this form applies to it.
    """
    r, w, d = map(exact_number, (release, weight, due))

    def term(completion: Exact) -> Exact:
        return objective.exact_term(completion, r, w, d)

    late = max(r, d if math.isfinite(d) else 0, 0) + 1
    base, least = term(0), term(late)
    slope = term(late + 1) - least
    kink = late - (least - base if slope == 1 else Fraction(least - base) / slope) if slope else 0
    probes = (late // 3, late - 1, 7 * late + 3)
    if slope < 0 or kink < 0 or any(term(point) != base + slope * max(point - kink, 0) for point in probes):
        raise InputError(
            "not a cost of the form base + slope max(C - kink, 0), slope >= 0", field="objective", value=objective.name
        )
    return ExactCost(Fraction(slope), Fraction(kink), Fraction(base))


def _costs(objective: Objective, instance: Instance) -> tuple[ExactCost, ...]:
    columns = (instance.arrival, instance.weight, objective.dates(instance))
    return tuple(exact_cost(objective, *row) for row in zip(*(column.tolist() for column in columns), strict=True))


@lru_cache(maxsize=2)  # a solve asks more than once, and fractions of 20,000 jobs take seconds
def exact_costs(objective: Objective, instance: Instance) -> tuple[ExactCost, ...]:
    """Return the costs of all jobs in fractions.

    Parameters
    ----------
    objective
        The objective.
    instance
        Jobs and a cluster.
    """
    return _costs(objective, instance)


FEW = 64  # jobs whose digest takes longer than their costs


def regular_cost(objective: Objective, instance: Instance) -> RegularCost:
    """Return the costs of all jobs as float64 arrays. Complexity O(n).

    Parameters
    ----------
    objective
        The objective.
    instance
        Jobs and a cluster.
    """
    costs = (_costs if instance.n <= FEW else exact_costs)(objective, instance)
    return RegularCost(
        slope=np.array([float(c.slope) for c in costs]),
        kink=np.array([float(c.kink) for c in costs]),
        base=np.array([float(c.base) for c in costs]),
        maximum=objective.maximum,
    )
