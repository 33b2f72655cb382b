"""First come, first served on one machine: the largest flow time that jobs cause each other.

**Problem**: max (C_j - r_j) on the machine of a relaxation (`optsched.bounds.relaxation`).
**Bound**: ``max over sets S of min_S release + work of S / capacity + min_S tail - max_S r_j``, the release on the machine
being r_j but for transfers, which begin later; of jobs that come in [a, b] the work less b - a. The machine that serves the
released job with the least r_j - tail first, tails being what follows the work on the machine, reaches the maximum: with E_j
its end, ``max_j E_j + tail_j - r_j``.
**Proof**: the last job of S on the machine ends no earlier than the first release plus the work of S, and completes its tail
after that; it came no later than the last of S. That the rule attains the best S is Jackson's: S are the jobs served
without a pause before the job that is latest, since the last moment at which one with a later r_j - tail was served. On the
grid r_j - tail is rounded **up**, which only lowers the bound.
**Tight** for one machine, where first come, first served is optimal. **Complexity** O(n log n).
**Reference**: Horn, Some simple scheduling algorithms, Naval Research Logistics 21 (1974), 177-185.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.bounds.certificate import Proof
from optsched.bounds.fast_machine import priority_run
from optsched.bounds.grid import GridJobs, due_ticks
from optsched.bounds.relaxation import FastMachine, Relaxed, Theorem, theorem
from optsched.bounds.srpt_due_dates import due_dates
from optsched.bounds.sum_costs import LARGEST_FLOW
from optsched.problem.arrays import Floats


def build(relaxed: Relaxed, objective: str) -> Proof | None:
    """The proof on the best machine; data: the machine and the grid."""
    arrival, proofs = relaxed.instance.arrival, []

    def rough(machine: FastMachine) -> float:
        due = due_dates(arrival, machine)
        return float(_value(machine.rough_grid(due), due))

    for (machine,) in relaxed.machines(rough):
        due = due_dates(arrival, machine)
        grid = machine.grid(due)
        proofs.append((_value(grid, due), machine.data(grid)))
    return max(proofs, key=lambda proof: proof[0], default=None)


def _value(grid: GridJobs, due: Floats) -> Fraction:
    counted = due_ticks(due, grid)
    used = np.flatnonzero(grid.work > 0)
    used = used[np.lexsort((counted[used], grid.release[used]))]
    release, work, counted = grid.release[used], grid.work[used], counted[used]
    rank = np.empty_like(used)
    rank[np.argsort(counted, kind="stable")] = np.arange(used.size)
    done, *_ = priority_run(release, work, rank)
    return grid.tick * int(np.max(done - counted, initial=0))


STATEMENT = "work of jobs that come in some seconds, less these, on one machine"
theorem(Theorem("first-come", (LARGEST_FLOW,), STATEMENT, build))
