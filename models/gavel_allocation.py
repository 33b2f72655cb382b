"""Gavel's allocation problem: what share of its time each job spends on each GPU type. Data, answer and shared pieces.

Sets: jobs m = 1..n; GPU types r = 1..R.
Data: T_mr >= 0 steps/s of the whole gang of m on r (0: may not run there); scale_m GPUs of m; c_r GPUs of type r;
w_m > 0 weights. Some policies need more: see `AllocationProblem`.
Variables: X_mr, share of time that m runs on r; thr_m(X) = sum_r T_mr X_mr is its **effective throughput**.
Base constraints, of every policy (`base_constraints`):

    X_mr >= 0                                 every job m, type r    (1)
    sum_r X_mr <= 1                           every job m            (2)
    sum_m scale_m X_mr <= c_r                 every type r           (3)  capacity, with prices as duals

One policy is one file, a pure function ``allocate(problem, ...) -> Allocation``; none of them is a `Formulation` of an
instance: the answer is a target for the rounds of an online algorithm, not a schedule.
Source: Narayanan, Santhanam, Kazhamiaka, Phanishayee and Zaharia, Heterogeneity-aware cluster scheduling policies for
deep learning workloads (Gavel), OSDI 2020, 481-498; details as in its public simulator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np

from optsched.errors import InfeasibleError, InputError, OptschedError
from optsched.problem.arrays import Floats, Ints

CAPACITY = "capacity"
FEASIBILITY = 1e-9  # HiGHS's tolerances: absolute, so programs are stated in units that make their optimum about 1


@dataclass(frozen=True, eq=False)
class AllocationProblem:
    """What a policy decides on. Arrays are converted, checked and made read-only; `InputError` names what is wrong.

    Fields
    ------
    throughputs : f64[n, R], steps/s of the whole gang of job m on type r; 0 where it may not run (too little memory, or
        fewer than ``scale`` GPUs: the formulations do not ask whether a gang fits). Every job needs a type it runs on,
        with at least ``scale`` GPUs.
    scale : i64[n] >= 1, GPUs of the gang.
    capacity : f64[R] >= 0, GPUs of each type.
    weights : f64[n] > 0; None: 1 each.
    elapsed : f64[n] >= 0, seconds since the job arrived. Finish-time fairness.
    left : f64[n] > 0, steps left. Finish-time fairness, makespan, deadlines.
    iso_so_far : f64[n] >= 0, seconds its isolated run would have taken for the steps done. Finish-time fairness.
    time_left : f64[n], seconds to the deadline; inf: no deadline; <= 0: passed, and asks for nothing any more.
    cost : f64[R] > 0, price of one GPU-hour; only ratios matter.
    """

    throughputs: Floats
    scale: Ints
    capacity: Floats
    weights: Floats | None = None
    elapsed: Floats | None = None
    left: Floats | None = None
    iso_so_far: Floats | None = None
    time_left: Floats | None = None
    cost: Floats | None = None

    def __post_init__(self) -> None:
        T = _array(self, "throughputs", None, np.isfinite, "finite numbers")
        if T.ndim != 2 or T.shape[1] == 0:
            raise InputError(
                "not a table of jobs by GPU types", field="throughputs", value=T.shape, legal="(n, R), R > 0"
            )
        n, R = T.shape
        if n == 0:
            raise InputError("there are no jobs", field="throughputs", value=T.shape, legal="(n, R), n > 0")
        _array(self, "throughputs", (n, R), lambda a: np.isfinite(a) & (a >= 0), "steps/s >= 0")
        scale = np.asarray(self.scale)
        _array(self, "scale", (n,), lambda a: (a >= 1) & (a == np.floor(a)) & np.isfinite(a), "whole numbers >= 1")
        object.__setattr__(self, "scale", _frozen(scale.astype(np.int64)))
        _array(self, "capacity", (R,), lambda a: np.isfinite(a) & (a >= 0), "GPUs >= 0")
        if self.weights is None:
            object.__setattr__(self, "weights", np.ones(n))
        _array(self, "weights", (n,), lambda a: np.isfinite(a) & (a > 0), "numbers > 0")
        for name, shape, legal, test in _OPTIONAL:
            if getattr(self, name) is not None:
                _array(self, name, (n,) if shape == "n" else (R,), test, legal)
        self._refuse_jobs_that_fit_nowhere()

    def _refuse_jobs_that_fit_nowhere(self) -> None:
        fits = (self.throughputs > 0) & (self.scale[:, None] <= self.capacity[None, :])
        for m in np.flatnonzero(~fits.any(axis=1)).tolist():
            raise InputError(
                f"job {m} can run on no GPU type",
                field="throughputs",
                value=self.throughputs[m].tolist(),
                legal=f"> 0 on a type with at least {self.scale[m]} GPUs; there are {self.capacity.tolist()}",
            )

    @property
    def n(self) -> int:
        """Number of jobs."""
        return int(self.throughputs.shape[0])

    @property
    def w(self) -> Floats:
        """The weights f64[n]."""
        assert self.weights is not None
        return self.weights

    def required(self, field: str, policy: str) -> Floats:
        """An optional field that this policy cannot do without; `InputError` when it is missing."""
        value: Floats | None = getattr(self, field)
        if value is None:
            raise InputError(f"{policy} needs it", field=field, value=None, legal="one number a job or type")
        return value

    def agnostic(self, reference: int | None = None) -> AllocationProblem:
        """The problem as a policy sees it that knows no types: T_mr = 1, or the throughput on type ``reference``.

        As in Gavel also where T_mr = 0: such a policy may give time that the job cannot use. A job that cannot run on
        the reference type counts with its largest throughput.
        """
        T = np.ones_like(self.throughputs)
        if reference is not None:
            rate = self.throughputs[:, reference]
            T *= np.where(rate > 0, rate, self.throughputs.max(axis=1))[:, None]
        return replace(self, throughputs=T)


@dataclass(frozen=True, eq=False)
class TimeShares:
    """The answer of a policy.

    Fields
    ------
    X : f64[n, R], feasible up to 1e-9.
    value : the policy's objective, as its file defines it.
    prices : f64[R], d value / d c_r with all other data held (also where the capacities enter them, as in X^equal):
        what one more GPU of type r does to the value. Hence >= 0 where the policy maximises, <= 0 where it minimises,
        whatever the solver's own sign of duals; at a kink one of the possible slopes. None: the answer is no single
        program's (lexicographic policies).
    status : "optimal", or what else the policy's file names.
    """

    X: Floats
    value: float
    prices: Floats | None
    status: str = "optimal"


def equal_share(capacity: Floats) -> Floats:
    """X^equal_r = c_r / sum_r c_r, f64[R]: the row every job has when all share all types alike."""
    capacity = np.asarray(capacity, dtype=np.float64)
    share: Floats = capacity / capacity.sum()
    return share


def isolated(n: int, scale: Ints, capacity: Floats) -> Floats:
    """X^iso_mr = (c_r / n) / scale_m, rows divided by their sum where it is above 1; f64[n, R].

    The share of a job that has a 1/n-th of every type for itself. Always feasible.
    """
    X = np.asarray(capacity, dtype=np.float64)[None, :] / n / np.asarray(scale, dtype=np.float64)[:, None]
    rows: Floats = X / np.maximum(X.sum(axis=1, keepdims=True), 1.0)
    return rows


def effective_throughput(throughputs: Floats, X: Floats) -> Floats:
    """thr_m(X) = sum_r T_mr X_mr in steps/s, f64[n]; X is f64[n, R] or one row f64[R] for all jobs."""
    thr: Floats = (np.asarray(throughputs) * X).sum(axis=1)
    return thr


def fill_levels(problem: AllocationProblem, X: Floats) -> Floats:
    """scale_m thr_m(X) / thr_m(X^equal), f64[n]: what max-min policies level out (before dividing by the weights)."""
    equal = effective_throughput(problem.throughputs, equal_share(problem.capacity))
    return np.asarray(problem.scale * effective_throughput(problem.throughputs, X) / equal)


def base_constraints(problem: AllocationProblem, X: Any) -> list[Any]:
    """(2) and (3) for a variable X of shape (n, R); (1) is the variable's own sign."""
    return [
        cp.sum(X, axis=1) <= 1,  # (2)
        (problem.scale @ X <= problem.capacity).set_label(CAPACITY),  # (3)
    ]


