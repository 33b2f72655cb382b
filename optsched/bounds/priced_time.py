"""Prices of GPUs over time, by type: each job pays for the GPUs that it takes, and ends when that is best for it.

**Problem**: every class of schedules of jobs that run as gangs, alone or sharing GPUs, in copies or on any number of
GPUs (`optsched.bounds.modes`, `shared_machine`), and of jobs with tasks | sum w_j C_j, sum w_j (C_j - r_j), sum w_j
max(C_j - d_j, 0), and the unweighted forms; and, from above, max sum w_j N_j / (C_j - r_j), whose negative is such a
sum.
**Bound**: cut time into C cells. For any prices omega_kt >= 0 of a second of a GPU of type t in cell k, 0 after the
last,

    sum_j m_j - sum_kt G_t length_k omega_kt,      m_j = min over all ways to run j alone of [ f_j(C_j) + what it pays ],

f_j the job's part of the objective; in a second of cell k in a mode with m GPUs of type t it pays m omega_kt.
**Proof**: take any schedule. At every moment its jobs can be given parts of their modes that do the work done at that
moment and pay for at most G_t GPUs of every type t (each class shows this), so that all payments together are at most
sum_kt G_t length_k omega_kt. Each job, with these parts, runs in one of its ways with the end C_j: its cost and its
payment are at least m_j. Add up. Preemption is neither needed nor excluded.
**Tasks**: GPUs and network interfaces take the place of the types. A job computes and sends in turns, and pays for both
as on average, less the savings of turns where prices change (proof: `task_times`).
**Computation of m_j**: for an end C the job buys the cheapest work of all moments of [r_j, C]. Modes of different speed
in one moment count by the additional cost of the faster one over its additional work (the lower hull of cost over
speed). In C this falls piecewise linearly, and f_j has one kink, or is concave (for utility): the minimum is at a
breakpoint.
**Relations**: omega = 0 is `alone` with the best type of every job. `mean_busy_time` lets the whole cluster be one
machine; this bound keeps types apart, and knows that a job that runs at full speed is alone on its GPUs. It sees no
gang sizes except in their sums, as all bounds here except those with thresholds (`gang_machine`).
**Method**: projected ascent on the prices (`priced_time_search`). Certificates hold the minima m_j, rounded down; the
verifier compares each with every moment at which the job may end, in fractions.
**Guarantee** none. **Complexity** O(n C T) a step, at most a thousand of them; for 16 to 512 jobs.
**Reference**: Lagrangian duality; Dyer and Wolsey, Discrete Appl. Math. 26 (1990), for one machine.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.bounds.certificate import Certificate, Proof
from optsched.bounds.modes import ALONE, Modes, modes_for
from optsched.bounds.priced_time_search import PricedTime, best_priced_time, responses
from optsched.bounds.proof import proved_bound
from optsched.bounds.sum_costs import SUMS, UTILITY, SumCosts, sum_costs
from optsched.classes import names_where
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance

KIND = "priced-time"
OBJECTIVES = (*SUMS, UTILITY)
# Fewer jobs have an optimum that is soon found, and shall not wait for the compiler; of more the proof takes long.
FEWEST_JOBS, MOST_JOBS = 16, 512
MOMENT_BITS, PRICE_BITS, MINIMUM_BITS = 53, 40, 60  # of the last moment: all; the largest price; the sum of all minima
# Minima are lower, since the search adds up floats: by a part of the numbers met, and of what the whole time would cost.
SAFE, SAFE_TIME = 2.0**-30, 2.0**-44


@proved_bound(
    KIND,
    objectives=OBJECTIVES,
    classes=names_where(verified=True),
    statement="jobs pay for GPUs by type and time",
)
def build(instance: Instance, objective: str, schedule_class: str) -> Proof | None:
    """Return the proof with the best prices found.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    objective
        Name of the objective.
    schedule_class
        Name of the class of schedules.

    Returns
    -------
    Proof | None
        The value, and as data moments, prices, the minimum of every job, and charges if GPUs are shared. None for few
        and for very many jobs, and if prices gain nothing.
    """
    if not FEWEST_JOBS <= instance.n <= MOST_JOBS:
        return None
    costs = _costs(instance, objective, schedule_class)
    if objective == UTILITY and not bool((costs.duration > 0).all()):
        return None
    proofs = (
        _proof(costs, way, priced)
        for way in modes_for(instance, schedule_class)
        if (priced := best_priced_time(costs, way[0])) is not None
    )
    sign = -1 if objective == UTILITY else 1
    return max(filter(None, proofs), key=lambda proof: sign * proof[0], default=None)


def priced_certificate(
    instance: Instance, objective: str, schedule_class: str, moments: Floats, price: Floats
) -> Certificate | None:
    """Return the certificate of given prices, for example the duals of an LP; None if they prove nothing.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    objective
        Name of the objective.
    schedule_class
        Name of the class of schedules.
    moments
        Ends of the cells in seconds, rising, the first no later than the first arrival, f64[C + 1].
    price
        Price of a second of a GPU of every type, in the order of `optsched.bounds.modes.Modes.types`, f64[C, T].
    """
    way = modes_for(instance, schedule_class)[0]
    proof = _proof(_costs(instance, objective, schedule_class), way, PricedTime(moments, price))
    return None if proof is None else Certificate(instance.digest, objective, schedule_class, KIND, *proof)


def _costs(instance: Instance, objective: str, schedule_class: str) -> SumCosts:
    return sum_costs(instance, objective, ALONE.of(schedule_class)(instance))


def _proof(costs: SumCosts, way: tuple[Modes, dict[str, Any]], priced: PricedTime) -> Proof | None:
    """Return the proof by prices; None if numbers are too far apart for floats."""
    modes, more = way
    rounded = Rounded(priced)
    proof = rounded.proof(costs, modes, responses(costs, modes, rounded.at), rounded.moments.size)
    if proof is None:
        return None
    return -proof[0] if costs.objective == UTILITY else proof[0], proof[1] | more


class Rounded:
    """Prices over time as a certificate states them: integers over powers of two.

    Parameters
    ----------
    priced
        Prices of GPUs.
    bits
        Bits of the largest price.
    own
        Prices of running jobs in the same unit, in addition to those of GPUs (`optsched.bounds.priced_gangs`), f64[P].

    Attributes
    ----------
    at
        The rounded prices of GPUs as floats.
    own_at
        The rounded prices of running jobs as floats.
    """

    def __init__(self, priced: PricedTime, bits: int = PRICE_BITS, own: Floats | None = None) -> None:
        price, own = priced.price, np.zeros(0) if own is None else own
        self.moments, self.moment_bits = integers(priced.moments, MOMENT_BITS)
        together, self.price_bits = integers(np.concatenate([price.reshape(-1), own]), bits)
        self.prices, self.own = together[: price.size].reshape(price.shape), together[price.size :]
        self.at = PricedTime(floats(self.moments, self.moment_bits), floats(self.prices, self.price_bits))
        self.own_at = floats(self.own, self.price_bits)

    def data(self, modes: Modes) -> dict[str, Any]:
        """Return moments and prices by type, as a certificate states them.

        Parameters
        ----------
        modes
            Modes of the jobs.
        """
        prices = {gpu: self.prices[:, t].tolist() for t, gpu in enumerate(modes.types)}
        data = {"moments": self.moments.tolist(), "moment_exponent": self.moment_bits}
        return data | {"prices": prices, "price_exponent": self.price_bits}

    def proof(
        self, costs: SumCosts, modes: Modes, response: tuple[Floats, Floats], many: int, own_paid: Any = 0
    ) -> Proof | None:
        """Return the bound and its data; None if floats are not exact enough.

        Parameters
        ----------
        costs
            Costs of the jobs.
        modes
            Modes of the jobs.
        response
            Least cost and payment of every job, and the largest number met on the way, f64[n] each.
        many
            Number of minima that are added up; it decides how many bits each of them keeps.
        own_paid
            Most that running jobs pay a second by prices of their own in every cell, in units of the prices, object[C].
        """
        least, largest = response
        if not np.isfinite(least + largest).all():
            return None
        dearest = max(float(self.at.price.max()), float(self.own_at.max(initial=0.0)))
        time = float(np.abs(self.at.moments).max()) * (costs.weight + (modes.most_gpus + bool(self.own.size)) * dearest)
        least = least - (SAFE * (largest + np.abs(least)) + SAFE_TIME * time)
        minima, bits = integers(least, MINIMUM_BITS - many.bit_length())
        paid = own_paid + (self.prices.astype(object) * modes.capacity.astype(object)).sum(axis=1)
        spent = int((np.diff(self.moments.astype(object)) * paid).sum())
        value = sum(minima.tolist()) / Fraction(2) ** bits - spent / Fraction(2) ** (self.moment_bits + self.price_bits)
        return value, {**self.data(modes), "minima": minima.tolist(), "minimum_exponent": bits}


def integers(values: Floats, bits: int) -> tuple[Any, int]:
    """Return floor(values * 2**e) and e, with a given number of bits for the largest value.

    Parameters
    ----------
    values
        Numbers, f64[...].
    bits
        Bits of the largest.
    """
    exponent = bits - math.frexp(float(np.abs(values).max(initial=0.0)))[1]
    return np.floor(np.ldexp(values, exponent)).astype(np.int64), exponent


def floats(values: Any, exponent: int) -> Floats:
    """Return the floats that integers over ``2**exponent`` stand for.

    Parameters
    ----------
    values
        Integers, i64[...].
    exponent
        Exponent of the denominator.
    """
    numbers: Floats = np.ldexp(values.astype(np.float64), -exponent)
    return numbers
