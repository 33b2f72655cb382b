"""Lower bounds on the optimum, each a `Certificate` that proves itself again from the instance; a new one is a new file."""

from __future__ import annotations

from optsched.bounds.best_bound import BOUNDS, Bound, NoBoundError, bound, lower_bound
from optsched.bounds.certificate import KINDS, SCHEDULE_CLASSES, Certificate, CertificateError, register_kind

__all__ = [
    "BOUNDS",
    "KINDS",
    "SCHEDULE_CLASSES",
    "Bound",
    "Certificate",
    "CertificateError",
    "NoBoundError",
    "bound",
    "lower_bound",
    "register_kind",
]
