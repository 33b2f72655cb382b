"""Prices of GPU types and of jobs' own time bound the makespan: the dual of the fluid problem, from a moment on.

**Problem**: jobs with a speed on each GPU type, rigid gangs, preemption; C_max.
**Bound**: for a moment t0 at which some job cannot be done yet, prices q_t >= 0 of a second of a GPU of type t and
z_j >= 0 of a second of job j's own time (class ``forking``: z = 0),

    t0 + sum_j left_j u_j / (sum_t c_t q_t + sum_j z_j),   u_j = min_t a_jt (z_j + g_j q_t),

a_jt seconds a unit of work takes on type t. ``left_j`` is the work that is left at t0 whatever was done before:
work_j for r_j >= t0, else ``work_j - (t0 - r_j) s_j`` where that is positive, s_j the fastest rate that the class allows.
**Proof**: let L = C_max - t0 > 0 and y_jt the GPU-seconds of j on type t after t0, divided by g_j. A gang on types S runs at
most as fast as on each of them alone, so the work of j after t0 is at most sum_t y_jt / a_jt (copies add up in both).
``sum_j g_j y_jt <= c_t L``; without copies also ``sum_t y_jt <= L``, since the gang holds g_j GPUs whenever it runs. Hence
sum_j left_j u_j <= sum_jt u_j y_jt / a_jt <= sum_jt y_jt (z_j + g_j q_t) <= L (sum_j z_j + sum_t c_t q_t).
**Relations**: all q equal and z = 0 is `volume`, one z alone is `critical_job`. For up to 100 jobs released together it is
the optimum of Gavel's makespan LP, up to the rounding of prices; mixed gangs gain nothing in it (fluid limit).
**Complexity**: few LPs with (K + 100) T rows for K kinds of jobs; O(n T) each to set up and to verify.
**Reference**: section 4.2 of this project's reference sheet on Hadar; D. Narayanan et al., OSDI 2020 (the primal problem).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import (
    EXCLUSIVE_CLASSES,
    Certificate,
    CertificateError,
    parse_ratio,
    ratio_text,
    register_kind,
    require_same,
)
from optsched.bounds.exact_dot import exact_sum
from optsched.bounds.typed_machine import FORKING, TypedJobs, TypePrices, typed_jobs, worth_pricing
from optsched.bounds.typed_verifier import LARGEST_PRICE, speeds_of, stated_prices
from optsched.problem.instance import Instance

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

KIND = "typed-makespan"
OWN_PRICES = 100  # jobs that may get a price of their own
FINENESS = 40  # bits of the largest price
ROUNDS = 4  # of (moment, prices)


@dataclass(frozen=True)
class Dual:
    """t0, q, and for some jobs (positions) z_j > 0."""

    moment: float
    prices: TypePrices
    own: dict[int, int]

    def data(self, instance: Instance, jobs: TypedJobs) -> dict[str, Any]:
        """As a certificate states it."""
        return {
            "moment": ratio_text(Fraction(self.moment)),
            "prices": dict(zip(jobs.types, self.prices, strict=True)),
            "own_prices": {instance.ids[j]: price for j, price in self.own.items()},
        }


@lower_bound(
    KIND,
    objectives=["makespan"],
    classes=EXCLUSIVE_CLASSES,
    statement="a moment plus the work left, GPU types at prices",
)
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """The certificate of the best moment and prices found; data: them, and the prices of single jobs' time."""
    if not worth_pricing(instance, schedule_class):
        return None
    jobs, forking = typed_jobs(instance), schedule_class == FORKING
    value, dual = best_dual(jobs, forking)
    return Certificate(instance.digest, objective, schedule_class, KIND, value, dual.data(instance, jobs))


def best_dual(jobs: TypedJobs, forking: bool) -> tuple[Fraction, Dual]:
    """(bound, the moment and prices that give it), of a few."""
    duals = _candidates(jobs, forking) if jobs.work.size else [Dual(0.0, (1,) * len(jobs.types), {})]
    return max(((_value(jobs, dual, forking), dual) for dual in duals), key=lambda pair: pair[0])


def _candidates(jobs: TypedJobs, forking: bool) -> list[Dual]:
    # Prices for a moment, then the release date from which on work costs most at these prices, and so on; beside it
    # the release of the job that ends last if none waits, and the last release of all.
    pace = np.array([float(seconds) for seconds in jobs.alone(forking)])[jobs.kind]
    critical = float(jobs.release[np.argmax(jobs.release + jobs.work * pace)])
    found = {moment: _dual_at(jobs, moment, forking, pace) for moment in {critical, float(jobs.release.max())}}
    moment = float(jobs.release.min())
    for _ in range(ROUNDS):
        if moment in found:
            break
        found[moment] = dual = _dual_at(jobs, moment, forking, pace)
        moment = _best_release(jobs, dual.prices)
    return list(found.values())


