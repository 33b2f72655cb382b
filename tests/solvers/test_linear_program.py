"""compile(): Pyomo and CVXPY models against arrays written by hand, and the traps of both."""

from __future__ import annotations

from fractions import Fraction

import cvxpy as cp
import numpy as np
import pyomo.environ as pyo
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from optsched.errors import InfeasibleError, InputError
from optsched.problem.instance import Instance
from optsched.solvers.compile_model import compile
from optsched.solvers.formulated import part_name
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.session import Session

INF = np.inf


def pyomo_model() -> pyo.ConcreteModel:
    """max 3x + 2y - z + 7 with an equality, a ranged row, a >= row, a fixed and an unused variable."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 4))
    m.y = pyo.Var(domain=pyo.NonNegativeIntegers)
    m.z = pyo.Var(bounds=(-1, None))
    m.b = pyo.Var(domain=pyo.Binary)
    m.fixed = pyo.Var(initialize=2.0)
    m.fixed.fix()
    m.unused = pyo.Var(initialize=5.0)
    m.ranged = pyo.Constraint(expr=pyo.inequality(-1, m.x - m.y + m.fixed, 6))
    m.equal = pyo.Constraint(expr=m.x + m.z == 3)
    m.least = pyo.Constraint(expr=2 * m.y - 4 * m.b + m.fixed >= 1)
    m.most = pyo.Constraint(expr=m.x + m.y + m.b <= 5)
    m.value = pyo.Objective(expr=3 * m.x + 2 * m.y - m.z + 7 + m.fixed, sense=pyo.maximize)
    return m


def dense(program: LinearProgram) -> np.ndarray:
    return program.A.toarray()


def test_pyomo_arrays_are_the_model() -> None:
    program = compile(pyomo_model())
    names = [variable.name for variable in program.columns]
    assert sorted(names) == ["b", "x", "y", "z"]
    rows = [constraint.name for constraint in program.rows]
    assert sorted(rows) == ["equal", "least", "most", "ranged"]
    by_name = {
        row: ({names[j]: a for j, a in enumerate(dense(program)[i]) if a}, program.row_lower[i], program.row_upper[i])
        for i, row in enumerate(rows)
    }
    assert by_name == {
        "ranged": ({"x": 1, "y": -1}, -3, 4),
        "equal": ({"x": 1, "z": 1}, 3, 3),
        "least": ({"y": 2, "b": -4}, -1, INF),
        "most": ({"x": 1, "y": 1, "b": 1}, -INF, 5),
    }
    assert dict(zip(names, program.c, strict=True)) == {"x": 3, "y": 2, "z": -1, "b": 0}
    assert (program.offset, program.sense) == (9, -1)
    bounds = dict(zip(names, zip(program.lower, program.upper, program.integrality, strict=True), strict=True))
    assert bounds == {"x": (0, 4, False), "y": (0, INF, True), "z": (-1, INF, False), "b": (0, 1, True)}


def test_pyomo_solution_is_loaded_and_read_back() -> None:
    model = pyomo_model()
    program = compile(model)
    outcome = Session(program).solve()
    program.load(outcome.x)
    # x + y <= 5, x - y >= -3, z = 3 - x: 4x + 2y + 6 is largest at x = 4, y = 1
    assert outcome.status == "optimal"
    assert outcome.value == pytest.approx(24.0)
    assert pyo.value(model.value) == pytest.approx(24.0)
    assert (model.y.value, model.unused.value) == (1, 5.0)
    x, known = program.values()
    assert known.all()
    assert program.value(x) == pytest.approx(24.0)


def test_values_knows_which_variables_are_set() -> None:
    model = pyomo_model()
    model.x.set_value(1.5)
    program = compile(model)
    x, known = program.values()
    assert known.sum() == 1
    assert x[known] == [1.5]


def test_integer_values_are_rounded_when_loaded() -> None:
    model = pyomo_model()
    program = compile(model)
    x = np.where(program.integrality, 1 + 1e-7, 0.25 + 1e-7)
    program.load(x)
    assert model.y.value == 1
    assert model.x.value == 0.25 + 1e-7


def test_pyomo_duals_have_pyomos_sign() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, None))
    model.y = pyo.Var(bounds=(0, None))
    model.need = pyo.Constraint(expr=model.x + model.y >= 2)
    model.cap = pyo.Constraint(expr=model.x <= 1)
    model.cost = pyo.Objective(expr=model.x + 3 * model.y)
    model.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    program = compile(model)
    session = Session(program)
    outcome = session.solve()
    program.load(outcome.x, session.duals())
    assert (model.dual[model.need], model.dual[model.cap]) == (3, -2)


def test_cvxpy_arrays_have_the_problems_own_sign_and_offset() -> None:
    x, y = cp.Variable(2, nonneg=True, name="x"), cp.Variable(integer=True, name="y")
    balance = cp.sum(x) == 4
    problem = cp.Problem(cp.Maximize(5 + x[0] - 2 * x[1] + y), [balance, y <= x[0] + 0.5, y >= -3])
    program = compile(problem)
    assert (program.sense, program.offset) == (-1, 5)
    outcome = Session(program).solve()
    assert outcome.value == pytest.approx(problem.solve(solver=cp.HIGHS)) == pytest.approx(13.0)
    program.load(np.zeros(len(program.c)))
    program.load(outcome.x)
    assert problem.value == pytest.approx(13.0)
    assert x.value == pytest.approx([4, 0])
    assert y.value == pytest.approx(4)
    kinds = {id(c) for c, _ in program.rows if c is not None}
    assert id(balance) in kinds
    assert part_name(program.columns[1], {}, Instance([], "1x1"), None, 0.0) == "x[1]"
    assert program.values()[1].all()


@pytest.mark.parametrize("maximise", [False, True])
def test_cvxpy_duals_have_cvxpys_signs(maximise: bool) -> None:
    x = cp.Variable(2, nonneg=True)
    equal, most = x[0] + x[1] == 4, x[0] <= 1
    problem = cp.Problem(cp.Maximize(3 * x[0] + x[1]) if maximise else cp.Minimize(x[0] + 3 * x[1]), [equal, most])
    problem.solve(solver=cp.HIGHS)
    expected = (float(equal.dual_value), float(most.dual_value))
    program = compile(problem)
    session = Session(program)
    outcome = session.solve()
    # HiGHS: one more unit of the equality costs 3, or earns 1, one more unit of the inequality saves, or earns, 2
    assert sorted(session.duals()) == ([1, 2] if maximise else [-2, 3])
    program.load(outcome.x, session.duals())
    assert (float(equal.dual_value), float(most.dual_value)) == expected == (expected[0] if maximise else -3.0, 2.0)


def test_cvxpy_epigraph_columns_belong_to_nobody() -> None:
    x = cp.Variable(name="x")
    problem = cp.Problem(cp.Minimize(cp.abs(x - 2)), [x >= 3])
    program = compile(problem)
    assert Session(program).solve().value == pytest.approx(1.0)
    x.value = np.array(3.0)
    _, known = program.values()
    assert known.sum() == 1
    assert any(constraint is None for constraint, _ in program.rows)


def test_random_lps_agree_with_scipys_own_highs() -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        m, n = int(rng.integers(1, 6)), int(rng.integers(1, 6))
        A, c = rng.integers(-3, 4, (m, n)).astype(float), rng.integers(-5, 6, n).astype(float)
        b = rng.integers(0, 9, m).astype(float)
        model = pyo.ConcreteModel()
        model.x = pyo.Var(range(n), bounds=(0, 3))
        model.rows = pyo.ConstraintList()
        for i in range(m):
            if A[i].any():
                model.rows.add(sum(A[i, j] * model.x[j] for j in range(n)) <= b[i])
        model.cost = pyo.Objective(expr=sum(c[j] * model.x[j] for j in range(n)) + 0 * model.x[0])
        x = cp.Variable(n)
        problem = cp.Problem(cp.Minimize(c @ x), [A @ x <= b, x >= 0, x <= 3])
        third = linprog(c, A, b, bounds=(0, 3))
        assert Session(compile(model)).solve().value == pytest.approx(third.fun)
        assert Session(compile(problem)).solve().value == pytest.approx(third.fun)


@pytest.mark.parametrize(
    ("costs", "integer", "step"),
    [
        ([4.0, 6.0, 0.0], [True, True, False], Fraction(2)),
        ([3.0, 5.0, 0.0], [True, True, True], Fraction(1)),
        ([3.0, 5.0, 1.0], [True, True, False], None),  # a continuous column has a cost
        ([1.5, 3.0, 0.0], [True, True, True], None),
        ([0.0, 0.0, 0.0], [True, True, True], None),
    ],
)
def test_objective_step(costs: list[float], integer: list[bool], step: Fraction | None) -> None:
    program = LinearProgram.from_arrays(
        np.array(costs), sp.csc_array((1, 3)), np.zeros(1), np.ones(1), integrality=np.array(integer)
    )
    assert program.objective_step == step


def test_what_is_no_linear_model_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"pyomo.ConcreteModel or a cvxpy.Problem"):
        compile({"not": "a model"})
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 1))
    model.cost = pyo.Objective(expr=model.x**2)
    with pytest.raises(InputError, match="not linear"):
        compile(model)
    x = cp.Variable()
    with pytest.raises(InputError, match="not a linear program"):
        compile(cp.Problem(cp.Minimize(cp.square(x))))
    model.cost.deactivate()
    model.one = pyo.Objective(expr=model.x)
    model.two = pyo.Objective(expr=-model.x)
    with pytest.raises(InputError, match="more than one active objective"):
        compile(model)


def test_a_row_that_no_variable_can_save_is_infeasible() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 1), initialize=0)
    model.x.fix(0)
    model.never = pyo.Constraint(expr=model.x >= 1)
    model.y = pyo.Var(bounds=(0, 1))
    model.cost = pyo.Objective(expr=model.y)
    with pytest.raises(InfeasibleError, match="never"):
        compile(model)


def test_a_model_without_objective_is_a_feasibility_problem() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 1))
    model.row = pyo.Constraint(expr=2 * model.x == 1)
    program = compile(model)
    outcome = Session(program).solve()
    assert (outcome.status, outcome.value) == ("optimal", 0.0)
    assert outcome.x == pytest.approx([0.5])
