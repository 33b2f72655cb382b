"""First in, first out over GPU types: Gavel's linear program, the exact order as programs job by job, and whole types.

Sets, data, base constraints: `gavel_allocation`; jobs are numbered in the order of their arrival, m = 1..n.
Data: fast_m = max_r T_mr, the throughput on the fastest type.
Variables: X_mr >= 0, share of time.

    max  sum_m (n + 1 - m) thr_m(X) / fast_m                                     (0)
    s.t. thr_m(X) / fast_m >= v_m                              every job m       (1)  floors, v = 0 in Gavel's program
         sum_r X_mr <= 1                                       every job m       (2)
         sum_m scale_m X_mr <= c_r                             every type r      (3)  capacity

Optimum: `build` is Gavel's program. Its weights are an order of importance, not a strict one: late jobs may outweigh an
early gang (one type with 3 GPUs, first a gang of 3, then three jobs of 1: 4/3 a GPU against 3, 2 and 1, so that the first
gets a third of its time).
`allocate` is the strict order: v_1 is the most that job 1 can have, v_2 the most that job 2 can have beside it, and so on,
each by one program with all earlier floors; nobody waits for a later job, and the value of (0) is at most Gavel's.
`whole_types` is what a queue without shares does, the integral counterpart: see there.
Size: n R columns, 2 n + R rows, 3 n R nonzeros; `allocate` solves n of them.
Reference: (0) is Narayanan et al.'s, OSDI 2020 (`gavel_allocation`), as it is generally quoted, not confirmed in
the text; the queue is that of Gavel's public simulator.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np

from optsched.models.gavel_allocation import (
    AllocationProblem,
    TimeShares,
    base_constraints,
    effective_throughput,
    prices,
    shares,
    solve_lp,
)
from optsched.models.program import add_allocation_program
from optsched.problem.arrays import Floats, Ints


def build(problem: AllocationProblem) -> Any:
    """The `cvxpy.Problem` (0)-(3); variable ``X`` (n, R), the constraint labelled ``capacity`` for its duals.

    Its parameters are those of Gavel's program: ``importance`` (n) = n + 1 - m in (0), ``floors`` (n) = v_m = 0.
    """
    importance = cp.Parameter(problem.n, name="importance", value=np.arange(problem.n, 0, -1.0))
    floors = cp.Parameter(problem.n, name="floors", value=np.zeros(problem.n))
    X = cp.Variable((problem.n, problem.capacity.size), nonneg=True, name="X")
    speed = cp.sum(cp.multiply(problem.throughputs / problem.throughputs.max(axis=1)[:, None], X), axis=1)
    return cp.Problem(
        cp.Maximize(importance @ speed),  # (0)
        [
            speed >= floors,  # (1)
            *base_constraints(problem, X),  # (2), (3)
        ],
    )


def allocate_by_importance(problem: AllocationProblem) -> TimeShares:
    """Gavel's program: value (0), prices d value / d c_r."""
    program = build(problem)
    value = solve_lp(program)
    return TimeShares(shares(program), value, prices(program))


def allocate(problem: AllocationProblem) -> TimeShares:
    """The strict order, job by job: value (0) of the outcome, no prices."""
    program = build(problem)
    parameters = program.param_dict
    floors = np.zeros(problem.n)
    for m, only_m in enumerate(np.eye(problem.n)):
        parameters["importance"].value, parameters["floors"].value = only_m, floors
        floors[m] = max(solve_lp(program), 0.0)
    X = shares(program)
    return TimeShares(X, _value(problem, X), None)


def whole_types(
    problem: AllocationProblem, held: Ints | None = None, rng: np.random.Generator | None = None
) -> TimeShares:
    """The queue: each job in turn takes all of its time on one type with room for its gang; the first without room blocks.

    ``held`` i64[n]: the type that a running job keeps, -1 for the waiting. The type is the fastest with room, or, with
    ``rng``, drawn uniformly among those with room on which the job runs (performance-agnostic). X is 0 or 1; value (0).
    Complexity: O(n R).
    """
    held = np.full(problem.n, -1) if held is None else np.asarray(held)
    X, free = np.zeros_like(problem.throughputs), problem.capacity.copy()
    for m in np.flatnonzero(held >= 0).tolist():
        X[m, held[m]] = 1.0
        free[held[m]] -= problem.scale[m]
    for m in np.flatnonzero(held < 0).tolist():
        room = np.flatnonzero((free >= problem.scale[m]) & (problem.throughputs[m] > 0))
        if room.size == 0:
            break
        r = int(room[np.argmax(problem.throughputs[m, room])] if rng is None else rng.choice(room))
        X[m, r] = 1.0
        free[r] -= problem.scale[m]
    return TimeShares(X, _value(problem, X), None)


def _value(problem: AllocationProblem, X: Floats) -> float:
    speed = effective_throughput(problem.throughputs, X) / problem.throughputs.max(axis=1)
    return float(np.arange(problem.n, 0, -1.0) @ speed)


add_allocation_program(
    "gavel-fifo",
    "max sum_m (n + 1 - m) thr_m(X) / fastest_m: first come, first",
    "the weighted sum of speeds",
    build,
)
