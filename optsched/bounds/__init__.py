"""Lower bounds on the optimum, each a `Certificate` that is verified from the instance; a new bound is a new file."""

from __future__ import annotations

from optsched.bounds.best_bound import BOUNDS, Bound, NoBoundError, bound, lower_bound
from optsched.bounds.certificate import KINDS, Certificate, CertificateError, register_kind

__all__ = [
    "BOUNDS",
    "KINDS",
    "Bound",
    "Certificate",
    "CertificateError",
    "NoBoundError",
    "bound",
    "lower_bound",
    "register_kind",
]
