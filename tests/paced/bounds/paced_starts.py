"""The last of n jobs starts 10 (n - 1) seconds after the first at the earliest: C_max >= min r_j + 10 (n - 1) + min p_j."""

from fractions import Fraction

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import Certificate, register_kind, require_same
from optsched.problem.instance import Instance
from paced import APART


def _least(instance: Instance) -> Fraction:
    first, shortest = Fraction(float(instance.arrival.min())), Fraction(float(instance.duration.min()))
    return first + Fraction(APART) * (instance.n - 1) + shortest


@lower_bound("paced-starts", objectives=["makespan"], classes=["paced"], statement="starts are apart")
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate:
    """The certificate; it needs no data."""
    return Certificate(instance.digest, objective, schedule_class, "paced-starts", _least(instance), {})


@register_kind("paced-starts", objectives=["makespan"], classes=["paced"])
def verify(certificate: Certificate, instance: Instance) -> None:
    """The same from the instance alone."""
    require_same(certificate, _least(instance), {})
