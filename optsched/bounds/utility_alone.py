"""Nobody gets more done a second than alone at full speed: the upper bound on total utility.

**Problem**: P | r_j, size_j, pmtn | max sum w_j N_j / (C_j - r_j), N_j the work (iterations, or seconds);
also where jobs with interference share GPUs.
**Bound**: ``sum w_j N_j / p_j``, p_j the fewest seconds that job j takes on any placement; terms rounded up to multiples of
2**-100. **Proof**: C_j >= r_j + p_j, and the term falls with C_j.
**Guarantee** none: with many jobs at once the optimum is any number of times smaller. **Complexity** O(n).
"""

from __future__ import annotations

from fractions import Fraction

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import SHARED_CLASSES, Certificate, register_kind, require_same
from optsched.problem.instance import Instance
from optsched.problem.objectives import GAIN_BITS
from optsched.speeds.duration import seconds_alone

KIND = "utility-alone"
OBJECTIVES = ("total_utility",)


@lower_bound(KIND, objectives=OBJECTIVES, classes=SHARED_CLASSES, statement="from above: every C_j >= r_j + p_j")
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate:
    """The certificate; it needs no data."""
    return Certificate(instance.digest, objective, schedule_class, KIND, _value(instance))


@register_kind(KIND, objectives=OBJECTIVES, classes=SHARED_CLASSES)
def verify(certificate: Certificate, instance: Instance) -> None:
    """Add the terms again."""
    require_same(certificate, _value(instance), {})


def _value(instance: Instance) -> Fraction:
    rows = zip(instance.weight.tolist(), instance.work.tolist(), seconds_alone(instance).tolist(), strict=True)
    scaled = sum(-int(-Fraction(w) * Fraction(work) * 2**GAIN_BITS // Fraction(p)) for w, work, p in rows)
    return Fraction(scaled, 2**GAIN_BITS)
