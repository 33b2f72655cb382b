"""Lenstra, Shmoys and Tardos: all jobs that come together are assigned by rounding a linear program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from optsched.policies import POLICIES
from optsched.policies.slot_queues import Slot, SlotQueues, sites
from optsched.policies.ties import leading_of
from optsched.problem.arrays import Floats
from optsched.simulation.policy import Decision, Knowledge, Start, View
from optsched.solvers.assignment_rounding import rounded_assignment


@POLICIES.register("lenstra-shmoys-tardos")
@dataclass
class LenstraShmoysTardos:
    """LST rounding, not preemptive: jobs that arrive together are bound to GPUs by rounding a vertex of a linear program.

    The program is that of `optsched.solvers.assignment_rounding`, on GPUs that are busy with what was bound before. A gang
    is bound before them, where it is done first: to GPUs of one node if one is large enough, else of one type; so is a job
    that comes alone. On every GPU jobs run in the order in which they were bound.

    **Problem** R || C_max; here also with release dates and gangs. **Knowledge** clairvoyant.

    **Guarantee** one-GPU jobs that come at once: 2, proved by the prices of the program for every run
    (`optsched.guarantees.lenstra_shmoys_tardos`). None for gangs or release dates. **Tight family** a long
    job that the program gives to all machines in parts, 2 m / (m + 1) (``torn-job``). **Complexity** O(log(n m)) linear
    programs of n m columns for n jobs that come together.
    **Reference** Lenstra, Shmoys and Tardos, Mathematical Programming 46 (1990), 259-271.
    """

    name: ClassVar[str] = "lenstra-shmoys-tardos"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT
    uses: ClassVar[tuple[str, ...]] = ("nodes",)

    _queues: SlotQueues = field(init=False, repr=False)
    _notes: dict[str, Floats] = field(init=False, repr=False)

    def begin(self, view: View) -> None:
        """Nothing is bound."""
        self._queues, self._notes = SlotQueues(view), {}

    def notes(self) -> dict[str, Floats]:
        """For audits: ``assignment_prices``, of every GPU in the last program, and ``assignment_limit``, its limit tau."""
        return self._notes

    def decide(self, view: View) -> Iterator[Decision]:
        """Bind those that have arrived; start those whose turn has come."""
        turn = [job for done in view.finished for job in self._queues.leave(done)]
        arrived = sorted(view.arrived, key=lambda j: (view.arrival(j), j))
        single = [job for job in arrived if view.gpus(job) == 1]
        together = single if len(single) > 1 else []
        turn += [job for job in arrived if job not in together and self._bind_gang(view, job)]
        turn += self._bind_together(view, together)
        for job in turn:
            yield Start(job, on=self._queues.places(job))

    def _bind_together(self, view: View, jobs: list[int]) -> list[int]:
        """Who of them is the first in its queue?"""
        if not jobs:
            return []
        slots = list(self._queues.ready)
        node = np.array([slot[0] for slot in slots])
        rate = np.array([self._rates(view, job)[node] for job in jobs]).T
        work = np.array([view.remaining(job) for job in jobs])
        seconds = np.divide(work, rate, out=np.full(rate.shape, np.inf), where=rate > 0)
        busy = np.array([max(self._queues.ready[slot] - view.now, 0.0) for slot in slots])
        found = rounded_assignment(seconds, busy)
        self._notes = {"assignment_prices": found.price, "assignment_limit": np.array([found.limit])}
        chosen = list(zip(jobs, found.machine.tolist(), strict=True))
        return [job for k, (job, i) in enumerate(chosen) if self._bind(view, job, [slots[i]], float(seconds[i, k]))]

    def _rates(self, view: View, job: int) -> Floats:
        """Units of work a second of a one-GPU job on every node, f64[N]; 0: not for it."""
        return np.where(view.eligible(job), view.speeds.together[job, view.speeds.node_type], 0.0)

    def _bind_gang(self, view: View, job: int) -> bool:
        """Where it is done first; is it the first in all of its queues?"""
        choices = []
        for context in sites(view, job, self._queues.ready):
            slots = sorted(context, key=lambda slot: (max(self._queues.ready[slot], view.now), slot))[: view.gpus(job)]
            seconds = view.remaining(job) / view.speeds.rate(job, {node for node, _ in slots})
            free = max(view.now, *(self._queues.ready[slot] for slot in slots))
            choices.append((leading_of(free + seconds), slots, seconds))
        _, slots, seconds = min(choices)
        return self._bind(view, job, slots, seconds)

    def _bind(self, view: View, job: int, slots: list[Slot], seconds: float) -> bool:
        start = max(view.now, *(self._queues.ready[slot] for slot in slots))
        return self._queues.bind(job, slots, start + seconds)
