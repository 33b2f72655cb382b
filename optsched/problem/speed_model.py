"""`SpeedModel`: all that an instance knows of one way in which jobs get their speed; `JobSpeeds`: how fast its jobs are.

A model is one file of `optsched.speeds.kinds` that registers itself here. Its object in an instance holds what is given of
it (profiles by name, say), checks it beside the jobs, and reads and writes it. `JobSpeeds` are the speeds of the jobs of
one instance that run by it: the readable formulas, and what compiled code is given of them. A unit of work is a second at
full speed, or an iteration; all of it is of a job alone on its GPUs: what others on them, or on its network interfaces, cost
it comes on top.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
import polars as pl
from pydantic import BaseModel

from optsched.errors import InputError, RowProblem, check_legal
from optsched.problem.arrays import Bools, Floats, Ints, frozen
from optsched.problem.cluster import Cluster
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.interference import Interference
from optsched.problem.job_columns import JobColumns
from optsched.problem.job_table import LONGEST, SHORTEST
from optsched.problem.profile import Profile
from optsched.registry import Registry

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
        """Return the speed of an elastic job by the number of GPUs: an `optsched.speeds.goodput_rates.JobGoodput`.

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


# --- what an instance is given -----------------------------------------------------------------------------------------

T = TypeVar("T")
LAST = 100  # rank of models that came later


class Made(Protocol):
    """Makes a part of a document into what it describes; an `InputError` then names the file, and ``field``."""

    def __call__(self, make: Callable[[Any], T], document: Any, field: str) -> T: ...


class SpeedModel:
    """One way in which jobs get their speed, as an instance is given it. Its name is that under which it is registered.

    ``name``: the argument of `Instance` and the part of an instance file that hold what is ``given``. ``formulas``: the
    class of its `speeds`. ``noun``: what one of its profiles is. ``rank``: its place in digests and files, which must not
    change: later models follow by name. ``document``: the type of its part of a file, for pydantic, with a ``description``;
    None: files do not mention it. ``limits_types``: it says of GPU types that they are not for a job (`runs_on`).
    ``closed``: where it is given, a name that no model knows is a typing error.

    Raises `InputError` when what is given is invalid.
    """

    name: ClassVar[str]
    formulas: ClassVar[type[JobSpeeds]]
    noun: ClassVar[str] = ""
    rank: ClassVar[int] = LAST
    document: ClassVar[Any] = None
    description: ClassVar[str] = ""
    limits_types: ClassVar[bool] = False
    closed: ClassVar[bool] = False

    def __init__(self, given: Any) -> None:
        self.given = given

    @property
    def names(self) -> Collection[str]:
        """Profiles whose speed the model gives."""
        return ()

    def applies_to(self, table: pl.DataFrame) -> Bools:
        """Return which jobs have their speed from the model unless one of lower rank has them, bool[n].

        Parameters
        ----------
        table
            Normal, valid table of jobs.
        """
        if not self.names:
            return np.zeros(table.height, dtype=bool)
        return (table["duration"].is_null() & table["profile"].is_in(list(self.names)).fill_null(False)).to_numpy()

    def speeds(self, instance: ModelledJobs, jobs: Ints) -> JobSpeeds:
        """Return the speeds of the jobs that run by the model.

        Parameters
        ----------
        instance
            Instance of the jobs.
        jobs
            Positions of the jobs, i64[k].
        """
        return self.formulas(instance, jobs, self.given)

    # --- beside jobs -------------------------------------------------------------------------------------------------

    def problems(self, table: pl.DataFrame, cluster: Cluster) -> list[RowProblem]:
        """Return the invalid values of its jobs that the rules for all jobs do not find.

        Parameters
        ----------
        table
            Normal table of jobs.
        cluster
            Cluster of the instance.
        """
        return []

    def gang(self, name: str) -> int | None:
        """Return the gang size that a profile needs, or None for any.

        Parameters
        ----------
        name
            Name of the profile.
        """
        return None

    def memory(self, table: pl.DataFrame, cluster: Cluster) -> pl.Series | None:
        """Return ``gpu_memory`` of every job, or None if the model knows no more than the table.

        Parameters
        ----------
        table
            Normal, valid table of jobs.
        cluster
            Cluster of the instance.
        """
        return None

    def runs_on(self, name: str, gpu: str, gang: int) -> bool:
        """Return True if a gang runs on GPUs of a type, wherever they are.

        Parameters
        ----------
        name
            Name of its profile.
        gpu
            GPU type.
        gang
            Gang size.
        """
        return True

    def used_by(self, names: Collection[str]) -> Self:
        """Return the model without the data that an instance does not use.

        Parameters
        ----------
        names
            Profiles that the jobs of the instance name.
        """
        return self

    def check(self, instance: ModelledJobs) -> None:
        """Check that the instance has all that its jobs need.

        Parameters
        ----------
        instance
            Instance of the jobs.

        Raises
        ------
        InputError
            If data are missing.
        """

    # --- files -------------------------------------------------------------------------------------------------------

    def to_json(self) -> Any:
        """Return its part of an instance file; empty if nothing is given."""
        return None

    @classmethod
    def from_json(cls, document: Any, made: Made) -> Any:
        """Return the argument of `Instance` that a part of an instance file describes.

        Parameters
        ----------
        document
            Part of the file, as pydantic read it.
        made
            Function that makes a value and names the field in errors.
        """
        return None

    def digest(self, instance: ModelledJobs, names: Sequence[str]) -> list[Any]:
        """Return the documents that decide the speeds of jobs, for the digest of the instance.

        Parameters
        ----------
        instance
            Instance of the jobs.
        names
            Profiles that the jobs name.
        """
        return []


