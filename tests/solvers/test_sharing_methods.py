"""solve() over schedules in which jobs share GPUs: what is called optimal is proved, and the referee agrees."""

from __future__ import annotations

from fractions import Fraction

import pytest

from optsched.check.referee import check_schedule
from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.schedule import SharedSchedule
from optsched.solvers.sharing_search import sharing_optimum
from optsched.solvers.solve import model_names, solve

METHODS = ("gpu-sharing", "sharing-orders", "sharing-branching")


def test_they_are_models() -> None:
    assert set(METHODS) <= set(model_names())


@pytest.mark.parametrize("objective", ["total_flow_time", "total_completion_time"])
@pytest.mark.parametrize("xi", ["1.3", "exp"])
def test_the_roads_agree(objective: str, xi: str) -> None:
    instance = generate("sharing-small", 21, jobs=3, xi=xi)
    found = sharing_optimum(instance)
    value = found.value if objective == "total_completion_time" else found.flow_time
    for model in METHODS:
        solution = solve(instance, objective, model=model)
        assert solution.value == pytest.approx(value, rel=1e-12)
        assert solution.model == model
        assert solution.status == ("feasible" if model == "sharing-branching" and not found.optimal else "optimal")
        assert isinstance(solution.schedule, SharedSchedule)
        assert (
            check_schedule(instance, solution.schedule, preemptive=False, objective=objective, value=solution.value)
            == []
        )
        assert solution.bound is not None
        assert solution.bound <= value * (1 + 1e-9)
        if solution.certificate is not None:
            assert solution.certificate.schedule_class in ("gpu-sharing", "forking", "elastic")


def test_several_gpus_are_proved_by_orders() -> None:
    instance = generate("sharing-small", 4, jobs=3, gpus=2, xi="exp")
    solution = solve(instance, model="sharing-orders")
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(sharing_optimum(instance).flow_time, rel=1e-12)


def test_sharing_is_never_worse_than_exclusive_gpus_and_not_the_default() -> None:
    # whole seconds: two jobs at xi = 1.25 gain
    jobs = [Job("a", 0, 1, 4), Job("b", 0, 1, 4)]
    instance = Instance(jobs, "1x1", interference=Interference(1.25))
    assert solve(instance).value == 4 + 8
    assert solve(instance, model="gpu-sharing").value_exact == Fraction(10)
    assert solve(instance, model="sharing-branching").status == "optimal"


def test_a_stopped_search_says_so() -> None:
    instance = generate("sharing-small", 3, jobs=9, xi="exp")
    solution = solve(instance, model="sharing-branching", time_limit=1e-6)
    assert solution.status == "limit"
    assert "stopped" in solution.note


def test_what_does_not_apply_is_said_in_one_line() -> None:
    shared = Interference(1.5)
    plain = Instance([Job("a", duration=1), Job("b", duration=1)], "1x2")
    apart = Instance([Job("a", duration=1), Job("b", duration=1)], "1x2", interference=shared)
    many = Instance([Job(f"j{k}", duration=1) for k in range(13)], "1x1", interference=shared)
    for model in METHODS:
        with pytest.raises(InputError, match="interference"):
            solve(plain, model=model)
        with pytest.raises(InputError, match="makespan"):
            solve(apart, "makespan", model=model)
        with pytest.raises(InputError, match=r"at most \d+ jobs, there are 13"):
            solve(many, model=model)
        with pytest.raises(InputError, match="horizon"):
            solve(apart, model=model, horizon=9.0)
    with pytest.raises(InputError, match="side by side"):
        solve(apart, model="gpu-sharing")
    wide = Instance([Job(x, 0, 4, 1) for x in "abcde"], "1x8", interference=shared)
    with pytest.raises(InputError, match="too many choices"):
        solve(wide, model="sharing-orders")
