"""SRPT on the machine that prices of GPU types give: `srpt` for clusters of several types, and for forked jobs.

**Problem**: jobs with a speed on each GPU type, rigid gangs, preemption; sum C_j, sum (C_j - r_j), with weights in layers.
**Bound** B1(omega): the sum of completion times of SRPT for works ``p_j(omega)`` on one machine (`typed_machine`); jobs
with no work there cost at least r_j + d_j each, d_j their seconds alone on the best type (class ``forking``: on all GPUs
at once). Flow times: minus ``sum w_j r_j``. The prices omega come from a search; any prices >= 0 give a bound.
**Proof**: the theorem of `typed_machine`, and that of Schrage for the one machine. The grid rounds down only.
**Guarantee** none for gangs; exact for forked jobs whose gang is one GPU on one type, with equal weights and any number of
copies: then the cluster is the machine. **Complexity** O(n (log n + T)) a run, at most 120 runs for the search.
**Reference**: section 4.3 of this project's reference sheet on Hadar; Schrage, Operations Research 16 (1968), 687-690.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import EXCLUSIVE_CLASSES, Certificate, ratio_text, register_kind, require_same
from optsched.bounds.fast_machine import srpt_completions
from optsched.bounds.grid import GridJobs
from optsched.bounds.srpt import OBJECTIVES, layered, proved
from optsched.bounds.sum_costs import SumCosts
from optsched.bounds.typed_machine import best_prices, price_data, typed_costs, typed_jobs, worth_pricing
from optsched.bounds.typed_verifier import speeds_of, typed_machine_of, typed_times
from optsched.bounds.weight_levels import levels_of, reduced, stated_levels, steps
from optsched.problem.instance import Instance

KIND = "typed-srpt"


@lower_bound(
    KIND,
    objectives=OBJECTIVES,
    classes=EXCLUSIVE_CLASSES,
    statement="SRPT on one machine, GPU types at their best prices",
)
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """The certificate with the best prices found; data: prices, grid, levels of weight, flow constant."""
    if not worth_pricing(instance, schedule_class):
        return None
    jobs = typed_jobs(instance)
    costs = typed_costs(instance, objective, schedule_class, jobs)
    levels = levels_of(costs.weight)
    prices = best_prices(jobs, lambda prices: rough_value(costs, jobs.rough_grid(prices), levels))
    grid = jobs.grid(prices)
    texts = [ratio_text(Fraction(level)) for level in levels]
    data = {**price_data(jobs, prices, grid), **costs.data(), "levels": texts}
    return Certificate(instance.digest, objective, schedule_class, KIND, layered(costs, grid, levels), data)


def rough_value(costs: SumCosts, grid: GridJobs, levels: list[float]) -> float:
    """`layered` in floats, but for the flow constant."""
    weight = np.where(grid.work > 0, reduced(costs.weight, levels), 0.0)
    value = float((costs.weight - weight) @ (costs.release + costs.duration))
    for level, height in steps(levels):
        chosen = weight >= level
        done = srpt_completions(grid.release[chosen], grid.work[chosen])
        value += float(height) * float(grid.tick) * (float(done.astype(np.float64).sum()) + done.size * grid.origin)
    return value


@register_kind(KIND, objectives=OBJECTIVES, classes=EXCLUSIVE_CLASSES)
def verify(certificate: Certificate, instance: Instance) -> None:
    """Price every job again in fractions, and run SRPT with a heap of Python integers."""
    speeds = speeds_of(instance)
    times = typed_times(certificate, instance, speeds)
    machine, data = typed_machine_of(certificate, speeds, times)
    levels = stated_levels(certificate)
    data |= {**times.data(), "levels": [ratio_text(level) for level in levels]}
    require_same(certificate, proved(times, machine, levels), data)
