"""The volume that is left at a release date: the makespan cannot be earlier than the date plus the work still to come.

**Problem**: P | r_j, size_j, pmtn | C_max.
**Bound**: ``max over release dates t of t + sum_{r_j >= t} u_j d_j / U``, with the effective widths u_j and the capacity U
of `optsched.bounds.gang_machine` (threshold 1: GPU-seconds over the GPUs that gangs can fill).
**Proof**: after t the fast machine does at most one second of work a second, and all the work of jobs released
from t on is done after t. Rounding down on the grid (`optsched.bounds.grid`) only lowers both parts.
**Tight** for one machine, where it is the optimum. **Complexity** O(n log n), O(n) when the jobs stand in order of release.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np

from optsched.bounds.best_bound import best_over_machines, lower_bound
from optsched.bounds.certificate import Certificate, register_kind, require_same
from optsched.bounds.fast_machine import by_release
from optsched.bounds.gang_machine import GangMachine
from optsched.bounds.grid import GridJobs, on_grid
from optsched.bounds.verifier import machine_of, times_of
from optsched.bounds.word_verifier import Proved, in_words_or_integers, word_latest_end, word_machine_of, word_times
from optsched.problem.instance import Instance
from optsched.speeds.duration import seconds_alone

KIND = "volume"


@lower_bound(KIND, objectives=["makespan"], statement="a release date plus the GPU-seconds still to come over G")
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate:
    """The certificate with the best threshold; data: the machine and the grid."""
    duration = seconds_alone(instance)

    def prove(machine: GangMachine) -> tuple[Fraction, dict[str, Any]]:
        jobs = on_grid(instance.arrival, duration, machine)
        return jobs.tick * (latest_end(jobs) + jobs.origin), jobs.data()

    return best_over_machines(instance, objective, schedule_class, KIND, prove)


def latest_end(jobs: GridJobs) -> int:
    if jobs.release.size == 0:
        return 0
    order = by_release(jobs.release)
    release, work = (jobs.release, jobs.work) if order is None else (jobs.release[order], jobs.work[order])
    # of jobs released together the first one in order has all their work behind it
    return int(np.max(release + np.cumsum(work[::-1])[::-1]))


@register_kind(KIND, objectives=["makespan"])
def verify(certificate: Certificate, instance: Instance) -> None:
    """The busy periods of the machine, run forwards instead of summed backwards: their end is the same maximum."""
    require_same(certificate, *in_words_or_integers(_in_words, _in_integers, certificate, instance))


def _in_words(certificate: Certificate, instance: Instance) -> Proved:
    machine = word_machine_of(certificate, instance, word_times(instance, "total_completion_time"))
    return word_latest_end(machine), machine.plain.data()


def _in_integers(certificate: Certificate, instance: Instance) -> Proved:
    machine = machine_of(certificate, instance, times_of(instance, "total_completion_time"))
    jobs = sorted(zip(machine.release, machine.work, strict=True))
    *_, end = accumulate(jobs, lambda now, job: max(now, job[0]) + job[1], initial=0)
    return Fraction(end) * machine.tick, machine.data()
