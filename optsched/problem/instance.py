"""`Instance`: jobs, a cluster, and what is known about speeds. Frozen, validated, struct of arrays.

Problem in Graham's notation: P | r_j, size_j (, pmtn) | objective, with GPU types and GPU memory as eligibility.
Jobs are in the order of their source; ``j`` is always the 0-based position in it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import polars as pl

from optsched.errors import InputError, RowErrors, naming
from optsched.problem.arrays import Floats
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention
from optsched.problem.documents import short_number
from optsched.problem.epoch import epoch_of
from optsched.problem.html import html_of
from optsched.problem.instance_file import document, naming_jobs, read_parts, write_parts
from optsched.problem.interference import Interference
from optsched.problem.job_speeds import JobSpeeds, ModelledJobs, SubBatch
from optsched.problem.job_table import (
    COLUMNS,
    Job,
    job_problems,
    missing_values,
    normal_table,
    pieces_earlier,
    table_of,
)
from optsched.problem.objectives import get_objective
from optsched.problem.plain_jobs import PlainJobs, plain_of
from optsched.problem.scaling import Scaling
from optsched.problem.speed_model import LAST, SpeedModel, speed_models
from optsched.problem.throughputs import Throughputs
from optsched.registry import Registry

__all__ = ["READERS", "Cluster", "Instance", "Job", "NodeGroup", "Source", "instance_of"]

_ESCAPED, _BETWEEN = r"[^ !#-\[\]-~]", '", "'  # characters that JSON escapes; what is between two texts in a list
_NUMBERS = ("arrival", "duration", "iterations", "weight", "due", "gpu_memory")  # of jobs
_IF_STATED = ("restart", "checkpoint")  # digested where some job states it
# columns that decide no value; policies may look at all but the last two
_LABELS = ("user", "group", "model", "walltime", "status", "ran")


class PandasFrame(Protocol):
    """A pandas frame, for type checkers: pandas is no dependency."""

    @property
    def iloc(self) -> Any: ...


class Instance(ModelledJobs):
    """Jobs and a cluster: the only input of everything.

    Parameters
    ----------
    jobs : jobs, or a polars or pandas table with the columns of `Job` (absent columns take the defaults; without ids jobs
        are numbered from 1). Where there is a column ``arrival`` or ``gpus``, every job states it.
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
    tasks : the tasks of an iteration by the name in ``profile``, for jobs that are simulated task by task, whose
        ``iterations`` are whole. Where all jobs have tasks GPUs are shared: ``gpu_memory`` says how many jobs one can hold;
        beside jobs at other speeds they are whole jobs, as `optsched.at_job_level` makes them.
    contention : what all-reduces on one network interface cost each other; needed where a gang with tasks may span nodes.
        Whole jobs at stage or scaling profiles then slow each other down, too (`optsched.speeds.interface_sharing`).
    scalings : seconds of an iteration by batch, replicas and placement, for jobs with a ``batch_size`` and such a profile.
        Where it knows the memory of a sub-batch, jobs that do not state ``gpu_memory`` get it from there.
    interference : what two jobs on one GPU cost each other (a number: all pairs); policies that share GPUs need it.
    speeds : ``profiles``, ``throughputs``, ``tasks`` and ``scalings``, and by its name what is given of any other model
        of speeds (`optsched.problem.speed_model`).

    Raises
    ------
    RowErrors
        Every job that is invalid, at once: duplicate ids, missing, NaN or negative times, gangs larger than what the
        cluster offers them, gangs that are not the number of replicas of their profile, models that no table knows,
        models that run on no GPU type of the cluster, iterations of tasks that are not whole.
    InputError
        Messages without a contention model.
    """

    def __init__(
        self,
        jobs: Iterable[Job] | pl.DataFrame | PandasFrame | PlainJobs,
        cluster: Cluster | str,
        name: str = "",
        objective: str | None = None,
        recipe: Mapping[str, Any] | None = None,
        optimum: Mapping[str, Any] | None = None,
        *,
        contention: Contention | None = None,
        interference: Interference | float | None = None,
        file: str | os.PathLike[str] | None = None,
        **speeds: Any,
    ) -> None:
        cluster = cluster if isinstance(cluster, Cluster) else Cluster.parse(cluster)
        rows = list(jobs) if isinstance(jobs, Iterator) else jobs
        plain = plain_of(rows, cluster)
        given = table_of(rows.table() if isinstance(rows, PlainJobs) else rows) if plain is None else None
        table = None if given is None else normal_table(given, file)
        if interference is not None and not isinstance(interference, Interference):
            interference = Interference(interference)  # says what is legal
        models = _models(speeds)
        state: dict[str, Any] = {"_plain": plain}
        names: set[str] = set()
        if given is not None and table is not None:
            state = {"table": table, "_needs": _valid(given, table, cluster, models, file)}
            names = set(table["profile"].drop_nulls().to_list())
        self._set(
            **state,
            cluster=cluster,
            name=name,
            objective=None if objective is None else get_objective(objective).name,
            recipe=dict(recipe) if recipe else None,
            optimum=dict(optimum) if optimum else None,
            models=tuple(model.used_by(names) for model in models),
            contention=contention,
            interference=interference,
            file=None,
            zero=0.0,
        )
        for model in self.models:
            model.check(self)

    def _set(self, arrays: dict[str, Any] | None = None, epoch: float | None = None, **parts: Any) -> None:
        self.__dict__.update(parts)
        self.__dict__.update({model.name: model.given for model in self.models if model.document is not None})
        arrays = self._columns() if arrays is None else arrays
        for array in arrays.values():
            array.flags.writeable = False
        self.__dict__.update(arrays, _arrays=arrays, n=arrays["gpus"].size)
        self.__dict__["epoch"] = epoch_of(self.arrival, self.due) if epoch is None else epoch

    name: str
    objective: str | None
    recipe: dict[str, Any] | None
    optimum: dict[str, Any] | None
    models: tuple[SpeedModel, ...]
    file: str | None  # that it was read from, unchanged
    epoch: float  #: where its clock begins, in its own seconds: the first arrival (see `optsched.problem.epoch`)
    zero: float  # what the log's clock says at its time 0: not 0 for `relative` only
    # The values that models of speeds are given are attributes, too: `profiles`, `tasks`, and
    throughputs: Throughputs | None
    scalings: dict[str, Scaling]

    def __setattr__(self, key: str, value: Any) -> None:
        raise AttributeError(f"an Instance is frozen: use replace({key}=...)")

    def __delattr__(self, key: str) -> None:
        raise AttributeError("an Instance is frozen")

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        return f"Instance({self.name!r}, {self.n} job{'s' if self.n != 1 else ''}, {self.cluster.spec})"

    def _repr_html_(self) -> str:
        return html_of("instance", self)

    def __eq__(self, other: object) -> bool:
        """Would everything come out alike? The same `digest`, default objective, optimum, and labels.

        Labels are users, groups, models, walltimes, states and what ran. Name and recipe do not matter: the same
        jobs may be read from two files.
        """
        if not isinstance(other, Instance):
            return NotImplemented
        if self is other:
            return True
        if self.digest != other.digest or (self.objective, self.optimum) != (other.objective, other.optimum):
            return False
        if self._plain is not None and other._plain is not None:
            return True
        return self.table.select(_LABELS).equals(other.table.select(_LABELS))

    def __hash__(self) -> int:
        return hash(self.digest)

    def __getstate__(self) -> dict[str, Any]:
        # What was computed from the rest is computed again: a pickle holds what a file holds.
        jobs = ("table", "_needs") if self._plain is None else ("_plain",)
        return {key: getattr(self, key) for key in (*jobs, *_STATE)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._set(**state, file=None, zero=0.0)

    @cached_property
    def relative(self) -> Instance:
        """The same instance with time counted from `epoch`; itself where that is 0. Everything that computes sees this one.

        Arrivals and due dates less `epoch`, without rounding; a stated optimum is less what the clock adds to it.
        """
        if self.epoch == 0:
            return self
        shifted = object.__new__(Instance)
        moments = {"arrival": self.arrival - self.epoch, "due": self.due - self.epoch}
        if self._plain is not None:
            dates = self._plain.numbers["due"] - self.epoch
            changed: dict[str, Any] = {"_plain": self._plain.changed(arrival=moments["arrival"], due=dates)}
        else:
            earlier = [pl.col("arrival") - self.epoch, pl.col("due") - self.epoch]
            if self.table["ran"].null_count() < self.n:
                earlier.append(pieces_earlier(self.epoch))
            changed = self._with_columns(earlier)
        arrays = {**self._arrays, **moments}
        shifted._set(arrays, 0.0, **{**self.__getstate__(), **changed, "file": None, "zero": self.epoch})
        self._name_alike(shifted)
        if self.optimum:
            moved = get_objective(str(self.optimum["objective"])).clock_part(self)
            shifted.__dict__["optimum"] = {**self.optimum, "value": Fraction(self.optimum["value"]) - moved}
        return shifted

    @cached_property
    def walltime(self) -> Floats:
        """Limit in seconds that the user of every job stated, f64[n]; inf for a job without one."""
        if not self._states("walltime"):
            return np.full(self.n, np.inf)
        limits: Floats = self.table["walltime"].fill_null(np.inf).to_numpy()
        return limits

    @cached_property
    def speeds(self) -> tuple[JobSpeeds, ...]:
        """Speeds of all jobs: a part for every model by which some jobs run, in the order of their ranks."""
        return tuple(self.models[k].speeds(self, np.flatnonzero(self._model_of == k)) for k in self._used_models)

    @cached_property
    def _used_models(self) -> list[int]:
        used: list[int] = np.unique(self._model_of).tolist()
        return used

    def speeds_of(self, j: int) -> JobSpeeds:
        """Return the part of `speeds` that a job is in.

        Parameters
        ----------
        j
            Position of the job.
        """
        return self.speeds[self._used_models.index(int(self._model_of[j]))]

    @property
    def elastic(self) -> bool:
        """True if some jobs run on any number of GPUs."""
        return any(speeds.elastic for speeds in self.speeds)

    def sub_batches(self, j: int) -> tuple[SubBatch, ...]:
        """Return the ways to split the batch of a job, the largest sub-batch that some GPU holds first.

        A job that states its ``gpu_memory`` needs that memory with the first one; fewer samples at a time need
        less.

        Parameters
        ----------
        j
            Position of the job.

        Returns
        -------
        tuple[SubBatch, ...]
            An empty tuple if the ways are unknown.
        """
        return self.speeds_of(j).sub_batches(j)

    @cached_property
    def kinds(self) -> tuple[str | None, ...]:
        """Kind of every job in the table of interference: its profile or its model; None if neither is there."""
        known = set() if self.interference is None else set(self.interference.kinds)
        if not known:
            return (None,) * self.n
        names = zip(self.table["profile"].to_list(), self.table["model"].to_list(), strict=True)
        return tuple(profile if profile in known else model if model in known else None for profile, model in names)

    def job(self, j: int) -> Job:
        """Return a job as an object, for people and small instances; programs read the arrays.

        Parameters
        ----------
        j
            Position of the job.
        """
        row = self.table.row(j, named=True)
        values = {name: row[name] for name in COLUMNS}
        for name in (*_NUMBERS, *_IF_STATED, "walltime"):
            values[name] = short_number(values[name])
        if values["gpu_types"] is not None:
            values["gpu_types"] = tuple(values["gpu_types"])
        if values["ran"] is not None:
            values["ran"] = tuple(tuple(map(short_number, piece)) for piece in values["ran"])
        return Job(**values)

    @property
    def jobs(self) -> list[Job]:
        """All jobs as objects."""
        return [self.job(j) for j in range(self.n)]

    def replace(self, **changes: Any) -> Instance:
        """Return a copy with other parts.

        A stated optimum is dropped when anything but name, objective and recipe changes.

        Parameters
        ----------
        changes
            Arguments of `Instance` that change: ``jobs``, ``cluster``, ``name``, ``objective``, ``recipe``,
            ``optimum``, ``contention``, ``interference``, ``profiles``, ``throughputs``, ``tasks``, ``scalings`` or
            another model of speeds.
        """
        if "optimum" not in changes and changes.keys() - {"name", "objective", "recipe"}:
            changes["optimum"] = None  # proved for something else
        given = {model.name: model.given for model in self.models if model.document is not None}
        jobs = self.table if self._plain is None else self._plain
        return Instance(**{**self._parts(), "jobs": jobs, **given, **changes})

    def weighted_by(self, weight: Floats, due: Floats | None = None) -> Instance:
        """Return the same jobs with other weights, for bounds; nothing is validated, and no optimum is stated.

        Parameters
        ----------
        weight
            Weights, f64[n], 0 or from 1e-18 to 1e18.
        due
            Due dates in seconds, f64[n], within 1e18 of 0; None: those that the jobs have.
        """
        arrays = {"weight": weight, **({} if due is None else {"due": due})}
        if self._plain is not None:
            changed: dict[str, Any] = {"_plain": self._plain.changed(**arrays)}
        else:
            changed = self._with_columns([pl.Series(name, values) for name, values in arrays.items()])
        made = object.__new__(Instance)
        parts = {**self.__getstate__(), **changed, "optimum": None, "file": None}
        made._set({**self._arrays, **arrays}, self.epoch if due is None else None, **parts, zero=self.zero)
        self._name_alike(made)
        return made

    def _with_columns(self, columns: Sequence[pl.Expr | pl.Series]) -> dict[str, pl.DataFrame]:
        table = self.table.with_columns(columns)
        return {"table": table, "_needs": table if self._needs is self.table else self._needs.with_columns(columns)}

    def _name_alike(self, other: Instance) -> None:
        # A million ids as objects take much memory: those that exist serve copies, too.
        if "ids" in self.__dict__:
            other.__dict__["ids"] = self.ids

    def with_cluster(self, cluster: Cluster | str) -> Instance:
        """Return the same jobs on another cluster, without a proven optimum.

        Parameters
        ----------
        cluster
            Cluster, or its text form.
        """
        return self.replace(cluster=cluster, optimum=None)

    def head(self, count: int) -> Instance:
        """Return the first jobs by (arrival, position), in their order, without a proven optimum.

        Parameters
        ----------
        count
            Number of jobs; if there are no more, the instance itself is returned.
        """
        if count >= self.n:
            return self
        first = np.sort(np.lexsort((np.arange(self.n), self.arrival))[:count])
        return self.replace(jobs=self.table[first], optimum=None)

    @cached_property
    def digest(self) -> str:
        """sha256 (hex) of what decides feasibility and value: cluster, jobs' numbers, ids and types, their profiles.

        Independent of file format, name, objective, user, group, model, walltime, status and what ran.
        """
        h = hashlib.sha256(b"optsched-instance/1\n")

        def add(document: object, name: bytes = b"") -> None:
            h.update(name + json.dumps(document).encode())

        h.update(json.dumps(self.cluster.to_json(), sort_keys=True).encode())
        h.update(self._ids_text().encode())
        stated = [column for column in _IF_STATED if self._states(column)]
        for column in (*_NUMBERS, *stated):
            h.update(column.encode())
            h.update(self.floats(column, math.nan).astype("<f8", copy=False).data)
        h.update(b"gpus")
        h.update(self.gpus.astype("<i8", copy=False).data)
        for column in ("profile", "gpu_types"):
            if self._states(column):
                add(self.table[column].to_list())
        for model in self.models:
            jobs = self.jobs_at(model.name)
            if jobs.size and model.document is not None:
                names = sorted(set(self.table["profile"].gather(jobs).drop_nulls().to_list()))
                for document in model.digest(self, names):
                    add(document, model.name.encode() if model.rank == LAST else b"")
        if self.interference is not None:
            table = self.interference.table(list(dict.fromkeys(self.kinds)))
            add([self.interference.ratio, self.kinds, [row.tolist() for row in table]])
        if self.contention is not None and any(speeds.communicates for speeds in self.speeds):
            add(self.contention.to_json(), b"contention")
        return h.hexdigest()

    def _ids_text(self) -> str:
        # The ids as JSON; where none needs an escape, polars joins them ten times as fast.
        if self._plain is not None:
            return json.dumps(self.ids)
        ids = self.table["id"]
        if not self.n or ids.str.contains(_ESCAPED).any():
            return json.dumps(self.ids)
        return f'["{ids.str.join(_BETWEEN).item()}"]'

    def to_json(self) -> dict[str, Any]:
        """The document of an instance file (``"format": "optsched-instance/1"``)."""
        return document({"jobs": self.table, **self._parts()}, self.models)

    def _parts(self) -> dict[str, Any]:
        return {key: self.__dict__[key] for key in _PARTS}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an instance file, whole or not at all.

        Parameters
        ----------
        path
            File to write, ``.json`` or ``.parquet``.
        """
        write_parts(path, {"jobs": self.table, **self._parts()}, self.models)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Instance:
        """Read an instance file.

        Parameters
        ----------
        path
            File to read, ``.json`` or ``.parquet``.

        Raises
        ------
        InputError
            If the file is not an instance file.
        RowErrors
            If jobs are invalid; every one is reported.
        """
        with naming(path), naming_jobs(path):
            instance = Instance(**read_parts(path), file=path)
        instance.__dict__["file"] = os.fspath(path)
        return instance


