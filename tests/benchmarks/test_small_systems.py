"""Why the analytic centre has its own Cholesky: systems of as many unknowns as GPU types, against LAPACK, both compiled."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

from optsched.policies.gavel_allocations.analytic_centre import factorised, solved

SYSTEMS = 50_000


@numba.njit
def by_lapack(matrix: Any, b: Any, times: int) -> float:
    """The sum of the first unknowns, so that nothing is left out."""
    total = 0.0
    for _ in range(times):
        total += np.linalg.solve(matrix, b)[0]
    return total


def own_loop() -> Callable[[Any, Any, int], float]:
    """The same with the functions of the module."""
    factor, solve = numba.njit(factorised.py_func), numba.njit(solved.py_func)

    @numba.njit
    def by_cholesky(matrix: Any, b: Any, times: int) -> float:
        total, copy, x = 0.0, np.empty_like(matrix), np.empty_like(b)
        for _ in range(times):
            copy[:], x[:] = matrix, b
            factor(copy, b.size)
            solve(copy, x, b.size)
            total += x[0]
        return total

    return by_cholesky


def cpu_seconds(work: Callable[[Any, Any, int], float], matrix: Any, b: Any) -> float:
    """Least CPU time of a system, of five rounds."""
    found = []
    for _ in range(5):
        begun = time.process_time()
        work(matrix, b, SYSTEMS)
        found.append((time.process_time() - begun) / SYSTEMS)
    return min(found)


@pytest.mark.bench
@pytest.mark.parametrize("unknowns", [2, 3, 4])
def test_a_system_of_as_many_unknowns_as_gpu_types(benchmark: Any, unknowns: int) -> None:
    rng = np.random.default_rng(unknowns)
    square = rng.random((unknowns, unknowns))
    matrix, b, by_cholesky = square @ square.T + np.eye(unknowns), rng.random(unknowns), own_loop()
    assert by_cholesky(matrix, b, 1) == pytest.approx(by_lapack(matrix, b, 1), rel=1e-9)
    benchmark.pedantic(by_cholesky, (matrix, b, SYSTEMS), rounds=5, warmup_rounds=1)
    own, floor = cpu_seconds(by_cholesky, matrix, b), cpu_seconds(by_lapack, matrix, b)
    benchmark.extra_info.update(ratio=own / floor, own_seconds=own, lapack_seconds=floor)
    assert own < floor  # else take numpy's
