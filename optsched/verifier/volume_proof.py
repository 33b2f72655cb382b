"""Theorem volume, of the makespan: on one machine, the work that comes at t or later is done after t."""

from __future__ import annotations

from .certified_case import Case, Proof
from .document_fields import Data


def volume(case: Case, data: Data) -> Proof:
    """Prove the end of the last busy period of a machine.

    Parameters
    ----------
    case
        What the certificate is about.
    data
        Data of the certificate: those of the machine.

    Returns
    -------
    tuple
        The value, and the data that the certificate must state.
    """
    on, end = case.machine(data), 0
    for j in sorted(range(case.n), key=on.release.__getitem__):
        end = max(end, on.release[j]) + on.work[j]
    return end / on.second, on.stated
