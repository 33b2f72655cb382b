"""Jobs at the speed of scaling profiles: which are alike, how fast on every placement, how fast at best and at worst.

A gang works with the largest sub-batch that its job may use, m0 samples in s0 sub-steps (`Instance.sub_batches`), and takes
T(m0, s0, r) seconds an iteration: by formula one number on one node and one over several, whatever the GPU types; or as
measured for its placement (`optsched.speeds.measured_scaling`). Here placement is known, also in a cluster of one-GPU
nodes: a gang there is spread.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Ints
from optsched.problem.instance import Instance
from optsched.problem.scaling import Scaling
from optsched.speeds.measured_scaling import measured_seconds, measured_table, placement_id, seconds_of
from optsched.speeds.scaling import iteration_seconds

MANY = 5000  # splits of a gang that are looked at one by one


@dataclass(frozen=True)
class ScaledKind:
    """Jobs with the same profile, gang and sub-batch: ``size`` samples in each of ``steps`` sub-steps."""

    name: str
    scaling: Scaling
    gang: int
    size: int
    steps: int

    def formula(self, spans: bool) -> float:
        """Seconds of an iteration by formula."""
        return iteration_seconds(self.scaling, self.size, self.steps, self.gang, spans)

    def seconds(self, nodes: Iterable[int]) -> float:
        """Seconds of an iteration with a replica on each of these nodes (a node with c of them appears c times)."""
        held = Counter(nodes)
        if self.scaling.measured is None:
            return self.formula(len(held) > 1)
        return measured_seconds(self.scaling, self.size, self.steps, [held[node] for node in sorted(held)])

    def of_placement(self, placement: int) -> float | None:
        """Seconds measured for this placement; None where nothing was measured for it at this sub-batch."""
        assert self.scaling.measured is not None
        found = measured_table(self.scaling.measured).of_placement(placement, self.size)
        return None if found is None else self._of(found, len(str(placement)))

    def of_nodes(self, nodes: int) -> float:
        """Seconds of a placement over so many nodes that was not measured itself."""
        assert self.scaling.measured is not None
        return self._of(measured_table(self.scaling.measured).between(nodes, self.gang, self.size), nodes)

    def asked_of_nodes(self, nodes: int) -> float:
        """As `of_nodes`; inf where nothing says how long it takes (`reach` raises where some placement needs it)."""
        try:
            return self.of_nodes(nodes)
        except InputError:
            return np.inf

    def _of(self, found: tuple[float, float] | None, nodes: int) -> float:
        return seconds_of(found, self.scaling, self.size, self.steps, self.gang, nodes > 1)

    @cached_property
    def by_id(self) -> dict[int, float]:
        """Seconds of the placements of this gang that were measured."""
        assert self.scaling.measured is not None
        found: dict[int, float] = {}
        for name in measured_table(self.scaling.measured).placements:
            if sum(map(int, str(name))) == self.gang:
                seconds = self.of_placement(name)
                if seconds is not None:
                    found[name] = seconds
        return found

    def reach(self, sizes: Sequence[int]) -> tuple[list[float], list[float]]:
        """(seconds on one node, seconds over several) of every placement on nodes of these sizes; lists may be empty.

        With measurements: of all that some placement takes, and for numbers of nodes with many placements perhaps of one
        more, so that the least is a lower bound of every placement and the largest an upper one.
        """
        room = sorted(sizes, reverse=True)
        counts = [k for k in range(1, min(self.gang, len(room)) + 1) if sum(room[:k]) >= self.gang]
        if self.scaling.measured is None:
            together = [self.formula(False)] if 1 in counts else []
            return together, [self.formula(True)] if counts and counts[-1] > 1 else []
        found: tuple[list[float], list[float]] = ([], [])
        for k in counts:
            found[k > 1].extend(self._over(k, room[:k]))
        return found

    def is_looked_through(self, sizes: Sequence[int]) -> bool:
        """Does `reach` look at every placement on nodes of these sizes, so that its least is that of one of them?"""
        if self.scaling.measured is None:
            return True
        room = sorted(sizes, reverse=True)
        counts = (k for k in range(1, min(self.gang, len(room)) + 1) if sum(room[:k]) >= self.gang)
        return not any(self._is_too_many(k, room[:k]) for k in counts)

    def _is_too_many(self, nodes: int, room: Sequence[int]) -> bool:
        return nodes > 4 or self.gang > 9 * nodes or math.prod(room) > MANY

    def _over(self, nodes: int, room: list[int]) -> set[float]:
        # seconds of the placements on so many nodes; room: the largest of them, falling
        if self._is_too_many(nodes, room):
            known = [name for name in self.by_id if len(str(name)) == nodes and _fits(map(int, str(name)), room)]
            return {self.of_nodes(nodes), *(self.by_id[name] for name in known)}
        seconds = set()
        for split in itertools.product(*(range(1, most + 1) for most in room)):
            if sum(split) == self.gang:
                for order in set(itertools.permutations(split)):  # on the nodes; rotations are alike, others are not
                    name = placement_id(order)
                    seconds.add(self.by_id[name] if name in self.by_id else self.of_nodes(nodes))
        return seconds


def _fits(counts: Iterable[int], room: Sequence[int]) -> bool:
    return all(count <= most for count, most in zip(sorted(counts, reverse=True), room, strict=False))


@dataclass(frozen=True, eq=False)
class ScaledJobs:
    """``jobs`` i64[k] the jobs at scaling profiles; ``kind`` i64[k] of each its position in ``kinds``."""

    jobs: Ints
    kind: Ints
    kinds: tuple[ScaledKind, ...]


def scaled_jobs(instance: Instance) -> ScaledJobs:
    """The jobs at scaling profiles of an instance. O(n), and O(B) for each different (profile, batch, gang, memory)."""
    jobs = np.flatnonzero(instance.scaled)
    columns = [instance.table[name].gather(jobs).to_list() for name in ("profile", "batch_size")]
    gangs, memory = instance.gpus[jobs].tolist(), instance.gpu_memory[jobs].tolist()
    known: dict[tuple[str, int, int, float], ScaledKind] = {}
    position: dict[ScaledKind, int] = {}
    kind = np.zeros(jobs.size, dtype=np.int64)
    for i, key in enumerate(zip(*columns, gangs, memory, strict=True)):
        if key not in known:
            first = instance.sub_batches(int(jobs[i]))[0]
            known[key] = ScaledKind(key[0], instance.scalings[key[0]], key[2], first.size, first.steps)
        kind[i] = position.setdefault(known[key], len(position))
    return ScaledJobs(jobs, kind, tuple(position))


class MeasuredKind(NamedTuple):
    """What compiled code is given of a measured kind: seconds by placement, and by number of nodes (from one node on)."""

    by_id: dict[int, float]
    by_nodes: tuple[float, ...]


def measured_kinds(scaled: ScaledJobs, sizes: Ints) -> dict[int, MeasuredKind]:
    """Of the measured kinds, by position; ``sizes``: GPUs of the nodes. inf where so many nodes cannot hold the gang."""
    most = np.cumsum(np.sort(sizes)[::-1])
    found: dict[int, MeasuredKind] = {}
    for k, kind in enumerate(scaled.kinds):
        if kind.scaling.measured is not None:
            nodes = range(1, min(kind.gang, sizes.size) + 1)
            by_nodes = tuple(kind.asked_of_nodes(v) if most[v - 1] >= kind.gang else np.inf for v in nodes)
            found[k] = MeasuredKind(kind.by_id, by_nodes)
    return found


def reached(instance: Instance, scaled: ScaledJobs) -> list[tuple[list[float], list[float]]]:
    """`ScaledKind.reach` of every job of ``scaled`` on the nodes that it may use."""
    sizes, known = instance.cluster.node_gpus, dict[tuple[int, int], tuple[list[float], list[float]]]()
    classes = instance.job_class[scaled.jobs].tolist()
    keys = list(zip(scaled.kind.tolist(), classes, strict=True))
    for kind, job_class in dict.fromkeys(keys):
        own = sizes[instance.class_eligible[job_class]].tolist()
        known[kind, job_class] = scaled.kinds[kind].reach(own)
    return [known[key] for key in keys]
