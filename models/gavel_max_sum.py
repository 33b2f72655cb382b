"""Gavel's sum policy: maximise the total throughput.

Sets: jobs m; GPU types r. Data and base constraints: `gavel_allocation`.
Variables: X_mr >= 0, share of time.

    max  sum_m sum_r T_mr X_mr                                                   (0)
    s.t. sum_r X_mr <= 1                                       every job m       (1)  time
         sum_m gang_m X_mr <= c_r                              every type r      (2)  capacity

Optimum: the total number of steps per second. The policy is not fair: jobs with few steps a second may get nothing.
Weights do not enter.
Size: n R columns, n + R rows, 2 n R nonzeros.
Reference: Narayanan et al., OSDI 2020 (`gavel_allocation`), and the policies of Gavel's public simulator.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp

from optsched.models.gavel_allocation import AllocationProblem, base_constraints
from optsched.models.program import add_allocation_program


def build(problem: AllocationProblem) -> Any:
    """Build the `cvxpy.Problem` with the variable ``X`` (n, R); the constraint labelled ``capacity`` has the duals.

    Parameters
    ----------
    problem
        The jobs and capacities.
    """
    X = problem.shares()
    total = cp.sum(cp.multiply(problem.jobs.rate, X))
    return cp.Problem(cp.Maximize(total), base_constraints(problem, X))  # (0); (1), (2)


add_allocation_program(
    "gavel-max-sum",
    "max sum_m thr_m(X)",
    "steps/s of all jobs together",
    build,
)
