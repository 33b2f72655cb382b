"""Profiles of well-known networks on any number of GPUs, from public parameter and FLOP counts.

The counts follow from the architectures, block by block. A block is a part that a pipeline cannot split: a layer of
VGG, a residual unit, an inception module, a transformer layer. One multiply-add is two FLOPs; element-wise work
(normalisation, activation functions, pooling) is left out, as in the published counts.

The GPU is of the V100 class. Seconds = samples x FLOPs / effective speed; the backward pass takes twice the forward
pass. The effective speeds are measured ones, rounded:

* vision, single precision (4 bytes a number), 64 images a GPU: training rates of the TensorFlow benchmarks of 2017 on one
  P100 (images/s: ResNet-50 219, ResNet-152 91.8, Inception-v3 142, VGG-16 154; VGG beyond the nominal peak, since its 3 x 3
  convolutions take fewer multiplications than are counted) x 15.7/10.6, the peaks of the two GPUs;
* transformers, mixed precision (2 bytes a number): 39 TFLOP/s on one V100, Shoeybi et al. 2019, arXiv:1909.08053.

Not modelled: memory (a replica of 6.7 G parameters needs more than such a GPU has), overlap of communication with
computation, and the second copy of tied embeddings at the end of a pipeline.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

from optsched.errors import InputError
from optsched.problem.profile import Profile, Stage
from optsched.problem.throughputs import legal_gang
from optsched.registry import check_known

BACKWARD = 2.0  # backward / forward: gradients by inputs and by parameters
MIXED_STAGES = 4
PARALLELISM = ("data", "pipeline", "mixed")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a network.

    ``flops`` (forward) and ``activations`` (numbers that leave the block) are for one sample; ``parameters`` are
    numbers.
    """

    name: str
    flops: float
    parameters: int
    activations: int


def vgg19() -> tuple[Block, ...]:
    """Return VGG-19 on 224 x 224 images: convolutions in five groups, then three fully connected layers.

    Simonyan and Zisserman 2014, arXiv:1409.1556, configuration E: 144 M parameters.
    """
    blocks, inputs, size = [], 3, 224
    for group, (count, width) in enumerate(zip((2, 2, 4, 4, 4), (64, 128, 256, 512, 512), strict=True), 1):
        for layer in range(1, count + 1):
            weights = 9 * inputs * width
            side = size // 2 if layer == count else size  # pooling halves the output of the last layer
            blocks.append(Block(f"conv{group}-{layer}", 2.0 * weights * size**2, weights + width, width * side**2))
            inputs = width
        size //= 2
    for number, (inputs, outputs) in enumerate(((512 * 7 * 7, 4096), (4096, 4096), (4096, 1000)), 6):
        blocks.append(Block(f"fc{number}", 2.0 * inputs * outputs, inputs * outputs + outputs, outputs))
    return tuple(blocks)


def resnet(units: tuple[int, int, int, int]) -> tuple[Block, ...]:
    """Return a ResNet of bottleneck units on 224 x 224 images.

    He et al. 2015, arXiv:1512.03385, with the stride at the 3 x 3 convolution (v1.5, as in torchvision: 25.557 M
    parameters and 4.09 G multiply-adds for ResNet-50, 60.193 M and 11.51 G for ResNet-152).

    Parameters
    ----------
    units
        Units of the four groups: (3, 4, 6, 3) is ResNet-50, (3, 8, 36, 3) ResNet-152.
    """
    stem = 7 * 7 * 3 * 64
    blocks = [Block("stem", 2.0 * stem * 112**2, stem + 2 * 64, 64 * 56**2)]
    inputs = 64
    for group, count in enumerate(units):
        width, size = 64 * 2**group, 56 // 2**group
        for unit in range(count):
            first = inputs * width
            before = 2 * size if unit == 0 and group > 0 else size  # the first 1 x 1 convolution sees the larger image
            later = 9 * width**2 + 4 * width**2 + (4 * width * inputs if unit == 0 else 0)
            scales = 2 * (width + width + 4 * width + (4 * width if unit == 0 else 0))  # of batch normalisation
            flops = 2.0 * (first * before**2 + later * size**2)
            blocks.append(Block(f"conv{group + 2}-{unit + 1}", flops, first + later + scales, 4 * width * size**2))
            inputs = 4 * width
    return (*blocks, Block("fc", 2.0 * 2048 * 1000, 2048 * 1000 + 1000, 1000))


