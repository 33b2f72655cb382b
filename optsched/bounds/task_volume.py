"""What is left of compute, or of bytes to send, from a moment on: the makespan of jobs with tasks.

**Problem**: jobs with tasks (class ``task-sharing``); C_max.
**Bound**: for a set S of jobs, ``min_S release + sum_S width x seconds / capacity + min_S tail``, on the GPUs (release r_j,
n_j I_j t_j of G, tail c_j) or on the network interfaces (r_j + t_j + a, m_j I_j beta M_j of N, 0); see
`optsched.bounds.task_times`. S: the jobs with release >= R and tail >= Q, with the best R and Q.
**Proof**: nothing of S is done before the first release, capacity units of it a second afterwards, and the job of S that
is the last to be done completes its own tail later.
**Tight**: the best S of this form gives the optimum of 1 | r_j, q_j, pmtn | C_max on the machine (Jackson's rule; Horn,
Naval Research Logistics 21 (1974), 177-185), so no other S says more of one resource.
**Complexity** O(n log n + n D) for D different tails, as many as there are kinds of transfers.
**Reference**: derived here.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import TASK_SHARING_CLASSES, Certificate, ratio_text, register_kind
from optsched.bounds.exact_dot import exact_dot
from optsched.bounds.proof import prove
from optsched.bounds.sum_costs import MAKESPAN
from optsched.bounds.task_times import Resource, task_times
from optsched.problem.instance import Instance

KIND = "task-volume"
OBJECTIVES = (MAKESPAN,)


@lower_bound(
    KIND,
    objectives=OBJECTIVES,
    classes=TASK_SHARING_CLASSES,
    statement="a moment plus compute or bytes still to come, over all GPUs or interfaces",
)
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """The better of the two resources; None where nobody computes or sends. Data: resource, least release, least tail."""
    if not instance.at_task_level:
        return None
    times = task_times(instance)
    proofs = [_best(resource) for resource in (times.gpus, times.links) if resource.used.any()]
    if not proofs:
        return None
    return Certificate(instance.digest, objective, schedule_class, KIND, *max(proofs, key=lambda proof: proof[0]))


def _best(resource: Resource) -> tuple[Fraction, dict[str, Any]]:
    # R and Q are looked for in floats; their bound is then exact
    order = np.argsort(resource.release, kind="stable")
    order = order[resource.used[order]]
    release, tail = resource.release[order], resource.tail[order]
    seconds = (resource.width * resource.seconds)[order] / resource.capacity
    found = []
    for least in np.unique(tail).tolist():
        ends = release + np.cumsum(np.where(tail >= least, seconds, 0.0)[::-1])[::-1] + least
        ends[tail < least] = -np.inf
        first = int(np.argmax(ends))
        found.append((float(ends[first]), float(release[first]), least))
    _, moment, least = max(found)
    chosen = resource.used & (resource.release >= moment) & (resource.tail >= least)
    volume = exact_dot(resource.width[chosen].astype(np.float64), resource.seconds[chosen]) / resource.capacity
    start, end = Fraction(float(resource.release[chosen].min())), Fraction(float(resource.tail[chosen].min()))
    data = {"resource": resource.name, "release": ratio_text(start), "tail": ratio_text(end)}
    return start + volume + end, data


register_kind(KIND, objectives=OBJECTIVES, classes=TASK_SHARING_CLASSES)(prove)
