"""A scaling profile from how fast a model trains on more and more GPUs: seconds of iterations, and nothing else.

The formula is that of `optsched.problem.scaling`, T = (C^gamma + N^gamma)^(1 / gamma) with C = alpha_c + beta_c m for
m = ceil(batch / replicas) and N = alpha + beta max(r - 2, 0), one alpha and beta on one node, others over several. Without
overlap (gamma = 1) it is linear in six seconds that cannot be negative: non-negative least squares of relative errors.
gamma > 1 is taken where Akaike's criterion for few data (AICc) prefers it; the fit is then a bounded nonlinear one that
starts from the linear one.

What a step of computing takes, if that was measured too, says more: `optsched.speeds.scaling_fit` fits such files.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Floats
from optsched.problem.scaling import Scaling
from optsched.speeds.least_squares import Constant, Fitted, checked, covariance, non_negative
from optsched.speeds.scaling_fit import LARGEST_OVERLAP, NAMES

UNITS = ("s", "s/sample", "s", "s/GPU", "s", "s/GPU", "")
FIRST = (1, 0, 4, 2, 5, 3)  # of two numbers that the measurements do not separate, which is kept
STARTS = (1.5, 3.0)  # gamma
EXACT = 1e-24  # mean square of relative errors that is rounding


def fit_scaling(
    gpus: Sequence[int], batches: Sequence[int], seconds: Sequence[float], *, nodes: Sequence[int] | None = None
) -> Fitted[Scaling]:
    """A scaling profile; one measurement: an iteration of ``batches[i]`` samples over ``gpus[i]`` GPUs took ``seconds[i]``.

    Parameters
    ----------
    nodes : on how many nodes the GPUs were; None: on one, always.

    Numbers that the measurements do not determine are 0, but communication that was measured on one node alone, or over
    several alone, is taken to cost the same elsewhere. ``notes`` say so.

    Raises
    ------
    InputError
        Lists of unequal length, values that are invalid, more nodes than GPUs, no measurement.

    >>> import optsched as osd
    >>> gpus, batches = [1, 1, 2, 4, 8], [32, 64, 64, 128, 256]
    >>> fit = osd.fit_scaling(gpus, batches, [0.19, 0.35, 0.24, 0.26, 0.30])
    >>> scaling = fit.model
    >>> print(f"{scaling.compute:.3f} s + {scaling.per_sample:.3f} s a sample, {scaling.within:.3f} s of communication")
    0.030 s + 0.005 s a sample, 0.050 s of communication
    """
    columns = {
        "gpus": gpus,
        "nodes": [1] * len(gpus) if nodes is None else nodes,
        "batches": batches,
        "seconds": seconds,
    }
    r, n, batch, T = checked(columns, ("gpus", "nodes", "batches"))
    if not len(T) or (n > r).any():
        raise InputError("invalid measurements", field="nodes", legal="some, and at most as many nodes as GPUs")
    over, inside, more = n > 1, (n == 1) & (r > 1), np.maximum(r - 2, 0)
    X = np.column_stack([np.ones_like(r), np.ceil(batch / r), over, over * more, inside, inside * more])
    kept = _independent(X / T[:, None])
    x, gamma, errors = np.zeros(6), 1.0, np.full(7, math.nan)
    x[kept], spread = non_negative(X[:, kept] / T[:, None], np.ones_like(T), "more of them")
    errors[kept], freedom = np.sqrt(np.diag(spread)), len(T) - len(kept)
    if (r > 1).any() and freedom > 2:
        other, overlap, spread = _overlapping(X, kept, T, x)
        if _aicc(X, other, overlap, T, len(kept) + 1) < _aicc(X, x, 1.0, T, len(kept)):
            x, gamma, freedom = other, overlap, freedom - 1
            errors[[*kept, 6]] = np.sqrt(np.diag(spread))
    residuals = T - _seconds(X, x, gamma)
    sides = (over, "over several nodes", "on one"), (inside, "on one node", "over several")
    missing = "nothing was measured {}: communication is taken to cost there what it does {}"
    notes = [missing.format(where, elsewhere) for seen, where, elsewhere in sides if not seen.any()]
    notes = notes if len(notes) < 2 else ["no gang was measured: communication is taken to cost nothing"]
    x[2:4], x[4:] = x[2:4] if over.any() else x[4:], x[4:] if inside.any() else x[2:4]
    seen = (True, True, over.any(), over.any(), inside.any(), inside.any())
    left = [name for c, name in enumerate(NAMES[:6]) if seen[c] and c not in kept]
    if left:
        notes.append(f"not identified by the measurements, taken to be 0: {', '.join(left)}")
    values: Any = [*x.tolist(), gamma]
    constants = tuple(map(Constant, NAMES, values, errors.tolist(), UNITS))
    return Fitted(Scaling(**dict(zip(NAMES, values, strict=True))), constants, T, residuals, freedom, tuple(notes))


def _independent(X: Floats) -> list[int]:
    """The columns that the rows identify, the more important first, rising."""
    kept: list[int] = []
    for c in FIRST:
        tried = X[:, [*kept, c]]
        scale = np.linalg.norm(tried, axis=0)
        if scale.all() and np.linalg.matrix_rank(tried / scale) == len(kept) + 1:
            kept.append(c)
    return sorted(kept)


def _seconds(X: Floats, x: Floats, gamma: float) -> Floats:
    """T f64[n] by the formula; scaled by the larger part, since powers of small seconds leave the range of floats."""
    parts = np.array([X[:, :2] @ x[:2], X[:, 2:] @ x[2:]])
    larger = np.maximum(parts.max(axis=0), 1e-300)
    seconds: Floats = larger * ((parts / larger) ** gamma).sum(axis=0) ** (1 / gamma)
    return seconds


def _aicc(X: Floats, x: Floats, gamma: float, T: Floats, numbers: int) -> float:
    error, n = float(np.mean((_seconds(X, x, gamma) / T - 1) ** 2)), len(T)
    return n * math.log(error + EXACT) + 2 * numbers * n / (n - numbers - 1)


def _overlapping(X: Floats, kept: list[int], T: Floats, start: Floats) -> tuple[Floats, float, Floats]:
    """(seconds f64[6], gamma, covariance of those ``kept`` and gamma): least squares of relative errors, gamma free."""
    from scipy.optimize import least_squares

    def spread(y: Floats) -> Floats:
        x = np.zeros(6)
        x[kept] = y[:-1]
        return x

    def fit(gamma: float) -> Any:
        inner = np.maximum(start[kept], 1e-3 / np.linalg.norm(X[:, kept] / T[:, None], axis=0))
        bounds = [0.0] * len(kept) + [1.0], [math.inf] * len(kept) + [LARGEST_OVERLAP]
        close: Any = {"bounds": bounds, "x_scale": "jac", "xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
        return least_squares(lambda y: _seconds(X, spread(y), y[-1]) / T - 1, [*inner, gamma], **close)

    found = min(map(fit, STARTS), key=lambda each: float(each.cost))
    return spread(found.x), float(found.x[-1]), covariance(found.jac, found.fun, found.active_mask == 0)
