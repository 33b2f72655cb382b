"""The volume that is left at a release date: the makespan cannot be earlier than the date plus the work still to come.

**Problem**: C_max on the machine of a relaxation (`optsched.bounds.relaxation`).
**Bound**: ``max over release dates t of t + sum_{r_j >= t} u_j d_j / U``, u_j the widths and U the capacity: of gangs at
threshold 1 GPU-seconds over the GPUs that gangs can fill, of elastic jobs the fewest GPU-seconds over all GPUs.
**Proof**: after t the fast machine does at most one second of work a second, and all the work of jobs released
from t on is done after t. Rounding down on the grid (`optsched.bounds.grid`) only lowers both parts.
**Tight** for one machine, where it is the optimum. **Complexity** O(n log n), O(n) when the jobs are in order of release.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.bounds.certificate import Proof
from optsched.bounds.fast_machine import by_release
from optsched.bounds.grid import GridJobs
from optsched.bounds.relaxation import Relaxed, Theorem, theorem
from optsched.bounds.sum_costs import MAKESPAN


def build(relaxed: Relaxed, objective: str) -> Proof | None:
    """The proof on the best machine; data: the machine and the grid."""
    proofs = []
    for (machine,) in relaxed.machines(lambda some: float(_value(some.rough_grid()))):
        grid = machine.grid()
        proofs.append((_value(grid), machine.data(grid)))
    return max(proofs, key=lambda proof: proof[0], default=None)


def _value(jobs: GridJobs) -> Fraction:
    return jobs.tick * (latest_end(jobs) + jobs.origin)


def latest_end(jobs: GridJobs) -> int:
    """The tick from the origin at which the last busy period ends."""
    if jobs.release.size == 0:
        return 0
    order = by_release(jobs.release)
    release, work = (jobs.release, jobs.work) if order is None else (jobs.release[order], jobs.work[order])
    # of jobs released together the first one in order has all their work behind it
    return int(np.max(release + np.cumsum(work[::-1])[::-1]))


theorem(Theorem("volume", (MAKESPAN,), "a release date plus the work still to come on one machine", build))
