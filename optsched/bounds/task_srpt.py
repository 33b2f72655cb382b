"""SRPT on all GPUs as one machine, or on all network interfaces as one: two bounds for jobs with tasks.

**Problem**: jobs with tasks (class ``task-sharing``); sum C_j and sum (C_j - r_j); with weights in layers
(`optsched.bounds.weight_levels`).
**Bound** K1 (``task-srpt``): SRPT for works n_j I_j t_j / G, plus c_j each: the last transfer follows the last compute.
N1 (``link-srpt``): SRPT for works m_j I_j beta M_j / N of the gangs that must span nodes, from r_j + t_j + a on. Jobs that
take nothing of the resource cost at least r_j + L_j. Flow times: minus ``sum w_j r_j``. Notation and relaxation:
`optsched.bounds.task_times`.
**Proof**: at every moment the shares of the resource add up to at most 1, so the jobs' last compute (byte) is done as in a
processor-sharing, hence preemptive schedule of one machine, where SRPT is optimal for the sum (Schrage). The grid rounds
down only (`optsched.bounds.grid`).
**Guarantee**: K1 is the optimum on one GPU with one-GPU jobs and equal weights when tasks may be preempted. N1 is void with
measured ratios of contention. **Complexity** O(n log n), a run per level.
**Reference**: Schrage, Operations Research 16 (1968), 687-690; section 4.3 of this project's reference sheet on AdaDUAL
(there K1 without the c_j).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import TASK_SHARING_CLASSES, Certificate, ratio_text, register_kind, require_same
from optsched.bounds.exact_dot import exact_dot
from optsched.bounds.srpt import OBJECTIVES, layered, proved
from optsched.bounds.task_times import GPUS, LINKS, TaskTimes, machine_data, task_certificate
from optsched.bounds.task_verifier import machine_of_needs, needs_of
from optsched.bounds.weight_levels import levels_of, reduced, stated_levels
from optsched.problem.instance import Instance

ON_GPUS, ON_LINKS = "task-srpt", "link-srpt"


@lower_bound(
    ON_GPUS,
    objectives=OBJECTIVES,
    classes=TASK_SHARING_CLASSES,
    statement="SRPT on one machine as fast as all GPUs",
)
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """K1; data: machine, grid, levels of weight, flow constant."""
    return _build(instance, objective, schedule_class, ON_GPUS, GPUS)


@lower_bound(
    ON_LINKS,
    objectives=OBJECTIVES,
    classes=TASK_SHARING_CLASSES,
    statement="SRPT on one machine as fast as all network interfaces, for gangs that must span nodes",
)
def build_links(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """N1; None where no gang must span nodes, or contention is measured. Data as of K1."""
    return _build(instance, objective, schedule_class, ON_LINKS, LINKS)


def _build(instance: Instance, objective: str, schedule_class: str, kind: str, name: str) -> Certificate | None:
    def prove(times: TaskTimes) -> tuple[Fraction, dict[str, Any]] | None:
        resource = times.resource(name)
        if not resource.used.any():
            return None
        costs, grid = times.costs(instance, objective), resource.grid()
        levels = levels_of(costs.weight)
        counted = np.where(grid.work > 0, reduced(costs.weight, levels), 0.0)
        value = layered(costs, grid, levels) + exact_dot(counted, resource.tail)
        texts = [ratio_text(Fraction(level)) for level in levels]
        return value, {**machine_data(name, grid), **costs.data(), "levels": texts}

    return task_certificate(instance, objective, schedule_class, kind, prove)


@register_kind(ON_LINKS, objectives=OBJECTIVES, classes=TASK_SHARING_CLASSES)
@register_kind(ON_GPUS, objectives=OBJECTIVES, classes=TASK_SHARING_CLASSES)
def verify(certificate: Certificate, instance: Instance) -> None:
    """Read the needs again, and run SRPT with a heap of Python integers; either resource is a proof."""
    needs = needs_of(instance)
    times = needs.times(instance, certificate.objective)
    machine, data = machine_of_needs(certificate, needs)
    levels = stated_levels(certificate)
    value = proved(times, machine, levels)
    tails = needs.jobs[str(data["resource"])]
    for level, below in zip(levels, [Fraction(0), *levels], strict=False):
        served = (j for j in times.with_weight(level) if machine.work[j] > 0)
        value += (level - below) * sum((tails[j].tail for j in served), Fraction(0))
    require_same(certificate, value, {**data, **times.data(), "levels": [ratio_text(level) for level in levels]})
