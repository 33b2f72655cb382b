"""Workloads with GPU types: Gavel's, and the stand-ins for Hadar's."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from examples import few

from optsched.io.traces.generate import generate
from optsched.io.traces.recipes.hadar_recipes import AWS, LAB, MODELS, WEATHER, classes_of, modelled
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance
from optsched.solvers.solve import solve
from optsched.speeds.throughput_sources import built_in
from optsched.speeds.type_speeds import type_speeds

# -- Gavel's workloads against the distributions of its generator, read back through the throughput table -----------------


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
    for name, gpus in set(zip(instance.table["profile"].to_list(), instance.gpus.tolist(), strict=True)):
        assert instance.throughputs.get(name, "T4", gpus) is not None  # derived: the table knows no T4


# -- The stand-in for Hadar's trace, HadarE's mixes, and small instances with GPU types -----------------------------------


MODEL_OF = {"S": {"ResNet-18"}, "M": {"CycleGAN"}, "L": {"LM", "Transformer"}, "XL": {"ResNet-50"}}
LEAST = {"S": 0, "M": 1, "L": 10, "XL": 50}
MOST = {"S": 1, "M": 10, "L": 50, "XL": 100}


@pytest.mark.parametrize("classes", ["philly", "even"])
def test_models_and_gpu_hours_follow_from_the_class(classes: str) -> None:
    instance = generate("hadar-60", 1, jobs=20_000, classes=classes, hours=100)
    group, model = instance.table["group"].to_list(), instance.table["model"].to_list()
    counts = Counter(group)
    shares = {"S": 0.7842, "M": 0.1714, "L": 0.0354, "XL": 0.009} if classes == "philly" else dict.fromkeys(LEAST, 0.25)
    assert {k: c / instance.n for k, c in counts.items()} == pytest.approx(shares, abs=0.012)
    hours = np.array(
        [
            work / built_in().entries[profile, "V100", 1].together / 3600
            for work, profile in zip(instance.work.tolist(), instance.table["profile"].to_list(), strict=True)
        ]
    )
    for name in LEAST:
        mine = np.array([each == name for each in group])
        assert {model[j] for j in np.flatnonzero(mine)} == MODEL_OF[name]
        assert hours[mine].min() >= LEAST[name]
        assert hours[mine].max() < MOST[name] + 0.001  # an iteration more at most
    assert set(instance.gpus.tolist()) == {1, 2, 4, 8}
    assert instance.arrival[0] == 0
    assert 99.9 * 3600 < instance.arrival[-1] < 100 * 3600


def test_classes_meet_at_whole_hours() -> None:
    assert classes_of(np.array([0.0, 0.999, 1.0, 9.99, 10.0, 49.9, 50.0, 99.0])).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_gangs_are_cut_to_what_was_measured_and_what_a_type_holds() -> None:
    rng = np.random.default_rng(0)
    gpus, hours = np.array([1, 2, 3, 4, 5, 8, 16, 128]), np.full(8, 0.5)
    assert modelled(rng, gpus, hours, 20)["gpus"].tolist() == [1, 2, 2, 4, 4, 8, 8, 8]
    assert modelled(rng, gpus, hours, 4)["gpus"].tolist() == [1, 2, 2, 4, 4, 4, 4, 4]
    # half a GPU-hour on one V100, whatever the gang
    expected = np.ceil(1800 * built_in().entries["ResNet-18 (batch size 128)", "V100", 1].together)
    assert set(modelled(rng, gpus, hours, 20)["iterations"].tolist()) == {expected}


@pytest.mark.parametrize(("cluster", "nodes"), [(LAB, 5), (AWS, 3)])
def test_mixes_last_as_long_as_asked_on_their_fastest_node(cluster: str, nodes: int) -> None:
    instance = generate("hadar-mix", 4, jobs=12, cluster=cluster)
    assert instance.cluster.gpus == instance.cluster.node_count == nodes
    assert Counter(instance.table["profile"].to_list()) == Counter([*MODELS, *MODELS, *MODELS[:2]])
    seconds = instance.work / type_speeds(instance).fastest
    assert seconds.min() >= 600
    assert seconds.max() < 6000 + 20  # an iteration more; the weather model's take up to 14 s
    assert simulate(instance, "hadar-e").unfinished == []


def test_measured_rates_of_a_mix_stand_and_the_others_are_uneven() -> None:
    table = generate("hadar-mix", 1, jobs=5, cluster=AWS).throughputs
    even = generate("hadar-mix", 1, jobs=5, cluster=AWS, uneven=0).throughputs
    for (model, gpu, gpus), rate in table.entries.items():
        known = built_in().get(model, gpu, gpus)
        assert rate.measured == (known is not None)
        if known is not None:
            assert rate.together == known.together
        else:
            factor = rate.together / even.entries[model, gpu, gpus].together
            assert 0.8 <= factor <= 1.2
            assert factor != 1
    assert even.entries[WEATHER, "T4", 1].together == pytest.approx(8.1 / 15.7)


@pytest.mark.release
def test_small_instances_have_whole_durations_everywhere_and_a_provable_optimum() -> None:
    for seed, cluster in few(((1, "1x2:V100+1x2:K80"), (2, "1x2:V100+1x1:P100+1x2:K80"), (3, "2x1:V100+1x2:K80")), 1):
        instance = generate("hetero-small", seed, jobs=4, cluster=cluster)
        speeds = type_speeds(instance)
        for table in (speeds.together, speeds.spread):
            seconds = instance.work[:, None] / table
            assert (seconds == np.round(seconds)).all()
        assert (speeds.together.max(axis=0) > speeds.together.min(axis=0)).any()
        best = solve(instance)
        assert best.status == "optimal"
        assert best.value <= simulate(instance, "yarn-cs").value()
