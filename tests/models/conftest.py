"""One way to solve a formulation in these tests: Pyomo's and CVXPY's own way to HiGHS, none of optsched's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cvxpy as cp
import pyomo.environ as pyo
import pytest
from pyomo.contrib.solver.solvers.highs import Highs


def solve_to_optimality(model: Any) -> float:
    """The optimum, proved; the solution is left in the model's variables."""
    if isinstance(model, cp.Problem):
        optimum = float(model.solve(solver=cp.HIGHS))
        assert model.status == cp.OPTIMAL
        return optimum
    solver = Highs()
    solver.config.solver_options = {"mip_rel_gap": 0.0, "mip_abs_gap": 1e-7}
    solver.config.raise_exception_on_nonoptimal_result = True
    solver.solve(model)
    return float(pyo.value(model.objective))


@pytest.fixture(scope="session")
def solve() -> Callable[[Any], float]:
    """`solve_to_optimality`."""
    return solve_to_optimality
