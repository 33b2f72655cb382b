"""Every method of solve() against exhaustion, and what a task lets in."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from brute_force import optimum
from examples import examples
from hypothesis import given, settings, strategies as st

from optsched.bounds.certificate import Certificate
from optsched.check.referee import check_schedule
from optsched.errors import InputError, OptschedError
from optsched.models import FORMULATIONS
from optsched.problem.instance import Cluster, Instance, Job
from optsched.problem.objectives import get_objective
from optsched.problem.schedule import Schedule
from optsched.solvers.method import METHODS
from optsched.solvers.methods.formulations import formulation_method
from optsched.solvers.session import Progress
from optsched.solvers.solution import Solution
from optsched.solvers.solve import model_names, solve
from optsched.solvers.solve_state import SolveState, common_step
from solvers.rigid_instances import OBJECTIVES, SUMS, drawn_gangs, one_machine, rigid_instances


def holds(instance: Instance, solution: Solution) -> bool:
    """Schedule, value and certificate, looked at from outside."""
    assert solution.schedule is not None
    assert check_schedule(instance, solution.schedule, preemptive=False) == []
    goal = get_objective(solution.objective)
    # exactly where time counts from the first arrival; on the log's clock as far as that resolves the completions
    counted, part = solution.schedule.relative, goal.clock_part(instance)
    assert solution.value_exact == part + goal.exact_of(instance.relative, counted.completion.tolist())
    ulps = np.spacing(solution.schedule.completion) * np.maximum(instance.weight, 1)
    read = goal.exact_of(instance, solution.schedule.completion.tolist())
    assert abs(solution.value_exact - read) <= (float(ulps.sum()) if instance.epoch else 0)
    if solution.certificate is not None:
        solution.certificate.verify(instance)
        assert solution.bound_exact is not None
        assert solution.certificate.value <= solution.bound_exact
    return True


@given(rigid_instances(most=5), st.sampled_from(OBJECTIVES))
@settings(max_examples=examples(40))
def test_tiny_instances_are_solved_to_optimality(instance: Instance, objective: str) -> None:
    solution = solve(instance, objective)
    assert holds(instance, solution)
    assert solution.status == "optimal"
    assert solution.value_exact == solution.bound_exact == optimum(instance, objective)
    assert solution.gap == 0


@given(rigid_instances(most=4), st.sampled_from(OBJECTIVES), st.sampled_from(sorted({*model_names()} - {"cp-sat"})))
@settings(max_examples=examples(60))
def test_every_model_proves_the_optimum_or_bounds_it(instance: Instance, objective: str, model: str) -> None:
    task = SolveState(instance, get_objective(objective))
    task.search(0)
    method = METHODS.get(model) if model in METHODS else formulation_method(model)
    if method.applies(task) is not None:
        with pytest.raises(InputError, match="does not apply"):
            solve(instance, objective, model=model)
        return
    solution = solve(instance, objective, model=model)
    best = optimum(instance, objective)
    assert holds(instance, solution)
    assert solution.model == model
    if not (FORMULATIONS.get(model) if model in FORMULATIONS else method).exact:
        assert solution.bound_exact <= best <= solution.value_exact
    else:
        assert (solution.status, solution.value_exact, solution.bound_exact) == ("optimal", best, best)


@pytest.mark.parametrize("objective", ["total_weighted_flow_time", "total_weighted_tardiness"])
def test_three_roads_to_one_optimum(objective: str) -> None:
    models = ("partial-schedules", "reduced-cost-fixing", "rigid-time-indexed")
    found = [solve(drawn_gangs(0, 9), objective, model=model) for model in models]
    assert {(solution.status, solution.value_exact) for solution in found} == {("optimal", found[0].value_exact)}
    assert found[1].size.columns < found[2].size.columns


def test_one_machine_takes_the_road_of_one_machine() -> None:
    rng = np.random.default_rng(2)
    jobs = [(int(rng.integers(0, 40)), int(rng.integers(1, 20)), int(rng.integers(1, 9))) for _ in range(12)]
    instance = one_machine(*jobs)
    solution = solve(instance, "total_weighted_completion_time")
    assert (solution.model, solution.solver, solution.status) == (
        "sequence-branching",
        "dynamic programming",
        "optimal",
    )
    assert solution.value == solve(instance, "total_weighted_completion_time", model="time-indexed").value
    # eight GPUs and gangs of more than half of them are one machine too
    gangs = Instance([Job(f"j{j}", r, 5, p, weight=w) for j, (r, p, w) in enumerate(jobs)], Cluster.parse("1x8"))
    same = solve(gangs, "total_weighted_completion_time")
    assert (same.model, same.value) == ("sequence-branching", solution.value)


def test_types_take_the_road_of_placements() -> None:
    jobs = [
        Job("a", gpus=2, duration=3, gpu_types=("V100",)),
        Job("b", gpus=2, duration=2),
        Job("c", gpus=1, duration=4, gpu_types=("V100",)),
        Job("d", gpus=1, duration=1, gpu_types=("K80",)),
        Job("e", gpus=3, duration=2),
    ]
    instance = Instance(jobs, Cluster.parse("1x2:V100+1x1:K80"))
    solution = solve(instance, "total_completion_time")
    assert holds(instance, solution)
    assert (solution.model, solution.status) == ("rigid-placed", "optimal")


def test_real_valued_times_on_one_machine_are_proved() -> None:
    instance = one_machine((0, 0.3, 1), (0.1, 0.2, 3), (0.15, 0.7, 1), (0.4, 0.1, 5))
    solution = solve(instance, "total_weighted_completion_time")
    assert holds(instance, solution)
    assert (solution.model, solution.status) == ("partial-schedules", "optimal")
    assert solution.value == pytest.approx(float(optimum(instance, "total_weighted_completion_time")), rel=1e-12)


def test_a_combinatorial_bound_may_be_all_it_takes() -> None:
    instance = one_machine((0, 3, 1), (1, 1, 1), (9, 2, 1))
    solution = solve(instance, "makespan")
    assert (solution.status, solution.model, solution.solver) == ("optimal", "list", "combinatorial bound")
    assert solution.bound_by == "certificate"
    assert solution.certificate is not None
    assert solution.certificate.value == solution.value == 11


def long(n: int, types: tuple[str, ...] | None = None) -> Instance:
    rng = np.random.default_rng(5)
    jobs = [
        Job(
            f"j{j}",
            arrival=float(rng.random() * 1e5),
            gpus=int(rng.choice([1, 2, 4, 8])),
            duration=float(rng.random() * 3e4) + 1,
            gpu_types=types,
        )
        for j in range(n)
    ]
    return Instance(jobs, Cluster.parse("1x8:V100" + "+1x1:K80" * bool(types)))


def test_real_valued_gangs_are_proved() -> None:
    instance = long(10)
    solution = solve(instance, "total_flow_time")
    assert holds(instance, solution)
    assert (solution.status, solution.model) == ("optimal", "partial-schedules")


def test_where_no_exact_method_fits_there_is_an_interval() -> None:
    instance = long(15, ("V100",))
    solution = solve(instance, "total_flow_time")
    assert holds(instance, solution)
    assert (solution.status, solution.model) == ("limit", "list")
    assert "no exact method fits" in solution.note
    assert 0 < solution.bound < solution.value
    assert solution.bound_exact == solution.certificate.value
    assert 0 < solution.gap < 1


def test_at_a_time_limit_there_is_an_interval() -> None:
    instance = drawn_gangs(3, 16)
    solution = solve(instance, "total_weighted_flow_time", time_limit=1e-6)
    assert holds(instance, solution)
    assert solution.status in ("limit", "optimal")
    assert solution.bound_exact <= solution.value_exact
    full = solve(instance, "total_weighted_flow_time", time_limit=60)
    assert solution.bound_exact <= full.value_exact <= solution.value_exact
    for model in ("rigid-time-indexed", "sequence-branching", "disjunctive"):
        machine = one_machine(
            *((r, p, 1) for r, p in zip(range(12), (5, 3, 8, 2, 7, 6, 1, 9, 4, 5, 3, 2), strict=True))
        )
        limited = solve(machine, "total_flow_time", model=model, time_limit=1e-6)
        assert holds(machine, limited)
        assert limited.bound_exact <= limited.value_exact


def test_progress_is_an_interval_that_shrinks() -> None:
    seen: list[Progress] = []
    solution = solve(drawn_gangs(3, 12), "total_weighted_flow_time", progress=seen.append)
    values = [p.incumbent for p in seen if not np.isnan(p.incumbent)]
    bounds = [p.bound for p in seen if not np.isnan(p.bound)]
    assert values == sorted(values, reverse=True)
    assert bounds == sorted(bounds)
    assert values[-1] == bounds[-1] == solution.value
    assert seen[-1].gap == 0
    assert "bound" in str(seen[-1])


@pytest.mark.parametrize("model", ["rigid-time-indexed", "disjunctive", "positional", "time-indexed"])
def test_a_horizon_that_cannot_be_met_is_explained(model: str) -> None:
    instance = one_machine((0, 4, 1), (0, 5, 1), (1, 3, 1))
    tight = solve(instance, "total_completion_time", model=model, horizon=12)
    assert (tight.status, tight.value) == ("optimal", solve(instance, "total_completion_time").value)
    over = solve(instance, "total_completion_time", model=model, horizon=11)
    assert (over.status, over.value, over.schedule, over.gap) == ("infeasible", None, None, None)
    assert "no schedule completes" in over.note
    assert "11 s" in over.note
    alone = solve(instance, "total_completion_time", model=model, horizon=4)
    assert alone.status == "infeasible"
    assert "4" in alone.note


def test_a_conflict_names_its_jobs() -> None:
    instance = one_machine((0, 4, 1), (0, 5, 1), (1, 3, 1))
    note = solve(instance, "total_completion_time", model="time-indexed", horizon=11).note
    assert "these cannot all hold: " in note
    assert "once[job j0]" in note or "once[job j1]" in note


def test_a_horizon_changes_the_optimum_and_list_schedules_obey_it() -> None:
    # Smith's rule would finish the long job last, at 12; by 11 the late job must come after it
    instance = Instance([Job("long", 0, 1, 8), Job("late", 9, 1, 2), Job("s", 0, 1, 1)], Cluster.machines(1))
    free = solve(instance, "total_completion_time", model="time-indexed")
    bound = solve(instance, "total_completion_time", model="time-indexed", horizon=11)
    assert (free.value, bound.value) == (21, 21)
    assert bound.schedule.completion.max() <= 11
    auto = solve(instance, "total_completion_time", horizon=11)
    assert (auto.status, auto.value) == ("optimal", 21)


def test_relaxations_give_bounds_and_duals() -> None:
    instance = one_machine((0, 3, 1), (1, 1, 1))
    for model in ("srpt-mean-busy-time", "srpt-mean-busy-time-cvxpy"):
        solution = solve(instance, "total_completion_time", model=model)
        assert solution.status == "feasible"
        assert solution.value == 7
        assert "relaxation" in solution.note
        # the LP gives 17/3; SRPT's certificate, 6, is better and is kept
        assert solution.bound == 6
        assert len(solution.duals) == solution.size.rows
        assert any(value != 0 for value in solution.duals.values())


def test_json_is_the_contract(tmp_path: object) -> None:
    document = solve(one_machine((0, 3, 1), (1, 1, 1)), "total_completion_time", model="time-indexed").to_json()
    keys = "status objective value bound gap model solver rows columns nonzeros seconds"
    assert list(document) == keys.split()
    assert document["status"] == "optimal"
    assert document["value"] == document["bound"] == 7
    assert document["gap"] == 0
    assert document["solver"].startswith("HiGHS 1.")
    assert document["nonzeros"] > 0
    json.dumps(document, allow_nan=False)
    over = solve(one_machine((0, 3, 1)), "total_completion_time", model="time-indexed", horizon=2).to_json()
    assert (over["value"], over["gap"]) == (None, None)
    json.dumps(over, allow_nan=False)


def test_nothing_to_do() -> None:
    solution = solve(Instance([], Cluster.machines(2)), "total_flow_time")
    assert (solution.status, solution.value, solution.bound) == ("optimal", 0, 0)
    free = solve(one_machine((0, 3, 0), (0, 1, 0)), "total_weighted_tardiness")
    assert (free.status, free.value) == ("optimal", 0)


def test_a_value_of_zero_with_a_lower_bound_has_no_finite_gap() -> None:
    solution = Solution("x", "limit", Fraction(0), Fraction(-1), "solver", None, None, "m", "s", 0.0)
    assert solution.gap == float("inf")
    assert solution.to_json()["gap"] is None


def test_wrong_names_and_models_that_do_not_apply_are_refused() -> None:
    instance = drawn_gangs(1, 3)
    with pytest.raises(InputError, match="did you mean rigid-time-indexed"):
        solve(instance, model="rigid-time-index")
    with pytest.raises(InputError, match="does not apply: two jobs can run at the same time"):
        solve(instance, model="sequence-branching")
    with pytest.raises(InputError, match="does not support a horizon"):
        solve(instance, model="reduced-cost-fixing", horizon=5)
    with pytest.raises(InputError, match="there is no objective"):
        solve(instance, "total_happiness")
    with pytest.raises(InputError, match="no duration"):
        solve(Instance([Job("a", iterations=3, profile="x")], Cluster.machines(1)))


def test_a_schedule_that_the_referee_rejects_is_never_kept() -> None:
    instance = one_machine((0, 3, 1), (0, 2, 1))
    task = SolveState(instance, get_objective("total_completion_time"))
    overlapping = Schedule.from_starts(instance.with_cluster("1x2"), [0.0, 0.0])
    with pytest.raises(OptschedError, match="the referee rejects"):
        task.offer(overlapping)
    assert task.schedule is None


def test_bounds_are_rounded_only_where_values_lie_on_a_grid() -> None:
    goal = get_objective("total_weighted_completion_time")
    even = SolveState(one_machine((0, 2, 2), (0, 4, 6)), goal)
    assert even.step == 4
    even.raise_bound(17.2, "solver")
    assert (even.bound, even.bound_by) == (Fraction(20), "solver")
    real = SolveState(one_machine((0, 0.3, 1), (0, 0.1, 1)), goal)
    assert real.step is None
    real.raise_bound(0.45, "solver")
    assert real.bound == Fraction(0.45)


@pytest.mark.parametrize(
    ("parts", "step"),
    [
        ([Fraction(1, 2), Fraction(1, 3)], Fraction(1, 6)),
        ([Fraction(4), Fraction(6)], Fraction(2)),
        ([Fraction(0), Fraction(3)], Fraction(3)),
        ([Fraction(0)], Fraction(0)),
    ],
)
def test_common_step(parts: list[Fraction], step: Fraction) -> None:
    assert common_step(parts) == step


@given(rigid_instances(most=4), st.sampled_from(SUMS))
@settings(max_examples=20)
def test_values_of_list_schedules_lie_on_the_grid(instance: Instance, objective: str) -> None:
    task = SolveState(instance, get_objective(objective))
    task.search(0)
    assert task.step is not None
    assert task.value is not None
    assert ((task.value - task.values_from) / task.step).denominator == 1


def test_the_certificate_of_a_solution_is_a_file_that_verifies(tmp_path: object) -> None:
    instance = drawn_gangs(6, 8)
    solution = solve(instance, "total_weighted_flow_time")
    path = f"{tmp_path}/certificate.json"
    solution.certificate.save(path)
    Certificate.load(path).verify(instance)
