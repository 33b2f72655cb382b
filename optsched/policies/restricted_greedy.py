"""Greedy for restricted assignment: every job goes at once, and for good, to the GPUs that are free of work first."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from optsched.policies import POLICIES
from optsched.simulation.policy import Decision, Knowledge, Start, View

Slot = tuple[int, int]  # (node, one of its GPUs): which one in truth is the engine's choice


@POLICIES.register("restricted-greedy")
@dataclass
class RestrictedGreedy:
    """Greedy, not preemptive: on arrival a job is assigned to the GPUs, of those it may use, that have the least work left.

    A gang takes as many as it needs, and starts when it is the first in all of their queues. Ties by node, then by GPU. What
    a job takes elsewhere than at its fastest is not foreseen.

    **Problem** P | M_j, online-list | C_max; here also with release dates and gangs. **Knowledge** clairvoyant.

    **Guarantee** one-GPU jobs that come at once, one by one: ceil(log2 m) + 1, and no online algorithm is more than a
    constant better. **Tight family** a binary tournament, the winner of each match being who gets its job
    (``tournament``). None known for gangs. **Complexity** O(G) an arrival, O(g_j) a start.
    **Reference** Azar, Naor and Rom, The competitiveness of on-line assignments, J. Algorithms 18 (1995), 221-237.
    """

    name: ClassVar[str] = "restricted-greedy"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT
    uses: ClassVar[tuple[str, ...]] = ("nodes",)

    _ready: dict[Slot, float] = field(init=False, repr=False)  # when the work assigned so far is done
    _queue: dict[Slot, deque[int]] = field(init=False, repr=False)
    _slots: dict[int, list[Slot]] = field(init=False, repr=False)  # of every job that is not finished
    _first: dict[int, int] = field(init=False, repr=False)  # in how many of its queues a job is the first

    def begin(self, view: View) -> None:
        """Nothing is assigned."""
        self._ready = {(node, gpu): 0.0 for node, free in enumerate(view.free.tolist()) for gpu in range(free)}
        self._queue = {slot: deque() for slot in self._ready}
        self._slots, self._first = {}, {}

    def decide(self, view: View) -> Iterator[Decision]:
        """Assign those that have arrived; start those whose turn has come."""
        turn = [job for done in view.finished for job in self._leave(done)]
        turn += [job for job in sorted(view.arrived, key=lambda j: (view.arrival(j), j)) if self._assign(view, job)]
        for job in turn:
            nodes, counts = np.unique([node for node, _ in self._slots[job]], return_counts=True)
            yield Start(job, on=tuple(zip(nodes.tolist(), counts.tolist(), strict=True)))

    def _assign(self, view: View, job: int) -> bool:
        """Is it the first in all queues?"""
        suits = view.eligible(job)
        legal = (slot for slot in self._ready if suits[slot[0]])
        slots = heapq.nsmallest(view.gpus(job), legal, key=lambda slot: (max(self._ready[slot], view.now), slot))
        end = max(max(self._ready[slot] for slot in slots), view.now) + view.duration(job)
        self._slots[job], self._first[job] = slots, 0
        for slot in slots:
            self._ready[slot] = end
            self._queue[slot].append(job)
            self._first[job] += self._queue[slot][0] == job
        return self._first[job] == len(slots)

    def _leave(self, job: int) -> list[int]:
        """A finished job leaves its queues; whose turn that makes it."""
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
