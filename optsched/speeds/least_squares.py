"""Constants from measurements: `Fitted`, a model with its errors; `fit_contention` and `fit_interference`.

Constants that are times cannot be negative: `non_negative` is non-negative least squares (the active sets of Lawson
and Hanson), one global optimum without a start or a step size. Rows are weighted by 1 / seconds: the errors of timings
are relative, and small messages, which alone show a latency, count as much as large ones.

**Contention**: T(k, M) = a + k b M + (k - 1) eta M for k all-reduces of M bytes at once on an interface is linear in
a, b and eta, with a >= 0, b >= 0 and b + eta >= 0. eta < 0 is reported, not changed: theorems on AdaDUAL then do not
apply. (The notebook on contention compares other estimators on published measurements.)

**Interference**: T = t_A alone and T = xi_{A|B} t_A next to B, xi >= 1, is linear in the logarithms u_A = ln t_A and
z_{A|B} = ln xi >= 0, so that errors are relative. If a pair seems to run faster than alone, which is noise, xi is 1,
and its seconds count as measurements of t_A, too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from optsched.errors import InputError, check_legal
from optsched.problem.arrays import Bools, Floats
from optsched.problem.contention import Contention
from optsched.problem.interference import TURNS, Interference
from optsched.rounding import counted

LEAST, LARGEST = 1e-18, 1e18  # limits of measurements: beyond them squares leave the range of floats
NUMBER, WHOLE = f"a number from {LEAST:g} to {LARGEST:g}", f"an integer from 1 to {LARGEST:g}"
Model = TypeVar("Model")


class Constant(NamedTuple):
    """A fitted number in ``unit``; ``error``: its standard error, NaN if there is none (at its bound, or given)."""

    name: str
    value: float
    error: float
    unit: str = ""


@dataclass(frozen=True, eq=False)
class Fitted(Generic[Model]):
    """A ``model``, for an `Instance`, with its ``constants``, and the ``measured`` seconds with their ``residuals``.

    ``freedom``: number of measurements less that of estimated numbers. ``notes``: assumptions and consequences.
    """

    model: Model
    constants: tuple[Constant, ...]
    measured: Floats
    residuals: Floats
    freedom: int
    notes: tuple[str, ...] = ()

    @property
    def r_squared(self) -> float:
        """Share of the variance of the seconds that the model explains; NaN if all are the same."""
        spread = self.measured - self.measured.mean()
        return 1 - float(self.residuals @ self.residuals) / float(spread @ spread) if spread.any() else math.nan

    @property
    def largest_error(self) -> float:
        """Largest abs(measured - fitted) / measured."""
        return float((np.abs(self.residuals) / self.measured).max())

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of a constant by Student's t, for normal errors; NaN if it has no error.

        Parameters
        ----------
        name
            Name of the constant.
        level
            Confidence level, between 0 and 1.
        """
        constants = {constant.name: constant for constant in self.constants}
        check_legal(name in constants, "name", name, ", ".join(constants))
        check_legal(0 < level < 1, "level", level, "a number between 0 and 1")
        from scipy.special import stdtrit  # imported where it is used: it takes longer than most runs

        reach = constants[name].error * float(stdtrit(self.freedom, (1 + level) / 2)) if self.freedom > 0 else math.nan
        return constants[name].value - reach, constants[name].value + reach

    def to_json(self) -> dict[str, Any]:
        """Return the fit without the model; None for NaN."""
        rows = []
        for name, value, error, unit in self.constants:
            low, high = self.interval(name)
            numbers = {"value": value, "error": error, "low": low, "high": high}
            rows.append({"name": name, "unit": unit} | {key: None if x != x else x for key, x in numbers.items()})
        explained = None if math.isnan(self.r_squared) else self.r_squared
        quality = {"rows": len(self.measured), "r_squared": explained, "largest_relative_error": self.largest_error}
        return {**quality, "constants": rows, "notes": list(self.notes)}


def checked(columns: dict[str, Sequence[float]], whole: tuple[str, ...] = ()) -> list[Floats]:
    """Return the columns of measurements as f64[n].

    Parameters
    ----------
    columns
        Columns by name.
    whole
        Names of the columns that hold integers.

    Raises
    ------
    InputError
        Columns of unequal length, or invalid numbers.
    """
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError("not one of each for every measurement", value=lengths, legal="lists of equal length")
    arrays = []
    for name, column in columns.items():
        values = np.asarray(column, np.float64)
        right = (values >= LEAST) & (values <= LARGEST) & ((values == np.floor(values)) | (name not in whole))
        if not right.all():
            first = int(right.argmin())
            legal = WHOLE if name in whole else NUMBER
            raise InputError("invalid", field=f"{name}[{first}]", value=float(values[first]), legal=legal)
        arrays.append(values)
    return arrays


