"""The contract of every registered formulation: optimum or bound, schedule, warm start, refusal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import pyomo.environ as pyo
import pytest
from brute_force import optimum as best_of_all_orders
from examples import examples
from hypothesis import given, settings, strategies as st
from tiny_instances import tiny_instances

from optsched.check.referee import check_schedule
from optsched.errors import InfeasibleError, InputError
from optsched.models import FORMULATIONS
from optsched.models.latest_starts import latest_completions
from optsched.problem.instance import Cluster, Instance, Job
from optsched.problem.objectives import get_objective
from optsched.problem.schedule import Schedule, Segment

EXPECTED = {
    "disjunctive",
    "positional",
    "rigid-placed",
    "rigid-time-indexed",
    "rigid-time-indexed-cvxpy",
    "srpt-mean-busy-time",
    "srpt-mean-busy-time-cvxpy",
    "srpt-slots",
    "time-indexed",
}
REGULAR = (
    "total_completion_time",
    "total_flow_time",
    "total_weighted_completion_time",
    "total_weighted_flow_time",
    "total_weighted_tardiness",
    "makespan",
    "max_flow_time",
)
CLUSTERS = ("1x1", "3x1", "1x4", "2x2", "1x3+1x1")
# Values are integers. HiGHS lets a binary be 1e-6 off, which a big M multiplies (up to 60, weights up to 5, four jobs).
EXACT = 2e-3
Solve = Callable[[Any], float]


@st.composite
def cases(draw: st.DrawFn) -> Instance:
    """Tiny jobs on a small cluster; gangs only where the cluster has nodes with several GPUs."""
    cluster = Cluster.parse(draw(st.sampled_from(CLUSTERS)))
    return draw(tiny_instances(cluster, most=4, widest=4 if cluster.node_count < 3 and cluster.gpus > 1 else 1))


def violations(model: Any) -> list[str]:
    """Rows, bounds and integrality that the values of the variables break."""
    if isinstance(model, cp.Problem):  # bounds and integrality are looked at when values are set
        return [str(row) for row in model.constraints if np.max(row.violation()) > 1e-9]
    rows = [
        row.name
        for row in model.component_data_objects(pyo.Constraint, active=True)
        if row.lslack() < -1e-9 or row.uslack() < -1e-9
    ]
    variables = model.component_data_objects(pyo.Var)
    return rows + [
        v.name
        for v in variables
        if v.value is None
        or (v.lb is not None and v.value < v.lb - 1e-9)
        or (v.ub is not None and v.value > v.ub + 1e-9)
        or (not v.is_continuous() and v.value not in (0, 1))
    ]


def one_after_the_other(instance: Instance, order: Sequence[int], pause: float = 0.0) -> Schedule:
    """A feasible, wasteful schedule: the jobs alone, in an order, with pauses between them."""
    now, starts = float(instance.arrival.max()), np.empty(instance.n)
    for j in order:
        starts[j] = now
        now += instance.duration[j] + pause
    return Schedule.from_starts(instance, starts)


def test_all_are_found() -> None:
    assert set(FORMULATIONS.names()) >= EXPECTED
    for name, formulation in FORMULATIONS.items():
        assert formulation.name == name
        assert formulation.schedule_class in ("gang", "gang-nonpreemptive", "kv-cache")
        assert formulation.exact == (formulation.schedule is not None) == (formulation.warm_start is not None)


@settings(max_examples=examples(60))
@given(instance=cases(), objective=st.sampled_from(REGULAR))
def test_optimum_and_bound_against_enumeration(solve: Solve, instance: Instance, objective: str) -> None:
    optimum = float(best_of_all_orders(instance, objective))
    applied = 0
    for name, formulation in FORMULATIONS.items():
        if formulation.applies(instance, objective) is not None:
            continue
        applied += 1
        model = formulation.build(instance, objective)
        relaxed = solve(formulation.build(instance, objective, relax=True))
        value = solve(model)
        assert relaxed <= value + EXACT, name
        if not formulation.exact:
            assert value <= optimum + EXACT, name
            continue
        assert value == pytest.approx(optimum, abs=EXACT), name
        assert formulation.schedule is not None
        schedule = formulation.schedule(model, instance)
        assert check_schedule(instance, schedule, preemptive=False, objective=objective, value=optimum) == []
    assert applied >= 2


@settings(max_examples=examples(40))
@given(instance=cases(), objective=st.sampled_from(REGULAR), data=st.data())
def test_warm_start_is_a_full_feasible_solution(instance: Instance, objective: str, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(instance.n)))
    given_schedule = one_after_the_other(instance, order, pause=data.draw(st.sampled_from([0.0, 0.4])))
    paid = get_objective(objective).of(instance, given_schedule.completion)
    for name, formulation in FORMULATIONS.items():
        if not formulation.exact or formulation.applies(instance, objective) is not None:
            continue
        model = formulation.build(instance, objective)
        assert formulation.warm_start is not None
        assert formulation.schedule is not None
        try:
            formulation.warm_start(model, given_schedule)
        except InputError:
            # worse than the list schedule that is the horizon: of the nodes where its jobs stand, or as they came too late
            assert get_objective(objective).maximum
            assert objective == "max_flow_time" or name in ("rigid-placed", "gang-modes")
            continue
        assert violations(model) == [], name
        schedule = formulation.schedule(model, instance)
        assert check_schedule(instance, schedule, preemptive=False) == []
        value = float(model.objective.value if isinstance(model, cp.Problem) else pyo.value(model.objective))
        assert value == pytest.approx(get_objective(objective).of(instance, schedule.completion), abs=EXACT)
        assert value <= paid + EXACT, name


@settings(max_examples=30)
@given(instance=cases(), objective=st.sampled_from(REGULAR))
def test_a_horizon_from_the_optimum_keeps_it(solve: Solve, instance: Instance, objective: str) -> None:
    optimum = float(best_of_all_orders(instance, objective))
    horizon = latest_completions(instance, objective, optimum)
    for name, formulation in FORMULATIONS.items():
        if formulation.applies(instance, objective) is None and formulation.exact:
            value = solve(formulation.build(instance, objective, horizon=horizon))
            assert value == pytest.approx(optimum, abs=EXACT), name


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_horizon_limits_completions(name: str, solve: Solve) -> None:
    # the short job first: 1 + 4, done by 4; nobody can complete both by 2
    formulation = FORMULATIONS.get(name)
    instance = Instance([Job("a", duration=3), Job("b", duration=1)], Cluster.machines(1))
    assert solve(formulation.build(instance, "total_completion_time", horizon=4.0)) <= 5 + EXACT
    with pytest.raises(InfeasibleError, match="horizon"):
        formulation.build(instance, "total_completion_time", horizon=2.0)


def test_a_horizon_a_job() -> None:
    instance = Instance([Job("a", duration=3), Job("b", duration=1)], Cluster.machines(1))
    model = FORMULATIONS.get("time-indexed").build(instance, "makespan", horizon=np.array([3.0, math.inf]))
    assert sorted(model.start) == [(0, 0), (1, 0), (1, 1), (1, 2), (1, 3)]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_refusals_are_one_clear_line(name: str) -> None:
    formulation = FORMULATIONS.get(name)
    plain = Instance([Job("a", duration=3)], Cluster.machines(1))
    nobody = Instance([], Cluster.machines(1))
    unknown = Instance([Job("a", iterations=5, profile="resnet")], Cluster.machines(1))
    for instance, objective, word in (
        (plain, "total_utility", "total_utility"),
        (nobody, "total_flow_time", "no jobs"),
        (unknown, "total_flow_time", "duration"),
    ):
        reason = formulation.applies(instance, objective)
        assert reason is not None
        assert word in reason
        assert "\n" not in reason
        with pytest.raises(InputError, match=word):
            formulation.build(instance, objective)
    assert formulation.applies(plain, "total_flow_time") is None


@pytest.mark.parametrize("name", sorted(EXPECTED - {"disjunctive", "positional"}))
def test_times_without_a_common_unit_are_refused(name: str) -> None:
    instance = Instance([Job("a", 0, 1, 0.1), Job("b", 0, 1, 0.2), Job("c", 0, 1, 0.3)], Cluster.machines(1))
    reason = FORMULATIONS.get(name).applies(instance, "total_flow_time")
    assert reason is not None
    assert "unit" in reason


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_fractions_of_a_second_and_late_origins(name: str, solve: Solve) -> None:
    # the first job at 10^9 s (a Unix time), everything a multiple of 0.25 s
    formulation, base = FORMULATIONS.get(name), 1e9
    jobs = [Job("a", base, 1, 1.5), Job("b", base + 0.25, 1, 0.5), Job("c", base + 0.25, 1, 0.75)]
    value = solve(formulation.build(Instance(jobs, Cluster.machines(1)), "total_flow_time"))
    # a first: ends 1.5, 2.0, 2.75; b first: 0.75, 1.5 (c), 3.0 (a)
    best = min(1.5 + 1.75 + 2.5, 0.5 + 1.25 + 3.0)
    assert value <= best + 1e-5
    if formulation.exact:
        assert value == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_estimate_of_the_size_is_close(name: str) -> None:
    formulation = FORMULATIONS.get(name)
    jobs = [Job(f"j{j}", 2 * j, 1, 1 + (3 * j) % 7) for j in range(8)]
    instance = Instance(jobs, Cluster.machines(1))
    model = formulation.build(instance, "total_flow_time")
    if isinstance(model, pyo.ConcreteModel):
        rows = model.component_data_objects(pyo.Constraint, active=True)
        built = sum(len(list(row.body.args)) for row in rows)
        assert built <= formulation.size(instance, "total_flow_time") <= 1.5 * built


@pytest.mark.parametrize("name", sorted(EXPECTED - {"srpt-mean-busy-time", "srpt-mean-busy-time-cvxpy", "srpt-slots"}))
def test_fractional_values_are_no_schedule(name: str) -> None:
    formulation = FORMULATIONS.get(name)
    instance = Instance([Job("a", duration=3), Job("b", duration=1)], Cluster.machines(1))
    model = formulation.build(instance, "total_flow_time", relax=True)
    if isinstance(model, cp.Problem):
        model.start.value = np.full(model.start.size, 0.5)
    else:
        for variable in model.component_data_objects(pyo.Var):
            variable.set_value(0.5, skip_validation=True)
    assert formulation.schedule is not None
    with pytest.raises(InputError, match="no integer solution"):
        formulation.schedule(model, instance)


@pytest.mark.parametrize("name", sorted(EXPECTED - {"srpt-mean-busy-time", "srpt-mean-busy-time-cvxpy", "srpt-slots"}))
def test_a_preemptive_schedule_is_no_start(name: str) -> None:
    formulation = FORMULATIONS.get(name)
    instance = Instance([Job("a", duration=3), Job("b", duration=1)], Cluster.machines(1))
    pieces = [(0, 0.0, 1.0), (1, 1.0, 2.0), (0, 2.0, 4.0)]
    preempted = Schedule.from_segments(instance, [Segment(j, ((0, 0),), s, e, e - s) for j, s, e in pieces])
    assert formulation.warm_start is not None
    with pytest.raises(InputError, match="preemption"):
        formulation.warm_start(formulation.build(instance, "total_flow_time"), preempted)


@pytest.mark.parametrize("name", sorted(EXPECTED - {"srpt-mean-busy-time", "srpt-mean-busy-time-cvxpy", "srpt-slots"}))
def test_a_start_beyond_the_horizon_is_refused(name: str) -> None:
    formulation = FORMULATIONS.get(name)
    instance = Instance([Job("a", duration=3), Job("b", 2, duration=1)], Cluster.machines(1))
    model = formulation.build(instance, "total_flow_time", horizon=4.0)
    assert formulation.warm_start is not None
    with pytest.raises(InputError, match="horizon"):
        formulation.warm_start(model, one_after_the_other(instance, [1, 0]))