def _dual_at(jobs: TypedJobs, moment: float, forking: bool, pace: Floats) -> Dual:
    from optsched.bounds.fluid_prices import fluid_prices  # scipy.optimize takes a while to import

    left = np.maximum(jobs.work - np.maximum(moment - jobs.release, 0.0) / pace, 0.0)
    longest = np.argsort(-left * pace, kind="stable")[: 0 if forking else OWN_PRICES]
    longest = longest[left[longest] > 0]
    rest = left.copy()
    rest[longest] = 0.0
    q, z = fluid_prices(jobs, jobs.work_by_kind(rest), jobs.kind[longest], left[longest])
    largest = max(float(q.max(initial=0.0)), float(z.max(initial=0.0)))
    scale = float(1 << FINENESS) / largest
    own = {int(j): int(price * scale) for j, price in zip(longest, z, strict=True) if int(price * scale) > 0}
    prices = tuple(round(float(price) * scale) for price in q)
    return Dual(moment, prices, own)


def _best_release(jobs: TypedJobs, prices: TypePrices) -> float:
    order = np.argsort(jobs.release, kind="stable")
    cost = jobs.rough_costs(prices)[order] / max(jobs.total(prices), 1)
    release = jobs.release[order]
    return float(release[np.argmax(release + np.cumsum(cost[::-1])[::-1])])


def _value(jobs: TypedJobs, dual: Dual, forking: bool) -> Fraction:
    # Sums of works by kind; one by one only jobs released before the moment, and those with a price of their own.
    moment, alone = Fraction(dual.moment), jobs.alone(forking)
    came, single = jobs.release >= dual.moment, np.zeros(jobs.work.size, dtype=bool)
    single[list(dual.own)] = True
    whole = came & ~single
    unit = jobs.unit_costs(dual.prices)
    worth = sum((unit[k] * exact_sum(jobs.work[whole & (jobs.kind == k)]) for k in range(len(unit))), Fraction(0))
    some = bool(whole.any())
    for j in np.flatnonzero(~whole).tolist():
        kind, left = int(jobs.kind[j]), Fraction(float(jobs.work[j]))
        if not came[j]:
            left -= (moment - Fraction(float(jobs.release[j]))) / alone[kind]
        if left > 0:
            worth += left * jobs.unit_cost(kind, dual.prices, dual.own.get(j, 0))
            some = True
    return moment + worth / (jobs.total(dual.prices) + sum(dual.own.values())) if some else Fraction(0)


@register_kind(KIND, objectives=["makespan"], classes=EXCLUSIVE_CLASSES)
def verify(certificate: Certificate, instance: Instance) -> None:
    """Add the worth of the work that is left again, job by job in fractions."""
    speeds, forking = speeds_of(instance), certificate.schedule_class == FORKING
    moment = parse_ratio(certificate.data.get("moment"), "data.moment")
    prices, own = stated_prices(certificate, speeds), stated_own_prices(certificate, instance)
    if own and forking:
        raise CertificateError("dual-feasibility", "a forked job has more than a second of its own in a second")
    worth, latest = Fraction(0), None
    for j, release in enumerate(Fraction(r) for r in instance.arrival.tolist()):
        left = speeds.work[j]
        if release < moment:
            left -= (moment - release) * speeds.work[j] / speeds.fewest_seconds(j, forking)
        if left > 0:
            latest = moment
            unit = min(a * (own.get(j, 0) + speeds.gang[j] * prices[t]) for t, a in speeds.pace[j].items())
            worth += left * unit
    if latest is None and instance.n:
        raise CertificateError("dual-feasibility", "all work may be done by data.moment: it bounds nothing")
    total = sum(price * count for price, count in zip(prices, speeds.capacity, strict=True)) + sum(own.values())
    if total == 0:
        raise CertificateError("dual-feasibility", "data.prices and data.own_prices are all 0")
    value = Fraction(0) if latest is None else latest + worth / total
    named: dict[str, Any] = {name: certificate.data[name] for name in ("prices", "own_prices")}
    require_same(certificate, value, {"moment": ratio_text(moment), **named})


def stated_own_prices(certificate: Certificate, instance: Instance) -> dict[int, int]:
    """``data["own_prices"]`` by position of the job, integers > 0."""
    own = certificate.data.get("own_prices")
    if not isinstance(own, dict) or not all(name in instance.index for name in own):
        raise CertificateError("value", "data.own_prices must name jobs of the instance")
    if any(type(price) is not int or not 0 < price < LARGEST_PRICE for price in own.values()):
        raise CertificateError("dual-feasibility", "data.own_prices must be integers > 0, below 2**64")
    return {instance.index[name]: price for name, price in own.items()}