def non_negative(X: Floats, y: Floats, legal: str) -> tuple[Floats, Floats]:
    """Return the coefficients >= 0 of a linear model, f64[c], and their `covariance`.

    Parameters
    ----------
    X
        Rows of the model, f64[n, c].
    y
        Values, f64[n].
    legal
        Text of the error.

    Raises
    ------
    InputError
        The columns of X are not independent.
    """
    from scipy.optimize import nnls

    rows, width = X.shape
    scale = np.linalg.norm(X, axis=0)  # bytes and seconds are nine orders of magnitude apart
    if rows < width or not scale.all() or np.linalg.matrix_rank(X / scale) < width:
        raise InputError(f"the {rows} measurements do not determine {width} numbers", legal=legal)
    solved: Floats = nnls(X / scale, y, maxiter=100 * width)[0]
    return solved / scale, covariance(X / scale, y - X / scale @ solved, solved > 0) / np.outer(scale, scale)


def covariance(X: Floats, residuals: Floats, free: Bools) -> Floats:
    """Return the covariance of coefficients, f64[c, c]; NaN for fixed ones, and if no freedom is left.

    Parameters
    ----------
    X
        Rows of the model, f64[n, c].
    residuals
        Residuals, f64[n].
    free
        Coefficients that are not fixed at their bounds, bool[c].
    """
    rows, width = X.shape
    matrix = np.full((width, width), math.nan)
    if rows > width and free.any():
        inverse = np.linalg.pinv(X[:, free])
        matrix[np.ix_(free, free)] = float(residuals @ residuals) / (rows - width) * (inverse @ inverse.T)
    return matrix


