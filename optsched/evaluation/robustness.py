"""Consistency and robustness: the ratio of policies that trust predictions, at several prediction errors.

Predictions are those of `optsched.policies.predictors.noisy`: n_j error^u_j, u_j uniform in [-1, 1], with the
same u_j for every error. **Consistency** is the worst ratio over a suite with perfect predictions (error 1).
**Robustness** is the worst ratio at any error that was tried. Both are lower bounds on the quantities that
theorems call so, because a suite is a sample.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from optsched.errors import InputError, check_legal
from optsched.evaluation.evaluate import several
from optsched.evaluation.suite_ratios import PolicyRatios, RatioTable, ratios
from optsched.evaluation.suites import Suite, suite
from optsched.policies import POLICIES
from optsched.policies.simulate import PolicyLike, Specification, specify
from optsched.registry import parameters_of

FORMAT = "optsched-robustness/1"
ERRORS = (1.0, 1.25, 1.5, 2.0, 4.0, 8.0)


@dataclass(frozen=True)
class CurvePoint:
    """A policy at one prediction error, over the suite and all draws.

    Parameters
    ----------
    error
        The prediction error, at least 1.
    worst, mean
        Worst and mean ratio; None if no instance has one.
    factor
        The largest factor that a theorem promised on the objective; None if none did.
    violated
        The number of violated judgements.
    """

    error: float
    worst: float | None
    mean: float | None
    factor: float | None
    violated: int


@dataclass(frozen=True)
class RobustnessCurve:
    """A policy at every prediction error.

    Parameters
    ----------
    policy
        The policy as it is written.
    points
        One point an error, ascending.
    rows
        The ratios at every error and draw.
    """

    policy: str
    points: tuple[CurvePoint, ...]
    rows: tuple[PolicyRatios, ...]

    @property
    def consistency(self) -> float | None:
        """The worst ratio with perfect predictions; None if error 1 was not tried."""
        return next((point.worst for point in self.points if point.error == 1), None)

    @property
    def robustness(self) -> float | None:
        """The worst ratio at any error; None if no instance has one."""
        return max((point.worst for point in self.points if point.worst is not None), default=None)

    @property
    def worst_row(self) -> PolicyRatios:
        """The ratios at the error and draw with the worst ratio; the first of equal ones."""
        return max(self.rows, key=lambda row: row.worst or 0.0)


@dataclass(frozen=True)
class Robustness:
    """Curves of policies over a suite.

    Parameters
    ----------
    suite
        Name of the suite.
    draws
        Number of draws of the noise at every error.
    curves
        One curve a policy.
    table
        All ratios that were measured.
    """

    suite: str
    draws: int
    curves: tuple[RobustnessCurve, ...]
    table: RatioTable

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``ratio --errors --json``, which ``plot`` draws."""
        return {
            "format": FORMAT,
            "suite": self.suite,
            "objective": self.table.objective,
            "draws": self.draws,
            "policies": [
                {
                    "policy": curve.policy,
                    "consistency": curve.consistency,
                    "robustness": curve.robustness,
                    "points": [dataclasses.asdict(point) for point in curve.points],
                }
                for curve in self.curves
            ],
        }


def assisted() -> list[str]:
    """Return the names of the registered policies that take a predictor."""
    return [name for name, policy in POLICIES.items() if "predictor" in parameters_of(policy)]


def errors_in(text: str) -> list[float]:
    """Return the numbers that a text like ``1,1.5,2`` lists.

    Parameters
    ----------
    text
        Numbers, separated by commas.

    Raises
    ------
    InputError
        A part is not a number.
    """
    found = []
    for part in text.split(","):
        try:
            found.append(float(part))
        except ValueError:
            raise InputError("not a number", field="errors", value=part, legal="factors >= 1, as in 1,1.5,2") from None
    return found


def robustness_curves(
    over: str | Suite,
    policies: PolicyLike | Iterable[PolicyLike] | None = None,
    objective: str | None = None,
    *,
    errors: Sequence[float] = ERRORS,
    draws: int = 1,
    progress: Callable[[int, int], None] | None = None,
    so_far: Callable[[RatioTable], None] | None = None,
) -> Robustness:
    """Measure the ratios of policies that take predictions over a suite, at every prediction error.

    Parameters
    ----------
    over
        As for `optsched.ratios`.
    policies
        Policies that take a predictor and do not name one: the predictor is what varies. Default: all of them
        (`assisted`).
    objective
        Name of the objective. Default: each instance's own.
    errors
        Prediction errors, each at least 1.
    draws
        Number of draws of the noise at every error, with the seeds 0 to ``draws`` - 1.
    progress
        Called with (instances done, all instances).
    so_far
        Called after each instance with the table of those done.

    Raises
    ------
    InputError
        A policy takes no predictor or names its own, an error or the number of draws is invalid, or
        `optsched.ratios` refuses an argument.

    Examples
    --------
    >>> import optsched as osd
    >>> osd.robustness_curves("rigid-06-1", ["spjf"], errors=(1.0, 2.0), draws=2).draws
    2
    """
    check_legal(draws >= 1, "draws", draws, "an integer >= 1")
    asked = [specify(policy) for policy in several(assisted() if policies is None else policies)]
    where = over if isinstance(over, Suite) else suite(over)
    levels = sorted(dict.fromkeys(float(error) for error in errors))
    check_legal(bool(levels), "errors", levels, "at least one factor >= 1")
    noisy = [_believing(chosen, error, draw) for chosen in asked for error in levels for draw in range(draws)]
    table = ratios(where, noisy, objective, progress=progress, so_far=so_far)
    size = len(levels) * draws
    curves = []
    for k, chosen in enumerate(asked):
        rows = table.policies[k * size : (k + 1) * size]
        points = tuple(_point(error, rows[i * draws : (i + 1) * draws]) for i, error in enumerate(levels))
        curves.append(RobustnessCurve(chosen.text, points, rows))
    return Robustness(where.name, draws, tuple(curves), table)


def _believing(chosen: Specification, error: float, draw: int) -> Specification:
    policy: Any = chosen.policy
    head, plus, place = chosen.text.partition("+")
    if "predictor" not in parameters_of(type(policy)):
        raise InputError("it takes no predictions", field="policy", value=chosen.text, legal=", ".join(assisted()))
    if "predictor=" in head:
        legal = "no predictor: its error is what varies"
        raise InputError("it names its predictor", field="policy", value=chosen.text, legal=legal)
    predictor = f"noisy/error={error:g}/seed={draw}"
    text = f"{head}{',' if ':' in head else ':'}predictor={predictor}{plus}{place}"
    return Specification(text, dataclasses.replace(policy, predictor=predictor), chosen.placement)


def _point(error: float, rows: Sequence[PolicyRatios]) -> CurvePoint:
    measured = [entry for row in rows for entry in row.measured]
    values = [entry.ratio for entry in measured if entry.ratio is not None]
    judged = [(entry.objective, entry.guarantee) for entry in measured if entry.guarantee is not None]
    factors = [judgement.ratio for objective, judgement in judged if judgement.objective == objective]
    return CurvePoint(
        error,
        max(values, default=None),
        sum(values) / len(values) if values else None,
        max(factors, default=None),
        sum(judgement.holds is False for _, judgement in judged),
    )
