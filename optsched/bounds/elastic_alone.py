"""No elastic job completes before its release plus the seconds that it takes on its best number of GPUs.

**Problem**: jobs on any number of GPUs (class ``elastic``) | sum w_j C_j, sum w_j (C_j - r_j), sum w_j max(C_j - d_j, 0),
the unweighted forms, and C_max.
**Bound**: `release_plus_duration` and `critical_job` with e_j of `optsched.bounds.elastic_machine` as duration; exact in the
float64 data. **Proof**: C_j >= r_j + e_j (there). **Guarantee** none. **Complexity** O(n) and the numbers e_j.
"""

from __future__ import annotations

from fractions import Fraction

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import Certificate, register_kind, require_same
from optsched.bounds.elastic_machine import ELASTIC, elastic_numbers, proved_numbers
from optsched.bounds.sum_costs import COMPLETION, FLOW, TARDINESS, costs_with
from optsched.bounds.verifier import times_of
from optsched.problem.instance import Instance

KIND = "elastic-alone"
MAKESPAN = "makespan"
SUMS = (*COMPLETION, *FLOW, *TARDINESS)
OBJECTIVES = (*SUMS, MAKESPAN)


@lower_bound(
    KIND, objectives=OBJECTIVES, classes=[ELASTIC], statement="every C_j >= r_j + work over the best of all rates"
)
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """The certificate; data: the flow constant, for flow-time objectives."""
    alone = elastic_numbers(instance).alone
    if objective == MAKESPAN:
        ends = (Fraction(r) + Fraction(e) for r, e in zip(instance.arrival.tolist(), alone.tolist(), strict=True))
        return Certificate(instance.digest, objective, schedule_class, KIND, max(ends, default=Fraction(0)), {})
    costs = costs_with(instance, objective, alone)
    return Certificate(instance.digest, objective, schedule_class, KIND, costs.alone(costs.weight), dict(costs.data()))


@register_kind(KIND, objectives=OBJECTIVES, classes=[ELASTIC])
def verify(certificate: Certificate, instance: Instance) -> None:
    """Add the terms again as integers over one common denominator."""
    alone = proved_numbers(instance)[0]
    if certificate.objective == MAKESPAN:
        times = times_of(instance, COMPLETION[0], alone)
        ends = map(sum, zip(times.release, times.duration, strict=True))
        require_same(certificate, Fraction(max(ends, default=0), times.per_second), {})
        return
    times = times_of(instance, certificate.objective, alone)
    require_same(certificate, times.cost_alone(), times.data())
