"""Gavel without rounds: fluid completions by hand, and beside the rounds."""

from __future__ import annotations

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.policies.gavel import Gavel
from optsched.policies.gavel_ideal import ideal
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job


def test_equal_jobs_share_one_gpu() -> None:
    jobs = [Job("a", duration=100), Job("b", duration=100), Job("c", arrival=50, duration=100)]
    run = ideal(Instance(jobs, "1x1"), "max_min_fairness_perf")
    # 25 s of work each at 50, then a third each: a and b end at 50 + 3 * 75; c has 25 left
    assert run.completion == pytest.approx([275, 275, 300], abs=1e-3)
    assert run.mean_jct == pytest.approx((275 + 275 + 250) / 3, abs=1e-3)
    assert run.makespan == pytest.approx(300, abs=1e-3)
    assert run.allocations == 3


def test_weights_and_gangs_share_in_proportion() -> None:
    jobs = [Job("wide", gpus=2, duration=30, weight=2), Job("narrow", duration=60)]
    run = ideal(Instance(jobs, "2x1"), "max_min_fairness_perf")
    # gang_m X_m / w_m alike, 2 X_wide + X_narrow = 2 GPUs: 2/3 of its time each
    assert run.completion == pytest.approx([45, 75], abs=1e-3)


def test_the_makespan_rule_ends_all_at_once_within_gavels_five_per_cent() -> None:
    rng = np.random.default_rng(0)
    jobs = [Job(f"j{k}", duration=float(rng.uniform(500, 5000))) for k in range(12)]
    instance = Instance(jobs, "3x1")
    run = ideal(instance, "min_total_duration_perf")
    best = max(instance.duration.sum() / 3, instance.duration.max())
    assert best * (1 - 1e-5) <= run.makespan <= 1.05 * best


def test_short_rounds_come_near_the_fluid() -> None:
    rng = np.random.default_rng(1)
    jobs = [
        Job(f"j{k}", arrival=float(rng.uniform(0, 5000)), duration=float(rng.uniform(500, 5000))) for k in range(20)
    ]
    instance = Instance(jobs, "4x1")
    fluid = ideal(instance, Gavel(policy="max_min_fairness_perf"))
    fine = simulate(instance, "gavel:policy=max_min_fairness_perf,ideal=true")
    coarse = simulate(instance, "gavel:policy=max_min_fairness_perf,round=1440")
    far = [float(np.abs(run.schedule.completion - fluid.completion).mean()) for run in (fine, coarse)]
    assert far[0] < 60 < far[1]


def test_a_gang_that_no_type_can_hold_never_ends_and_harms_nobody() -> None:
    jobs = [Job("wide", gpus=3, duration=10), Job("small", duration=10)]
    run = ideal(Instance(jobs, "2x1:V100+2x1:P100"), "max_min_fairness_perf")
    assert run.completion.tolist() == [np.inf, pytest.approx(10, abs=1e-3)]


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(InputError, match="max_min_fairness"):
        ideal(Instance([Job("a", duration=1)], "1x1"), "max_min_fairnes")
