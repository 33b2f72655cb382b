"""A-SRPT's single machine: the LP is the mean-busy-time formula, the MILP is SRPT, both bound gangs from below."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from brute_force import preemptive_optimum
from examples import examples
from hypothesis import given, settings, strategies as st
from srpt import mean_busy_times, srpt
from tiny_instances import columns, tiny_instances

from optsched.models import FORMULATIONS
from optsched.models.srpt_mean_busy_time import build, build_cvxpy
from optsched.models.srpt_relaxation import UnitMachine, busy_period_ends
from optsched.models.srpt_slots import build as build_slots
from optsched.problem.instance import Cluster, Instance, Job

Solve = Callable[[Any], float]
EXACT = 1e-6
TWO = Instance([Job("a", 0, 1, 3), Job("b", 1, 1, 1)], Cluster.machines(1))


def on_unit_machine(instance: Instance) -> list[tuple[Fraction, Fraction]]:
    """(r_j, g_j d_j / G)."""
    rows = zip(*(each.tolist() for each in columns(instance)), strict=True)
    return [(Fraction(r), Fraction(g * p, instance.cluster.gpus)) for r, p, g in rows]


def on_gpus(count: int, **options: int) -> st.SearchStrategy[Instance]:
    """On 1 to ``count`` GPUs."""
    return st.integers(1, count).flatmap(lambda total: tiny_instances(f"1x{total}", widest=total, **options))


def test_golden_values(solve: Solve) -> None:
    assert solve(build(TWO, "total_completion_time")) == pytest.approx(17 / 3)
    assert solve(build_cvxpy(TWO, "total_completion_time")) == pytest.approx(17 / 3)
    assert solve(build_slots(TWO, "total_completion_time")) == pytest.approx(6)
    # flow time is completion time less the releases
    assert solve(build(TWO, "total_flow_time")) == pytest.approx(17 / 3 - 1)
    assert solve(build_slots(TWO, "total_flow_time")) == pytest.approx(5)


@settings(max_examples=examples(60))
@given(instance=on_gpus(4), weighted=st.booleans())
def test_lp_is_the_formula_in_fractions(solve: Solve, instance: Instance, weighted: bool) -> None:
    machine = on_unit_machine(instance)
    weights = [Fraction(weight if weighted else 1) for weight in instance.weight.tolist()]
    # the released job with the largest w_j / p_j is served, by p_j and not by what remains
    busy = mean_busy_times(machine, [-w / p for w, (_, p) in zip(weights, machine, strict=True)])
    formula = sum(w * (m + p / 2) for w, m, (_, p) in zip(weights, busy, machine, strict=True))
    objective = "total_weighted_completion_time" if weighted else "total_completion_time"
    assert solve(build(instance, objective)) == pytest.approx(float(formula), abs=EXACT)
    assert solve(build_cvxpy(instance, objective)) == pytest.approx(float(formula), abs=1e-5)
    if not weighted:
        assert formula <= sum(srpt(machine))


@settings(max_examples=examples(40))
@given(instance=on_gpus(2, most=4, latest=8))
def test_milp_is_srpt(solve: Solve, instance: Instance) -> None:
    best = float(sum(srpt(on_unit_machine(instance))))
    assert solve(build_slots(instance, "total_completion_time")) == pytest.approx(best, abs=EXACT)
    assert solve(build_slots(instance, "total_completion_time", relax=True)) <= best + EXACT


@settings(max_examples=25)
@given(instance=tiny_instances(most=4, latest=6, longest=3))
def test_weighted_milp_is_the_preemptive_optimum(solve: Solve, instance: Instance) -> None:
    objective = "total_weighted_completion_time"
    best = float(preemptive_optimum(instance, objective))
    assert solve(build_slots(instance, objective)) == pytest.approx(best, abs=EXACT)
    assert solve(build(instance, objective)) <= best + EXACT


@settings(max_examples=25)
@given(instance=tiny_instances("1x3", most=3, widest=3, latest=4, longest=3))
def test_bounds_hold_for_preemptive_gangs(solve: Solve, instance: Instance) -> None:
    for objective in ("total_flow_time", "total_weighted_flow_time"):
        best = float(preemptive_optimum(instance, objective))
        for name, formulation in FORMULATIONS.items():
            if formulation.schedule_class == "gang":
                assert solve(formulation.build(instance, objective)) <= best + 1e-5, name


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5)), min_size=1, max_size=7))
def test_busy_periods(jobs: list[tuple[int, int]]) -> None:
    release, work = (np.array(column) for column in zip(*jobs, strict=True))
    # slot by slot: served while something is left
    left, busy = 0, []
    for t in range(int(release.max() + work.sum()) + 1):
        left += int(work[release == t].sum())
        busy.append(left > 0)
        left -= left > 0

    def over(t: int, since: int) -> bool:
        return not busy[t] or (t > since and idle_before(t, release, work))

    ends = [next(t for t in range(r, len(busy)) if over(t, r)) for r in release.tolist()]
    assert busy_period_ends(release, work).tolist() == ends


def idle_before(t: int, release: Any, work: Any) -> bool:
    """Has everything released before t been done by t (so that a new busy period starts at t)?"""
    left = 0
    for s in range(t):
        left = max(0, left + int(work[release == s].sum()) - 1)
    return left == 0


def test_slots_of_a_long_idle_time_are_left_out() -> None:
    far = Instance([Job("a", 0, 1, 2), Job("b", 10_000, 1, 3)], Cluster.machines(1))
    assert len(build(far, "total_flow_time").work) == 5


def test_thirds_of_a_second_are_exact() -> None:
    # 1 GPU of 3 for 1 s: a third of a second of the machine
    machine = UnitMachine.of(Instance([Job("a", 0, 1, 1), Job("b", 0, 3, 1)], "1x3"), "total_flow_time")
    assert machine.grid.unit == Fraction(1, 3)
    assert machine.grid.duration.tolist() == [1, 3]
