"""Gavel's makespan policy: all jobs done as early as possible, as one linear program.

Sets: jobs m; GPU types r. Data and base constraints: `gavel_allocation`.
Data: left_m, steps left of job m.
Variables: X_mr >= 0, share of time; rate = 1 / T, the share of all its remaining steps that every job makes in a second.

    max  rate                                                                    (0)
    s.t. thr_m(X) >= rate left_m                               every job m       (1)  work
         sum_r X_mr <= 1                                       every job m       (2)  time
         sum_m gang_m X_mr <= c_r                              every type r      (3)  capacity

Optimum: T = 1 / rate seconds from now. One program finds it exactly: min T with thr_m(X) >= left_m / T is quasi-convex in
T, and linear in 1 / T. If no more jobs arrive, T is also a lower bound on the time until the last job ends in every
schedule without forking, also in schedules that mix types (y_mr = T X_mr seconds on r).
Size: n R + 1 columns, 2 n + R rows, about 3 n R nonzeros.
Reference: Narayanan et al., OSDI 2020 (`gavel_allocation`). Its simulator bisects T: `min_total_duration`.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp

from optsched.models.gavel_allocation import AllocationProblem, base_constraints
from optsched.models.program import add_allocation_program


def build(problem: AllocationProblem) -> Any:
    """Build the `cvxpy.Problem` with the variables ``X`` (n, R) and ``rate``.

    The constraint labelled ``capacity`` has the duals.

    Parameters
    ----------
    problem
        The jobs and capacities.
    """
    X, rate = problem.shares(), cp.Variable(name="rate")
    work = cp.sum(cp.multiply(problem.jobs.rate, X), axis=1) >= rate * problem.jobs.left
    return cp.Problem(cp.Maximize(rate), [work.set_label("work"), *base_constraints(problem, X)])  # (0); (1), (2), (3)


add_allocation_program(
    "gavel-makespan",
    "max rate: all jobs end together",
    "1 / seconds, the inverse of the makespan of shares of time",
    build,
)
