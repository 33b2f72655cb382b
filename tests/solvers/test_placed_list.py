"""List schedules where speed depends on the placement: feasible at any scale, never below the optimum."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from optsched.bounds import bound
from optsched.check.referee import check_schedule, schedule_value
from optsched.compiled import without_interpreting
from optsched.io.traces.generate import generate
from optsched.models.mapped_modes import MappedModes
from optsched.problem.instance import Instance
from optsched.solvers.placed_list import best_placed_schedule
from optsched.solvers.solve import solve
from solvers.placed_instances import beside_two_others, placed_instances


@given(placed_instances())
@settings(max_examples=15)
def test_feasible_with_and_without_a_list_of_placements(instance: Instance) -> None:
    optimum = solve(instance, "total_weighted_completion_time", model="mode-branching")
    assert optimum.status == "optimal"
    assert optimum.value_exact is not None
    for modes in (None, MappedModes.of(instance)):
        best = best_placed_schedule(instance, "total_weighted_completion_time", modes=modes)
        assert check_schedule(instance, best, preemptive=False) == []
        assert schedule_value(instance, best, "total_weighted_completion_time") >= optimum.value_exact


def test_patient_and_eager() -> None:
    # eager: [3, 3, 9], patient: [3, 3, 7]
    assert best_placed_schedule(beside_two_others(3)).completion.tolist() == [3, 3, 7]
    assert best_placed_schedule(beside_two_others(10)).completion.tolist() == [10, 10, 9]


@pytest.mark.release
def test_an_instance_that_nobody_can_solve_has_an_interval() -> None:
    instance = generate("ddl-cluster", 1, jobs=15, nodes=3)
    with without_interpreting():
        solution = solve(instance, time_limit=60)  # it stops by itself long before
    assert (solution.status, solution.model) == ("limit", "list")
    assert solution.schedule is not None
    assert check_schedule(instance, solution.schedule, preemptive=False) == []
    assert solution.bound_exact is not None
    assert solution.value_exact is not None
    assert bound(instance).value <= solution.bound_exact <= solution.value_exact


@pytest.mark.parametrize("jobs", [0, 1])
def test_hardly_any_jobs(jobs: int) -> None:
    instance = generate("ddl-small", 5, jobs=1).head(1)
    if jobs == 0:
        instance = instance.replace(jobs=instance.table.head(0))
    assert best_placed_schedule(instance).completion.size == jobs
