"""Shortest remaining time first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from optsched.policies import POLICIES
from optsched.simulation.policy import Knowledge, KnownJobs, Order


@POLICIES.register("srtf")
@dataclass(frozen=True)
class Srtf:
    """SRTF (SRPT): preemptive, the active jobs with the least remaining time run.

    **Problem** P | r_j, size_j, pmtn, online-r_j | sum C_j, sum (C_j - r_j). **Knowledge** clairvoyant.
    ``restart``: seconds of overhead at every resumption.

    **Guarantee** with one GPU a job and restart = 0: optimal for one machine (Schrage 1968); for P machines 1.25 on sum C_j
    (Sitters 2010, from recollection) and Theta(log min(n/m, P)) on flow time (Leonardi and Raz 1997). None known for gangs.
    **Complexity** O(running jobs) an event. **Reference** Schrage 1968.
    """

    restart: float = 0.0
    name: ClassVar[str] = "srtf"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT

    def order(self, jobs: KnownJobs) -> Order:
        """By remaining time."""
        return Order(key=jobs.duration, slope=np.full(jobs.n, -1.0), preemptive=True, restart=self.restart)
