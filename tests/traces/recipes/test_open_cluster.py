"""Recipes of jobs that arrive at a cluster: small exact ones, ``poisson`` and ``philly-like``."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from optsched.io.traces.generate import generate
from optsched.io.traces.laws import PHILLY_GPUS
from optsched.io.traces.recipes.open_cluster import GAPS, LEVELS, QUANTILES, bursts, mean_of_quantiles
from optsched.problem.instance import Instance

# -- Recipes machines, rigid, a-srpt-small and tardiness: ranges, objectives and clusters of small exact instances --------


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


# -- Recipe poisson: arrivals, load and the independence of its laws, within sampling error of a fixed seed ---------------


N_POISSON = 40_000


def test_poisson_gaps_are_exponential() -> None:
    made = generate("poisson", 2, jobs=N_POISSON, gap=10)
    gaps = np.diff(made.arrival, prepend=0.0)
    assert stats.kstest(gaps, stats.expon(scale=10).cdf).pvalue > 0.01
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 5 / math.sqrt(N_POISSON)


def test_uniform_arrivals_fill_the_window() -> None:
    made = generate("poisson", 2, jobs=N_POISSON, gap=10, arrivals="uniform")
    assert (np.diff(made.arrival) >= 0).all()
    assert stats.kstest(made.arrival, stats.uniform(0, 10 * N_POISSON).cdf).pvalue > 0.01


def test_together_is_a_batch() -> None:
    assert generate("poisson", jobs=10, arrivals="together").arrival.tolist() == [0.0] * 10


def offered_load(made: Instance) -> float:
    return float(made.gpus @ made.duration / (made.cluster.gpus * made.arrival[-1]))


@pytest.mark.parametrize("load", [0.3, 0.9])
def test_the_offered_load_is_the_one_asked_for(load: float) -> None:
    made = generate(
        "poisson", 4, jobs=N_POISSON, load=load, duration="exponential:mean=50", gpus="gavel", cluster="4x4"
    )
    assert offered_load(made) == pytest.approx(load, rel=0.04)
    assert made.recipe["derived"]["load"] == pytest.approx(load)


def test_default_load_and_the_load_that_a_gap_makes() -> None:
    made = generate("poisson", 4, jobs=10)
    assert made.recipe["derived"]["load"] == pytest.approx(0.8)
    given = generate(
        "poisson", 4, jobs=10, gap=100, duration="constant:value=50", gpus="constant:value=8", cluster="1x8"
    )
    assert given.recipe["derived"] == {"gap": 100.0, "load": 0.5}


def test_sizes_durations_and_weights_are_independent() -> None:
    made = generate("poisson", 9, jobs=N_POISSON, duration="uniform:low=1,high=9", gpus="uniform:high=8", heaviest=10)
    columns = np.stack([np.diff(made.arrival, prepend=0.0), made.gpus, made.duration, made.weight])
    off_diagonal = np.corrcoef(columns) - np.eye(4)
    assert np.abs(off_diagonal).max() < 5 / math.sqrt(N_POISSON)
    assert set(made.weight.tolist()) == set(range(1, 11))


def test_whole_numbers_make_an_exact_instance() -> None:
    made = generate("poisson", 1, jobs=200, whole="yes", duration="exponential:mean=2")
    assert made.integral
    assert made.duration.min() == 1.0
    assert not generate("poisson", 1, jobs=200).integral


def test_gangs_fit_on_the_cluster() -> None:
    assert generate("poisson", 1, jobs=N_POISSON, cluster="1x4", gpus="philly").gpus.max() == 4


# -- Recipe philly-like: its samples have the figures measured on the trace -----------------------------------------------


N_PHILLY_LIKE = 100_000
MEASURED_MEANS = {1: 8301.04, 2: 30942.04, 4: 78762.04, 8: 129774.87, 9: 95325.80}  # of the file, by size


def test_the_mean_of_a_quantile_table_is_its_integral() -> None:
    for table in (*QUANTILES.values(), [gap + 1 for gap in GAPS]):
        pieces = [
            integrate.quad(lambda u, t=table: math.exp(np.interp(u, LEVELS, np.log(t))), low, high)[0]
            for low, high in itertools.pairwise(LEVELS)
        ]
        assert mean_of_quantiles(np.array(table, dtype=float)) == pytest.approx(sum(pieces), rel=1e-6)


def test_the_means_by_gang_size_are_within_eight_per_cent_of_the_trace() -> None:
    for size, table in QUANTILES.items():
        assert mean_of_quantiles(np.array(table, dtype=float)) == pytest.approx(MEASURED_MEANS[size], rel=0.08)


def test_gang_sizes_and_durations() -> None:
    made = generate("philly-like", 7, jobs=N_PHILLY_LIKE, cluster="64x8")
    for count, jobs in PHILLY_GPUS.items():
        share = jobs / 82247
        assert np.mean(made.gpus == count) == pytest.approx(share, abs=5 * math.sqrt(share / N_PHILLY_LIKE))
    for low, high, table in ((1, 2, QUANTILES[1]), (8, 9, QUANTILES[8])):
        durations = made.duration[(made.gpus >= low) & (made.gpus < high)]
        for level in (0.25, 0.5, 0.75):
            below = np.mean(durations <= table[list(LEVELS).index(level)])
            assert below == pytest.approx(level, abs=5 * 0.5 / math.sqrt(len(durations)) + 0.005)
        assert durations.max() <= table[-1]
    assert made.duration.min() >= 1


def test_bursts_have_the_mean_gap_and_a_much_larger_variance_than_poisson() -> None:
    bursty = np.diff(generate("philly-like", 7, jobs=N_PHILLY_LIKE, gap=114.4).arrival)
    assert bursty.mean() == pytest.approx(114.4, rel=5 * bursty.std() / 114.4 / math.sqrt(N_PHILLY_LIKE))
    assert bursty.std() / bursty.mean() > 5
    unscaled = mean_of_quantiles(np.array(GAPS) + 1.0) - 1.0
    gaps = np.diff(bursts(np.random.Generator(np.random.PCG64(1)), N_PHILLY_LIKE, unscaled))
    assert np.quantile(gaps, [0.25, 0.5, 0.75, 0.9]) == pytest.approx([3, 8, 44, 361], rel=0.05)
    poisson = np.diff(generate("philly-like", 7, jobs=N_PHILLY_LIKE, gap=114.4, arrivals="poisson").arrival)
    assert poisson.mean() == pytest.approx(114.4, rel=0.03)
    assert poisson.std() / poisson.mean() == pytest.approx(1, abs=0.05)


def test_the_load_is_the_one_asked_for_and_gangs_fit() -> None:
    made = generate("philly-like", 3, jobs=N_PHILLY_LIKE, cluster="4x4", load=0.7, arrivals="poisson")
    assert made.gpus.max() == 16
    assert made.gpus @ made.duration / (16 * made.arrival[-1]) == pytest.approx(0.7, rel=0.1)
    assert made.integral
