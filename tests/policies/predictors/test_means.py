"""``global-mean`` and ``group-mean`` against numbers computed by hand."""

from __future__ import annotations

import pytest

from optsched.problem.instance import Instance, Job
from optsched.problem.profile import Profile, Stage

from .workloads import replay, workload

# (arrival, seconds, group, user); every job completes before the next arrives
JOBS = [
    (0, 1, "a", "x"),
    (10, 7, "b", "x"),
    (20, 3, "a", "y"),
    (30, 5, "c", "y"),
    (40, 2, "c", "z"),
    (50, 2, None, None),
]


def test_global_mean() -> None:
    instance = workload(*JOBS)
    assert replay(instance, "global-mean/mean=arithmetic").tolist() == [3600, 1, 4, 11 / 3, 4, 18 / 5]
    # 1 + n: 2, 8, 4, 6, 3, so the geometric means minus 1 are 1, 3, 3, ...
    expected = [3600, 1, 3, 3, 384 ** (1 / 4) - 1, 1152 ** (1 / 5) - 1]
    assert replay(instance, "global-mean").tolist() == pytest.approx(expected, rel=1e-12)


def test_group_mean_falls_back_on_the_user_then_on_everybody_then_on_the_prior() -> None:
    instance = workload(*JOBS)
    #                         prior; user x; group a; user y; group c; everybody
    assert replay(instance, "group-mean/mean=arithmetic/prior=50").tolist() == [50, 1, 1, 3, 5, 18 / 5]
    found = replay(instance, "group-mean/prior=50").tolist()
    assert found == pytest.approx([50, 1, 1, 3, 5, 1152 ** (1 / 5) - 1], rel=1e-12)


def test_jobs_without_a_group_or_a_user_are_no_group_and_no_user() -> None:
    instance = workload((0, 1, None, None), (10, 5, None, "x"), (20, 9, None, "x"), (30, 1, None, None))
    assert replay(instance, "group-mean/mean=arithmetic").tolist() == [3600, 1, 5, 5]


def test_iterations_and_seconds_never_meet() -> None:
    profile = Profile.of_stages([Stage(1, 1.0, 1.0)])
    jobs = [
        Job("0", 0, iterations=10, profile="p", group="a", user="x"),
        Job("1", 100, duration=70, group="a", user="x"),
        Job("2", 200, iterations=30, profile="p", group="a", user="x"),
        Job("3", 300, duration=5, group="b", user="x"),
    ]
    instance = Instance(jobs, "1x1", profiles={"p": profile})
    for text in ("group-mean", "global-mean", "forest"):
        assert replay(instance, text).tolist() == pytest.approx([3600, 3600, 10, 70], rel=1e-12), text


def test_a_prediction_is_never_zero() -> None:
    # the shortest job there may be: on the scale log(1 + n) it is nearly nothing, and must not become nothing
    tiny = workload((0, 1e-12, "a", "x"), (1, 1, "a", "x"))
    assert replay(tiny, "group-mean/prior=1")[1] == pytest.approx(1e-12)
