"""The capacity scheduler of a production cluster manager, as a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from optsched.policies import POLICIES
from optsched.simulation.policy import Knowledge, KnownJobs, Order


@POLICIES.register("yarn-cs")
@dataclass(frozen=True)
class YarnCapacityScheduler:
    """YARN-CS: gangs start in order of arrival on free GPUs of one type and keep them; the head of the queue blocks.

    A gang larger than every type is left out: it blocks nobody and does not finish. ``mixed``: it takes GPUs of several.

    **Problem** P | r_j, size_j, online-r_j | sum C_j. **Knowledge** non-clairvoyant, and of no speeds: the placement
    ``one-type`` takes the type of which most GPUs are free. **Guarantee** none known; that of FIFO at best (`fifo`).
    **Tight family** as for `fifo`; with types also speed: all jobs on the slowest type, idle fast GPUs unused by gangs.
    **Complexity** O(log n + nodes x types) an event. **Reference** the baseline of Hadar and of Philly's study (Jeon et al.,
    ATC 2019); one queue, no preemption.
    """

    mixed: bool = False

    name: ClassVar[str] = "yarn-cs"
    knowledge: ClassVar[Knowledge] = Knowledge.NON_CLAIRVOYANT

    @property
    def default_placement(self) -> str:
        """With its own parameter."""
        return f"one-type{':mixed=true' if self.mixed else ''}"

    def order(self, jobs: KnownJobs) -> Order:
        """By arrival, strictly."""
        return Order(key=jobs.arrival, skip=False)