def shares(program: Any) -> Floats:
    """X f64[n, R] of a solved program, with what the solver left below 0 set to 0."""
    X: Floats = np.maximum(program.var_dict["X"].value, 0.0)
    return X


def prices(program: Any) -> Floats:
    """d optimum / d c_r of a solved program, f64[R]. CVXPY's own duals of inequalities are >= 0 in both senses."""
    (capacity,) = (constraint for constraint in program.constraints if constraint.label == CAPACITY)
    sign = 1.0 if isinstance(program.objective, cp.Maximize) else -1.0
    slopes: Floats = sign * np.asarray(capacity.dual_value, dtype=np.float64)
    return slopes


def solve_lp(program: Any) -> float:
    """Solve a CVXPY linear program with HiGHS to a proved optimum and return its value.

    One thread, as everywhere (HiGHS's scheduler is one a process). Raises `InfeasibleError` where there is no solution.
    """
    options = {"primal_feasibility_tolerance": FEASIBILITY, "dual_feasibility_tolerance": FEASIBILITY}
    value = program.solve(solver=cp.HIGHS, threads=1, **options)
    if program.status in (cp.INFEASIBLE, cp.settings.INFEASIBLE_OR_UNBOUNDED):
        raise InfeasibleError("the allocation program has no solution")
    if program.status != cp.OPTIMAL:
        raise OptschedError(f"HiGHS: the allocation program ended with {program.status}")
    return float(value)


_OPTIONAL = (
    ("elapsed", "n", "seconds >= 0", lambda a: np.isfinite(a) & (a >= 0)),
    ("left", "n", "steps > 0", lambda a: np.isfinite(a) & (a > 0)),
    ("iso_so_far", "n", "seconds >= 0", lambda a: np.isfinite(a) & (a >= 0)),
    ("time_left", "n", "seconds, or inf", lambda a: ~np.isnan(a)),
    ("cost", "R", "prices > 0", lambda a: np.isfinite(a) & (a > 0)),
)


def _frozen(array: Any) -> Any:
    array = array.copy()
    array.setflags(write=False)
    return array


def _array(problem: AllocationProblem, field: str, shape: tuple[int, ...] | None, test: Any, legal: str) -> Floats:
    """The field as a read-only f64 array of that shape (None: any), every entry passing ``test``."""
    given = getattr(problem, field)
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("not numbers", field=field, value=given, legal=legal) from None
    if shape is not None and array.shape != shape:
        raise InputError("wrong shape", field=field, value=array.shape, legal=str(shape))
    wrong = np.argwhere(~test(array))
    if wrong.size:
        at = tuple(wrong[0].tolist())
        where = f"{field}[{', '.join(map(str, at))}]"
        raise InputError("invalid", field=where, value=float(array[at]), legal=legal)
    object.__setattr__(problem, field, _frozen(array))
    return array
