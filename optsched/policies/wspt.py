"""Weighted shortest processing time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from optsched.policies import POLICIES
from optsched.policies.smith_ratio import smith_ratio
from optsched.simulation.policy import Knowledge, KnownJobs, Order


@POLICIES.register("wspt")
@dataclass(frozen=True)
class Wspt:
    """WSPT (Smith's rule), not preemptive: queued jobs start in order of duration / weight.

    **Problem** P | r_j, size_j, online-r_j | sum w_j C_j. **Knowledge** clairvoyant. Jobs that do not fit are passed over;
    ``gpus=true`` orders by gpus x duration / weight instead, Smith's rule of the single-machine relaxation.

    **Guarantee** 1 || sum w C: 1 (Smith 1956); P || sum w C: (1 + sqrt 2) / 2 (Kawaguchi and Kyan 1986), tight as m grows;
    none with release dates or gangs. **Tight family** ``sand``. **Complexity** O(log n) an event.
    """

    gpus: bool = False
    name: ClassVar[str] = "wspt"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT

    def order(self, jobs: KnownJobs) -> Order:
        """By duration (x GPUs) / weight; jobs of weight 0 last."""
        return Order(key=smith_ratio(jobs.duration * jobs.gpus if self.gpus else jobs.duration, jobs.weight))
