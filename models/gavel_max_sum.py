"""Gavel's sum policies: the most throughput in all, or the most for the money, with and without deadlines.

Sets: jobs m; GPU types r. Data and base constraints: `gavel_allocation`.
Data: cost_r of one GPU-hour of type r (max-sum-throughput: all 1); left_m
steps left and time_left_m seconds to the deadline of the jobs S that still have one.
Variables: X_mr >= 0, share of time.

    max  sum_m sum_r (T_mr / cost_r) X_mr                                        (0)
    s.t. thr_m(X) >= left_m / time_left_m                      every job in S    (1)  deadlines
         sum_r X_mr <= 1                                       every job m       (2)  time
         sum_m gang_m X_mr <= c_r                              every type r      (3)  capacity

Optimum: steps per second in all, or per second and unit of money ("min-cost"). Neither is fair: without (1) jobs with few
steps a second may get nothing. Where (1) cannot be met Gavel drops it altogether; this program is then infeasible.
A deadline that has passed asks for nothing any more. Weights do not enter.
Size: n R columns, at most 2 n + R rows, at most 3 n R nonzeros.
Reference: Narayanan et al., OSDI 2020 (`gavel_allocation`), and the policies of Gavel's public simulator.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from optsched.models.gavel_allocation import AllocationProblem, base_constraints, rates_by_deadline
from optsched.models.program import add_allocation_program


def build(problem: AllocationProblem) -> Any:
    """The `cvxpy.Problem`; variable ``X`` (n, R), the constraint labelled ``capacity`` for its duals."""
    T, X, needed = problem.jobs.rate, problem.shares(), rates_by_deadline(problem.jobs)
    worth = T if problem.cost is None else T / problem.cost
    S = np.flatnonzero(needed > 0)
    in_time = cp.sum(cp.multiply(T[S] / needed[S, None], X[S]), axis=1) >= 1 if S.size else None
    by_deadline = [] if in_time is None else [in_time.set_label("deadlines")]
    return cp.Problem(
        cp.Maximize(cp.sum(cp.multiply(worth, X))),  # (0)
        [*by_deadline, *base_constraints(problem, X)],  # (1), (2), (3)
    )


add_allocation_program(
    "gavel-max-sum",
    "max sum_m thr_m(X) / cost",
    "steps/s of all jobs together",
    build,
)
