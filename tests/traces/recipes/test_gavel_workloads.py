"""Gavel's workloads against the distributions of its generator, read back through the throughput table."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.problem.instance import Instance
from optsched.speeds.throughput_table import built_in

N = 20_000
SEVERAL = ("ResNet-18", "ResNet-50", "Transformer", "LM")


def v100_seconds(instance: Instance) -> np.ndarray:
    """Iterations over the rate of the gang on V100s of one node."""
    rows = zip(instance.table["profile"].to_list(), instance.gpus.tolist(), strict=True)
    return instance.work / np.array([built_in().entries[name, "V100", g].together for name, g in rows])


@pytest.fixture(scope="module")
def open_workload() -> Instance:
    return generate("gavel-continuous", 1, jobs=N)


def test_gang_sizes_and_types_of_the_open_workload(open_workload: Instance) -> None:
    share = {g: count / N for g, count in Counter(open_workload.gpus.tolist()).items()}
    assert share == pytest.approx({1: 0.7, 2: 0.1, 4: 0.15, 8: 0.05}, abs=4 * np.sqrt(0.25 / N))
    types = open_workload.table["profile"].to_numpy()
    single, several = open_workload.gpus == 1, open_workload.gpus > 1
    assert len(set(types)) == len(built_in().job_types) == 26
    assert {name.split(" (")[0] for name in types[several]} == set(SEVERAL)
    for kept, kinds in ((single, 26), (several, 19)):
        counts = Counter(types[kept].tolist())
        assert len(counts) == kinds
        expected = kept.sum() / kinds
        assert max(abs(c - expected) for c in counts.values()) < 4.5 * np.sqrt(expected)


def test_run_times_and_gaps_of_the_open_workload(open_workload: Instance) -> None:
    seconds, rate = v100_seconds(open_workload), 1 / np.diff(open_workload.arrival, prepend=0).mean()
    assert rate == pytest.approx(1 / 1200, rel=4 / np.sqrt(N))
    minutes = np.log10(seconds / 60)
    # whole iterations, rounded down: a slow model loses up to two seconds of a run time of at least half an hour
    assert minutes.min() > 1.499
    assert minutes.max() < 4
    assert np.mean(minutes < 3) == pytest.approx(0.8, abs=4 * np.sqrt(0.16 / N))
    assert minutes[minutes < 3].mean() == pytest.approx(2.25, abs=0.02)
    assert minutes[minutes >= 3].mean() == pytest.approx(3.5, abs=0.02)
    assert (open_workload.work == np.floor(open_workload.work)).all()


def test_another_law_of_one_thing_leaves_the_others_as_they_are() -> None:
    plain = generate("gavel-continuous", 3, jobs=200)
    slower = generate("gavel-continuous", 3, jobs=200, gap=99)
    narrow = generate("gavel-continuous", 3, jobs=200, gpus="constant:value=1")
    more = generate("gavel-continuous", 3, jobs=200, weights=True, deadlines=True)
    assert slower.table["profile"].equals(plain.table["profile"])
    np.testing.assert_allclose(slower.arrival * 1200, plain.arrival * 99)
    np.testing.assert_array_equal(narrow.arrival, plain.arrival)
    np.testing.assert_array_equal(more.work, plain.work)
    # the same run times, whatever the type and the gang: up to the last iteration
    seconds = [v100_seconds(each) for each in (plain, narrow)]
    np.testing.assert_allclose(seconds[0], seconds[1], rtol=0.01)


def test_weights_and_deadlines() -> None:
    instance = generate("gavel-continuous", 2, jobs=4000, weights=True, deadlines=True)
    assert set(instance.weight.tolist()) == {1.0, 5.0}
    assert np.mean(instance.weight == 5) == pytest.approx(0.2, abs=0.03)
    factor = (instance.due - instance.arrival) / v100_seconds(instance)
    for wanted, share in ((1.2, 0.33), (2.0, 0.34), (10.0, 0.33)):
        assert np.mean(np.isclose(factor, wanted, rtol=0.01)) == pytest.approx(share, abs=0.04)


def test_the_static_workload() -> None:
    instance = generate("gavel-static", 1, jobs=N)
    assert not instance.arrival.any()
    hours = v100_seconds(instance) / 3600
    assert Counter(np.round(hours).tolist()).keys() == {1.0, 2.0, 3.0, 4.0}
    np.testing.assert_allclose(hours, np.round(hours), rtol=1e-3)
    several = np.array([name.split(" (")[0] in SEVERAL for name in instance.table["profile"].to_list()])
    assert several.mean() == pytest.approx(19 / 26, abs=0.015)
    assert set(instance.gpus[~several].tolist()) == {1}
    share = {g: count / several.sum() for g, count in Counter(instance.gpus[several].tolist()).items()}
    assert share == pytest.approx({1: 0.7, 2: 0.1, 4: 0.2}, abs=0.015)
    assert generate("gavel-static", 1, jobs=50, gap=300).arrival.mean() > 0


def test_gangs_fit_one_type_of_a_small_cluster_and_rates_cover_it() -> None:
    instance = generate("gavel-continuous", 1, jobs=300, cluster="4x1:V100+2x1:T4")
    assert int(instance.gpus.max()) == 4
    assert instance.throughputs is not None
    for name, gpus in set(zip(instance.table["profile"].to_list(), instance.gpus.tolist(), strict=True)):
        assert instance.throughputs.get(name, "T4", gpus) is not None  # derived: the table knows no T4


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="longest"):
        generate("gavel-static", 1, shortest=10, longest=5)
    with pytest.raises(InputError, match="performance of this GPU type is not known"):
        generate("gavel-static", 1, cluster="4x2")
