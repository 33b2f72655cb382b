"""`Profile`: what one training iteration of a model costs, as a graph of pipeline stages with replicas.

A stage s has k_s replicas, one GPU each; a replica computes its share of the batch in t_s = forward + backward seconds;
h_s = ``parameters`` bytes are all-reduced among the replicas of a stage; an edge (s, u, a) carries a bytes of activations
from s to u in every iteration, and as many bytes of gradients back. The speed on a placement: `optsched.speeds.stage_graph`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

from optsched.errors import InputError, check_legal
from optsched.problem.cluster import MAX_GPUS

Edge = tuple[int, int, float]


@dataclass(frozen=True, slots=True)
class Stage:
    """``replicas`` GPUs that each compute ``forward`` + ``backward`` seconds an iteration; bytes a stage.

    ``parameters`` h_s are reduced among the replicas; ``activations`` a_s leave the stage along a chain.
    """

    replicas: int
    forward: float
    backward: float
    parameters: float = 0.0
    activations: float = 0.0
    name: str = ""

    def __post_init__(self) -> None:
        fits = type(self.replicas) is int and 1 <= self.replicas <= MAX_GPUS
        check_legal(fits, "replicas", self.replicas, f"an integer from 1 to {MAX_GPUS}")
        for field in ("forward", "backward", "parameters", "activations"):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                unit = "seconds" if field in ("forward", "backward") else "bytes"
                raise InputError("invalid", field=field, value=value, legal=f"a finite number of {unit} >= 0")
            object.__setattr__(self, field, float(value))  # equal profiles are written, and digested, equally

    @property
    def compute(self) -> float:
        """t_s, seconds an iteration for one replica's share of the batch."""
        return self.forward + self.backward


@dataclass(frozen=True)
class Profile:
    """Stages and the edges (from, to, activation bytes) between them, without cycles.

    ``micro_batches`` m of a synchronous pipeline; None: so many that filling the pipeline costs nothing.

    Raises `InputError`: no stage or no compute time, an edge that leads nowhere or is given twice, a cycle (named by its
    stages).
    """

    stages: tuple[Stage, ...]
    edges: tuple[Edge, ...] = ()
    micro_batches: int | None = None

    def __post_init__(self) -> None:
        if not self.stages:
            raise InputError("a profile needs a stage", field="stages", legal="at least one stage")
        if not any(stage.compute > 0 for stage in self.stages):
            raise InputError("an iteration takes no time", field="forward", value=0, legal="a stage with seconds > 0")
        m = self.micro_batches
        check_legal(m is None or (type(m) is int and m >= 1), "micro_batches", m, "an integer >= 1, or none")
        seen = set()
        for s, u, size in self.edges:
            known = 0 <= s < len(self.stages) and 0 <= u < len(self.stages)
            check_legal(known and s != u, "edges", [s, u], f"two different stages of 0..{len(self.stages) - 1}")
            if (s, u) in seen:
                raise InputError("an edge is given twice", field="edges", value=[s, u], legal="each pair once")
            check_legal(0 <= size < math.inf, "edges", [s, u, size], "a finite number of bytes >= 0")
            seen.add((s, u))
        object.__setattr__(self, "edges", tuple((s, u, float(size)) for s, u, size in self.edges))
        _ = self.depth

    @classmethod
    def of_stages(
        cls, stages: Iterable[Stage], edges: Iterable[Sequence[Any]] | None = None, micro_batches: int | None = None
    ) -> Profile:
        """Return a profile of stages and the edges between them.

        Parameters
        ----------
        stages
            Stages, by position.
        edges
            Pairs (from, to), which carry the activations of ``from``, or triples (from, to, bytes). None: a chain
            in which every stage sends its ``activations`` to the next.
        micro_batches
            Micro-batches of the pipeline; None as for `Profile`.
        """
        every = tuple(stages)
        if edges is None:
            given: Iterable[Sequence[Any]] = [(s, s + 1) for s in range(len(every) - 1)]
        else:
            given = edges
        return cls(every, tuple(_edge(edge, every) for edge in given), micro_batches)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The stages in an order in which every edge leads forward; `InputError` when there is a cycle."""
        sorter: TopologicalSorter[int] = TopologicalSorter({s: [] for s in range(len(self.stages))})
        for s, u, _ in self.edges:
            sorter.add(u, s)
        try:
            return tuple(sorter.static_order())
        except CycleError as error:
            cycle = " -> ".join(self.stages[s].name or str(s) for s in error.args[1])
            raise InputError(
                f"the stages form a cycle: {cycle}", field="edges", legal="edges that lead from input to output"
            ) from None

    @cached_property
    def depth(self) -> int:
        """S, stages on the longest path: what a pipeline has to fill."""
        longest = [1] * len(self.stages)
        for s in self.order:
            for tail, u, _ in self.edges:
                if tail == s:
                    longest[u] = max(longest[u], longest[s] + 1)
        return max(longest)

    @cached_property
    def gpus(self) -> int:
        """g, replicas of all stages: one GPU each."""
        return sum(stage.replicas for stage in self.stages)

    def to_json(self) -> dict[str, Any]:
        """The profile as it stands in an instance file; absent and zero fields are left out."""
        stages = []
        for stage in self.stages:
            row: dict[str, Any] = {"name": stage.name} if stage.name else {}
            row.update(replicas=stage.replicas, forward=stage.forward, backward=stage.backward)
            row.update({key: value for key in ("parameters", "activations") if (value := getattr(stage, key))})
            stages.append(row)
        document: dict[str, Any] = {"stages": stages}
        if self.edges != Profile.of_stages(self.stages).edges:
            document["edges"] = [list(edge) for edge in self.edges]
        if self.micro_batches is not None:
            document["micro_batches"] = self.micro_batches
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Profile:
        """Return the profile that a part of an instance file describes.

        Parameters
        ----------
        document
            Part of the file, as `to_json` returns it.
        """
        stages = [
            Stage(**{key: value for key, value in row.items() if value is not None}) for row in document["stages"]
        ]
        return cls.of_stages(stages, document.get("edges"), document.get("micro_batches"))


def _edge(edge: Sequence[Any], stages: tuple[Stage, ...]) -> Edge:
    ends = [end for end in edge[:2] if isinstance(end, int) and not isinstance(end, bool)]
    check_legal(len(edge) in (2, 3) and len(ends) == 2, "edges", list(edge), "[from, to] or [from, to, bytes]")
    if len(edge) == 3:
        return ends[0], ends[1], float(edge[2])
    return ends[0], ends[1], stages[ends[0]].activations if 0 <= ends[0] < len(stages) else 0.0
