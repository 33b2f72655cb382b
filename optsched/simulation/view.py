"""The view that the engine hands to a policy in plain Python; it enforces what the policy may know."""

from __future__ import annotations

import numpy as np

from optsched.errors import KnowledgeError
from optsched.instance import Instance
from optsched.policy import Knowledge
from optsched.simulation.ordered import place_job
from optsched.simulation.placing import Placement
from optsched.simulation.state import FREE, FUTURE, NOW, RUNNING, WAITING, State


class EngineView:
    """See `optsched.policy.View`. Always current: it looks at the engine's state, also between two decisions."""

    def __init__(self, state: State, placement: Placement, instance: Instance, knowledge: Knowledge) -> None:
        self._state = state
        self._placement = placement
        self._instance = instance
        self._knowledge = knowledge

    @property
    def now(self) -> float:
        """The present."""
        return float(self._state.clock[NOW])

    def _with_status(self, status: int) -> list[int]:
        jobs = np.flatnonzero(self._state.status == status)
        return [int(j) for j in jobs[np.argsort(self._state.arrival[jobs], kind="stable")]]

    @property
    def waiting(self) -> list[int]:
        """Arrived jobs that are not running and not finished, in order of (arrival, index)."""
        return self._with_status(WAITING)

    @property
    def running(self) -> list[int]:
        """Running jobs in order of (arrival, index)."""
        return self._with_status(RUNNING)

    @property
    def free_gpus(self) -> int:
        """GPUs that no job holds."""
        return int(self._state.tally[FREE])

    def fits(self, job: int) -> bool:
        """Would the placement find a place for ``job`` now?"""
        s = self._state
        self._arrived(job)
        if s.gpus[job] > s.tally[FREE]:
            return False
        random = s.random.copy()  # a question must not change what a random placement does next
        entries = place_job(self._placement.place, s, job, s.free)
        s.random[:] = random
        return int(entries) > 0

    def arrival(self, job: int) -> float:
        """r_j."""
        return float(self._state.arrival[self._arrived(job)])

    def gpus(self, job: int) -> int:
        """g_j."""
        return int(self._state.gpus[self._arrived(job)])

    def weight(self, job: int) -> float:
        """w_j."""
        return float(self._instance.weight[self._arrived(job)])

    def due(self, job: int) -> float:
        """Due date; inf where there is none."""
        return float(self._instance.due[self._arrived(job)])

    def attained(self, job: int) -> float:
        """GPU-seconds that the job has held so far."""
        s = self._state
        held = float(s.attained[self._arrived(job)])
        return held + float(s.gpus[job] * (self.now - s.mark[job])) if s.status[job] == RUNNING else held

    def duration(self, job: int) -> float:
        """Seconds alone at full speed; `KnowledgeError` for a non-clairvoyant policy."""
        self._reveals("duration")
        return float(self._instance.duration[self._arrived(job)])

    def remaining(self, job: int) -> float:
        """Seconds of work left; `KnowledgeError` for a non-clairvoyant policy."""
        self._reveals("remaining work")
        s = self._state
        left = float(s.remaining[self._arrived(job)])
        return left - max(0.0, self.now - float(s.paid[job])) if s.status[job] == RUNNING else left

    def _reveals(self, what: str) -> None:
        if self._knowledge is not Knowledge.CLAIRVOYANT:
            raise KnowledgeError(f"a {self._knowledge} policy asked for the {what} of a job")

    def _arrived(self, job: int) -> int:
        if not 0 <= job < self._instance.n or self._state.status[job] == FUTURE:
            raise KnowledgeError(f"there is no job {job} at {self.now:g} s: not arrived yet, or never")
        return job
