"""Theorem typed-makespan, shared-makespan, elastic-makespan: prices of GPU types and of jobs' own time.

After a moment jobs pay for the work that is left, GPUs and own time, no more than all of them cost for what is left of the
time (optsched/bounds/priced_machine.py).
"""

from __future__ import annotations

from fractions import Fraction

from .certified_case import Case, Proof
from .document_fields import LARGEST_PRICE, Data, read_field, read_ratio, whole, written
from .refusal import DUAL, need
from .stated_speeds import distinct


def priced_makespan(case: Case, data: Data) -> Proof:
    """Prove a moment plus the work that is left then, whatever was done before, at prices of GPUs and of jobs' own time.

    Parameters
    ----------
    case
        What the certificate is about.
    data
        Data of the certificate: ``moment``, ``own_prices``, and those of the prices.

    Returns
    -------
    tuple
        The value, and the data that the certificate must state.
    """
    moment, own = read_ratio(data.get("moment"), "data.moment"), read_field(dict, data, "own_prices")
    prices = case.prices(data)
    need(own.keys() <= set(case.ids), "data.own_prices must name jobs of the instance")
    legal = whole(own.values(), LARGEST_PRICE) and all(own.values()) and not (own and case.copies)
    need(legal, "data.own_prices must be integers > 0, below 2^64, of jobs that are not copied", DUAL)
    total = prices.capacity + sum(own.values())
    need(total > 0, "data.prices and data.own_prices are all 0", DUAL)
    # work that is left in 1 / (work_unit q unit fq), of jobs that are as fast as fp / fq and have the moment p / q
    p, q = moment.numerator * case.unit, moment.denominator
    speeds = {id(modes): case.fastest(modes) for modes in distinct(prices.modes)}
    worth, some, left_of = Fraction(0), not case.ids, dict.fromkeys(speeds, 0)
    for name, release, work, modes in zip(case.ids, case.release, case.work, prices.modes, strict=True):
        fastest = speeds[id(modes)]
        left = work * (q * case.unit * fastest.denominator)
        left -= max(p - release * q, 0) * fastest.numerator * case.work_unit
        if left > 0:
            some = True
            if name in own:
                parts = case.work_unit * q * case.unit * fastest.denominator
                worth += Fraction(left, parts) * prices.cost(modes, own[name])
            else:
                left_of[id(modes)] += left
    for modes in distinct(prices.modes):
        parts = case.work_unit * q * case.unit * speeds[id(modes)].denominator
        worth += Fraction(left_of[id(modes)], parts) * prices.cost(modes)
    need(some, "all work may be done by data.moment: it bounds nothing", DUAL)
    stated = {"moment": written(moment), "own_prices": own, **prices.stated}
    return moment + worth / total if case.ids else Fraction(0), stated
