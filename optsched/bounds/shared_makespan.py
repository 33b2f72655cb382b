"""Prices of GPUs, of jobs' own time, and charges bound the makespan where jobs share GPUs: `typed_makespan` with charges.

**Problem**: jobs with interference, at most two on a GPU (class ``gpu-sharing``); C_max.
**Bound**: for a moment t0 at which some job cannot be done yet, charges c_jt of `optsched.bounds.shared_machine`, prices
q_t >= 0 of a second of a GPU of type t and z_j >= 0 of a second of job j's own time,

    t0 + sum_j left_j u_j / (sum_t G_t q_t + sum_j z_j),   u_j = min_t a_jt (z_j + n_j c_jt q_t),

with ``left_j`` the work that is left at t0 whatever was done before: work_j for r_j >= t0, else
``work_j - (t0 - r_j) s_j`` where that is positive, s_j the fastest rate of j alone.
**Proof**: let L = C_max - t0 > 0. At every moment after t0 j does x_j units of work a second with x_j a_jt <= 1 on each type
that it uses, and pays at least n_j x_j min_t q_t c_jt a_jt; all jobs together pay at most sum_t G_t q_t (`shared_machine`).
So u_j x_j <= z_j + (what j pays), and sum_j left_j u_j is at most the integral of sum_j u_j x_j over L seconds, at most
L (sum_j z_j + sum_t G_t q_t).
**Relations**: z = 0 is the volume sum n_j e_j c_j / G after a release date, one z alone is `critical_job`.
**Complexity**: few LPs; O(n T) each to set up and to verify.
**Reference**: section 4.3 of this project's reference sheet on SJF-BSBF (the volume); see `typed_makespan`.
"""

from __future__ import annotations

from fractions import Fraction

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import (
    GPU_SHARING_CLASSES,
    Certificate,
    CertificateError,
    parse_ratio,
    ratio_text,
    register_kind,
    require_same,
)
from optsched.bounds.shared_machine import charged_by_load, shared_jobs
from optsched.bounds.shared_verifier import Charges, charges_of
from optsched.bounds.typed_makespan import best_dual, stated_own_prices
from optsched.bounds.typed_verifier import stated_prices
from optsched.problem.instance import Instance

KIND = "shared-makespan"


@lower_bound(
    KIND,
    objectives=["makespan"],
    classes=GPU_SHARING_CLASSES,
    statement="a moment plus the work left, jobs that share GPUs at their best charges",
)
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """The certificate of the best moment and prices found; data: them, charges, and the prices of single jobs' time."""
    jobs = shared_jobs(instance)
    if jobs is None:
        return None
    tried = [jobs] if jobs.pairs.plain else [jobs, charged_by_load(jobs, jobs.load)]
    found = [(*best_dual(each, False), each) for each in (some.rounded() for some in tried)]
    value, dual, jobs = max(found, key=lambda each: each[0])
    return Certificate(
        instance.digest, objective, schedule_class, KIND, value, {**dual.data(instance, jobs), **jobs.data()}
    )


@register_kind(KIND, objectives=["makespan"], classes=GPU_SHARING_CLASSES)
def verify(certificate: Certificate, instance: Instance) -> None:
    """Try the charges on every pair, and add the worth of the work that is left, job by job in fractions."""
    charges = charges_of(certificate, instance)
    moment = parse_ratio(certificate.data.get("moment"), "data.moment")
    own = stated_own_prices(certificate, instance)
    prices = stated_prices(certificate, charges.speeds)
    total = sum(price * count for price, count in zip(prices, charges.speeds.capacity, strict=True)) + sum(own.values())
    if total == 0:
        raise CertificateError("dual-feasibility", "data.prices and data.own_prices are all 0")
    worth = _worth_left(instance, charges, moment, prices, own)
    if worth is None and instance.n:
        raise CertificateError("dual-feasibility", "all work may be done by data.moment: it bounds nothing")
    value = Fraction(0) if worth is None else moment + worth / total
    data = {name: certificate.data[name] for name in ("prices", "own_prices")}
    require_same(certificate, value, {"moment": ratio_text(moment), **data, **charges.data})


def _worth_left(
    instance: Instance, charges: Charges, moment: Fraction, prices: list[int], own: dict[int, int]
) -> Fraction | None:
    worth, some, speeds = Fraction(0), False, charges.speeds
    for j, release in enumerate(Fraction(r) for r in instance.arrival.tolist()):
        left = speeds.work[j]
        if release < moment:
            left -= (moment - release) / min(speeds.pace[j].values())
        if left > 0:
            some = True
            worth += left * charges.unit_cost(j, prices, own.get(j, 0))
    return worth if some else None
