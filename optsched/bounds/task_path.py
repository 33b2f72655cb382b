"""No job with tasks completes before its release plus its path: every iteration computes, then sends.

**Problem**: jobs with tasks (class ``task-sharing``); sum w_j C_j, sum w_j (C_j - r_j), sum w_j max(C_j - d_j, 0), the
unweighted forms, and C_max.
**Bound** K2: ``sum w_j max(0, r_j + L_j - c_j)`` with c_j = 0, r_j or the due date; for C_max ``max (r_j + L_j)``; L_j is
the path of `optsched.bounds.task_times`.
**Proof**: C_j >= r_j + L_j, and every term is nondecreasing in C_j.
**Guarantee** none. **Complexity** O(n). **Reference**: section 4.3 of this project's reference sheet on AdaDUAL.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import (
    TASK_SHARING_CLASSES,
    Certificate,
    CertificateError,
    register_kind,
    require_same,
)
from optsched.bounds.sum_costs import COMPLETION, FLOW, TARDINESS
from optsched.bounds.task_times import TaskTimes, task_certificate
from optsched.bounds.task_verifier import needs_of
from optsched.problem.instance import Instance

KIND = "task-path"
MAKESPAN = "makespan"
OBJECTIVES = (*COMPLETION, *FLOW, *TARDINESS, MAKESPAN)


@lower_bound(
    KIND,
    objectives=OBJECTIVES,
    classes=TASK_SHARING_CLASSES,
    statement="every C_j >= r_j + I_j (compute + transfer)",
)
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """The certificate; data: the flow constant, for flow-time objectives; the last job's id, for the makespan."""

    def prove(times: TaskTimes) -> tuple[Fraction, dict[str, Any]]:
        if objective != MAKESPAN:
            costs = times.costs(instance, objective)
            return costs.alone(costs.weight), costs.data()
        if not instance.n:
            return Fraction(0), {"job": None}
        pairs = zip(instance.arrival.tolist(), times.path.tolist(), strict=True)
        ends = [Fraction(release) + Fraction(path) for release, path in pairs]
        last = max(range(instance.n), key=ends.__getitem__)
        return ends[last], {"job": instance.ids[last]}

    return task_certificate(instance, objective, schedule_class, KIND, prove)


@register_kind(KIND, objectives=OBJECTIVES, classes=TASK_SHARING_CLASSES)
def verify(certificate: Certificate, instance: Instance) -> None:
    """Add the paths again in integers; of the makespan one job is proof enough, whichever is named."""
    needs = needs_of(instance)
    if certificate.objective != MAKESPAN:
        times = needs.times(instance, certificate.objective)
        require_same(certificate, times.cost_alone(), times.data())
        return
    job = certificate.data.get("job")
    if job is None and not instance.n:
        require_same(certificate, Fraction(0), {"job": None})
        return
    if not isinstance(job, str) or job not in instance.index:
        raise CertificateError("value", f"data.job must be the id of a job, not {str(job)[:80]!r}")
    j = instance.index[job]
    require_same(certificate, Fraction(float(instance.arrival[j])) + needs.path[j], {"job": job})
