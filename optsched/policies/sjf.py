"""Shortest job first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from optsched.policies import POLICIES
from optsched.simulation.policy import Knowledge, KnownJobs, Order


@POLICIES.register("sjf")
@dataclass(frozen=True)
class Sjf:
    """SJF, not preemptive: queued jobs start in order of their duration, those that do not fit are passed over.

    **Problem** P | r_j, size_j, online-r_j | sum C_j. **Knowledge** clairvoyant.

    **Guarantee** 1 for 1 || sum C_j and P || sum C_j (SPT); none with release dates. **Counterexample** 1 | r_j | sum C_j: a
    job of length 10 n at 0 and n unit jobs at 1: up to 21, and more the longer it is (family ``greedy-start``).
    **Complexity** O(log n) an event.
    **Reference** Smith 1956 (SPT).
    """

    name: ClassVar[str] = "sjf"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT

    def order(self, jobs: KnownJobs) -> Order:
        """By duration."""
        return Order(key=jobs.duration)
