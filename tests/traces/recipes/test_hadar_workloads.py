"""The stand-in for Hadar's trace, HadarE's mixes, and small instances with GPU types."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from examples import few

from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.io.traces.recipes.hadar import AWS, LAB, MODELS, WEATHER, classes_of, modelled
from optsched.policies.simulate import simulate
from optsched.solvers.solve import solve
from optsched.speeds.throughput_table import built_in
from optsched.speeds.type_speeds import type_speeds

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
    assert table is not None
    assert even is not None
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
        assert best.value is not None
        assert best.value <= simulate(instance, "yarn-cs").value()


def test_what_is_refused() -> None:
    for field, value in (("uneven", 1), ("longest", 5)):
        with pytest.raises(InputError, match=field):
            generate("hadar-mix", 1, **{field: value})
    with pytest.raises(InputError, match="classes"):
        generate("hadar-60", 1, classes="odd")
