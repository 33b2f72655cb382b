"""The predictors by hand, within what they promise, and that they do what they are for on fresh seeds."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, strategies as st

from optsched.io.traces.generate import generate
from optsched.policies.predictors import predictor
from optsched.policies.predictors.conformal import Conformal
from optsched.problem.instance import Instance, Job
from optsched.problem.profile import Profile, Stage
from optsched.simulation.predictor import JobFacts

from .workloads import errors, replay, workload, workloads

# -- global-mean and group-mean -------------------------------------------------------------------------------------------


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


# -- noisy ----------------------------------------------------------------------------------------------------------------


ROUNDING = 1 + 1e-12


@given(instance=workloads(), error=st.floats(1, 100), seed=st.integers(0, 2**32))
def test_it_stays_within_its_factor(instance: Instance, error: float, seed: int) -> None:
    found = errors(instance.work, replay(instance, f"noisy/error={error}/seed={seed}"))
    assert max(found.over, found.under) <= error * ROUNDING


def test_it_reaches_nearly_its_factor_on_both_sides() -> None:
    instance = generate("recurring", seed=1, jobs=500, plain=True)
    found = errors(instance.work, replay(instance, "noisy/error=3"))
    assert 2.9 < found.over <= 3 * ROUNDING
    assert 2.9 < found.under <= 3 * ROUNDING
    assert found.p50 == pytest.approx(3**0.5, rel=0.1)  # |u| is uniform in [0, 1]


def test_no_error_is_the_truth() -> None:
    instance = generate("recurring", seed=1, jobs=50, plain=True)
    assert replay(instance, "noisy/error=1").tolist() == instance.work.tolist()


def test_a_job_has_the_same_luck_whatever_comes_before_after_or_is_asked_first() -> None:
    instance = generate("recurring", seed=1, jobs=60, plain=True)
    u = np.log2(replay(instance, "noisy") / instance.work)
    fewer = instance.head(20)
    assert np.log2(replay(fewer, "noisy") / fewer.work) == pytest.approx(u[:20], abs=1e-12)
    assert np.log(replay(instance, "noisy/error=7") / instance.work) / np.log(7) == pytest.approx(u, abs=1e-12)
    made = predictor("noisy")
    made.begin(JobFacts(instance, revealed=True))
    backwards = [made.predict(job, 0.0) for job in reversed(range(60))]
    assert backwards[::-1] == replay(instance, "noisy").tolist()
    assert not np.allclose(replay(instance, "noisy/seed=1"), replay(instance, "noisy"))


def test_its_name_always_says_how_wrong_it_is() -> None:
    assert predictor("noisy").name == "noisy/error=2"
    assert predictor("noisy/error=1.5/seed=3").name == "noisy/error=1.5/seed=3"


# -- shrinkage, boosting and conformal ------------------------------------------------------------------------------------


SEEDS = (401, 402, 403)  # the parameters were chosen on 101-103


@cache
def recurring() -> list[Instance]:
    """With profiles: lengths are iterations, from some hundred to some million for the same hour."""
    return [generate("recurring", seed, jobs=1200, load=0.9) for seed in SEEDS]


@cache
def said(text: str) -> list[np.ndarray]:
    return [replay(instance, text, wait=900.0) for instance in recurring()]


def test_by_hand() -> None:
    # (arrival, seconds, group, user); logarithms of e^1, e^3, ... are what is averaged
    rows = [(0, 1, "a", "x"), (100, 3, "a", "x"), (200, 5, "b", "x"), (300, 7, None, "x"), (400, 2, "a", "y")]
    instance = workload(*((100.0 * at, math.exp(y), group, user) for at, y, group, user in rows))
    found = np.log(replay(instance, f"shrinkage/prior={math.exp(2)}/group=1/user=2/half_life=1", wait=50.0))
    everybody = (1 + 2) / 2  # after the first run: its y = 1, and the prior 2 as one more run
    user = (1 + 2 * everybody) / 3
    assert found[:2] == pytest.approx([2, (1 + user) / 2])
    # The second run of a says nothing above a: a new group of user x is as before.
    assert found[2] == pytest.approx(user)
    everybody = (0.5 * 1 + 5 + 2) / (1.5 + 1)  # runs weigh half as much with every later one
    assert found[3] == pytest.approx((0.5 * 1 + 5 + 2 * everybody) / 3.5)
    everybody = (0.25 * 1 + 0.5 * 5 + 7 + 2) / (1.75 + 1)
    assert found[4] == pytest.approx((0.5 * 1 + 3 + everybody) / 2.5)  # group a; nothing is known of user y


def test_iterations_are_compared_by_the_seconds_they_take() -> None:
    profiles = {"slow": Profile.of_stages([Stage(1, 2.0, 2.0)]), "fast": Profile.of_stages([Stage(1, 0.5, 0.5)])}
    jobs = [
        Job("0", iterations=10, profile="slow"),
        Job("1", arrival=100, iterations=1, profile="fast"),
        Job("2", arrival=200, duration=1),
    ]
    instance = Instance(jobs, "1x1", profiles=profiles)
    assert JobFacts(instance).fastest.tolist() == [4, 1, 1]
    assert replay(instance, "shrinkage/prior=40")[:2].tolist() == pytest.approx([10, 40])


def test_it_beats_the_group_mean_at_the_median_at_the_95_th_percentile_and_at_worst() -> None:
    for instance, ours, theirs in zip(recurring(), said("shrinkage"), said("group-mean"), strict=True):
        better, worse = errors(instance.work, ours), errors(instance.work, theirs)
        assert better.p50 < worse.p50
        assert better.p95 < 0.8 * worse.p95
        assert max(better[2:4]) < max(worse[2:4])


@pytest.mark.release
def test_a_median_of_errors_is_half_above_and_an_upper_quantile_above_most() -> None:
    instance = recurring()[0]
    middle, upper = (replay(instance, text, wait=900.0) for text in ("boosting", "boosting/quantile=0.9"))
    assert 0.4 < (instance.work <= middle)[300:].mean() < 0.6
    assert 0.83 < (instance.work <= upper)[300:].mean() < 0.95


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_a_share_of_level_stays_below_conformal_bounds_of_jobs_that_are_alike(level: float) -> None:
    rng = np.random.default_rng(5)
    lengths = np.exp(rng.normal(0.0, 2.0, 2000))
    rows = [(1000.0 * k, float(x), "a" if k % 3 else None, None) for k, x in enumerate(lengths.tolist())]
    below = lengths <= replay(workload(*rows), f"conformal/of=global-mean/level={level}")
    for kind in (0, 1):  # of each kind of jobs, as promised; 700 to 1,300 draws: within 0.05 by far
        assert level - 0.04 < below[100:][np.arange(100, 2000) % 3 == kind].mean() < level + 0.05


def test_a_conformal_bound_by_hand() -> None:
    class Constant:
        name = "constant"

        def begin(self, jobs: JobFacts) -> None:
            pass

        def predict(self, job: int, now: float) -> float:
            return 2.0

        def observe(self, job: int, now: float, length: float) -> None:
            pass

    bound = Conformal(of=Constant(), level=0.6, window=4)  # type: ignore[arg-type]
    rows = [(100.0 * k, x, None, None) for k, x in enumerate([6.0, 2.0, 8.0, 4.0, 10.0, 12.0, 1.0])]
    # ranks ceil(0.6 (w + 1)) = 1 (of one: itself), 2, 3, 3, and of the last four 3 again
    assert replay(workload(*rows), bound).tolist() == pytest.approx([2, 6, 6, 8, 6, 8, 10])
