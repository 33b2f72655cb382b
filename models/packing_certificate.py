"""Proofs in fractions of the value of the packing LP: prices bound it from above, shares reach it from below.

**Upper bound.** Any prices k_q >= 0 with mu_j = max(0, max_s u_js - sum_q k_q w_q^js) are a feasible solution of
`hadar_dual`, so sum_j mu_j + sum_q c_q k_q is at least the optimum of the LP and of every integral choice of schedules.
Floats from a solver are taken as what they are, fractions, and the payoffs mu_j are computed from the prices: that
repairs whatever the solver's tolerances left.

**Lower bound.** Shares x_js >= 0 are scaled down job by job until every row holds in fractions.

Shares that reach the prices' value prove both optimal. Where the optimal prices are fractions with small denominators,
these are recovered, and the interval closes altogether.

Complexity: O(nonzeros) fractions, twice.
Reference: weak duality of linear programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from optsched.bounds.certificate import CertificateError, shown
from optsched.models.fraction_readings import readings
from optsched.models.hadar_packing import JobSchedule, Packing


@dataclass(frozen=True)
class PriceCertificate:
    """An upper bound on the packing LP: ``price`` k_q [Q], ``payoff`` mu_j [n], ``value`` = sum mu_j + sum c_q k_q."""

    price: tuple[Fraction, ...]
    payoff: tuple[Fraction, ...]
    value: Fraction

    def verify(self, packing: Packing) -> None:
        """Prove the bound again from the packing; `CertificateError` (dual-feasibility, value) when it does not hold."""
        if len(self.price) != packing.resources or len(self.payoff) != packing.jobs:
            raise CertificateError("dual-feasibility", "not one price a resource and one payoff a job")
        if any(number < 0 for number in (*self.price, *self.payoff)):
            raise CertificateError("dual-feasibility", "a price or payoff is negative")
        for j, of_job in enumerate(packing.schedules):
            for s, one in enumerate(of_job):
                gain = _gain(one, self.price)
                if self.payoff[j] < gain:
                    raise CertificateError(
                        "dual-feasibility", f"job {j}: schedule {s} gains {shown(gain)}, more than its payoff"
                    )
        sold = sum((c * k for c, k in zip(packing.capacity, self.price, strict=True)), Fraction(0))
        proved = sum(self.payoff, sold)
        if self.value < proved:
            raise CertificateError("value", f"the prices prove {shown(proved)}, not {shown(self.value)}")


@dataclass(frozen=True)
class ShareCertificate:
    """A lower bound on the packing LP: ``share[j][s]`` x_js, ``value`` = sum u_js x_js."""

    share: tuple[tuple[Fraction, ...], ...]
    value: Fraction

    def verify(self, packing: Packing) -> None:
        """Prove the bound again from the packing; `CertificateError` (value) when it does not hold."""
        if [len(of_job) for of_job in self.share] != [len(of_job) for of_job in packing.schedules]:
            raise CertificateError("value", "not one share a schedule")
        if any(x < 0 for of_job in self.share for x in of_job):
            raise CertificateError("value", "a share is negative")
        for j, of_job in enumerate(self.share):
            if sum(of_job) > 1:
                raise CertificateError("value", f"the shares of job {j} add up to more than 1")
        for q, (held, capacity) in enumerate(zip(_held(packing, self.share), packing.capacity, strict=True)):
            if held > capacity:
                raise CertificateError("value", f"resource {q} is held beyond its capacity")
        proved = _worth(packing, self.share)
        if self.value > proved:
            raise CertificateError("value", f"the shares prove {shown(proved)}, not {shown(self.value)}")

    @property
    def integral(self) -> bool:
        """Is every share 0 or 1, so that this is a choice of schedules?"""
        return all(x in (0, 1) for of_job in self.share for x in of_job)


def price_certificate(packing: Packing, price: Sequence[float]) -> PriceCertificate:
    """The upper bound that prices f64[Q] prove (negative ones count as 0), the better of them as they are and rounded."""
    return min((_of_prices(packing, k) for k in readings(price)), key=lambda certificate: certificate.value)


def share_certificate(packing: Packing, share: Sequence[float]) -> ShareCertificate:
    """The lower bound that shares f64[S] prove (in the order of `Packing.flat`), the better of as they are and rounded."""
    return max((_of_shares(packing, x) for x in readings(share)), key=lambda certificate: certificate.value)


def _gain(one: JobSchedule, price: Sequence[Fraction]) -> Fraction:
    gain = Fraction(one.utility)
    for q, w in one.demand:
        if price[q]:  # most are 0, and fractions are slow
            gain -= w * price[q]
    return gain


def _of_prices(packing: Packing, price: list[Fraction]) -> PriceCertificate:
    payoff = [max((_gain(one, price) for one in of_job), default=Fraction(0)) for of_job in packing.schedules]
    payoff = [max(mu, Fraction(0)) for mu in payoff]
    sold = sum((c * k for c, k in zip(packing.capacity, price, strict=True)), Fraction(0))
    return PriceCertificate(tuple(price), tuple(payoff), sum(payoff, sold))


def _of_shares(packing: Packing, flat: list[Fraction]) -> ShareCertificate:
    rest = iter(flat)
    share = [[next(rest) for _ in of_job] for of_job in packing.schedules]
    held = _held(packing, share)
    for j, of_job in enumerate(packing.schedules):
        used = {q for one, x in zip(of_job, share[j], strict=True) if x for q, _ in one.demand}
        # each resource comes down by at most what it is over, and so it fits
        factor = min((packing.capacity[q] / held[q] for q in used if held[q]), default=Fraction(1))
        total = sum(share[j], Fraction(0))
        factor = min(Fraction(1), factor, 1 / total if total else Fraction(1))
        share[j] = [x * factor for x in share[j]]
    shares = tuple(tuple(of_job) for of_job in share)
    return ShareCertificate(shares, _worth(packing, shares))


def _held(packing: Packing, share: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    held = [Fraction(0)] * packing.resources
    for of_job, shares in zip(packing.schedules, share, strict=True):
        for one, x in zip(of_job, shares, strict=True):
            for q, w in one.demand if x else ():
                held[q] += w * x
    return held


def _worth(packing: Packing, share: Sequence[Sequence[Fraction]]) -> Fraction:
    pairs = zip(packing.flat, (x for of_job in share for x in of_job), strict=True)
    return sum((Fraction(one.utility) * x for one, x in pairs if x), Fraction(0))
