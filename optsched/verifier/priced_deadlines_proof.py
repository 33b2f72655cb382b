"""Theorem priced-deadlines, of the largest slowdown: prices of GPUs over time at which deadlines cost too much.

A ratio R is a bound if the work of all jobs until r_j + R d_j costs more than all GPUs are worth
(optsched/bounds/priced_deadlines.py).
"""

from __future__ import annotations

from fractions import Fraction

from .certified_case import Case, Proof
from .document_fields import Data, read_ratio, written
from .fair_share_proof import share_of
from .priced_cells import Minima
from .priced_time_proof import few_cells
from .refusal import DUAL, need


def priced_deadlines(case: Case, data: Data) -> Proof:
    """Prove that with a smaller value the jobs pay more for their work than all GPUs are worth.

    Parameters
    ----------
    case
        What the certificate is about.
    data
        Data of the certificate: ``limit``, and those of the cells.

    Returns
    -------
    tuple
        The value, and the data that the certificate must state.
    """
    cells, rates, charged = few_cells(case, data)
    limit, proof = read_ratio(data.get("limit"), "data.limit"), Minima(cells, adds=case.copies)
    paid = Fraction(0)
    for r, work, share, options in zip(case.release, case.work, share_of(case), rates, strict=True):
        release = Fraction(r, case.unit)
        paid += proof.paid(Fraction(work, case.work_unit), release, release + limit * Fraction(share), options)
    need(paid > cells.worth(case.count), "data.limit: the jobs can pay for their work until then", DUAL)
    names = ("moments", "moment_exponent", "prices", "price_exponent")
    return limit, {"limit": written(limit), **{name: data[name] for name in names}, **charged}
