"""The model zoo: published counts, and profiles whose replicas, compute and parameters add up."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, strategies as st

from optsched.errors import InputError
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.profile import Profile
from optsched.speeds.model_zoo import MIXED_STAGES, MODELS, PARALLELISM, Model, zoo_profile
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import alpha_max, alpha_min

NODES = Network.of(Cluster((NodeGroup(8, 4, nic_bandwidth=3.125e9, intra_bandwidth=150e9),)))
ASKED = st.tuples(st.sampled_from(sorted(MODELS)), st.integers(1, 16), st.sampled_from(PARALLELISM))


def flops(model: Model) -> float:
    """Of the forward pass of one sample."""
    return sum(block.flops for block in model.blocks)


@pytest.mark.parametrize(
    ("name", "parameters", "multiply_adds"),
    [
        # printed by torchvision's model pages (Inception-v3: without the auxiliary classifier)
        ("vgg19", 143_667_240, 19.63e9),
        ("resnet50", 25_557_032, 4.09e9),
        ("resnet152", 60_192_808, 11.51e9),
        ("inception-v3", 23_834_568, 5.71e9),
        # parameters of the published checkpoints; 2 x parameters x tokens is the rule of thumb for FLOPs
        ("bert-large", 335_141_888, None),
        ("xlnet-large", 360_268_800, None),
        ("gpt", 1_557_611_200, None),
        ("gpt-6.7b", 6_658_404_352, None),
    ],
)
def test_counts_are_the_published_ones(name: str, parameters: int, multiply_adds: float | None) -> None:
    model = MODELS[name]
    assert sum(block.parameters for block in model.blocks) == parameters
    if multiply_adds is not None:
        assert flops(model) / 2 == pytest.approx(multiply_adds, rel=0.002)
    else:
        tokens = {"gpt": 1024, "gpt-6.7b": 2048}.get(name, 512)
        assert 0.9 < flops(model) / (2 * parameters * tokens) < 1.15  # attention adds, look-ups of words save


def test_the_fully_connected_layers_of_vgg_hold_the_parameters_and_none_of_the_compute() -> None:
    blocks = MODELS["vgg19"].blocks
    connected = [block for block in blocks if block.name.startswith("fc")]
    assert len(blocks) == 19
    assert sum(b.parameters for b in connected) / sum(b.parameters for b in blocks) == pytest.approx(0.86, abs=0.005)
    assert sum(b.flops for b in connected) / sum(b.flops for b in blocks) < 0.01
    assert blocks[15].activations == 512 * 7 * 7


def test_speeds_give_the_measured_training_rates() -> None:
    # images/s of one P100, times the ratio of the peaks of V100 and P100, single precision
    for name, rate in (("resnet50", 219), ("resnet152", 91.8), ("inception-v3", 142)):
        profile = zoo_profile(name, 1)
        assert MODELS[name].samples / profile.stages[0].compute == pytest.approx(rate * 15.7 / 10.6, rel=0.02)


@given(ASKED, st.sampled_from([None, 1, 8]))
def test_replicas_compute_parameters_and_activations_add_up(asked: tuple[str, int, str], micro: int | None) -> None:
    name, gpus, parallelism = asked
    model, profile = MODELS[name], zoo_profile(name, gpus, parallelism, micro)
    stages = profile.stages
    assert profile.gpus == gpus
    assert profile.micro_batches == micro
    assert sum(stage.parameters for stage in stages) == model.width * sum(block.parameters for block in model.blocks)
    work = sum(stage.replicas * stage.compute for stage in stages)  # the whole batch, forward and twice that back
    assert work == pytest.approx(gpus * model.samples * 3 * flops(model) / model.speed, rel=1e-12)
    assert all(stage.backward == 2 * stage.forward for stage in stages)
    assert profile.edges == tuple((s, s + 1, stage.activations) for s, stage in enumerate(stages[:-1]))
    assert all(stage.activations > 0 for stage in stages[:-1])
    assert stages[-1].activations == 0
    counts = {"data": {1}, "pipeline": {gpus}, "mixed": set(range(1, MIXED_STAGES + 1))}
    assert len(stages) in counts[parallelism]
    if gpus == 1:
        assert len(stages) == 1
        assert alpha_min(profile, NODES) == alpha_max(profile, NODES) == stages[0].compute


def _largest(flops: tuple[float, ...], cuts: tuple[int, ...]) -> float:
    return max(sum(flops[a:b]) for a, b in itertools.pairwise((0, *cuts, len(flops))))


@pytest.mark.parametrize("name", ["vgg19", "resnet50", "inception-v3", "gpt"])
def test_no_other_cuts_make_the_slowest_stage_of_a_pipeline_faster(name: str) -> None:
    flops = tuple(block.flops for block in MODELS[name].blocks)
    for stages in (2, 3, 4):
        slowest = max(stage.compute for stage in zoo_profile(name, stages, "pipeline").stages)
        every = itertools.combinations(range(1, len(flops)), stages - 1)
        least = min(_largest(flops, cuts) for cuts in every)
        model = MODELS[name]
        assert slowest == pytest.approx(stages * model.samples * 3 * least / model.speed, rel=1e-12)


@pytest.mark.parametrize("stages", [2, 3, 4, 6, 8, 12, 24])
def test_alike_layers_are_split_evenly_where_they_can_be(stages: int) -> None:
    parts = [stage.name for stage in zoo_profile("xlnet-large", stages, "pipeline").stages]
    each = 24 // stages
    for k, part in enumerate(parts):
        first, last = k * each + 1, (k + 1) * each
        assert part == (f"layer{first}" if each == 1 else f"layer{first}..layer{last}")


@pytest.mark.parametrize("gpus", [2, 3, 4, 7, 8, 16])
def test_mixed_replicas_follow_the_compute(gpus: int) -> None:
    for name in MODELS:
        stages = zoo_profile(name, gpus, "mixed").stages
        assert len(stages) >= 2
        shares = [stage.replicas * stage.compute for stage in stages]
        ways = (k for k in itertools.product(range(1, gpus), repeat=len(stages)) if sum(k) == gpus)
        least = min(max(share / k for share, k in zip(shares, way, strict=True)) for way in ways)
        assert max(stage.compute for stage in stages) == pytest.approx(least, rel=1e-12)


def test_mixed_vgg_replicates_the_convolutions_and_not_the_fully_connected_layers() -> None:
    convolutions, connected = zoo_profile("vgg19", 8, "mixed").stages
    assert (convolutions.replicas, connected.replicas) == (7, 1)
    assert (convolutions.name, connected.name) == ("conv1-1..conv5-4", "fc6..fc8")
    assert connected.parameters == pytest.approx(0.86 * 4 * 143_667_240, rel=0.005)
    assert convolutions.activations == 4 * 8 * 64 * 512 * 7 * 7


def _sensitivity(profile: Profile) -> float:
    return alpha_max(profile, NODES) / alpha_min(profile, NODES)


def test_data_parallel_vgg_suffers_most_of_the_vision_models() -> None:
    rho = {name: _sensitivity(zoo_profile(name, 8)) for name in ("vgg19", "resnet50", "resnet152", "inception-v3")}
    assert rho["vgg19"] > 2 * max(rho["resnet50"], rho["resnet152"], rho["inception-v3"])
    assert _sensitivity(zoo_profile("vgg19", 8, "mixed")) < rho["vgg19"] / 3  # what the split is for


@pytest.mark.parametrize("gpus", [0, -1, 2.0, True, "4", None])
def test_a_job_needs_a_gpu(gpus: Any) -> None:
    with pytest.raises(InputError, match=r"gpus = .*an integer >= 1"):
        zoo_profile("vgg19", gpus)


def test_near_matches_of_unknown_names() -> None:
    with pytest.raises(InputError, match=r"model: there is no model named 'vgg-19'; did you mean vgg19\?"):
        zoo_profile("vgg-19", 4)
    with pytest.raises(InputError, match=r"there is no parallelism named 'pipelined'; did you mean pipeline\?"):
        zoo_profile("vgg19", 4, "pipelined")


def test_a_pipeline_has_no_more_stages_than_blocks() -> None:
    assert len(zoo_profile("vgg19", 19, "pipeline").stages) == 19
    with pytest.raises(
        InputError, match=r"gpus = 20: more stages than blocks \(expected: at most 19, the blocks of vgg19\)"
    ):
        zoo_profile("vgg19", 20, "pipeline")
