"""Proportional fairness over GPU types: the largest weighted product of throughputs, a concave program.

Sets, data, base constraints: `gavel_allocation`. Data: weights w_m.
Variables: X_mr >= 0, share of time.

    max  sum_m w_m log thr_m(X)                                                  (0)
    s.t. sum_r X_mr <= 1                                       every job m       (1)
         sum_m scale_m X_mr <= c_r                             every type r      (2)  capacity

Optimum: the Nash bargaining point: in every other allocation the weighted relative changes of thr_m sum to at most 0.
Between max-min fairness and the most throughput in all; each job's thr_m is unique, X need not be. The units of a job's T_m
do not matter. With one type, gangs of 1 and n >= c every job gets w_m c / sum w of a GPU where that is at most 1.
Certificate (`optimality_gap`): log is concave, so (0) rises by at most sum_m w_m (thr_m(X') / thr_m(X) - 1), and that is at
most sum_r c_r p_r + sum_m max(0, max_r w_m T_mr / thr_m(X) - scale_m p_r) - sum_m w_m for any prices p >= 0. It is 0
exactly if X and p satisfy the Karush-Kuhn-Tucker conditions.
Size: n R columns, n + R rows, n exponential cones.
Reference: Kelly, Maulloo and Tan, Rate control for communication networks, J. Oper. Res. Soc. 49 (1998), 237-252.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from optsched.errors import OptschedError
from optsched.models.gavel_allocation import (
    AllocationProblem,
    TimeShares,
    base_constraints,
    effective_throughput,
    prices,
    shares,
    solve_lp,
)
from optsched.models.program import add_allocation_program
from optsched.problem.arrays import Floats

GAP = 1e-8  # of sum w: largest certified distance that is called optimal
EXACT = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
STEPS = 6


def build(problem: AllocationProblem) -> Any:
    """The `cvxpy.Problem`; variable ``X`` (n, R), the constraint labelled ``capacity`` for its duals."""
    X = cp.Variable((problem.n, problem.capacity.size), nonneg=True, name="X")
    thr = cp.sum(cp.multiply(problem.throughputs, X), axis=1)
    return cp.Problem(cp.Maximize(problem.w @ cp.log(thr)), base_constraints(problem, X))  # (0); (1), (2)


def allocate(problem: AllocationProblem) -> TimeShares:
    """The optimum, certified to 1e-8 sum w: value (0) with thr in steps/s, prices d value / d c_r.

    An interior point method for (0) is exact in the value, and so only to the root of that in thr, which the certificate
    sees; a Newton step or two, each a quadratic program, do the rest.
    """
    there = problem.capacity > 0  # a type without GPUs would leave an interior point method no interior
    small = AllocationProblem(
        throughputs=problem.throughputs[:, there] / problem.throughputs.max(axis=1)[:, None],
        scale=problem.scale,
        capacity=problem.capacity[there],
        weights=problem.w / problem.w.mean(),
    )
    program = build(small)
    for _ in range(STEPS):
        program.solve(solver=cp.CLARABEL, **EXACT)
        if program.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):  # the certificate judges, not the status
            raise OptschedError(f"CLARABEL: the allocation program ended with {program.status}")
        there_only = _feasible(small, shares(program))
        X = np.zeros_like(problem.throughputs)
        X[:, there] = there_only
        value = float(problem.w @ np.log(effective_throughput(problem.throughputs, X)))
        found = TimeShares(X, value, _best_prices(problem, X))
        gap = optimality_gap(problem, found)
        if gap <= GAP * problem.w.sum():
            return found
        program = _newton(small, there_only)
    raise OptschedError(f"CLARABEL: the allocation may be {gap:.2g} below the optimum")


def _newton(problem: AllocationProblem, near: Floats) -> Any:
    """(0) with log thr to the second order around ``near``: a quadratic program in the relative changes of thr."""
    rate = problem.throughputs / effective_throughput(problem.throughputs, near)[:, None]
    X = cp.Variable(near.shape, nonneg=True, name="X")
    change = cp.sum(cp.multiply(rate, X), axis=1) - 1
    second = problem.w @ change - cp.sum_squares(cp.multiply(np.sqrt(problem.w / 2), change))
    return cp.Problem(cp.Maximize(second), base_constraints(problem, X))


def optimality_gap(problem: AllocationProblem, found: TimeShares) -> float:
    """How far the value of a feasible X is below the optimum at most, proved by its prices (see the module)."""
    assert found.prices is not None
    slope = problem.throughputs * (problem.w / effective_throughput(problem.throughputs, found.X))[:, None]
    surplus = np.maximum((slope - np.outer(problem.scale, found.prices)).max(axis=1), 0.0)
    return float(problem.capacity @ found.prices + surplus.sum() - problem.w.sum())


def _best_prices(problem: AllocationProblem, X: Floats) -> Floats:
    """The prices with the least gap: duals of the program linearised at X. An interior point's own are far less exact."""
    unit = float(problem.w.mean())
    slope = problem.throughputs * (problem.w / unit / effective_throughput(problem.throughputs, X))[:, None]
    other = cp.Variable(X.shape, nonneg=True, name="X")
    linear = cp.Problem(cp.Maximize(cp.sum(cp.multiply(slope, other))), base_constraints(problem, other))
    solve_lp(linear)
    return np.maximum(prices(linear), 0.0) * unit


def _feasible(problem: AllocationProblem, X: Floats) -> Floats:
    """X with rows and columns that an interior point left a little too full divided by what they are above."""
    X = X / np.maximum(X.sum(axis=1), 1.0)[:, None]
    return X / np.maximum((problem.scale @ X) / problem.capacity, 1.0)


add_allocation_program(
    "gavel-proportional",
    "max sum_m w_m log thr_m(X), convex",
    "the sum of logarithms of speeds",
    build,
)
