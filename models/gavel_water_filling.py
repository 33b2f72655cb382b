"""Max-min fairness beyond the bottleneck: when a job can rise no more, the others go on (water filling).

Sets, data, base constraints: `gavel_allocation`. Data: weights w_m; level_m(X) = scale_m thr_m(X) / thr_m(X^equal).
State of a round: t_m, the levels reached; which jobs are fixed; w_m, the weights of the others now, 0 for the fixed.
Variables: X_mr >= 0, share of time; rise, by how much levels rise a unit of weight.

    max  rise                                                                    (0)
    s.t. level_m(X) >= t_m + w_m rise                          every job m       (1)  fair
         sum_r X_mr <= 1                                       every job m       (2)
         sum_m scale_m X_mr <= c_r                             every type r      (3)  capacity

After each round t_m rises by w_m rise and bottlenecks are fixed. A job whose row (1) has a dual y_m > 0 is tight in every
optimal X (complementary slackness), so it can rise no more unless another falls; sum_m w_m y_m = 1, so there is always one.
A bottleneck that this basis does not show is fixed in a later round with rise 0. Hence exact, with at most n rounds.
Optimum: with constant weights level / w is lexicographically largest, in increasing order, among all allocations: it is
unique, and equal for jobs with equal data. The first round is `gavel_max_min`.
Size of a round: n R + 1 columns, 2 n + R rows, about 3 n R nonzeros.
Reference: Narayanan et al., OSDI 2020 (`gavel_allocation`; there a small mixed-integer program finds the bottlenecks);
Radunovic and Le Boudec, A unified framework for max-min and min-max fairness, IEEE/ACM Trans. Netw. 15 (2007), 1073-1083.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

from optsched.models.gavel_allocation import (
    AllocationProblem,
    TimeShares,
    base_constraints,
    effective_throughput,
    equal_share,
    shares,
    solve_lp,
)
from optsched.problem.arrays import Bools, Floats, Ints

TIGHT = 1e-7  # w_m y_m above it is a bottleneck: they sum to 1, and a basis gives duals to about 1e-12


@dataclass(frozen=True, eq=False)
class Filling:
    """``X`` f64[n, R]; ``levels`` f64[n] = level_m reached; ``rounds``: job fixed -> number of the round, i64[n]."""

    X: Floats
    levels: Floats
    rounds: Ints


def build(problem: AllocationProblem) -> Any:
    """A round as a `cvxpy.Problem`; variables ``X`` (n, R) and ``rise``, the first constraint is (1).

    Its parameters say which round: ``reached`` (n), the t_m, and ``weights`` (n), the w_m with at least one above 0.
    """
    equal = effective_throughput(problem.throughputs, equal_share(problem.capacity))
    level = (problem.scale / equal)[:, None] * problem.throughputs
    X = cp.Variable((problem.n, problem.capacity.size), nonneg=True, name="X")
    rise = cp.Variable(name="rise")
    reached, weights = cp.Parameter(problem.n, name="reached"), cp.Parameter(problem.n, name="weights")
    return cp.Problem(
        cp.Maximize(rise),  # (0)
        [
            cp.sum(cp.multiply(level, X), axis=1) >= reached + weights * rise,  # (1)
            *base_constraints(problem, X),  # (2), (3)
        ],
    )


def fill(problem: AllocationProblem, weights: Callable[[Bools], Floats]) -> Filling:
    """Round after round; ``weights(unfixed)`` f64[n] gives those of the next: 0 for fixed jobs, > 0 for some unfixed."""
    program, X = build(problem), np.zeros_like(problem.throughputs)
    parameters = program.param_dict
    reached, rounds = np.zeros(problem.n), np.full(problem.n, -1)
    for number in range(problem.n):
        unfixed = rounds < 0
        if not unfixed.any():
            break
        w = weights(unfixed)
        w = w / w.max()  # so that the rise is about a level whatever the unit of the weights
        parameters["reached"].value, parameters["weights"].value = reached, w
        rise = max(solve_lp(program), 0.0)  # levels that are reached are so only up to rounding
        reached, X = reached + w * rise, shares(program)
        rounds[unfixed & (w * program.constraints[0].dual_value > TIGHT)] = number
    return Filling(X, reached, rounds)


def allocate(problem: AllocationProblem) -> TimeShares:
    """Water filling with the problem's weights: value min_m level_m / w_m, as in `gavel_max_min`; no prices."""
    filled = fill(problem, lambda unfixed: np.where(unfixed, problem.w, 0.0))
    return TimeShares(filled.X, float((filled.levels / problem.w).min()), None)
