"""Theorems kv-mean-busy-time and kv-priced, of requests in rounds of length 1."""

from __future__ import annotations

from fractions import Fraction

from .certified_case import Proof
from .document_fields import Data, read_field
from .exact_numbers import integers
from .kv_cache_case import KvCacheCase
from .mean_busy_time_proof import EXACT, KEPT_BITS, densest_first
from .refusal import DUAL, UNJUDGED, need
from .tick_machine import served

MOST_WORK = 30_000_000  # starts of all requests: some ten seconds


def kv_mean_busy_time(case: KvCacheCase, data: Data) -> Proof:
    """Prove the least sum of mean moments of cells, and the distances from there to the ends.

    A machine with M cells a round serves the arrived request with the least volume over weight. Above 64 requests, mean
    moments of interrupted ones and distances are rounded down to 2^-32.

    Parameters
    ----------
    case
        What the certificate is about.
    data
        Not used.

    Returns
    -------
    tuple
        The value, and the data that the certificate must state.
    """
    need(not case.affine, "this theorem is for rounds of length 1", UNJUDGED)
    used = [i for i, w in enumerate(case.weight) if w]
    u, work = [case.weight[i] for i in used], [case.needs[i] for i in used]
    release = [case.release[i] // case.unit * case.cells for i in used]
    ends, gaps = served(release, work, densest_first(work, u, release))
    doubled = Fraction(sum(x * (2 * end - v) for x, end, v in zip(u, ends, work, strict=True)))
    counted = sum(w * c for w, c in zip(case.weight, case.moment, strict=True))
    if len(case.ids) <= EXACT:
        doubled -= sum((Fraction(u[k] * gap, work[k]) for k, gap in gaps.items()), Fraction(0))
        beyond = sum((case.weight[i] * case.offset(i) for i in used), Fraction(0))
    else:
        doubled -= Fraction(
            2 * sum(u[k] * -((-gap << KEPT_BITS) // (2 * work[k])) for k, gap in gaps.items()), 1 << KEPT_BITS
        )
        kept = sum(int(case.weight[i] * case.offset(i) * (1 << KEPT_BITS)) for i in used)
        beyond = Fraction(kept, 1 << KEPT_BITS)
    value = doubled / (2 * case.cells) + beyond - Fraction(counted, case.unit)
    return value / case.shares, {"rounded": len(case.ids) > EXACT}


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
