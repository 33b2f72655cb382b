"""Shortest remaining GPU-time first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from optsched.policies import POLICIES
from optsched.simulation.policy import Knowledge, KnownJobs, Order


@POLICIES.register("srtf-gpu")
@dataclass(frozen=True)
class SrtfGpu:
    """SRTF by GPU-time: preemptive, the active jobs with the least remaining time x GPUs run.

    **Problem** P | r_j, size_j, pmtn, online-r_j | sum C_j. **Knowledge** clairvoyant. ``restart``: seconds of overhead at
    every resumption.

    SRPT of the single-machine relaxation (p_j = g_j d_j / G), run on the real cluster. **Guarantee** none known for gangs;
    `srtf` where every job takes one GPU. **Complexity** O(running jobs) an event. **Reference** the "2D" orders of Tiresias
    (NSDI 2019), with remaining instead of attained service.
    """

    restart: float = 0.0
    name: ClassVar[str] = "srtf-gpu"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT

    def order(self, jobs: KnownJobs) -> Order:
        """By remaining time x GPUs."""
        gpus = jobs.gpus.astype(float)
        return Order(key=jobs.duration * gpus, slope=-gpus, preemptive=True, restart=self.restart)
