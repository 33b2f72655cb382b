"""Weighted shortest processing time, with preemption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from optsched.policies import POLICIES
from optsched.policies.smith_ratio import smith_ratio
from optsched.simulation.policy import Knowledge, KnownJobs, Order


@POLICIES.register("preemptive-wspt")
@dataclass(frozen=True)
class PreemptiveWspt:
    """WSPT with preemption: the active jobs with the least duration / weight run, whatever is left of them.

    **Problem** P | r_j, size_j, pmtn, online-r_j | sum w_j C_j. **Knowledge** clairvoyant. Jobs that do not fit are passed
    over. ``restart``: seconds of overhead at every resumption.

    **Guarantee** with one GPU a job and restart = 0: 2 on any number of machines (one: Schulz and Skutella 2002; m: Megow
    and Schulz 2004). **Tight family** unit jobs released a little faster than they can be served, each a little heavier
    than the one before (``overtaking``). **Complexity** O(running jobs) an event. **Reference** Schulz and Skutella 2002.
    """

    restart: float = 0.0
    name: ClassVar[str] = "preemptive-wspt"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT

    def order(self, jobs: KnownJobs) -> Order:
        """By duration / weight; jobs of weight 0 last."""
        return Order(key=smith_ratio(jobs.duration, jobs.weight), preemptive=True, restart=self.restart)
