"""Mean busy times: when half of each job's work is done, on average, on a machine as fast as the cluster.

**Problem**: P | r_j, size_j, pmtn | sum w_j C_j and sum w_j (C_j - r_j), and the unweighted forms.
**Bound**: ``sum u_j (M_j + p_j / 2) + sum (w_j - u_j)(r_j + p_j)``, p_j the duration, with the least possible
``sum u_j M_j`` on the fast machine (`optsched.bounds.gang_machine`), attained by preemptive WSPT. The multiplier
u_j is w_j rounded down to a grid ``2**-m`` (w_j itself wherever 53 bits suffice), 0 for jobs with no work on that machine.
Flow times: minus ``sum w_j r_j``.
**Proof**: let phi_j(t) <= 1 / p_j be the fraction of job j done per second. The mean moment M_j at which it is done is at
most C_j - p_j / 2. The rates (u_j p_j / U) phi_j of the fast machine add up to at most 1, so these M_j are mean busy times
of a schedule there, and their weighted sum is at least the least one. The rest is C_j >= r_j + p_j. Rounding down
on the grid only enlarges the set of schedules (`optsched.bounds.grid`), and so does rounding mean busy times down.
**Relations**: for r_j = 0 and one-GPU jobs on m GPUs this is the bound of Eastman, Even and Isaacs (Management Science 11,
1964): ``WSPT on one machine / m + (m - 1) / (2 m) sum w_j p_j``. Neither this nor `srpt` is larger everywhere.
Note that ``max(M_j + p_j / 2, r_j + p_j)`` summed over j is no bound: M_j is least in the sum only, not job by job.
**Complexity** O(n log n).
**Reference**: Goemans et al., SIAM J. Discrete Math. 15 (2002), 165-192; LB3 of the A-SRPT reference sheet of this project.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.bounds.best_bound import best_over_machines, lower_bound
from optsched.bounds.busy_time_sum import EXACT, HELD_UP_BITS, least_busy_time_sum
from optsched.bounds.certificate import Certificate, data_integer, register_kind, require_same
from optsched.bounds.exact_dot import exact_dot
from optsched.bounds.gang_machine import GangMachine
from optsched.bounds.grid import GridJobs, fraction_bits, on_grid
from optsched.bounds.sum_costs import COMPLETION, FLOW, SumCosts, sum_costs
from optsched.bounds.verifier import MAX_EXPONENT, Machine, Times, busy_pieces, floor_to_grid, machine_of, times_of
from optsched.bounds.wide_integers import sum_words, total
from optsched.bounds.word_verifier import Proved, in_words_or_integers, word_busy_times, word_machine_of, word_times
from optsched.problem.instance import Instance

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

KIND = "mean-busy-time"
OBJECTIVES = (*COMPLETION, *FLOW)
WEIGHT_BITS = 52  # multipliers stay exact as floats, and their products with ticks fit in 128 bits


@lower_bound(KIND, objectives=OBJECTIVES, statement="least mean busy times on one machine as fast as the cluster")
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate:
    """The certificate with the best threshold; data: machine, grids of time and weight, flow constant."""
    costs = sum_costs(instance, objective)
    weight, exponent = weights_on_grid(costs.weight)

    def prove(machine: GangMachine) -> tuple[Fraction, dict[str, Any]]:
        jobs = on_grid(costs.release, costs.duration, machine)
        value, bits = bound_with(costs, jobs, np.where(jobs.work > 0, weight, 0), exponent)
        data = {**jobs.data(), **costs.data(), "multiplier_exponent": exponent, "held_up_bits": bits}
        return value, data

    return best_over_machines(instance, objective, schedule_class, KIND, prove)


def weights_on_grid(weight: Floats, extra_bits: int = 0) -> tuple[Ints, int]:
    """(``floor(w_j 2**m)``, m): m makes all weights integers with ``extra_bits`` to spare, if `WEIGHT_BITS` allow it."""
    most = float(weight.max(initial=0.0))
    fits = min(WEIGHT_BITS - math.frexp(most)[1], 1000)
    exponent = min(fraction_bits(weight, fits) + extra_bits, fits)
    return np.floor(np.ldexp(weight, exponent)).astype(np.int64), exponent


def bound_with(costs: SumCosts, jobs: GridJobs, multiplier: Ints, exponent: int) -> tuple[Fraction, int | None]:
    """(bound, bits kept) with the multipliers u_j = ``multiplier_j 2**-exponent``, 0 where a job has no work."""
    used = multiplier > 0
    columns = (jobs.release, jobs.work, multiplier)
    least, bits = least_busy_time_sum(*(columns if used.all() else (column[used] for column in columns)))
    least += jobs.origin * total(sum_words(multiplier))
    u = np.ldexp(multiplier.astype(np.float64), -exponent)
    value = least * jobs.tick / Fraction(2) ** exponent
    value += costs.alone(costs.weight) - costs.alone(u)
    value += exact_dot(u, costs.duration) / 2 - exact_dot(u, costs.counted)
    return value, bits


@register_kind(KIND, objectives=OBJECTIVES)
def verify(certificate: Certificate, instance: Instance) -> None:
    """Run preemptive WSPT again, with mean busy times as integrals over the pieces served.

    In Python integers or, of very many jobs, in machine words.
    """
    require_same(certificate, *in_words_or_integers(_in_words, _in_integers, certificate, instance))


def _in_words(certificate: Certificate, instance: Instance) -> Proved:
    times = word_times(instance, certificate.objective)
    machine = word_machine_of(certificate, instance, times)
    exponent = data_integer(certificate, "multiplier_exponent", -MAX_EXPONENT, MAX_EXPONENT)
    value, bits = word_busy_times(times, machine, exponent)
    data = {**machine.plain.data(), **times.data(), "multiplier_exponent": exponent, "held_up_bits": bits}
    return value, data


def _in_integers(certificate: Certificate, instance: Instance) -> Proved:
    times = times_of(instance, certificate.objective)
    machine = machine_of(certificate, instance, times)
    exponent = data_integer(certificate, "multiplier_exponent", -MAX_EXPONENT, MAX_EXPONENT)
    multiplier = [
        floor_to_grid(w, times.per_weight, exponent) if work > 0 else 0
        for w, work in zip(times.weight, machine.work, strict=True)
    ]
    value, bits = proved(times, machine, multiplier, exponent)
    data = {**machine.data(), **times.data(), "multiplier_exponent": exponent, "held_up_bits": bits}
    return value, data


def proved(times: Times, machine: Machine, multiplier: list[int], exponent: int) -> tuple[Fraction, int | None]:
    """The verifier's `bound_with`: multipliers are 0 for jobs without work or without a cost."""
    used = [j for j, u in enumerate(multiplier) if u > 0]
    doubled, bits = proved_busy_times([(machine.release[j], machine.work[j], multiplier[j]) for j in used])
    scale = Fraction(2**exponent) if exponent >= 0 else Fraction(1, 2**-exponent)
    units = 0  # halves of a unit of time, times the scale of the multipliers
    for j in used:
        units += multiplier[j] * (times.duration[j] - 2 * (times.counted[j] or 0) - 2 * times.alone(j))
    value = doubled * machine.tick / 2 + Fraction(units, 2 * times.per_second)
    return times.cost_alone() + value / scale, bits


def proved_busy_times(jobs: list[tuple[int, int, int]]) -> tuple[Fraction, int | None]:
    """For jobs (release, work > 0, multiplier > 0): (twice the least ``sum u_j M_j`` in ticks, bits kept)."""
    pieces = busy_pieces(jobs)
    # twice the mean busy time is moment / work; it equals 2 C - work exactly where nothing interrupts the job
    early = [
        (u, work * (2 * done - work) - moment, work) for (_, work, u), (done, moment) in zip(jobs, pieces, strict=True)
    ]
    doubled = Fraction(sum(u * (2 * done - work) for (_, work, u), (done, _) in zip(jobs, pieces, strict=True)))
    interrupted = [(u, gap, work) for u, gap, work in early if gap > 0]
    bits = None if len(interrupted) <= EXACT else HELD_UP_BITS
    if bits is None:
        doubled -= sum((Fraction(u * gap, work) for u, gap, work in interrupted), Fraction(0))
    else:
        rounded = sum(u * -((-gap << bits) // (2 * work)) for u, gap, work in interrupted)
        doubled -= Fraction(2 * rounded, 1 << bits)
    return doubled, bits
