"""Gavel's finish-time fairness: minimise the largest ratio of a job's finish to its finish on an isolated share.

Sets: jobs m; GPU types r. Data and base constraints: `gavel_allocation`.
Data: e_m seconds since job m arrived; left_m steps left; iso_m seconds
that the steps done would have taken it in isolation; X^iso, a 1/n-th of every type (`gavel_allocation.isolated_share`), and
D_m = iso_m + left_m / thr_m(X^iso), the finish of the isolated run.
Variables: X_mr >= 0, share of time.

    min  max_m (e_m + left_m / thr_m(X)) / D_m                                   (0)
    s.t. sum_r X_mr <= 1                                       every job m       (1)  time
         sum_m gang_m X_mr <= c_r                              every type r      (2)  capacity

Optimum: rho, the largest ratio. The D_m are constants, so (0) is a maximum of convex functions, for a conic solver; the
policy finds rho by linear programs (`gavel_allocations.level_search`).
Size: n R columns, n + R rows, n second-order cones.
Reference: Narayanan et al., OSDI 2020 (`gavel_allocation`), after Mahajan et al., Themis, NSDI 2020.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp

from optsched.models.gavel_allocation import AllocationProblem, base_constraints, isolated_rate
from optsched.models.program import add_allocation_program
from optsched.problem.arrays import Floats


def isolated_finish(problem: AllocationProblem) -> Floats:
    """Return D_m = iso_m + left_m / thr_m(X^iso) in seconds, f64[n].

    Parameters
    ----------
    problem
        The jobs and capacities.
    """
    alone: Floats = problem.jobs.left / isolated_rate(problem.jobs, problem.capacity)
    return alone if problem.isolated_so_far is None else problem.isolated_so_far + alone


def build(problem: AllocationProblem) -> Any:
    """Build the `cvxpy.Problem` with the variable ``X`` (n, R); the constraint labelled ``capacity`` has the duals.

    Parameters
    ----------
    problem
        The jobs and capacities.
    """
    X, jobs, D = problem.shares(), problem.jobs, isolated_finish(problem)
    rate = jobs.rate * (D / jobs.left)[:, None]  # remaining work in D seconds
    finish = jobs.elapsed / D + cp.inv_pos(cp.sum(cp.multiply(rate, X), axis=1))
    return cp.Problem(cp.Minimize(cp.max(finish)), base_constraints(problem, X))  # (0); (1), (2)


add_allocation_program(
    "gavel-finish-time",
    "min max_m of the finish-time ratio, convex",
    "the largest finish-time ratio",
    build,
)
