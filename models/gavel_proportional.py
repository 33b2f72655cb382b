"""Proportional fairness over GPU types: the largest weighted product of throughputs, a concave program.

Sets: jobs m; GPU types r. Data and base constraints: `gavel_allocation`.
Data: weights w_m.
Variables: X_mr >= 0, share of time.

    max  sum_m w_m log thr_m(X)                                                  (0)
    s.t. sum_r X_mr <= 1                                       every job m       (1)  time
         sum_m gang_m X_mr <= c_r                              every type r      (2)  capacity

Optimum: the Nash bargaining point: in every other allocation the weighted relative changes of thr_m sum to at most 0.
It lies between max-min fairness and the largest total throughput. Each job's thr_m is unique, X need not be. The units of
a job's T_m do not matter. With one type, gangs of 1 and n >= c every job gets w_m c / sum w of a GPU if that is at most 1.
Certificate: log is concave, so (0) rises by at most sum_m w_m (thr_m(X') / thr_m(X) - 1): X is optimal exactly if the linear
program max sum_m w_m thr_m(X') / thr_m(X) over (1) and (2) is worth sum_m w_m.
Size: n R columns, n + R rows, n exponential cones.
Reference: Kelly, Maulloo and Tan, Rate control for communication networks, J. Oper. Res. Soc. 49 (1998), 237-252.
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
    thr = cp.sum(cp.multiply(problem.jobs.rate, X), axis=1)
    return cp.Problem(cp.Maximize(problem.jobs.weight @ cp.log(thr)), base_constraints(problem, X))  # (0); (1), (2)


add_allocation_program(
    "gavel-proportional",
    "max sum_m w_m log thr_m(X), convex",
    "the sum of logarithms of speeds",
    build,
)
