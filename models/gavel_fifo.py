"""First in, first out over GPU types: Gavel's linear program.

Sets: jobs m = 1..n in the order of their arrival; GPU types r. Data and base constraints: `gavel_allocation`.
Data: fast_m = max_r T_mr, the throughput on the fastest type.
Variables: X_mr >= 0, share of time.

    max  sum_m (n + 1 - m) thr_m(X) / fast_m                                     (0)
    s.t. sum_r X_mr <= 1                                       every job m       (1)  time
         sum_m gang_m X_mr <= c_r                              every type r      (2)  capacity

Optimum: the weights express importance but no strict order. Late jobs may outweigh an early gang: with one type of 3
GPUs, first a gang of 3, then three jobs of 1, a GPU is worth 4/3 to the first job and 3, 2 and 1 to the others, so the
first gets a third of its time. The strict order, a queue over whole types, is the policy `fifo` with the placement
`one-type`.
Size: n R columns, n + R rows, 2 n R nonzeros.
Reference: (0) is Narayanan et al.'s, OSDI 2020 (`gavel_allocation`), as it is generally quoted, not confirmed in
the text; the queue is that of Gavel's public simulator.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from optsched.models.gavel_allocation import AllocationProblem, base_constraints
from optsched.models.program import add_allocation_program


def build(problem: AllocationProblem) -> Any:
    """Build the `cvxpy.Problem` with the variable ``X`` (n, R); the constraint labelled ``capacity`` has the duals.

    Parameters
    ----------
    problem
        The jobs and capacities.
    """
    X, rate = problem.shares(), problem.jobs.rate
    speed = cp.sum(cp.multiply(rate / rate.max(axis=1)[:, None], X), axis=1)
    return cp.Problem(cp.Maximize(np.arange(len(rate), 0, -1.0) @ speed), base_constraints(problem, X))  # (0); (1), (2)


add_allocation_program(
    "gavel-fifo",
    "max sum_m (n + 1 - m) thr_m(X) / fastest_m: first come, first served",
    "the weighted sum of speeds",
    build,
)
