"""What is used of libraries beyond their documentation is there: each by its name, so that a release that takes it away is
told from a defect of ours. `tests/test_compiled.py` does the same for numba."""

from __future__ import annotations

import cvxpy as cp
import highspy
import joblib
import numpy as np
import pyomo.environ as pyo
from cvxpy.reductions.solution import Solution
from cvxpy.reductions.solvers import utilities
from joblib.externals.loky import reusable_executor
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler
from sources import ROOT, files, imported, one_process

# module that nothing documents -> the files that may import it
ALLOWED = {
    "cvxpy.reductions": ["solvers/compile_cvxpy.py"],
    "pyomo.core.base": [],
    "pyomo.repn": ["solvers/compile_pyomo.py"],
    "highspy._core": [],
    "joblib.externals": ["sweeps/processes.py"],
    "polars._": [],
    "rich._": [],
    "matplotlib._": [],
}


@one_process
def test_one_file_stands_on_what_is_not_documented() -> None:
    found: dict[str, set[str]] = {module: set() for module in ALLOWED}
    for path in files():
        for name in imported(path):
            for module in ALLOWED:
                if name.startswith(module):
                    found[module].add(path.relative_to(ROOT).as_posix())
    assert {module: sorted(places) for module, places in found.items()} == ALLOWED


def test_cvxpy_gives_its_reductions_and_takes_a_solution_back_through_them() -> None:
    x = cp.Variable(2)
    problem = cp.Problem(cp.Maximize(x[0] + 2 * x[1] + 5), [x[0] + x[1] == 3, x[1] <= 2, x >= 0])
    data, chain, inverse = problem.get_problem_data(cp.HIGHS)
    assert {"c", "A", "b", "dims", "param_prob", "lower_bounds", "upper_bounds", "bool_vars_idx"} <= set(data)
    assert int(data["dims"].zero) == 1
    last = inverse[-1]
    assert all(last[key] is not None for key in ("eq_constr", "other_constr", "offset", "var_id"))
    cones = last["eq_constr"] + last["other_constr"]
    assert sum(cone.size for cone in cones) == data["A"].shape[0]
    duals = utilities.get_dual_values(np.zeros(data["A"].shape[0]), utilities.extract_dual_value, cones)
    solution = Solution(cp.OPTIMAL, -5.0 + float(last["offset"]), {last["var_id"]: np.array([1.0, 2.0])}, duals, {})
    for reduction, each in zip(chain.reductions[-2::-1], inverse[-2::-1], strict=True):
        solution = reduction.invert(solution, each)
    problem.unpack(solution)
    np.testing.assert_allclose(x.value, [1.0, 2.0])


def test_pyomo_compiles_rows_of_each_kind() -> None:
    model = pyo.ConcreteModel()
    model.x, model.y = pyo.Var(bounds=(0, 4)), pyo.Var()
    model.ranged = pyo.Constraint(expr=pyo.inequality(1, model.x + model.y, 3))
    model.equal = pyo.Constraint(expr=model.x == 2 * model.y)
    model.cost = pyo.Objective(expr=3 * model.x + 1, sense=pyo.maximize)
    form = LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=None)
    assert [(row[0].name, row[1]) for row in form.rows] == [("ranged", 1), ("ranged", -1), ("equal", 0)]
    assert [column.name for column in form.columns] == ["x", "y"]
    assert (float(form.c_offset[0]), form.c.todense().tolist()) == (1.0, [[3.0, 0.0]])
    assert isinstance(model, pyo.Block)
    assert form.objectives[0].sense == pyo.maximize


def test_highs_calls_its_callbacks_before_it_says_anything() -> None:
    """A HiGHS whose constructor no longer calls ``enableCallbacks`` could not be silenced there."""
    called = []

    class Noted(highspy.Highs):
        def enableCallbacks(self) -> None:  # noqa: N802  highspy's name
            called.append(True)
            super().enableCallbacks()

    Noted()
    assert called


def test_loky_keeps_its_executor_where_an_interrupted_command_finds_it() -> None:
    assert reusable_executor._executor is None or hasattr(reusable_executor._executor, "shutdown")
    assert joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(each) for each in (-1, -2)) == [1, 2]
    reusable_executor._executor.shutdown(wait=True, kill_workers=True)
