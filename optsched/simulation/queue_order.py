"""`Order`: a queue order as arrays of keys; `KnownJobs`: the facts about jobs from which a policy computes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optsched.errors import KnowledgeError
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.simulation.knowledge import Knowledge
from optsched.speeds.duration import paces


@dataclass(frozen=True)
class Order:
    """A queue order: smaller (level, key, index) is served first.

    ``key`` f64[n] at arrival; it grows by ``slope[j]`` per second of work that job j does (srtf: -1). A job enters at
    level 0 and drops a level each time its attained service reaches the next of ``thresholds`` (GPU-seconds).
    ``starvation`` > 0: a job that has waited ``starvation`` times as long as it ran returns to level 0.
    ``restart``: seconds of overhead whenever a job resumes; with ``first`` also when it starts. ``by_time``: service is the
    time for which a job held its gang, whatever its size, and thresholds are seconds. ``requeue``: a job that changes its
    level goes behind the jobs that are there (its key becomes the time, with ``round`` that of the end of the round); only
    where the key is a time and has no slope.

    ``rule``: a compiled choice (`optsched.simulation.ordered.sharing_rule`), with its ``numbers``, of a policy that uses
    sharing: everybody who waits is asked about in order, where and beside whom he starts; without ``skip`` the first who has
    to wait blocks the others. Of the rest ``key`` and ``round`` count.
    """

    key: Floats
    slope: Floats | None = None
    preemptive: bool = False
    skip: bool = True
    thresholds: tuple[float, ...] = ()
    starvation: float = 0.0
    round: float = 0.0
    restart: float = 0.0
    first: bool = False
    by_time: bool = False
    requeue: bool = False
    rule: Any = None
    numbers: tuple[float, ...] = ()


class KnownJobs:
    """What is revealed of jobs to a queue order, or to decisions in compiled form: arrays over all jobs.

    As far as ``knowledge`` reveals it at arrival; times are seconds since the first arrival. An order may use a job's
    entries only for that job: the engine serves a job after it has arrived.
    """

    def __init__(self, instance: Instance, knowledge: Knowledge | str, seconds: Floats | None = None) -> None:
        self._knowledge, self._instance = Knowledge(knowledge), instance
        self._predicted: Floats | None = None
        self._seconds = instance.duration if seconds is None else seconds
        self.n = instance.n
        self.arrival, self.gpus = instance.arrival, instance.gpus
        self.weight, self.due = instance.weight, instance.due

    @property
    def duration(self) -> Floats:
        """Seconds alone at full speed, f64[n], e_j; `KnowledgeError` for a policy that is not clairvoyant."""
        if self._knowledge is Knowledge.CLAIRVOYANT:
            return self._seconds
        raise KnowledgeError(f"a {self._knowledge} policy asked for durations")

    @property
    def predicted(self) -> Floats:
        """What a predictor that does not learn says of every job, f64[n]; `KnowledgeError` where there is none."""
        if self._predicted is None:
            raise KnowledgeError("a policy without such a predictor asked for predictions")
        return self._predicted

    @predicted.setter
    def predicted(self, predicted: Floats | None) -> None:
        self._predicted = predicted

    @property
    def ids(self) -> tuple[str, ...]:
        """Names of the jobs."""
        return self._instance.ids

    @property
    def cluster_gpus(self) -> int:
        """G."""
        return self._instance.cluster.gpus

    @property
    def kind(self) -> Ints:
        """Jobs of one kind (gang size, eligible nodes) fit or do not fit together, i64[n]."""
        return self._instance.job_class

    @property
    def pace_range(self) -> tuple[Floats, Floats]:
        """Least and greatest seconds that a unit of work can take on this cluster, f64[n] each."""
        return paces(self._instance)
