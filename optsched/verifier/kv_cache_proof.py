"""Theorem kv-priced, of requests in rounds of length 1: prices of a cell by round."""

from __future__ import annotations

from fractions import Fraction

from .certified_case import Proof
from .document_fields import Data, read_field
from .kv_cache_case import KvCacheCase
from .refusal import DUAL, UNJUDGED, need

MOST_WORK = 30_000_000  # starts of all requests: some ten seconds


def kv_priced(case: KvCacheCase, data: Data) -> Proof:
    """Prove what requests cost and pay at least, less what all cells are worth, at prices of a cell by round.

    Parameters
    ----------
    case
        What the certificate is about.
    data
        Data of the certificate: ``prices``, an integer for every round from the first on, over ``unit``.

    Returns
    -------
    tuple
        The value, and the data that the certificate must state.
    """
    need(not case.affine, "this theorem is for rounds of length 1", UNJUDGED)
    unit = read_field(int, data, "unit", DUAL, least=1)
    prices: list[int] = read_field(list, data, "prices", DUAL)
    need(all(type(p) is int and p >= 0 for p in prices), "data.prices must be integers >= 0", DUAL)
    last, one = len(prices), case.unit
    sums, moments = [0], [0]  # of prices, and of prices times rounds, of all rounds before
    for t, p in enumerate(prices, 1):
        sums.append(sums[-1] + p)
        moments.append(moments[-1] + t * p)
    begins = [r // one for r in case.release]
    case.few(sum(max(last - a, 0) + 1 for a in begins), MOST_WORK, "starts")
    least = dict[tuple[int, int, int, int], int]()
    total = -case.cells * case.shares * sums[-1]
    for a, c, s, o, w in zip(begins, case.moment, case.prompt, case.output, case.weight, strict=True):
        key = a, s, o, w
        if key not in least:
            best = unit * w * max(a, last)
            for k in range(a, last):
                end = min(k + o, last)
                paid = (s - k) * (sums[end] - sums[k]) + moments[end] - moments[k]
                best = min(best, unit * w * k + case.shares * paid)
            least[key] = best
        total += least[key] + unit * w * (o - c // one)
    return Fraction(total, unit * case.shares), {"prices": prices, "unit": unit}
