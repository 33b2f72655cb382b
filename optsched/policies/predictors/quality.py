"""`quality`: how good predictions were, by the measures of the field and by those that a theorem needs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.errors import InputError
from optsched.problem.arrays import Floats


@dataclass(frozen=True)
class Quality:
    """Errors of predictions n^ of lengths n. Ratios are at least 1; 1 is perfect.

    ``mae`` mean |n^ - n| in the unit of n; ``mape`` mean |n^ - n| / n (0.1 is ten per cent); ``r2`` of log(1 + n), nan when
    all lengths are equal. ``p50`` .. ``worst``: quantiles of max(n / n^, n^ / n), linear between observations.
    ``over_worst`` = lam_o = max n^ / n and ``under_worst`` = lam_u = max n / n^, each at least 1, are the two factors by
    which a guarantee with predictions grows: one bad job decides them; ``over_p99`` and ``under_p99`` leave 1 % out.
    """

    jobs: int
    mae: float
    mape: float
    r2: float
    p50: float
    p95: float
    p99: float
    worst: float
    over_p99: float
    over_worst: float
    under_p99: float
    under_worst: float

    def to_json(self) -> dict[str, Any]:
        """The numbers by name; null where one is not defined."""
        return {key: None if math.isnan(value) else value for key, value in asdict(self).items()}


def quality(true: npt.ArrayLike, predicted: npt.ArrayLike) -> Quality:
    """Compare ``predicted`` with ``true``, f64[n] each, all finite and > 0.

    Raises
    ------
    InputError
        Nothing to compare, arrays of different lengths, or a value that is not a finite number > 0 (named by its row).
    """
    n, guess = _positive(true, "true"), _positive(predicted, "predicted")
    if n.size != guess.size:
        raise InputError("another number of values", field="predicted", value=guess.size, legal=f"{n.size} values")
    over, under = np.maximum(guess / n, 1.0), np.maximum(n / guess, 1.0)
    p50, p95, p99, worst = np.quantile(np.maximum(over, under), [0.5, 0.95, 0.99, 1.0]).tolist()
    error = np.abs(guess - n)
    return Quality(
        jobs=n.size,
        mae=float(error.mean()),
        mape=float((error / n).mean()),
        r2=_r2(np.log1p(n), np.log1p(guess)),
        p50=p50,
        p95=p95,
        p99=p99,
        worst=worst,
        over_p99=float(np.quantile(over, 0.99)),
        over_worst=float(over.max()),
        under_p99=float(np.quantile(under, 0.99)),
        under_worst=float(under.max()),
    )


def _positive(values: npt.ArrayLike, field: str) -> Floats:
    array = np.asarray(values, dtype=np.float64).reshape(-1)
    if not array.size:
        raise InputError("nothing to compare", field=field, legal="at least one value")
    bad = np.flatnonzero(~(np.isfinite(array) & (array > 0)))
    if bad.size:
        row = int(bad[0])
        raise InputError("invalid", row=row + 1, field=field, value=float(array[row]), legal="a finite number > 0")
    return array


def _r2(y: Floats, guess: Floats) -> float:
    # 1 - residual / total sum of squares; equal lengths have nothing to explain
    if np.ptp(y) == 0:
        return math.nan
    return 1 - float(((y - guess) ** 2).sum() / ((y - y.mean()) ** 2).sum())
