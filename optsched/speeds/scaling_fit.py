"""Scaling profiles from measurements, by the formula of `optsched.problem.scaling`.

**Measurements that separate computing from communication** (`joint_fit`): steps of m samples on each of r replicas
over some nodes take T seconds, of which C = T - sync are computing. The fit is that of Pollux: alpha_c, beta_c,
alpha_n, beta_n, alpha_r, beta_r >= 1e-8 and gamma in [1, 10] with the least

    rms(ln C^ - ln C) + rms(ln T^ - ln T) + prior (1e-3 (gamma - 1)^2 + 1e-2 ((beta_n / alpha_n)^2 + (beta_r / alpha_r)^2)),

C^ = alpha_c + beta_c m and T^ = (C^^gamma + N^^gamma)^(1 / gamma) as in `optsched.problem.scaling`. ``prior`` 1
prefers little overlap and little loss by more replicas, which data on few replicas do not determine; 0 fits the data alone.
By damped Gauss-Newton steps in the logarithms of the parameters, at bounds by projection, from several overlaps.

Source of the loss: petuum/adaptdl, branch osdi21-artifact (Apache-2.0): A. Qiao et al., Pollux, OSDI 2021.

**Seconds of iterations** (`fit_scaling`) on different numbers of GPUs, without a separation: T^ with m = ceil(batch /
replicas). Without overlap (gamma = 1) it is linear in six seconds that cannot be negative: non-negative least squares
of relative errors. gamma > 1 is used if Akaike's criterion for few data (AICc) prefers it; the fit is then a bounded
nonlinear one that starts from the linear one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Floats
from optsched.problem.scaling import MeasuredSteps, Scaling
from optsched.speeds.least_squares import Constant, Fitted, checked, covariance, non_negative

LEAST, LARGEST_OVERLAP, MOST_STEPS = 1e-8, 10.0, 400
START = (0.1, 0.01, 0.1, 0.01, 0.1, 0.01)
NAMES = ("compute", "per_sample", "across", "across_growth", "within", "within_growth", "overlap")


class StepRows(NamedTuple):
    """Measured steps, f64[rows] each: nodes, replicas, local batch m, seconds T, seconds C of computing."""

    nodes: Floats
    replicas: Floats
    local: Floats
    step: Floats
    computing: Floats


def step_rows(measured: MeasuredSteps) -> StepRows:
    """Return the rows of measurements, placements before scalability.

    Parameters
    ----------
    measured
        The measurements.

    Raises
    ------
    InputError
        There are no rows, or a row whose sync takes the whole step.
    """
    rows = [
        (len(str(name)), sum(map(int, str(name))), local, step, step - sync)
        for name, local, step, sync in measured.placements
    ]
    rows += [(nodes, gang, local, step, step - sync) for nodes, gang, local, step, sync in measured.scalability]
    if not rows or any(computing <= 0 for *_, computing in rows):
        legal = "measured steps with sync_time < step_time"
        raise InputError("nothing to fit", field="measured", legal=legal)
    return StepRows(*np.array(rows, dtype=np.float64).T)


class JointFit:
    """The joint fit: its `loss` and gradient in x, the logarithms of six parameters and gamma.

    Parameters
    ----------
    rows
        Measured steps.
    prior
        Weight of the prior; 0 fits the data alone.
    """

    def __init__(self, rows: StepRows, prior: float = 1.0) -> None:
        self._m, self._prior = rows.local, prior
        self._spans = rows.nodes > 1
        self._apart = rows.replicas > 1
        self._more = np.maximum(rows.replicas - 2, 0)
        self._targets = np.log(rows.computing), np.log(rows.step)

    def logs(self, x: Floats) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Return (ln C^, ln T^) f64[rows] and their derivatives f64[7, rows].

        Parameters
        ----------
        x
            Logarithms of six parameters, and gamma, f64[7].
        """
        a_c, b_c, a_n, b_n, a_r, b_r = np.exp(x[:6])
        gamma = x[6]
        c = a_c + b_c * self._m
        n = np.where(self._spans, a_n + b_n * self._more, a_r + b_r * self._more)
        slow = np.where(self._apart, n / c, 0.0)
        # T = C (1 + q)^(1/gamma), q = (N / C)^gamma
        q = np.where(self._apart, np.exp(gamma * np.log(np.maximum(slow, 1e-300))), 0.0)
        in_c = np.array([a_c / c, b_c * self._m / c, *np.zeros((5, c.size))])
        share = q / (1 + q)  # d ln T / d ln N
        over, inside = self._spans / n, (self._apart & ~self._spans) / n
        in_n = np.array(
            [0 * c, 0 * c, a_n * over, b_n * self._more * over, a_r * inside, b_r * self._more * inside, 0 * c]
        )
        in_t = (1 - share) * in_c + share * in_n
        in_t[6] = share * np.log(np.maximum(slow, 1e-300)) / gamma - np.log1p(q) / gamma**2
        return (np.log(c), np.log(c) + np.log1p(q) / gamma), (in_c, in_t)

    def loss(self, x: Floats) -> float:
        """Return the loss at x.

        Parameters
        ----------
        x
            Logarithms of six parameters, and gamma, f64[7].
        """
        return self._expanded(x)[0]

    def _expanded(self, x: Floats) -> tuple[float, Floats, Floats]:
        # The loss, its gradient f64[7], and the curvature f64[7, 7] of the squares in it.
        fitted, slopes = self.logs(x)
        value, gradient, curvature = 0.0, np.zeros(7), np.zeros((7, 7))
        for one, target, slope in zip(fitted, self._targets, slopes, strict=True):
            left = one - target
            rms = float(np.sqrt(np.mean(left**2)))
            weighted = slope / (left.size * max(rms, 1e-300))
            value += rms
            gradient += weighted @ left
            curvature += weighted @ slope.T
        value += self._prior * 1e-3 * (x[6] - 1) ** 2
        gradient[6] += self._prior * 2e-3 * (x[6] - 1)
        curvature[6, 6] += self._prior * 2e-3
        for first, growth in ((2, 3), (4, 5)):
            part = self._prior * 2e-2 * np.exp(2 * (x[growth] - x[first]))
            way = np.zeros(7)
            way[[growth, first]] = 1.0, -1.0
            value += part / 2
            gradient += part * way
            curvature += 2 * part * np.outer(way, way)
        return value, gradient, curvature

    def minimum(self, overlaps: Sequence[float] = (1.5, 4.0)) -> tuple[Floats, float]:
        """Return the best parameters, in the order of `NAMES`, and their loss.

        Parameters
        ----------
        overlaps
            gamma of the starts.
        """
        minima = [self._descend(np.array([*np.log(START), overlap])) for overlap in overlaps]
        value, x = min(minima, key=lambda pair: pair[0])
        return np.array([*np.exp(x[:6]), x[6]]), value

    def _descend(self, x: Floats) -> tuple[float, Floats]:
        lower, upper = np.array([np.log(LEAST)] * 6 + [1.0]), np.array([30.0] * 6 + [LARGEST_OVERLAP])
        value, gradient, curvature = self._expanded(x)
        damping, small = 1e-2, 0
        for _ in range(MOST_STEPS):
            free = ~(((x <= lower) & (gradient > 0)) | ((x >= upper) & (gradient < 0)))
            if not free.any() or small >= 3:
                break
            damped = curvature[np.ix_(free, free)]
            damped = damped + damping * (np.diag(np.diag(damped)) + 1e-9 * np.eye(damped.shape[0]))
            step = np.zeros(7)
            step[free] = np.linalg.solve(damped, -gradient[free])
            tried = np.clip(x + np.clip(step, -2.0, 2.0), lower, upper)
            better = self._expanded(tried)
            if better[0] < value:
                small = small + 1 if value - better[0] <= 1e-12 * value else 0
                x, (value, gradient, curvature) = tried, better
                damping = max(damping / 4, 1e-9)
            elif damping > 1e9:
                break
            else:
                damping *= 4
        return value, x


