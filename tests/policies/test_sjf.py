"""SJF: optimal without release dates on one-GPU jobs, and the counterexample with them."""

from __future__ import annotations

from brute_force import optimum
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job


@settings(max_examples=examples(40))
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 3))
def test_spt_is_optimal_on_identical_machines(rows: list[int], m: int) -> None:
    instance = Instance([Job(str(j), duration=d) for j, d in enumerate(rows)], f"{m}x1")
    assert simulate(instance, "sjf").value("total_completion_time") == optimum(instance, "total_completion_time")


def test_jobs_that_do_not_fit_are_passed_over_and_nobody_is_stopped() -> None:
    jobs = [Job("a", gpus=2, duration=9), Job("b", arrival=1, gpus=2, duration=1), Job("c", arrival=1, duration=5)]
    assert simulate(Instance(jobs, "1x3"), "sjf").schedule.completion.tolist() == [9, 10, 6]
