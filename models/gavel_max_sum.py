"""Gavel's sum policies: the most throughput in all, or the most for the money, with and without deadlines.

Sets, data, base constraints: `gavel_allocation`. Data: cost_r of one GPU-hour of type r (max-sum-throughput: all 1); left_m
steps left and time_left_m seconds to the deadline of the jobs S that still have one.
Variables: X_mr >= 0, share of time.

    max  sum_m sum_r (T_mr / cost_r) X_mr                                        (0)
    s.t. thr_m(X) >= left_m / time_left_m                      every job in S    (1)  deadlines
         sum_r X_mr <= 1                                       every job m       (2)
         sum_m scale_m X_mr <= c_r                             every type r      (3)  capacity

Optimum: steps per second in all, or per second and unit of money ("min-cost"). Neither is fair: without (1) jobs with few
steps a second may get nothing. Where (1) cannot be met it is dropped altogether, as in Gavel, and the status says so.
A deadline that has passed asks for nothing any more. Weights do not enter.
Size: n R columns, at most 2 n + R rows, at most 3 n R nonzeros.
Reference: Narayanan et al., OSDI 2020 (`gavel_allocation`), and the policies of Gavel's public simulator.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np

from optsched.errors import InfeasibleError
from optsched.models.gavel_allocation import (
    AllocationProblem,
    TimeShares,
    base_constraints,
    prices,
    shares,
    solve_lp,
)
from optsched.models.program import add_allocation_program

WITHOUT_DEADLINES = "optimal without deadlines"  # a status: they could not all be met


def build(problem: AllocationProblem, *, deadlines: bool = True) -> Any:
    """The `cvxpy.Problem`; variable ``X`` (n, R), the constraint labelled ``capacity`` for its duals."""
    T, cost = problem.throughputs, np.ones_like(problem.capacity) if problem.cost is None else problem.cost
    X = cp.Variable((problem.n, problem.capacity.size), nonneg=True, name="X")
    needed = _needed(problem) if deadlines else np.zeros(problem.n)
    S = np.flatnonzero(needed)
    by_deadline = [] if S.size == 0 else [cp.sum(cp.multiply(T[S] / needed[S, None], X[S]), axis=1) >= 1]
    return cp.Problem(
        cp.Maximize(cp.sum(cp.multiply(T / cost, X))),  # (0)
        [
            *by_deadline,  # (1)
            *base_constraints(problem, X),  # (2), (3)
        ],
    )


def allocate(problem: AllocationProblem) -> TimeShares:
    """Max-sum-throughput, or min-cost where ``cost`` is given, with the deadlines of ``time_left`` where that is given.

    Value: the objective (0) with costs as given; prices d value / d c_r. Status `WITHOUT_DEADLINES` where they could not
    all be met: the allocation then knows none of them. Needs ``left`` beside ``time_left``.
    """
    gain = problem.throughputs if problem.cost is None else problem.throughputs / problem.cost
    unit = float(gain.max())  # so that the largest coefficient of (0) is 1
    cost = np.full(problem.capacity.size, unit) if problem.cost is None else problem.cost * unit
    scaled, status = replace(problem, cost=cost), "optimal"
    program = build(scaled)
    try:
        value = solve_lp(program)
    except InfeasibleError:
        program, status = build(scaled, deadlines=False), WITHOUT_DEADLINES
        value = solve_lp(program)
    return TimeShares(shares(program), value * unit, prices(program) * unit, status)


def _needed(problem: AllocationProblem) -> Any:
    """Steps/s that each job needs to meet its deadline; 0 without one."""
    if problem.time_left is None:
        return np.zeros(problem.n)
    left, time_left = problem.required("left", "a deadline"), problem.time_left
    return np.where(time_left > 0, left / np.where(time_left > 0, time_left, 1.0), 0.0)


add_allocation_program(
    "gavel-max-sum",
    "max sum_m thr_m(X) / cost",
    "steps/s of all jobs together",
    build,
)
