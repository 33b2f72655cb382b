"""Gavel's finish-time fairness: no job's finish, against its finish on a share of its own, later than it must be.

Sets, data, base constraints: `gavel_allocation`. Data: e_m seconds since job m arrived; left_m steps left; iso_m seconds
that the steps done would have taken it in isolation; X^iso, a 1/n-th of every type (`gavel_allocation.isolated`), and
D_m = iso_m + left_m / thr_m(X^iso), the finish of the isolated run.
Variables: X_mr >= 0, share of time.

    min  max_m (e_m + left_m / thr_m(X)) / D_m                                   (0)
    s.t. sum_r X_mr <= 1                                       every job m       (1)
         sum_m scale_m X_mr <= c_r                             every type r      (2)  capacity

Optimum: rho, the largest ratio. The D_m are constants, so (0) is a maximum of convex functions (`build`, for a conic
solver). `allocate` is exact with linear programs only. For a trial rho > max_m e_m / D_m let

    s(rho) = max { s : thr_m(X) (rho D_m - e_m) / left_m >= s for all m, (1), (2) }:        rho is reached iff s(rho) >= 1.

Duals y >= 0 of those rows, sum y = 1, prove s(rho') <= s(rho) / sum_m y_m (rho D_m - e_m) / (rho' D_m - e_m) for every
other rho', so the rho' where the right-hand side is 1 is a lower bound: Newton's step. The X found is an upper bound. From
the second step on the lower bounds rise, and they end after finitely many steps: there are finitely many dual vertices.
Size of each program: n R + 1 columns, 2 n + R rows, about 3 n R nonzeros; 3 to 8 programs in practice.
Performance-agnostic: ``allocate(problem.agnostic(reference))``.
Reference: Narayanan et al., OSDI 2020 (`gavel_allocation`), after Mahajan et al., Themis, NSDI 2020. For the
iteration: Dinkelbach, On nonlinear fractional programming, Management Science 13 (1967), 492-498.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from scipy.optimize import brentq

from optsched.errors import OptschedError
from optsched.models.gavel_allocation import (
    AllocationProblem,
    TimeShares,
    base_constraints,
    effective_throughput,
    isolated,
    prices,
    shares,
    solve_lp,
)
from optsched.models.program import add_allocation_program
from optsched.problem.arrays import Floats

POLICY = "finish-time fairness"
CLOSE = 1e-8  # relative distance of the bounds at which the value is called exact; HiGHS's own tolerance is 1e-9
STEPS = 100


def isolated_finish(problem: AllocationProblem) -> Floats:
    """D_m = iso_m + left_m / thr_m(X^iso), seconds, f64[n]."""
    share = isolated(problem.n, problem.scale, problem.capacity)
    left, so_far = problem.required("left", POLICY), problem.required("iso_so_far", POLICY)
    finish: Floats = so_far + left / effective_throughput(problem.throughputs, share)
    return finish


def ratios(problem: AllocationProblem, X: Floats) -> Floats:
    """(e_m + left_m / thr_m(X)) / D_m, f64[n]; inf for a job without throughput."""
    thr = effective_throughput(problem.throughputs, X)
    with np.errstate(divide="ignore"):
        finish = problem.required("elapsed", POLICY) + problem.required("left", POLICY) / thr
    rho: Floats = finish / isolated_finish(problem)
    return rho


def build(problem: AllocationProblem) -> Any:
    """The convex program (0)-(2) as it stands, a `cvxpy.Problem` for a conic solver; variable ``X`` (n, R)."""
    D, elapsed = isolated_finish(problem), problem.required("elapsed", POLICY)
    rate = problem.throughputs * (D / problem.required("left", POLICY))[:, None]  # remaining work in D seconds
    X = cp.Variable((problem.n, problem.capacity.size), nonneg=True, name="X")
    finish = elapsed / D + cp.inv_pos(cp.sum(cp.multiply(rate, X), axis=1))
    return cp.Problem(cp.Minimize(cp.max(finish)), base_constraints(problem, X))


def allocate(problem: AllocationProblem) -> TimeShares:
    """The optimum to 1e-8: value rho (>= the true optimum), prices d rho / d c_r <= 0 with X^iso held."""
    D, elapsed = isolated_finish(problem), problem.required("elapsed", POLICY)
    alone = problem.required("left", POLICY) / problem.throughputs.max(axis=1)
    lower = float(((elapsed + alone) / D).max())
    X = isolated(problem.n, problem.scale, problem.capacity)
    upper = rho = float(ratios(problem, X).max())
    for _ in range(STEPS):
        trial = solve_trial(problem, rho)
        reached = float(ratios(problem, trial.X).max())
        if reached <= upper:
            upper, X = reached, trial.X
        lower = max(lower, _newton(trial, rho, D, elapsed))
        if upper - lower <= CLOSE * upper:
            slope = trial.s * float((trial.y * D / (rho * D - elapsed)).sum())  # d s / d rho
            return TimeShares(X, upper, -trial.prices / slope)
        rho = lower
    raise OptschedError(f"{POLICY}: bounds {lower!r} and {upper!r} did not meet in {STEPS} steps")


@dataclass(frozen=True, eq=False)
class Trial:
    """What one linear program says about one rho: ``s`` = s(rho), its ``X``, duals ``y`` f64[n] and ``prices`` f64[R]."""

    s: float
    X: Floats
    y: Floats
    prices: Floats


def solve_trial(problem: AllocationProblem, rho: float) -> Trial:
    """s(rho), one linear program; rho > max_m e_m / D_m."""
    until = rho * isolated_finish(problem) - problem.required("elapsed", POLICY)  # seconds that rho leaves each job
    rate = problem.throughputs * (until / problem.required("left", POLICY))[:, None]
    X = cp.Variable((problem.n, problem.capacity.size), nonneg=True, name="X")
    s = cp.Variable(name="s")
    on_time = cp.sum(cp.multiply(rate, X), axis=1) >= s
    program = cp.Problem(cp.Maximize(s), [on_time, *base_constraints(problem, X)])
    value = solve_lp(program)
    return Trial(value, shares(program), np.asarray(on_time.dual_value), prices(program))


def _newton(trial: Trial, rho: float, D: Floats, elapsed: Floats) -> float:
    """The rho' with sum_m y_m (rho D_m - e_m) / (rho' D_m - e_m) = s(rho): a lower bound on the optimum."""
    tight = trial.y > 0
    y, D, elapsed = trial.y[tight] / trial.y[tight].sum(), D[tight], elapsed[tight]
    until = rho * D - elapsed
    pole = float((elapsed / D).max())

    def excess(there: float) -> float:
        return float((y * until / (there * D - elapsed)).sum()) - trial.s

    # excess falls from +inf at the pole to below 0; 1 / s bounds how far the distance to any job's own pole may grow
    low, high = pole + (rho - pole) / 2, pole + (rho - pole) * max(1.0, 1.0 / trial.s)
    while excess(low) < 0:
        low = pole + (low - pole) / 2
    while excess(high) > 0:
        high = pole + (high - pole) * 2
    return float(brentq(excess, low, high, xtol=1e-15, rtol=1e-14))


add_allocation_program(
    "gavel-finish-time",
    "min max_m of the finish-time ratio, convex",
    "the largest finish-time ratio",
    build,
)
