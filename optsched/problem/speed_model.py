"""`SpeedModel`: everything that an instance knows of one way in which jobs get their speed.

A model is one file of `optsched.speeds.kinds` that registers itself here. Its object in an instance holds the values that it
is given (profiles by name, for example), checks them together with the jobs, and reads and writes them. The speeds of the
jobs that run by it are `optsched.problem.job_speeds.JobSpeeds`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
import polars as pl
from pydantic import BaseModel

from optsched.errors import RowProblem, check_legal
from optsched.problem.arrays import Bools, Ints
from optsched.problem.cluster import Cluster
from optsched.problem.job_speeds import JobSpeeds, ModelledJobs
from optsched.registry import Registry

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
