"""The ways to put a gang on named nodes: a mode is a tuple of (node, GPUs there), nodes ascending.

* ``any``: every split over the nodes.
* ``consolidated``: a gang that fits on one node takes one node; a larger one takes whole nodes and the remainder on one
  further node (none if there is no remainder).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from optsched.errors import InputError
from optsched.problem.instance import Instance

Mode = tuple[tuple[int, int], ...]

MODES = 500  # of one class of jobs; a model has (modes x starts) columns a job
PLACEMENTS = ("any", "consolidated")


def modes_of_classes(instance: Instance, placement: str) -> list[list[Mode]]:
    """The modes of every class of jobs (`Instance.job_class`); `InputError` when there are none or too many."""
    if placement not in PLACEMENTS:
        raise InputError("no such placement", field="placement", value=placement, legal=", ".join(PLACEMENTS))
    ways: Callable[[int, Sequence[int], Sequence[int]], Iterator[Mode]]
    ways = splits if placement == "any" else consolidated
    sizes = instance.cluster.node_gpus
    modes = []
    for gpus, eligible in zip(instance.class_gpus.tolist(), instance.class_eligible, strict=True):
        nodes = np.flatnonzero(eligible)
        found = list(islice(ways(gpus, nodes.tolist(), sizes[nodes].tolist()), MODES + 1))
        if not found:
            raise InputError(f"no {placement} placement of a gang of {gpus} GPUs on {nodes.size} nodes", field="gpus")
        if len(found) > MODES:
            raise InputError(
                f"a gang of {gpus} GPUs has more than {MODES} {placement} placements on {nodes.size} nodes",
                field="gpus",
                legal="smaller gangs or fewer nodes, the consolidated placement, or rigid-time-indexed, which counts",
            )
        modes.append(found)
    return modes


def splits(gpus: int, nodes: Sequence[int], sizes: Sequence[int]) -> Iterator[Mode]:
    """Every way to take ``gpus`` from nodes of the given sizes."""
    if gpus == 0:
        yield ()
    elif gpus <= sum(sizes):
        rest = sum(sizes[1:])
        for here in range(min(gpus, sizes[0]), max(gpus - rest, 0) - 1, -1):
            head = ((nodes[0], here),) if here else ()
            for tail in splits(gpus - here, nodes[1:], sizes[1:]):
                yield head + tail


def consolidated(gpus: int, nodes: Sequence[int], sizes: Sequence[int]) -> Iterator[Mode]:
    """One node, or whole nodes and a remainder on one other node."""
    single = [node for node, size in zip(nodes, sizes, strict=True) if size >= gpus]
    if single:
        yield from (((node, gpus),) for node in single)
        return
    for whole in _whole_nodes(gpus, list(zip(nodes, sizes, strict=True)), max(sizes, default=0)):
        remainder = gpus - sum(size for _, size in whole)
        if remainder == 0:
            yield whole
            continue
        taken = {node for node, _ in whole}
        for node, size in zip(nodes, sizes, strict=True):
            if node not in taken and size > remainder:
                yield tuple(sorted((*whole, (node, remainder))))


def _whole_nodes(gpus: int, nodes: list[tuple[int, int]], most: int) -> Iterator[Mode]:
    # sets of nodes that hold at most `gpus` and leave less than a largest node over
    if gpus < most:
        yield ()
    if gpus > 0 and gpus - sum(size for _, size in nodes) < most:
        for i, (node, size) in enumerate(nodes):
            if size <= gpus:
                yield from (((node, size), *rest) for rest in _whole_nodes(gpus - size, nodes[i + 1 :], most))
