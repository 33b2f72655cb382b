"""Order-based models of one machine: against SRPT and enumeration, with real-valued times too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from brute_force import optimum
from examples import examples
from hypothesis import given, settings, strategies as st
from pyomo.repn import generate_standard_repn
from srpt import srpt
from tiny_instances import tiny_instances

from optsched.models import disjunctive, positional
from optsched.problem.instance import Cluster, Instance, Job

Solve = Callable[[Any], float]
EXACT = 1e-6
# a binary may be 1e-6 off; times a big M of at most 60 and weights of at most 6, summed over five jobs
BIG = 2e-3


# times that no slot grid of a useful size holds
@st.composite
def real_valued(draw: st.DrawFn) -> Instance:
    due = st.none() | st.floats(1, 12)
    rows = draw(
        st.lists(st.tuples(st.floats(0, 10), st.floats(0.1, 6), st.integers(1, 5), due), min_size=1, max_size=4)
    )
    return Instance([Job(f"j{j}", r, 1, p, weight=w, due=d) for j, (r, p, w, d) in enumerate(rows)], "1x1")


@settings(max_examples=examples(40))
@given(
    instance=real_valued(),
    objective=st.sampled_from(["total_weighted_flow_time", "total_weighted_tardiness", "makespan", "max_flow_time"]),
)
def test_real_valued_times(solve: Solve, instance: Instance, objective: str) -> None:
    best = float(optimum(instance, objective))
    if disjunctive.applies(instance, objective) is None:
        assert solve(disjunctive.build(instance, objective)) == pytest.approx(best, abs=BIG)
    else:
        assert objective == "total_weighted_tardiness"
        assert best == 0
    if objective == "total_flow_time":
        assert solve(positional.build(instance, objective)) == pytest.approx(best, abs=BIG)


@settings(max_examples=examples(40))
@given(instance=tiny_instances(most=6, latest=15))
def test_positional_relaxation_is_between_srpt_and_the_optimum(solve: Solve, instance: Instance) -> None:
    relaxed = solve(positional.build(instance, "total_completion_time", relax=True))
    assert relaxed >= float(sum(srpt(zip(instance.arrival, instance.duration, strict=True)))) - EXACT
    assert relaxed <= solve(positional.build(instance, "total_completion_time")) + EXACT


def test_windows_decide_orders() -> None:
    jobs = [Job("a", 0, 1, 2), Job("b", 1, 1, 2), Job("c", 50, 1, 3)]
    instance = Instance(jobs, Cluster.machines(1))
    # with a horizon of 53, c is last: nothing else fits after its release, and the two others are open
    model = disjunctive.build(instance, "total_flow_time", horizon=53.0)
    assert list(model.before) == [(0, 1)]
    assert set(model.fixed) == {(0, 2), (1, 2)}
    # ending by 20, a and b leave c alone: no row needed
    model = disjunctive.build(instance, "total_flow_time", horizon=np.array([20.0, 20.0, 99.0]))
    assert (list(model.before), list(model.fixed)) == ([(0, 1)], [])
    # the smallest number that switches a row off: latest start + duration - release
    assert model.windows.big[0, 1] == 18 + 2 - 1
    row = generate_standard_repn(model.first[0, 1].body)
    assert [*row.linear_coefs, model.first[0, 1].upper] == [1, -1, 19, 19 - 2]


def test_the_makespan_relaxation_is_the_optimum(solve: Solve) -> None:
    jobs = [Job("a", 0.3, 1, 2.25), Job("b", 7.7, 1, 1.5), Job("c", 8, 1, 2)]
    instance = Instance(jobs, Cluster.machines(1))
    assert solve(disjunctive.build(instance, "makespan", relax=True)) == pytest.approx(7.7 + 3.5)


def test_nothing_to_pay_is_refused() -> None:
    instance = Instance([Job("a", duration=1, weight=0, due=3), Job("b", duration=1)], Cluster.machines(1))
    reason = disjunctive.applies(instance, "total_weighted_tardiness")
    assert reason is not None
    assert "0" in reason


def test_several_machines_are_refused() -> None:
    instance = Instance([Job("a", duration=1)], Cluster.machines(2))
    for model in (disjunctive, positional):
        reason = model.applies(instance, "total_flow_time")
        assert reason is not None
        assert "one machine" in reason


def test_positions_hold_the_order_of_the_schedule(solve: Solve) -> None:
    instance = Instance([Job("a", 0, 1, 3), Job("b", 1, 1, 1), Job("c", 0, 1, 1)], Cluster.machines(1))
    model = positional.build(instance, "total_completion_time")
    assert solve(model) == pytest.approx(1 + 2 + 5)
    assert [round(pyo.value(model.completion[k])) for k in range(3)] == [1, 2, 5]
    assert positional.schedule(model, instance).completion.tolist() == [5.0, 2.0, 1.0]
    # with preemption c would end at 9: a job that holds the machine ends no sooner than its own release lets it
    late = Instance([Job("a", 0, 1, 1), Job("b", 4, 1, 8), Job("c", 8, 1, 1)], Cluster.machines(1))
    assert solve(positional.build(late, "total_completion_time")) == pytest.approx(1 + 12 + 13)
