"""Recipe ``ada-srsf``: counts and ranges of the published generator, other numbers of jobs, other networks, refusals."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.io.traces.recipes.ada_srsf import TASK_MODELS, gangs
from optsched.problem.contention import ETHERNET_1G, ETHERNET_10G

PUBLISHED = {1: 80, 2: 14, 4: 26, 8: 30, 16: 8, 32: 2}


def test_the_published_workload() -> None:
    instance = generate("ada-srsf", 3)
    assert Counter(instance.gpus.tolist()) == PUBLISHED
    assert instance.gpus.tolist() != sorted(instance.gpus.tolist())
    assert (instance.cluster.spec, instance.cluster.gpus) == ("16x4", 64)
    assert set(instance.cluster.node_memory.tolist()) == {32768e6}
    assert instance.contention == ETHERNET_10G
    assert instance.objective == "total_flow_time"
    assert instance.at_task_level
    milliseconds = instance.arrival * 1000
    assert np.abs(milliseconds - np.round(milliseconds)).max() < 1e-9
    assert np.all(np.diff(instance.arrival) >= 0)
    assert set(instance.table["profile"]) == {"VGG-16", "ResNet-50", "Inception-V3", "LSTM-PTB"}
    lstm = instance.table["profile"].to_list().index("LSTM-PTB")
    found = [float(a[lstm]) for a in (instance.forward, instance.backward, instance.message, instance.gpu_memory)]
    assert found == [0.032, 0.047, 251.8e6, 2751e6]


def test_laws_of_iterations_arrivals_and_models() -> None:
    instance = generate("ada-srsf", 1, jobs=20_000, scale=100)
    assert (instance.iterations.min(), instance.iterations.max()) == (100, 600)
    assert instance.iterations.mean() == pytest.approx(350, abs=4)  # sd of the mean: 1.02
    assert 0 <= instance.arrival.min() < 0.1
    assert 119.9 < instance.arrival.max() < 120
    assert instance.arrival.mean() == pytest.approx(60, abs=1)  # sd of the mean: 0.245
    counts = Counter(instance.table["profile"].to_list())
    assert all(abs(count - 5000) < 250 for count in counts.values())  # sd: 61
    of_wide = Counter(instance.table.filter(instance.gpus > 4)["profile"].to_list())
    assert all(count / 5000 == pytest.approx(0.25, abs=0.03) for count in of_wide.values())
    # work and window grow together
    assert generate("ada-srsf", 1, scale=1000).arrival.max() == pytest.approx(
        100 * generate("ada-srsf", 1).arrival.max(), abs=0.1
    )


@pytest.mark.parametrize("jobs", [1, 2, 7, 8, 40, 79, 80, 160, 161, 1000])
def test_gangs_of_other_numbers_of_jobs_keep_the_shares(jobs: int) -> None:
    sizes = gangs(jobs).tolist()
    assert sizes == sorted(sizes)
    assert len(sizes) == jobs
    for size, count in PUBLISHED.items():
        assert abs(Fraction(sizes.count(size)) - Fraction(jobs * count, 160)) <= 1
    of_published = [size for size, count in PUBLISHED.items() for _ in range(count)]
    place = [Fraction(2 * k + 1, 2 * jobs) * 160 for k in range(jobs)]
    assert sizes == [of_published[int(each)] for each in place]


def test_small_clusters_other_networks_and_other_contention() -> None:
    small = generate("ada-srsf", 1, jobs=30, scale=1, cluster="2x3", memory=6e9)
    assert small.gpus.max() == 6
    assert set(small.cluster.node_memory.tolist()) == {6e9}
    older = generate("ada-srsf", 1, network="1g")
    assert older.contention == ETHERNET_1G
    assert set(older.table["profile"]) == set(TASK_MODELS["1g"].models)
    assert not older.gpu_memory.any()
    made = generate("ada-srsf", 1, seconds_per_byte=1e-9, penalty=0, latency=6.69e-4)
    assert made.contention is not None
    assert made.contention.to_json() == {"seconds_per_byte": 1e-9, "latency": 6.69e-4}
    assert made.table.equals(generate("ada-srsf", 1).table)  # contention does not change the jobs


def test_what_is_refused() -> None:
    for key, value in (("scale", 0), ("penalty", -1), ("network", "100g"), ("memory", 0), ("seconds_per_byte", 0)):
        with pytest.raises(InputError, match=f"{key} = .*recipe ada-srsf"):
            generate("ada-srsf", 1, **{key: value})
    with pytest.raises(InputError, match=r"memory = .*too small"):
        generate("ada-srsf", 1, memory=4e9)  # VGG-16 needs more
