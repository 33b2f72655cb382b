"""a, b and eta from measurements: how long k all-reduces of M bytes took that ran at once on an interface.

The model T(k, M) = a + k b M + (k - 1) eta M is linear in a, b and eta. Three estimators, which do not agree on real data:

* `fit`: least squares over all measurements, with standard errors; `bounded` keeps a >= 0, b >= 0 and b + eta >= 0;
* `fit_by_slope`: what the authors of Ada-SRSF did. b from messages of many sizes alone (`fit_alone`), then eta = (slope of
  T over k) / M - b;
* `fit_anchored`: b = T(1) / M, and the least-squares slope through that point is b + eta.

Each may find eta < 0. That is reported, not repaired: `ContentionFit.sound` is False then, and the theorems on AdaDUAL do
not apply. Seconds and bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Floats
from optsched.problem.contention import Contention

NAMES = ("latency", "seconds_per_byte", "penalty")


@dataclass(frozen=True, eq=False)
class ContentionFit:
    """Estimates of a = ``latency``, b = ``seconds_per_byte``, eta = ``penalty``, and how far to trust them.

    ``errors``: standard errors of a, b, eta; NaN where there is none (a number that was given or lies on its bound, no
    degree of freedom left). ``residuals`` f64[n]: measured - fitted seconds. ``freedom``: measurements - estimated numbers.
    """

    latency: float
    seconds_per_byte: float
    penalty: float
    errors: tuple[float, float, float]
    residuals: Floats
    freedom: int

    @property
    def sound(self) -> bool:
        """a >= 0, b > 0 and eta >= 0: what the theorems on AdaDUAL need."""
        return self.latency >= 0 and self.seconds_per_byte > 0 and self.penalty >= 0

    @property
    def growth(self) -> float:
        """b + eta: seconds a byte that each further transfer adds."""
        return self.seconds_per_byte + self.penalty

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of ``name`` (latency, seconds_per_byte or penalty), if errors are normal and of equal size.

        NaN where there is no standard error.
        """
        if name not in NAMES:
            raise InputError("invalid", field="name", value=name, legal=", ".join(NAMES))
        if not 0 < level < 1:
            raise InputError("invalid", field="level", value=level, legal="a number between 0 and 1")
        from scipy.special import stdtrit  # imported where it is used: it takes longer than most runs

        centre, error = getattr(self, name), self.errors[NAMES.index(name)]
        reach = error * float(stdtrit(self.freedom, (1 + level) / 2)) if self.freedom > 0 else math.nan
        return centre - reach, centre + reach

    def contention(self) -> Contention:
        """The fit as a `Contention`; eta < 0 passes if eta > -b. `InputError` for a < 0, b <= 0 or eta <= -b."""
        return Contention(self.seconds_per_byte, self.penalty, self.latency)


def fit(
    transfers: Sequence[int],
    sizes: Sequence[float],
    seconds: Sequence[float],
    *,
    latency: float | None = None,
    bounded: bool = False,
    relative: bool = False,
) -> ContentionFit:
    """Least squares of T = a + k b M + (k - 1) eta M; one measurement: ``transfers`` k, ``sizes`` M bytes, ``seconds`` T.

    Parameters
    ----------
    latency : a, where it is known. One message size alone cannot tell a from the rest.
    bounded : a >= 0, b >= 0, b + eta >= 0 (non-negative least squares in a, b and b + eta; eta itself may be < 0). The
        standard errors are then those of the numbers off their bounds, the others held.
    relative : weigh each measurement by 1 / seconds: equal relative errors. `residuals` stay in seconds.

    Raises
    ------
    InputError
        Lists of unequal length, values that are invalid, or measurements that do not determine what is asked.
    """
    k, M, T = _measurements(transfers, sizes, seconds)
    if latency is not None and not (math.isfinite(latency) and latency >= 0):
        raise InputError("invalid", field="latency", value=latency, legal="a finite number of seconds >= 0")
    free_latency = latency is None
    known = 0.0 if latency is None else latency
    # In a, b and g = b + eta the model is a + M b + (k - 1) M g, so that the bounds are signs.
    columns = [np.ones_like(M)] * free_latency + [M, (k - 1) * M]
    X = np.column_stack(columns)
    weights = 1 / T if relative else np.ones_like(T)
    found, covariance = _least_squares(X * weights[:, None], (T - known) * weights, bounded)
    a, b, growth = found if free_latency else (known, *found)
    error = np.sqrt(np.diag(covariance))
    transform = np.array([-1.0, 1.0])  # eta = g - b
    eta_error = float(np.sqrt(transform @ covariance[-2:, -2:] @ transform))
    errors = (float(error[0]) if free_latency else math.nan, float(error[-2]), eta_error)
    residuals = T - known - X @ found
    return ContentionFit(float(a), float(b), float(growth - b), errors, residuals, len(T) - X.shape[1])


