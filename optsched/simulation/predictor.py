"""`Predictor`: an estimate of how long a job will run; `JobFacts`: what it may look at."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol, runtime_checkable

from optsched.errors import KnowledgeError
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.speeds.duration import paces


class JobFacts:
    """What is known of the jobs at their submission, for predictors: never how long they run.

    Arrays over all jobs; a predictor may use the entries of jobs that have arrived. ``length`` is revealed to oracles.
    """

    def __init__(self, instance: Instance, *, revealed: bool = False) -> None:
        self._instance = instance
        self.n = instance.n
        self.ids, self.arrival, self.gpus = instance.ids, instance.arrival, instance.gpus
        table = instance.table
        self.user, self.group, self.model, self.profile = (
            tuple(table[column].to_list()) for column in ("user", "group", "model", "profile")
        )
        self.gpu_types = tuple(table["gpu_types"].to_list())
        self.profiled: tuple[bool, ...] = tuple(instance.profiled.tolist())  # counted in iterations, not in seconds
        known = instance.profiles
        self.stages = tuple(len(known[name].stages) if name in known else 1 for name in self.profile)
        self._length = instance.work if revealed else None

    @cached_property
    def fastest(self) -> Floats:
        """Seconds that a unit of length takes where the job runs best, f64[n]: alpha_min of a profile, else 1."""
        return paces(self._instance)[0]

    @property
    def length(self) -> Floats:
        """True lengths, f64[n]: iterations of jobs with a profile, else seconds; `KnowledgeError` unless revealed."""
        if self._length is None:
            raise KnowledgeError("a predictor that is no oracle asked for the true lengths")
        return self._length


@runtime_checkable
class Predictor(Protocol):
    """Says how long a job will run, at its arrival: iterations of a job with a profile, else seconds alone.

    A predictor with ``oracle = True`` is given the true lengths (to be perfect, or wrong by a controlled amount). One with
    ``learns = False`` says the same of a job whenever it is asked, whatever has completed.
    """

    @property
    def name(self) -> str:
        """Shown in reports, with its parameters."""

    def begin(self, jobs: JobFacts) -> None:
        """Forget everything; these jobs will come."""

    def predict(self, job: int, now: float) -> float:
        """A length > 0; asked once, when the job arrives at ``now``."""

    def observe(self, job: int, now: float, length: float) -> None:
        """The job completed at ``now``; this was its length."""
