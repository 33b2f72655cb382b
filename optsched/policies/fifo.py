"""First in, first out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from optsched.policies import POLICIES
from optsched.simulation.policy import Knowledge, KnownJobs, Order


@POLICIES.register("fifo")
@dataclass(frozen=True)
class Fifo:
    """FIFO (first come, first served): jobs start in order of (arrival, index).

    **Problem** P | r_j, size_j, online-r_j | sum C_j, C_max, F_max. **Knowledge** non-clairvoyant.
    Strict: the head of the queue blocks until it fits. ``skip=true``: every queued job is tried in order (greedy
    backfilling), so that wide jobs may starve.

    **Guarantee** for rigid gangs: none that does not grow with G. C_max at r = 0, strict: m; with skip 2 - 1/m (it is list
    scheduling). Flow time with one GPU a job: the largest 3 - 2/m, the sum n (3 - 2/m) (Bender, Chakrabarti and
    Muthukrishnan 1998). **Tight families** strict, C_max: alternate (eps, width m) and (1, width 1), m times
    (``wide-and-narrow``); largest flow time: bursts whose long jobs come last, 3 - 2/m in the limit (``lagging-bursts``);
    their sum: a job of length n, then n unit jobs, (n + 3/2) / 3 (``convoy``).
    **Complexity** O(log n) an event. **Reference** folklore; Garey and Graham 1975 for list scheduling.
    """

    skip: bool = False
    name: ClassVar[str] = "fifo"
    knowledge: ClassVar[Knowledge] = Knowledge.NON_CLAIRVOYANT

    def order(self, jobs: KnownJobs) -> Order:
        """By arrival."""
        return Order(key=jobs.arrival, skip=self.skip)
