"""Limits of time, partial starts, and bounds that are none: what HiGHS tells otherwise than one would think."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import highspy
import numpy as np
import pytest
import scipy.sparse as sp

import optsched as osd
from optsched.models import FORMULATIONS
from optsched.problem.objectives import get_objective
from optsched.solvers import solve_state
from optsched.solvers.column_generation import PricedColumns, generate_columns
from optsched.solvers.compile_model import compile
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.list_schedule import best_list_schedule, list_schedule
from optsched.solvers.methods.cpsat_worker import proved
from optsched.solvers.session import DUAL, PRIMAL, Progress, Session
from optsched.solvers.solve import begin
from optsched.solvers.solve_state import SolveState
from solvers.test_session import covering, hard, knapsack

INF = np.inf


# --- limits of time ----------------------------------------------------------------------------------------------------


def limit_given(session: Session) -> float:
    return float(session.highs.getOptionValue("time_limit")[1])


def test_highs_counts_the_seconds_of_all_lp_solves_of_one_object() -> None:
    """Where it no longer does, `Session` need not add what has passed."""
    session = Session(covering())
    session.solve()
    session.set_cost(session.program.c[::-1].copy())
    session.set_options(time_limit=session.highs.getRunTime() / 2)
    session.highs.run()
    assert session.highs.getModelStatus() == highspy.HighsModelStatus.kTimeLimit


def test_a_limit_is_for_one_solve_whatever_was_solved_before(monkeypatch: pytest.MonkeyPatch) -> None:
    lp, mip = Session(covering()), Session(knapsack())
    for session in (lp, mip):
        monkeypatch.setattr(session.highs, "getRunTime", lambda: 1e9)  # as after days of solves
        assert session.solve(time_limit=1e6).status == "optimal"
    assert 1e9 + 0.9e6 < limit_given(lp) <= 1e9 + 1e6
    assert 0.9e6 < limit_given(mip) <= 1e6  # HiGHS counts the seconds of each MIP anew


def test_an_interrupted_solve_of_many_jobs_makes_one_list_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_orders(*_: Any, **__: Any) -> None:
        raise AssertionError("some of them take a minute for the jobs of a log")

    monkeypatch.setattr(solve_state, "best_list_schedule", all_orders)
    monkeypatch.setattr(solve_state, "AT_ONCE", 20)
    instance = osd.generate("poisson", seed=1, jobs=21, cluster="1x8")
    found = begin(instance, "total_flow_time").so_far("interrupted")
    one = list_schedule(instance, "release-area", "total_flow_time")
    assert found.schedule is not None
    assert found.schedule.start.tolist() == one.start.tolist()


def shares(seed: int = 0, m: int = 40) -> LinearProgram:
    """max rate: thr_m(X) >= rate left_m: a cost of 1 beside duals of 1e-5, so that a first solve is a coarse one."""
    rng, capacity = np.random.default_rng(seed), np.full(3, 8.0)
    rate = rng.uniform(0.1, 1, (m, 1)) * np.array([4.0, 2, 1]) * rng.uniform(0.6, 1, (m, 3))
    gang, left = rng.choice([1, 1, 1, 2, 4], m).astype(float), rng.uniform(100, 5000, m)
    jobs = sp.kron(sp.eye_array(m), np.ones((1, 3)))
    work = sp.hstack([sp.csc_array(-left[:, None]), jobs.multiply(rate.ravel()[None, :])])
    time = sp.hstack([sp.csc_array((m, 1)), jobs])
    used = sp.hstack([sp.csc_array((3, 1)), sp.kron(gang[None, :], sp.eye_array(3))])
    return LinearProgram.from_arrays(
        np.eye(1, 3 * m + 1).ravel(),
        sp.csc_array(sp.vstack([work, time, used])),
        np.concatenate([np.zeros(m), np.full(m + 3, -INF)]),
        np.concatenate([np.full(m, INF), np.ones(m), capacity]),
        sense=-1,
    )


@pytest.mark.parametrize("ended", ["limit", "feasible"])
def test_a_coarse_optimum_is_not_called_one(ended: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session, solve, asked = Session(shares()), Session.solve, list[float | None]()

    def second_fails(self: Session, **limits: Any) -> Any:
        asked.append(limits.get("time_limit"))
        if len(asked) == 2:
            if ended == "feasible":
                raise osd.OptschedError("HiGHS: run failed")
            return replace(solve(self, **limits), status="limit", value=None, bound=None, x=None)
        return solve(self, **limits)

    monkeypatch.setattr(Session, "solve", second_fails)
    found = session.solve_finely(1e6)
    assert len(asked) == 2  # a third one would be the first again
    assert all(limit is not None and 0.9e6 < limit <= 1e6 for limit in asked)
    assert (found.status, found.bound) == (ended, None)
    assert found.value is not None
    assert found.value == pytest.approx(Session(shares()).solve_finely().value, rel=0.05)


def test_a_program_whose_second_solve_runs_out_of_time_has_a_value_and_no_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    solve, count = Session.solve, [0]

    def in_time_once(self: Session, **limits: Any) -> Any:
        count[0] += 1
        found = solve(self, **limits)
        return replace(found, status="limit", value=None, bound=None, x=None) if count[0] == 2 else found

    monkeypatch.setattr(Session, "solve", in_time_once)
    found = osd.solve_program(osd.generate("hetero-small", seed=1), "gavel-max-min", 1e6)
    assert (found.status, found.bound, found.duals) == ("limit", None, {})
    assert found.value is not None
    assert found.gap is None


def test_a_model_without_rows_has_nothing_to_refine() -> None:
    alone = osd.Instance([osd.Job("a", gpus=1, duration=3)], "1x1")
    found = osd.solve_model(alone, osd.formulate(alone, "disjunctive", "total_completion_time"))
    assert (found.status, found.value, found.bound) == ("optimal", 3, 3)


LIMITS = (0.0, 0.0005, 0.002, 0.01, 0.05)


def never_false(program: LinearProgram, optimum: float, limit: float, start: Any = None) -> str:
    """Solve within a limit: what comes back is the optimum, or an interval around it."""
    session, off = Session(program), 1e-7 * abs(optimum)
    if start is not None:
        session.mip_start(*start)
    found = session.solve_finely(limit)
    assert found.status in ("optimal", "limit")
    if found.status == "optimal":
        assert found.value == pytest.approx(optimum, abs=off)
        assert found.bound == pytest.approx(optimum, abs=off)
    if found.value is not None:
        assert program.sense * (found.value - optimum) >= -off
    if found.bound is not None:
        assert program.sense * (found.bound - optimum) <= off
    return found.status


@pytest.mark.parametrize("limit", LIMITS)
def test_no_limit_of_time_makes_a_false_status(limit: float) -> None:
    never_false(hard()[0], hard()[1].value, limit)
    never_false(shares(), Session(shares()).solve_finely().value or 0.0, limit)


@pytest.mark.study
def test_live_lps_all_end_well_under_a_limit_that_they_reach_together() -> None:
    rng, longest = np.random.default_rng(0), 0.0
    m, n = 250, 900
    A = sp.random_array((m, n), density=0.2, rng=rng, format="csc")
    program = LinearProgram.from_arrays(rng.random(n) + 1, A, rng.random(m) + 1, np.full(m, INF))
    session = Session(program, options={"presolve": "off", "solver": "simplex"})
    for solve in range(25):
        cost = rng.random(n) + 1
        session.set_cost(cost)
        limit = None if solve < 3 else 8 * longest
        found = session.solve(time_limit=limit)
        longest = max(longest, found.seconds)
        assert found.status == "optimal"
        if solve % 6 == 5:
            assert found.value == pytest.approx(Session(replace(program, c=cost)).solve().value)
    assert limit is not None
    assert session.highs.getRunTime() > limit


@pytest.mark.study
@pytest.mark.parametrize("limit", [0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0])
def test_no_limit_from_a_twentieth_of_a_second_to_ten_makes_a_false_status(limit: float) -> None:
    for seed in range(3):
        for program in (shares(seed, 2000), knapsack(seed, n=34, m=10), knapsack(seed, n=40, m=20)):
            never_false(program, _optima(program), limit)
        program = ordered(seed, 8)
        never_false(program, _optima(program), limit)
        never_false(program, _optima(program), limit, partial_start(program, seed))


@pytest.mark.study
def test_no_part_of_the_seconds_that_a_first_solve_takes_makes_a_false_status() -> None:
    for seed in range(3):
        program = shares(seed, 600)
        seconds = 0.02 + Session(program).solve().seconds
        for part in (0.2, 0.4, 0.6, 0.8, 1.0, 1.1, 1.2, 1.4, 1.6, 2, 3):
            never_false(program, _optima(program), part * seconds)


_known: dict[bytes, float] = {}


def _optima(program: LinearProgram) -> float:
    key = program.c.tobytes() + program.A.data.tobytes()
    if key not in _known:
        found = Session(program).solve_finely()
        assert found.status == "optimal"
        assert found.value is not None
        _known[key] = found.value
    return _known[key]


# --- starts ------------------------------------------------------------------------------------------------------------


def ordered(seed: int, n: int = 6) -> LinearProgram:
    """1 | r_j | sum w_j C_j with big-M rows: columns C_j, then one binary a pair, 1 where i precedes j."""
    rng = np.random.default_rng(seed)
    release, last, weight = rng.integers(0, 10, n), rng.integers(1, 12, n), rng.integers(1, 6, n)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    most = float(release.max() + last.sum())
    A, low = np.zeros((2 * len(pairs), n + len(pairs))), []
    for k, (i, j) in enumerate(pairs):
        A[2 * k, [i, j, n + k]] = -1, 1, -most
        A[2 * k + 1, [i, j, n + k]] = 1, -1, most
        low += [float(last[j]) - most, float(last[i])]
    return LinearProgram.from_arrays(
        np.concatenate([weight.astype(float), np.zeros(len(pairs))]),
        sp.csc_array(A),
        np.array(low),
        np.full(len(low), INF),
        lower=np.concatenate([(release + last).astype(float), np.zeros(len(pairs))]),
        upper=np.concatenate([np.full(n, most), np.ones(len(pairs))]),
        integrality=np.arange(n + len(pairs)) >= n,
    )


def partial_start(program: LinearProgram, seed: int) -> tuple[Any, Any]:
    """Half of the binaries as a random order has them, or one of them at a half."""
    rng, integer = np.random.default_rng(seed), np.flatnonzero(program.integrality)
    n = len(program.c) - len(integer)
    rank = rng.permutation(n)
    x, known = np.zeros(len(program.c)), np.zeros(len(program.c), dtype=bool)
    x[integer] = [float(rank[i] < rank[j]) for i in range(n) for j in range(i + 1, n)]
    known[rng.choice(integer, len(integer) // 2, replace=False)] = True
    if seed % 3 == 2:
        known[integer], x[integer[0]] = True, 0.5
    return x, known


def bounds_on_the_way(seed: int, n: int) -> None:
    program = ordered(seed, n)
    optimum = Session(program).solve().value
    assert optimum is not None
    session, seen = Session(program), list[Progress]()
    session.mip_start(*partial_start(program, seed))
    found = session.solve(progress=seen.append)
    assert found.value == pytest.approx(optimum)
    assert found.bound == pytest.approx(optimum)
    assert seen
    for event in seen:  # nan: none yet
        assert not event.bound > optimum + 1e-6, (seed, event, optimum)
        assert not event.incumbent < optimum - 1e-6, (seed, event, optimum)


def test_bounds_on_the_way_are_never_those_of_the_program_that_completes_a_start() -> None:
    for seed in range(8):
        bounds_on_the_way(seed, 5)


@pytest.mark.study
@pytest.mark.parametrize("part", range(20))
def test_no_bound_on_the_way_is_above_the_optimum(part: int) -> None:
    for seed in range(70 * part, 70 * part + 70):
        bounds_on_the_way(seed, 4 + seed % 3)


def closed_on_the_way(seed: int) -> None:
    """`disjunctive` from a bad schedule of which half the order is told: its interval must not close above the optimum."""
    rng = np.random.default_rng(seed)
    jobs = [
        osd.Job(str(k), arrival=int(rng.integers(0, 8)), gpus=1, duration=int(rng.integers(1, 9)), weight=int(w))
        for k, w in enumerate(rng.integers(1, 5, 6))
    ]
    instance, name = osd.Instance(jobs, "1x1").relative, "total_weighted_completion_time"
    state = SolveState(instance, get_objective(name))
    state.offer(best_list_schedule(instance, "makespan"))
    formulation = FORMULATIONS.get("disjunctive")
    model = formulation.build(instance, name)
    optimum = there(Session(compile(model)).solve().value)
    there(formulation.warm_start)(model, state.schedule)
    for variable in list(model.before.values())[::2]:
        variable.set_value(None)
    program = compile(model)
    session = Session(program)
    session.mip_start(*program.values())
    session.solve(progress=state.listen)
    assert all(not event.bound > optimum + 1e-6 for event in state.trace), seed
    assert not (state.closed and float(there(state.value)) > optimum + 1e-6), seed


def there(value: Any) -> Any:
    assert value is not None
    return value


def test_a_proof_under_a_start_that_leaves_columns_out_does_not_close_above_the_optimum() -> None:
    for seed in (1, 2):  # with the bounds of the completing program both closed
        closed_on_the_way(seed)


@pytest.mark.study
def test_no_proof_under_a_partial_start_closes_above_the_optimum() -> None:
    for seed in range(300):
        closed_on_the_way(seed)


def test_what_comes_of_a_start_does_not_depend_on_who_listens() -> None:
    program = ordered(3)
    alone, heard = Session(program), Session(program)
    for session in (alone, heard):
        session.mip_start(*partial_start(program, 0))
    one, two = alone.solve(), heard.solve(progress=lambda _: None)
    assert (one.value, one.nodes, one.iterations) == (two.value, two.nodes, two.iterations)


# --- what one release gets wrong ---------------------------------------------------------------------------------------


def test_the_installed_highs_returns_the_solution_whose_value_it_tells() -> None:
    """min c x over 0 <= 4 x_0 - 2 x_3 - 3 x_5 <= 2, binary, from a start that is worth 16; the optimum is x = 0.

    HiGHS 1.16.0 says 0 and returns the start. A release that fails here is none to solve with.
    """
    program = LinearProgram.from_arrays(
        np.array([9.0, 7, 1, 2, 8, 8, 8]),
        sp.csc_array([[4.0, 0, 0, -2, 0, -3, 0]]),
        np.array([0.0]),
        np.array([2.0]),
        upper=np.ones(7),
        integrality=np.ones(7, dtype=bool),
    )
    session = Session(program)
    session.mip_start(np.array([0.0, 1, 1, 0, 0, 0, 1]))
    session.solve()  # it raises where c x is not the value; told again here, without it
    x = np.asarray(session.highs.allVariableValues())
    assert float(program.c @ x) == session.highs.getInfo().objective_function_value == 0.0


def test_an_lp_that_ends_without_a_verdict_is_solved_by_the_other_simplex_method(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = covering()
    expected = Session(program).solve().value
    for first, second in ((PRIMAL, DUAL), (DUAL, PRIMAL)):
        session, used = Session(program, options={"presolve": "off", "simplex_strategy": first}), list[int]()
        status = session.highs.getModelStatus

        def unknown_once(session: Session = session, used: list[int] = used, status: Any = status) -> Any:
            used.append(session.highs.getOptionValue("simplex_strategy")[1])
            return highspy.HighsModelStatus.kUnknown if len(used) == 1 else status()

        monkeypatch.setattr(session.highs, "getModelStatus", unknown_once)
        found = session.solve()
        assert used == [first, second]
        assert (found.status, found.value) == ("optimal", pytest.approx(expected))
        assert session.highs.getOptionValue("simplex_strategy")[1] == first  # the next solve is as before


def test_columns_are_generated_on_where_the_primal_simplex_ends_without_a_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended, used = Session._ended, list[int]()

    def lost_on_every_second(self: Session, *arguments: Any) -> Any:
        used.append(self.highs.getOptionValue("simplex_strategy")[1])
        found = ended(self, *arguments)
        return None if used[-1] == PRIMAL and used.count(PRIMAL) % 2 == 0 else found

    def price(y: Any) -> PricedColumns:
        worth = patterns @ y
        best = patterns[[worth.argmax()]]
        return PricedColumns(np.ones(1), sp.csc_array(best.T.astype(float)), (y @ [4, 3]) / max(1.0, worth.max()))

    monkeypatch.setattr(Session, "_ended", lost_on_every_second)
    patterns = np.array([[3, 0], [1, 1], [0, 2], [1, 0]])
    start = PricedColumns(np.ones(2), sp.csc_array(np.array([[1.0, 0.0], [0.0, 1.0]])))
    found = generate_columns(price, np.array([4.0, 3.0]), np.full(2, INF), start=start)
    assert (found.value, found.bound) == (pytest.approx(17 / 6), pytest.approx(17 / 6))
    assert DUAL in used


# --- bounds that are none ----------------------------------------------------------------------------------------------


def test_what_is_no_bound_is_not_told_as_one() -> None:
    mip = knapsack()
    assert Session(mip).solve(node_limit=0).bound is None
    assert Session(mip).solve(time_limit=0.0).bound is None
    never = replace(mip, row_upper=np.full(len(mip.row_upper), -1.0))
    for program in (never, replace(never, sense=1), replace(never, integrality=np.zeros(len(mip.c), dtype=bool))):
        found = Session(program).solve()
        assert (found.status, found.value, found.bound, found.x) == ("infeasible", None, None, None)
    lp = Session(covering())
    lp.highs.setOptionValue("simplex_iteration_limit", 0)
    found = lp.solve()
    assert (found.status, found.bound) == ("limit", None)


@pytest.mark.parametrize(
    ("told", "solved", "bound"),
    [(0.0, False, None), (12.0, False, 12.0), (0.0, True, 0.0), (-3.0, True, -3.0), (-math.inf, False, None)],
)
def test_cp_sat_says_null_before_it_has_a_bound(told: float, solved: bool, bound: float | None) -> None:
    assert proved(told, solved) == bound
