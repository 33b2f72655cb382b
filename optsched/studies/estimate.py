"""Means over seeds and how sure they are: Student's t intervals, and paired comparisons on the same workloads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean over ``count`` seeds; its interval is mean +- ``half_width`` (None: a single seed has no interval)."""

    mean: float
    half_width: float | None
    count: int

    def to_json(self) -> dict[str, Any]:
        """The numbers by name."""
        return {"mean": self.mean, "half_width": self.half_width}


def estimate(values: Sequence[float]) -> Estimate | None:
    """The mean of independent observations, with the half width t_{0.975, n-1} s / sqrt(n) of its 95 % interval.

    None where a value is missing (nan). It assumes that the mean is about normal. Complexity O(n).
    """
    x = np.asarray(values, dtype=np.float64)
    if x.size == 0 or not np.isfinite(x).all():
        return None
    if x.size == 1:
        return Estimate(float(x[0]), None, 1)
    spread = float(x.std(ddof=1)) / math.sqrt(x.size)
    return Estimate(float(x.mean()), _quantile(x.size - 1) * spread, int(x.size))


def relative(values: Sequence[float], reference: Sequence[float]) -> Estimate | None:
    """Of ``values[k] / reference[k] - 1``: what changes on the same workload k; None where one is missing or 0.

    Pairing takes out what the workloads do to both, so that fewer seeds tell two policies apart.
    """
    x, y = np.asarray(values, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if x.shape != y.shape:
        raise ValueError(f"{x.size} values beside {y.size}")
    return estimate((x / y - 1.0).tolist()) if (y > 0).all() else None


def direction(change: Estimate | None) -> str:
    """``lower``, ``higher``, ``equal`` on every seed, or ``no difference shown``: 0 is in the interval, or there is none."""
    if change is None:
        return "unknown"
    if change.mean == 0 and not change.half_width:
        return "equal"
    if change.half_width is None or abs(change.mean) <= change.half_width:
        return "no difference shown"
    return "lower" if change.mean < 0 else "higher"


def _quantile(freedom: int) -> float:
    from scipy.stats import t  # slow to import

    return float(t.ppf(0.5 + CONFIDENCE / 2, freedom))
