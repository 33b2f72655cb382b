"""``noisy``: within its factor, near it, independent of the order of asking."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from optsched.io.traces.generate import generate
from optsched.policies.predictors import predictor
from optsched.problem.instance import Instance
from optsched.simulation.policy import JobFacts

from .workloads import errors, replay, workloads

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
