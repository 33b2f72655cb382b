"""``global-mean`` and ``group-mean`` against numbers computed by hand."""

from __future__ import annotations

import pytest

from optsched.errors import InputError
from optsched.policies.predictors import predictor
from optsched.policies.predictors.learner import replay
from optsched.policies.predictors.means import GroupMean
from optsched.problem.instance import Instance, Job
from optsched.problem.profile import Profile, Stage

from .workloads import workload

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


def test_what_was_learned_before_serves_from_the_first_job() -> None:
    past = workload((0, 8, "a", "x"), (5, 2, "b", "y"))
    fitted = GroupMean(mean="arithmetic").fit(past)
    now = workload((0, 1, "a", "z"), (0, 1, "c", "y"), (0, 1, None, None), (9, 1, "a", "y"))
    for _ in range(2):  # begin() forgets what came after, not what was fitted
        assert replay(now, fitted).tolist() == [8, 2, 5, 4.5]


@pytest.mark.parametrize("text", ["forest", "group-mean", "global-mean"])
def test_fitted_on_nothing(text: str) -> None:
    with pytest.raises(InputError, match=r"cannot be fitted on nothing.*expected: an instance with at least one job"):
        predictor(text).fit(Instance([], "1x1", name="empty"))  # type: ignore[attr-defined]


def test_a_prediction_is_never_zero() -> None:
    # the shortest job there may be: on the scale log(1 + n) it is nearly nothing, and must not become nothing
    tiny = workload((0, 1e-12, "a", "x"), (1, 1, "a", "x"))
    assert replay(tiny, "group-mean/prior=1")[1] == pytest.approx(1e-12)
