"""The table that jobs make, and `JobColumns`: the jobs of an instance as arrays, computed once, when first asked for."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
import polars as pl

from optsched.errors import InputError
from optsched.problem.arrays import Bools, Floats, Ints, frozen, is_number, is_whole
from optsched.problem.cluster import Cluster
from optsched.problem.documents import MAX_INTEGER
from optsched.problem.job_table import COLUMNS, Job, suited_groups
from optsched.problem.speed_model import SpeedModel
from optsched.problem.table import is_pandas, polars_of_pandas


def table_of(jobs: Any) -> pl.DataFrame:
    """The table of a list of jobs, or a polars or pandas table as a polars one; `InputError` otherwise."""
    if is_pandas(jobs):
        return polars_of_pandas(jobs)
    if isinstance(jobs, pl.DataFrame):
        return jobs
    if isinstance(jobs, str) or not isinstance(jobs, Iterable):
        legal = "a list of optsched.Job(...), or a polars or pandas table with their columns"
        raise InputError("no jobs", field="jobs", value=jobs, legal=legal)
    rows = list(jobs)
    for position, job in enumerate(rows):
        if not isinstance(job, Job):
            raise InputError("not a job", row=position + 1, value=job, legal="optsched.Job(...)")
    columns: dict[str, list[Any]] = {name: [getattr(job, name) for job in rows] for name in COLUMNS}
    for name, dtype in COLUMNS.items():
        columns[name] = [_legal(value, name, dtype, j + 1) for j, value in enumerate(columns[name])]
    return pl.DataFrame(columns, schema=COLUMNS, strict=True)


def _legal(value: Any, field: str, dtype: pl.DataType, row: int) -> Any:
    # A field of a Job as the table holds it; polars would accept True for 1 and cut a list of types out of a text.
    if value is None:
        return None
    if dtype == pl.Float64:
        legal = "a number"
        if is_number(value) and (not isinstance(value, int) or abs(value) <= sys.float_info.max):
            return float(value)
    elif dtype == pl.Int64:
        legal = "an integer"
        if is_whole(value) and abs(int(value)) <= MAX_INTEGER:
            return int(value)
    elif dtype == pl.String:
        legal = "text"
        if isinstance(value, str):
            return value
    else:
        legal = "names of GPU types, e.g. ('V100',)"
        if isinstance(value, tuple | list) and all(isinstance(name, str) for name in value):
            return list(value)
    raise InputError("invalid", row=row, field=field, value=value, legal=legal)


class JobColumns:
    """The arrays of n jobs on a cluster of N nodes; none of them can be written to."""

    table: pl.DataFrame
    cluster: Cluster
    models: Sequence[SpeedModel]  # what gives jobs their speeds, by rank
    _needs: pl.DataFrame  # the table with the memory that jobs need, stated or not

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

    def floats(self, column: str, missing: float) -> Floats:
        """A column of numbers, f64[n], with ``missing`` where it says nothing."""
        array = self._needs[column].to_numpy().astype(np.float64)
        array[np.isnan(array)] = missing  # what is null; a number that is none is invalid
        return frozen(array)

    @cached_property
    def arrival(self) -> Floats:
        """Release dates r_j in seconds, f64[n]."""
        return self.floats("arrival", 0.0)

    @cached_property
    def gpus(self) -> Ints:
        """Gang sizes g_j, i64[n]."""
        return frozen(self.table["gpus"].to_numpy().astype(np.int64))

    @cached_property
    def duration(self) -> Floats:
        """Seconds alone at full speed, f64[n]; nan where only iterations are known."""
        return self.floats("duration", math.nan)

    @cached_property
    def iterations(self) -> Floats:
        """Iterations, f64[n]; nan where only a duration is known."""
        return self.floats("iterations", math.nan)

    @cached_property
    def profiled(self) -> Bools:
        """Which jobs ask for iterations (they have no duration), bool[n]."""
        return frozen(np.isnan(self.duration))

    @cached_property
    def work(self) -> Floats:
        """What a job asks for, f64[n]: seconds at full speed, or iterations where it runs at a profile's speed."""
        return frozen(np.where(self.profiled, self.iterations, self.duration))

    @cached_property
    def weight(self) -> Floats:
        """Weights w_j, f64[n]."""
        return self.floats("weight", 1.0)

    @cached_property
    def due(self) -> Floats:
        """Due dates in seconds, f64[n]; inf where there is none."""
        return self.floats("due", math.inf)

    @cached_property
    def gpu_memory(self) -> Floats:
        """Bytes a job needs on each of its GPUs, f64[n]: as stated, else by its scaling profile, 0 where nothing says.

        By a scaling profile: with the largest sub-batch whose memory its gang has on this cluster.
        """
        return self.floats("gpu_memory", 0.0)

    @cached_property
    def restart(self) -> Floats:
        """Seconds that it costs to resume a job, f64[n]; nan where nothing says: then the policy does.

        As stated, else its checkpoint over the least storage bandwidth of the cluster, which every node group must state.
        """
        stated = self.floats("restart", math.nan)
        bandwidth = np.array([group.storage_bandwidth for group in self.cluster.nodes], dtype=np.float64)  # None: nan
        return frozen(np.where(np.isnan(stated), self.floats("checkpoint", math.nan) / bandwidth.min(), stated))

    @cached_property
    def integral(self) -> bool:
        """Are arrivals, durations, weights and due dates all integers? Results are then exact."""
        due = self.due[np.isfinite(self.due)]
        return all(bool(np.all(a == np.floor(a))) for a in (self.arrival, self.duration, self.weight, due))

    @cached_property
    def _classes(self) -> tuple[Ints, Ints, Bools]:
        # Jobs with the same gang size and the same eligible nodes are alike to every placement.
        pattern, patterns = suited_groups(self._needs, self.cluster, self.models)
        count = max(len(patterns), 1)
        key = self.gpus * count + pattern
        kinds, job_class = np.unique(key, return_inverse=True)
        suited = frozen(np.ascontiguousarray(patterns[kinds % count][:, self.cluster.node_group]))
        return frozen(job_class.reshape(-1).astype(np.int64)), frozen(kinds // count), suited

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

    @cached_property
    def too_wide(self) -> Bools:
        """Which gangs no single node that suits them could hold, bool[n]."""
        widest = (self.class_eligible * self.cluster.node_gpus).max(axis=1)
        return frozen(self.gpus > widest[self.job_class])

    @property
    def unrestricted(self) -> bool:
        """May every job use every node?"""
        return bool(self.class_eligible.all())

    def eligible(self, j: int) -> Bools:
        """Nodes whose GPU type and GPU memory suit job ``j``, bool[N]."""
        return cast("Bools", self.class_eligible[self.job_class[j]])
