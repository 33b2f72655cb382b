"""A live HiGHS: changes against a rebuild, duals against finite differences, proofs, limits, conflicts, statuses."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any

import highspy
import numpy as np
import pytest
import scipy.sparse as sp

from optsched.errors import OptschedError
from optsched.solvers.formulated import conflict_in_words
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.outcome import round_bound
from optsched.solvers.session import Progress, Session

INF = np.inf


def covering(seed: int = 0, m: int = 6, n: int = 9) -> LinearProgram:
    """min c x, A x >= b, 0 <= x <= 5: feasible, bounded, not degenerate."""
    rng = np.random.default_rng(seed)
    A = rng.random((m, n)) + 0.1
    c = rng.random(n) + 1
    return LinearProgram.from_arrays(
        c, sp.csc_array(A), rng.random(m) + 1, np.full(m, INF), upper=np.full(n, 5.0), offset=3.0
    )


def knapsack(seed: int = 0, n: int = 30, m: int = 8) -> LinearProgram:
    """max c x, A x <= b, binary, integer costs: needs a few nodes."""
    rng = np.random.default_rng(seed)
    A = rng.integers(1, 30, (m, n)).astype(float)
    c = rng.integers(5, 30, n).astype(float)
    return LinearProgram.from_arrays(
        c,
        sp.csc_array(A),
        np.full(m, -INF),
        np.floor(A.sum(axis=1) / 3),
        upper=np.ones(n),
        integrality=np.ones(n, dtype=bool),
        sense=-1,
    )


def test_row_duals_are_the_change_of_the_optimum() -> None:
    program = covering()
    session = Session(program)
    base = session.solve().value
    duals, reduced = session.duals(), session.reduced_costs()
    assert np.all(duals >= -1e-9)
    assert reduced == pytest.approx(program.c - program.A.T @ duals)
    for i in range(len(program.row_lower)):
        lower = program.row_lower.copy()
        lower[i] += 1e-6
        session.set_rows(lower, program.row_upper)
        assert session.solve().value - base == pytest.approx(1e-6 * duals[i], abs=1e-11)


def test_maximisation_has_the_models_own_dual_sign() -> None:
    program = LinearProgram.from_arrays(
        np.array([2.0, 1.0]), sp.csc_array(np.array([[1.0, 1.0]])), np.array([-INF]), np.array([3.0]), sense=-1
    )
    session = Session(program)
    assert session.solve().value == pytest.approx(6.0)
    assert session.duals() == pytest.approx([2.0])  # one more unit earns 2


def test_changes_on_the_live_solver_equal_a_rebuild() -> None:
    program = covering()
    session = Session(program)
    session.solve()
    c, lower = program.c[::-1].copy(), program.row_lower * 1.5
    upper = np.full(len(program.c), 4.0)
    session.set_cost(c)
    session.set_rows(lower, program.row_upper)
    session.set_bounds(np.zeros(len(program.c)), upper)
    rebuilt = replace(program, c=c, row_lower=lower, upper=upper)
    assert session.solve().value == pytest.approx(Session(rebuilt).solve().value)
    some = np.array([0, 3])
    session.set_cost(np.array([0.1, 0.2]), some)
    session.set_rows(np.array([0.0]), np.array([INF]), np.array([2]))
    c2, lower2 = c.copy(), lower.copy()
    c2[some], lower2[2] = [0.1, 0.2], 0.0
    rebuilt = replace(program, c=c2, row_lower=lower2, upper=upper)
    assert session.solve().value == pytest.approx(Session(rebuilt).solve().value)


def test_added_columns_equal_a_rebuild() -> None:
    program = covering()
    rng = np.random.default_rng(5)
    block, cost = sp.csc_array(rng.random((len(program.row_lower), 3)) * 3), np.array([0.5, 0.4, 0.6])
    session = Session(program)
    before = session.solve().value
    assert session.add_columns(cost, block).tolist() == [9, 10, 11]
    after = session.solve()
    whole = LinearProgram.from_arrays(
        np.concatenate([program.c, cost]),
        sp.csc_array(sp.hstack([program.A, block])),
        program.row_lower,
        program.row_upper,
        upper=np.concatenate([program.upper, np.full(3, INF)]),
        offset=3.0,
    )
    assert after.value == pytest.approx(Session(whole).solve().value)
    assert after.value < before
    assert after.x.size == 12


def brute_force(program: LinearProgram) -> float:
    best = -INF
    for bits in range(1 << len(program.c)):
        x = np.array([bits >> j & 1 for j in range(len(program.c))], dtype=float)
        if np.all(program.A @ x <= program.row_upper):
            best = max(best, program.value(x))
    return best


def test_mip_optima_are_exact() -> None:
    for seed in range(4):
        program = knapsack(seed, n=10, m=4)
        outcome = Session(program).solve()
        assert outcome.status == "optimal"
        assert outcome.value == pytest.approx(brute_force(program))
        assert outcome.bound == round(outcome.value)
        assert outcome.gap < 1e-9


def test_relaxed_session_solves_the_lp() -> None:
    program = knapsack()
    session = Session(program, relax=True)
    assert session.solve().value >= Session(program).solve().value
    assert session.duals().size == len(program.row_lower)


def test_mips_have_no_duals() -> None:
    session = Session(knapsack())
    session.solve()
    with pytest.raises(OptschedError, match="no duals"):
        session.duals()


@cache
def hard() -> tuple[LinearProgram, Any]:
    """A program of some tens of nodes, and how it is solved without any help."""
    program = knapsack(3, n=34, m=10)
    return program, Session(program).solve()


def test_node_limit_gives_an_interval_and_the_same_one_again() -> None:
    program, final = hard()
    first = Session(program).solve(node_limit=3)
    again = Session(program).solve(node_limit=3)
    assert first.status == "limit"
    assert first.value < first.bound
    assert (first.value, first.bound, first.iterations) == (again.value, again.bound, again.iterations)
    assert first.value <= final.value + 1e-6 <= first.bound + 1e-6
    assert final.status == "optimal"


def test_mip_start_is_used_completed_and_kept() -> None:
    program, optimum = hard()
    session = Session(program)
    known = np.arange(34) < 25
    session.mip_start(optimum.x, known)
    limited = session.solve(node_limit=0)
    assert limited.value == pytest.approx(optimum.value)
    alone = Session(program).solve(node_limit=0)
    assert alone.value is None or alone.value < optimum.value - 0.5


def test_a_known_step_rounds_the_bound_and_ends_the_proof_sooner() -> None:
    program, knowing = hard()
    assert program.objective_step == 1
    blind = replace(program, c=program.c + 1e-9)
    assert blind.objective_step is None
    not_knowing = Session(blind).solve()
    assert knowing.bound == round(knowing.value)
    assert knowing.nodes < not_knowing.nodes
    told = Session(blind).solve(objective_step=1)
    assert told.nodes < not_knowing.nodes


@pytest.mark.parametrize(
    ("bound", "step", "offset", "sense", "expected"),
    [
        (6.2, 1, 0, 1, 7),
        (7.0000001, 1, 0, 1, 7),
        (7.1, 2, 0, 1, 8),
        (7.1, 2, 1, 1, 9),
        (6.2, Fraction(1, 4), 0, 1, 6.25),
        (6.2, None, 0, 1, 6.2),
        (6.8, 1, 0, -1, 6),
        (-INF, 1, 0, 1, -INF),
    ],
)
def test_round_bound(bound: float, step: float | None, offset: float, sense: int, expected: float) -> None:
    assert round_bound(bound, step, offset, sense) == expected


def test_progress_reports_a_shrinking_interval() -> None:
    reports: list[Progress] = []
    outcome = Session(knapsack(3, n=34, m=12)).solve(progress=reports.append)
    seen = [r.incumbent for r in reports if np.isfinite(r.incumbent)]
    assert len(seen) > 1
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(outcome.value)
    assert all(r.bound >= outcome.value - 1e-6 for r in reports if np.isfinite(r.bound))
    # and no longer after the solve that asked for it
    count = len(reports)
    Session(knapsack()).solve()
    assert len(reports) == count


def test_an_iis_is_irreducible() -> None:
    # x + y >= 3, x - y = 0, x <= 1 conflict; the last row and column z have nothing to do with it
    A = np.array([[1.0, 1, 0], [1, -1, 0], [1, 0, 0], [0, 0, 1]])
    lower, upper = np.array([3.0, 0, -INF, 1]), np.array([INF, 0, 1, 2])
    program = LinearProgram.from_arrays(
        np.ones(3), sp.csc_array(A), lower, upper, rows=["sum", "equal", "most", "other"], columns=["x", "y", "z"]
    )
    session = Session(program)
    assert session.solve().status == "infeasible"
    found, columns = session.iis()
    assert {program.rows[i] for i in found} == {"sum", "equal", "most"}
    assert columns == ()
    for rows in combinations(found, 2):
        part = LinearProgram.from_arrays(np.ones(3), sp.csc_array(A[list(rows)]), lower[list(rows)], upper[list(rows)])
        assert Session(part).solve().status == "optimal"


def test_an_iis_names_column_bounds() -> None:
    one, most = sp.csc_array(np.array([[1.0]])), np.array([2.0])
    program = LinearProgram.from_arrays(np.ones(1), one, np.array([3.0]), np.array([INF]), upper=most, columns=["x"])
    session = Session(program)
    assert session.solve().status == "infeasible"
    assert session.iis()[1] == (0,)
    assert "the bounds of x" in conflict_in_words(session, str)


def test_unbounded_and_infeasible_are_told_apart() -> None:
    free = LinearProgram.from_arrays(-np.ones(1), sp.csc_array((1, 1)), np.array([-INF]), np.array([1.0]))
    assert Session(free, options={"presolve": "off"}).solve().status == "unbounded"


def test_wrong_options_raise() -> None:
    with pytest.raises(OptschedError, match="no_such_option"):
        Session(covering(), options={"no_such_option": 1})
    with pytest.raises(OptschedError, match="presolve"):
        Session(covering(), options={"presolve": "perhaps"})


def test_a_call_that_highs_refuses_raises_with_its_name() -> None:
    session = Session(covering())
    with pytest.raises(OptschedError, match="changeColsCost"):
        session.set_cost(np.ones(1), np.array([99]))
    huge = LinearProgram.from_arrays(np.ones(1), sp.csc_array([[1e16]]), np.array([1.0]), np.array([1.0]))
    with pytest.raises(OptschedError, match="passModel"):
        Session(huge)


def test_another_thread_number_is_an_error_and_not_a_silence() -> None:
    Session(knapsack()).solve()
    other = Session(knapsack())
    other.set_options(threads=2)
    with pytest.raises(OptschedError, match="run failed"):
        other.solve()


def test_the_clock_of_a_limit_starts_anew_with_every_solve() -> None:
    session = Session(knapsack(3, n=34, m=12))
    first = session.solve()
    session.set_cost(session.program.c[::-1].copy())
    again = session.solve(time_limit=max(first.seconds, 1.0) * 50)
    assert again.status == "optimal"


@pytest.mark.parametrize("unit", [2.0**-60, 2.0**-30, 2.0**40, 2.0**90])
def test_the_unit_of_the_objective_changes_nothing_but_the_unit(unit: float) -> None:
    # HiGHS's tolerances are absolute: unscaled, costs of 1e-9 are all optimal and costs of 1e20 infinite
    plain = covering(3)
    other = replace(plain, c=plain.c * unit, offset=plain.offset * unit)
    one, two = Session(plain), Session(other)
    first, second = one.solve(), two.solve()
    assert first.value is not None
    assert second.value == pytest.approx(first.value * unit, rel=1e-12)
    assert second.bound == second.value
    assert two.duals() == pytest.approx(one.duals() * unit, rel=1e-9)
    assert two.reduced_costs() == pytest.approx(one.reduced_costs() * unit, rel=1e-9, abs=1e-9 * unit)
    two.set_cost(other.c[::-1])
    one.set_cost(plain.c[::-1])
    assert two.solve().value == pytest.approx((one.solve().value or 0.0) * unit, rel=1e-12)


@pytest.mark.parametrize("unit", [2.0**-60, 2.0**60])
def test_a_proof_is_the_same_in_any_unit(unit: float) -> None:
    plain = knapsack(1)
    other = replace(plain, c=plain.c * unit)
    first, seen = Session(plain).solve(objective_step=1), []
    second = Session(other).solve(objective_step=Fraction(unit), progress=seen.append)
    assert first.value is not None
    assert first.bound is not None
    assert (second.status, second.value) == ("optimal", first.value * unit)
    assert second.bound == first.bound * unit == round(first.value) * unit
    assert all(not event.bound < second.value * 0.999 for event in seen)


def test_added_rows_and_new_coefficients_are_those_of_a_rebuilt_program() -> None:
    program = covering()
    rng = np.random.default_rng(7)
    extra, bound = rng.random((2, len(program.c))) + 0.1, rng.random(2) + 3
    session = Session(program)
    before = session.solve().value
    rows = session.add_rows(sp.csr_array(extra), bound, np.full(2, INF))
    assert rows.tolist() == [len(program.row_lower), len(program.row_lower) + 1]
    columns = np.array([0, 4])
    session.set_coefficients(rows, columns, np.array([9.0, 0.0]))
    extra[0, 0], extra[1, 4] = 9.0, 0.0
    lower, upper = np.concatenate([program.row_lower, bound]), np.full(len(program.row_lower) + 2, INF)
    rebuilt = replace(program, A=sp.csc_array(sp.vstack([program.A, extra])), row_lower=lower, row_upper=upper)
    assert session.solve().value == pytest.approx(Session(rebuilt).solve().value, rel=1e-9)
    assert session.solve().value > before + 1e-6


def test_a_value_that_is_not_that_of_the_solution_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # HiGHS 1.16.0 with a start may return another solution than the one whose value it tells
    session = Session(knapsack())
    assert session.solve().status == "optimal"
    told = session.highs.getInfo()
    told.objective_function_value -= 2.0
    monkeypatch.setattr(session.highs, "run", lambda: highspy.HighsStatus.kOk)
    monkeypatch.setattr(session.highs, "getInfo", lambda: told)
    with pytest.raises(OptschedError, match="is not the value of its solution"):
        session.solve()


def test_values_follow_changes_of_the_program() -> None:
    session = Session(knapsack())
    session.set_cost(np.array([100.0, 1.0]), np.array([3, 7]))
    first = session.solve()
    assert first.x is not None
    changed = knapsack().c.copy()
    changed[[3, 7]] = 100.0, 1.0
    assert first.value == pytest.approx(float(changed @ first.x))


def test_an_lp_whose_duals_are_small_is_solved_to_the_last_digits() -> None:
    """max rate: thr_m(X) >= rate left_m, shares of time, GPUs of three types; its duals are some 1e-6, its cost is 1."""
    off = []
    for seed in range(3):
        rng, m, capacity = np.random.default_rng(seed), 150, np.full(3, 20.0)
        rate = rng.uniform(0.1, 1, (m, 1)) * np.array([4.0, 2, 1]) * rng.uniform(0.6, 1, (m, 3))
        gang, left = rng.choice([1, 1, 1, 2, 4], m).astype(float), rng.uniform(100, 5000, m)
        jobs = sp.kron(sp.eye_array(m), np.ones((1, 3)))
        work = sp.hstack([sp.csc_array(-left[:, None]), jobs.multiply(rate.ravel()[None, :])])
        time = sp.hstack([sp.csc_array((m, 1)), jobs])
        used = sp.hstack([sp.csc_array((3, 1)), sp.kron(gang[None, :], sp.eye_array(3))])
        program = LinearProgram.from_arrays(
            np.eye(1, 3 * m + 1).ravel(),
            sp.csc_array(sp.vstack([work, time, used])),
            np.concatenate([np.zeros(m), np.full(m + 3, -np.inf)]),
            np.concatenate([np.full(m, np.inf), np.ones(m), capacity]),
            sense=-1,
        )
        session = Session(program)
        outcome = session.solve_finely()
        duals = session.duals()
        need, price = np.maximum(-duals[:m], 0), np.maximum(duals[2 * m :], 0)
        gained = np.maximum((need[:, None] * rate - gang[:, None] * price).max(axis=1), 0).sum()
        proved = (gained + capacity @ price) / (need @ left)  # by any duals
        assert outcome.value == outcome.bound == pytest.approx(proved, rel=1e-10)
        plain = Session(program).solve().value
        assert plain is not None
        off.append(abs(plain / proved - 1))
    assert max(off) > 1e-5  # what it is for
