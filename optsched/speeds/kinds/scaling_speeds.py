"""Jobs at scaling profiles: seconds of an iteration by sub-batch, replicas and placement, by formula or as measured.

A gang works with the largest sub-batch that its job may use, m0 samples in s0 sub-steps (`ScalingSpeeds.sub_batches`),
and takes T(m0, s0, r) seconds an iteration: by formula one number on one node and one over several, whatever the GPU
types; or as measured for its placement (`optsched.speeds.iteration_times`). Here placement is known, also in a cluster
of one-GPU nodes: a gang there is spread.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from pydantic import Field

from optsched.errors import InputError, RowProblem
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.cluster import Cluster
from optsched.problem.documents import MAX_INTEGER, Document, Integer, Number
from optsched.problem.job_speeds import JobSpeeds, ModelledJobs, Nodes, PlacementPaces, SubBatch, TypePaces
from optsched.problem.job_table import MOST_SAMPLES, REPORTED
from optsched.problem.scaling import Scaling
from optsched.problem.speed_model import SPEED_MODELS, NamedModel
from optsched.speeds.iteration_times import (
    MeasuredTable,
    computing_seconds,
    iteration_seconds,
    measured_table,
    placement_id,
    seconds_of,
    seconds_on,
)
from optsched.speeds.job_goodput import JobGoodput, Steps


class MeasuredStepsDocument(Document):
    """Measured seconds of steps, and of the synchronisation in them."""

    placements: list[tuple[Integer, Number, Number, Number]] = Field(
        default_factory=list, description="[placement, local batch, step, sync]"
    )
    scalability: list[tuple[Integer, Integer, Number, Number, Number]] = Field(
        default_factory=list, description="[nodes, replicas, local batch, step, sync]"
    )


class ScalingDocument(Document):
    """Seconds of an iteration by sub-batch, replicas and placement. Seconds, bytes, samples."""

    compute: Number = Field(ge=0, description="seconds of a step whatever the batch")
    per_sample: Number = Field(ge=0, description="seconds a sample")
    within: Number = Field(0, ge=0, description="seconds of communication of 2 replicas on one node")
    within_growth: Number = Field(0, ge=0, description="and for every further replica")
    across: Number = Field(0, ge=0, description="the same over several nodes")
    across_growth: Number = Field(0, ge=0)
    overlap: Number = Field(
        1, ge=1, description="1: computing and communication follow each other; larger: they overlap"
    )
    most_local: int | None = Field(None, ge=1, le=MAX_INTEGER, description="largest sub-batch of a GPU")
    memory: Number = Field(0, ge=0, description="bytes on each GPU")
    memory_per_sample: Number = Field(0, ge=0, description="bytes for a sample of the sub-batch")
    iterations: list[tuple[Integer, Number]] = Field(
        default_factory=list, description="[total batch, iterations to completion]"
    )
    measured: MeasuredStepsDocument | None = None


MANY = 5000  # largest number of splits of a gang that are examined one by one


@dataclass(frozen=True, eq=False)
class ScaledKind:
    """Jobs with the same profile, ``batch``, gang and ``stated`` bytes on each GPU, and their seconds an iteration."""

    name: str
    scaling: Scaling
    batch: int
    gang: int
    stated: float

    @cached_property
    def chain(self) -> tuple[SubBatch, ...]:
        """Ways to split the batch, the largest sub-batch that the memory holds first; the jobs work with the first."""
        options, scaling = self.scaling.sub_batches(self.batch, self.gang), self.scaling
        if not scaling.knows_memory:
            return tuple(SubBatch(option.size, option.steps, self.stated) for option in options)
        fits = [option for option in options if option.memory <= self.stated] or list(options)
        saves = ((option, scaling.memory_per_sample * (fits[0].size - option.size)) for option in fits)
        return tuple(SubBatch(option.size, option.steps, self.stated - saved) for option, saved in saves)

    def formula(self, spans: bool, option: SubBatch | None = None) -> float:
        """Return the seconds of an iteration by the formula.

        Parameters
        ----------
        spans
            Replicas are on several nodes.
        option
            Sub-batch; default: the first of the chain.
        """
        used = option or self.chain[0]
        return iteration_seconds(self.scaling, used.size, used.steps, self.gang, spans)

    def seconds(self, nodes: Iterable[int]) -> float:
        """Return the seconds of an iteration on some nodes.

        Parameters
        ----------
        nodes
            Node of every replica.
        """
        held, used = Counter(nodes), self.chain[0]
        return seconds_on(self.scaling, used.size, used.steps, [held[node] for node in sorted(held)])

    def _timed(self, step: tuple[float, float] | None, spans: bool) -> float:
        return seconds_of(step, self.scaling, self.chain[0].size, self.chain[0].steps, self.gang, spans)

    def of_nodes(self, nodes: int) -> float:
        """Return the seconds of an iteration on a placement that was not measured itself.

        Parameters
        ----------
        nodes
            Number of nodes of the placement.
        """
        return self._timed(self._table.between(nodes, self.gang, self.chain[0].size), nodes > 1)

    def by_nodes(self, sizes: Ints) -> tuple[float, ...]:
        """Return the seconds of `of_nodes` for 1, 2, ... nodes; inf if that number cannot hold the gang.

        Also inf if they are not known (`reach` raises if some placement needs them).

        Parameters
        ----------
        sizes
            GPUs of the nodes of the cluster, i64[N].
        """
        most, seconds = np.cumsum(np.sort(sizes)[::-1]), []
        for nodes in range(1, min(self.gang, sizes.size) + 1):
            try:
                seconds.append(self.of_nodes(nodes) if most[nodes - 1] >= self.gang else np.inf)
            except InputError:
                seconds.append(np.inf)
        return tuple(seconds)

    @cached_property
    def _table(self) -> MeasuredTable:
        assert self.scaling.measured is not None
        return measured_table(self.scaling.measured)

    @cached_property
    def by_id(self) -> dict[int, float]:
        """Seconds of an iteration on the measured placements of this gang, by id."""
        placed = self._table.of_gang(self.gang, self.chain[0].size)
        return {name: self._timed(step, len(str(name)) > 1) for name, step in placed.items()}

    def reach(self, sizes: Sequence[int]) -> tuple[list[float], list[float]]:
        """Return the seconds on one node, and those over several, of every placement; lists may be empty.

        With measurements: the seconds of all placements, and for numbers of nodes with many placements perhaps of one
        more, so that the least is a lower bound on every placement and the largest an upper one.

        Parameters
        ----------
        sizes
            GPUs of the nodes that the gang may use.
        """
        seconds: tuple[list[float], list[float]] = ([], [])
        for gpus in self._node_sets(sizes):
            spans = len(gpus) > 1
            if self.scaling.measured is None:
                seconds[spans][:] = [self.formula(spans)]
            else:
                seconds[spans].extend(self._over(gpus))
        return seconds

    def is_looked_through(self, sizes: Sequence[int]) -> bool:
        """Return True if `reach` examines every placement, so that its least value is attained.

        Parameters
        ----------
        sizes
            GPUs of the nodes that the gang may use.
        """
        return self.scaling.measured is None or not any(map(self._is_too_many, self._node_sets(sizes)))

    def _node_sets(self, sizes: Sequence[int]) -> list[list[int]]:
        # the largest k nodes, falling, for every number k of nodes of the gang
        falling = sorted(sizes, reverse=True)
        sets = (falling[:k] for k in range(1, min(self.gang, len(falling)) + 1))
        return [gpus for gpus in sets if sum(gpus) >= self.gang]

    def _is_too_many(self, gpus: list[int]) -> bool:
        return len(gpus) > 4 or self.gang > 9 * len(gpus) or math.prod(gpus) > MANY

    def _over(self, gpus: list[int]) -> set[float]:
        # seconds of the placements on this number of nodes
        if self._is_too_many(gpus):
            held = {name: sorted(map(int, str(name)), reverse=True) for name in self.by_id}
            fits = [name for name, c in held.items() if len(c) == len(gpus) and all(map(operator.le, c, gpus))]
            return {self.of_nodes(len(gpus)), *(self.by_id[name] for name in fits)}
        seconds = set()
        for split in itertools.product(*(range(1, most + 1) for most in gpus)):
            if sum(split) == self.gang:
                for order in set(itertools.permutations(split)):  # orders on the nodes: only rotations are equivalent
                    name = placement_id(order)
                    seconds.add(self.by_id[name] if name in self.by_id else self.of_nodes(len(gpus)))
        return seconds


class ScalingSpeeds(JobSpeeds):
    """Speeds with one number for a gang on one node, and one for it on several; or one for every placement."""

    sees_nodes = communicates = elastic = True
    given: dict[str, Scaling]

    @cached_property
    def _kind(self) -> dict[int, ScaledKind]:
        # kind of every job; identical jobs share one
        gangs, memory = self.instance.gpus[self.jobs].tolist(), self.instance.gpu_memory[self.jobs].tolist()
        rows = list(zip(self.names, self._batches(), gangs, memory, strict=True))
        kinds = {row: ScaledKind(row[0], self.given[row[0]], *row[1:]) for row in dict.fromkeys(rows)}
        return {j: kinds[row] for j, row in zip(self.jobs.tolist(), rows, strict=True)}

    def _batches(self) -> list[int]:
        batches: list[int] = self.instance.table["batch_size"].gather(self.jobs).to_list()
        return batches

    def alike(self, job: int) -> ScaledKind:
        """Return a key that jobs share if they are equally fast on the same nodes.

        Parameters
        ----------
        job
            Number of the job.
        """
        return self._kind[job]

    def sub_batches(self, job: int) -> tuple[SubBatch, ...]:
        """Return the ways to split the batch of a job, the largest sub-batch that fits first.

        Parameters
        ----------
        job
            Number of the job.
        """
        return self._kind[job].chain

    def split_seconds(self, job: int, option: SubBatch, spans: bool) -> float:
        """Return the seconds of an iteration with a sub-batch, by formula.

        Parameters
        ----------
        job
            Number of the job.
        option
            The sub-batch.
        spans
            Replicas are on several nodes.
        """
        return self._kind[job].formula(spans, option)

    def pace(self, job: int, nodes: Nodes) -> float:
        """Return the seconds of a unit of work of a job on some nodes.

        Parameters
        ----------
        job
            Number of the job.
        nodes
            Node of every replica.
        """
        return self._kind[job].seconds(nodes)

    @cached_property
    def _places(self) -> tuple[list[tuple[ScaledKind, int]], Ints]:
        # (different pairs of kind and job class, which decide nodes and speeds; pair of each job, i64[k])
        every = list(zip(self._kind.values(), self.instance.job_class[self.jobs].tolist(), strict=True))
        position = {place: k for k, place in enumerate(dict.fromkeys(every))}
        return list(position), np.array([position[place] for place in every], dtype=np.int64)

    @cached_property
    def _reach(self) -> list[tuple[list[float], list[float]]]:
        # `ScaledKind.reach` at every place, on the nodes that the jobs there may use
        return [kind.reach(self._sizes(job_class)) for kind, job_class in self._places[0]]

    def _of_place(self, values: Sequence[Any], kind: type = np.float64) -> Any:
        # one value a place -> one a job
        return np.array(values, dtype=kind)[self._places[1]]

    def _sizes(self, job_class: int) -> list[int]:
        sizes: list[int] = self.instance.cluster.node_gpus[self.instance.class_eligible[job_class]].tolist()
        return sizes

    def paces(self) -> tuple[Floats, Floats]:
        every = [together + spread for together, spread in self._reach]
        return self.in_range(self._of_place(list(map(min, every))), self._of_place(list(map(max, every))))

    def solo(self) -> tuple[Floats, Bools]:
        exact = [kind.is_looked_through(self._sizes(job_class)) for kind, job_class in self._places[0]]
        # the seconds are the least of the placements examined
        return super().solo()[0], self._of_place(exact, np.bool_)

    @cached_property
    def _goodputs(self) -> dict[ScaledKind, JobGoodput]:
        kinds = set(self._kind.values())
        steps = {(kind.name, kind.stated): Steps(kind.scaling, kind.stated) for kind in kinds}
        return {kind: JobGoodput(steps[kind.name, kind.stated], kind.batch, kind.gang) for kind in kinds}

    def goodput(self, job: int) -> JobGoodput:
        """Return the rates of a job by the number of GPUs.

        Parameters
        ----------
        job
            Number of the job.
        """
        return self._goodputs[self._kind[job]]

    def rates_by_type(self, may: Floats) -> tuple[Floats, Floats]:
        """Return the units of work a second on GPUs of one type, together and spread, f64[k, T] each.

        Parameters
        ----------
        may
            1 where a job may use a type, otherwise 0, f64[k, T].
        """
        # All types are alike; a side that no placement reaches has the rate of the other.
        one_gpu_nodes = bool((self.instance.cluster.node_gpus == 1).all())
        together = [min(far or near) if one_gpu_nodes else min(near or far) for near, far in self._reach]
        spread = [min(far or near) for near, far in self._reach]
        return may / self._of_place(together)[:, None], may / self._of_place(spread)[:, None]

    def compute_time(self, job: int, nodes: Nodes, steps: int) -> float:
        """Return the seconds of a unit of work with infinitely fast network interfaces.

        Parameters
        ----------
        job
            Number of the job.
        nodes
            Node of every replica.
        steps
            Sub-steps of an iteration.
        """
        chosen = next((option for option in self.sub_batches(job) if option.steps == steps), None)
        return math.inf if chosen is None else self._computing(job, chosen)

    def _computing(self, job: int, chosen: SubBatch) -> float:
        return computing_seconds(self._kind[job].scaling, chosen.size, chosen.steps)

    def compiled(self) -> tuple[TypePaces, PlacementPaces]:
        kinds = list(dict.fromkeys(self._kind.values()))
        formula = [kind for kind in kinds if kind.scaling.measured is None]
        measured = [kind for kind in kinds if kind.scaling.measured is not None]
        seconds = np.array([[kind.formula(spans) for kind in formula] for spans in (False, True)])
        types, sizes = len(self.instance.cluster.gpu_types), self.instance.cluster.node_gpus
        return (
            TypePaces(self._rows(formula), np.repeat(seconds.reshape(2, -1, 1), types, axis=2)),
            PlacementPaces(
                self._rows(measured), [kind.by_id for kind in measured], [kind.by_nodes(sizes) for kind in measured]
            ),
        )

    def _rows(self, kinds: Sequence[ScaledKind]) -> Ints:
        position = {kind: k for k, kind in enumerate(kinds)}
        rows: Ints = self._of_place([position.get(kind, -1) for kind, _ in self._places[0]], np.int64)
        return rows

    def compiled_compute_time(self, job: int) -> list[float]:
        """Return the seconds of a unit of work without communication, for every sub-batch.

        Parameters
        ----------
        job
            Number of the job.
        """
        return [self._computing(job, option) for option in self.sub_batches(job)]


@SPEED_MODELS.register("scalings")
class ScalingProfiles(NamedModel[Scaling]):
    """Scaling profiles by name, for jobs with a ``batch_size``.

    The jobs need not state their memory if that of a sub-batch is known.
    """

    formulas = ScalingSpeeds
    name, noun, rank = "scalings", "a scaling profile", 4
    description = "seconds of an iteration by batch, replicas and placement, by profile"
    value, entry = Scaling, ScalingDocument

    make = Scaling.from_json

    def digest(self, instance: ModelledJobs, names: Sequence[str]) -> list[Any]:
        """Return the documents that decide the speeds of jobs, for the digest of the instance.

        Parameters
        ----------
        instance
            Jobs and a cluster.
        names
            Profiles that jobs name.
        """
        return [*super().digest(instance, names), instance.table["batch_size"].to_list()]

    def problems(self, table: pl.DataFrame, cluster: Cluster) -> list[RowProblem]:
        """Return the jobs without a batch size, and those whose sub-batch 1 does not fit GPUs for the gang.

        Parameters
        ----------
        table
            Table of the jobs.
        cluster
            The cluster.
        """
        problems, memory_of = [], _memory_of_gangs(cluster)
        for row, name, batch, gpus, stated, types in self._scaled(table):
            if batch is None:
                legal = "samples of an iteration over the whole gang, an integer >= 1"
                problems.append(RowProblem(row + 1, "batch_size", None, legal, "missing"))
            elif 1 <= batch <= MOST_SAMPLES and gpus >= 1:
                least = self.given[name].sub_batches(batch, gpus)[-1].memory
                held = memory_of(gpus, types)
                if stated is not None and stated < least:
                    legal = f"at least the {least:g} bytes of {name} at sub-batch 1, or none"
                    problems.append(RowProblem(row + 1, "gpu_memory", stated, legal, "too little"))
                elif stated is None and least > held:
                    legal = f"at sub-batch 1 at most the {held:g} bytes that {gpus} GPUs of {cluster.spec} have each"
                    problems.append(RowProblem(row + 1, "gpu_memory", least, legal, f"{name} does not fit"))
        return problems[:REPORTED]

    def memory(self, table: pl.DataFrame, cluster: Cluster) -> pl.Series | None:
        """Return the memory that a job states, or that of the largest sub-batch that its gang can hold.

        The gang holds the most memory that ``gpus`` GPUs of its types have each. On GPUs of less memory the job then
        does not run, though a smaller sub-batch might fit there.

        Parameters
        ----------
        table
            Table of the jobs.
        cluster
            The cluster.
        """
        rows, memory, memory_of = self._scaled(table), table["gpu_memory"].to_list(), _memory_of_gangs(cluster)
        for row, name, batch, gpus, stated, types in rows:
            if stated is None and self.given[name].knows_memory:
                options, held = self.given[name].sub_batches(batch, gpus), memory_of(gpus, types)
                memory[row] = next((option.memory for option in options if option.memory <= held), options[-1].memory)
        return pl.Series("gpu_memory", memory, dtype=pl.Float64) if rows else None

    def _scaled(self, table: pl.DataFrame) -> list[tuple[int, str, Any, int, float | None, Any]]:
        # (position, profile, batch size or None, gang, stated memory, types or None) of the jobs
        if not self.names:
            return []
        rows = table.with_row_index("__row").filter(pl.Series(self.applies_to(table)))
        return rows.select("__row", "profile", "batch_size", "gpus", "gpu_memory", "gpu_types").rows()


def _memory_of_gangs(cluster: Cluster) -> Callable[[int, list[str] | None], float]:
    # (gang, types) -> the most memory that this number of GPUs of these types have each; if there are too few, of any GPU
    cache: dict[tuple[int, tuple[str, ...] | None], float] = {}

    def memory_of(gang: int, types: list[str] | None) -> float:
        key = gang, None if types is None else tuple(types)
        if key not in cache:
            groups = [group for group in cluster.nodes if group.suits(types, None)]
            size = {group: math.inf if group.gpu_memory is None else group.gpu_memory for group in groups}
            groups.sort(key=size.__getitem__, reverse=True)
            together = itertools.accumulate(group.count * group.gpus for group in groups)
            held = [size[group] for group, gpus in zip(groups, together, strict=True) if gpus >= gang]
            cache[key] = held[0] if held else float(cluster.node_memory.max())
        return cache[key]

    return memory_of
