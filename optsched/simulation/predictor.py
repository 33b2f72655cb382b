"""`Predictor`: an estimate of the length of a job; `JobFacts`: the facts that it may use."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol, runtime_checkable

from optsched.errors import KnowledgeError
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.speeds.duration import paces


class JobFacts:
    """Facts about all jobs at their submission, for predictors; lengths are hidden.

    Attributes are arrays over all jobs; a predictor may use the entries of jobs that have arrived.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    revealed
        Whether ``length`` is revealed, as it is to oracles.
    """

    def __init__(self, instance: Instance, *, revealed: bool = False) -> None:
        self._instance = instance
        self.n = instance.n
        self.ids, self.arrival, self.gpus = instance.ids, instance.arrival, instance.gpus
        self.walltime = instance.walltime  # limits of the users in seconds, inf where none
        table = instance.table
        self.user, self.group, self.model, self.profile = (
            tuple(table[column].to_list()) for column in ("user", "group", "model", "profile")
        )
        self.gpu_types = tuple(table["gpu_types"].to_list())
        self.profiled: tuple[bool, ...] = tuple(instance.profiled.tolist())  # counted in iterations, not in seconds
        profiles = instance.profiles
        self.stages = tuple(len(profiles[name].stages) if name in profiles else 1 for name in self.profile)
        self._length = instance.work if revealed else None

    @cached_property
    def fastest(self) -> Floats:
        """Seconds that a unit of length takes if the job runs at its best, f64[n]: alpha_min of a profile, else 1."""
        return paces(self._instance)[0]

    @property
    def length(self) -> Floats:
        """True lengths, f64[n]: iterations of jobs with a profile, else seconds; `KnowledgeError` unless revealed."""
        if self._length is None:
            raise KnowledgeError("a predictor that is no oracle asked for the true lengths")
        return self._length


@runtime_checkable
class Predictor(Protocol):
    """An estimator of the length of a job at its arrival: iterations of a job with a profile, else seconds alone.

    A predictor with ``oracle = True`` receives the true lengths, so that it can be perfect, or wrong by a controlled
    amount. A predictor with ``learns = False`` gives the same value for a job whenever it is asked, whatever has
    completed.
    """

    @property
    def name(self) -> str:
        """Name in reports, with the parameters of the predictor."""

    def begin(self, jobs: JobFacts) -> None:
        """Forget everything and prepare for a new run.

        Parameters
        ----------
        jobs
            Facts about the jobs that will arrive.
        """

    def predict(self, job: int, now: float) -> float:
        """Return the predicted length, > 0, of a job that arrives now; the engine asks once a job.

        Parameters
        ----------
        job
            Index of the job.
        now
            Time of the arrival, in seconds since the first arrival.
        """

    def observe(self, job: int, now: float, length: float) -> None:
        """Learn the length of a job that completes now.

        Parameters
        ----------
        job
            Index of the job.
        now
            Time of the completion, in seconds since the first arrival.
        length
            True length of the job.
        """
