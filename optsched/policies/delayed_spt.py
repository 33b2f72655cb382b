"""Delayed shortest processing time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from optsched.policies import POLICIES
from optsched.simulation.policy import Decision, Knowledge, Start, View, Wake


@POLICIES.register("delayed-spt")
@dataclass
class DelayedSpt:
    """Delayed SPT, not preemptive: shortest job first, but none starts before the clock shows as much as its duration.

    **Problem** P | r_j, size_j, online-r_j | sum C_j. **Knowledge** clairvoyant. The clock starts with the first arrival.
    While the shortest waiting job has to wait for it, so do the longer ones; jobs that do not fit are passed over.

    **Guarantee** 1 | r_j, online-r_j | sum C_j: 2, and no deterministic online algorithm without preemption has less.
    **Tight family** a job that has just started when a crowd of short ones comes (``just-started``). None known for gangs.
    **Complexity** O(w log w) an event with w jobs waiting. **Reference** Hoogeveen and Vestjens 1996.
    """

    name: ClassVar[str] = "delayed-spt"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT

    def decide(self, view: View) -> Iterator[Decision]:
        """Start whom the clock allows, in order of duration, and be asked again when it allows the next one."""
        for job in sorted(view.waiting, key=view.duration):
            if view.free_gpus == 0:
                return
            if view.duration(job) > view.now:
                yield Wake(view.duration(job))
                return
            if view.fits(job):
                yield Start(job)
