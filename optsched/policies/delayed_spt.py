"""Delayed shortest processing time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from optsched.policies import POLICIES
from optsched.policies.ties import leading_of
from optsched.simulation.next_event import last_of_instant
from optsched.simulation.policy import Decision, Knowledge, Policy, Start, View, Wake


@POLICIES.register("delayed-spt")
@dataclass
class DelayedSpt(Policy):
    """Delayed SPT, not preemptive: shortest job first, but none starts before the clock shows its duration.

    **Problem** P | r_j, size_j, online-r_j | sum C_j. **Knowledge** clairvoyant. The clock starts with the first
    arrival. While the shortest waiting job waits for the clock, so do the longer ones; jobs that do not fit are passed
    over.

    **Guarantee** 1 | r_j, online-r_j | sum C_j: 2, and no deterministic online algorithm without preemption has less.
    **Tight family** a job that has just started when many short ones arrive (``just-started``). None known for gangs.
    **Complexity** O(w log w) an event with w jobs waiting. **Reference** Hoogeveen and Vestjens 1996.
    """

    name = "delayed-spt"
    knowledge = Knowledge.CLAIRVOYANT

    def begin(self, view: View) -> None:
        """Forget the last run.

        Parameters
        ----------
        view
            State of the run.
        """
        self._first = math.inf  # the first arrival

    def decide(self, view: View) -> Iterator[Decision]:
        """Start the jobs that the clock allows, in order of duration; ask to be called when it allows the next one.

        Parameters
        ----------
        view
            State of the run.
        """
        self._first = min(self._first, *(view.arrival(job) for job in view.arrived), math.inf)
        for job in sorted(view.waiting, key=lambda job: leading_of(view.duration(job))):
            if view.free_gpus == 0:
                return
            allowed = self._first + view.duration(job)
            if allowed > last_of_instant(view.now):
                yield Wake(allowed)
                return
            if view.fits(job):
                yield Start(job)
