"""Bound that prices of rows prove for a linear program, whatever the prices are: float64 with its rounding counted.

For a minimisation and any y the value of every solution is at least

    offset + sum_i min(y_i row_lower_i, y_i row_upper_i) + sum_j min over lower_j <= x_j <= upper_j of (c_j - (y A)_j) x_j,

which is the optimum for optimal y (weak duality). A solver's prices are optimal only up to its tolerances: reduced costs
that should be 0 are slightly negative, and its reported optimum may be too high. If such a column has no upper bound, an
upper bound follows from a row of nonnegative numbers, or from the solver's value: solutions above it do not matter.

Reference: Neumaier and Shcherbina, Safe bounds in linear and mixed-integer linear programming, Math. Program. 99 (2004),
283-296.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from optsched.problem.arrays import Floats
from optsched.solvers.linear_program import LinearProgram

ULP = 2.0**-52
MARGIN = 1e-6  # relative: added to the solver's value, so that solutions of that value are included


def dual_bound(program: LinearProgram, row_dual: Floats, value: float) -> float | None:
    """Return a lower bound on a minimisation without integers, or None if none follows. O(nonzeros).

    Parameters
    ----------
    program
        The linear program.
    row_dual
        Prices of the rows as in `Session.duals`, f64[rows].
    value
        Value of a solution, roughly: the optimum is at most a part of `MARGIN` above it.
    """
    A, c = program.A, program.c
    side = np.where(row_dual > 0, program.row_lower, program.row_upper)
    dual = np.where(np.isfinite(side), row_dual, 0.0)  # a dual of the wrong sign is rounding
    priced = dual * np.where(np.isfinite(side), side, 0.0)
    entries, sizes = np.diff(A.indptr) + 2, np.abs(c) + abs(A).T @ np.abs(dual)
    reduced, error = c - A.T @ dual, entries * sizes * (2 * ULP)
    worst = reduced - error  # the least cost of one unit of x_j > 0
    upper = np.minimum(program.upper, _implied(program))
    at_lower, at_upper = _product(program.lower, reduced, error), _product(upper, reduced, error)
    least = np.minimum(at_lower, at_upper)
    free = np.flatnonzero(np.isneginf(least) & (worst < 0) & np.isfinite(program.lower) & (c > 0))
    if free.size and not np.isneginf(cheapest := _least_cost(program, upper)).any():
        total = float(cheapest.sum())
        most = value + MARGIN * (1 + abs(value) + float(np.abs(cheapest).sum())) - program.offset
        limit = (most - total + cheapest[free]) / c[free]
        least[free] = np.minimum(at_lower[free], _product(limit, reduced[free], error[free]))
    if not np.isfinite(least).all():
        return None
    terms = np.concatenate([priced, least, [program.offset]])
    return math.fsum(terms.tolist()) - 4 * ULP * math.fsum(np.abs(terms).tolist())


def _product(x: Floats, cost: Floats, error: Floats) -> Floats:
    """Return the least value of cost times x, with costs that are off by an error; 0 where either is 0."""
    least = cost - np.sign(x) * (error + ULP * np.abs(cost))
    with np.errstate(invalid="ignore"):
        return np.where((x == 0) | (least == 0), 0.0, least * x)


def _least_cost(program: LinearProgram, upper: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        least = np.where(program.c > 0, program.c * program.lower, program.c * upper)
    return np.where(program.c == 0, 0.0, np.where(np.isnan(least), -np.inf, least))


def _implied(program: LinearProgram) -> Floats:
    """Return upper bounds that follow from rows without negative numbers: f64[columns], inf where none follows."""
    A = sp.coo_array(program.A)
    plain = np.ones(len(program.row_upper), dtype=bool)
    plain[A.row[(A.data < 0) | (program.lower[A.col] < 0)]] = False
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(plain[A.row] & (A.data > 0), program.row_upper[A.row] / A.data, np.inf)
    implied = np.full(len(program.c), np.inf)
    np.minimum.at(implied, A.col, most * (1 + 4 * ULP))
    return implied
