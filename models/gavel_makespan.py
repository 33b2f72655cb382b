"""Gavel's makespan policy: all jobs done as early as possible, as one linear program and by Gavel's own bisection.

Sets, data, base constraints: `gavel_allocation`. Data: left_m, steps left of job m.
Variables: X_mr >= 0, share of time; rate = 1 / T, the share of all its remaining steps that every job makes in a second.

    max  rate                                                                    (0)
    s.t. thr_m(X) >= rate left_m                               every job m       (1)  work
         sum_r X_mr <= 1                                       every job m       (2)
         sum_m scale_m X_mr <= c_r                             every type r      (3)  capacity

Optimum: T = 1 / rate seconds from now, exact by one program: min T with thr_m(X) >= left_m / T is quasi-convex in T, and
linear in 1 / T. T is also a lower bound on the time until the last job ends in every schedule without forking, mixed types
included (y_mr = T X_mr seconds on r), when no jobs arrive any more.
Size: n R + 1 columns, 2 n + R rows, about 3 n R nonzeros.
Reference: Narayanan et al., OSDI 2020 (`gavel_allocation`); the bisection and its constants as in Gavel's public simulator.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np

from optsched.errors import InfeasibleError
from optsched.models.gavel_allocation import AllocationProblem, TimeShares, base_constraints, prices, shares, solve_lp
from optsched.models.program import add_allocation_program
from optsched.problem.arrays import Floats

POLICY = "makespan"
LOW, HIGH, STOP = 100.0, 1e6, 1.05  # Gavel's: seconds, seconds, ratio


def build(problem: AllocationProblem) -> Any:
    """The `cvxpy.Problem`; variables ``X`` (n, R) and ``rate``, the constraint labelled ``capacity`` for its duals."""
    left = problem.required("left", POLICY)
    X = cp.Variable((problem.n, problem.capacity.size), nonneg=True, name="X")
    rate = cp.Variable(name="rate")
    return cp.Problem(
        cp.Maximize(rate),  # (0)
        [
            cp.sum(cp.multiply(problem.throughputs, X), axis=1) >= rate * left,  # (1)
            *base_constraints(problem, X),  # (2), (3)
        ],
    )


def allocate(problem: AllocationProblem) -> TimeShares:
    """The exact optimum: value T in seconds, prices d T / d c_r <= 0."""
    scaled, unit = _in_units_of_a_bound(problem)
    program = build(scaled)
    T = unit / solve_lp(program)
    return TimeShares(shares(program), T, -(T * T / unit) * prices(program))  # dT = -T^2 d(rate)


def allocate_by_bisection(
    problem: AllocationProblem, *, low: float = LOW, high: float = HIGH, stop: float = STOP
) -> TimeShares:
    """Gavel's rule: halve [low, high] until high <= stop * low; X is any solution of (1)-(3) for T = high.

    An upper end that is infeasible grows tenfold. Guarantee: the optimum <= value <= ``stop`` times the optimum, unless
    the optimum is below ``low``: then value <= ``stop * low``. The value is the ``high`` reached; no prices.
    """
    scaled, unit = _in_units_of_a_bound(problem)
    X = cp.Variable(problem.throughputs.shape, nonneg=True, name="X")
    rate = cp.Parameter(nonneg=True)
    work = cp.sum(cp.multiply(scaled.throughputs, X), axis=1) >= rate
    program = cp.Problem(cp.Minimize(0), [work, *base_constraints(problem, X)])

    def feasible(T: float) -> Floats | None:
        rate.value = unit / T
        try:
            solve_lp(program)
        except InfeasibleError:
            return None
        return shares(program)

    found = feasible(high)
    while found is None:
        low, high = high, 10.0 * high
        found = feasible(high)
    while high > stop * low:
        middle = (low + high) / 2
        better = feasible(middle)
        if better is None:
            low = middle
        else:
            high, found = middle, better
    return TimeShares(found, high, None)


def _in_units_of_a_bound(problem: AllocationProblem) -> tuple[AllocationProblem, float]:
    """The same problem with work 1 a job and time in units of a lower bound on T, so that the optimal rate is about 1."""
    alone = problem.required("left", POLICY) / problem.throughputs.max(axis=1)
    unit = max(float(alone.max()), float(problem.scale @ alone) / float(problem.capacity.sum()))
    rates = problem.throughputs * (unit / problem.required("left", POLICY))[:, None]
    return replace(problem, throughputs=rates, left=np.ones(problem.n)), unit


add_allocation_program(
    "gavel-makespan",
    "max rate: all jobs end together",
    "1 / seconds, the inverse of the makespan of shares of time",
    build,
)