def joint_fit(measured: MeasuredSteps, *, prior: float = 1.0) -> Scaling:
    """Return the joint fit of measurements, as a scaling without them. O(rows) a step, some hundred steps.

    Parameters that no row determines (no gang on one node, none over several) stay at their start.

    Parameters
    ----------
    measured
        The measurements.
    prior
        Weight of the prior; 0 fits the data alone.
    """
    parameters, _ = JointFit(step_rows(measured), prior).minimum()
    fitted: dict[str, Any] = dict(zip(NAMES, parameters.tolist(), strict=True))
    return Scaling(**fitted)


# --- from seconds of iterations alone -----------------------------------------------------------------------------------

UNITS = ("s", "s/sample", "s", "s/GPU", "s", "s/GPU", "")
FIRST = (1, 0, 4, 2, 5, 3)  # order in which numbers are kept if the measurements do not separate them
STARTS = (1.5, 3.0)  # gamma
EXACT = 1e-24  # mean square of relative errors due to rounding


def fit_scaling(
    gpus: Sequence[int],
    batches: Sequence[int],
    seconds: Sequence[float],
    *,
    nodes: Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
) -> Fitted[Scaling]:
    """Fit a scaling profile to seconds of iterations.

    Numbers that the measurements do not determine are 0. If communication was measured only on one node, or only over
    several, it is assumed to cost the same elsewhere. ``notes`` state this.

    Parameters
    ----------
    gpus
        GPUs of every measurement.
    batches
        Samples of its iteration.
    seconds
        Seconds of its iteration.
    nodes
        Nodes that held the GPUs; None: always one.
    steps
        Sub-steps of gradient accumulation, 1 for several GPUs; None: always one.

    Raises
    ------
    InputError
        Lists of unequal length, invalid values, more nodes than GPUs, sub-steps on several GPUs, no measurement.

    Examples
    --------
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
        "steps": [1] * len(gpus) if steps is None else steps,
        "batches": batches,
        "seconds": seconds,
    }
    r, n, s, batch, T = checked(columns, ("gpus", "nodes", "steps", "batches"))
    if not len(T) or (n > r).any():
        raise InputError("invalid measurements", field="nodes", legal="some, and at most as many nodes as GPUs")
    if ((s > 1) & (r > 1)).any():
        raise InputError("sub-steps on several GPUs", field="steps", legal="1 for several GPUs")
    over, inside, more = n > 1, (n == 1) & (r > 1), np.maximum(r - 2, 0)
    X = np.column_stack([s, s * np.ceil(np.ceil(batch / r) / s), over, over * more, inside, inside * more])
    columns_kept = _independent(X / T[:, None])
    x, gamma, errors = np.zeros(6), 1.0, np.full(7, math.nan)
    x[columns_kept], spread = non_negative(X[:, columns_kept] / T[:, None], np.ones_like(T), "more of them")
    errors[columns_kept], freedom = np.sqrt(np.diag(spread)), len(T) - len(columns_kept)
    if (r > 1).any() and freedom > 2:
        other, overlap, spread = _overlapping(X, columns_kept, T, x)
        if _aicc(X, other, overlap, T, len(columns_kept) + 1) < _aicc(X, x, 1.0, T, len(columns_kept)):
            x, gamma, freedom = other, overlap, freedom - 1
            errors[[*columns_kept, 6]] = np.sqrt(np.diag(spread))
    residuals = T - _seconds(X, x, gamma)
    sides = (over, "over several nodes", "on one"), (inside, "on one node", "over several")
    missing = "nothing was measured {}: communication is taken to cost there what it does {}"
    notes = [missing.format(where, elsewhere) for seen, where, elsewhere in sides if not seen.any()]
    notes = notes if len(notes) < 2 else ["no gang was measured: communication is taken to cost nothing"]
    x[2:4], x[4:] = x[2:4] if over.any() else x[4:], x[4:] if inside.any() else x[2:4]
    seen = (True, True, over.any(), over.any(), inside.any(), inside.any())
    left = [name for c, name in enumerate(NAMES[:6]) if seen[c] and c not in columns_kept]
    if left:
        notes.append(f"not identified by the measurements, taken to be 0: {', '.join(left)}")
    values: Any = [*x.tolist(), gamma]
    constants = tuple(map(Constant, NAMES, values, errors.tolist(), UNITS))
    return Fitted(Scaling(**dict(zip(NAMES, values, strict=True))), constants, T, residuals, freedom, tuple(notes))


def _independent(X: Floats) -> list[int]:
    """Return the columns that the rows identify, the more important first, rising."""
    columns: list[int] = []
    for c in FIRST:
        tried = X[:, [*columns, c]]
        scale = np.linalg.norm(tried, axis=0)
        if scale.all() and np.linalg.matrix_rank(tried / scale) == len(columns) + 1:
            columns.append(c)
    return sorted(columns)


def _seconds(X: Floats, x: Floats, gamma: float) -> Floats:
    """Return T f64[n] by the formula, scaled by the larger part: powers of small seconds leave the range of floats."""
    parts = np.array([X[:, :2] @ x[:2], X[:, 2:] @ x[2:]])
    larger = np.maximum(parts.max(axis=0), 1e-300)
    seconds: Floats = larger * ((parts / larger) ** gamma).sum(axis=0) ** (1 / gamma)
    return seconds


def _aicc(X: Floats, x: Floats, gamma: float, T: Floats, numbers: int) -> float:
    error, n = float(np.mean((_seconds(X, x, gamma) / T - 1) ** 2)), len(T)
    return n * math.log(error + EXACT) + 2 * numbers * n / (n - numbers - 1)


def _overlapping(X: Floats, kept: list[int], T: Floats, start: Floats) -> tuple[Floats, float, Floats]:
    """Return (seconds f64[6], gamma, covariance of those ``kept`` and gamma) by least squares with gamma free."""
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

    best = min(map(fit, STARTS), key=lambda each: float(each.cost))
    return spread(best.x), float(best.x[-1]), covariance(best.jac, best.fun, best.active_mask == 0)
