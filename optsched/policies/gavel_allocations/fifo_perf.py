"""`fifo_perf`: first in, first out, each job on its fastest free type."""

from __future__ import annotations

from optsched.policies.gavel_allocations import ALLOCATIONS, ActiveJobs, AllocationRule, Setting
from optsched.policies.gavel_allocations.type_queue import TypeQueue
from optsched.simulation.policy import Floats


@ALLOCATIONS.register("fifo_perf")
class FifoPerf(AllocationRule):
    """As `fifo`, each on its fastest type with room."""

    strict = True

    def __init__(self, setting: Setting) -> None:
        self._queue = TypeQueue(setting.capacity, None)

    def shares(self, jobs: ActiveJobs) -> Floats:
        """X f64[m, T]: one 1 in the row of a job that runs."""
        return self._queue.shares(jobs)
