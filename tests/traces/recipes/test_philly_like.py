"""Recipe philly-like: its samples have the figures measured on the trace."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate

from optsched.io.traces.generate import generate
from optsched.io.traces.laws import PHILLY_GPUS
from optsched.io.traces.recipes.open_cluster import GAPS, LEVELS, QUANTILES, bursts, mean_of_quantiles

N = 100_000
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
    made = generate("philly-like", 7, jobs=N, cluster="64x8")
    for count, jobs in PHILLY_GPUS.items():
        share = jobs / 82247
        assert np.mean(made.gpus == count) == pytest.approx(share, abs=5 * math.sqrt(share / N))
    for low, high, table in ((1, 2, QUANTILES[1]), (8, 9, QUANTILES[8])):
        durations = made.duration[(made.gpus >= low) & (made.gpus < high)]
        for level in (0.25, 0.5, 0.75):
            below = np.mean(durations <= table[list(LEVELS).index(level)])
            assert below == pytest.approx(level, abs=5 * 0.5 / math.sqrt(len(durations)) + 0.005)
        assert durations.max() <= table[-1]
    assert made.duration.min() >= 1


def test_bursts_have_the_mean_gap_and_a_much_larger_variance_than_poisson() -> None:
    bursty = np.diff(generate("philly-like", 7, jobs=N, gap=114.4).arrival)
    assert bursty.mean() == pytest.approx(114.4, rel=5 * bursty.std() / 114.4 / math.sqrt(N))
    assert bursty.std() / bursty.mean() > 5
    unscaled = mean_of_quantiles(np.array(GAPS) + 1.0) - 1.0
    gaps = np.diff(bursts(np.random.Generator(np.random.PCG64(1)), N, unscaled))
    assert np.quantile(gaps, [0.25, 0.5, 0.75, 0.9]) == pytest.approx([3, 8, 44, 361], rel=0.05)
    poisson = np.diff(generate("philly-like", 7, jobs=N, gap=114.4, arrivals="poisson").arrival)
    assert poisson.mean() == pytest.approx(114.4, rel=0.03)
    assert poisson.std() / poisson.mean() == pytest.approx(1, abs=0.05)


def test_the_load_is_the_one_asked_for_and_gangs_fit() -> None:
    made = generate("philly-like", 3, jobs=N, cluster="4x4", load=0.7, arrivals="poisson")
    assert made.gpus.max() == 16
    assert made.gpus @ made.duration / (16 * made.arrival[-1]) == pytest.approx(0.7, rel=0.1)
    assert made.integral
