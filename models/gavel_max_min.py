"""Gavel's max-min fairness (least attained service, weighted): the smallest normalised throughput as large as possible.

Sets, data, base constraints: `gavel_allocation`. Data: weights w_m; X^equal_r = c_r / sum_r c_r, the same row for all jobs.
Variables: X_mr >= 0, share of time; t, the smallest level.

    max  t                                                                       (0)
    s.t. (scale_m / w_m) thr_m(X) / thr_m(X^equal) >= t        every job m       (1)  fair
         sum_r X_mr <= 1                                       every job m       (2)
         sum_m scale_m X_mr <= c_r                             every type r      (3)  capacity

Optimum: t; a job with twice the weight gets twice the normalised throughput where nothing else limits it. Jobs that are
no bottleneck get what the solver leaves them: `gavel_water_filling` goes on where this stops.
Performance-agnostic ("LAS without performance"): ``allocate(problem.agnostic())``, the same with all T_mr = 1.
Invariances: the units of each job's T_m do not matter; all weights times k divide t by k.
Size: n R + 1 columns, 2 n + R rows, about 3 n R nonzeros.
Reference: Narayanan et al., OSDI 2020 (`gavel_allocation`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp

from optsched.models.gavel_allocation import (
    AllocationProblem,
    TimeShares,
    base_constraints,
    effective_throughput,
    equal_share,
    prices,
    shares,
    solve_lp,
)
from optsched.models.program import add_allocation_program


def build(problem: AllocationProblem) -> Any:
    """The `cvxpy.Problem`; variables ``X`` (n, R) and ``t``, the constraint labelled ``capacity`` for its duals."""
    equal = effective_throughput(problem.throughputs, equal_share(problem.capacity))
    level = (problem.scale / problem.w / equal)[:, None] * problem.throughputs
    X = cp.Variable((problem.n, problem.capacity.size), nonneg=True, name="X")
    t = cp.Variable(name="t")
    return cp.Problem(
        cp.Maximize(t),  # (0)
        [
            cp.sum(cp.multiply(level, X), axis=1) >= t,  # (1)
            *base_constraints(problem, X),  # (2), (3)
        ],
    )


def allocate(problem: AllocationProblem) -> TimeShares:
    """The LP's optimum: value t, prices d t / d c_r with X^equal held."""
    unit = float(problem.w.mean())  # so that t is about 1 whatever the unit of the weights
    program = build(replace(problem, weights=problem.w / unit))
    value = solve_lp(program)
    return TimeShares(shares(program), value / unit, prices(program) / unit)


add_allocation_program(
    "gavel-max-min",
    "max-min fairness: the least speed of a job against equal shares",
    "the least normalised speed",
    build,
)
