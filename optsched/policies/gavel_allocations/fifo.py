"""`fifo`: first in, first out, types drawn at random."""

from __future__ import annotations

from optsched.policies.gavel_allocations import ALLOCATIONS, ActiveJobs, AllocationRule, Setting
from optsched.policies.gavel_allocations.type_queue import TypeQueue
from optsched.simulation.policy import Floats


@ALLOCATIONS.register("fifo")
class FifoShares(AllocationRule):
    """Jobs in order of arrival; each has all of its time on one type drawn among those with room, and keeps it.

    The head of the queue inherits the type of a job that ended where it fits, else draws; it blocks those behind it.
    """

    aware = False
    strict = True

    def __init__(self, setting: Setting) -> None:
        self._queue = TypeQueue(setting.capacity, setting.seed)

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]: one 1 in the row of a job that runs."""
        return self._queue.shares(jobs)
