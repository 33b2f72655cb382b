"""Recipes of jobs that may share GPUs: counts, laws, load by another method, memory, interference, refusals."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from optsched.io.traces.generate import generate, in_proportion
from optsched.problem.instance import Instance
from optsched.problem.interference import Interference
from optsched.speeds.duration import seconds_alone
from optsched.speeds.interference_sources import built_in_interference

MODELS = {"ncf": 102, "cifar10": 94, "deepspeech2": 17, "bert": 15, "imagenet": 7, "yolov3": 5}
OF_PAIRS = {
    "ncf": {(1, 32768)},
    "cifar10": {(6, 2048), (8, 2048), (12, 4096), (16, 4096)},
    "deepspeech2": {(6, 320), (8, 320), (12, 640)},
    "bert": {(6, 384), (8, 384), (12, 384), (16, 384)},
    "imagenet": {(24, 3200), (32, 6400)},
    "yolov3": {(4, 64)},
}
TESTBED = {"mix": "testbed", "jobs": 30, "nodes": 4, "memory": 11e9}


def load_of(instance: Instance, hours: float) -> float:
    """By the seconds alone of the rate model, not by those of the recipe."""
    work = float(instance.gpus @ seconds_alone(instance))
    return work / (3600 * hours * instance.cluster.gpus)


def test_the_pollux_mix_has_the_counts_of_its_set() -> None:
    instance = generate("sharing-cluster", 4)
    assert Counter(instance.table["model"].to_list()) == MODELS
    assert instance.table["model"].to_list() == instance.table["profile"].to_list()
    rows = instance.table.select("model", "gpus", "batch_size").rows()
    assert all((gpus, batch) in OF_PAIRS[model] for model, gpus, batch in rows)
    assert (instance.cluster.gpus, instance.objective) == (64, "total_flow_time")
    assert instance.arrival.max() < 8 * 3600
    assert np.all(np.diff(instance.arrival) >= 0)
    assert np.all(instance.arrival == np.floor(instance.arrival))
    assert instance.jobs_at("scalings").size == instance.n
    assert load_of(instance, 8) == pytest.approx(instance.recipe["derived"]["load"])
    # samples to completion: epochs x samples of an epoch, whatever the batch
    for model, batch, iterations in instance.table.select("model", "batch_size", "iterations").rows():
        first, epochs, per_epoch = {"cifar10": (128, 100, 390), "imagenet": (200, 90, 6405)}.get(model, (0, 0, 0))
        assert not first or 0 <= iterations * batch - first * epochs * per_epoch < batch


def test_gangs_follow_the_set_and_small_clusters_cut_them() -> None:
    gangs = Counter(generate("sharing-cluster", 1, jobs=4800).gpus.tolist())
    of_set = {6: 33, 8: 30, 12: 40, 16: 23}
    expected = {1: 102.0, 4: 5.0, 24: 2.0, 32: 5.0}
    for size, count in of_set.items():  # CIFAR10 and BERT have all four sizes, DeepSpeech2 never has 16 GPUs
        expected[size] = (94 + 15) * count / 126 + (17 * count / 103 if size < 16 else 0)
    for size, count in expected.items():
        assert gangs[size] / 20 == pytest.approx(count, abs=4 * np.sqrt(count / 20)), size
    small = generate("sharing-cluster", 1, nodes=2)
    assert small.gpus.max() == 8
    assert {batch for model, batch in small.table.select("model", "batch_size").rows() if model == "imagenet"} == {3200}
    assert small.gpus[np.array(small.table["model"] == "imagenet")].tolist() == [8] * 7


def test_no_gang_is_wider_than_asked() -> None:
    narrow = generate("sharing-cluster", 1, jobs=233, widest=16)
    assert Counter(narrow.table["model"].to_list()) == {name: n for name, n in MODELS.items() if name != "imagenet"}
    assert narrow.gpus.max() == 16
    six = generate("sharing-cluster", 1, widest=6)
    assert set(six.table.select("model", "gpus").unique().rows()) == {
        ("ncf", 1),
        ("yolov3", 4),
        ("cifar10", 6),
        ("deepspeech2", 6),
        ("bert", 6),
    }
    assert generate("sharing-cluster", 1, widest=32).table.equals(generate("sharing-cluster", 1).table)
    assert generate("sharing-cluster", 1, **TESTBED, widest=4).gpus.max() == 4


def test_load_sets_the_window_or_with_the_window_the_iterations() -> None:
    plain = generate("sharing-cluster", 2, jobs=60)
    spread = generate("sharing-cluster", 2, jobs=60, load=0.5)
    assert np.array_equal(spread.iterations, plain.iterations)
    hours = spread.recipe["derived"]["hours"]
    assert load_of(spread, hours) == pytest.approx(0.5)
    assert spread.arrival.max() / (3600 * hours) == pytest.approx(plain.arrival.max() / (3600 * 8), abs=1e-4)
    both = generate("sharing-cluster", 2, jobs=60, load=0.5, hours=10)
    assert load_of(both, 10) == pytest.approx(0.5, rel=0.01)
    assert load_of(both, 10) >= 0.5  # iterations are rounded up
    assert both.recipe["derived"]["load"] == pytest.approx(load_of(both, 10))
    short = both.iterations < plain.iterations
    assert short.all()


def test_the_testbed_mix() -> None:
    instance = generate("sharing-cluster", 3, **TESTBED, load=2)
    sizes = Counter(instance.gpus.tolist())
    assert set(sizes) <= {1, 2, 4, 8, 12, 16}
    assert sizes[12] + sizes[16] == 10
    assert (instance.iterations.min() >= 100, instance.iterations.max() <= 5000) == (True, True)
    many = generate("sharing-cluster", 3, **{**TESTBED, "jobs": 3600})
    assert Counter(many.gpus.tolist())[12] == pytest.approx(600, abs=80)
    assert all(count == pytest.approx(600, abs=90) for count in Counter(many.table["model"].to_list()).values())
    first = {"ncf": 256, "cifar10": 128, "deepspeech2": 20, "bert": 12, "imagenet": 200, "yolov3": 8}
    least = {"ncf": 32, "cifar10": 32, "deepspeech2": 10, "bert": 4, "imagenet": 20, "yolov3": 4}
    for model, gpus, batch in many.table.select("model", "gpus", "batch_size").unique().rows():
        assert float(np.log2(batch / first[model])).is_integer()
        local, most = -(-batch // gpus), many.scalings[model].most_local or 0
        inside = [k for k in range(20) if least[model] <= -(-(first[model] << k) // gpus) <= most]
        assert least[model] <= local <= most or not inside
    assert load_of(instance, instance.recipe["derived"]["hours"]) == pytest.approx(2)


@pytest.mark.parametrize("memory", [9.6e9, 11e9, 16e9])
def test_every_job_fits_alone_and_any_two_at_small_sub_batches(memory: float) -> None:
    instance = generate("sharing-cluster", 5, jobs=240, memory=memory)
    chains = [instance.sub_batches(j) for j in range(instance.n)]
    assert all(chain[0].memory <= min(memory, 9.6e9) for chain in chains)
    assert all(2 * chain[-1].memory <= memory for chain in chains)
    assert min(chain[-1].memory for chain in chains) >= 1.6e9
    full = max(chain[0].memory for chain in chains)
    assert full == pytest.approx(9.6e9)
    assert 2 * full > memory
    assert max(len(chain) for chain in chains) > 3


def test_interference_changes_no_job() -> None:
    one, two, drawn = (generate("sharing-cluster", 6, jobs=50, xi=xi) for xi in (1.3, 2, "exp"))
    assert one.table.equals(two.table)
    assert one.table.equals(drawn.table)
    assert (one.interference, two.interference) == (Interference(1.3), Interference(2.0))
    assert set(drawn.interference.kinds) == set(MODELS)
    assert None not in drawn.kinds
    ratios = np.array([generate("sharing-cluster", s, jobs=1, xi="exp").interference.ratios for s in range(40)])
    assert ratios.min() > 1
    assert ratios.mean() == pytest.approx(1.5, abs=4 * 0.5 / 37)  # sd of an exponential with mean 0.5, 1440 draws
    assert not np.allclose(ratios, ratios.transpose(0, 2, 1))


@pytest.mark.parametrize("gpu", ["P100", "V100", "K80"])
def test_gavels_job_types_with_measured_interference(gpu: str) -> None:
    instance = generate("sharing-gavel", 1, jobs=400, gpu=gpu, load=1.5)
    assert instance.cluster.gpu_types == (gpu,)
    assert instance.cluster.gpus == 64
    table, measured = instance.interference, built_in_interference(gpu)
    assert set(table.kinds) == set(instance.table["profile"].to_list())
    for a in table.kinds:
        for b in table.kinds:
            assert table.slowdown(a, b) == measured.slowdown(a, b)
    work = float(instance.gpus @ seconds_alone(instance))
    assert work / (64 * instance.arrival.max()) == pytest.approx(1.5)
    assert set(instance.gpus.tolist()) == {1, 2, 4, 8}
    fits = {(name, g) for name, g in instance.table.select("profile", "gpus").rows()}
    assert ("ResNet-50 (batch size 128)", 4) not in fits or gpu != "K80"  # measured not to fit
    uniform = generate("sharing-gavel", 1, jobs=400, gpu=gpu, load=1.5, xi=1.2)
    assert uniform.table.equals(instance.table)
    assert uniform.interference == Interference(1.2)


def test_jobs_with_resource_vectors() -> None:
    instance = generate("sharing-vectors", 1)
    assert Counter(instance.gpus.tolist()) == {1: 26, 2: 10, 4: 13, 8: 8, 16: 2, 32: 2}
    models = instance.table["model"].to_list()
    assert Counter(models) == {
        "a2c": 10,
        "resnet18": 9,
        "vgg19": 9,
        "dqn": 8,
        "shufflenet_v2_x1_0": 7,
        "vgg16": 7,
        "bert": 6,
        "gpt2": 5,
    }
    assert instance.interference.slowdown("resnet18", "resnet18") == pytest.approx(2 * 711 / 779)
    assert instance.interference.slowdown("bert", "resnet18") == pytest.approx(110 / 779 + 160 / 178)
    many = generate("sharing-vectors", 1, jobs=24_400)
    per_gang = {1: 0.426, 4: 0.433, 8: 0.437, 16: 0.437 + 0.077 / 3, 32: 0.514}
    gpt2 = np.array(many.table["model"] == "gpt2")
    per_gang[2] = 0.426 + (0.433 - 0.426) / 3  # not measured: linear between 1 and 4
    iterations = many.duration[gpt2] / np.array([per_gang[g] for g in many.gpus[gpt2].tolist()])
    assert np.abs(iterations - np.round(iterations)).max() < 1e-6
    iterations = np.round(iterations)
    assert (iterations.min() >= 111, iterations.max() < 6690) == (True, True)
    assert np.log(iterations).mean() == pytest.approx((np.log(111) + np.log(6690)) / 2, abs=0.08)
    assert many.arrival.max() < 600
    assert many.arrival.min() == 2


def test_partners_and_a_gang() -> None:
    instance = generate("sharing-partners", 1, jobs=4, delay=0)
    assert instance.gpus.tolist() == [1, 1, 1, 3]
    assert instance.duration.tolist() == [1, 1, 1, 10]
    assert instance.cluster.gpus == 3
    assert instance.interference == Interference(1.4)
    drawn = generate("sharing-partners", 1, jobs=4, xi="exp", running="log-uniform:low=0.1,high=10")
    assert len(drawn.interference.kinds) == 4
    assert None not in drawn.kinds
    assert drawn.arrival.tolist() == [0, 0, 0, 1e-6]


@pytest.mark.parametrize("jobs", [1, 2, 7, 60, 239, 240, 480])
def test_any_number_of_jobs_keeps_the_proportions(jobs: int) -> None:
    found = in_proportion(jobs, MODELS)
    assert found == sorted(found, key=list(MODELS).index)
    assert len(found) == jobs
    for model, count in MODELS.items():
        assert abs(Fraction(found.count(model)) - Fraction(jobs * count, 240)) <= 1


# -- Recipe ``sharing-small``: what is drawn follows the laws it states, and a table of slow-downs is drawn for ``exp``.


def test_laws() -> None:
    drawn = generate("sharing-small", 1, jobs=4000, gpus=4, xi="1.3", span=0.001)
    logs = np.log10(drawn.duration)
    assert np.abs(np.quantile(logs, [0, 0.25, 0.5, 0.75, 1]) - [-1, -0.5, 0, 0.5, 1]).max() < 0.06
    assert np.bincount(drawn.gpus)[1:].min() > 900
    assert set(drawn.gpus.tolist()) == {1, 2, 3, 4}
    late = drawn.arrival[drawn.arrival > 0]
    assert late.size / 4000 == pytest.approx(0.6, abs=0.03)
    assert late.max() == pytest.approx(0.001 * drawn.duration.sum(), rel=0.01)
    assert late.mean() == pytest.approx(0.0005 * drawn.duration.sum(), rel=0.05)
    assert drawn.interference == Interference(1.3)
    each = generate("sharing-small", 1, jobs=4000, gpus=4, xi="1.3", span=0.001, per_gpu=True)
    share = float(each.gpus @ each.duration) / 4 / each.duration.sum()
    assert each.arrival == pytest.approx(drawn.arrival * share)
    assert drawn.objective == "total_flow_time"


def test_exponential_slowdowns_of_ordered_pairs() -> None:
    drawn = generate("sharing-small", 2, jobs=60, xi="exp")
    ratios = np.array(drawn.interference.ratios, dtype=float)
    assert ratios.shape == (60, 60)
    assert ratios.min() >= 1
    assert (ratios - 1).mean() == pytest.approx(0.5, abs=0.03)
    assert (ratios - 1).std() == pytest.approx(0.5, abs=0.05)
    assert not np.allclose(ratios, ratios.T)
    assert len(set(drawn.kinds)) == 60


def test_whole_numbers() -> None:
    drawn = generate("sharing-small", 3, jobs=20, gpus=2, whole=True)
    for times in (drawn.duration, drawn.arrival, 8 * np.array(drawn.interference.ratios, dtype=float)):
        assert (times == np.floor(times)).all()
    assert drawn.duration.min() >= 1
