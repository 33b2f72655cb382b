"""An instance as a certificate sees it: nodes, jobs, digest, and how fast every job is."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

from .document_fields import Data, read_field
from .exact_numbers import integers
from .graph_seconds import least_iteration, read_graph
from .refusal import INSTANCE, UNJUDGED, need
from .scaling_seconds import ScalingProfile
from .stated_instance import MOST_GPUS, digest_of, epoch_of, read_jobs, read_nodes, stated_parts
from .stated_speeds import Speed, SpeedSource

MOST_STEPS = 10**7  # of prices, or jobs times groups of nodes
PARTS = (
    *("format", "name", "objective", "cluster", "jobs", "recipe", "optimum"),
    *("throughputs", "profiles", "scalings", "tasks", "interference", "contention"),
)
ROW = {"gpu", "gpus", "together", "spread", "measured"}  # of a table of rates


def numbered(*columns: list[Any]) -> tuple[list[int], list[int]]:
    """Return for every job the number of its combination of values, and for every number the first job that has it.

    Parameters
    ----------
    columns
        Lists with a value for every job, compared as the keys of a dictionary.
    """
    n = len(columns[0])
    varied = [column for column in columns if column.count(column[0]) < n] if n else []
    if not varied:
        return [0] * n, [0] * min(n, 1)
    number = {key: k for k, key in enumerate(dict.fromkeys(_keys(varied)))}
    numbers = list(map(number.__getitem__, _keys(varied)))
    first = dict(zip(reversed(numbers), reversed(range(n)), strict=True))
    return numbers, [first[k] for k in range(len(number))]


def _keys(columns: list[list[Any]]) -> Iterable[Any]:
    return columns[0] if len(columns) == 1 else zip(*columns, strict=True)


class StatedCase:
    """The parts of an instance; lists are by job.

    ``nodes`` are the node groups, ``total`` the GPUs and ``count`` the GPUs by type. ``suits`` are the groups that suit a
    job, ``by_profile`` the name of the profile that gives its speed (None: it has a duration), and ``amount`` is its work in
    seconds or iterations. ``digest`` is the hash of all that was read so far.

    Parameters
    ----------
    document
        JSON object of the instance. The source, if any, gives the jobs.
    claimed
        Digest of the instance in the certificate.
    epoch
        Moment from which times count, in seconds.
    source
        Program that vouches for the instance.
    """

    def __init__(self, document: Data, claimed: str, epoch: Fraction, source: SpeedSource | None = None) -> None:
        self.document, self.claimed, self.epoch = document, claimed, epoch
        self.source, self.vouched = source, source is not None
        self._read_instance()
        self._read_types()

    def few(self, count: int, most: int, noun: str) -> None:
        """Refuse a count above a limit, unless the instance is vouched for.

        Parameters
        ----------
        count
            Count.
        most
            Largest legal count.
        noun
            What is counted.
        """
        need(self.vouched or count <= most, f"{count} {noun}, more than {most}: use optsched verify", UNJUDGED)

    def _read_instance(self) -> None:
        # nodes, jobs and their digest
        if self.source is None:
            groups, rows = stated_parts(self.document, PARTS, self.few)
            self.nodes = read_nodes(groups)
        else:
            self.nodes = read_nodes(self.document["cluster"]["nodes"])
        self.total = sum(node["gpus"] * node["count"] for node in self.nodes)
        self.few(self.total, MOST_GPUS, "GPUs")
        if self.source is None:
            self.jobs = read_jobs(rows, self.total, float(self.epoch))
        else:
            self.jobs = self.source.stated_jobs()
        self.ids, self.gpus, self.n = self.jobs.ids, self.jobs.gpus, len(self.jobs.ids)
        durations, self.by_profile = self.jobs.numbers["duration"], self.jobs.labels["profile"]
        if durations is not None and self.by_profile.count(None) < self.n:
            pairs = zip(durations, self.by_profile, strict=True)
            self.by_profile = [name if seconds != seconds else None for seconds, name in pairs]
        self._read_scalings(self.document.get("scalings") or {})
        self.digest = digest_of(self.nodes, self.jobs)
        if self.epoch != 0:
            due = [x for x in self.jobs.numbers["due"] or () if x == x]
            legal = self.epoch == epoch_of(self.jobs.stated("arrival"), due)
            need(legal, "its times count from another moment", INSTANCE)
        need(self.vouched or len(set(self.ids)) == self.n, "jobs of the same name", UNJUDGED)
        self.few(len(self.nodes) * self.n, MOST_STEPS, "jobs times groups of nodes")

    def _read_scalings(self, given: Data) -> None:
        # the memory of jobs at scaling profiles that state none
        spent = [0]
        self.scalings = {name: ScalingProfile(profile, spent, self.few) for name, profile in given.items()}
        self.scaled: list[ScalingProfile | None] = [None] * self.n
        if not given:
            return
        self.scaled = [self.scalings.get(name) for name in self.by_profile]
        memory, known = list(self.jobs.numbers["gpu_memory"] or [math.nan] * self.n), dict[Any, float]()
        batches, allowed = self.jobs.labels["batch_size"], self.jobs.labels["gpu_types"]
        for j, scaling in enumerate(self.scaled):
            if scaling is None:
                continue
            batch = read_field(int, {"batch_size": batches[j]}, "batch_size", UNJUDGED, None, 1)
            if memory[j] == memory[j] or not scaling.knows_memory:
                continue
            types = None if allowed[j] is None else frozenset(name.casefold() for name in allowed[j])
            key = self.by_profile[j], batch, self.gpus[j], types
            if key not in known:
                rooms = [
                    (
                        float(node.get("gpu_memory") or math.inf),
                        node["count"] * node["gpus"],
                        types is None or node["gpu"].casefold() in types,
                    )
                    for node in self.nodes
                ]
                known[key] = scaling.usual_memory(batch, self.gpus[j], rooms)
            memory[j] = known[key]
        if known:  # it decides feasibility, so that it is in the digest
            self.jobs.numbers["gpu_memory"] = memory

    def _read_types(self) -> None:
        # GPUs by type, the groups of nodes that suit every job, and its amount of work
        self.count, self.largest, self.types = dict[str, int](), dict[str, int](), dict[str, str]()
        for node in self.nodes:  # a type is called what its first group calls it
            name = self.types.setdefault(node["gpu"].casefold(), node["gpu"])
            self.count[name] = self.count.get(name, 0) + node["gpus"] * node["count"]
            self.largest[name] = max(self.largest.get(name, 0), node["gpus"])
        none, memory, allowed = [math.nan] * self.n, self.jobs.numbers["gpu_memory"], self.jobs.labels["gpu_types"]
        self.memory = [0.0] * self.n if memory is None else [0.0 if x != x else x for x in memory]
        if allowed.count(None) < self.n:
            allowed = [None if names is None else tuple(names) for names in allowed]
        rows, first = numbered(allowed, self.memory)
        known = [self._groups_for(allowed[j], self.memory[j]) for j in first]
        self.suits = [known[row] for row in rows]
        self.used = sorted(set(self.by_profile) - {None})
        self.amount: Sequence[float] = self.jobs.numbers["duration"] or []
        if self.used or not self.amount:
            columns = (self.jobs.numbers[name] or none for name in ("duration", "iterations"))
            pairs = zip(self.by_profile, *columns, strict=True)
            self.amount = [seconds if name is None else count for name, seconds, count in pairs]
        unknown = any(map(math.isnan, self.amount))
        need(not unknown, "a job has neither a duration nor iterations of a profile", UNJUDGED)

    def _groups_for(self, names: tuple[str, ...] | None, memory: float) -> list[int]:
        # the node groups whose type and memory suit a job
        may = None if names is None else {name.casefold() for name in names}
        return [
            g
            for g, node in enumerate(self.nodes)
            if (may is None or node["gpu"].casefold() in may) and memory <= node.get("gpu_memory", math.inf)
        ]

    def learn(self, part: Any) -> None:
        """Add a part of the instance to the digest.

        Parameters
        ----------
        part
            JSON value.
        """
        self.digest.update(json.dumps(part).encode())

    def _check_digest(self) -> None:
        need(self.digest is None or self.claimed == self.digest.hexdigest(), "it is of another instance", INSTANCE)

    def _read_table(self, given: Data) -> None:
        # iterations/s by job type, GPU type and gang: together, and spread over nodes
        self.table: dict[Any, tuple[float, float]] = {}
        for name in given.keys() & set(self.jobs.labels["profile"]) if given else ():
            for row in given[name]:
                key = name, row["gpu"].casefold(), read_field(int, row, "gpus", UNJUDGED)
                near = read_field(float, row, "together", UNJUDGED)
                need(key not in self.table and row.keys() <= ROW, "the table of rates is invalid", UNJUDGED)
                self.table[key] = near, read_field(float, row, "spread", UNJUDGED, near)
        if {name for name, _, _ in self.table} & set(self.used):
            self.learn(sorted([*key, *rates] for key, rates in self.table.items()))

    def _read_graphs(self, given: Data) -> None:
        # the least seconds of an iteration by profile, of those that are graphs of stages
        graphs = {name: read_graph(given[name], self.few) for name in self.used if name in given}
        gangs = {name: sum(stage["replicas"] for stage in graph["stages"]) for name, graph in graphs.items()}
        legal = not graphs or all(
            gangs.get(name, gang) == gang for name, gang in zip(self.by_profile, self.gpus, strict=True)
        )
        need(legal, "a gang is not one GPU a replica", UNJUDGED)
        self.graphs = {name: least_iteration(graph, self.nodes) for name, graph in graphs.items()}
        if graphs:
            self.learn([[name, graph] for name, graph in graphs.items()])

    def _speed_of(self, j: int, any_width: bool) -> Speed:
        # what the profile of a job says, or that it has a duration; any_width: rates of an elastic job are wanted
        name, gang, pace = self.by_profile[j], self.gpus[j], dict[str, float]()
        several, flat = sum(node["count"] for node in self.nodes) > 1, max(self.largest.values()) == 1
        scaling, batch = self.scaled[j], self.jobs.labels["batch_size"][j]
        sizes = sorted((node["gpus"], node["count"]) for node in (self.nodes[g] for g in self.suits[j]))[::-1]
        times = []  # of a gang at a scaling profile: on one node, if one holds it, and over several, if there are
        if scaling is not None:
            reach = [False] * (sizes[0][0] >= gang) + [True] * (gang > 1 and sum(count for _, count in sizes) > 1)
            times = scaling.least(batch, gang, self.memory[j], reach)
        for g in self.suits[j]:
            kind, rates = self.types[self.nodes[g]["gpu"].casefold()], (1.0, 1.0)
            if name in self.graphs:
                rates = (1.0 / self.graphs[name],) * 2
            elif scaling is not None:
                rates = 1.0 / min((times if flat else times[:1]) or times), 1.0 / min(times[-1:])
            elif name is not None:
                rates = self.table.get((name, kind.casefold(), gang), (0.0, 0.0))
            if min(rates) > 0:  # in nodes of one GPU nobody knows which GPUs are neighbours
                near, far = flat or gang <= self.largest[kind], gang > 1 and several and not flat
                pace[kind] = 1.0 / max(rates[0] * near, rates[1] * far)
        least = min(times) if times else self.graphs.get(name, min(pace.values(), default=0.0))
        if scaling is None:
            return Speed(pace, least)
        if not any_width:
            return Speed(pace, least, [])
        nodes = tuple(gpus for gpus, count in sizes for _ in range(count))
        return Speed(pace, least, list(scaling.rates(batch, gang, self.memory[j], nodes).items()))

    @cached_property
    def _exact_work(self) -> tuple[list[int], int]:
        return integers(self.amount)

    @property
    def work(self) -> list[int]:
        """Work of every job, in parts of ``1 / work_unit`` seconds or iterations."""
        return self._exact_work[0]

    @property
    def work_unit(self) -> int:
        """Parts of a unit of work."""
        return self._exact_work[1]
