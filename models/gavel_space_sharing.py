"""Space sharing: pairs of jobs on the same GPUs at the same time, as further columns of Gavel's programs.

Sets, data, base constraints: `gavel_allocation`. Sets: pairs p = (i, k) of jobs of equal scale, on the same gang of GPUs.
Data: T2_pmr steps/s of job m of pair p when both share gangs of type r (0: they do not fit together).
Variables: X_mr >= 0, share of time alone; Y_pr >= 0, share of time as pair p; t, the smallest level (max-min).
Written: thr_m(X, Y) = sum_r T_mr X_mr + sum_{p with m} sum_r T2_pmr Y_pr.

    max  t     or     sum_m thr_m(X, Y)                                                             (0)
    s.t. (scale_m / w_m) thr_m(X, Y) / thr_m(X^equal) >= t             every job m, max-min only    (1)  fair
         sum_r X_mr + sum_{p with m} sum_r Y_pr <= 1                   every job m                  (2)
         sum_m scale_m X_mr + sum_p scale_p Y_pr <= c_r                every type r                 (3)  capacity

Optimum: never below the same policy without pairs; equal to it when pairs are no faster than taking turns, that is
T2_pi / T_i + T2_pk / T_k <= 1 on every type. X^equal is a share of time alone.
Size: (n + P) R + 1 columns, 2 n + R rows, about (3 n + 5 P) R nonzeros.
Reference: Narayanan et al., OSDI 2020 (`gavel_allocation`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from optsched.errors import InputError, check_legal
from optsched.models.gavel_allocation import (
    CAPACITY,
    AllocationProblem,
    effective_throughput,
    equal_share,
    prices,
    shares,
    solve_lp,
)
from optsched.problem.arrays import Floats, Ints

OBJECTIVES = ("max_min", "max_sum")


@dataclass(frozen=True, eq=False)
class Pairs:
    """Which jobs may share GPUs: ``jobs`` i64[P, 2], ``throughputs`` f64[P, 2, R] steps/s of the one and the other."""

    jobs: Ints
    throughputs: Floats

    def __post_init__(self) -> None:
        jobs, T2 = np.asarray(self.jobs, dtype=np.int64).reshape(-1, 2), np.asarray(self.throughputs, dtype=np.float64)
        if T2.ndim != 3 or T2.shape[:2] != jobs.shape:
            raise InputError("wrong shape", field="throughputs", value=T2.shape, legal=f"({len(jobs)}, 2, R)")
        if not (np.isfinite(T2) & (T2 >= 0)).all():
            raise InputError("invalid", field="throughputs", value=float(T2.min()), legal="steps/s >= 0")
        object.__setattr__(self, "jobs", jobs)
        object.__setattr__(self, "throughputs", T2)

    def check(self, problem: AllocationProblem) -> None:
        """`InputError` for a pair that is not two jobs of the problem with equal scale."""
        if self.throughputs.shape[2] != problem.capacity.size:
            legal = f"{problem.capacity.size} GPU types"
            raise InputError("wrong shape", field="throughputs", value=self.throughputs.shape, legal=legal)
        for i, k in self.jobs.tolist():
            if i == k or not (0 <= i < problem.n and 0 <= k < problem.n):
                raise InputError("not a pair of jobs", field="jobs", value=(i, k), legal=f"two of 0..{problem.n - 1}")
            if problem.scale[i] != problem.scale[k]:
                scales = (int(problem.scale[i]), int(problem.scale[k]))
                raise InputError(f"pair {(i, k)} has gangs of {scales} GPUs", field="jobs", legal="gangs of equal size")


@dataclass(frozen=True, eq=False)
class SharedAllocation:
    """``X`` f64[n, R] time alone, ``Y`` f64[P, R] time as a pair; value, prices and status as in `Allocation`."""

    X: Floats
    Y: Floats
    value: float
    prices: Floats
    status: str = "optimal"

    def throughput(self, problem: AllocationProblem, pairs: Pairs) -> Floats:
        """thr_m(X, Y) in steps/s, f64[n]."""
        thr = effective_throughput(problem.throughputs, self.X)
        np.add.at(thr, pairs.jobs, (pairs.throughputs * self.Y[:, None, :]).sum(axis=2))
        return thr


def build(problem: AllocationProblem, pairs: Pairs, objective: str = "max_min") -> Any:
    """The `cvxpy.Problem`; variables ``X`` (n, R), ``Y`` (P, R) and ``t``, (3) labelled ``capacity`` for its duals."""
    n, P, R = problem.n, len(pairs.jobs), problem.capacity.size
    sides = [sp.csr_array((np.ones(P), (pairs.jobs[:, side], np.arange(P))), shape=(n, P)) for side in (0, 1)]
    X = cp.Variable((n, R), nonneg=True, name="X")
    Y = cp.Variable((P, R), nonneg=True, name="Y")
    t = cp.Variable(name="t")
    together = sum(sides[side] @ cp.sum(cp.multiply(pairs.throughputs[:, side], Y), axis=1) for side in (0, 1))
    thr = cp.sum(cp.multiply(problem.throughputs, X), axis=1) + together
    equal = effective_throughput(problem.throughputs, equal_share(problem.capacity))
    fair = [cp.multiply(problem.scale / problem.w / equal, thr) >= t] if objective == "max_min" else []
    return cp.Problem(
        cp.Maximize(t if objective == "max_min" else cp.sum(thr)),  # (0)
        [
            *fair,  # (1)
            cp.sum(X, axis=1) + (sides[0] + sides[1]) @ cp.sum(Y, axis=1) <= 1,  # (2)
            (problem.scale @ X + problem.scale[pairs.jobs[:, 0]] @ Y <= problem.capacity).set_label(CAPACITY),  # (3)
        ],
    )


def allocate(problem: AllocationProblem, pairs: Pairs, objective: str = "max_min") -> SharedAllocation:
    """The optimum of ``max_min`` or ``max_sum`` with pairs: value (0), prices d value / d c_r with X^equal held."""
    check_legal(objective in OBJECTIVES, "objective", objective, ", ".join(OBJECTIVES))
    pairs.check(problem)
    P = len(pairs.jobs)
    if P == 0:  # a table of no rows is no variable: the pair of job 0 with itself, which never runs
        pairs = Pairs(np.zeros((1, 2), dtype=np.int64), np.zeros((1, 2, problem.capacity.size)))
    if objective == "max_min":
        unit = 1.0 / float(problem.w.mean())
        program = build(replace(problem, weights=problem.w * unit), pairs, objective)
    else:
        unit = float(problem.throughputs.max())
        scaled = Pairs(pairs.jobs, pairs.throughputs / unit)
        program = build(replace(problem, throughputs=problem.throughputs / unit), scaled, objective)
    value = solve_lp(program)
    Y = np.maximum(program.var_dict["Y"].value, 0.0)[:P]
    return SharedAllocation(shares(program), Y, value * unit, prices(program) * unit)
