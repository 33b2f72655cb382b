"""`JobSpeeds`: how fast the jobs of an instance run that have their speed from one model.

They are the readable formulas, and the data that compiled code has of them. A unit of work is a second at full speed, or an
iteration. All speeds are those of a job alone on its GPUs: other jobs on them, or on its network interfaces, slow it down
further.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Bools, Floats, Ints, frozen
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.interference import Interference
from optsched.problem.job_columns import JobColumns
from optsched.problem.job_table import LONGEST, SHORTEST
from optsched.problem.profile import Profile

Nodes = tuple[int, ...]  # of the GPUs of a gang, one by one


@dataclass(frozen=True, slots=True)
class SubBatch:
    """``size`` m samples at a time, in ``steps`` s sub-steps, with ``memory`` bytes on each GPU."""

    size: int
    steps: int
    memory: float


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


class ModelledJobs(JobColumns):
    """The part of an instance that its models of speeds may read."""

    contention: Contention | None
    interference: Interference | None
    profiles: dict[str, Profile]  # stage profiles by name
    tasks: dict[str, IterationTasks]  # tasks of an iteration by the name of the profile

    def jobs_at(self, model: str) -> Ints:
        """Return the jobs that have their speed from a model, ascending i64[k].

        Parameters
        ----------
        model
            Name of the model: ``"duration"``, ``"profiles"``, ...
        """
        names = [each.name for each in self.models]
        return np.flatnonzero(self._model_of == names.index(model)) if model in names else np.zeros(0, dtype=np.int64)

    @cached_property
    def at_task_level(self) -> bool:
        """True if all jobs have tasks and are simulated task by task; next to other jobs they are whole jobs."""
        return bool(self.tasks) and self.jobs_at("tasks").size == self.n

    def _of_tasks(self, field: str) -> Floats:
        values = {name: getattr(each, field) or 0.0 for name, each in self.tasks.items()}
        return frozen(np.array([values[name] for name in self.table["profile"].to_list()], dtype=np.float64))

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


class JobSpeeds:
    """Speeds of some jobs of an instance; the methods here are those of jobs that run at rate 1 everywhere.

    ``jobs`` i64[k] are their positions, and ``given`` is the value that the instance has of their model.
    ``sees_types``, ``sees_nodes``: their speed depends on GPU types, on nodes. ``is_ordered``: it matters which
    GPU holds which replica. ``communicates``: gangs on several nodes contend for the network (`compute_time`).
    ``elastic``: they run on any number of GPUs.
    """

    sees_types = sees_nodes = is_ordered = communicates = elastic = False

    def __init__(self, instance: ModelledJobs, jobs: Ints, given: Any) -> None:
        self.instance, self.jobs, self.given = instance, jobs, given

    @cached_property
    def names(self) -> list[str]:
        """Profile of each of `jobs`."""
        found: list[str] = self.instance.table["profile"].gather(self.jobs).to_list()
        return found

    # --- to be read --------------------------------------------------------------------------------------------------

    def paces(self) -> tuple[Floats, Floats]:
        """Return the fewest and the most seconds that a unit of work can take on this cluster, f64[k] each.

        Raises
        ------
        InputError
            If data that the jobs need are missing, or the jobs are out of the range of durations.
        """
        return np.ones(self.jobs.size), np.ones(self.jobs.size)

    def solo(self) -> tuple[Floats, Bools]:
        """Return the seconds of the jobs alone on their best placement, f64[k], and which are exact, bool[k].

        Where they are not exact, perhaps no placement is as fast.
        """
        return self.instance.work[self.jobs] * self.paces()[0], np.ones(self.jobs.size, dtype=np.bool_)

    def pace(self, job: int, nodes: Nodes) -> float:
        """Return the seconds that a unit of work takes a job on given nodes.

        Parameters
        ----------
        job
            Position of the job.
        nodes
            Node of every GPU of its gang.
        """
        return 1.0

    def paces_on(self, jobs: Ints, nodes: Callable[[int], Nodes]) -> Floats:
        """Return the `pace` of many jobs on given nodes, f64[S]; nan for nodes that are no placement.

        Parameters
        ----------
        jobs
            Positions of the jobs, i64[S].
        nodes
            Function of s that returns the nodes of ``jobs[s]``.
        """
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
        """Return a key that jobs share if they are equally fast on the same nodes.

        Parameters
        ----------
        job
            Position of the job.
        """
        return job

    def rates_by_type(self, may: Floats) -> tuple[Floats, Floats]:
        """Return the units of work a second on GPUs of one type, together and spread, f64[k, T] each.

        Parameters
        ----------
        may
            1 where a job may run on GPUs of a type, else 0, f64[k, T].
        """
        return may, may

    def compute_time(self, job: int, nodes: Nodes, steps: int) -> float:
        """Return the seconds of a unit of work with infinitely fast network interfaces; infinite if it never contends.

        Parameters
        ----------
        job
            Position of the job.
        nodes
            Node of every GPU of its gang.
        steps
            Sub-steps of gradient accumulation.
        """
        return np.inf

    def sub_batches(self, job: int) -> tuple[SubBatch, ...]:
        """Return the ways to split the batch of a job, the largest sub-batch that some GPU holds first.

        Parameters
        ----------
        job
            Position of the job.

        Returns
        -------
        tuple[SubBatch, ...]
            An empty tuple if the ways are unknown.
        """
        return ()

    def split_seconds(self, job: int, option: SubBatch, spans: bool) -> float:
        """Return the seconds of an iteration with a sub-batch, by formula.

        Parameters
        ----------
        job
            Position of the job.
        option
            One of its `sub_batches`.
        spans
            True if the gang is on several nodes.
        """
        return 1.0

    def goodput(self, job: int) -> Any:
        """Return the speed of an elastic job by the number of GPUs: an `optsched.speeds.job_goodput.JobGoodput`.

        Parameters
        ----------
        job
            Position of the job.

        Returns
        -------
        Any
            None for a job that is not elastic.
        """
        return None

    def in_range(self, fastest: Floats, slowest: Floats) -> tuple[Floats, Floats]:
        """Return the same paces if the jobs take no less and no more time than a job with a duration may.

        Parameters
        ----------
        fastest
            Fewest seconds a unit of work, f64[k].
        slowest
            Most seconds a unit of work, f64[k].

        Raises
        ------
        InputError
            If a job is out of that range.
        """
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
        """Return the formula as data of compiled code; no entry: 1 second a unit everywhere."""
        return ()

    def compiled_compute_time(self, job: int) -> Sequence[float]:
        """Return the `compute_time` of each sub-batch of a job (one entry if none is known).

        Parameters
        ----------
        job
            Position of the job.

        Returns
        -------
        Sequence[float]
            nan: the stages decide it; infinite: the job never contends.
        """
        return [np.inf]
