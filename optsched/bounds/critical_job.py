"""The job that is alone the last to end: the makespan is at least its release plus its duration.

**Problem**: P | r_j, size_j, pmtn | C_max; also where jobs with interference share GPUs.
**Bound**: ``max (r_j + p_j)``, exact in the float64 data.
**Proof**: C_max >= C_j >= r_j + p_j for every j. **Complexity** O(n).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import SHARED_CLASSES, Certificate, CertificateError, register_kind, require_same
from optsched.bounds.sum_costs import two_sum
from optsched.problem.instance import Instance
from optsched.speeds.duration import seconds_alone

KIND = "critical-job"


@lower_bound(KIND, objectives=["makespan"], classes=SHARED_CLASSES, statement="C_max >= r_j + p_j for every j")
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate:
    """The certificate; data: the job's id (None without jobs)."""
    value, job = Fraction(0), None
    if instance.n:
        # rounding is monotone: the largest sum is among those whose rounded sum is largest, and there the error decides
        end, error = two_sum(instance.arrival, seconds_alone(instance))
        last = np.flatnonzero(end == end.max())
        critical = int(last[np.argmax(error[last])])
        value = Fraction(float(end[critical])) + Fraction(float(error[critical]))
        job = instance.ids[critical]
    return Certificate(instance.digest, objective, schedule_class, KIND, value, {"job": job})


@register_kind(KIND, objectives=["makespan"], classes=SHARED_CLASSES)
def verify(certificate: Certificate, instance: Instance) -> None:
    """One job is proof enough; whichever is named, its own end must be the value."""
    job = certificate.data.get("job")
    value = Fraction(0)
    if job is not None or instance.n:
        if not isinstance(job, str) or job not in instance.index:
            raise CertificateError("value", f"data.job must be the id of a job, not {str(job)[:80]!r}")
        j = instance.index[job]
        value = Fraction(float(instance.arrival[j])) + Fraction(float(seconds_alone(instance)[j]))
    require_same(certificate, value, {"job": job})
