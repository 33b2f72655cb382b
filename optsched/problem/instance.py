"""`Instance`: jobs, a cluster, and what is known about speeds. Frozen, validated, struct of arrays.

Problem in Graham's notation: P | r_j, size_j (, pmtn) | objective, with GPU types and GPU memory as eligibility.
Jobs stand in the order of their source; ``j`` is always the 0-based position in it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
import polars as pl

from optsched.errors import InputError, RowErrors
from optsched.problem.arrays import Bools as Bools  # also for those who have it from here
from optsched.problem.arrays import Floats, Ints
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.eligibility import suited_groups
from optsched.problem.epoch import epoch_of
from optsched.problem.html import html_of
from optsched.problem.instance_file import MAX_INTEGER, document, read_parts, short_number, write_parts
from optsched.problem.interference import Interference
from optsched.problem.job_table import (
    COLUMNS,
    job_problems,
    needed_memory,
    normal_table,
    scaling_problems,
    task_problems,
)
from optsched.problem.objectives import get_objective
from optsched.problem.profile import Profile
from optsched.problem.scaling import Scaling, SubBatch
from optsched.problem.table import is_pandas, polars_of_pandas
from optsched.problem.throughputs import Throughputs
from optsched.registry import near_matches

__all__ = ["Cluster", "Instance", "Job", "NodeGroup"]


@dataclass(frozen=True, slots=True)
class Job:
    """One job. Seconds and bytes; ``duration`` = seconds alone at full speed on its whole gang.

    Either ``duration`` or ``iterations`` with the name of a ``profile``: a stage profile of the instance, a job type of
    its throughput table, or the tasks of an iteration.
    ``batch_size``: samples of an iteration over the whole gang, for jobs whose ``profile`` is a scaling profile.
    ``gpus`` is the gang size g_j, ``weight`` w_j, ``due`` d_j (None: no due date), ``gpu_memory`` bytes on each GPU,
    ``gpu_types`` the GPU types it may use (None: all; names match case-insensitively).
    """

    id: str
    arrival: float = 0
    gpus: int = 1
    duration: float | None = None
    iterations: float | None = None
    profile: str | None = None
    weight: float = 1
    due: float | None = None
    user: str | None = None
    group: str | None = None
    model: str | None = None
    gpu_memory: float | None = None
    gpu_types: tuple[str, ...] | None = None
    batch_size: int | None = None


_JOB_FIELDS = tuple(field.name for field in fields(Job))
_LABELS = ("user", "group", "model")  # columns that decide no value, and that policies may look at


class PandasFrame(Protocol):
    """A pandas frame, for type checkers: pandas is no dependency."""

    @property
    def iloc(self) -> Any: ...


class Instance:
    """Jobs and a cluster: the only input of everything.

    Parameters
    ----------
    jobs : jobs, or a polars or pandas table with the columns of `Job` (missing columns take the defaults; without ids jobs
        are numbered from 1).
    cluster : a `Cluster` or its text form (``"8x8"``).
    name : shown in reports.
    objective : the objective that is meant when none is named (default: ``total_flow_time``).
    recipe : how the instance was made (name, seed, parameters), kept verbatim.
    optimum : what is said to be the optimum, ``{"objective", "class", "value", "proved_by"}``; `optsched.guarantees.optimum`
        says when it is believed.
    profiles : what an iteration of a job with ``iterations`` costs, by the name in its ``profile``. A profile may be
        missing (a trace that only names models): such an instance can be converted, and runs once it has its profiles.
    throughputs : iterations/s by job type, GPU type and gang size, for jobs whose ``profile`` is a job type of the table.
        GPU types where it says zero, or nothing, are not for that job. The instance keeps the job types that it uses.
    tasks : the tasks of an iteration by the name in ``profile``, for jobs that are simulated task by task. Then all jobs
        of the instance are, ``iterations`` are whole, and GPUs are shared: ``gpu_memory`` says how many jobs one can hold.
    contention : what all-reduces on one network interface cost each other; needed where a gang with tasks may span nodes.
        Whole jobs at stage or scaling profiles then slow each other down, too (`optsched.speeds.interface_sharing`).
    scalings : seconds of an iteration by batch, replicas and placement, for jobs with a ``batch_size`` and such a profile.
        Where it knows the memory of a sub-batch, jobs that do not state ``gpu_memory`` get it from there.
    interference : what two jobs on one GPU cost each other (a number: all pairs); policies that share GPUs need it.

    Raises
    ------
    RowErrors
        Every job that is not legal, at once: duplicate ids, NaN or negative times, gangs larger than what the
        cluster offers them, gangs that are not the number of replicas of their profile, models that no table knows,
        models that run on no GPU type of the cluster, iterations of tasks that are not whole.
    InputError
        Messages without a contention model.
    """

    def __init__(
        self,
        jobs: Iterable[Job] | pl.DataFrame | PandasFrame,
        cluster: Cluster | str,
        name: str = "",
        objective: str | None = None,
        recipe: Mapping[str, Any] | None = None,
        optimum: Mapping[str, Any] | None = None,
        profiles: Mapping[str, Profile] | None = None,
        throughputs: Throughputs | None = None,
        tasks: Mapping[str, IterationTasks] | None = None,
        contention: Contention | None = None,
        scalings: Mapping[str, Scaling] | None = None,
        interference: Interference | float | None = None,
        *,
        file: str | os.PathLike[str] | None = None,
    ) -> None:
        table = _table_of(jobs)
        cluster = cluster if isinstance(cluster, Cluster) else Cluster.parse(cluster)
        table = normal_table(table, file)
        profiles, tasks, scalings = dict(profiles or {}), dict(tasks or {}), dict(scalings or {})
        interference = _interference(interference)
        _check_names(profiles, throughputs, tasks, scalings, interference)
        problems = scaling_problems(table, cluster, scalings)
        needs = table if problems or not scalings else table.with_columns(needed_memory(table, cluster, scalings))
        gangs: dict[str, int | None] = {key: profile.gpus for key, profile in profiles.items()}
        gangs.update(dict.fromkeys(scalings))
        problems += job_problems(needs, cluster, gangs, throughputs) + task_problems(table, cluster, tasks)
        if problems:
            raise RowErrors(file, problems, table.height)
        if throughputs is not None:
            throughputs = throughputs.restricted(set(table["profile"].drop_nulls().to_list()))
        for key, value in {
            "table": table,
            "_needs": needs,
            "cluster": cluster,
            "name": name,
            "objective": objective,
            "recipe": dict(recipe) if recipe else None,
            "optimum": dict(optimum) if optimum else None,
            "profiles": profiles,
            "throughputs": throughputs,
            "tasks": tasks,
            "contention": contention,
            "scalings": scalings,
            "interference": interference,
            "file": None,
            "zero": 0.0,
        }.items():
            self.__dict__[key] = value
        self._check_contention()
        if objective is not None:
            get_objective(objective)

    table: pl.DataFrame
    _needs: pl.DataFrame  # the table with the memory that jobs need, stated or not
    cluster: Cluster
    name: str
    objective: str | None
    recipe: dict[str, Any] | None
    optimum: dict[str, Any] | None
    profiles: dict[str, Profile]
    throughputs: Throughputs | None
    tasks: dict[str, IterationTasks]
    contention: Contention | None
    scalings: dict[str, Scaling]
    interference: Interference | None
    file: str | None  # that it was read from, unchanged
    zero: float  # what the log's clock says at its time 0: not 0 for `relative` only

    def __setattr__(self, key: str, value: Any) -> None:
        raise AttributeError(f"an Instance is frozen: use replace({key}=...)")

    def __delattr__(self, key: str) -> None:
        raise AttributeError("an Instance is frozen")

    def __len__(self) -> int:
        return self.table.height

    def __repr__(self) -> str:
        return f"Instance({self.name!r}, {self.n} job{'s' if self.n != 1 else ''}, {self.cluster.spec})"

    def _repr_html_(self) -> str:
        return html_of("instance", self)

    def __eq__(self, other: object) -> bool:
        """Would everything come out alike? The same `digest`, default objective, optimum, and users, groups and models.

        Name and recipe do not matter: the same jobs may be read from two files.
        """
        if not isinstance(other, Instance):
            return NotImplemented
        if self is other:
            return True
        if self.digest != other.digest or (self.objective, self.optimum) != (other.objective, other.optimum):
            return False
        return self.table.select(_LABELS).equals(other.table.select(_LABELS))

    def __hash__(self) -> int:
        return hash(self.digest)

    def __getstate__(self) -> dict[str, Any]:
        # What was computed from the rest is computed again: a pickle holds what a file holds.
        return {
            **{key: value for key, value in self._parts.items() if key != "jobs"},
            "table": self.table,
            "_needs": self._needs,
        }

    @cached_property
    def n(self) -> int:
        """Number of jobs."""
        return self.table.height

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Job ids in order."""
        return tuple(self.table["id"].to_list())

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each id."""
        return {job: j for j, job in enumerate(self.ids)}

    def _floats(self, column: str, missing: float) -> Floats:
        array = self._needs[column].fill_null(missing).to_numpy().astype(np.float64)
        array.flags.writeable = False
        return array

    @cached_property
    def arrival(self) -> Floats:
        """Release dates r_j in seconds, f64[n]."""
        return self._floats("arrival", 0.0)

    @cached_property
    def epoch(self) -> float:
        """Where the clock of this instance begins, in its own seconds: the first arrival (see `optsched.problem.epoch`)."""
        return epoch_of(self.arrival, self.due)

    @cached_property
    def relative(self) -> Instance:
        """The same instance with time counted from `epoch`; itself where that is 0. Everything that computes sees this one.

        Arrivals and due dates less `epoch`, without rounding; a stated optimum is less what the clock adds to it.
        """
        if self.epoch == 0:
            return self
        shifted = object.__new__(Instance)
        earlier = [pl.col("arrival") - self.epoch, pl.col("due") - self.epoch]
        changed = {"table": self.table.with_columns(earlier), "_needs": self._needs.with_columns(earlier)}
        shifted.__dict__.update({**self._parts, **changed, "file": None, "zero": self.epoch})
        del shifted.__dict__["jobs"]
        if self.optimum:
            moved = get_objective(str(self.optimum["objective"])).clock_part(self)
            shifted.__dict__["optimum"] = {**self.optimum, "value": Fraction(self.optimum["value"]) - moved}
        return shifted

    @cached_property
    def gpus(self) -> Ints:
        """Gang sizes g_j, i64[n]."""
        array = self.table["gpus"].to_numpy().astype(np.int64)
        array.flags.writeable = False
        return array

    @cached_property
    def duration(self) -> Floats:
        """Seconds alone at full speed, f64[n]; nan where only iterations are known."""
        return self._floats("duration", math.nan)

    @cached_property
    def iterations(self) -> Floats:
        """Iterations, f64[n]; nan where only a duration is known."""
        return self._floats("iterations", math.nan)

    @cached_property
    def profiled(self) -> Bools:
        """Which jobs ask for iterations (they have no duration), bool[n]."""
        array = np.isnan(self.duration)
        array.flags.writeable = False
        return array

    @cached_property
    def tabled(self) -> Bools:
        """Which of them run at the speeds of the throughput table, by GPU type, bool[n]."""
        array = np.zeros(self.n, dtype=bool)
        if self.throughputs is not None and self.profiled.any():
            array = (
                self.profiled
                & self.table["profile"].is_in(list(self.throughputs.job_types)).fill_null(False).to_numpy()
            )
        array.flags.writeable = False
        return array

    @cached_property
    def staged(self) -> Bools:
        """Which of them run at the speed of a stage profile on their placement, bool[n]."""
        array = self.profiled & ~self.tabled & ~self.tasked & ~self.scaled
        array.flags.writeable = False
        return array

    @cached_property
    def scaled(self) -> Bools:
        """Which of them run at the speed of a scaling profile, by batch, gang and placement, bool[n]."""
        array = np.zeros(self.n, dtype=bool)
        if self.scalings and self.profiled.any():
            array = self.profiled & self.table["profile"].is_in(list(self.scalings)).fill_null(False).to_numpy()
        array.flags.writeable = False
        return array

    def sub_batches(self, j: int) -> tuple[SubBatch, ...]:
        """How the batch of job ``j`` may be split, the largest sub-batch that some GPU holds first; () where it is unknown.

        A job that states its ``gpu_memory`` needs that much at the first; fewer samples at a time need less.
        """
        name, batch = self._scaled_columns
        if name[j] is None:
            return ()
        key = name[j], batch[j], int(self.gpus[j]), float(self.gpu_memory[j])
        if key not in self._sub_batches:
            self._sub_batches[key] = self._split(*key)
        return self._sub_batches[key]

    @cached_property
    def _sub_batches(self) -> dict[tuple[str, int, int, float], tuple[SubBatch, ...]]:
        return {}

    @cached_property
    def _scaled_columns(self) -> tuple[list[Any], list[Any]]:
        # profile (None: not scaled) and batch size of every job
        names, batches = self.table["profile"].to_list(), self.table["batch_size"].to_list()
        return [name if scaled else None for name, scaled in zip(names, self.scaled.tolist(), strict=True)], batches

    def _split(self, name: str, batch: int, gang: int, stated: float) -> tuple[SubBatch, ...]:
        scaling = self.scalings[name]
        options = scaling.sub_batches(batch, gang)
        if not scaling.knows_memory:
            return tuple(SubBatch(each.size, each.steps, stated) for each in options)
        fits = [each for each in options if each.memory <= stated] or list(options)
        saved = fits[0].size
        return tuple(
            SubBatch(each.size, each.steps, stated - scaling.memory_per_sample * (saved - each.size)) for each in fits
        )

    @cached_property
    def kinds(self) -> tuple[str | None, ...]:
        """What every job is to its partners on a GPU: its profile, or its model, where the table of interference has it."""
        known = set() if self.interference is None else set(self.interference.kinds)
        names = zip(self.table["profile"].to_list(), self.table["model"].to_list(), strict=True)
        return tuple(profile if profile in known else model if model in known else None for profile, model in names)

    @cached_property
    def tasked(self) -> Bools:
        """Which of them are simulated task by task, bool[n]: all or none."""
        array = self.profiled if self.tasks else np.zeros(self.n, dtype=bool)
        array.flags.writeable = False
        return array

    @cached_property
    def at_task_level(self) -> bool:
        """Are the jobs, if there are any, simulated task by task?"""
        return bool(self.tasks)

    def require_whole_jobs(self, what: str) -> None:
        """`InputError` where jobs have tasks: ``what`` needs jobs that hold their GPUs alone and run at a rate."""
        if self.at_task_level:
            raise InputError(
                f"{what} schedules whole jobs, these have tasks and share GPUs",
                field="tasks",
                legal="jobs with durations, stage profiles or throughputs; or optsched.at_job_level(instance)",
            )

    def _of_tasks(self, field: str) -> Floats:
        values = {name: getattr(each, field) or 0.0 for name, each in self.tasks.items()}
        array = np.array([values[name] for name in self.table["profile"].to_list()], dtype=np.float64)
        array.flags.writeable = False
        return array

    @cached_property
    def forward(self) -> Floats:
        """Seconds of a forward task, f64[n]; only at the task level."""
        return self._of_tasks("forward")

    @cached_property
    def backward(self) -> Floats:
        """Seconds of a backward task, f64[n]; only at the task level."""
        return self._of_tasks("backward")

    @cached_property
    def message(self) -> Floats:
        """Bytes that are all-reduced after each iteration when the gang spans nodes, f64[n]; 0: none. Task level only."""
        return self._of_tasks("message")

    def _check_contention(self) -> None:
        # Without its cost a transfer has no duration; one node, or gangs of one GPU, transfer nothing.
        if not self.at_task_level or self.cluster.node_count == 1:
            return
        sends = (self.message > 0) & (self.gpus > 1)
        if not sends.any():
            return
        if self.contention is None:
            raise InputError(
                f"missing: job {self.ids[int(np.argmax(sends))]!r} may send a message over the network",
                field="contention",
                legal="Contention(seconds_per_byte=..., penalty=...), e.g. optsched.problem.contention.ETHERNET_10G",
            )
        if self.contention.measured:
            names = sorted(set(self.table["profile"].filter(pl.Series(sends)).to_list()))
            for name in names:
                if name not in self.contention.kinds:
                    legal = near_matches(name, list(self.contention.kinds), kind="kind")
                    raise InputError("no measured ratios", field="contention.kinds", value=name, legal=legal)

    def profiles_used(self) -> dict[str, Profile]:
        """The stage profiles at whose speed jobs run; `InputError` naming the first job whose profile is not there."""
        rows = np.flatnonzero(self.staged)
        names = self.table["profile"].gather(rows).to_list()
        for j, name in zip(rows.tolist(), names, strict=True):
            if name not in self.profiles:
                known = ", ".join(sorted(self.profiles)[:10]) or "none is given"
                raise InputError(
                    f"job {self.ids[j]!r} has no duration, and nothing gives the speed of its profile",
                    field="profile",
                    value=name,
                    legal=f"profiles of the instance: {known}; a throughput table and GPU types "
                    "(--cluster 8x8:V100); or durations",
                )
        return {name: self.profiles[name] for name in sorted(set(names))}

    @cached_property
    def work(self) -> Floats:
        """What a job asks for, f64[n]: seconds at full speed, or iterations where it runs at a profile's speed."""
        array = np.where(self.profiled, self.iterations, self.duration)
        array.flags.writeable = False
        return array

    @cached_property
    def weight(self) -> Floats:
        """Weights w_j, f64[n]."""
        return self._floats("weight", 1.0)

    @cached_property
    def due(self) -> Floats:
        """Due dates in seconds, f64[n]; inf where there is none."""
        return self._floats("due", math.inf)

    @cached_property
    def gpu_memory(self) -> Floats:
        """Bytes a job needs on each of its GPUs, f64[n]: as stated, else by its scaling profile, 0 where nothing says.

        By a scaling profile: with the largest sub-batch that its gang has room for on this cluster (`needed_memory`).
        """
        return self._floats("gpu_memory", 0.0)

    @cached_property
    def integral(self) -> bool:
        """Are arrivals, durations, weights and due dates all integers? Results are then exact."""
        due = self.due[np.isfinite(self.due)]
        return all(bool(np.all(a == np.floor(a))) for a in (self.arrival, self.duration, self.weight, due))

    @cached_property
    def _classes(self) -> tuple[Ints, Ints, Bools]:
        # Jobs with the same gang size and the same eligible nodes are alike to every placement.
        pattern, patterns = suited_groups(self._needs, self.cluster, self.throughputs)
        count = max(len(patterns), 1)
        key = self.gpus * count + pattern
        kinds, job_class = np.unique(key, return_inverse=True)
        eligible = patterns[kinds % count][:, self.cluster.node_group] if self.n else np.zeros((0, 0), dtype=bool)
        found = job_class.reshape(-1).astype(np.int64), kinds // count, np.ascontiguousarray(eligible)
        for array in found:
            array.flags.writeable = False
        return found

    @property
    def job_class(self) -> Ints:
        """Class of each job, i64[n]: same gang size and same eligible nodes."""
        return self._classes[0]

    @property
    def class_gpus(self) -> Ints:
        """Gang size of each class, i64[K]."""
        return self._classes[1]

    @property
    def class_eligible(self) -> Bools:
        """Which nodes the jobs of a class may use, bool[K, N]."""
        return self._classes[2]

    @property
    def unrestricted(self) -> bool:
        """May every job use every node?"""
        return bool(self.class_eligible.all())

    def eligible(self, j: int) -> Bools:
        """Nodes whose GPU type and GPU memory suit job ``j``, bool[N]."""
        return cast("Bools", self.class_eligible[self.job_class[j]])

    def job(self, j: int) -> Job:
        """Job ``j`` as an object (for people and small instances; programs read the arrays)."""
        row = self.table.row(j, named=True)
        values = {name: row[name] for name in _JOB_FIELDS}
        for name in ("arrival", "duration", "iterations", "weight", "due", "gpu_memory"):
            values[name] = short_number(values[name])
        if values["gpu_types"] is not None:
            values["gpu_types"] = tuple(values["gpu_types"])
        return Job(**values)

    @property
    def jobs(self) -> list[Job]:
        """All jobs as objects."""
        return [self.job(j) for j in range(self.n)]

    def replace(self, **changes: Any) -> Instance:
        """A copy with other ``jobs``, ``cluster``, ``name``, ``objective``, ``recipe``, ``optimum``, ``profiles``,
        ``throughputs``, ``tasks``, ``contention``, ``scalings`` or ``interference``.
        """
        physics = {"jobs", "cluster", "profiles", "throughputs", "tasks", "contention", "scalings", "interference"}
        if "optimum" not in changes and physics & changes.keys():
            changes["optimum"] = None  # proved for something else
        return Instance(**{**self._parts, **changes})

    @property
    def _parts(self) -> dict[str, Any]:
        # What the constructor takes and what a file holds.
        return {
            "jobs": self.table,
            "cluster": self.cluster,
            "name": self.name,
            "objective": self.objective,
            "recipe": self.recipe,
            "optimum": self.optimum,
            "profiles": self.profiles,
            "throughputs": self.throughputs,
            "tasks": self.tasks,
            "contention": self.contention,
            "scalings": self.scalings,
            "interference": self.interference,
        }

    def with_cluster(self, cluster: Cluster | str) -> Instance:
        """The same jobs on another cluster; a proven optimum does not carry over."""
        return self.replace(cluster=cluster, optimum=None)

    def head(self, count: int) -> Instance:
        """The first ``count`` jobs by (arrival, position), in their order; a proven optimum does not carry over."""
        if count >= self.n:
            return self
        first = np.sort(np.lexsort((np.arange(self.n), self.arrival))[:count])
        return self.replace(jobs=self.table[first], optimum=None)

    @cached_property
    def digest(self) -> str:
        """sha256 (hex) of what decides feasibility and value: cluster, jobs' numbers, ids and types, their profiles.

        Independent of file format, name, objective, user, group and model.
        """
        h = hashlib.sha256(b"optsched-instance/1\n")
        h.update(json.dumps(self.cluster.to_json(), sort_keys=True).encode())
        h.update(json.dumps(self.ids).encode())
        for column in ("arrival", "duration", "iterations", "weight", "due", "gpu_memory"):
            h.update(column.encode() + self._floats(column, math.nan).astype("<f8").tobytes())
        h.update(b"gpus" + self.gpus.astype("<i8").tobytes())
        for column in ("profile", "gpu_types"):
            if self.table[column].null_count() < self.n:
                h.update(json.dumps(self.table[column].to_list()).encode())
        if self.tabled.any() and self.throughputs is not None:
            h.update(json.dumps(self.throughputs.numbers).encode())
        if self.staged.any():
            used = sorted(set(self.table["profile"].filter(pl.Series(self.staged)).to_list()))
            known = [[name, self.profiles[name].to_json()] for name in used if name in self.profiles]
            h.update(json.dumps(known).encode() if known else b"")
        if self.at_task_level:
            used = sorted(set(self.table["profile"].to_list()))
            h.update(json.dumps([[name, self.tasks[name].to_json()] for name in used]).encode())
            h.update(json.dumps(None if self.contention is None else self.contention.to_json()).encode())
        if self.scaled.any():
            used = sorted(set(self.table["profile"].filter(pl.Series(self.scaled)).to_list()))
            h.update(json.dumps([[name, self.scalings[name].to_json()] for name in used]).encode())
            h.update(json.dumps(self.table["batch_size"].to_list()).encode())
        if self.interference is not None:
            kinds = list(dict.fromkeys(self.kinds))
            table = self.interference.table(kinds)
            h.update(json.dumps([self.interference.ratio, self.kinds, [row.tolist() for row in table]]).encode())
        if self.contention is not None and (self.staged | self.scaled).any():  # jobs that declare communication
            h.update(b"contention" + json.dumps(self.contention.to_json()).encode())
        return h.hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The document of an instance file (``"format": "optsched-instance/1"``)."""
        return document(**self._parts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to ``.json`` or ``.parquet``, whole or not at all."""
        write_parts(path, **self._parts)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Instance:
        """Read an instance file (``.json`` or ``.parquet``); `InputError` when it is not one."""
        try:
            instance = Instance(**read_parts(path), file=path)
            instance.__dict__["file"] = os.fspath(path)
            return instance
        except InputError as error:
            if str(path) in str(error):
                raise
            raise InputError(str(error), file=path) from None


