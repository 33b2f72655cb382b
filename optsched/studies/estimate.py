"""Means over seeds and how sure they are: Student's t intervals, and paired comparisons on the same workloads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CONFIDENCE = 0.95
LARGEST = 100.0  # ends of intervals stay finite: e^100


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
    from scipy.stats import t  # slow to import

    spread = float(x.std(ddof=1)) / math.sqrt(x.size)
    return Estimate(float(x.mean()), float(t.ppf(0.5 + CONFIDENCE / 2, x.size - 1)) * spread, int(x.size))


@dataclass(frozen=True)
class Change:
    """A typical relative change, -0.2 for 20 % less, and its interval (None, None: a single seed has none)."""

    mean: float
    low: float | None
    high: float | None

    def to_json(self) -> dict[str, Any]:
        """The numbers by name."""
        return {"mean": self.mean, "low": self.low, "high": self.high}

    @property
    def direction(self) -> str:
        """``lower``, ``higher``, ``equal`` on every seed; ``no difference shown`` with 0 in the interval, or without one."""
        if self.mean == 0 and not self.low and not self.high:
            return "equal"
        if self.low is None or self.high is None or self.low <= 0 <= self.high:
            return "no difference shown"
        return "lower" if self.mean < 0 else "higher"


def relative(values: Sequence[float], reference: Sequence[float]) -> Change | None:
    """What changes from ``reference[k]`` to ``values[k]`` on the same workload k: geometric mean of the ratios, less 1.

    The interval is that of the mean log ratio: pairing takes out what the workloads do to both, so that fewer seeds tell
    two policies apart, and half as long weighs as much as twice as long. None where a value is missing or not > 0.
    """
    x, y = np.asarray(values, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if x.shape != y.shape:
        raise ValueError(f"{x.size} values beside {y.size}")
    if not ((x > 0) & (y > 0)).all():
        return None
    found = estimate(np.log(x / y).tolist())
    if found is None:
        return None
    if found.half_width is None:
        return Change(math.expm1(found.mean), None, None)
    low, high = found.mean - found.half_width, found.mean + found.half_width
    return Change(math.expm1(found.mean), *(math.expm1(min(end, LARGEST)) for end in (low, high)))