_PARTS = ("cluster", "name", "objective", "recipe", "optimum", "contention", "interference")
_STATE = ("models", *_PARTS)


def _valid(
    given: pl.DataFrame,
    table: pl.DataFrame,
    cluster: Cluster,
    models: Sequence[SpeedModel],
    file: str | os.PathLike[str] | None,
) -> pl.DataFrame:
    """Return a normal table with the memory that jobs need; raise `RowErrors` for the table as it is given."""
    problems = missing_values(given)
    problems += [problem for model in models for problem in model.problems(table, cluster)]
    needs = table
    for model in models if not problems else ():
        memory = model.memory(needs, cluster)
        needs = needs if memory is None else needs.with_columns(memory)
    problems = sorted(problems + job_problems(needs, cluster, models), key=lambda problem: problem.row)
    if problems:
        raise RowErrors(file, problems, table.height)
    return needs


def _models(given: Mapping[str, Any]) -> tuple[SpeedModel, ...]:
    """One of every registered model of speeds, with what is given of it; no two of them know one name."""
    every = speed_models()
    known = [model.name for model in every if model.document is not None]
    for name in given.keys() - known:
        raise TypeError(f"Instance() got an unexpected keyword argument {name!r}")
    models = tuple(model(given.get(model.name)) for model in every)
    owner: dict[str, SpeedModel] = {}
    for model in sorted(models, key=lambda model: not model.closed):
        for name in model.names:
            if name in owner:
                message = f"both {model.noun} and {owner[name].noun}"
                raise InputError(message, field=model.name, value=name)
            owner[name] = model
    return models


# Whoever takes an instance also takes the text that names one, as on the command line. What text names is read far above the
# modules that judge and bound: `optsched.io.sources` files its reader here, where everybody can ask for it.
Source = Instance | str | os.PathLike[str]
READERS: Registry[Callable[[str | os.PathLike[str]], Instance]] = Registry("reader", package="optsched.io.sources")


def instance_of(source: Source) -> Instance:
    """Return the instance that a SOURCE names, or the instance itself.

    Parameters
    ----------
    source
        Instance, or text as for `optsched.load`: a file, a shipped name, DIALECT:PATH.

    Raises
    ------
    InputError
        If the text names no instance, or the source is anything else.
    """
    if isinstance(source, Instance):
        return source
    found: object = source
    if isinstance(found, str | os.PathLike):
        return READERS.get("load")(found)
    legal = "an Instance, or text: the name of a shipped instance, FILE.json, FILE.parquet, DIALECT:PATH"
    raise InputError("not an instance", field="instance", value=type(found).__name__, legal=legal)
