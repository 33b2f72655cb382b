"""The scaling profiles that come with the package: six applications of the Pollux artifact, as formulas.

Names as in its workloads: ``bert``, ``cifar10`` (ResNet-18), ``deepspeech2``, ``imagenet`` (ResNet-50), ``ncf``, ``yolov3``.
Seconds and samples, on nodes of four GPUs, up to 16 of them.

Source: measurements of petuum/adaptdl, branch osdi21-artifact (Apache-2.0): A. Qiao et al., "Pollux: Co-adaptive Cluster
Scheduling for Goodput-Optimized Deep Learning", OSDI 2021. The parameters are a fit of the formula of
`optsched.problem.scaling` to them, to three or four digits. `optsched.speeds.scaling_fit` reproduces those of bert,
deepspeech2 and yolov3, and those of imagenet but for ``within``; those of cifar10 and ncf are not the best by the same
loss (12 % and 1 % above). The formula is coarse: half of the measured steps differ by more than 4 % (bert) to 9 %
(cifar10) from it, one in ten by more than 16 % to 22 %, the worst by 37 % to 48 %. The measurements themselves, where
one has the files: `optsched.speeds.scaling_files.read_scalings`.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from optsched.problem.scaling import Scaling


class Application(NamedTuple):
    """A row of the table: joint fit, largest sub-batch, batches, epochs and iterations of an epoch at ``initial``."""

    compute: float
    per_sample: float
    across: float
    across_growth: float
    within: float
    within_growth: float
    overlap: float
    most_local: int
    initial: int
    largest: int
    epochs: int
    iterations: int


APPLICATIONS = {
    "bert": Application(0.1719, 0.05861, 1.386, 0.00943, 0.2842, 0.00962, 1.90, 12, 12, 384, 2, 7387),
    "cifar10": Application(0.01866, 0.000680, 0.0915, 0.00253, 0.0154, 4.7e-8, 1.28, 1024, 128, 4096, 100, 390),
    "deepspeech2": Application(0.3111, 0.02384, 0.487, 0.00982, 0.0839, 0.00137, 1.41, 80, 20, 640, 80, 357),
    "imagenet": Application(0.06417, 0.00448, 0.299, 0.00664, 0.0265, 0.00005, 2.47, 200, 200, 12800, 90, 6405),
    "ncf": Application(0.00696, 6.35e-7, 0.0175, 0.00056, 0.0060, 4.4e-8, 1.25, 32768, 256, 32768, 10, 19418),
    "yolov3": Application(0.1871, 0.02538, 0.749, 0.0107, 0.1283, 0.0174, 1.11, 8, 8, 512, 50, 2069),
}


@cache
def built_in_scalings() -> dict[str, Scaling]:
    """The profiles by application.

    ``iterations`` at batches of initial x 1, 2, 4, ... up to the largest: epochs x iterations of an epoch x initial / batch,
    no loss of statistical efficiency (larger batches do need more samples; ``iterations.csv`` beside measurements says how
    many). Memory is not stated. Copy before changing.
    """
    return {name: _scaling(each) for name, each in APPLICATIONS.items()}


def _scaling(each: Application) -> Scaling:
    batches = [each.initial]
    while 2 * batches[-1] < each.largest:
        batches.append(2 * batches[-1])
    batches.append(each.largest)
    whole = each.epochs * each.iterations
    return Scaling(
        each.compute,
        each.per_sample,
        each.within,
        each.within_growth,
        each.across,
        each.across_growth,
        each.overlap,
        each.most_local,
        iterations=tuple((batch, whole * each.initial / batch) for batch in batches),
    )
