"""Immediate dispatch: against a simulation in fractions, and its dual solutions against optima and linear programs."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from brute_force import preemptive_optimum
from examples import examples
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from optsched.check.referee import check_schedule, schedule_value
from optsched.errors import InputError
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.evaluation.theorem_runs import judge_at_speed
from optsched.guarantees.judge import judge
from optsched.guarantees.speed import faster
from optsched.guarantees.unrelated_machines import (
    DUAL_FITTING,
    FASTER_DISPATCH,
    OBJECTIVE,
    FlowDual,
    UnrelatedMachines,
    best_dual,
    dual_of,
    waiting_weight,
)
from optsched.policies.simulate import simulate, specify
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.throughputs import Throughput, Throughputs
from policies.unrelated import Row, unrelated

MORE = 1 + Fraction(1, 10**9)


@st.composite
def row_lists(draw: st.DrawFn, most: int = 7) -> list[Row]:
    m = draw(st.integers(1, 3))
    seconds = st.tuples(*[st.sampled_from([0, 1, 2, 3, 4, 6])] * m).filter(any)
    rows = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5), seconds), min_size=1, max_size=most))
    first = min(r for r, _, _ in rows)
    return [(r - first, w, p) for r, w, p in rows]


def in_fractions(rows: list[Row]) -> list[Fraction]:
    """Completions: a second at a time is enough, as all seconds are whole and nobody stops between arrivals."""
    left, bound = {}, dict[int, int]()
    done = [Fraction(0)] * len(rows)
    for now in range(200):
        for j, (r, w, seconds) in enumerate(rows):
            if r != now:
                continue
            added = {}
            for i, p in enumerate(seconds):
                mine = [k for k in left if bound[k] == i]
                ahead = [k for k in mine if Fraction(rows[k][1], left[k]) >= Fraction(w, p or 1)]
                behind = sum(rows[k][1] for k in mine if k not in ahead)
                if p:
                    added[i] = w * (sum(left[k] for k in ahead) + p) + p * behind
            bound[j] = min(added, key=lambda i: (added[i], i))
            left[j] = seconds[bound[j]]
        for i in set(bound.values()):
            mine = [k for k in left if bound[k] == i]
            if mine:
                k = min(mine, key=lambda k: (-Fraction(rows[k][1], left[k]), rows[k][0], k))
                left[k] -= 1
                if not left[k]:
                    del left[k]
                    done[k] = Fraction(now + 1)
    return done


def proved(machines: UnrelatedMachines, dual: FlowDual) -> Fraction:
    """The value of a dual solution, every constraint looked at in fractions at every step of beta."""
    theta, columns = Fraction(dual.theta), (machines.release, machines.weight, dual.alpha)
    assert 0 <= theta <= 1
    assert len(dual.beta) == machines.rate.shape[0]
    for i, steps in enumerate(dual.beta):
        times, values = (list(map(Fraction, each.tolist())) for each in (steps.time, steps.value))
        assert times == sorted(set(times))
        assert not values or (values[-1] == 0 and min(values) >= 0)
        for j, (release, weight, alpha) in enumerate(zip(*(map(Fraction, x.tolist()) for x in columns), strict=True)):
            p = machines.seconds(i, j)
            begun = [v for t, v in zip(times, values, strict=True) if t <= release]
            later = [(t, v) for t, v in zip(times, values, strict=True) if t > release]
            for t, v in [(release, begun[-1] if begun else Fraction(0)), *later] if p is not None else []:
                least = p * v + weight * ((1 - theta) * (t - release) + theta * p)
                assert 0 <= alpha <= least, f"alpha of job {j} on machine {i} at {float(t)} s"
    return dual.value


@settings(max_examples=examples(25))
@given(row_lists())
def test_against_a_simulation_in_fractions(rows: list[Row]) -> None:
    run = simulate(unrelated(rows, OBJECTIVE), "immediate-dispatch")
    assert check_schedule(run.instance, run.schedule) == []
    assert run.schedule.completion.tolist() == pytest.approx([float(c) for c in in_fractions(rows)], rel=1e-12)


@settings(max_examples=examples(10))
@given(row_lists(), st.sampled_from([Fraction(9, 8), Fraction(3, 2), Fraction(2), Fraction(4)]))
def test_with_more_speed_every_run_proves_the_factor_of_the_theorem(rows: list[Row], speed: Fraction) -> None:
    instance = unrelated(rows, OBJECTIVE)
    run = simulate(faster(instance, speed), "immediate-dispatch")
    dual = dual_of(run, speed, instance)
    bound = proved(UnrelatedMachines.of(instance), dual)  # every constraint, in fractions
    value = schedule_value(run.instance, run.schedule, OBJECTIVE)
    assert value <= FASTER_DISPATCH.ratio(speed) * bound * MORE
    found = judge_at_speed(FASTER_DISPATCH, "immediate-dispatch", instance, speed)
    assert found.holds is True
    assert found.bound is not None
    assert found.bound >= float(bound) * (1 - 1e-12)


def middle_of_slots(instance: Instance, theta: float) -> float:
    """The linear program with slots of a second, whose middles are paid for: no less than with any times."""
    machines = UnrelatedMachines.of(instance)
    slots = int(machines.release.max() + (machines.work / machines.rate.max(axis=0)).sum()) + 1
    m, n = machines.rate.shape
    keys = [
        (i, j, t)
        for i in range(m)
        for j in range(n)
        for t in range(int(machines.release[j]), slots)
        if machines.rate[i, j] > 0
    ]
    i, j, t = np.array(keys).T
    per = machines.rate[i, j] / machines.work[j]
    cost = machines.weight[j] * ((1 - theta) * (t + 0.5 - machines.release[j]) * per + theta)
    column = np.arange(len(keys))
    done = coo_matrix((-per, (j, column)), shape=(n, len(keys)))
    busy = coo_matrix((np.ones(len(keys)), (i * slots + t, column)), shape=(m * slots, len(keys)))
    first = linprog(
        cost, A_ub=np.vstack([done.toarray(), busy.toarray()]), b_ub=np.concatenate([-np.ones(n), np.ones(m * slots)])
    )
    assert first.status == 0
    return float(first.fun)


@settings(max_examples=examples(8))
@given(row_lists(most=5))
def test_the_bound_is_no_more_than_the_program(rows: list[Row]) -> None:
    instance = unrelated(rows, OBJECTIVE)
    dual = dual_of(simulate(instance, "immediate-dispatch"))
    assert proved(UnrelatedMachines.of(instance), dual) <= middle_of_slots(instance, dual.theta) * (1 + 1e-7)


@settings(max_examples=examples(8))
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3), st.integers(1, 4)), min_size=1, max_size=4),
    st.integers(1, 2),
)
def test_the_bound_is_no_more_than_the_optimum(rows: list[tuple[int, int, int]], m: int) -> None:
    first = min(r for r, _, _ in rows)
    jobs = [Job(f"{j}", arrival=r - first, duration=p, weight=w) for j, (r, w, p) in enumerate(rows)]
    instance = Instance(jobs, f"1x{m}", objective=OBJECTIVE)
    run, spec = simulate(instance, "immediate-dispatch"), specify("immediate-dispatch")
    bound = DUAL_FITTING.proves(spec.policy, run)
    assert bound is not None
    assert 0 < bound <= preemptive_optimum(instance, OBJECTIVE)
    assert bound * DUAL_FITTING.ratio(spec.policy, run) == schedule_value(instance, run.schedule, OBJECTIVE)
    assert judge(DUAL_FITTING, spec.policy, run, OptimumBounds(instance, [run])).holds is True


def test_an_alpha_that_is_a_little_larger_is_not_feasible() -> None:
    rows = [(0, 1, (4, 6)), (0, 2, (3, 1)), (1, 5, (1, 2)), (2, 1, (2, 0)), (2, 3, (6, 4))]
    instance = unrelated(rows, OBJECTIVE)
    machines, dual = UnrelatedMachines.of(instance), dual_of(simulate(instance, "immediate-dispatch"))
    assert proved(machines, dual) == dual.value > 0
    for j in range(dual.alpha.size):
        more = dual.alpha * np.where(np.arange(dual.alpha.size) == j, 1 + 1e-12, 1.0)
        with pytest.raises(AssertionError, match=f"alpha of job {j}"):
            proved(machines, dataclasses.replace(dual, alpha=more))


@settings(max_examples=examples(15))
@given(row_lists(), st.floats(0, 1), st.floats(0, 3))
def test_any_function_proves_something_true(rows: list[Row], theta: float, factor: float) -> None:
    instance = unrelated(rows, OBJECTIVE)
    run = simulate(instance, "immediate-dispatch")
    dual = best_dual(UnrelatedMachines.of(instance), [steps.times(factor) for steps in waiting_weight(run)], theta)
    assert proved(UnrelatedMachines.of(instance), dual) <= schedule_value(instance, run.schedule, OBJECTIVE)


def test_what_the_theorems_are_not_about() -> None:
    placement = specify("immediate-dispatch").placement
    gangs = Instance([Job("a", gpus=2, duration=3)], "1x2")
    assert DUAL_FITTING.assumptions(specify("immediate-dispatch").policy, placement, gangs)
    assert DUAL_FITTING.assumptions(specify("immediate-dispatch:restart=1").policy, placement, gangs)
    with pytest.raises(InputError, match="at least 9/8"):
        judge_at_speed(FASTER_DISPATCH, "immediate-dispatch", unrelated([(0, 1, (1,))], OBJECTIVE), Fraction(1))


def test_a_gang_runs_when_no_denser_job_holds_its_gpus() -> None:
    # b is denser than a, for which one GPU is left over; c, heavy and short, interrupts the gang
    jobs = [Job("a", gpus=2, duration=6), Job("b", arrival=1, duration=2), Job("c", arrival=4, duration=1, weight=9)]
    run = simulate(Instance(jobs, "1x2", objective=OBJECTIVE), "immediate-dispatch")
    assert run.schedule.completion.tolist() == [9, 3, 5]


@pytest.mark.study
@pytest.mark.parametrize("seed", range(40))
def test_more_jobs_with_real_times_on_more_machines(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 6)), 60
    rates = {(f"{j}", f"m{i}", 1): Throughput(float(rng.random() * 9)) for j in range(n) for i in range(m)}
    jobs = [
        Job(f"{j}", arrival=float(r), iterations=float(w), profile=f"{j}", weight=float(v))
        for j, (r, w, v) in enumerate(zip(rng.random(n) * n, rng.exponential(9, n), rng.random(n), strict=True))
    ]
    cluster = Cluster(tuple(NodeGroup(1, gpu=f"m{i}") for i in range(m)))
    instance = Instance(jobs, cluster, objective=OBJECTIVE, throughputs=Throughputs(rates)).relative
    for speed in (Fraction(9, 8), Fraction(2), Fraction(7, 2)):
        run = simulate(faster(instance, speed), "immediate-dispatch")
        dual = dual_of(run, speed, instance)
        bound = proved(UnrelatedMachines.of(instance), dual) if seed < 4 else dual.value
        assert schedule_value(run.instance, run.schedule, OBJECTIVE) <= FASTER_DISPATCH.ratio(speed) * bound * MORE
        assert bound <= simulate(instance, "immediate-dispatch").value(OBJECTIVE)
