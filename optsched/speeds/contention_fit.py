"""a, b and eta from measurements: how long k all-reduces of M bytes took that ran at once on an interface.

The model T(k, M) = a + k b M + (k - 1) eta M is linear in a, b and eta. Three estimators, which do not agree on real data:

* `fit_contention`: least squares over all measurements, a >= 0, b >= 0 and b + eta >= 0, with standard errors;
* `fit_by_slope`: what the authors of Ada-SRSF did. b from messages of many sizes alone, then eta = (slope of T over k) / M
  - b;
* `fit_anchored`: b = T(1) / M, and the least-squares slope through that point is b + eta.

Each may find eta < 0. That is reported, not repaired: theorems on AdaDUAL then do not apply. Seconds and bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Floats
from optsched.problem.contention import Contention
from optsched.speeds.least_squares import LARGEST, Constant, Fitted, checked, covariance, non_negative

LEGAL = "several message sizes (or a given latency), and for eta several numbers of transfers"


def fit_contention(
    sizes: Sequence[float], counts: Sequence[int], seconds: Sequence[float], *, latency: float | None = None
) -> Fitted[Contention]:
    """Least squares of T = a + k b M + (k - 1) eta M; one measurement: ``sizes`` M bytes, ``counts`` k, ``seconds`` T.

    Non-negative in a, b and b + eta, in which the model is linear, and of relative errors: why, says the module
    `optsched.speeds.least_squares`. ``latency``: a, where it is known; one message size alone cannot tell it from the rest.
    A number at its bound, or given, has no standard error; those of the others hold it.

    Raises
    ------
    InputError
        Lists of unequal length, values that are invalid, measurements that do not determine what is asked, or by which a
        byte takes no time.

    >>> import optsched as osd
    >>> sizes, counts = [1e6, 1e7, 1e8, 1e8, 1e8], [1, 1, 1, 2, 3]
    >>> fit = osd.fit_contention(sizes, counts, [0.0015, 0.0092, 0.0863, 0.1954, 0.3045])
    >>> print(f"b = {fit.model.seconds_per_byte:.3g}, eta = {fit.model.penalty:.2g}, R^2 = {fit.r_squared:.5f}")
    b = 8.56e-10, eta = 2.4e-10, R^2 = 1.00000
    """
    M, k, T = checked({"sizes": sizes, "counts": counts, "seconds": seconds}, ("counts",))
    if latency is not None and not 0 <= latency <= LARGEST:
        raise InputError("invalid", field="latency", value=latency, legal=f"seconds from 0 to {LARGEST:g}")
    # In a, b and g = b + eta the model is a + M b + (k - 1) M g, so that the bounds are signs.
    X = np.column_stack([np.ones_like(M), M, (k - 1) * M])[:, latency is not None :]
    known = latency or 0.0
    found, spread = non_negative(X / T[:, None], (T - known) / T, LEGAL)
    *a, b, growth = found.tolist()
    *a_error, b_error, _ = np.sqrt(np.diag(spread)).tolist()
    eta_error = math.sqrt(np.array([-1, 1]) @ spread[-2:, -2:] @ np.array([-1, 1]))
    errors = (*(a_error or [math.nan]), b_error, eta_error)
    made = Contention(b, growth - b, *(a or [known]))
    return _fitted(made, errors, T, T - known - X @ found, len(T) - X.shape[1])


def fit_by_slope(
    transfers: Sequence[int], seconds: Sequence[float], size: float, *, seconds_per_byte: float, latency: float = 0.0
) -> Fitted[Contention]:
    """The authors' estimate: eta = (least-squares slope of ``seconds`` over ``transfers``) / ``size`` - b.

    All messages have ``size`` bytes; b = ``seconds_per_byte`` and a = ``latency`` come from messages alone. The slope has an
    intercept of its own, which is thrown away: the fitted line need not pass near T(1). The error of eta is the slope's.
    """
    k, _, T = checked({"transfers": transfers, "sizes": [size] * len(transfers), "seconds": seconds}, ("transfers",))
    (_, slope), error = _slope(np.column_stack([np.ones_like(k), k]), T)
    made = Contention(seconds_per_byte, slope / size - seconds_per_byte, latency)
    residuals = T - latency - (k * seconds_per_byte + (k - 1) * made.penalty) * size
    return _fitted(made, (math.nan, math.nan, error / size), T, residuals, len(T) - 2)


def fit_anchored(transfers: Sequence[int], seconds: Sequence[float], size: float) -> Fitted[Contention]:
    """a = 0, b = T(1) / M (the mean if it was measured several times), eta from the least-squares slope through T(1).

    All messages have ``size`` bytes. The error of eta takes T(1) as known.
    """
    k, _, T = checked({"transfers": transfers, "sizes": [size] * len(transfers), "seconds": seconds}, ("transfers",))
    if not (k == 1).any():
        raise InputError("no transfer was measured alone", field="transfers", legal="a 1 among them")
    alone, several = float(T[k == 1].mean()), k > 1
    (slope,), error = _slope((k[several] - 1)[:, None], T[several] - alone)
    made = Contention(alone / size, (slope - alone) / size)
    return _fitted(made, (math.nan, math.nan, error / size), T, T - alone - (k - 1) * slope, int(several.sum()) - 1)


def _slope(X: Floats, y: Floats) -> tuple[list[float], float]:
    """Least squares without signs: the coefficients, and the standard error of the last one."""
    rows, width = X.shape
    if rows < width or np.linalg.matrix_rank(X) < width:
        raise InputError(f"the {rows} measurements do not determine {width} numbers", legal=LEGAL)
    found = np.linalg.lstsq(X, y, rcond=None)[0]
    return found.tolist(), math.sqrt(covariance(X, y - X @ found, np.ones(width, bool))[-1, -1])


def _fitted(
    made: Contention, errors: Sequence[float], T: Floats, residuals: Floats, freedom: int
) -> Fitted[Contention]:
    values = (made.latency, made.seconds_per_byte, made.penalty)
    names, units = ("latency", "seconds_per_byte", "penalty"), ("s", "s/byte", "s/byte")
    constants = tuple(map(Constant, names, values, errors, units))
    told = f"AdaDUAL's threshold on the ratio of two sizes: theta = b / (2 (b + eta)) = {made.theta:.4g}"
    if made.penalty < -1e-9 * made.seconds_per_byte:  # more than rounding
        told = "eta < 0: several at once are faster than in turns; the theorems on AdaDUAL need eta >= 0"
    return Fitted(made, constants, T, residuals, freedom, (told,))
