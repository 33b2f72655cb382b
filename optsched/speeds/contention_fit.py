"""a, b and eta from measurements: how long k all-reduces of M bytes took that ran at once on an interface.

The model T(k, M) = a + k b M + (k - 1) eta M is linear in a, b and eta: least squares over all measurements, with a >= 0,
b >= 0 and b + eta >= 0. eta < 0 is reported, not repaired: theorems on AdaDUAL then do not apply. Seconds and bytes. (Other
estimators, and how far they disagree on published measurements: the notebook on contention.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from optsched.errors import check_legal
from optsched.problem.contention import Contention
from optsched.speeds.least_squares import LARGEST, Constant, Fitted, checked, non_negative


def fit_contention(
    sizes: Sequence[float], counts: Sequence[int], seconds: Sequence[float], *, latency: float | None = None
) -> Fitted[Contention]:
    """Least squares of T = a + k b M + (k - 1) eta M; one measurement: ``sizes`` M bytes, ``counts`` k, ``seconds`` T.

    Non-negative in a, b and b + eta, in which the model is linear, and of relative errors: why, says the module
    `optsched.speeds.least_squares`. ``latency``: a, where it is known; with one message size it cannot be separated.
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
    check_legal(latency is None or 0 <= latency <= LARGEST, "latency", latency, f"seconds from 0 to {LARGEST:g}")
    # In a, b and g = b + eta the model is a + M b + (k - 1) M g, so that the bounds are signs.
    X = np.column_stack([np.ones_like(M), M, (k - 1) * M])[:, latency is not None :]
    known, legal = (
        latency or 0.0,
        "several message sizes (or a given latency), and for eta several numbers of transfers",
    )
    found, spread = non_negative(X / T[:, None], (T - known) / T, legal)
    *a, b, growth = found.tolist()
    *a_error, b_error, _ = np.sqrt(np.diag(spread)).tolist()
    eta_error = math.sqrt(np.array([-1, 1]) @ spread[-2:, -2:] @ np.array([-1, 1]))
    errors = (*(a_error or [math.nan]), b_error, eta_error)
    made = Contention(b, growth - b, *(a or [known]))
    values = (made.latency, made.seconds_per_byte, made.penalty)
    names, units = ("latency", "seconds_per_byte", "penalty"), ("s", "s/byte", "s/byte")
    note = f"AdaDUAL's threshold on the ratio of two sizes: theta = b / (2 (b + eta)) = {made.theta:.4g}"
    if made.penalty < -1e-9 * made.seconds_per_byte:  # more than rounding
        note = "eta < 0: several at once are faster than in turns; the theorems on AdaDUAL need eta >= 0"
    constants, residuals = tuple(map(Constant, names, values, errors, units)), T - known - X @ found
    return Fitted(made, constants, T, residuals, len(T) - X.shape[1], (note,))
