"""The multi-mode program against exhaustion over orders, nodes and replicas; its schedules before the referee."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from brute_force import placed_optimum
from hypothesis import given, reject, settings, strategies as st

from optsched.check.referee import check_schedule
from optsched.errors import InfeasibleError, InputError
from optsched.io.traces.generate import generate
from optsched.models import gang_modes
from optsched.models.latest_starts import latest_completions
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.profile import Profile, Stage

Solve = Callable[[Any], float]
EXACT = 1e-5
OBJECTIVES = ("max_flow_time", "total_weighted_completion_time", "total_weighted_tardiness", "makespan")


@st.composite
def tiny(draw: st.DrawFn, most: int = 3) -> Instance:
    """Two or three jobs of recipe ``ddl-small`` with weights and due dates; one may have a duration."""
    nodes, gpus = draw(st.sampled_from([(2, 2), (2, 1), (1, 3), (3, 1), (2, 3)]))
    drawn = generate(
        "ddl-small",
        draw(st.integers(0, 10**6)),
        jobs=draw(st.integers(1, most)),
        nodes=nodes,
        gpus=gpus,
        widest=3,
        span=draw(st.sampled_from([0.0, 0.3])),
    )
    jobs = []
    for job in drawn.jobs:
        fields = {name: getattr(job, name) for name in ("id", "arrival", "gpus", "iterations", "profile")}
        if draw(st.integers(0, 4)) == 0:
            fields.update(iterations=None, profile=None, duration=draw(st.integers(1, 20)))
        jobs.append(Job(**fields, weight=draw(st.integers(0, 4)), due=draw(st.none() | st.integers(0, 60))))
    return drawn.replace(jobs=jobs)


@given(tiny(), st.sampled_from(OBJECTIVES))
@settings(max_examples=25)
def test_the_optimum_is_that_of_exhaustion(solve: Solve, instance: Instance, objective: str) -> None:
    optimum = placed_optimum(instance, objective)
    relaxed = solve(gang_modes.build(instance, objective, relax=True))
    model = gang_modes.build(instance, objective)
    assert solve(model) == pytest.approx(float(optimum), abs=EXACT)
    assert relaxed <= float(optimum) + EXACT
    schedule = gang_modes.schedule(model, instance)
    assert check_schedule(instance, schedule, preemptive=False, objective=objective, value=optimum) == []
    horizon = latest_completions(instance, objective, float(optimum))
    assert solve(gang_modes.build(instance, objective, horizon=horizon)) == pytest.approx(float(optimum), abs=EXACT)


@given(
    tiny(most=4),
    st.sampled_from(OBJECTIVES),
    st.sampled_from(["fifo", "fifo:skip=true", "sjf", "wspt"]),
    st.sampled_from(["consolidated", "first-fit", "most-free", "random:seed=1"]),
)
@settings(max_examples=20)
def test_any_schedule_warms_it(instance: Instance, objective: str, policy: str, placement: str) -> None:
    given_schedule = simulate(instance, f"{policy}+{placement}").schedule
    model = gang_modes.build(instance, objective)
    try:
        gang_modes.warm_start(model, given_schedule)
    except InputError:  # a place that no optimum needs, or an end later than any optimum's
        reject()  # too many of them would fail, too
    for row in (*model.once.values(), *model.capacity.values()):
        assert row.lslack() >= 0
        assert row.uslack() >= 0
    moved = gang_modes.schedule(model, instance)
    assert check_schedule(instance, moved, preemptive=False) == []
    assert (moved.completion <= given_schedule.completion).all()


def test_what_it_refuses() -> None:
    fine = generate("ddl-small", 1, jobs=2, nodes=2, gpus=2)
    assert gang_modes.applies(fine, "total_completion_time") is None
    assert "does not minimise total_utility" in str(gang_modes.applies(fine, "total_utility"))
    odd = Profile.of_stages([Stage(2, 0.1, 0.2, 0.7e9)])
    jobs = [Job("a", gpus=2, iterations=1, profile="p")]
    instance = Instance(jobs, fine.cluster, profiles={"p": odd})
    with pytest.raises(InputError, match="longest common unit"):
        gang_modes.build(instance, "total_completion_time")
    big = Instance([Job("a", gpus=32, duration=1)], "8x8")
    assert "more than 500 placements" in str(gang_modes.applies(big, "makespan"))
    with pytest.raises(InfeasibleError, match="cannot complete by the horizon"):
        gang_modes.build(fine, "makespan", horizon=1.0)
