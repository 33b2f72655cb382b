"""Numbers that are none, bounds that integers do not have, objectives without a limit: each is told by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pyomo.environ as pyo
import pytest
import scipy.sparse as sp

import optsched as osd
from optsched.errors import InfeasibleError, InputError
from optsched.models.program import PROGRAMS
from optsched.solvers.compile_model import compile
from optsched.solvers.linear_program import LinearProgram, whole_bounds
from optsched.solvers.session import Session

NAN, INF = float("nan"), float("inf")


def two() -> osd.Instance:
    return osd.Instance([osd.Job("a", gpus=1, duration=2), osd.Job("b", gpus=1, duration=3)], "1x1", name="two")


def timed(**how: Any) -> tuple[osd.Instance, Any]:
    return two(), osd.formulate(two(), "rigid-time-indexed", "total_completion_time", **how)


def small(change: Callable[[Any], Any]) -> Any:
    """x in [0, 5], b binary, i in 0..7: min x + b + i over x + b + i >= 2, changed."""
    model = pyo.ConcreteModel("small")
    model.x, model.b = pyo.Var(bounds=(0, 5)), pyo.Var(within=pyo.Binary)
    model.i = pyo.Var(within=pyo.Integers, bounds=(0, 7))
    model.r = pyo.Constraint(expr=model.x + model.b + model.i >= 2)
    model.goal = pyo.Objective(expr=model.x + model.b + model.i)
    change(model)
    return model


def row(make: Callable[[Any], Any]) -> Callable[[Any], None]:
    return lambda model: model.add_component("c", pyo.Constraint(expr=make(model)))


def goal(make: Callable[[Any], Any]) -> Callable[[Any], None]:
    def changed(model: Any) -> None:
        model.goal.deactivate()
        model.add_component("other", pyo.Objective(expr=make(model)))

    return changed


def table(model: Any) -> None:
    """A row with a parameter of which a value is missing."""
    model.price = pyo.Param([1, 2], mutable=True, within=pyo.Any, initialize={1: 2.0, 2: NAN})
    model.c = pyo.Constraint(expr=model.price[1] * model.x + model.price[2] * model.i >= 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (row(lambda m: NAN * m.x + m.i >= 1), "row c, coefficient of x = nan: invalid (expected: a finite number)"),
        (row(lambda m: m.x - INF * m.i <= 1), "row c, coefficient of i = -inf: invalid (expected: a finite number)"),
        (row(lambda m: m.x + m.i >= NAN), "row c, lower bound = nan: invalid (expected: a finite number or -inf)"),
        (row(lambda m: m.x + m.i <= NAN), "row c, upper bound = nan: invalid (expected: a finite number or inf)"),
        (row(lambda m: m.x + m.i >= INF), "row c, lower bound = inf: invalid (expected: a finite number or -inf)"),
        (row(lambda m: m.x + m.i == -INF), "row c, upper bound = -inf: invalid (expected: a finite number or inf)"),
        (
            goal(lambda m: NAN * m.x + m.b),
            "the objective's coefficient of x = nan: invalid (expected: a finite number)",
        ),
        (
            goal(lambda m: INF * m.x + m.b),
            "the objective's coefficient of x = inf: invalid (expected: a finite number)",
        ),
        (goal(lambda m: m.x + NAN), "the objective's constant = nan: invalid (expected: a finite number)"),
        (lambda m: m.x.setub(NAN), "x: a bound that is no finite number (expected: a finite number or None)"),
        (lambda m: m.i.setlb(INF), "i: a bound that is no finite number (expected: a finite number or None)"),
        (lambda m: m.b.fix(0.5, True), "b = 0.5: an integer variable is fixed (expected: an integer)"),
        (lambda m: m.b.fix(NAN, True), "b = nan: an integer variable is fixed (expected: an integer)"),
        (lambda m: m.x.fix(NAN, True), "row r: a value that is no number: 'x' evaluated to a nonnumeric value 'nan'"),
        (table, "row c: a value that is no number: 'price[2]' evaluated to a nonnumeric value 'nan'"),
    ],
)
def test_what_is_no_number_in_a_pyomo_model_is_refused_by_name(change: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        compile(small(change))
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


def test_an_infinite_bound_that_means_none_is_none() -> None:
    without = compile(small(lambda m: None))
    for change in (row(lambda m: m.x + m.i <= INF), lambda m: m.x.setub(INF), lambda m: m.b.fix(1)):
        assert Session(compile(small(change))).solve().value == Session(without).solve().value == 2


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda x: np.array([1, NAN]) @ x >= 1, "row limit, coefficient of x[1] = nan: invalid"),
        (lambda x: np.array([1, INF]) @ x <= 1, "row limit, coefficient of x[1] = inf: invalid"),
        (lambda x: x <= np.array([1, NAN]), "row limit[1], upper bound = nan: invalid"),
        (lambda x: x >= np.array([1, INF]), "row limit[1], upper bound = -inf: invalid"),
    ],
)
def test_what_is_no_number_in_a_cvxpy_problem_is_refused_by_name(make: Callable[[Any], Any], said: str) -> None:
    x = cp.Variable(2, name="x", nonneg=True)
    with pytest.raises(InputError) as refused:
        compile(cp.Problem(cp.Minimize(cp.sum(x)), [x <= np.array([9, INF]), make(x).set_label("limit")]))
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("name", ["gavel-max-min", "gavel-proportional"])  # linear, convex
def test_nan_in_a_row_or_the_objective_of_a_cvxpy_formulation_is_told_by_its_name(name: str) -> None:
    instance = osd.generate("hetero-small", seed=1)
    model = osd.formulate(instance, name)
    x = model.variables()[0]
    rows = cp.Problem(model.objective, [*model.constraints, (NAN * cp.sum(x) <= 1).set_label("limit")])
    with pytest.raises(InputError, match=r"^row limit.* = nan: invalid"):
        osd.solve_model(instance, rows)
    goals = cp.Problem(type(model.objective)(model.objective.expr + NAN), model.constraints)
    with pytest.raises(InputError, match=r"^the objective.* constant = nan: invalid"):
        osd.solve_model(instance, goals)


def test_nan_in_a_row_of_a_formulation_is_told_by_its_name() -> None:
    instance, model = timed()
    model.c = pyo.Constraint(expr=model.start[0, 0] + model.start[1, 0] * NAN >= 1)
    with pytest.raises(InputError, match=r"^row c, coefficient of start\[1,0\] = nan: invalid"):
        osd.solve_model(instance, model)


# --- bounds of integers ------------------------------------------------------------------------------------------------


def test_bounds_of_integers_are_rounded_inwards_and_forgive_rounding() -> None:
    lower = np.array([0.25, -0.5, 1 + 1e-10, 0.3, -INF, 2.0**60, 7.0 + 1e-7, 1e9 + 1.2e-7])
    upper = np.array([2.75, 0.9999999999, 2 - 1e-10, 0.7, INF, 2.0**61, 8.0 - 1e-7, 2e9 - 2.4e-7])
    integer = np.array([True, True, True, False, True, True, True, True])
    low, high = whole_bounds(lower, upper, integer)
    assert low.tolist() == [1, 0, 1, 0.3, -INF, 2.0**60, 8, 1e9]
    assert high.tolist() == [2, 1, 2, 0.7, INF, 2.0**61, 7, 2e9]
    assert not np.signbit(low[1])


def test_a_binary_that_may_be_a_half_is_0() -> None:
    instance, model = timed()
    model.start[0, 0].setub(0.5)
    found = osd.solve_model(instance, model)  # b then a: 3 + 5
    assert (found.status, found.value, found.bound) == ("optimal", 8, 8)
    model.start[0, 0].setub(0.9999999999)
    found = osd.solve_model(instance, model)  # a may start: 2 + 5
    assert (found.status, found.value, found.bound) == ("optimal", 7, 7)


def test_an_integer_without_a_value_is_infeasible_by_its_name() -> None:
    instance, model = timed()
    model.start[0, 0].setlb(0.25)
    model.start[0, 0].setub(0.75)
    found = osd.solve_model(instance, model)
    assert (found.status, found.value, found.bound) == ("infeasible", None, None)
    assert found.note == "start[0,0]: no integer lies between its bounds 0.25 and 0.75"
    crossed = small(lambda m: (m.x.setlb(3), m.x.setub(2)))
    with pytest.raises(InfeasibleError, match=r"^x: no value lies between its bounds 3 and 2$"):
        compile(crossed)


def test_bounds_that_change_on_a_live_program_are_rounded_too() -> None:
    program = LinearProgram.from_arrays(
        np.array([1.0, 1.0]),
        sp.csc_array([[1.0, 1.0]]),
        np.array([-INF]),
        np.array([9.0]),
        upper=np.array([4.0, 4.0]),
        integrality=np.array([True, False]),
        sense=-1,
    )
    session = Session(program)
    session.set_bounds(np.zeros(2), np.array([2.5, 2.5]))
    assert session.solve().value == 4.5
    session.set_bounds(np.array([0.5]), np.array([1.5]), np.array([0]))
    assert session.solve().value == 3.5
    relaxed = Session(program, relax=True)
    relaxed.set_bounds(np.zeros(2), np.array([2.5, 2.5]))
    assert relaxed.solve().value == 5


# --- no limit ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relax", [False, True])
def test_an_objective_without_a_limit_has_no_value(relax: bool) -> None:
    instance, model = timed(relax=relax)
    model.early = pyo.Var(within=pyo.NonNegativeReals)
    model.objective.deactivate()
    model.goal = pyo.Objective(expr=model.end("a") - model.early)
    found = osd.solve_model(instance, model)
    assert (found.status, found.value, found.bound, found.schedule, found.gap) == ("unbounded", None, None, None, None)
    assert found.note == "its objective has no limit: a row or a bound is missing"
    assert repr(found).startswith("Solution(unbounded: total_completion_time of the model ")
    document = found.to_json()
    assert (document["status"], document["value"], document["bound"]) == ("unbounded", None, None)


def arrays(cost: list[float], A: list[list[float]], low: list[float], high: list[float], **more: Any) -> LinearProgram:
    return LinearProgram.from_arrays(np.array(cost), sp.csc_array(A), np.array(low), np.array(high), **more)


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("sense", [1, -1])
@pytest.mark.parametrize("presolve", ["on", "off"])
def test_infeasible_or_unbounded_is_never_left_open(integer: bool, sense: int, presolve: str) -> None:
    kinds, free = np.array([integer, False]), np.array([-INF, 0.0])
    no_limit = arrays([float(sense), 0], [[1.0, 1]], [-INF], [5.0], lower=free, integrality=kinds, sense=sense)
    # y may grow without a limit, but 2 x = 1 where x is an integer; or x + y both >= 3 and <= 2
    parity = arrays([0, -float(sense)], [[2.0, 0], [0, 1]], [1.0, 0], [1.0, INF], integrality=kinds, sense=sense)
    never = arrays([0, -float(sense)], [[1.0, 0], [1, 0]], [3.0, -INF], [INF, 2.0], integrality=kinds, sense=sense)
    bounded = replace(no_limit, lower=np.array([-3.0, 0.0]))
    for program, status in (
        (no_limit, "unbounded"),
        (parity, "infeasible" if integer else "unbounded"),
        (never, "infeasible"),
        (bounded, "optimal"),
    ):
        session = Session(program, options={"presolve": presolve})
        found = session.solve()
        assert found.status == status
        if status == "optimal":
            assert (found.value, found.bound) == (-3.0 * sense, -3.0 * sense)
            continue
        assert (found.value, found.bound, found.x) == (None, None, None)
        again = session.solve()  # the objective is there again
        assert again.status == status


def test_a_program_without_columns_is_what_its_rows_say() -> None:
    empty = LinearProgram.from_arrays(np.zeros(0), sp.csc_array((1, 0)), np.array([-1.0]), np.array([0.0]), offset=3.0)
    found = Session(empty).solve()
    assert (found.status, found.value, found.bound) == ("optimal", 3.0, 3.0)
    found = Session(replace(empty, row_lower=np.array([1.0]), row_upper=np.array([2.0]))).solve()
    assert (found.status, found.value, found.bound) == ("infeasible", None, None)


def test_a_program_without_a_limit_is_told_by_the_command_line(
    command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(data: Any) -> Any:
        model = pyo.ConcreteModel()
        model.x = pyo.Var(within=pyo.Integers)
        model.goal = pyo.Objective(expr=model.x)
        return model

    given = PROGRAMS.get("hadar-makespan")
    monkeypatch.setitem(PROGRAMS._things, given.name, replace(given, build=build, duals=None))
    found = osd.solve_program("rigid-06-1", given.name)
    assert (found.status, found.value, found.bound) == ("unbounded", None, None)
    told = command("solve", "rigid-06-1", "--model", given.name, "--json")
    assert told.code == 0
    assert (told.document["status"], told.document["value"], told.document["bound"]) == ("unbounded", None, None)
    shown = command("solve", "rigid-06-1", "--model", given.name).shown
    assert "unbounded" in shown
    assert "its objective has no limit" in shown
