"""A bound of the largest flow time over that on an equal share: jobs that need the same GPUs cannot all have theirs.

**Problem**: max (C_j - r_j) / d_j, d_j the flow time under equal sharing (`optsched.problem.fair_share`), on the machine of
a relaxation (`optsched.bounds.relaxation`).
**Bound**: for a set S of jobs with work on the machine, ``min over j in S of (b + tail_j - r_j) / d_j`` with ``b = min_S
release + work of S / capacity``.
**Proof**: the last job of S on the machine ends no earlier than b and completes its tail after that; it is one of S.
**Search**: everybody is within a ratio R exactly if the rule of the earliest due date meets the due dates
r_j + R d_j - tail_j (Jackson). From R = 0 on the job that is latest under that rule gives S, the jobs served without a pause
before it since one with a later due date was, and the bound of S is the next R; it is larger, since at the old R all of S
were due before b. When nobody is late the bound is the best of all sets, the optimum of the machine but for its grid.
**Complexity** O(n log n) for each R; a handful of them.
**Reference**: Bender, Chakrabarti and Muthukrishnan, Flow and stretch metrics for scheduling continuous job streams, SODA
1998: the maximum stretch of one machine by due dates.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.bounds.certificate import Proof, best_proof
from optsched.bounds.fast_machine import priority_run
from optsched.bounds.grid import GridJobs
from optsched.bounds.relaxation import FastMachine, Relaxed, Theorem, theorem
from optsched.bounds.sum_costs import FAIR
from optsched.problem.arrays import Floats, Ints
from optsched.problem.fair_share import fair_flow_times
from optsched.problem.instance import Instance

MOST_RATIOS = 60  # tried one after the other: every set of jobs proves something


def build(relaxed: Relaxed, objective: str) -> Proof | None:
    """The proof on the best machine; data: the machine, the grid, the ids of S."""
    instance, proofs = relaxed.instance, []
    for (machine,) in relaxed.machines(lambda machine: _search(instance, machine, machine.rough_grid())[0]):
        grid = machine.grid()
        chosen = _search(instance, machine, grid)[1]
        jobs = {"jobs": [instance.ids[j] for j in np.sort(chosen).tolist()]}
        proofs.append((_exactly(instance, machine, grid, chosen), {**machine.data(grid), **jobs}))
    return best_proof(proofs)


def _search(instance: Instance, machine: FastMachine, grid: GridJobs) -> tuple[float, Ints]:
    """(the bound, the set that proves it)."""
    used = np.flatnonzero(grid.work > 0)
    used = used[np.argsort(grid.release[used], kind="stable")]
    tail, tick = 0.0 if machine.tail is None else machine.tail[used], float(grid.tick)
    fair, due = fair_flow_times(instance)[used] / tick, (instance.arrival[used] - tail) / tick - grid.origin
    ratio, chosen = 0.0, np.zeros(0, dtype=np.int64)
    for _ in range(MOST_RATIOS if used.size else 0):
        some, end = _in_the_way(grid.release[used], grid.work[used], due + ratio * fair)
        better = float(np.min((end - due[some]) / fair[some]))
        if better <= ratio:
            break
        ratio, chosen = better, used[some]
    return ratio, chosen


def _in_the_way(release: Ints, work: Ints, due: Floats) -> tuple[Ints, int]:
    """(the jobs, by release, that make the one late that is latest, when the last of them ends); ticks."""
    rank = np.empty(due.size, dtype=np.int64)
    rank[np.argsort(due, kind="stable")] = np.arange(due.size)
    done, *_ = priority_run(release, work, rank)
    last = int(np.argmax(done - due))
    urgent = np.flatnonzero((rank <= rank[last]) & (release < done[last]))
    before = np.cumsum(work[urgent]) - work[urgent]
    some = urgent[urgent.size - 1 - int(np.argmax((release[urgent] - before)[::-1])) :]  # no pause since
    return some, int(release[some[0]] + work[some].sum())


def _exactly(instance: Instance, machine: FastMachine, grid: GridJobs, chosen: Ints) -> Fraction:
    if not chosen.size:
        return Fraction(0)
    end = (grid.origin + int(grid.release[chosen].min()) + int(grid.work[chosen].sum())) * grid.tick
    fair, tail = fair_flow_times(instance), machine.tail
    after = [Fraction(0 if tail is None else float(tail[j])) - Fraction(float(instance.arrival[j])) for j in chosen]
    return min((end + more) / Fraction(float(fair[j])) for j, more in zip(chosen.tolist(), after, strict=True))


STATEMENT = "jobs in each other's way on one machine, against their flow times on an equal share"
theorem(Theorem("fair-share", (FAIR,), STATEMENT, build))
