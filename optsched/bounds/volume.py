"""The volume that is left at a release date: the makespan cannot be earlier than the date plus the work still to come.

**Problem**: C_max on the machine of a relaxation (`optsched.bounds.relaxation`).
**Bound**: ``max over release dates t of t + sum_{r_j >= t} u_j d_j / U``, u_j the widths and U the capacity: of gangs at
threshold 1 GPU-seconds over the GPUs that gangs can fill, of elastic jobs the fewest GPU-seconds over all GPUs.
**Proof**: after t the fast machine does at most one second of work a second, and all the work of jobs released
from t on is done after t. Rounding down on the grid (`optsched.bounds.grid`) only lowers both parts.
**Tight** for one machine, where it is the optimum. **Complexity** O(n log n), O(n) when the jobs stand in order of release.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import numpy as np

from optsched.bounds.certificate import Certificate, Proof
from optsched.bounds.fast_machine import by_release
from optsched.bounds.grid import GridJobs
from optsched.bounds.relaxation import Relaxed, Theorem, theorem
from optsched.bounds.sum_costs import COMPLETION, MAKESPAN
from optsched.bounds.verifier import Twin
from optsched.bounds.word_verifier import in_words_or_integers, word_latest_end, word_machine_of, word_times


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


def verify(twin: Twin, certificate: Certificate) -> Proof:
    """The busy periods of the machine, run forwards instead of summed backwards: their end is the same maximum."""
    return in_words_or_integers(_in_words, _in_integers, twin, certificate)


def _in_words(twin: Twin, certificate: Certificate) -> Proof:
    machine = word_machine_of(certificate, twin.instance, word_times(twin, COMPLETION[0]))
    return word_latest_end(machine), machine.plain.data()


def _in_integers(twin: Twin, certificate: Certificate) -> Proof:
    machine = twin.machine(certificate, twin.times())
    jobs = sorted(zip(machine.release, machine.work, strict=True))
    *_, end = accumulate(jobs, lambda now, job: max(now, job[0]) + job[1], initial=0)
    return Fraction(end) * machine.tick, machine.data()


theorem(Theorem("volume", (MAKESPAN,), "a release date plus the work still to come on one machine", build, verify))
