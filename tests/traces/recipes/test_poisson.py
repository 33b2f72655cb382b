"""Recipe poisson: arrivals, load and the independence of its laws, within sampling error of a fixed seed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.problem.instance import Instance

N = 40_000


def test_poisson_gaps_are_exponential() -> None:
    made = generate("poisson", 2, jobs=N, gap=10)
    gaps = np.diff(made.arrival, prepend=0.0)
    assert stats.kstest(gaps, stats.expon(scale=10).cdf).pvalue > 0.01
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 5 / math.sqrt(N)


def test_uniform_arrivals_fill_the_window() -> None:
    made = generate("poisson", 2, jobs=N, gap=10, arrivals="uniform")
    assert (np.diff(made.arrival) >= 0).all()
    assert stats.kstest(made.arrival, stats.uniform(0, 10 * N).cdf).pvalue > 0.01


def test_together_is_a_batch() -> None:
    assert generate("poisson", jobs=10, arrivals="together").arrival.tolist() == [0.0] * 10


def offered_load(made: Instance) -> float:
    return float(made.gpus @ made.duration / (made.cluster.gpus * made.arrival[-1]))


@pytest.mark.parametrize("load", [0.3, 0.9])
def test_the_offered_load_is_the_one_asked_for(load: float) -> None:
    made = generate("poisson", 4, jobs=N, load=load, duration="exponential:mean=50", gpus="gavel", cluster="4x4")
    assert offered_load(made) == pytest.approx(load, rel=0.04)
    assert made.recipe is not None
    assert made.recipe["derived"]["load"] == pytest.approx(load)


def test_default_load_and_the_load_that_a_gap_makes() -> None:
    made = generate("poisson", 4, jobs=10)
    assert made.recipe is not None
    assert made.recipe["derived"]["load"] == pytest.approx(0.8)
    given = generate(
        "poisson", 4, jobs=10, gap=100, duration="constant:value=50", gpus="constant:value=8", cluster="1x8"
    )
    assert given.recipe is not None
    assert given.recipe["derived"] == {"gap": 100.0, "load": 0.5}
    with pytest.raises(InputError, match="gap and load"):
        generate("poisson", gap=1, load=1)


def test_sizes_durations_and_weights_are_independent() -> None:
    made = generate("poisson", 9, jobs=N, duration="uniform:low=1,high=9", gpus="uniform:high=8", heaviest=10)
    columns = np.stack([np.diff(made.arrival, prepend=0.0), made.gpus, made.duration, made.weight])
    off_diagonal = np.corrcoef(columns) - np.eye(4)
    assert np.abs(off_diagonal).max() < 5 / math.sqrt(N)
    assert set(made.weight.tolist()) == set(range(1, 11))


def test_whole_numbers_make_an_exact_instance() -> None:
    made = generate("poisson", 1, jobs=200, whole="yes", duration="exponential:mean=2")
    assert made.integral
    assert made.duration.min() == 1.0
    assert not generate("poisson", 1, jobs=200).integral


def test_gangs_fit_on_the_cluster() -> None:
    assert generate("poisson", 1, jobs=N, cluster="1x4", gpus="philly").gpus.max() == 4
    with pytest.raises(InputError, match="no gang fits"):
        generate("poisson", cluster="1x4", gpus="constant:value=8")
