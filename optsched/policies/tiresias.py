"""Tiresias: discretised two-queue least attained service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from optsched.policies import POLICIES
from optsched.simulation.policy import Knowledge, KnownJobs, Order


@POLICIES.register("tiresias")
@dataclass(frozen=True)
class Tiresias:
    """Tiresias-L: preemptive; jobs that have held less than ``threshold`` GPU-seconds go before the others.

    **Problem** P | r_j, size_j, pmtn, online-r_j | sum (C_j - r_j). **Knowledge** non-clairvoyant.
    Two queues, each in order of arrival; a job drops to the second when its attained service (GPUs x time held, restarts
    included) reaches ``threshold`` (default 57600 GPU-s). ``starvation`` > 0: a job of the second queue that has waited
    ``starvation`` times as long as it ran starts afresh in the first. ``round`` > 0: decisions only at multiples of that
    many seconds. ``restart``: seconds of overhead at every resumption, with ``first`` at the first start too. ``by_time``:
    service is the time held alone, ``threshold`` in seconds. ``requeue``: a job that changes queues stands behind those that
    are there, instead of in order of arrival.

    **Settings.** The simulator of the Pollux artifact: ``round=60,restart=30,first=true,requeue=true+most-free`` (threshold
    57600, starvation 0). The authors of SJF-BSBF run theirs with a threshold of 700 s by time and starvation 1:
    ``threshold=700,by_time=true,requeue=true,starvation=1``; two of its rules are not here: jobs with at most 100 iterations
    left are not stopped, and waiting jobs go behind the running ones of their queue after every decision.

    **Guarantee** none known: FIFO within a queue already has none. **Complexity** O(running jobs) an event.
    **Reference** Gu et al., Tiresias, NSDI 2019 (Discretized 2D-LAS).
    """

    threshold: float = 57600.0
    starvation: float = 0.0
    round: float = 0.0
    restart: float = 0.0
    first: bool = False
    by_time: bool = False
    requeue: bool = False
    name: ClassVar[str] = "tiresias"
    knowledge: ClassVar[Knowledge] = Knowledge.NON_CLAIRVOYANT

    def order(self, jobs: KnownJobs) -> Order:
        """By (queue, arrival)."""
        return Order(
            key=jobs.arrival,
            preemptive=True,
            thresholds=(self.threshold,),
            starvation=self.starvation,
            round=self.round,
            restart=self.restart,
            first=self.first,
            by_time=self.by_time,
            requeue=self.requeue,
        )
