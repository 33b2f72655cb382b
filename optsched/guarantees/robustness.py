"""Consistency and robustness: what a policy that trusts predictions loses when these are right, and as they get worse.

Predictions are those of `optsched.policies.predictors.noisy`: n_j error^u_j, u_j uniform in [-1, 1], the same u_j for every
error. **Consistency** is the worst ratio over a suite where they are the truth (error 1), **robustness** the worst at any
error that was tried: lower bounds of what theorems call so, as instances are a sample.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from optsched.errors import InputError, check_legal
from optsched.guarantees.evaluate import PolicyLike, PolicyRatios, RatioTable, ratios, several
from optsched.guarantees.suites import Suite, suite
from optsched.policies import POLICIES
from optsched.policies.simulate import Specification, specify
from optsched.registry import parameters_of

FORMAT = "optsched-robustness/1"
ERRORS = (1.0, 1.25, 1.5, 2.0, 4.0, 8.0)


@dataclass(frozen=True)
class CurvePoint:
    """A policy at one prediction ``error`` >= 1, over the suite and all draws.

    ``worst`` and ``mean`` ratio (None: no instance has one); ``factor`` the largest that a theorem promised there on the
    objective (None: none did), ``violated`` how often it was broken.
    """

    error: float
    worst: float | None
    mean: float | None
    factor: float | None
    violated: int


@dataclass(frozen=True)
class RobustnessCurve:
    """A policy at every error, ascending; ``rows``: what was measured, every error and draw."""

    policy: str
    points: tuple[CurvePoint, ...]
    rows: tuple[PolicyRatios, ...]

    @property
    def consistency(self) -> float | None:
        """The worst ratio where predictions are the truth; None where error 1 was not tried."""
        return next((point.worst for point in self.points if point.error == 1), None)

    @property
    def robustness(self) -> float | None:
        """The worst ratio at any error."""
        return max((point.worst for point in self.points if point.worst is not None), default=None)

    @property
    def worst_row(self) -> PolicyRatios:
        """The error and draw at which it is worst, the first of equal ones."""
        return max(self.rows, key=lambda row: row.worst or 0.0)


@dataclass(frozen=True)
class Robustness:
    """Curves of policies over a suite with ``draws`` of the noise; ``table``: all that was measured."""

    suite: str
    draws: int
    curves: tuple[RobustnessCurve, ...]
    table: RatioTable

    def to_json(self) -> dict[str, Any]:
        """The document of ``ratio --errors --json``, which ``plot`` draws."""
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
    """The registered policies that take a predictor."""
    return [name for name, policy in POLICIES.items() if "predictor" in parameters_of(policy)]


def errors_in(text: str) -> list[float]:
    """``1,1.5,2`` as numbers; `InputError` for what is none."""
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
    """The ratios of prediction-assisted policies over a suite at every prediction error.

    Parameters
    ----------
    over : as in `optsched.guarantees.evaluate.ratios`.
    policies : default: all that take a predictor (`assisted`). They may not name theirs: it is what varies.
    errors : factors from 1 on; ``draws``: how many draws of the noise at each, seeds 0 .. draws - 1.

    Raises `InputError`: a policy without a predictor, or with one of its own choice; an error or a number of draws that is
    invalid; what `ratios` refuses.
    """
    check_legal(draws >= 1, "draws", draws, "an integer >= 1")
    asked = [specify(each) for each in several(assisted() if policies is None else policies)]
    where = over if isinstance(over, Suite) else suite(over)
    levels = sorted(dict.fromkeys(float(error) for error in errors))
    check_legal(bool(levels), "errors", levels, "at least one factor >= 1")
    noisy = [_believing(each, error, draw) for each in asked for error in levels for draw in range(draws)]
    table = ratios(where, noisy, objective, progress=progress, so_far=so_far)
    size = len(levels) * draws
    curves = []
    for k, each in enumerate(asked):
        rows = table.policies[k * size : (k + 1) * size]
        points = tuple(_point(error, rows[i * draws : (i + 1) * draws]) for i, error in enumerate(levels))
        curves.append(RobustnessCurve(each.text, points, rows))
    return Robustness(where.name, draws, tuple(curves), table)


def _believing(each: Specification, error: float, draw: int) -> Specification:
    policy: Any = each.policy
    head, plus, place = each.text.partition("+")
    if "predictor" not in parameters_of(type(policy)):
        raise InputError("it takes no predictions", field="policy", value=each.text, legal=", ".join(assisted()))
    if "predictor=" in head:
        legal = "no predictor: its error is what varies"
        raise InputError("it names its predictor", field="policy", value=each.text, legal=legal)
    predictor = f"noisy/error={error:g}/seed={draw}"
    text = f"{head}{',' if ':' in head else ':'}predictor={predictor}{plus}{place}"
    return Specification(text, dataclasses.replace(policy, predictor=predictor), each.placement)


def _point(error: float, rows: Sequence[PolicyRatios]) -> CurvePoint:
    measured = [each for row in rows for each in row.measured]
    found = [each.ratio for each in measured if each.ratio is not None]
    judged = [(each.objective, each.guarantee) for each in measured if each.guarantee is not None]
    factors = [judgement.ratio for objective, judgement in judged if judgement.objective == objective]
    return CurvePoint(
        error,
        max(found, default=None),
        sum(found) / len(found) if found else None,
        max(factors, default=None),
        sum(judgement.holds is False for _, judgement in judged),
    )
