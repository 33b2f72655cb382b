"""Gavel's allocation problems: random ones, and methods to their optima that share nothing with formulations and rules.

The methods use scipy's own HiGHS on **GPU counts** G_mr = gang_m X_mr, and know no policy: one asks how many GPUs are
missing for given throughputs, one for the most of a linear objective. A policy's optimum is where a bisection over these
ends, checked on both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from loaded_optimum import loaded_optimum
from scipy.optimize import linprog

from optsched.models.gavel_allocation import ActiveJobs, AllocationProblem
from optsched.policies.gavel_allocations import Setting

Floats = npt.NDArray[np.float64]
TYPES = ("v100", "p100", "k80")


def jobs_of(rate: Any, gang: list[int], **given: Any) -> ActiveJobs:
    """Jobs of weight 1 and work 1 that have just arrived, but for what is ``given``."""
    n = len(gang)
    data = {"weight": np.ones(n), "elapsed": np.zeros(n), "left": np.ones(n)} | given
    arrays = {name: np.array(value, dtype=float) for name, value in data.items()}
    return ActiveJobs(np.arange(n), np.array(rate, dtype=float), np.array(gang), **arrays)


def problem_of(rate: Any, gang: list[int], capacity: list[float], **given: Any) -> AllocationProblem:
    """The same as a problem."""
    return AllocationProblem(jobs_of(rate, gang, **given), np.array(capacity, dtype=float))


@st.composite
def problems(draw: st.DrawFn, *, most: int = 5) -> AllocationProblem:
    """1 to ``most`` jobs on 1 to 3 types, small integers; types without GPUs and types a job cannot run on included."""
    types, n = draw(st.integers(1, 3)), draw(st.integers(1, most))
    capacity = np.array(draw(st.lists(st.integers(0, 6), min_size=types, max_size=types)), dtype=float)
    largest = int(capacity.argmax())
    capacity[largest] = max(capacity[largest], 1)
    gangs = [s for s in (1, 2, 4) if s <= capacity[largest]]
    T = np.array(draw(st.lists(st.lists(st.integers(0, 12), min_size=types, max_size=types), min_size=n, max_size=n)))
    T[:, largest] = np.maximum(T[:, largest], 1)

    def of_jobs(low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=n, max_size=n))

    jobs = jobs_of(
        T,
        draw(st.lists(st.sampled_from(gangs), min_size=n, max_size=n)),
        weight=of_jobs(1, 5),
        elapsed=of_jobs(0, 2000),
        left=of_jobs(1, 5000),
    )
    return AllocationProblem(jobs, capacity, np.array(of_jobs(0, 2000), dtype=float))


def random_jobs(seed: int, n: int | None = None) -> tuple[ActiveJobs, Setting]:
    """Up to 9 jobs on up to 3 types, some types barred, some jobs alike."""
    rng = np.random.default_rng([seed, 4])
    T = int(rng.integers(1, 4))
    n = int(rng.integers(1, 10)) if n is None else n
    capacity = rng.integers(4, 13, T).astype(np.float64)
    rate = np.round(rng.uniform(0.1, 20, (n, T)), 3) * (rng.random((n, T)) < 0.85)
    rate[np.arange(n), rng.integers(0, T, n)] += 1.0
    gang, weight = rng.choice([1, 1, 2, 4], n), rng.choice([1.0, 1.0, 2.0, 5.0], n)
    for m in range(1, n):
        if rng.random() < 0.3:
            rate[m], gang[m], weight[m] = rate[m - 1], gang[m - 1], weight[m - 1]
    elapsed, left = rng.uniform(0, 5e3, n) * (rng.random(n) < 0.7), rng.uniform(100, 1e5, n)
    jobs = ActiveJobs(np.arange(n), rate, gang, weight, elapsed, left)
    return jobs, Setting(TYPES[:T], capacity)


def optimum(program: Any) -> float:
    """Of a formulation, whose variables and duals then have their values: by HiGHS where it is linear, else by Clarabel."""
    if all(constraint.is_dcp(dpp=False) for constraint in program.constraints) and program.objective.expr.is_affine():
        return loaded_optimum(program)
    program.solve(solver=cp.CLARABEL)
    assert program.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
    return float(program.value)


def is_feasible(problem: AllocationProblem, X: Floats) -> bool:
    """(1)-(3) of the base constraints, to 1e-7."""
    in_time, in_room = X.sum(axis=1) <= 1 + 1e-7, problem.jobs.gang @ X <= problem.capacity + 1e-7
    return bool(X.shape == problem.jobs.rate.shape and (X >= -1e-9).all() and in_time.all() and in_room.all())


def reaches(problem: AllocationProblem, wanted: Floats, capacity: Floats | None = None) -> bool:
    """Can every job m have wanted_m units of work a second at once? Fewer than 1e-9 GPUs are missing, fractions allowed."""
    n, T = problem.jobs.rate.shape
    rows, right = _rows(problem, problem.capacity if capacity is None else capacity)
    extra = np.vstack([np.zeros((n, T)), -np.eye(T), np.zeros((n, T))])
    A = np.hstack([np.vstack([rows, -_reach(problem)]), extra])
    found = linprog(np.append(np.zeros(n * T), np.ones(T)), A_ub=A, b_ub=np.append(right, -wanted), method="highs")
    return bool(found.status == 0 and found.fun <= 1e-9)


def is_the_largest(value: float, can_be: Callable[[float], bool], near: float = 1e-6) -> bool:
    """Where a bisection of ``can_be``, true up to the optimum and false above it, would end."""
    return can_be(value * (1 - near)) and not can_be(value * (1 + near))


def most(problem: AllocationProblem, gain: Floats, floors: Floats | None = None) -> float:
    """max sum_mr gain_mr X_mr with thr_m(X) >= floors_m (all but 1e-9); -inf where that cannot be."""
    rows, right = _rows(problem, problem.capacity)
    if floors is not None:
        rows, right = np.vstack([rows, -_reach(problem)]), np.append(right, 1e-9 - floors)
    found = linprog(-(gain / problem.jobs.gang[:, None]).ravel(), A_ub=rows, b_ub=right, method="highs")
    return -float(found.fun) if found.status == 0 else -np.inf


def _rows(problem: AllocationProblem, capacity: Floats) -> tuple[Floats, Floats]:
    """Time of every job and room of every type as rows over GPU counts G_mr, flat in C order."""
    n, T = problem.jobs.rate.shape
    time, room = np.kron(np.eye(n), np.ones((1, T))), np.kron(np.ones((1, n)), np.eye(T))
    return np.vstack([time, room]), np.append(problem.jobs.gang.astype(float), capacity)


def _reach(problem: AllocationProblem) -> Floats:
    """Throughputs as rows over the same."""
    n, T = problem.jobs.rate.shape
    rows: Floats = (np.eye(n)[:, :, None] * (problem.jobs.rate / problem.jobs.gang[:, None])).reshape(n, n * T)
    return rows
