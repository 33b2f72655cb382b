"""`JobSpeeds`: how fast the jobs of one instance run that have their speed from one model (`optsched.problem.speed_model`).

A unit of work is a second at full speed, or an iteration. Everything here is of a job alone on its GPUs: what others on
them, or on its network interfaces, cost it comes on top.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.job_table import LONGEST, SHORTEST

if TYPE_CHECKING:
    from optsched.problem.instance import Instance

Nodes = tuple[int, ...]  # of the GPUs of a gang, one by one


@dataclass(frozen=True, slots=True)
class SubBatch:
    """``size`` m samples at a time, in ``steps`` s sub-steps, with ``memory`` bytes on each GPU."""

    size: int
    steps: int
    memory: float


@dataclass(frozen=True, eq=False)
class Splits:
    """How the batches of K kinds of jobs may be split, O ways at most; ``row`` i64[k] of the jobs, 0: nobody knows how.

    ``options`` i64[K] >= 1; ``steps`` i64[K, O] sub-steps; ``memory`` f64[K, O] bytes on each GPU; ``stretch`` f64[K, O, 2]:
    times as long as with the first one, at least 1, on one node and over several.
    """

    row: Ints
    options: Ints
    steps: Ints
    memory: Floats
    stretch: Floats


@dataclass(frozen=True, eq=False)
class TypePaces:
    """A compiled formula that looks at the slowest GPU type of a gang, and whether it is on one node.

    ``row`` i64[k] of the jobs; ``seconds`` f64[2, K, T]: what a unit of work takes row k on type t together, then spread.
    """

    row: Ints
    seconds: Floats


@dataclass(frozen=True, eq=False)
class PlacementPaces:
    """One that looks at how many GPUs every node gives.

    ``row`` i64[k] of the jobs, -1: of none; of every row ``by_id`` the seconds of placements (a digit a node: GPUs there, in
    the smallest of its rotations) and ``by_nodes`` those of all others by their number of nodes, from one on.
    """

    row: Ints
    by_id: Sequence[dict[int, float]]
    by_nodes: Sequence[tuple[float, ...]]


@dataclass(frozen=True, eq=False)
class StagePaces:
    """One that looks at which replica of a stage graph is where: ``row`` i64[k] of the jobs in ``profiles``."""

    row: Ints
    profiles: Sequence[Any]


class JobSpeeds:
    """The speeds of ``jobs`` i64[k] of an instance. The methods here are those of jobs that run at rate 1 wherever they are.

    ``given``: what the instance has of the model. ``sees_types``, ``sees_nodes``: what their speed depends on.
    ``is_ordered``: which GPU holds which replica matters. ``communicates``: gangs on several nodes contend for the network
    (`compute_time`). ``elastic``: they run on any number of GPUs.
    """

    sees_types = sees_nodes = is_ordered = communicates = elastic = False

    def __init__(self, instance: Instance, jobs: Ints, given: Any) -> None:
        self.instance, self.jobs, self.given = instance, jobs, given

    @cached_property
    def names(self) -> list[str]:
        """The profile of each of `jobs`."""
        found: list[str] = self.instance.table["profile"].gather(self.jobs).to_list()
        return found

    # --- to be read --------------------------------------------------------------------------------------------------

    def paces(self) -> tuple[Floats, Floats]:
        """(fastest, slowest) seconds a unit of work can take on this cluster, f64[k] each.

        `InputError` where something that they need is missing, or out of the range of durations.
        """
        return np.ones(self.jobs.size), np.ones(self.jobs.size)

    def solo(self) -> tuple[Floats, Bools]:
        """Seconds alone on the best placement that there is, f64[k]; where not exact, bool[k], perhaps none is as fast."""
        return self.instance.work[self.jobs] * self.paces()[0], np.ones(self.jobs.size, dtype=np.bool_)

    def pace(self, job: int, nodes: Nodes) -> float:
        """Seconds a unit of work takes ``job`` with a GPU of its gang on each of these nodes."""
        return 1.0

    def paces_on(self, jobs: Ints, nodes: Callable[[int], Nodes]) -> Floats:
        """`pace` of many: of each of ``jobs`` i64[S], on ``nodes(s)``; nan where these are no placement of it."""
        count, found = self.instance.cluster.node_count, np.full(jobs.size, np.nan)
        known: dict[tuple[Any, Nodes], float] = {}
        for s, j in enumerate(jobs.tolist()):
            on = nodes(s)
            if len(on) != self.instance.gpus[j] or not all(0 <= node < count for node in on):
                continue
            key = self.alike(j), on if self.is_ordered else tuple(sorted(on))
            if key not in known:
                known[key] = self.pace(j, key[1])
            found[s] = known[key]
        return found

    def alike(self, job: int) -> Any:
        """What jobs have in common that are as fast as each other on the same nodes."""
        return job

    def rates_by_type(self, may: Floats) -> tuple[Floats, Floats]:
        """(together, spread) units of work a second on GPUs of one type, f64[k, T]; ``may``: 1 where a job may run."""
        return may, may

    def compute_time(self, job: int, nodes: Nodes, steps: int) -> float:
        """Seconds of a unit of work of a job that communicates, with infinitely fast interfaces, in so many sub-steps."""
        return np.inf

    def sub_batches(self, job: int) -> tuple[SubBatch, ...]:
        """How its batch may be split, the largest sub-batch that some GPU holds first; () where it is unknown."""
        return ()

    def split_seconds(self, job: int, option: SubBatch, spans: bool) -> float:
        """Seconds of an iteration with one of its `sub_batches`, on one node or over several, by formula."""
        return 1.0

    @cached_property
    def splits(self) -> Splits:
        """The `sub_batches` of all jobs, computed once for those that are `alike`."""
        keys = list(map(self.alike, self.jobs.tolist()))
        chains = {key: (j, self.sub_batches(j)) for key, j in dict(zip(keys, self.jobs.tolist(), strict=True)).items()}
        known = {key: (j, chain) for key, (j, chain) in chains.items() if chain}
        row = {key: k for k, key in enumerate(known, 1)}
        shape = len(known) + 1, max((len(chain) for _, chain in known.values()), default=1)
        found = Splits(
            np.array([row.get(key, 0) for key in keys], dtype=np.int64),
            np.array([1, *(len(chain) for _, chain in known.values())], dtype=np.int64),
            np.ones(shape, dtype=np.int64),
            np.zeros(shape),
            np.ones((*shape, 2)),
        )
        for k, (j, chain) in enumerate(known.values(), 1):
            found.memory[k] = chain[0].memory
            for o, each in enumerate(chain):
                found.steps[k, o], found.memory[k, o] = each.steps, each.memory
                for spans in (False, True):
                    slower = self.split_seconds(j, each, spans) / self.split_seconds(j, chain[0], spans)
                    found.stretch[k, o, int(spans)] = max(slower, 1.0)
        return found

    def goodput(self, job: int) -> Any:
        """How fast an elastic job gets on with any number of GPUs: an `optsched.speeds.goodput.JobGoodput`."""
        return None

    def in_range(self, fastest: Floats, slowest: Floats) -> tuple[Floats, Floats]:
        """The same paces, f64[k] each; `InputError` unless the jobs take as long as a job with a duration may."""
        # Beyond that range floats lose a job beside the clock, or overflow.
        least, most = self.instance.work[self.jobs] * fastest, self.instance.work[self.jobs] * slowest
        for k in np.flatnonzero(~((least >= SHORTEST) & (most <= LONGEST)))[:1].tolist():
            job = self.instance.ids[int(self.jobs[k])]
            raise InputError(
                f"job {job!r} takes from {least[k]:g} to {most[k]:g} s at the speed of its profile",
                field="profile",
                value=self.names[k],
                legal=f"{SHORTEST:g} to {LONGEST:g} seconds on every placement",
            )
        return fastest, slowest

    # --- for compiled code -------------------------------------------------------------------------------------------

    def compiled(self) -> Sequence[TypePaces | PlacementPaces | StagePaces]:
        """The formula as data of compiled code; none: 1 second a unit, everywhere."""
        return ()

    def compiled_compute_time(self, job: int) -> Sequence[float]:
        """`compute_time` of each of its sub-batches (one if none is known); nan: by its stages, inf: it never contends."""
        return [np.inf]