SPEED_MODELS: Registry[type[SpeedModel]] = Registry("speed model", "optsched.speeds.kinds")


def speed_models() -> list[type[SpeedModel]]:
    """All of them by rank, then by name."""
    return sorted((model for _, model in SPEED_MODELS.items()), key=lambda model: (model.rank, model.name))


class Written(Protocol):
    """A part of a file under a name of its own."""

    def to_json(self) -> dict[str, Any]: ...


V = TypeVar("V", bound=Written)


class NamedModel(SpeedModel, Generic[V]):
    """A model that is given as a mapping from the names of profiles to values that say what an iteration takes.

    ``value``: their type, `make` makes one from its part of a file, whose model is ``entry``.
    """

    given: dict[str, V]
    value: ClassVar[type]
    entry: ClassVar[type[BaseModel]]

    def __init_subclass__(cls) -> None:
        if "entry" in cls.__dict__:
            cls.document = dict[str, cls.entry]  # type: ignore[name-defined]

    def __init__(self, given: Mapping[str, V] | None) -> None:
        super().__init__(dict(given or {}))
        for name, value in self.given.items():
            legal = f"{self.value.__module__}.{self.value.__name__}(...)"
            check_legal(isinstance(value, self.value), f"{self.name}.{name}", value, legal)

    @property
    def names(self) -> Collection[str]:
        return list(self.given)

    @classmethod
    def make(cls, document: dict[str, Any]) -> Any:
        """Return the value that a part of a file describes.

        Parameters
        ----------
        document
            Part of the file; absent fields are None.
        """
        return cls.value(**{key: value for key, value in document.items() if value is not None})

    def to_json(self) -> dict[str, Any]:
        return {name: value.to_json() for name, value in self.given.items()}

    @classmethod
    def from_json(cls, document: Mapping[str, BaseModel], made: Made) -> dict[str, V]:
        """Return the values by name that a part of an instance file describes.

        Parameters
        ----------
        document
            Part of the file by name, as pydantic read it.
        made
            Function that makes a value and names the field in errors.
        """
        return {name: made(cls.make, each.model_dump(), f"{cls.name}.{name}") for name, each in document.items()}

    def digest(self, instance: ModelledJobs, names: Sequence[str]) -> list[Any]:
        """Return the documents of the profiles that jobs name, for the digest of the instance.

        Parameters
        ----------
        instance
            Instance of the jobs.
        names
            Profiles that the jobs name.
        """
        return [[[name, self.given[name].to_json()] for name in names]]