def fit_contention(
    sizes: Sequence[float], counts: Sequence[int], seconds: Sequence[float], *, latency: float | None = None
) -> Fitted[Contention]:
    """Fit T = a + k b M + (k - 1) eta M to measurements by least squares.

    A number at its bound, or given, has no standard error; the errors of the others assume it to be exact.

    Parameters
    ----------
    sizes
        M, bytes of every transfer of a measurement.
    counts
        k, number of transfers at once.
    seconds
        T, seconds of a measurement.
    latency
        a in seconds, if it is known; with one message size it cannot be estimated.

    Raises
    ------
    InputError
        Lists of unequal length, invalid values, measurements that do not determine the constants, or in which a byte
        takes no time.

    Examples
    --------
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
    given = latency or 0.0
    legal = "several message sizes (or a given latency), and for eta several numbers of transfers"
    solution, spread = non_negative(X / T[:, None], (T - given) / T, legal)
    *a, b, growth = solution.tolist()
    *a_error, b_error, _ = np.sqrt(np.diag(spread)).tolist()
    eta_error = math.sqrt(np.array([-1, 1]) @ spread[-2:, -2:] @ np.array([-1, 1]))
    errors = (*(a_error or [math.nan]), b_error, eta_error)
    made = Contention(b, growth - b, *(a or [given]))
    values = (made.latency, made.seconds_per_byte, made.penalty)
    names, units = ("latency", "seconds_per_byte", "penalty"), ("s", "s/byte", "s/byte")
    note = f"AdaDUAL's threshold on the ratio of two sizes: theta = b / (2 (b + eta)) = {made.theta:.4g}"
    if made.penalty < -1e-9 * made.seconds_per_byte:  # more than rounding
        note = "eta < 0: several at once are faster than in turns; the theorems on AdaDUAL need eta >= 0"
    constants, residuals = tuple(map(Constant, names, values, errors, units)), T - given - X @ solution
    return Fitted(made, constants, T, residuals, len(T) - X.shape[1], (note,))


def fit_interference(
    models: Sequence[str],
    beside: Sequence[str | None],
    seconds: Sequence[float],
    *,
    ratio: float = TURNS,
    never: Collection[tuple[str, str]] = (),
) -> Fitted[Interference]:
    """Fit the slow-downs of pairs of models to seconds of iterations.

    Standard errors assume the same relative error for all measurements; they need some measurements that were
    repeated.

    Parameters
    ----------
    models
        Model of every measurement.
    beside
        Model on the same GPU; None: alone.
    seconds
        Seconds of an iteration.
    ratio
        Slow-down >= 1 of pairs that were not measured; by default 2, as if the two took turns.
    never
        Pairs, in any order, that do not fit on a GPU together; they are never co-located.

    Raises
    ------
    InputError
        Lists of unequal length, invalid seconds, a model that was not measured alone, no pair at all.

    Examples
    --------
    >>> import optsched as osd
    >>> fit = osd.fit_interference(["vgg", "lstm", "vgg", "lstm"], [None, None, "lstm", "vgg"], [0.1, 0.2, 0.15, 0.24])
    >>> [round(fit.model.slowdown(*pair), 9) for pair in (("vgg", "lstm"), ("lstm", "vgg"))]
    [1.5, 1.2]
    """
    ones = {"models": [1.0] * len(models), "beside": [1.0] * len(beside)}  # only to be counted
    *_, T = checked({**ones, "seconds": seconds})
    cells = [(one, other or None) for one, other in zip(models, beside, strict=True)]
    kinds, pairs = sorted({name for cell in cells for name in cell if name}), sorted({c for c in cells if c[1]})
    for name in sorted(set(kinds) - {one for one, other in cells if other is None}):
        raise InputError("it was not measured alone", field="model", value=name, legal="every model alone, too")
    if not pairs:
        raise InputError("no two models were measured together", field="beside", legal="the name of another model")
    model_of = np.array([kinds.index(one) for one, _ in cells])
    X = np.zeros((len(cells), len(kinds) + len(pairs)))
    X[np.arange(len(cells)), model_of] = 1
    for i, cell in enumerate(cells):
        X[i, len(kinds) :] = [cell == pair for pair in pairs]
    logs, least = np.log(T), np.full(len(kinds), math.inf)
    np.minimum.at(least, model_of, logs)
    # t_A is never below the least seconds of A: counted from 1 below them, u has the sign that non-negative asks for
    solution, spread = non_negative(X, logs - least[model_of] + 1, "every model alone and in pairs")
    xi, errors = np.exp(solution[len(kinds) :]), np.sqrt(np.diag(spread)[len(kinds) :])
    constants = tuple(
        Constant(f"{one} beside {other}", *numbers)
        for (one, other), *numbers in zip(pairs, xi.tolist(), (xi * errors).tolist(), strict=True)
    )
    ratios = dict(zip(pairs, xi.tolist(), strict=True))
    apart = {*never, *((other, one) for one, other in never)}
    table = tuple(
        tuple(None if (one, other) in apart else ratios.get((one, other), ratio) for other in kinds) for one in kinds
    )
    made = Interference(ratio, tuple(kinds), table, "fitted to measurements")
    missing = len(kinds) ** 2 - len({*pairs, *apart})
    notes = (f"{missing} of {len(kinds) ** 2} pairs were not measured: {ratio:g} for these",) * bool(missing)
    notes += _pair_notes(ratios)
    residuals = T - np.exp(X @ solution + least[model_of] - 1)
    return Fitted(made, constants, T, residuals, len(T) - X.shape[1], notes)


def _pair_notes(ratios: Mapping[tuple[str, str | None], float]) -> tuple[str, ...]:
    """Return which measured pairs gain from sharing, and how far one ratio a pair, or one for all pairs, would be off."""
    pairs = {f"{a} and {b}": (xi, ratios[b, a]) for (a, b), xi in ratios.items() if b and a <= b and (b, a) in ratios}
    if not pairs:
        return ()
    work = {pair: 1 / xi + 1 / other for pair, (xi, other) in pairs.items()}
    uneven = {pair: math.sqrt(max(xi / other, other / xi)) - 1 for pair, (xi, other) in pairs.items()}
    middle = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    most = max(max(xi / middle, middle / xi) for xi in ratios.values()) - 1
    best, worst = max(work, key=work.__getitem__), max(uneven, key=uneven.__getitem__)
    gains = sum(rate > 1 for rate in work.values())
    return (
        f"{gains} of {counted(len(pairs), 'pair')} {'does' if gains == 1 else 'do'} more work together than in turns "
        f"(1/xi + 1/xi > 1); best: {best}, x {max(work.values()):.2f}",
        f"one ratio for both jobs of a pair would be off by up to {100 * max(uneven.values()):.0f} % ({worst})",
        f"one ratio for all pairs would be {middle:.2f}, off by up to {100 * most:.0f} %",
    )
