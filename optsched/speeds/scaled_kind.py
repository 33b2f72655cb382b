"""`ScaledKind`: jobs at a scaling profile that are alike, on every placement, at best and at worst."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Ints
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

    def by_nodes(self, sizes: Ints) -> tuple[float, ...]:
        """`of_nodes`, from one node on, in a cluster with nodes of these sizes; inf where so many cannot hold the gang.

        And where nothing says how long it takes (`reach` raises where some placement needs it).
        """
        most, found = np.cumsum(np.sort(sizes)[::-1]), []
        for nodes in range(1, min(self.gang, sizes.size) + 1):
            try:
                found.append(self.of_nodes(nodes) if most[nodes - 1] >= self.gang else np.inf)
            except InputError:
                found.append(np.inf)
        return tuple(found)

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
