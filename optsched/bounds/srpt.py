"""SRPT on the fast machine: the sum of completion times of a relaxation that one rule solves to optimality.

**Problem**: P | r_j, size_j, pmtn | sum C_j and sum (C_j - r_j); with weights in layers (`optsched.bounds.weight_levels`).
**Bound**: the jobs that take a part of the fast machine (`optsched.bounds.gang_machine`) cost at least what SRPT, optimal
for 1 | r_j, pmtn | sum C_j, makes them cost there; the others, set aside by the threshold or shorter than the grid,
at least r_j + p_j each. Flow times: minus ``sum w_j r_j``.
**Proof**: A cluster schedule is a schedule of the fast machine with the same completion times. The grid rounds
down only (`optsched.bounds.grid`).
**Guarantee**: exact for one machine with one-GPU jobs and equal weights. **Complexity** O(n log n), a run per level.
**Reference**: Schrage, Operations Research 16 (1968), 687-690; for clusters Lemma V and LB1 of the A-SRPT reference
sheet of this project: the virtual single machine of Luo et al., INFOCOM 2025.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optsched.bounds.best_bound import best_over_machines, lower_bound
from optsched.bounds.certificate import Certificate, ratio_text, register_kind, require_same
from optsched.bounds.exact_dot import exact_dot
from optsched.bounds.fast_machine import srpt_completions
from optsched.bounds.gang_machine import GangMachine
from optsched.bounds.grid import GridJobs, on_grid
from optsched.bounds.sum_costs import COMPLETION, FLOW, SumCosts, sum_costs
from optsched.bounds.verifier import Machine, Times, machine_of, srpt, times_of
from optsched.bounds.weight_levels import levels_of, reduced, stated_levels, steps
from optsched.bounds.wide_integers import sum_words, total
from optsched.bounds.word_verifier import Proved, in_words_or_integers, word_machine_of, word_srpt, word_times
from optsched.problem.instance import Instance

KIND = "srpt"
OBJECTIVES = (*COMPLETION, *FLOW)


@lower_bound(KIND, objectives=OBJECTIVES, statement="SRPT on one machine as fast as the cluster")
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate:
    """The certificate with the best threshold; data: machine, grid, levels of weight, flow constant."""
    costs = sum_costs(instance, objective)
    levels = levels_of(costs.weight)
    texts = [ratio_text(Fraction(level)) for level in levels]

    def prove(machine: GangMachine) -> tuple[Fraction, dict[str, Any]]:
        jobs = on_grid(costs.release, costs.duration, machine)
        return layered(costs, jobs, levels), {**jobs.data(), **costs.data(), "levels": texts}

    return best_over_machines(instance, objective, schedule_class, KIND, prove)


def layered(costs: SumCosts, jobs: GridJobs, levels: list[float]) -> Fraction:
    """The bound with SRPT once a level of weight."""
    served = jobs.work > 0
    weight = np.where(served, reduced(costs.weight, levels), 0.0)
    value = Fraction(0)
    for level, height in steps(levels):
        chosen = weight >= level
        every = bool(chosen.all())
        done = srpt_completions(
            jobs.release if every else jobs.release[chosen], jobs.work if every else jobs.work[chosen]
        )
        value += height * jobs.tick * (total(sum_words(done)) + done.size * jobs.origin)
    if costs.objective in FLOW:
        value -= exact_dot(weight, costs.release)
    if not np.array_equal(weight, costs.weight):
        value += costs.alone(costs.weight) - costs.alone(weight)
    return value


@register_kind(KIND, objectives=OBJECTIVES)
def verify(certificate: Certificate, instance: Instance) -> None:
    """Run SRPT again with a heap, in Python integers or, of very many jobs, in machine words."""
    require_same(certificate, *in_words_or_integers(_in_words, _in_integers, certificate, instance))


def _in_words(certificate: Certificate, instance: Instance) -> Proved:
    times = word_times(instance, certificate.objective)
    machine = word_machine_of(certificate, instance, times)
    levels = stated_levels(certificate)
    data = {**machine.plain.data(), **times.data(), "levels": [ratio_text(level) for level in levels]}
    return word_srpt(times, machine, levels), data


def _in_integers(certificate: Certificate, instance: Instance) -> Proved:
    times = times_of(instance, certificate.objective)
    machine = machine_of(certificate, instance, times)
    levels = stated_levels(certificate)
    data = {**machine.data(), **times.data(), "levels": [ratio_text(level) for level in levels]}
    return proved(times, machine, levels), data


def proved(times: Times, machine: Machine, levels: list[Fraction]) -> Fraction:
    """The verifier's `layered`: start from r_j + p_j for all; what SRPT adds is counted level by level."""
    value = times.cost_alone()
    for level, below in zip(levels, [Fraction(0), *levels], strict=False):
        jobs = [j for j in times.with_weight(level) if machine.work[j] > 0]
        waited = sum(srpt((machine.release[j], machine.work[j]) for j in jobs)) * machine.tick
        never = sum(times.release[j] + times.duration[j] for j in jobs)
        value += (level - below) * (waited - Fraction(never, times.per_second))
    return value