def _check_names(
    profiles: Mapping[str, Profile],
    throughputs: Throughputs | None,
    tasks: Mapping[str, IterationTasks],
    scalings: Mapping[str, Scaling],
    interference: Interference | None,
) -> None:
    if tasks and interference is not None:
        legal = "none; contention says what jobs with tasks cost each other"
        raise InputError(
            "jobs with tasks take turns on a GPU", field="interference", value=interference.ratio, legal=legal
        )
    if tasks and (profiles or scalings or throughputs is not None):
        legal = "either tasks, or profiles, throughputs and scalings"
        raise InputError("jobs with tasks and jobs at other speeds do not run together", field="tasks", legal=legal)
    for name, scaling in scalings.items():
        if not isinstance(scaling, Scaling):
            raise InputError("not legal", field=f"scalings.{name}", value=scaling, legal="optsched.Scaling(...)")
        if name in profiles or (throughputs is not None and name in throughputs.job_types):
            raise InputError("also a stage profile or a job type of the throughput table", field="scalings", value=name)
    for name in profiles:
        if throughputs is not None and name in throughputs.job_types:
            raise InputError(
                "both a stage profile and a job type of the throughput table", field="profiles", value=name
            )


def _interference(value: Interference | float | None) -> Interference | None:
    if value is None or isinstance(value, Interference):
        return value
    return Interference(value)  # says what is legal


