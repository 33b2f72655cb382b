"""The least time in which divisible jobs with several modes are done: the LP behind Hadar's and HadarE's makespan bounds.

Sets: jobs j; modes m of a job (GPU types, allocations, nodes); resources r (GPUs of a type, nodes).
Data: v_j work (iterations); rate_m iterations/s of a mode; use_mr units of resource r held in it; c_r units there are.
Variables: time[m] >= 0 seconds spent in a mode; T the total time.

    min  T                                                                                        (0)
    s.t. sum_{m of j} rate_m time[m] >= v_j                       every job j                     (1)  done
         sum_m use_mr time[m] <= c_r T                            every resource r                (2)  capacity
         sum_{m of j} time[m] <= T                                every job j (``one_mode``)      (3)  alone

With ``one_mode`` a job is in one mode at a time; without it its modes may overlap (copies of a forked job).

Optimum: a lower bound on the makespan of every schedule, preempted or not, whose allocations are among the modes
(add up the time each job spends in each mode). Attained when all resources are single nodes (`hadar_e_forking`).
Dual: max sum_j v_j p_j with p_j rate_m <= q_j + sum_r use_mr k_r for all modes, sum_j q_j + sum_r c_r k_r <= 1, q = 0
without ``one_mode``; `makespan_certificate` takes k and q from a solver, computes p in fractions, and scales the
times so that they do all the work: an interval that holds whatever the solver's tolerances are.
Size: columns M + 1, rows 2 n + R, nonzeros those of the uses and 2 M.
Reference: Lawler and Labetoulle, J. ACM 25 (1978), 612-619 (unrelated machines).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from pyomo.core.expr import LinearExpression, MonomialTermExpression

from optsched.bounds.certificate import CertificateError, shown
from optsched.errors import InfeasibleError, InputError, check_legal
from optsched.models.fast_building import collector_paused, terms
from optsched.models.fraction_readings import readings
from optsched.problem.arrays import Floats

NAME = "makespan-modes"


@dataclass(frozen=True, slots=True)
class WorkMode:
    """A way to run: ``rate`` iterations/s > 0 while ``use`` = ((resource, units), ...) is held."""

    rate: float
    use: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class ModeJobs:
    """``work`` v_j > 0 iterations; ``modes[j]``; ``capacity`` c_r units; ``one_mode``: is a job in one mode at a time?

    Raises `InputError` for numbers that are invalid, `InfeasibleError` for a job without modes.
    """

    work: tuple[float, ...]
    modes: tuple[tuple[WorkMode, ...], ...]
    capacity: tuple[int, ...]
    one_mode: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "work", tuple(float(v) for v in self.work))
        object.__setattr__(self, "capacity", tuple(int(c) for c in self.capacity))
        if not self.work or len(self.work) != len(self.modes):
            legal = "one or more jobs, and the modes of each"
            raise InputError("invalid", field="work", value=f"{len(self.work)} numbers", legal=legal)
        for j, (work, modes) in enumerate(zip(self.work, self.modes, strict=True)):
            check_legal(np.isfinite(work) and work > 0, "work", work, "finite and > 0", row=j)
            if not modes:
                raise InfeasibleError(f"job {j} runs in no mode: no makespan is long enough")
            for mode in modes:
                check_legal(np.isfinite(mode.rate) and mode.rate > 0, "rate", mode.rate, "finite and > 0", row=j)
                if not mode.use or any(u < 1 or self.capacity[r] < 1 for r, u in mode.use):
                    raise InputError("invalid", row=j, field="use", value=mode.use, legal="units of what there is")

    @property
    def n(self) -> int:
        """Number of jobs."""
        return len(self.work)

    @cached_property
    def flat(self) -> tuple[WorkMode, ...]:
        """All M modes, the jobs in order."""
        return tuple(mode for modes in self.modes for mode in modes)

    @cached_property
    def offset(self) -> tuple[int, ...]:
        """First mode of every job, and their number: n + 1 integers."""
        return tuple(np.cumsum([0, *(len(modes) for modes in self.modes)]).tolist())

    @cached_property
    def use(self) -> sp.csr_array:
        """Units held, f64[R, M] csr."""
        rows = [r for mode in self.flat for r, _ in mode.use]
        held = [float(u) for mode in self.flat for _, u in mode.use]
        start = np.cumsum([0, *(len(mode.use) for mode in self.flat)])
        return sp.csc_array((held, rows, start), shape=(len(self.capacity), len(self.flat))).tocsr()

    @property
    def scaled_rates(self) -> Floats:
        """rate_m / v_j, f64[M]: the part of its job that a second in a mode does; it makes the rows of (1) alike."""
        job = np.repeat(np.arange(self.n), np.diff(self.offset))
        return np.array([mode.rate for mode in self.flat]) / np.array(self.work)[job]


@collector_paused
def build(jobs: ModeJobs) -> pyo.ConcreteModel:
    """The Pyomo model: ``model.time[m]``, ``model.T``, ``model.done[j]``, ``model.capacity[r]``, ``model.alone[j]``."""
    model = pyo.ConcreteModel(NAME)
    model.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    model.time = pyo.Var(range(len(jobs.flat)), domain=pyo.NonNegativeReals)
    model.T = pyo.Var(domain=pyo.NonNegativeReals)
    time, own = list(model.time.values()), jobs.offset
    rated, use = terms(jobs.scaled_rates, time), jobs.use

    # (0)
    model.objective = pyo.Objective(expr=model.T)
    # (1), divided by v_j
    every = range(jobs.n)
    model.done = pyo.Constraint(every, expr={j: LinearExpression(rated[own[j] : own[j + 1]]) >= 1 for j in every})
    # (2)
    used = np.flatnonzero(np.diff(use.indptr)).tolist()
    rows = {}
    for r in used:
        part = slice(use.indptr[r], use.indptr[r + 1])
        held = terms(use.data[part], [time[m] for m in use.indices[part]])
        rows[r] = LinearExpression([*held, MonomialTermExpression((-float(jobs.capacity[r]), model.T))]) <= 0
    model.capacity = pyo.Constraint(used, expr=rows)
    # (3)
    if jobs.one_mode:
        stay = MonomialTermExpression((-1.0, model.T))
        model.alone = pyo.Constraint(
            every, expr={j: LinearExpression([*time[own[j] : own[j + 1]], stay]) <= 0 for j in every}
        )
    return model


def times(model: pyo.ConcreteModel) -> Floats:
    """Seconds in every mode of a solved Pyomo model, f64[M]."""
    return np.array([variable.value or 0.0 for variable in model.time.values()], dtype=np.float64)


def prices(model: pyo.ConcreteModel, jobs: ModeJobs) -> tuple[Floats, Floats]:
    """(k f64[R] of a unit of each resource, q f64[n] of each job's time) of a solved Pyomo model, from its suffix."""
    resource, job = np.zeros(len(jobs.capacity)), np.zeros(jobs.n)
    for r, row in model.capacity.items():
        resource[r] = -model.dual[row]
    if jobs.one_mode:
        for j, row in model.alone.items():
            job[j] = -model.dual[row]
    return resource, job


@dataclass(frozen=True)
class MakespanCertificate:
    """The LP's optimum is in [``lower``, ``upper``] seconds.

    ``resource_price`` k_r and ``job_price`` q_j prove ``lower``, the seconds ``time`` in every mode prove ``upper``.
    """

    resource_price: tuple[Fraction, ...]
    job_price: tuple[Fraction, ...]
    time: tuple[Fraction, ...]
    lower: Fraction
    upper: Fraction

    def verify(self, jobs: ModeJobs) -> None:
        """Prove both bounds again; `CertificateError` (dual-feasibility, value) when they do not hold."""
        numbers = (*self.resource_price, *self.job_price, *self.time)
        shape = (len(self.resource_price), len(self.job_price), len(self.time))
        if shape != (len(jobs.capacity), jobs.n, len(jobs.flat)) or any(number < 0 for number in numbers):
            raise CertificateError("dual-feasibility", "not one number >= 0 for every resource, job and mode")
        if not jobs.one_mode and any(self.job_price):
            raise CertificateError("dual-feasibility", "a price on the time of a job whose modes may overlap")
        lower = _lower(jobs, self.resource_price, self.job_price)
        if self.lower > lower:
            raise CertificateError("value", f"the prices prove {shown(lower)} s, not {shown(self.lower)} s")
        for j in range(jobs.n):
            if _done(jobs, j, self.time) < Fraction(jobs.work[j]):
                raise CertificateError("value", f"the times do not do the work of job {j}")
        upper = _upper(jobs, self.time)
        if self.upper < upper:
            raise CertificateError("value", f"the times need {shown(upper)} s, not {shown(self.upper)} s")


def makespan_certificate(
    jobs: ModeJobs, resource_price: Sequence[float], job_price: Sequence[float], time: Sequence[float]
) -> MakespanCertificate:
    """The interval that a solver's numbers prove (negative ones count as 0), the better of as they are and rounded.

    Raises `InputError` when the times do no work for a job.
    """
    own = job_price if jobs.one_mode else [0.0] * jobs.n
    lower, k, q = max(
        ((_lower(jobs, k, q), k, q) for k, q in zip(readings(resource_price), readings(own), strict=True)),
        key=lambda proof: proof[0],
    )
    spent = [_scaled(jobs, seconds) for seconds in readings(time) if _works(jobs, seconds)]
    if not spent:
        raise InputError("the times do no work for a job", field="time", legal="seconds > 0 in a mode of every job")
    upper, best = min(((_upper(jobs, seconds), seconds) for seconds in spent), key=lambda proof: proof[0])
    return MakespanCertificate(tuple(k), tuple(q), tuple(best), lower, upper)


def _works(jobs: ModeJobs, time: Sequence[Fraction]) -> bool:
    return all(_done(jobs, j, time) > 0 for j in range(jobs.n))


def _scaled(jobs: ModeJobs, time: Sequence[Fraction]) -> list[Fraction]:
    """The times of every job multiplied until they do all its work."""
    factor = [Fraction(work) / _done(jobs, j, time) for j, work in enumerate(jobs.work)]
    of_mode = (factor[j] for j, modes in enumerate(jobs.modes) for _ in modes)
    return [seconds * by for seconds, by in zip(time, of_mode, strict=True)]


def _lower(jobs: ModeJobs, k: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction:
    """sum_j v_j p_j over the sum of all prices: any prices prove a bound."""
    paid = sum(q, sum((c * price for c, price in zip(jobs.capacity, k, strict=True)), Fraction(0)))
    if not paid:
        return Fraction(0)
    earned = Fraction(0)
    for work, modes, own in zip(jobs.work, jobs.modes, q, strict=True):
        bills = (own + sum((u * k[r] for r, u in mode.use), Fraction(0)) for mode in modes)
        earned += Fraction(work) * min(bill / Fraction(mode.rate) for bill, mode in zip(bills, modes, strict=True))
    return earned / paid


def _upper(jobs: ModeJobs, time: Sequence[Fraction]) -> Fraction:
    """The least T of (2) and (3) for these times."""
    held = [Fraction(0)] * len(jobs.capacity)
    for mode, spent in zip(jobs.flat, time, strict=True):
        for r, u in mode.use:
            held[r] += u * spent
    needed = [total / c for total, c in zip(held, jobs.capacity, strict=True) if total]
    if jobs.one_mode:
        needed += [sum(time[jobs.offset[j] : jobs.offset[j + 1]], Fraction(0)) for j in range(jobs.n)]
    return max(needed)


def _done(jobs: ModeJobs, j: int, time: Sequence[Fraction]) -> Fraction:
    spent = time[jobs.offset[j] : jobs.offset[j + 1]]
    return sum((Fraction(mode.rate) * x for mode, x in zip(jobs.modes[j], spent, strict=True)), Fraction(0))