def inception_v3() -> tuple[Block, ...]:
    """Return Inception-v3 on 299 x 299 images without the auxiliary classifier.

    23.8 M parameters, 5.71 G multiply-adds.

    Szegedy et al. 2015, arXiv:1512.00567; layer widths as in torchvision, counted layer by layer.
    """
    multiply_adds = (  # name, multiply-adds, parameters, numbers that leave
        ("stem1", 19_181_664, 928, 32 * 149**2),
        ("stem2", 199_148_544, 9_280, 32 * 147**2),
        ("stem3", 398_297_088, 18_560, 64 * 73**2),
        ("stem4", 27_284_480, 5_280, 80 * 73**2),
        ("stem5", 696_867_840, 138_624, 192 * 35**2),
        ("mixed5b", 312_345_600, 255_904, 256 * 35**2),
        ("mixed5c", 338_688_000, 277_472, 288 * 35**2),
        ("mixed5d", 348_096_000, 285_152, 288 * 35**2),
        ("mixed6a", 401_937_408, 1_153_280, 768 * 17**2),
        ("mixed6b", 374_063_104, 1_297_408, 768 * 17**2),
        ("mixed6c", 487_702_528, 1_691_008, 768 * 17**2),
        ("mixed6d", 487_702_528, 1_691_008, 768 * 17**2),
        ("mixed6e", 617_914_368, 2_141_952, 768 * 17**2),
        ("mixed7a", 291_004_416, 1_698_304, 1280 * 8**2),
        ("mixed7b", 322_437_120, 5_044_608, 2048 * 8**2),
        ("mixed7c", 388_497_408, 6_076_800, 2048 * 8**2),
        ("fc", 2_048_000, 2_049_000, 1000),
    )
    return tuple(Block(name, 2.0 * count, parameters, sent) for name, count, parameters, sent in multiply_adds)


def transformer(
    layers: int,
    width: int,
    tokens: int,
    layer_parameters: int,
    first_parameters: int,
    last_parameters: int,
    last_flops: float,
    scores: int = 2,
) -> tuple[Block, ...]:
    """Return identical layers of a transformer, with the embedding in the first and the output in the last.

    Every parameter of a layer is used once a token. Tables are looked up, so the embedding has no FLOPs.

    Parameters
    ----------
    layers
        Number of layers.
    width
        Numbers of a token.
    tokens
        Tokens of a sequence.
    layer_parameters
        Parameters of a layer.
    first_parameters
        Parameters of the embedding, added to the first layer.
    last_parameters, last_flops
        Parameters and FLOPs of the output, added to the last layer.
    scores
        Products of tokens^2 x width in attention: scores and their sums of values; three with relative positions.
    """
    flops = 2.0 * (layer_parameters * tokens + scores * tokens**2 * width)
    return tuple(
        Block(
            f"layer{k + 1}",
            flops + (last_flops if k == layers - 1 else 0.0),
            layer_parameters + (first_parameters if k == 0 else 0) + (last_parameters if k == layers - 1 else 0),
            tokens * width,
        )
        for k in range(layers)
    )


def bert(layers: int, width: int, tokens: int, vocabulary: int) -> tuple[Block, ...]:
    """Return BERT, Devlin et al. 2018, arXiv:1810.04805.

    Large has 24 layers of width 1024, 335 M parameters with the pooler. The masked-word loss covers 15 % of the
    tokens, with the weights of the embedding.

    Parameters
    ----------
    layers
        Number of layers.
    width
        Numbers of a token.
    tokens
        Tokens of a sequence.
    vocabulary
        Number of different tokens.
    """
    embedding = (vocabulary + 512 + 2 + 2) * width
    words = 2.0 * vocabulary * width * 0.15 * tokens
    return transformer(layers, width, tokens, 12 * width**2 + 13 * width, embedding, width**2 + width, words)


