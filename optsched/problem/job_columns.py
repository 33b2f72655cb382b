"""`JobColumns`: the arrays of the jobs of an instance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
import polars as pl

from optsched.problem.arrays import Bools, Floats, Ints, frozen
from optsched.problem.cluster import Cluster
from optsched.problem.job_table import ProfileRules, suited_groups
from optsched.problem.plain_jobs import PlainJobs

FEW = 1 << 20  # values that a table has room for


class JobColumns:
    """The arrays of n jobs on a cluster of N nodes, made with the instance; none of them can be written to."""

    cluster: Cluster
    models: Sequence[ProfileRules]  # what gives jobs their speeds, by rank
    _plain: PlainJobs | None = None  # the jobs, if they are plain; else there is a table

    n: int  #: number of jobs
    arrival: Floats  #: release dates r_j in seconds, f64[n]
    gpus: Ints  #: gang sizes g_j, i64[n]
    duration: Floats  #: seconds alone at full speed, f64[n]; nan where only iterations are known
    iterations: Floats  #: iterations, f64[n]; nan where only a duration is known
    profiled: Bools  #: which jobs ask for iterations (they have no duration), bool[n]
    #: what a job asks for, f64[n]: seconds at full speed, or iterations where it runs at a profile's speed
    work: Floats
    weight: Floats  #: weights w_j, f64[n]
    due: Floats  #: due dates in seconds, f64[n]; inf where there is none
    #: Bytes a job needs on each of its GPUs, f64[n]: as stated, else by its scaling profile (with the largest sub-batch
    #: whose memory its gang has on this cluster), 0 where nothing says.
    gpu_memory: Floats
    #: Seconds that it costs to resume a job, f64[n]; nan where nothing says: then the policy does. As stated, else its
    #: checkpoint over the least storage bandwidth of the cluster, which every node group must state.
    restart: Floats
    job_class: Ints  #: class of each job, i64[n]: same gang size and same eligible nodes, so alike to every placement
    class_gpus: Ints  #: gang size of each class, i64[K]
    class_eligible: Bools  #: which nodes the jobs of a class may use, bool[K, N]
    _model_of: Ints  # the model of every job: of those that would have it the first by rank
    _arrays: dict[str, Any]  # all of these by name

    def _columns(self) -> dict[str, Any]:
        """The arrays, of the jobs, the cluster and the models. O(n + K N)."""
        return self._of_table() if self._plain is None else self._of_plain(self._plain)

    def _of_table(self) -> dict[str, Any]:
        model_of = np.full(self.table.height, -1, dtype=np.int64)
        for k, model in enumerate(self.models):
            free = model_of < 0
            if not free.any():
                break
            model_of[free & model.applies_to(self.table)] = k
        duration, iterations = self.floats("duration", math.nan), self.floats("iterations", math.nan)
        profiled = np.isnan(duration)
        work = np.where(profiled, iterations, duration) if profiled.any() else duration
        bandwidth = np.array([group.storage_bandwidth for group in self.cluster.nodes], dtype=np.float64)  # None: nan
        restart, read = self.floats("restart", math.nan), self.floats("checkpoint", math.nan) / bandwidth.min()
        gpus = self.table["gpus"].to_numpy()
        pattern, patterns = suited_groups(self._needs, self.cluster, self.models)
        count = max(len(patterns), 1)
        kinds, job_class = _distinct(gpus * count + pattern)
        return {
            "arrival": self.floats("arrival", 0.0),
            "gpus": gpus,
            "duration": duration,
            "iterations": iterations,
            "profiled": profiled,
            "work": work,
            "weight": self.floats("weight", 1.0),
            "due": self.floats("due", math.inf),
            "gpu_memory": self.floats("gpu_memory", 0.0),
            "restart": np.where(np.isnan(restart), read, restart),
            "job_class": job_class,
            "class_gpus": kinds // count,
            "_model_of": model_of,
            "class_eligible": np.ascontiguousarray(patterns[kinds % count][:, self.cluster.node_group]),
        }

    def _of_plain(self, plain: PlainJobs) -> dict[str, Any]:
        # Jobs with durations, which may use every node.
        n, numbers, kinds = plain.gpus.size, plain.numbers, _distinct(plain.gpus)
        return {
            "arrival": numbers["arrival"],
            "gpus": plain.gpus,
            "duration": numbers["duration"],
            "iterations": np.full(n, math.nan),
            "profiled": np.zeros(n, dtype=bool),
            "work": numbers["duration"],
            "weight": numbers["weight"],
            "due": plain.floats("due", math.inf),
            "gpu_memory": np.zeros(n),
            "restart": np.full(n, math.nan),
            "job_class": kinds[1],
            "class_gpus": kinds[0],
            "_model_of": np.full(n, [model.name for model in self.models].index("duration"), dtype=np.int64),
            "class_eligible": np.ones((kinds[0].size, self.cluster.node_count), dtype=bool),
        }

    @cached_property
    def table(self) -> pl.DataFrame:
        """The normal table of the jobs (`optsched.problem.job_table.normal_table`)."""
        assert self._plain is not None  # others are made with a table
        return self._plain.table()

    @cached_property
    def _needs(self) -> pl.DataFrame:
        # the table with the memory that jobs need, stated or not
        return self.table

    def _states(self, column: str) -> bool:
        """Return True if some job states a value in a column that plain jobs leave empty."""
        return self._plain is None and self.table[column].null_count() < self.n

    def floats(self, column: str, missing: float) -> Floats:
        """Return a column of numbers, f64[n].

        Parameters
        ----------
        column
            Name of the column.
        missing
            Value for jobs that state none.
        """
        if self._plain is not None:
            return self._plain.floats(column, missing)
        numbers = self._needs[column]
        if numbers.null_count() == len(numbers):
            return np.full(len(numbers), missing)
        if numbers.null_count():  # a plan of polars, however short the column, takes a tenth of a millisecond
            numbers = numbers.fill_null(missing)
        return cast("Floats", numbers.to_numpy())  # without nulls the memory of the table

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Job ids in order."""
        return tuple(self.table["id"].to_list()) if self._plain is None else self._plain.ids

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each id."""
        return {job: j for j, job in enumerate(self.ids)}

    @cached_property
    def integral(self) -> bool:
        """True if arrivals, durations, weights and due dates are integers, so that results are exact."""
        due = self.due[np.isfinite(self.due)]
        return all(bool(np.all(a == np.floor(a))) for a in (self.arrival, self.duration, self.weight, due))

    @cached_property
    def too_wide(self) -> Bools:
        """Mask of the gangs that no single suitable node can hold, bool[n]."""
        widest = (self.class_eligible * self.cluster.node_gpus).max(axis=1)
        return frozen(self.gpus > widest[self.job_class])

    @property
    def unrestricted(self) -> bool:
        """True if every job may use every node."""
        return bool(self.class_eligible.all())

    def eligible(self, j: int) -> Bools:
        """Return which nodes suit a job by GPU type and GPU memory, bool[N].

        Parameters
        ----------
        j
            Position of the job.
        """
        return cast("Bools", self.class_eligible[self.job_class[j]])


def _distinct(values: Ints) -> tuple[Ints, Ints]:
    # The distinct values >= 0 in order, and the position of every value among them; small ones are counted, not sorted.
    if int(values.max(initial=0)) >= FEW:
        distinct, position = np.unique(values, return_inverse=True)
        return distinct, position.reshape(-1).astype(np.int64)
    distinct = np.flatnonzero(np.bincount(values))
    position = np.zeros(int(distinct[-1]) + 1 if distinct.size else 0, dtype=np.int64)
    position[distinct] = np.arange(distinct.size)
    return distinct, position[values]
