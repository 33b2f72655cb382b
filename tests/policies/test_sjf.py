"""SJF: optimal without release dates on one-GPU jobs, and the counterexample with them."""

from __future__ import annotations

import pytest
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


@pytest.mark.parametrize("n", [4, 16, 64])
def test_with_release_dates_the_ratio_grows_with_n(n: int) -> None:
    jobs = [Job("long", duration=10 * n), *(Job(str(k), arrival=1, duration=1) for k in range(n))]
    instance = Instance(jobs, "1x1")
    better = 1 + sum(range(2, n + 2)) - 1 + (n + 1 + 10 * n)  # idle until 1, the unit jobs, then the long one
    assert simulate(instance, "sjf").value("total_completion_time") > n / 7 * better


def test_jobs_that_do_not_fit_are_passed_over_and_nobody_is_stopped() -> None:
    jobs = [Job("a", gpus=2, duration=9), Job("b", arrival=1, gpus=2, duration=1), Job("c", arrival=1, duration=5)]
    assert simulate(Instance(jobs, "1x3"), "sjf").schedule.completion.tolist() == [9, 10, 6]