def _table_of(jobs: Any) -> pl.DataFrame:
    if is_pandas(jobs):
        return polars_of_pandas(jobs)
    if isinstance(jobs, pl.DataFrame):
        return jobs
    if isinstance(jobs, str) or not isinstance(jobs, Iterable):
        legal = "a list of optsched.Job(...), or a polars or pandas table with their columns"
        raise InputError("no jobs", field="jobs", value=jobs, legal=legal)
    return _table_of_jobs(jobs)


def _table_of_jobs(jobs: Iterable[Job]) -> pl.DataFrame:
    rows = list(jobs)
    for position, job in enumerate(rows):
        if not isinstance(job, Job):
            raise InputError("not a job", row=position + 1, value=job, legal="optsched.Job(...)")
    columns: dict[str, list[Any]] = {name: [getattr(job, name) for job in rows] for name in _JOB_FIELDS}
    for name, dtype in COLUMNS.items():
        columns[name] = [_legal(value, name, dtype, j + 1) for j, value in enumerate(columns[name])]
    return pl.DataFrame(columns, schema=COLUMNS, strict=True)


def _legal(value: Any, field: str, dtype: pl.DataType, row: int) -> Any:
    # A field of a Job as the table holds it; polars would accept True for 1 and cut a list of types out of a text.
    if value is None:
        return None
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if dtype == pl.Float64:
        legal = "a number"
        if number and (not isinstance(value, int) or abs(value) <= sys.float_info.max):
            return float(value)
    elif dtype == pl.Int64:
        legal = "an integer"
        if isinstance(value, int | np.integer) and number and abs(int(value)) <= MAX_INTEGER:
            return int(value)
    elif dtype == pl.String:
        legal = "text"
        if isinstance(value, str):
            return value
    else:
        legal = "names of GPU types, e.g. ('V100',)"
        if isinstance(value, tuple | list) and all(isinstance(name, str) for name in value):
            return list(value)
    raise InputError("not legal", row=row, field=field, value=value, legal=legal)
