"""SRPT on the machine that elastic jobs leave: `srpt` where jobs may run on any number of GPUs.

**Problem**: jobs on any number of GPUs (class ``elastic``) | sum C_j, sum (C_j - r_j), with weights in layers.
**Bound**: the sum of completion times of SRPT for works d_j / G on one machine (`optsched.bounds.elastic_machine`); jobs
shorter than the grid cost at least r_j + e_j. Flow times: minus ``sum w_j r_j``.
**Proof**: the theorem of `elastic_machine`, and that of Schrage for the one machine. The grid rounds down only.
**Guarantee**: exact where every job runs G times as fast on G GPUs as on one, with equal weights. **Complexity** O(n log n),
a run per level of weight.
**Reference**: Schrage, Operations Research 16 (1968), 687-690.
"""

from __future__ import annotations

from fractions import Fraction

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import Certificate, ratio_text, register_kind, require_same
from optsched.bounds.elastic_machine import ELASTIC, elastic_machine_of, elastic_numbers, proved_numbers
from optsched.bounds.srpt import OBJECTIVES, layered, proved
from optsched.bounds.sum_costs import costs_with
from optsched.bounds.verifier import times_of
from optsched.bounds.weight_levels import levels_of, stated_levels
from optsched.problem.instance import Instance

KIND = "elastic-srpt"


@lower_bound(
    KIND, objectives=OBJECTIVES, classes=[ELASTIC], statement="SRPT on one machine, jobs at their fewest GPU-seconds"
)
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """The certificate; data: machine, grid, levels of weight, flow constant."""
    numbers = elastic_numbers(instance)
    costs, jobs = costs_with(instance, objective, numbers.alone), numbers.on_grid(instance)
    levels = levels_of(costs.weight)
    data = {**jobs.data(), **costs.data(), "levels": [ratio_text(Fraction(level)) for level in levels]}
    return Certificate(instance.digest, objective, schedule_class, KIND, layered(costs, jobs, levels), data)


@register_kind(KIND, objectives=OBJECTIVES, classes=[ELASTIC])
def verify(certificate: Certificate, instance: Instance) -> None:
    """Find every job's GPU-seconds again in fractions, and run SRPT with a heap of Python integers."""
    alone, volume = proved_numbers(instance)
    times = times_of(instance, certificate.objective, alone)
    machine = elastic_machine_of(certificate, instance, times, volume)
    levels = stated_levels(certificate)
    data = {**machine.data(), **times.data(), "levels": [ratio_text(level) for level in levels]}
    require_same(certificate, proved(times, machine, levels), data)
