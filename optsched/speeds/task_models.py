"""Networks as tasks: forward, backward and message of one iteration, as the authors of Ada-SRSF measured them.

Source: the public code HKBU-HPML/dl-scheduling of Q. Wang, S. Shi, C. Wang, X. Chu, "Communication Contention Aware
Scheduling of Multiple Deep Learning Training Jobs", arXiv 2002.10105 (facts only; the code bears no licence): its state of
January 2020 for 10 Gbit/s, and an older one for 1 Gbit/s, which says nothing of memory. There whole milliseconds and
megabytes of 10^6 bytes; here seconds and bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from optsched.problem.contention import ETHERNET_1G, ETHERNET_10G, Contention, IterationTasks

MEGABYTE = 1e6
GPU_MEMORY = 32768 * MEGABYTE  # of a GPU of the published cluster


class TaskModel(NamedTuple):
    """The ``tasks`` of an iteration and ``memory``, bytes a worker takes on its GPU; None: not stated."""

    tasks: IterationTasks
    memory: float | None


class TaskModels(NamedTuple):
    """Networks by name, and what their messages cost on the network of the same measurements."""

    models: Mapping[str, TaskModel]
    contention: Contention


def _model(message: float, forward: int, backward: int, memory: float | None) -> TaskModel:
    # megabytes and milliseconds, divided so that every number is the double nearest to the decimal
    held = None if memory is None else memory * MEGABYTE
    return TaskModel(IterationTasks(forward / 1000, backward / 1000, round(message * MEGABYTE)), held)


TASK_MODELS: Mapping[str, TaskModels] = {
    "10g": TaskModels(
        {
            "VGG-16": _model(526.4, 36, 54, 4527),
            "ResNet-50": _model(99.2, 25, 37, 3213),
            "Inception-V3": _model(103.0, 35, 52, 3291),
            "LSTM-PTB": _model(251.8, 32, 47, 2751),
        },
        ETHERNET_10G,
    ),
    "1g": TaskModels(
        {
            "ResNet-50": _model(97.7, 38, 67, None),
            "GoogLeNet": _model(26.7, 60, 92, None),
            "AlexNet": _model(235, 45, 85, None),
        },
        ETHERNET_1G,
    ),
}
