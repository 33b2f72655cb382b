"""Theorem first-come, of the largest flow time: no order on one machine has a smaller one than by r_j less tail."""

from __future__ import annotations

from .certified_case import Case, Proof
from .document_fields import Data
from .tick_machine import dues, served


def first_come(case: Case, data: Data) -> Proof:
    """Prove the largest flow time of a machine that serves the job with the least release less tail first.

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
    on = case.machine(data)
    due, used = dues(case.moment, case.unit, on), [j for j, work in enumerate(on.work) if work]
    moments = [due[j] for j in used]
    order = sorted(range(len(used)), key=moments.__getitem__)
    ends, _ = served([on.release[j] for j in used], [on.work[j] for j in used], order)
    late = max((end - moment for end, moment in zip(ends, moments, strict=True)), default=0)
    return max(late, 0) / on.second, on.stated
