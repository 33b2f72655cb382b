"""Jobs at the speeds of a throughput table: iterations/s by job type, GPU type and gang size, together and spread."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self

from pydantic import Field

from optsched.problem.documents import MAX_INTEGER, Document, Number
from optsched.problem.job_speeds import ModelledJobs
from optsched.problem.speed_model import SPEED_MODELS, Made, SpeedModel
from optsched.problem.throughputs import Throughputs
from optsched.speeds.type_speeds import RatesByType


class ThroughputDocument(Document):
    """Iterations/s of a whole gang on GPUs of one type; 0: it does not fit there."""

    gpu: str = Field(min_length=1, description="GPU type")
    gpus: int = Field(ge=1, le=MAX_INTEGER, description="gang size")
    together: Number = Field(ge=0, description="all GPUs on one node")
    spread: Number | None = Field(None, ge=0, description="over several nodes; absent: as together")
    measured: bool = Field(True, description="false: scaled from other measurements")


class TableSpeeds(RatesByType):
    """Speeds by the rates of the table."""

    given: Throughputs

    def rates(self, profile: str, gang: int, gpu: str) -> tuple[float, float]:
        """Return the iterations/s of a gang on GPUs of one type, on one node and over several; 0: it does not run.

        Parameters
        ----------
        profile
            Name of the profile.
        gang
            GPUs of the gang.
        gpu
            GPU type.
        """
        row = self.given.get(profile, gpu, gang)
        return (0.0, 0.0) if row is None else (row.together, row.over_nodes)


@SPEED_MODELS.register("throughputs")
class ThroughputTable(SpeedModel):
    """One table, of which an instance keeps the job types that it uses; a job may not use GPU types with rate zero."""

    formulas = TableSpeeds
    name, noun, rank = "throughputs", "a job type of the throughput table", 1
    document = dict[str, list[ThroughputDocument]]
    description = "speeds by job type and GPU type"
    limits_types = closed = True
    given: Throughputs | None

    @property
    def names(self) -> Collection[str]:
        return () if self.given is None else self.given.job_types

    def runs_on(self, name: str, gpu: str, gang: int) -> bool:
        """Return True if a gang runs on GPUs of a type.

        Parameters
        ----------
        name
            Name of the profile.
        gpu
            GPU type.
        gang
            GPUs of the gang.
        """
        row = None if self.given is None else self.given.get(name, gpu, gang)
        return row is not None and row.together > 0 and (row.spread is None or row.spread > 0)

    def used_by(self, names: Collection[str]) -> Self:
        """Return the model without the data that an instance does not use.

        Parameters
        ----------
        names
            Profiles that jobs name.
        """
        return self if self.given is None else type(self)(self.given.restricted(names))

    def to_json(self) -> dict[str, Any]:
        return {} if self.given is None else self.given.to_json()

    @classmethod
    def from_json(cls, document: Mapping[str, Sequence[ThroughputDocument]], made: Made) -> Throughputs | None:
        """Return the table that a part of an instance file describes.

        Parameters
        ----------
        document
            Part of the file.
        made
            Function that calls a constructor and adds the file to its errors.
        """
        rates = {key: [row.model_dump() for row in rows] for key, rows in document.items()}
        return made(Throughputs.from_json, rates, cls.name) if rates else None

    def digest(self, instance: ModelledJobs, names: Sequence[str]) -> list[Any]:
        """Return the documents that decide the speeds of jobs, for the digest of the instance.

        Parameters
        ----------
        instance
            Jobs and a cluster.
        names
            Profiles that jobs name.
        """
        return [] if self.given is None else [self.given.numbers]
