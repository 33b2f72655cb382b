"""`SlotQueues`: a queue of jobs on every GPU, for policies that bind each job to its GPUs when it arrives."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import numpy as np

from optsched.problem.cluster import Places
from optsched.simulation.policy import View

Slot = tuple[int, int]  # (node, one of its GPUs); the engine chooses the real GPU


def places_of(view: View, job: int, slots: Iterable[Slot]) -> list[list[Slot]]:
    """Return sets of GPUs that are large enough for a gang: those of one node; else those of one type; else all.

    Parameters
    ----------
    view
        State of the run.
    job
        Number of the job.
    slots
        GPUs to choose from.
    """
    suits, gang, kind = view.eligible(job), view.gpus(job), view.speeds.node_type
    legal = [slot for slot in slots if suits[slot[0]]]
    keys: tuple[Callable[[Slot], int], ...] = (lambda s: s[0], lambda s: int(kind[s[0]]), lambda s: 0)
    for key in keys:
        parts: dict[int, list[Slot]] = {}
        for slot in legal:
            parts.setdefault(key(slot), []).append(slot)
        large = [part for part in parts.values() if len(part) >= gang]
        if usable := [part for part in large if view.speeds.rate(job, {node for node, _ in part}) > 0]:
            return usable
    return []


class SlotQueues:
    """First come, first served on every GPU; a gang starts when it is the first in all of its queues.

    ``ready``: time at which the jobs bound so far are complete. O(g_j) a job.

    Parameters
    ----------
    view
        State of the run at its beginning.
    """

    def __init__(self, view: View) -> None:
        slots = [(node, gpu) for node, free in enumerate(view.free.tolist()) for gpu in range(free)]
        self.ready: dict[Slot, float] = dict.fromkeys(slots, 0.0)
        self._queue: dict[Slot, deque[int]] = {slot: deque() for slot in slots}
        self._slots: dict[int, tuple[Slot, ...]] = {}  # GPUs of every job that is not finished
        self._first: dict[int, int] = {}  # number of queues in which a job is the first

    def bind(self, job: int, slots: Iterable[Slot], end: float) -> bool:
        """Bind a job to GPUs and return True if it is the first in all of their queues.

        Parameters
        ----------
        job
            Number of the job.
        slots
            GPUs of the gang.
        end
            Time until which they are then busy.
        """
        self._slots[job], self._first[job] = tuple(slots), 0
        for slot in self._slots[job]:
            self.ready[slot] = end
            self._queue[slot].append(job)
            self._first[job] += self._queue[slot][0] == job
        return self._first[job] == len(self._slots[job])

    def leave(self, job: int) -> list[int]:
        """Remove a finished job from its queues and return the jobs whose turn it is.

        Parameters
        ----------
        job
            Number of the job.
        """
        turn = []
        for slot in self._slots.pop(job):
            queue = self._queue[slot]
            queue.popleft()
            if queue:
                self._first[queue[0]] += 1
                if self._first[queue[0]] == len(self._slots[queue[0]]):
                    turn.append(queue[0])
        del self._first[job]
        return turn

    def places(self, job: int) -> Places:
        """Return (node, GPUs) of a job that is not finished.

        Parameters
        ----------
        job
            Number of the job.
        """
        nodes, counts = np.unique([node for node, _ in self._slots[job]], return_counts=True)
        return tuple(zip(nodes.tolist(), counts.tolist(), strict=True))
