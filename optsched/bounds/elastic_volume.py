"""The GPU-seconds that are left at a release date, where jobs may run on any number of GPUs: `volume` for elastic jobs.

**Problem**: jobs on any number of GPUs (class ``elastic``) | C_max.
**Bound**: ``max over release dates t of t + sum_{r_j >= t} d_j / G``, with the fewest GPU-seconds d_j of
`optsched.bounds.elastic_machine`. **Proof**: there; after t the machine does at most one second of work a second. Rounding
down on the grid only lowers both parts. **Complexity** O(n log n).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import Certificate, register_kind, require_same
from optsched.bounds.elastic_machine import ELASTIC, elastic_machine_of, elastic_numbers, proved_numbers
from optsched.bounds.sum_costs import COMPLETION
from optsched.bounds.verifier import times_of
from optsched.bounds.volume import latest_end
from optsched.problem.instance import Instance

KIND = "elastic-volume"


@lower_bound(
    KIND,
    objectives=["makespan"],
    classes=[ELASTIC],
    statement="a release date plus the fewest GPU-seconds still to come over G",
)
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """The certificate; data: the machine and the grid."""
    jobs = elastic_numbers(instance).on_grid(instance)
    value = jobs.tick * (latest_end(jobs) + jobs.origin)
    return Certificate(instance.digest, objective, schedule_class, KIND, value, jobs.data())


@register_kind(KIND, objectives=["makespan"], classes=[ELASTIC])
def verify(certificate: Certificate, instance: Instance) -> None:
    """The busy periods of the machine, run forwards instead of summed backwards: their end is the same maximum."""
    alone, volume = proved_numbers(instance)
    machine = elastic_machine_of(certificate, instance, times_of(instance, COMPLETION[0], alone), volume)
    jobs = sorted(zip(machine.release, machine.work, strict=True))
    *_, end = accumulate(jobs, lambda now, job: max(now, job[0]) + job[1], initial=0)
    require_same(certificate, Fraction(end) * machine.tick, machine.data())
