"""``shrinkage``, ``boosting`` and ``conformal``: by hand, and that they do what they are for on fresh seeds."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from optsched.io.traces.generate import generate
from optsched.policies.predictors.boosting import Boosting
from optsched.policies.predictors.conformal import Conformal
from optsched.problem.instance import Instance, Job
from optsched.problem.profile import Profile, Stage
from optsched.simulation.policy import JobFacts

from .workloads import errors, replay, workload

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
    for instance, middle, upper in zip(recurring(), said("boosting"), said("boosting/quantile=0.9"), strict=True):
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


@pytest.mark.parametrize("make", [Boosting, Conformal])
def test_what_was_learned_before_is_forgotten(make: type) -> None:
    instance, made = generate("recurring", 1, jobs=150, plain=True), make()
    assert replay(instance, made).tolist() == replay(instance, made).tolist()
