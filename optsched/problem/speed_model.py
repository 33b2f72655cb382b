"""`SpeedModel`: all that an instance knows of one way in which jobs get their speed.

A model is one file of `optsched.speeds.kinds` that registers itself here. Its object in an instance holds what is given of
it (profiles by name, say), checks it beside the jobs, and reads and writes it. `JobSpeeds` are the speeds of the jobs of
one instance that run by it: the readable formulas, and what compiled code is given of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
import polars as pl
from pydantic import BaseModel

from optsched.errors import RowProblem, check_legal
from optsched.problem.arrays import Bools, Ints
from optsched.problem.cluster import Cluster
from optsched.registry import Registry

if TYPE_CHECKING:
    from optsched.problem.instance import Instance
    from optsched.problem.job_speeds import JobSpeeds

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
        """The profiles whose speed it gives."""
        return ()

    def applies_to(self, table: pl.DataFrame) -> Bools:
        """Which jobs of a legal table run by it, if no model of lower rank has them, bool[n]."""
        if not self.names:
            return np.zeros(table.height, dtype=bool)
        return (table["duration"].is_null() & table["profile"].is_in(list(self.names)).fill_null(False)).to_numpy()

    def speeds(self, instance: Instance, jobs: Ints) -> JobSpeeds:
        """The speeds of ``jobs`` i64[k], those of the instance that run by it."""
        return self.formulas(instance, jobs, self.given)

    # --- beside jobs -------------------------------------------------------------------------------------------------

    def problems(self, table: pl.DataFrame, cluster: Cluster) -> list[RowProblem]:
        """What is invalid of its jobs beyond what holds for all jobs."""
        return []

    def gang(self, name: str) -> int | None:
        """The gang that a profile needs; None: any."""
        return None

    def memory(self, table: pl.DataFrame, cluster: Cluster) -> pl.Series | None:
        """``gpu_memory`` of every job of a legal table, where the model knows more of it than the table says; else None."""
        return None

    def runs_on(self, name: str, gpu: str, gang: int) -> bool:
        """Does a gang of that profile run on GPUs of that type, on one node and over several?"""
        return True

    def used_by(self, names: Collection[str]) -> Self:
        """What it gives to profiles of these names, where the rest is not worth keeping."""
        return self

    def check(self, instance: Instance) -> None:
        """`InputError` where its jobs need something of the instance that is not there."""

    # --- files -------------------------------------------------------------------------------------------------------

    def to_json(self) -> Any:
        """Its part of an instance file; empty where nothing is given."""
        return None

    @classmethod
    def from_json(cls, document: Any, made: Made) -> Any:
        """What to give to `Instance`, from what pydantic read."""
        return None

    def digest(self, instance: Instance, names: Sequence[str]) -> list[Any]:
        """What decides the speeds of the jobs with these profiles: documents, each written behind the others."""
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
        """The value that a part of a file describes."""
        return cls.value(**{key: value for key, value in document.items() if value is not None})

    def to_json(self) -> dict[str, Any]:
        return {name: value.to_json() for name, value in self.given.items()}

    @classmethod
    def from_json(cls, document: Mapping[str, BaseModel], made: Made) -> dict[str, V]:
        return {name: made(cls.make, each.model_dump(), f"{cls.name}.{name}") for name, each in document.items()}

    def digest(self, instance: Instance, names: Sequence[str]) -> list[Any]:
        return [[[name, self.given[name].to_json()] for name in names]]