def xlnet(layers: int, width: int, tokens: int, vocabulary: int) -> tuple[Block, ...]:
    """Return XLNet, Yang et al. 2019, arXiv:1906.08237.

    Large has 24 layers of width 1024, 360 M parameters. One stream, as in fine-tuning; a fifth matrix for relative
    positions and their scores.

    Parameters
    ----------
    layers
        Number of layers.
    width
        Numbers of a token.
    tokens
        Tokens of a sequence.
    vocabulary
        Number of different tokens.
    """
    layer = 13 * width**2 + 14 * width
    return transformer(layers, width, tokens, layer, vocabulary * width + width, 0, 0.0, scores=3)


def gpt(layers: int, width: int, tokens: int, vocabulary: int = 50257) -> tuple[Block, ...]:
    """Return a GPT: GPT-2, Radford et al. 2019, has 48 layers of width 1600 on 1024 tokens, 1558 M parameters.

    GPT-3 6.7 B, Brown et al. 2020, arXiv:2005.14165, table 2.1: 32 layers of width 4096 on 2048 tokens. The output has
    the weights of the embedding.

    Parameters
    ----------
    layers
        Number of layers.
    width
        Numbers of a token.
    tokens
        Tokens of a sequence.
    vocabulary
        Number of different tokens.
    """
    embedding = (vocabulary + tokens) * width
    words = 2.0 * vocabulary * width * tokens
    return transformer(layers, width, tokens, 12 * width**2 + 13 * width, embedding, 2 * width, words)


@dataclass(frozen=True)
class Model:
    """A network with its batch and speed.

    ``blocks`` in order; ``samples`` a GPU and iteration; ``speed`` in FLOP/s; ``width`` bytes a number. ``parts``:
    first blocks of the stages of mixed parallelism after the first one; None: balanced by compute.
    """

    title: str
    blocks: tuple[Block, ...]
    samples: int
    speed: float
    width: int
    parts: tuple[int, ...] | None = None


MODELS: Mapping[str, Model] = {
    "vgg19": Model("VGG-19", vgg19(), 64, 21e12, 4, parts=(16,)),  # convolutions | fully connected
    "resnet50": Model("ResNet-50", resnet((3, 4, 6, 3)), 64, 8e12, 4),
    "resnet152": Model("ResNet-152", resnet((3, 8, 36, 3)), 64, 9.4e12, 4),
    "inception-v3": Model("Inception-v3", inception_v3(), 64, 7.2e12, 4),
    "bert-large": Model("BERT-large", bert(24, 1024, 512, 30522), 16, 39e12, 2),
    "xlnet-large": Model("XLNet-large", xlnet(24, 1024, 512, 32000), 16, 39e12, 2),
    "gpt": Model("GPT-2, 1.5 G parameters", gpt(48, 1600, 1024), 8, 39e12, 2),
    "gpt-6.7b": Model("GPT-3, 6.7 G parameters", gpt(32, 4096, 2048), 8, 39e12, 2),
}


def zoo_profile(model: str, gpus: int, parallelism: str = "data", micro_batches: int | None = None) -> Profile:
    """Return the stage profile of a network on some GPUs; the batch is the model's samples a GPU x ``gpus``.

    ``data``: one stage, ``gpus`` replicas. ``pipeline``: ``gpus`` stages of one replica, the slowest as fast as cuts
    between blocks allow, then with the least traffic. ``mixed``: two to `MIXED_STAGES` stages (the parts of the model
    if it defines them), with replicas that make the slowest stage as fast as possible. A single GPU has one stage and
    no traffic. Replicas always add up to ``gpus``. Complexity O(blocks^2 x stages).

    Parameters
    ----------
    model
        Name of the network.
    gpus
        Number of GPUs.
    parallelism
        ``data``, ``pipeline`` or ``mixed``.
    micro_batches
        Micro-batches of an iteration; None: filling the pipeline costs nothing.

    Raises
    ------
    InputError
        Unknown model or parallelism (with near matches), ``gpus`` < 1, a pipeline of more stages than blocks.

    Examples
    --------
    >>> import optsched as osd
    >>> profile = osd.zoo_profile("vgg19", gpus=4, parallelism="pipeline")
    >>> len(profile.stages), profile.gpus
    (4, 4)
    """
    check_known(model, MODELS, "model", f"there is no model named {model!r}", field="model")
    missing = f"there is no parallelism named {parallelism!r}"
    check_known(parallelism, PARALLELISM, "kind", missing, field="parallelism")
    legal_gang(gpus)
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
