"""What an online algorithm is, what it may know, and what it may say.

A policy sees only what has been revealed to it. Two ways to write one:

* `OrderedPolicy`: a queue order. ``order(jobs)`` returns keys; the engine serves the smallest first, compiled.
* any object with ``name``, ``knowledge`` and ``decide(view)``: plain Python, asked once per event time; it yields
  `Start`, `Stop` and `Wake` decisions, each applied before the next is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from optsched.errors import KnowledgeError
from optsched.instance import Instance

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Knowledge(StrEnum):
    """What a policy knows about the length of a job when it arrives."""

    CLAIRVOYANT = "clairvoyant"
    PREDICTED = "predicted"
    NON_CLAIRVOYANT = "non-clairvoyant"


@dataclass(frozen=True, slots=True)
class Start:
    """Start (or resume) job ``job`` on the GPUs that the placement chooses."""

    job: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Preempt the running job ``job``; its work so far is kept."""

    job: int


@dataclass(frozen=True, slots=True)
class Wake:
    """Ask again at ``time`` (seconds, later than now) even if nothing happens until then."""

    time: float


Decision = Start | Stop | Wake


class View(Protocol):
    """What a policy sees at one instant. Jobs are indices; times in seconds.

    ``remaining`` and ``duration`` raise `KnowledgeError` for a non-clairvoyant policy.
    """

    @property
    def now(self) -> float:
        """The present."""

    @property
    def waiting(self) -> list[int]:
        """Arrived jobs that are not running and not finished, in order of (arrival, index)."""

    @property
    def running(self) -> list[int]:
        """Running jobs in order of (arrival, index)."""

    @property
    def free_gpus(self) -> int:
        """GPUs that no job holds."""

    def fits(self, job: int) -> bool:
        """Would the placement find a place for ``job`` now?"""

    def arrival(self, job: int) -> float:
        """r_j."""

    def gpus(self, job: int) -> int:
        """g_j."""

    def weight(self, job: int) -> float:
        """w_j."""

    def due(self, job: int) -> float:
        """Due date; inf where there is none."""

    def attained(self, job: int) -> float:
        """GPU-seconds that the job has held so far."""

    def duration(self, job: int) -> float:
        """Seconds alone at full speed."""

    def remaining(self, job: int) -> float:
        """Seconds of work left."""


@runtime_checkable
class Policy(Protocol):
    """An online algorithm in plain Python: a name, what it knows, and what it decides at an event time."""

    @property
    def name(self) -> str:
        """Shown in reports."""

    @property
    def knowledge(self) -> Knowledge | str:
        """What it may ask for."""

    def decide(self, view: View) -> Iterable[Decision]:
        """Decisions at ``view.now``, after all events of that time; each is applied before the next is asked for."""


class KnownJobs:
    """The jobs' numbers as far as ``knowledge`` reveals them at arrival: arrays over all jobs.

    An order may use a job's entries only for that job: the engine serves a job after it has arrived.
    """

    def __init__(self, instance: Instance, knowledge: Knowledge | str, predicted: Floats | None = None) -> None:
        self._instance = instance
        self._knowledge = Knowledge(knowledge)
        self._predicted = predicted
        self.n = instance.n
        self.ids = instance.ids
        self.arrival, self.gpus, self.weight, self.due = (
            instance.arrival,
            instance.gpus,
            instance.weight,
            instance.due,
        )

    @property
    def duration(self) -> Floats:
        """Seconds alone at full speed, f64[n]: true for a clairvoyant policy, predicted for one with predictions."""
        if self._knowledge is Knowledge.CLAIRVOYANT:
            return self._instance.duration
        if self._knowledge is Knowledge.PREDICTED and self._predicted is not None:
            return self._predicted
        raise KnowledgeError(f"a {self._knowledge} policy asked for durations")


@dataclass(frozen=True)
class Order:
    """A queue order: smaller (level, key, index) is served first.

    ``key`` f64[n] at arrival; it grows by ``slope[j]`` per second of work that job j does (srtf: -1). A job enters at
    level 0 and drops a level each time its attained service reaches the next of ``thresholds`` (GPU-seconds).
    ``starvation`` > 0: a job that has waited ``starvation`` times as long as it ran returns to level 0.
    """

    key: Floats
    slope: Floats | None = None
    preemptive: bool = False
    skip: bool = True
    thresholds: tuple[float, ...] = ()
    starvation: float = 0.0
    round: float = 0.0
    restart: float = 0.0


class OrderedPolicy(Protocol):
    """A policy that is a queue order; the engine runs it compiled."""

    @property
    def name(self) -> str:
        """Shown in reports, with its parameters."""

    @property
    def knowledge(self) -> Knowledge:
        """What ``order`` may ask for."""

    def order(self, jobs: KnownJobs) -> Order:
        """Keys and rules for these jobs."""
