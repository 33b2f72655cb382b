"""Models as they were made, and with a row more, beside the optimum: no false optimum, no false bound, nobody blamed.

What the instances are is in `models_as_made`; the two at the top are those that fell: with times of a second beside months
HiGHS's tolerances took nodes with solutions for infeasible, and its bound for the value of another order.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyomo.environ as pyo
import pytest
import scipy.sparse as sp

import optsched as osd
from optsched.models import FORMULATIONS
from optsched.problem.objectives import get_objective
from optsched.solvers.compile_model import compile
from optsched.solvers.dual_bound import dual_bound
from optsched.solvers.fitted_program import FittedProgram
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.lp_bound import rational
from optsched.solvers.method import METHODS, Method, MethodReport
from optsched.solvers.outcome import there
from optsched.solvers.session import Session
from optsched.solvers.solve_state import SolveState
from solvers.models_as_made import judged, judged_changed

TARDINESS = "total_weighted_tardiness"
Rows = Sequence[tuple[int, int, int, int]]  # arrival, duration, weight, due date
FIVE = (
    (0, 7, 5, 93),
    (10, 10000003, 1000000, 10000012),
    (928316, 1000001, 1000000, 1928314),
    (1, 1, 7, 3),
    (0, 1000003, 1, 1000000),
)
SEVEN = (
    (0, 1000000, 10000, 999999),
    (791217, 1000004, 10000, 1791220),
    (36005, 1000004, 9, 2036011),
    (1, 2, 10000, 1),
    (1, 1000004, 10000, 1000003),
    (1, 1001, 3, 1003),
    (684340, 1, 1, 684345),
)
FOUR = ((0, 3, 2, 3), (1, 2, 5, 3), (1, 7, 1, 9), (4, 1, 5, 5))
BEST = {FIVE: 1_928_322_928_323, SEVEN: 22_115_030_743}


def one_gpu(rows: Rows) -> osd.Instance:
    jobs = [osd.Job(f"{k}", r, 1, p, weight=w, due=d) for k, (r, p, w, d) in enumerate(rows)]
    return osd.Instance(jobs, "1x1", name="one-gpu")


def tardiness(order: Rows) -> int:
    now = total = 0
    for r, p, w, d in order:
        now = max(now, r) + p
        total += w * max(0, now - d)
    return total


def test_the_optima_of_the_two_by_all_orders() -> None:
    assert {rows: min(map(tardiness, itertools.permutations(rows))) for rows in BEST} == BEST


@pytest.mark.parametrize("rows", BEST)
def test_seconds_beside_months_in_a_model_as_it_was_made(rows: Rows) -> None:
    instance = one_gpu(rows)
    model = osd.formulate(instance, "disjunctive", TARDINESS)
    found = osd.solve_model(instance, model)
    assert (found.status, found.value_exact, found.bound_exact) == ("optimal", BEST[tuple(rows)], BEST[tuple(rows)])
    ends = [pyo.value(model.end(name)) for name in instance.ids]  # the model has the schedule
    assert found.schedule is not None
    assert ends == found.schedule.completion.tolist()


@pytest.mark.parametrize("rows", BEST)
def test_seconds_beside_months_in_a_model_with_a_row_more(rows: Rows) -> None:
    instance = one_gpu(rows)
    model = osd.formulate(instance, "disjunctive", TARDINESS)
    model.any = pyo.Constraint(expr=model.end("0") >= 0)
    found = osd.solve_model(instance, model)
    best = BEST[tuple(rows)]
    assert found.bound_exact is not None
    assert found.value_exact is not None
    assert found.bound_exact <= best <= found.value_exact
    assert (found.status == "optimal") <= (found.value_exact == best)


def test_without_local_search_nothing_above_the_optimum_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    search = SolveState.search
    monkeypatch.setattr(SolveState, "search", lambda self, budget, *rest, **named: search(self, 0, *rest, **named))
    found = osd.solve(one_gpu(SEVEN), TARDINESS, model="disjunctive")
    assert found.bound_exact is not None
    assert found.bound_exact <= BEST[SEVEN]
    assert (found.status == "optimal") <= (found.value_exact == BEST[SEVEN])


@pytest.mark.parametrize("part", range(10))
def test_models_as_they_were_made(part: int) -> None:
    seen = Counter[str]()
    assert [line for seed in range(4 * part, 4 * part + 4) for line in judged(seed, seen)] == []
    assert sum(seen.values()) >= 4


@pytest.mark.parametrize("part", range(4))
def test_models_with_a_row_more(part: int) -> None:
    seen = Counter[str]()
    assert [line for seed in range(8 * part, 8 * part + 8) for line in judged_changed(seed, seen)] == []
    assert seen["changed: optimal"] >= 4


@pytest.mark.study
@pytest.mark.parametrize("part", range(100))
def test_twenty_thousand_models_as_they_were_made(part: int) -> None:
    seen = Counter[str]()
    assert [line for seed in range(200 * part, 200 * part + 200) for line in judged(seed, seen)] == []
    assert all(said.endswith(("optimal", "feasible", "limit")) for said in seen)


@pytest.mark.study
@pytest.mark.parametrize("part", range(20))
def test_five_thousand_models_with_a_row_more(part: int) -> None:
    seen = Counter[str]()
    assert [line for seed in range(250 * part, 250 * part + 250) for line in judged_changed(seed, seen)] == []
    assert seen["changed: optimal"] >= 190  # 198 in the worst part


# --- what a solver's numbers are worth ------------------------------------------------------------------------------------


def compiled(instance: osd.Instance) -> LinearProgram:
    return compile(FORMULATIONS.get("disjunctive").build(instance, TARDINESS, horizon=None))


def test_times_are_in_units_that_fit_and_nothing_is_rounded() -> None:
    given = compiled(one_gpu(FIVE))
    fitted = FittedProgram.of(given)
    assert given.magnitude > 2**23
    assert 2**11 <= fitted.program.magnitude < 2**13
    assert fitted.program.tolerance == 1e-9
    x = Session(fitted.program).solve().x
    assert x is not None
    settled = fitted.settled(x)
    assert settled is not None
    assert fitted.broken(settled) == []
    times = float(fitted.unit.max())
    assert np.array_equal(fitted.program.A.toarray(), given.A.toarray() * fitted.unit / times)
    small = compiled(one_gpu([(0, 7, 5, 9), (1, 3, 1, 3), (2, 4, 1, 9)]))
    assert FittedProgram.of(small).program is small


def test_a_job_that_large_constants_hide_leaves_no_bound() -> None:
    fitted = FittedProgram.of(compiled(one_gpu(FIVE)))
    outcome = Session(fitted.program).solve()
    doubt = fitted.doubt(outcome, None, 1.0)
    assert doubt is not None
    assert 0 < doubt < Fraction(BEST[FIVE], 10**4)
    assert fitted.doubt(outcome, None, 1e-2) is None


def test_a_row_that_is_broken_by_an_ulp_is_told_from_one_that_rounding_breaks() -> None:
    instance = one_gpu([(0, 3, 1, 0), (0, 4, 1, 0)])
    fitted = FittedProgram.of(compiled(instance))
    settled = fitted.settled(there(Session(fitted.program).solve().x))
    assert fitted.broken(settled) == []
    names = [str(column) for column in fitted.given.columns]
    second = max((names.index("start[0]"), names.index("start[1]")), key=lambda j: settled[j])
    early = settled.copy()
    early[second] -= 1e-9
    assert len(fitted.broken(early)) == 1


# --- a bound above a schedule ---------------------------------------------------------------------------------------------


def state_of(rows: Rows) -> SolveState:
    """With the schedule of the rows as they stand, one job after another, and the best certificate."""
    state = SolveState(one_gpu(rows), get_objective(TARDINESS))
    lasts = np.array([float(p) for _, p, _, _ in rows])
    state.offer_starts(max(r for r, *_ in rows) + np.cumsum(lasts) - lasts, "as they stand")
    state.combinatorial()
    return state


def test_a_bound_above_the_value_is_no_bound_and_the_one_before_stands() -> None:
    state = state_of(SEVEN)
    before, value = there(state.bound), there(state.value)
    assert before < value
    state.begin("boaster")
    state.raise_bound((before + value) / 2, "solver")
    assert state.bound == (before + value) / 2
    state.raise_bound(value + 80_004, "solver")
    assert (state.bound, state.bound_by, state.closed) == (before, "certificate", False)
    assert "boaster claimed a bound of" in state.refuted["boaster"]
    state.raise_bound(value, "solver")  # nothing that it says counts from here on
    assert state.bound == before
    state.begin("honest")
    state.raise_bound(value, "solver")
    assert (state.bound, state.closed) == (value, True)


def test_a_schedule_below_a_bound_refutes_it() -> None:
    state = state_of(SEVEN)
    before = state.bound
    state.begin("boaster")
    state.raise_bound(there(state.value), "solver")
    assert state.closed
    worse = there(state.value)
    state.search(100_000)
    assert state.value < worse
    assert (state.bound, state.closed, list(state.refuted)) == (before, False, ["boaster"])


def test_what_says_that_nothing_is_better_than_a_schedule_may_be_above_it() -> None:
    state = state_of(SEVEN)
    state.begin("thinned")
    state.raise_bound(there(state.value) + 3, "solver", up_to_value=True)
    assert (state.bound, state.refuted) == (state.value, {})


def test_another_method_goes_on_where_a_bound_is_refuted_and_the_note_says_so() -> None:
    def boasts(state: SolveState) -> MethodReport:
        state.raise_bound(there(state.value) + 5, "solver")
        return MethodReport("boaster")

    METHODS.register("boaster")(Method("boaster", lambda state: None, boasts))
    try:
        found = osd.solve(one_gpu(FOUR), TARDINESS, model="boaster")
    finally:
        METHODS._things.pop("boaster")
    best = min(map(tardiness, itertools.permutations(FOUR)))
    assert (found.status, found.value, found.model) == ("optimal", best, "sequence-branching")
    assert found.note.startswith("boaster failed on these numbers (boaster claimed a bound of 21, more than the 16")


# --- relaxations ----------------------------------------------------------------------------------------------------------


def test_a_relaxation_is_a_bound_of_the_whole_problem_only_where_the_horizon_is_long_enough() -> None:
    jobs = [
        osd.Job("1", arrival=1, gpus=2, duration=3, weight=100),
        osd.Job("2", arrival=1, gpus=2, duration=1),
        osd.Job("3", arrival=0, gpus=2, duration=10),
    ]
    instance, objective = osd.Instance(jobs, "1x2", name="three"), "total_weighted_completion_time"
    best = osd.solve(instance, objective).value
    shortest = osd.solve(instance, "makespan").value
    assert shortest == 14

    def relaxed(horizon: float | None) -> osd.Solution:
        model = osd.formulate(instance, "rigid-time-indexed", objective, relax=True, horizon=horizon)
        return osd.solve_model(instance, model)

    short = relaxed(shortest)
    assert short.value > best
    assert "its optimum bounds only schedules that end by 14 s" in short.note
    assert "a later end may be better" in short.note
    for horizon in (None, 15.0, 40.0):  # all jobs one after another after the last arrival end by 15 s
        long = relaxed(horizon)
        assert "its optimum is a bound (class gang-nonpreemptive)" in long.note
        assert long.bound <= best


@pytest.mark.parametrize("seed", range(6))
def test_prices_prove_what_a_relaxation_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = 6, 4
    A = rng.integers(0, 3, (m, n)).astype(float)
    upper = np.where(rng.random(n) < 0.5, 3.0, np.inf)
    c = rng.integers(1, 9, n).astype(float)
    need = A.sum(axis=1)
    program = LinearProgram.from_arrays(c, sp.csc_array(A), need, np.full(m, np.inf), upper=upper, offset=5.0)
    session = Session(program)
    outcome = session.solve()
    bound = dual_bound(program, session.duals(), there(outcome.value))
    assert bound is not None
    assert bound <= outcome.value
    assert bound == pytest.approx(outcome.value, rel=1e-9)
    # prices that are a little too high prove a little less, not more
    high = dual_bound(program, session.duals() * (1 + 1e-7) + 1e-9, outcome.value)
    assert high is None or high <= outcome.value


def test_prices_beyond_64_bits_are_as_many_as_fit() -> None:
    for values in ([0.5, 1e13 / 3], [1e19, 1.0], [1e300, 0.1], [0.1, 0.25]):
        amount, denominator = rational(np.array(values))
        for given, kept in zip(values, amount.tolist(), strict=True):
            assert 0 <= kept <= 2**61
            assert kept / denominator == pytest.approx(min(given, 2.0**61), abs=1.0, rel=1e-9)
