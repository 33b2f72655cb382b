"""Methods that count on fixed durations say no where speed depends on the placement, and work where it does not."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from brute_force import optimum

from optsched.check.referee import check_schedule
from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.models import FORMULATIONS
from optsched.models.mapped_modes import speed_depends_on_placement
from optsched.models.time_grid import time_grid
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.profile import Profile, Stage
from optsched.solvers.list_schedule import best_list_schedule, list_schedule
from optsched.solvers.lp_bound import lp_bound
from optsched.solvers.solve import model_names, solve
from solvers.placed_instances import beside_two_others

ONE_MACHINE = {"disjunctive", "positional", "time-indexed"}  # they say first that there is more than one
KNOW_PLACEMENTS = {"gang-modes", "mode-branching"}
RELAXATIONS = {name for name, formulation in FORMULATIONS.items() if not formulation.exact}


REQUESTS = ("cache-states", "kv-time-indexed")
SHARING = ("gpu-sharing", "sharing-branching", "sharing-orders")


@pytest.mark.parametrize("model", sorted(set(model_names()) - KNOW_PLACEMENTS - RELAXATIONS))
def test_models_say_no(model: str) -> None:
    instance = generate("ddl-small", 3, jobs=3)
    with pytest.raises(InputError) as caught:
        solve(instance, "total_completion_time", model=model)
    if model in SHARING:  # they also want to know what sharing costs
        with pytest.raises(InputError) as caught:
            solve(instance.replace(interference=1.5), "total_completion_time", model=model)
        assert "has stages" in str(caught.value)
    elif model in REQUESTS:
        assert "the jobs are no requests" in str(caught.value)
    elif model not in ONE_MACHINE:
        assert "depends on its placement" in str(caught.value) or "depends on their placement" in str(caught.value)


@pytest.mark.parametrize("make", [best_list_schedule, lambda i: list_schedule(i, "spt"), time_grid])
def test_list_schedules_and_grids_say_no(make: Any) -> None:
    with pytest.raises(InputError, match=r"the speed of job 'pair' .* depends on its placement"):
        make(beside_two_others(10))


@pytest.mark.parametrize("model", sorted(RELAXATIONS))
def test_relaxations_bound_by_the_fastest_placement(model: str) -> None:
    solution = solve(beside_two_others(10), model=model)
    assert solution.value is not None
    assert solution.bound is not None
    assert solution.bound <= 29 <= solution.value
    assert solution.status in ("feasible", "optimal")
    assert solution.status == "feasible" or solution.value == 29


def test_the_lp_bound_counts_on_the_fastest_placement() -> None:
    instance = beside_two_others(10)
    certificate = lp_bound(instance)
    assert certificate is not None
    certificate.verify(instance)
    assert 25 <= certificate.value <= 29  # 10 + 10 + (1 + 4) if nobody were in the way


def everywhere_as_fast() -> tuple[Instance, Instance]:
    """Profiles without traffic on 2x2, and the same jobs with durations."""
    cluster = Cluster((NodeGroup(2, 2, nic_bandwidth=2.0, intra_bandwidth=2.0),))
    profiles = {"a": Profile.of_stages([Stage(1, 0.5, 0.5)]), "b": Profile.of_stages([Stage(2, 0.5, 1.5, 0.0)])}
    jobs = [
        Job("1", 0, 1, iterations=5, profile="a", due=4),
        Job("2", 1, 2, iterations=2, profile="b"),
        Job("3", 0, 3, 3),
        Job("4", 2, 2, iterations=1, profile="b", weight=3),
    ]
    timed = [
        Job(job.id, job.arrival, job.gpus, duration, weight=job.weight, due=job.due)
        for job, duration in zip(jobs, (5, 4, 3, 2), strict=True)
    ]
    return Instance(jobs, cluster, profiles=profiles), Instance(timed, cluster)


GOALS = ("total_completion_time", "total_weighted_tardiness", "makespan")
MODELS = ("rigid-time-indexed", "rigid-placed", "gang-modes")
COMPILED = [(None, goal) for goal in GOALS] + [("reduced-cost-fixing", goal) for goal in GOALS[:2]]


@pytest.mark.parametrize(
    ("model", "objective"),
    [*itertools.product(MODELS, GOALS), *(pytest.param(*case, marks=pytest.mark.compiled) for case in COMPILED)],
)
def test_profiles_that_run_equally_fast_everywhere_are_durations(model: str | None, objective: str) -> None:
    profiled, timed = everywhere_as_fast()
    assert not speed_depends_on_placement(profiled)
    solution = solve(profiled, objective, model=model)
    assert (solution.status, solution.value) == ("optimal", optimum(timed, objective))
    assert solution.schedule is not None
    for schedule in (solution.schedule, best_list_schedule(profiled, objective)):
        assert check_schedule(profiled, schedule, preemptive=False) == []
    np.testing.assert_array_equal(schedule.completion, best_list_schedule(timed, objective).completion)


@pytest.mark.parametrize("model", [None, "disjunctive", "positional", "time-indexed", "sequence-branching"])
def test_one_machine_runs_every_profile_at_one_speed(model: str | None) -> None:
    profile = Profile.of_stages([Stage(1, 0.25, 0.25)])
    jobs = [Job(str(j), j, 1, iterations=6 - j, profile="p") for j in range(4)]
    solution = solve(Instance(jobs, "1x1", profiles={"p": profile}), "total_completion_time", model=model)
    # 0.5 s an iteration: 3, 2.5, 2 and 1.5 s from 0, 1, 2 and 3 s on; 0, 3, 2, 1 is best
    assert (solution.status, solution.value) == ("optimal", 3 + 4.5 + 6.5 + 9)
    assert solution.schedule is not None
    assert check_schedule(solution.schedule.instance, solution.schedule, preemptive=False) == []
