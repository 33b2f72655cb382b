"""`Outcome`, the result of one solve of a program, and `round_bound`, the bound it proves where values lie on a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from optsched.problem.arrays import Floats

BOUND_TOLERANCE = 1e-6  # relative; HiGHS's MIP bounds are floats, so rounding up must not trust their last digits

T = TypeVar("T")


def there(found: T | None) -> T:
    """Return a value that a method needs and that its ``applies`` has checked; an incumbent always exists.

    Parameters
    ----------
    found
        The value.

    Raises
    ------
    AssertionError
        If the value is None.
    """
    if found is None:
        raise AssertionError("only called where its applies has looked, with an incumbent")
    return found


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one `Session.solve`.

    ``status``: optimal | infeasible | unbounded | limit | feasible (`Session.solve_finely`: optimal to HiGHS's tolerances,
    which were too coarse). ``value`` is None without a solution, and where the objective has no limit; ``bound`` is the
    proved bound in the model's sense (None if nothing is proved; an LP's is its optimum). For a MIP it is a float
    reported by HiGHS. ``iterations`` are simplex iterations, ``nodes`` branch-and-bound nodes: both are deterministic,
    seconds are not.
    """

    status: str
    value: float | None
    bound: float | None
    x: Floats | None
    nodes: int
    iterations: int
    seconds: float

    @property
    def gap(self) -> float:
        """Relative gap |value - bound| / |value|; inf if either is missing, 0 if they are equal."""
        if self.value is None or self.bound is None:
            return math.inf
        return abs(self.value - self.bound) / max(abs(self.value), 1e-12) if self.value != self.bound else 0.0


def round_bound(bound: float, step: Fraction | float | None, offset: float = 0.0, sense: int = 1) -> float:
    """Return the nearest value ``offset + k step`` that a float bound still proves; ``bound`` itself if ``step`` is None.

    A minimisation's bound is rounded up, a maximisation's down, after it is weakened by 1e-6 relatively.

    Parameters
    ----------
    bound
        The float bound.
    step
        Step of objective values; None: unknown.
    offset
        Constant of the objective.
    sense
        1 minimises, -1 maximises.
    """
    if step is None or not math.isfinite(bound):
        return bound
    slack = BOUND_TOLERANCE * max(1.0, abs(bound))
    k = math.ceil((sense * (bound - offset) - slack) / float(step))
    return float(Fraction(offset) + sense * k * Fraction(step))
