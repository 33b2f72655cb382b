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

from optsched.bounds.certificate import Proof, best_proof
from optsched.bounds.fast_machine import by_release
from optsched.bounds.grid import GridJobs
from optsched.bounds.relaxation import Relaxed, Theorem, theorem
from optsched.bounds.sum_costs import MAKESPAN


def build(relaxed: Relaxed, objective: str) -> Proof | None:
    """The proof on the best machine; data: the machine and the grid."""
    found = ((some, some.grid()) for (some,) in relaxed.machines(lambda some: float(_value(some.rough_grid()))))
    return best_proof((_value(grid), machine.data(grid)) for machine, grid in found)


def _value(jobs: GridJobs) -> Fraction:
    """When the last busy period ends."""
    release, work = jobs.release, jobs.work
    order = by_release(release)
    if order is not None:
        release, work = release[order], work[order]
    # of jobs released together the first one in order has all their work behind it
    return jobs.tick * (int(np.max(release + np.cumsum(work[::-1])[::-1], initial=0)) + jobs.origin)


theorem(Theorem("volume", (MAKESPAN,), "a release date plus the work still to come on one machine", build))
