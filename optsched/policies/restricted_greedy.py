"""Greedy for restricted assignment: every job goes at once, and for good, to the GPUs that are free of work first."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from optsched.policies import POLICIES
from optsched.policies.slot_queues import SlotQueues
from optsched.simulation.policy import Decision, Knowledge, Policy, Start, View


@POLICIES.register("restricted-greedy")
@dataclass
class RestrictedGreedy(Policy):
    """Greedy, not preemptive: on arrival a job is assigned to the eligible GPUs that have the least work left.

    A gang is assigned the GPUs that it needs, and starts when it is the first in all of their queues. Ties go by node,
    then by GPU. The rule does not foresee that a job takes longer on GPUs other than its fastest.

    **Problem** P | M_j, online-list | C_max; here also with release dates and gangs. **Knowledge** clairvoyant.

    **Guarantee** one-GPU jobs that come at once, one by one: ceil(log2 m) + 1, and no online algorithm is more than a
    constant better. **Tight family** a binary tournament in which the winner of each match gets its job
    (``tournament``). None known for gangs. **Complexity** O(G) an arrival, O(g_j) a start.
    **Reference** Azar, Naor and Rom, The competitiveness of on-line assignments, J. Algorithms 18 (1995), 221-237.
    """

    name = "restricted-greedy"
    knowledge = Knowledge.CLAIRVOYANT
    uses = ("nodes",)

    def begin(self, view: View) -> None:
        """Forget the last run.

        Parameters
        ----------
        view
            State of the run.
        """
        self._queues = SlotQueues(view)

    def decide(self, view: View) -> Iterator[Decision]:
        """Assign the jobs that have arrived; start the jobs whose turn has come.

        Parameters
        ----------
        view
            State of the run.
        """
        turn = [job for done in view.finished for job in self._queues.leave(done)]
        turn += [job for job in view.arrived if self._assign(view, job)]
        for job in turn:
            yield Start(job, on=self._queues.places(job))

    def _assign(self, view: View, job: int) -> bool:
        """Assign a job; return True if it is the first in all of its queues."""
        suits, ready = view.eligible(job), self._queues.ready
        legal = (slot for slot in ready if suits[slot[0]])
        slots = heapq.nsmallest(view.gpus(job), legal, key=lambda slot: (max(ready[slot], view.now), slot))
        end = max(max(ready[slot] for slot in slots), view.now) + view.duration(job)
        return self._queues.bind(job, slots, end)
