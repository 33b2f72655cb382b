"""No job completes before its release plus its duration: the bound of the schedule in which nobody waits.

**Problem**: P | r_j, size_j, pmtn | sum w_j C_j, sum w_j (C_j - r_j), sum w_j max(C_j - d_j, 0), and the unweighted forms;
also where jobs with interference share GPUs, since a partner only slows a job down.
**Bound**: ``sum w_j max(0, r_j + p_j - c_j)`` with c_j = 0, r_j or the due date; exact in the float64 data.
**Proof**: C_j >= r_j + p_j and every term is nondecreasing in C_j.
**Guarantee** none: with many jobs at once the optimum is any number of times larger. **Complexity** O(n).
"""

from __future__ import annotations

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import SHARED_CLASSES, Certificate, register_kind, require_same
from optsched.bounds.sum_costs import COMPLETION, FLOW, TARDINESS, sum_costs
from optsched.bounds.verifier import times_of
from optsched.bounds.word_verifier import Proved, in_words_or_integers, word_times
from optsched.problem.instance import Instance

KIND = "release-plus-duration"
OBJECTIVES = (*COMPLETION, *FLOW, *TARDINESS)


@lower_bound(KIND, objectives=OBJECTIVES, classes=SHARED_CLASSES, statement="every C_j >= r_j + p_j")
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate:
    """The certificate; data: the flow constant, for flow-time objectives."""
    costs = sum_costs(instance, objective)
    return Certificate(instance.digest, objective, schedule_class, KIND, costs.alone(costs.weight), dict(costs.data()))


@register_kind(KIND, objectives=OBJECTIVES, classes=SHARED_CLASSES)
def verify(certificate: Certificate, instance: Instance) -> None:
    """Add the terms again: as integers over one common denominator or, of very many jobs, in machine words."""
    require_same(certificate, *in_words_or_integers(_in_words, _in_integers, certificate, instance))


def _in_words(certificate: Certificate, instance: Instance) -> Proved:
    times = word_times(instance, certificate.objective)
    return times.alone(times.weight), times.data()


def _in_integers(certificate: Certificate, instance: Instance) -> Proved:
    times = times_of(instance, certificate.objective)
    return times.cost_alone(), times.data()
