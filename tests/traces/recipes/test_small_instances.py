"""Recipes machines, rigid, a-srpt-small and tardiness: ranges, objectives and clusters of small exact instances."""

from __future__ import annotations

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.io.traces.generate import generate

N = 20_000


def evenly(values: np.ndarray, low: int, high: int) -> bool:
    # every integer of low..high occurs, each about as often as the others, and nothing else
    found, counts = np.unique(values, return_counts=True)
    expected = len(values) / (high - low + 1)
    return found.tolist() == list(range(low, high + 1)) and bool((np.abs(counts - expected) < 6 * expected**0.5).all())


def test_machines() -> None:
    made = generate("machines", 1, jobs=N, machines=3, longest=30, heaviest=10)
    assert evenly(made.duration, 1, 30)
    assert evenly(made.weight, 1, 10)
    assert made.arrival.max() <= 0.6 * made.duration.sum() / 3
    assert made.arrival.max() > 0.99 * 0.6 * made.duration.sum() / 3
    assert made.integral
    assert made.cluster.spec == "3x1"
    assert made.objective == "total_weighted_completion_time"
    assert (made.gpus == 1).all()


def test_unit_weights_mean_the_unweighted_objective_and_no_span_a_batch() -> None:
    made = generate("machines", 1, span=0)
    assert made.objective == "total_completion_time"
    assert made.arrival.tolist() == [0.0] * 10
    assert generate("rigid", 1, heaviest=4).objective == "total_weighted_completion_time"


def test_rigid() -> None:
    made = generate("rigid", 1, jobs=N, gpus=8)
    assert {g: round(float(np.mean(made.gpus == g)), 1) for g in (1, 2, 4, 8)} == {1: 0.4, 2: 0.2, 4: 0.2, 8: 0.2}
    assert evenly(made.duration, 1, 30)
    latest = 0.6 * (made.duration @ made.gpus) / 8
    assert 0.99 * latest < made.arrival.max() <= latest
    assert made.cluster.spec == "1x8"
    assert made.objective == "total_completion_time"
    assert generate("rigid", 1, jobs=100, gpus=3).gpus.max() == 2


def test_a_srpt_small() -> None:
    made = generate("a-srpt-small", 1, jobs=N, gpus=6, latest=20, widest=3)
    assert sorted(set(made.duration.tolist())) == [1, 2, 3, 5, 8, 13]
    assert evenly(made.arrival, 0, 20)
    assert evenly(made.gpus, 1, 3)
    assert made.cluster.spec == "1x6"
    assert generate("a-srpt-small", 1, jobs=N).gpus.max() == 4
    with pytest.raises(InputError, match=r"widest = 5.*at most gpus = 4"):
        generate("a-srpt-small", widest=5)


def test_tardiness() -> None:
    made = generate("tardiness", 1, jobs=N, tightness=0.8, spread=0.4)
    total = made.duration.sum()
    assert made.due.min() >= 0.0 * total - 1
    assert made.due.max() <= 0.4 * total + 1
    assert made.due.mean() == pytest.approx(0.2 * total, rel=0.02)
    assert evenly(made.duration, 1, 100)
    assert made.objective == "total_weighted_tardiness"
    assert (made.arrival == 0).all()
    narrow = generate("tardiness", 1, jobs=5, tightness=0.999, spread=0)
    assert len(set(narrow.due.tolist())) == 1