def fit_alone(sizes: Sequence[float], seconds: Sequence[float]) -> ContentionFit:
    """a and b of T = a + b M by least squares, from messages of ``sizes`` bytes that ran alone; eta = 0 is not estimated."""
    _, M, T = _measurements([1] * len(sizes), sizes, seconds)
    X = np.column_stack([np.ones_like(M), M])
    found, covariance = _least_squares(X, T, bounded=False)
    a_error, b_error = np.sqrt(np.diag(covariance))
    errors = (float(a_error), float(b_error), math.nan)
    return ContentionFit(float(found[0]), float(found[1]), 0.0, errors, T - X @ found, len(T) - 2)


def fit_by_slope(
    transfers: Sequence[int], seconds: Sequence[float], size: float, *, seconds_per_byte: float, latency: float = 0.0
) -> ContentionFit:
    """The authors' estimate: eta = (least-squares slope of ``seconds`` over ``transfers``) / ``size`` - b.

    All messages have ``size`` bytes; b = ``seconds_per_byte`` and a = ``latency`` come from messages alone (`fit_alone`).
    The slope has an intercept of its own, which is thrown away: the fitted line need not pass near T(1). The error of eta
    is the slope's alone.
    """
    k, _, T = _measurements(transfers, [size] * len(transfers), seconds)
    if not (math.isfinite(seconds_per_byte) and seconds_per_byte > 0):
        raise InputError("invalid", field="seconds_per_byte", value=seconds_per_byte, legal="a finite number > 0")
    (_, slope), covariance = _least_squares(np.column_stack([np.ones_like(k), k]), T, bounded=False)
    eta = float(slope) / size - seconds_per_byte
    residuals = T - latency - (k * seconds_per_byte + (k - 1) * eta) * size
    errors = (math.nan, math.nan, math.sqrt(covariance[1, 1]) / size)
    return ContentionFit(latency, seconds_per_byte, eta, errors, residuals, len(T) - 2)


def fit_anchored(transfers: Sequence[int], seconds: Sequence[float], size: float) -> ContentionFit:
    """a = 0, b = T(1) / M (the mean if it was measured several times), eta from the least-squares slope through T(1).

    All messages have ``size`` bytes. The error of eta takes T(1) as known.
    """
    k, _, T = _measurements(transfers, [size] * len(transfers), seconds)
    if not (k == 1).any():
        raise InputError("no transfer was measured alone", field="transfers", legal="a 1 among them")
    alone = float(T[k == 1].mean())
    several = k > 1
    (slope,), covariance = _least_squares((k[several] - 1)[:, None], T[several] - alone, bounded=False)
    b = alone / size
    residuals = T - alone - (k - 1) * slope
    errors = (math.nan, math.nan, math.sqrt(covariance[0, 0]) / size)
    return ContentionFit(0.0, b, float(slope) / size - b, errors, residuals, int(several.sum()) - 1)


def _measurements(
    transfers: Sequence[int], sizes: Sequence[float], seconds: Sequence[float]
) -> tuple[Floats, Floats, Floats]:
    columns = {"transfers": transfers, "sizes": sizes, "seconds": seconds}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError("not one of each for every measurement", value=lengths, legal="lists of equal length")
    found = []
    for name, column in columns.items():
        values = np.asarray(column, np.float64)
        legal = "a whole number >= 1" if name == "transfers" else "a finite number > 0"
        wrong = ~np.isfinite(values) | (values <= 0)
        if name == "transfers":
            wrong |= values != np.floor(values)
        if wrong.any():
            first = int(wrong.argmax())
            message = "a transfer of 0 bytes transfers nothing" if name == "sizes" and values[first] == 0 else "invalid"
            raise InputError(message, field=f"{name}[{first}]", value=float(values[first]), legal=legal)
        found.append(values)
    return found[0], found[1], found[2]


def _least_squares(X: Floats, y: Floats, bounded: bool) -> tuple[Floats, Floats]:
    """Coefficients and their covariance; NaN in rows and columns of those that are not estimated."""
    from scipy.optimize import nnls

    rows, width = X.shape
    scale = np.linalg.norm(X, axis=0)  # bytes and seconds are nine orders of magnitude apart
    if rows < width or not scale.all() or np.linalg.matrix_rank(X / scale) < width:
        raise InputError(
            f"the {rows} measurements do not determine {width} numbers",
            legal="several message sizes (or a given latency), and for eta several numbers of transfers",
        )
    Z = X / scale
    solved = nnls(Z, y)[0] if bounded else np.linalg.lstsq(Z, y, rcond=None)[0]
    free = solved != 0 if bounded else np.ones(width, bool)
    covariance = np.full((width, width), math.nan)
    if rows > width and free.any():
        variance = float(np.sum((y - Z @ solved) ** 2)) / (rows - width)
        covariance[np.ix_(free, free)] = variance * np.linalg.inv(Z[:, free].T @ Z[:, free])
    return solved / scale, covariance / np.outer(scale, scale)
