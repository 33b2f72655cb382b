"""What a policy says where jobs share GPUs: who is asked about first, and on which GPUs, beside whom, with which sub-batch.

Jobs run without preemption on gangs of whole shares: at most two jobs are on a GPU (`optsched.problem.interference`).
At every arrival and completion the waiting jobs are asked about in the order of their keys; what one takes, later ones
find taken. The choice itself is a compiled rule (`optsched.simulation.sharing_rule`), or ``choose(view, job)`` in plain
Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from optsched.errors import KnowledgeError
from optsched.problem.instance import Instance
from optsched.simulation.policy import Knowledge

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Share:
    """Start a job on these GPUs, (node, index) each, g_j in all and different; ``option``: which of its sub-batches."""

    gpus: Sequence[tuple[int, int]]
    option: int = 0


@dataclass(frozen=True)
class SharingOrder:
    """The rules of one run.

    ``key`` f64[n]: waiting jobs are asked about smallest first, ties by position. ``strict``: the first one that has to
    wait blocks the others. ``interval`` > 0: decisions only at multiples of that many seconds after the first arrival.
    ``rule``: a compiled choice with its ``numbers``; None: the policy's ``choose`` decides.
    """

    key: Floats
    rule: Any = None
    numbers: tuple[float, ...] = ()
    strict: bool = False
    interval: float = 0.0


class SharingJobs:
    """What is known of the jobs at their arrival: arrays over all jobs; times in seconds since the first arrival."""

    def __init__(self, instance: Instance, knowledge: Knowledge | str, alone: Floats) -> None:
        self._knowledge, self._alone = Knowledge(knowledge), alone
        self.n, self.ids = instance.n, instance.ids
        self.arrival, self.gpus, self.weight = instance.arrival, instance.gpus, instance.weight

    @property
    def alone(self) -> Floats:
        """e_j: seconds alone on its gang, f64[n]; `KnowledgeError` for a policy that is not clairvoyant."""
        if self._knowledge is Knowledge.CLAIRVOYANT:
            return self._alone
        raise KnowledgeError(f"a {self._knowledge} policy asked how long jobs take alone")


class SharingView(Protocol):
    """What ``choose`` sees. Jobs are positions, GPUs (node, index); seconds and bytes."""

    @property
    def now(self) -> float:
        """The present, in seconds since the first arrival (`Instance.epoch`), as all times here are."""

    @property
    def epoch(self) -> float:
        """What the log's clock says at time 0: ``now + epoch`` is a time that people know."""

    @property
    def waiting(self) -> tuple[int, ...]:
        """Jobs that wait, in the order in which they are asked about."""

    @property
    def running(self) -> tuple[int, ...]:
        """Jobs that run."""

    def residents(self, gpu: tuple[int, int]) -> tuple[int, ...]:
        """Jobs on a GPU: none, one or two."""

    def held(self, job: int) -> tuple[tuple[int, int], ...]:
        """GPUs of a running job."""

    def free(self, job: int) -> list[tuple[int, int]]:
        """Idle GPUs that ``job`` may use, where its first sub-batch fits."""

    def open(self, job: int, option: int = 0) -> list[tuple[int, int]]:
        """GPUs with one job, which ``job`` may share, where that sub-batch fits beside it."""

    def options(self, job: int) -> int:
        """How many sub-batches it may choose from; the first is the largest."""

    def alone(self, job: int, option: int = 0) -> float:
        """Seconds alone with that sub-batch; of a running job, those that are left. Clairvoyant policies only."""

    def slowdown(self, job: int, other: int) -> float:
        """xi of ``job`` beside ``other``; inf: they never share."""


class SharingPolicy(Protocol):
    """An online algorithm for jobs that share GPUs. It names its GPUs itself: no placement is asked.

    It may have ``choose(view: SharingView, job: int) -> Share | None``, asked where its order gives no rule.
    """

    @property
    def name(self) -> str:
        """Shown in reports."""

    @property
    def knowledge(self) -> Knowledge | str:
        """What ``sharing`` may ask for."""

    def sharing(self, jobs: SharingJobs) -> SharingOrder:
        """Order and rule for these jobs."""


class Choosing(SharingPolicy, Protocol):
    """A `SharingPolicy` that chooses in plain Python."""

    def choose(self, view: SharingView, job: int) -> Share | None:
        """Where ``job`` starts now; None: it waits."""
