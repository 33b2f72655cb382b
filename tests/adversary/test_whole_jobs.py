"""What the space says is reached, is reached, and it is the optimum where nothing preempts."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, strategies as st

import optsched as osd
from optsched.adversary.space import space_of
from optsched.policies.simulate import specify
from optsched.solvers.identical_machines import least_makespan, least_weighted_completion

JOBS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=6)


def assigned(n: int, machines: int) -> list[tuple[int, ...]]:
    """Every way to put n jobs on machines."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(n):
        found = [(*each, i) for each in found for i in range(machines)]
    return found


@given(JOBS, st.integers(1, 3))
def test_machines_against_every_assignment(jobs: list[tuple[int, int]], machines: int) -> None:
    lengths, weights = zip(*jobs, strict=True)
    order = sorted(jobs, key=lambda job: job[0] / job[1] if job[1] else float("inf"))
    spans, costs = [], []
    for where in assigned(len(jobs), machines):
        loads, cost = [0] * machines, 0
        for (length, weight), i in zip(order, where, strict=True):
            loads[i] += length
            cost += weight * loads[i]
        spans.append(max(loads))
        costs.append(cost)
    assert least_makespan(lengths, machines) == min(spans)
    assert least_weighted_completion(lengths, weights, machines) == min(costs)


def test_no_machine_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        least_makespan([1], 0)


@pytest.mark.compiled
@pytest.mark.parametrize("objective", ["makespan", "total_completion_time", "total_weighted_flow_time"])
@pytest.mark.parametrize("text", ["whole-jobs", "whole-jobs:arrivals=false,gangs=false"])
def test_what_is_reached_is_the_optimum_without_preemption(objective: str, text: str) -> None:
    space, rng = space_of(specify("sjf").policy, text, jobs=5, gpus=2), random.Random(objective + text)
    for _ in range(3):
        candidate = space.drawn(rng)
        instance = space.instance(candidate)
        best = osd.solve(instance, objective)
        assert best.status == "optimal"
        assert space.reached(candidate, instance, objective, preemptive=False) == best.value
        assert space.reached(candidate, instance, objective, preemptive=True) <= best.value


def test_a_kind_says_what_it_is_not_for() -> None:
    with pytest.raises(osd.InputError, match="not for srsf"):
        space_of(specify("srsf").policy, "whole-jobs")
    with pytest.raises(osd.InputError, match="from 2 to 16"):
        space_of(specify("sjf").policy, jobs=1)
    with pytest.raises(osd.InputError, match="there is no space named"):
        space_of(specify("sjf").policy, "whole-job")
