"""Profiles of well-known networks on any number of GPUs, from public parameter and FLOP counts.

The GPU is of the V100 class. Seconds = samples x FLOPs / effective speed; the backward pass takes twice the forward pass.
The effective speeds are measured ones, rounded:

* vision, single precision (4 bytes a number), 64 images a GPU: training rates of the TensorFlow benchmarks of 2017 on one
  P100 (images/s: ResNet-50 219, ResNet-152 91.8, Inception-v3 142, VGG-16 154; VGG beyond the nominal peak, since its 3 x 3
  convolutions take fewer multiplications than are counted) x 15.7/10.6, the peaks of the two GPUs;
* transformers, mixed precision (2 bytes a number): 39 TFLOP/s on one V100, Shoeybi et al. 2019, arXiv:1909.08053.

What is left out: memory (a replica of 6.7 G parameters needs more than such a GPU has), overlap of communication with
computation, and the second copy of tied embeddings at the end of a pipeline.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from optsched.errors import InputError
from optsched.problem.profile import Profile, Stage
from optsched.registry import near_matches
from optsched.speeds.model_blocks import Block, bert, gpt, inception_v3, resnet, vgg, xlnet

BACKWARD = 2.0  # backward / forward: gradients by inputs and by parameters
MIXED_STAGES = 4
PARALLELISM = ("data", "pipeline", "mixed")


@dataclass(frozen=True)
class Model:
    """``blocks`` in order; ``samples`` a GPU and iteration, ``speed`` in FLOP/s, ``width`` bytes a number.

    ``parts``: first blocks of the stages of mixed parallelism after the first one; None: balanced by compute.
    """

    title: str
    blocks: tuple[Block, ...]
    samples: int
    speed: float
    width: int
    parts: tuple[int, ...] | None = None

    @cached_property
    def flops(self) -> float:
        """Of the forward pass of one sample."""
        return sum(block.flops for block in self.blocks)

    @cached_property
    def parameters(self) -> int:
        """Bytes of all parameters."""
        return self.width * sum(block.parameters for block in self.blocks)


MODELS: Mapping[str, Model] = {
    "vgg19": Model("VGG-19", vgg(), 64, 21e12, 4, parts=(16,)),  # convolutions | fully connected
    "resnet50": Model("ResNet-50", resnet((3, 4, 6, 3)), 64, 8e12, 4),
    "resnet152": Model("ResNet-152", resnet((3, 8, 36, 3)), 64, 9.4e12, 4),
    "inception-v3": Model("Inception-v3", inception_v3(), 64, 7.2e12, 4),
    "bert-large": Model("BERT-large", bert(24, 1024, 512, 30522), 16, 39e12, 2),
    "xlnet-large": Model("XLNet-large", xlnet(24, 1024, 512, 32000), 16, 39e12, 2),
    "gpt": Model("GPT-2, 1.5 G parameters", gpt(48, 1600, 1024), 8, 39e12, 2),
    "gpt-6.7b": Model("GPT-3, 6.7 G parameters", gpt(32, 4096, 2048), 8, 39e12, 2),
}


def zoo_profile(model: str, gpus: int, parallelism: str = "data", micro_batches: int | None = None) -> Profile:
    """What an iteration of ``model`` costs on ``gpus`` GPUs; the batch is the model's samples a GPU x ``gpus``.

    ``data``: one stage, ``gpus`` replicas. ``pipeline``: ``gpus`` stages of one replica, the slowest as fast as cuts between
    blocks allow, then with the least traffic. ``mixed``: two to `MIXED_STAGES` stages (the parts of the model where it
    names them), replicas such that the slowest stage is as fast as can be. A single GPU has one stage and no traffic.
    Replicas always add up to ``gpus``. Complexity O(blocks^2 x stages).

    Raises
    ------
    InputError
        Unknown model or parallelism (with near matches), ``gpus`` < 1, a pipeline of more stages than blocks.

    >>> import optsched as osd
    >>> profile = osd.zoo_profile("vgg19", gpus=4, parallelism="pipeline")
    >>> len(profile.stages), profile.gpus
    (4, 4)
    """
    if model not in MODELS:
        legal = near_matches(str(model), list(MODELS), kind="model")
        raise InputError(f"there is no model named {model!r}", field="model", legal=legal)
    if parallelism not in PARALLELISM:
        legal = near_matches(str(parallelism), list(PARALLELISM), kind="kind")
        raise InputError(f"there is no parallelism named {parallelism!r}", field="parallelism", legal=legal)
    if isinstance(gpus, bool) or not isinstance(gpus, int) or gpus < 1:
        raise InputError("invalid", field="gpus", value=gpus, legal="an integer >= 1")
    of = MODELS[model]
    if parallelism == "pipeline" and gpus > len(of.blocks):
        legal = f"at most {len(of.blocks)}, the blocks of {model}"
        raise InputError("more stages than blocks", field="gpus", value=gpus, legal=legal)
    firsts = _firsts(of, gpus, parallelism)
    parts = [of.blocks[a:b] for a, b in itertools.pairwise((*firsts, len(of.blocks)))]
    replicas = _shares([sum(block.flops for block in part) for part in parts], gpus)
    return Profile.of_stages(
        [_stage(of, part, k, gpus, part is parts[-1]) for part, k in zip(parts, replicas, strict=True)],
        micro_batches=micro_batches,
    )


def _firsts(of: Model, gpus: int, parallelism: str) -> tuple[int, ...]:
    # the first blocks of the stages
    if parallelism == "data" or gpus == 1:
        return (0,)
    if parallelism == "pipeline":
        return _balanced(of.blocks, gpus)
    if of.parts is not None and len(of.parts) < gpus:
        return (0, *of.parts)
    return _balanced(of.blocks, max(2, min(MIXED_STAGES, gpus // 2)))


def _stage(of: Model, part: tuple[Block, ...], replicas: int, gpus: int, last: bool) -> Stage:
    samples = of.samples * gpus
    forward = samples * sum(block.flops for block in part) / of.speed / replicas
    return Stage(
        replicas,
        forward,
        BACKWARD * forward,
        parameters=float(of.width * sum(block.parameters for block in part)),
        activations=0.0 if last else float(of.width * samples * part[-1].activations),
        name=part[0].name if len(part) == 1 else f"{part[0].name}..{part[-1].name}",
    )


def _shares(compute: list[float], gpus: int) -> list[int]:
    # Replicas that minimise max compute/replicas: one for each stage, then always one more for the slowest.
    replicas = [1] * len(compute)
    for _ in range(gpus - len(compute)):
        slowest = max(range(len(compute)), key=lambda s: compute[s] / replicas[s])
        replicas[slowest] += 1
    return replicas


def _balanced(blocks: tuple[Block, ...], stages: int) -> tuple[int, ...]:
    # First blocks of `stages` runs of blocks: least largest FLOPs, then least activations sent. best[b]: of blocks[:b].
    count = len(blocks)
    total = [0.0, *itertools.accumulate(block.flops for block in blocks)]
    worst = [0.0] + [math.inf] * count
    for _ in range(stages):
        worst = [
            min((max(worst[a], total[b] - total[a]) for a in range(b)), default=math.inf) for b in range(count + 1)
        ]
    limit = worst[count] * (1 + 1e-12)  # the same sums, rounded in another order
    nowhere: tuple[float, tuple[int, ...]] = (math.inf, ())
    best = [(0.0, nowhere[1])] + [nowhere] * count
    for _ in range(stages):
        best = [
            min(
                (
                    (best[a][0] + (blocks[a - 1].activations if a else 0), (*best[a][1], a))
                    for a in range(b)
                    if total[b] - total[a] <= limit
                ),
                default=nowhere,
            )
            for b in range(count + 1)
        ]
    return best[count][1]
