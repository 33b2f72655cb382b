"""SRPT where jobs share GPUs: `typed_srpt` with a charge for every class of jobs.

**Problem**: jobs with interference, at most two on a GPU (class ``gpu-sharing``); sum C_j, sum (C_j - r_j), with weights in
layers (`optsched.bounds.weight_levels`).
**Bound** LB1: the sum of completion times of SRPT for the works p_j of `optsched.bounds.shared_machine` on one machine; jobs
with no work there cost at least r_j + e_j each, e_j their seconds alone at best. Flow times: minus ``sum w_j r_j``. Charges
and prices come from a search; any legal ones give a bound.
**Proof**: the theorem of `shared_machine`, and that of Schrage for the one machine. The grid rounds down only.
**Guarantee** none in general; exact for one-GPU jobs of equal weight on one GPU where xi = 2 (then sharing gains nothing).
**Complexity** O(n (log n + T)) a run, at most 122 runs for the search.
**Reference**: section 4.3 of this project's reference sheet on SJF-BSBF; Schrage, Operations Research 16 (1968), 687-690.
"""

from __future__ import annotations

from fractions import Fraction

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import GPU_SHARING_CLASSES, Certificate, ratio_text, register_kind, require_same
from optsched.bounds.shared_machine import SharedMachineJobs, best_start, shared_jobs
from optsched.bounds.shared_verifier import charges_of, shared_machine_of
from optsched.bounds.srpt import OBJECTIVES, layered, proved
from optsched.bounds.sum_costs import sum_costs
from optsched.bounds.typed_machine import TypePrices, price_data
from optsched.bounds.typed_srpt import rough_value
from optsched.bounds.verifier import times_of
from optsched.bounds.weight_levels import levels_of, stated_levels
from optsched.problem.instance import Instance

KIND = "shared-srpt"


@lower_bound(
    KIND,
    objectives=OBJECTIVES,
    classes=GPU_SHARING_CLASSES,
    statement="SRPT on one machine, jobs that share GPUs at their best charges",
)
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """The certificate with the best charges found; data: them, prices, grid, levels of weight, flow constant."""
    jobs = shared_jobs(instance)
    if jobs is None:
        return None
    costs = sum_costs(instance, objective)
    levels = levels_of(costs.weight)

    def value(some: SharedMachineJobs, prices: TypePrices) -> float:
        return rough_value(costs, some.rough_grid(prices), levels)

    jobs, prices = best_start(jobs, value)
    grid = jobs.grid(prices)
    data = {**price_data(jobs, prices, grid), **jobs.data(), **costs.data()}
    data["levels"] = [ratio_text(Fraction(level)) for level in levels]
    return Certificate(instance.digest, objective, schedule_class, KIND, layered(costs, grid, levels), data)


@register_kind(KIND, objectives=OBJECTIVES, classes=GPU_SHARING_CLASSES)
def verify(certificate: Certificate, instance: Instance) -> None:
    """Try the charges on every pair, and run SRPT with a heap of Python integers."""
    times = times_of(instance, certificate.objective)
    machine, data = shared_machine_of(certificate, charges_of(certificate, instance), times)
    levels = stated_levels(certificate)
    data |= {**times.data(), "levels": [ratio_text(level) for level in levels]}
    require_same(certificate, proved(times, machine, levels), data)
