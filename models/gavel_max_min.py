"""Gavel's max-min fairness (least attained service, weighted): maximise the smallest normalised throughput.

Sets: jobs m; GPU types r. Data and base constraints: `gavel_allocation`.
Data: weights w_m; X^equal_r = c_r / sum_r c_r, the same row for all jobs.
Variables: X_mr >= 0, share of time; t, the smallest level.

    max  t                                                                       (0)
    s.t. (gang_m / w_m) thr_m(X) / thr_m(X^equal) >= t         every job m       (1)  fair
         sum_r X_mr <= 1                                       every job m       (2)  time
         sum_m gang_m X_mr <= c_r                              every type r      (3)  capacity

Optimum: t; a job with twice the weight gets twice the normalised throughput where nothing else limits it. Jobs that are
no bottleneck get what the solver leaves them.
Performance-agnostic ("LAS without performance"): the same with all T_mr = 1.
Invariances: the units of each job's T_m do not matter; if all weights are multiplied by k, t is divided by k.
Size: n R + 1 columns, 2 n + R rows, about 3 n R nonzeros.
Reference: Narayanan et al., OSDI 2020 (`gavel_allocation`).
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp

from optsched.models.gavel_allocation import AllocationProblem, base_constraints, level_rates
from optsched.models.program import add_allocation_program


def build(problem: AllocationProblem) -> Any:
    """Build the `cvxpy.Problem` with the variables ``X`` (n, R) and ``t``.

    The constraint labelled ``capacity`` has the duals.

    Parameters
    ----------
    problem
        The jobs and capacities.
    """
    X, t = problem.shares(), cp.Variable(name="t")
    level = cp.sum(cp.multiply(level_rates(problem.jobs, problem.capacity), X), axis=1)
    fair = (level >= t).set_label("fair")
    return cp.Problem(cp.Maximize(t), [fair, *base_constraints(problem, X)])  # (0); (1), (2), (3)


add_allocation_program(
    "gavel-max-min",
    "max-min fairness: the least speed of a job against equal shares",
    "the least normalised speed",
    build,
)
