"""``shrinkage``: by hand, and that it does what it is for on fresh seeds."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from optsched.io.traces.generate import generate
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
