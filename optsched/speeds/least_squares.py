"""`Fitted`: a model and how far to trust it; and least squares whose coefficients have a sign.

Constants that are times cannot be negative: `non_negative` is non-negative least squares (the active sets of Lawson and
Hanson), one global optimum without a start or a step size. Rows are weighed by 1 / seconds: timings err by a share of
themselves, and small messages, which alone show a latency, count as much as large ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from optsched.errors import InputError, check_legal
from optsched.problem.arrays import Bools, Floats

LEAST, LARGEST = 1e-18, 1e18  # of what is measured: beyond them squares leave the range of floats
NUMBER, WHOLE = f"a number from {LEAST:g} to {LARGEST:g}", f"an integer from 1 to {LARGEST:g}"
Model = TypeVar("Model")


class Constant(NamedTuple):
    """A fitted number in ``unit``; ``error``: its standard error, NaN where there is none (on its bound, or given)."""

    name: str
    value: float
    error: float
    unit: str = ""


@dataclass(frozen=True, eq=False)
class Fitted(Generic[Model]):
    """``model``, for an `Instance`, and its ``constants``; ``measured`` and ``residuals`` (the rest of them) in seconds.

    ``freedom``: measurements - estimated numbers. ``notes``: what was assumed, or follows.
    """

    model: Model
    constants: tuple[Constant, ...]
    measured: Floats
    residuals: Floats
    freedom: int
    notes: tuple[str, ...] = ()

    @property
    def r_squared(self) -> float:
        """The share of the variance of the seconds that the model explains; NaN where they are all the same."""
        spread = self.measured - self.measured.mean()
        return 1 - float(self.residuals @ self.residuals) / float(spread @ spread) if spread.any() else math.nan

    @property
    def largest_error(self) -> float:
        """The largest abs(measured - fitted) / measured."""
        return float((np.abs(self.residuals) / self.measured).max())

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of a constant by Student's t, if errors are normal and alike; NaN where it has no error."""
        known = {each.name: each for each in self.constants}
        check_legal(name in known, "name", name, ", ".join(known))
        check_legal(0 < level < 1, "level", level, "a number between 0 and 1")
        from scipy.special import stdtrit  # imported where it is used: it takes longer than most runs

        reach = known[name].error * float(stdtrit(self.freedom, (1 + level) / 2)) if self.freedom > 0 else math.nan
        return known[name].value - reach, known[name].value + reach

    def to_json(self) -> dict[str, Any]:
        """All of it but the model; None for NaN."""
        rows = []
        for name, value, error, unit in self.constants:
            low, high = self.interval(name)
            numbers = {"value": value, "error": error, "low": low, "high": high}
            rows.append({"name": name, "unit": unit} | {key: None if x != x else x for key, x in numbers.items()})
        explained = None if math.isnan(self.r_squared) else self.r_squared
        quality = {"rows": len(self.measured), "r_squared": explained, "largest_relative_error": self.largest_error}
        return {**quality, "constants": rows, "notes": list(self.notes)}


def checked(columns: dict[str, Sequence[float]], whole: tuple[str, ...] = ()) -> list[Floats]:
    """The columns of measurements as f64[n]; `InputError` for unequal lengths and numbers that are invalid."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError("not one of each for every measurement", value=lengths, legal="lists of equal length")
    found = []
    for name, column in columns.items():
        values = np.asarray(column, np.float64)
        right = (values >= LEAST) & (values <= LARGEST) & ((values == np.floor(values)) | (name not in whole))
        if not right.all():
            first = int(right.argmin())
            legal = WHOLE if name in whole else NUMBER
            raise InputError("invalid", field=f"{name}[{first}]", value=float(values[first]), legal=legal)
        found.append(values)
    return found


def non_negative(X: Floats, y: Floats, legal: str) -> tuple[Floats, Floats]:
    """The coefficients >= 0 of X f64[n, c] for y f64[n], f64[c], and their `covariance`.

    `InputError`, with what would be ``legal``, where the columns of X are not independent.
    """
    from scipy.optimize import nnls

    rows, width = X.shape
    scale = np.linalg.norm(X, axis=0)  # bytes and seconds are nine orders of magnitude apart
    if rows < width or not scale.all() or np.linalg.matrix_rank(X / scale) < width:
        raise InputError(f"the {rows} measurements do not determine {width} numbers", legal=legal)
    solved: Floats = nnls(X / scale, y, maxiter=100 * width)[0]
    return solved / scale, covariance(X / scale, y - X / scale @ solved, solved > 0) / np.outer(scale, scale)


def covariance(X: Floats, residuals: Floats, free: Bools) -> Floats:
    """f64[c, c] of the ``free`` bool[c] coefficients, the others held: NaN for these, and where no freedom is left."""
    rows, width = X.shape
    found = np.full((width, width), math.nan)
    if rows > width and free.any():
        inverse = np.linalg.pinv(X[:, free])
        found[np.ix_(free, free)] = float(residuals @ residuals) / (rows - width) * (inverse @ inverse.T)
    return found
