"""Theorem that nobody ever waits: release-plus-duration, critical-job, utility-alone, task-path, *-alone.

C_j >= r_j + p_j. A sum is at least that of all jobs alone, a maximum at least the term of the job that is named, and
sum w_j N_j / (C_j - r_j) at most that of all jobs alone.
"""

from __future__ import annotations

from fractions import Fraction

from .certified_case import Case, Proof
from .document_fields import Data
from .exact_numbers import integers
from .refusal import need

GAIN_BITS = 100  # of utility: terms are rounded up to multiples of 2^-100


def alone(case: Case, data: Data) -> Proof:
    """Prove the objective of jobs that never wait.

    Parameters
    ----------
    case
        What the certificate is about.
    data
        Data of the certificate: of a maximum ``job``, an id.

    Returns
    -------
    tuple
        The value, and the data that the certificate must state.
    """
    if case.objective == "total_utility":
        return _utility(case), {}
    if "total" in case.objective:
        return case.least, case.stated
    job = data.get("job")
    ends = [end for name, end in zip(case.ids, case.alone, strict=True) if name == job]
    need(ends or (not case.ids and job is None), "data.job must be the id of a job")
    return Fraction(max(ends, default=0), case.unit), {"job": job}


def _utility(case: Case) -> Fraction:
    works, unit = integers(case.amount)
    need(all(p > 0 for p in case.length), "a job takes no time: its utility has no bound")
    columns = zip(case.weight, works, case.length, strict=True)
    units = sum(-(-(w * work * case.unit << GAIN_BITS) // (case.shares * unit * p)) for w, work, p in columns)
    return Fraction(units, 1 << GAIN_BITS)
