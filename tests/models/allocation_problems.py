"""Gavel's allocation problems for tests: random small ones, and methods to the optima that share nothing with the models.

The methods use scipy's own HiGHS on **GPU counts** G_mr = scale_m X_mr, and know no policy: one asks how many GPUs are
missing for given throughputs, one for the most of a linear objective. Policies are bisections or sequences over these;
a bisection is checked where it must end, on both sides.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from scipy.optimize import linprog

from optsched.models.gavel_allocation import AllocationProblem, TimeShares

Floats = npt.NDArray[np.float64]


@st.composite
def problems(draw: st.DrawFn, *, most: int = 5, runs_everywhere: bool = False) -> AllocationProblem:
    """1 to ``most`` jobs on 1 to 3 types, small integers; types without GPUs and types a job cannot run on included."""
    types, n = draw(st.integers(1, 3)), draw(st.integers(1, most))
    capacity = np.array(draw(st.lists(st.integers(0, 6), min_size=types, max_size=types)), dtype=float)
    largest = int(capacity.argmax())
    capacity[largest] = max(capacity[largest], 1)
    scales = [s for s in (1, 2, 4) if s <= capacity[largest]]
    rate = st.integers(1 if runs_everywhere else 0, 12)
    T = np.array(draw(st.lists(st.lists(rate, min_size=types, max_size=types), min_size=n, max_size=n)), dtype=float)
    T[:, largest] = np.maximum(T[:, largest], 1)

    def of_jobs(low: int, high: int) -> Floats:
        return np.array(draw(st.lists(st.integers(low, high), min_size=n, max_size=n)), dtype=float)

    return AllocationProblem(
        throughputs=T,
        scale=np.array(draw(st.lists(st.sampled_from(scales), min_size=n, max_size=n))),
        capacity=capacity,
        weights=of_jobs(1, 5),
        elapsed=of_jobs(0, 2000),
        left=of_jobs(1, 5000),
        iso_so_far=of_jobs(0, 2000),
        cost=np.arange(1.0, types + 1),
    )


def is_feasible(problem: AllocationProblem, allocation: TimeShares) -> bool:
    """(1)-(3) of the base constraints, to 1e-7."""
    X = allocation.X
    in_time = X.sum(axis=1) <= 1 + 1e-7
    in_room = problem.scale @ X <= problem.capacity + 1e-7
    return bool(X.shape == problem.throughputs.shape and (X >= 0).all() and in_time.all() and in_room.all())


def missing_gpus(problem: AllocationProblem, wanted: Floats, capacity: Floats | None = None) -> float:
    """Fewest GPUs, fractions allowed, that must be added so that every job m can have wanted_m steps/s; inf if never."""
    n, R = problem.throughputs.shape
    rows, right = _rows(problem, problem.capacity if capacity is None else capacity)
    per_gpu = problem.throughputs / problem.scale[:, None]
    reach = np.zeros((n, n * R))
    for m in range(n):
        reach[m, m * R : (m + 1) * R] = -per_gpu[m]
    extra = np.vstack([np.zeros((n, R)), -np.eye(R), np.zeros((n, R))])
    A = np.hstack([np.vstack([rows, reach]), extra])
    found = linprog(np.append(np.zeros(n * R), np.ones(R)), A_ub=A, b_ub=np.append(right, -wanted), method="highs")
    return float(found.fun) if found.status == 0 else np.inf


def reaches(problem: AllocationProblem, wanted: Floats, capacity: Floats | None = None) -> bool:
    """Can every job m have wanted_m steps/s at once (to 1e-9 GPUs)?"""
    return missing_gpus(problem, wanted, capacity) <= 1e-9


def is_the_largest(value: float, can_be: Callable[[float], bool]) -> bool:
    """Where a bisection of ``can_be``, true up to the optimum and false above it, would end, to 1e-6 relatively."""
    return can_be(value * (1 - 1e-6)) and not can_be(value * (1 + 1e-6))


def is_the_smallest(value: float, can_be: Callable[[float], bool]) -> bool:
    """The same for a minimum."""
    return can_be(value * (1 + 1e-6)) and not can_be(value * (1 - 1e-6))


def most(problem: AllocationProblem, gain: Floats, floors: Floats | None = None) -> float:
    """max sum_mr gain_mr X_mr with thr_m(X) >= floors_m (all but 1e-9); -inf where that cannot be."""
    n, R = problem.throughputs.shape
    rows, right = _rows(problem, problem.capacity)
    if floors is not None:
        reach = np.zeros((n, n * R))
        for m in range(n):
            reach[m, m * R : (m + 1) * R] = -problem.throughputs[m] / problem.scale[m]
        rows, right = np.vstack([rows, reach]), np.append(right, 1e-9 - floors)
    found = linprog(-(gain / problem.scale[:, None]).ravel(), A_ub=rows, b_ub=right, method="highs")
    return -float(found.fun) if found.status == 0 else -np.inf


def _rows(problem: AllocationProblem, capacity: Floats) -> tuple[Floats, Floats]:
    """Time of every job and room of every type as rows over GPU counts G_mr, flat in C order."""
    n, R = problem.throughputs.shape
    time = np.kron(np.eye(n), np.ones((1, R)))
    room = np.kron(np.ones((1, n)), np.eye(R))
    return np.vstack([time, room]), np.append(problem.scale.astype(float), capacity)
