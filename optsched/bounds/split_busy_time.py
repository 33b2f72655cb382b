"""Mean busy times for a part of each job's weight, release plus duration for the rest: the better mixture of two bounds.

**Problem**: P | r_j, size_j, pmtn | sum w_j C_j, sum w_j (C_j - r_j), sum w_j max(C_j - d_j, 0), and the unweighted forms.
**Bound**: for any multipliers 0 <= u_j <= w_j

    min sum u_j M_j + sum u_j (p_j / 2 - c_j) + sum (w_j - u_j) max(0, r_j + p_j - c_j),

c_j = 0, r_j or the due date (see `optsched.bounds.sum_costs`), M_j the mean busy times on the fast machine.
**Proof**: split the cost as u_j + (w_j - u_j). The first part is at least u_j (C_j - c_j) >= u_j (M_j + p_j / 2 - c_j), as
in `optsched.bounds.mean_busy_time`, which is this bound with u = w; the second is at least its value when j never waits
(`release_plus_duration`, u = 0).
**Method**: the bound is concave in u, with the supergradient: by how much M_j + p_j / 2 - c_j exceeds the cost of never
waiting. Some steps of projected ascent in float arithmetic, scaled job by job as in AdaGrad, find good u, which are then
rounded to a grid and evaluated exactly. The ascent is heuristic, the bound is not: the verifier takes any u, 0 <= u <= w.
**Complexity** O(n log n) a step.
**Reference**: Lagrangian duality over the mean-busy-time polyhedron of Goemans et al., SIAM J. Discrete Math.
15 (2002), 165-192.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.bounds.best_bound import best_over_machines, lower_bound
from optsched.bounds.certificate import (
    Certificate,
    CertificateError,
    data_integer,
    register_kind,
    require_same,
)
from optsched.bounds.fast_machine import priority_run
from optsched.bounds.gang_machine import GangMachine
from optsched.bounds.grid import GridJobs, on_grid
from optsched.bounds.mean_busy_time import bound_with, proved, weights_on_grid
from optsched.bounds.sum_costs import COMPLETION, FLOW, TARDINESS, SumCosts, sum_costs
from optsched.bounds.verifier import MAX_EXPONENT, Machine, Times, machine_of, times_of
from optsched.problem.instance import Instance

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

KIND = "split-busy-time"
OBJECTIVES = (*COMPLETION, *FLOW, *TARDINESS)
SHARE_BITS = 6  # multipliers are multiples of w_j / 64 where the weights leave room
STEPS, FEWEST_STEPS, JOB_STEPS = 200, 12, 100_000  # of ascent: as many as JOB_STEPS allow within the two limits
FIRST_MOVE = 0.3  # of a share of the weight
TOO_MANY = 200_000  # jobs


@lower_bound(KIND, objectives=OBJECTIVES, statement="mean busy times and release plus duration, mixed job by job")
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """The best certificate over thresholds; None above 200,000 jobs. Data: machine, grids, multipliers u_j 2**m."""
    if instance.n > TOO_MANY:
        return None
    costs = sum_costs(instance, objective)
    weight, exponent = weights_on_grid(costs.weight, SHARE_BITS)

    def prove(machine: GangMachine) -> tuple[Fraction, dict[str, Any]]:
        jobs = on_grid(costs.release, costs.duration, machine)
        with np.errstate(all="ignore"):  # of times near the ends of the floats nothing but the direction suffers
            share = best_shares(costs, jobs)
        multiplier = np.where(jobs.work > 0, np.floor(weight * share), 0).astype(np.int64)
        value, bits = bound_with(costs, jobs, multiplier, exponent)
        data = {**jobs.data(), **costs.data(), "multiplier_exponent": exponent, "held_up_bits": bits}
        return value, {**data, "multipliers": multiplier.tolist()}

    return best_over_machines(instance, objective, schedule_class, KIND, prove)


def best_shares(costs: SumCosts, jobs: GridJobs) -> Floats:
    """u_j / w_j in multiples of 2**-SHARE_BITS, f64[n]: the best that the ascent meets (float arithmetic)."""
    share = np.zeros(costs.weight.size)
    used = np.flatnonzero((jobs.work > 0) & (costs.weight > 0))
    used = used[np.argsort(jobs.release[used], kind="stable")]
    if used.size == 0:
        return share
    release, work, weight = jobs.release[used], jobs.work[used], costs.weight[used]
    tick = float(jobs.tick)
    never = np.maximum(costs.release + costs.duration - costs.counted, 0.0)[used]
    fixed = (costs.duration / 2 - costs.counted)[used] + tick * jobs.origin - never
    part, best, best_gain = np.ones(used.size), np.zeros(used.size), 0.0
    squares = np.zeros(used.size)
    for _ in range(min(max(JOB_STEPS // used.size, FEWEST_STEPS), STEPS)):
        part = np.round(part * 2**SHARE_BITS) / 2**SHARE_BITS
        excess = tick * rough_mean_busy_times(release, work, part * weight) + fixed
        gain = float((part * weight) @ excess)
        if gain > best_gain:
            best, best_gain = part, gain
        squares += (weight * excess) ** 2
        part = np.clip(part + FIRST_MOVE * np.nan_to_num(weight * excess / np.sqrt(squares)), 0.0, 1.0)
    share[used] = best
    return share


def rough_mean_busy_times(release: Ints, work: Ints, multiplier: Floats) -> Floats:
    """M_j in ticks, f64[n], of jobs in order of release: for searches, where ties and last bits do not matter."""
    order = np.argsort(work / multiplier, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    done, high, low = priority_run(release, work, rank)
    held_up = high.astype(np.float64) * 2.0**64 + low.astype(np.float64)
    return done - work / 2 - held_up / work


@register_kind(KIND, objectives=OBJECTIVES)
def verify(certificate: Certificate, instance: Instance) -> None:
    """Check 0 <= u <= w job by job, then evaluate the bound as the verifier of mean busy times does."""
    times = times_of(instance, certificate.objective)
    machine = machine_of(certificate, instance, times)
    exponent = data_integer(certificate, "multiplier_exponent", -MAX_EXPONENT, MAX_EXPONENT)
    multipliers = stated_multipliers(certificate, instance, times, machine, exponent)
    value, bits = proved(times, machine, multipliers, exponent)
    data = {**machine.data(), **times.data(), "multiplier_exponent": exponent, "held_up_bits": bits}
    require_same(certificate, value, {**data, "multipliers": multipliers})


def stated_multipliers(
    certificate: Certificate, instance: Instance, times: Times, machine: Machine, exponent: int
) -> list[int]:
    """``data["multipliers"]``, u_j 2**exponent; a `CertificateError` unless 0 <= u_j <= w_j, 0 without work."""
    multipliers = certificate.data.get("multipliers")
    if (
        not isinstance(multipliers, list)
        or len(multipliers) != instance.n
        or any(type(u) is not int for u in multipliers)
    ):
        raise CertificateError("value", f"data.multipliers must be a list of {instance.n} integers")
    up, down = max(exponent, 0), max(-exponent, 0)
    for j, u in enumerate(multipliers):
        weight = 0 if times.counted[j] is None or machine.work[j] == 0 else times.weight[j]
        if u < 0 or (u << down) * times.per_weight > weight << up:
            raise CertificateError(
                "dual-feasibility",
                f"data.multipliers[{j}] = {u} x 2^({-exponent}) is not in 0..{weight / times.per_weight}, the weight "
                f"of job {instance.ids[j]!r} on the machine",
            )
    return multipliers
