"""The fast machine of a cluster with several GPU types: a price for a second of every type, whatever runs there.

Let job j have ``work_j`` units to do in its modes o (`optsched.bounds.modes`): a_o seconds a unit for n_o GPUs of the
type t_o. For prices omega_t >= 0, with G_t GPUs of type t in the cluster,

    v_j = work_j min_o omega_t(o) n_o a_o,     U = sum_t G_t omega_t,     p_j = v_j / U.

**Theorem.** Completion times of a schedule on the cluster are those of a preemptive schedule on one unit-speed machine
with works p_j.
**Proof.** At every moment the parts of its modes that j takes do the work that it does at that moment, and each unit of
it costs at least v_j / work_j: omega_t n_o a second for 1 / a_o units. All jobs together pay for at most G_t GPUs of
type t, hence at most U a second. So the machine that serves j with the share (its payment) / U is never over-committed,
and has served it for at least p_j seconds when its work is done. GPUs are counted for all jobs; nodes only forbid
schedules.

Equal prices and equal speeds give p_j = n_j d_j / G, the machine of `gang_machine` with threshold 1. Only ratios of
prices count. Prices in certificates are integers; the grid of integers (`optsched.bounds.integer_grid`) rounds down only, so
that all is exact. C_j >= r_j + e_j with e_j the seconds of j's work at its fastest.

**Reference**: for one type the virtual machine of Luo et al., INFOCOM 2025; prices and several types are derived here.

**Makespan**: prices of GPU types and of jobs' own time, the dual of the fluid problem, from a moment on.
**Problem**: jobs with modes (`optsched.bounds.modes`): a speed on each GPU type, copies, any number of GPUs, or
partners on shared GPUs; preemption; C_max.
**Bound**: for a moment t0 at which some job cannot be done yet, prices q_t >= 0 of a second of a GPU of type t and z_j
>= 0 of a second of job j's own time (class ``forking``: z = 0),

    t0 + sum_j left_j u_j / (sum_t G_t q_t + sum_j z_j),   u_j = min_o a_o (z_j + n_o q_t(o)),

mode o of j taking a_o seconds a unit of work for n_o GPUs of type t(o). ``left_j`` is the least work that can be left
at t0: work_j for r_j >= t0, else ``work_j - (t0 - r_j) s_j`` where that is positive, s_j the fastest rate that the
class allows.
**Proof**: let L = C_max - t0 > 0 and y_jo the seconds, in parts, that j spends in its mode o after t0. They do its
work: left_j <= sum_o y_jo / a_o (copies add up in both). ``sum n_o y_jo <= G_t L`` over all modes of type t, and one
mode at a time: ``sum_o y_jo <= L``. Hence sum_j left_j u_j <= sum_jo u_j y_jo / a_o <= sum_jo y_jo (z_j + n_o q_t(o))
<= L (sum_j z_j + sum_t G_t q_t).
**Relations**: all q equal and z = 0 is `volume` (`optsched.bounds.one_machine`), one z alone is `alone`. For up to 100
jobs released together it is the optimum of Gavel's makespan LP, up to the rounding of prices; mixed gangs gain nothing
in it (fluid limit).
**Complexity**: few LPs with (K + 100) rows a mode for K kinds of jobs; O(n) modes each to set up and to verify.
**Reference**: D. Narayanan et al., OSDI 2020 (the primal problem); the bound for all classes is derived here.

**Primal** (Gavel's makespan LP, Narayanan et al., OSDI 2020; y_jo seconds that j spends in its mode o: a_o seconds a
unit of work, n_o GPUs of the type t_o):

    min T   s.t.   sum_o y_jo / a_o >= work_j;   sum_o y_jo <= T;   sum_j,o: t_o = t n_o y_jo <= G_t T;   y >= 0.

**Dual** (q_t a second of one GPU of type t, z_j a second of job j's own time, u_j a unit of its work):

    max sum_j work_j u_j   s.t.   u_j <= a_o (z_j + n_o q_t(o));   sum_j z_j + sum_t G_t q_t <= 1;   all >= 0.

Jobs of one kind share their u if they have no z; only the jobs that would take longest alone get a z of their own. Any
q, z >= 0 are feasible after scaling: rounding costs a little value and no validity. HiGHS solves it, in the version of
scipy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from optsched.bounds.certificate import EXCLUSIVE_CLASSES, Proof, ratio_text
from optsched.bounds.exact_dot import exact_sum
from optsched.bounds.modes import Modes, modes_for, modes_of_gangs
from optsched.bounds.relaxation import FastMachine, Machines, Relaxation, Relaxed, Theorem, Value, relaxation, theorem
from optsched.bounds.sum_costs import MAKESPAN
from optsched.classes import CLASSES
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.speeds.duration import seconds_alone

TypePrices = tuple[int, ...]

FEWEST_BITS, MOST_BITS = 8, 24  # of the largest price
FREE_BITS = 46  # of price x GPUs x seconds, to leave some to the grid
_TRIES, _TRIED_WORK = 120, 2_000_000  # evaluations of a search: at most the first, fewer for many jobs
_STEPS = (1.0, 0.5, 0.2, 0.07, 0.02)  # of a search, in powers of two


@dataclass(frozen=True, eq=False)
class Priced(Relaxed):
    """Jobs with modes, on machines by prices of GPU types."""

    modes: Modes

    def machines(self, value: Value, rounds: int = 1) -> Iterator[Machines]:
        """Yield the machine of the best prices found; once more in every round, if there are prices to choose.

        Parameters
        ----------
        value
            Function from a machine to the bound that it gives, roughly.
        rounds
            Number of searches.
        """
        for _ in range(rounds if len(self.modes.types) > 1 else 1):
            yield (self.at(best_prices(self.modes, lambda prices: value(self.at(prices)))),)

    def ways(self) -> list[tuple[Modes, dict[str, Any]]]:
        """Return (modes, further facts of a certificate) for bounds that need no machine."""
        return [(self.modes, {})]

    def at(self, prices: TypePrices) -> FastMachine:
        """Return the machine at given prices.

        Parameters
        ----------
        prices
            Price of every GPU type.
        """
        return machine_at(self.modes, prices, self.alone, dict)


def machine_at(modes: Modes, prices: TypePrices, alone: Floats, more: Callable[[], dict[str, Any]]) -> FastMachine:
    """Return the machine of modes at given prices.

    Parameters
    ----------
    modes
        Modes of the jobs.
    prices
        Price of every GPU type.
    alone
        Least seconds that every job takes, f64[n].
    more
        Function that returns what a certificate states in addition to the prices.
    """
    return FastMachine(
        release=modes.release,
        seconds=rough_costs(modes, prices),
        width=np.ones(modes.work.size, dtype=np.int64),
        capacity=total_price(modes, prices),
        stated=lambda: {"prices": dict(zip(modes.types, prices, strict=True)), **more()},
        reach=alone,
        ticks=partial(_ticks, modes, prices),
    )


def rough_costs(modes: Modes, prices: TypePrices) -> Floats:
    """Return ``v_j`` in floats, f64[n].

    Parameters
    ----------
    modes
        Modes of the jobs.
    prices
        Price of every GPU type.
    """
    unit = modes.least(modes.gpu_seconds * np.array(prices, dtype=np.float64)[modes.gpu_type])
    return np.asarray(modes.work * unit[modes.kind], dtype=np.float64)


def total_price(modes: Modes, prices: TypePrices) -> int:
    """Return U, the price of all GPUs.

    Parameters
    ----------
    modes
        Modes of the jobs, with the GPUs of every type.
    prices
        Price of every GPU type.
    """
    return sum(price * count for price, count in zip(prices, modes.capacity.tolist(), strict=True))


def unit_cost(modes: Modes, kind: int, prices: TypePrices, own: int = 0) -> Fraction:
    """Return ``min_o a_o (own + n_o omega)`` of a kind, exactly: the cost of a unit of its work.

    Parameters
    ----------
    modes
        Modes of the jobs.
    kind
        Index of the kind.
    prices
        Price of every GPU type.
    own
        Price of a second of the job's own time.
    """
    return min(seconds * (own + gpus * prices[t]) for t, seconds, gpus in modes.by_kind[kind])


def _ticks(modes: Modes, prices: TypePrices, exponent: int) -> Ints:
    # v_j 2**exponent, rounded down exactly; with integers of any length
    units = [unit_cost(modes, kind, prices) for kind in range(len(modes.by_kind))]
    up, down = max(exponent, 0), max(-exponent, 0)
    pairs = [(unit.numerator << up, unit.denominator << down) for unit in units]
    ticks = []
    for amount, kind in zip(modes.work.tolist(), modes.kind.tolist(), strict=True):
        (p, q), (cost, per) = amount.as_integer_ratio(), pairs[kind]
        ticks.append(p * cost // (q * per))
    return np.array(ticks, dtype=np.int64)


# --- searches ------------------------------------------------------------------------------------------------------------


def price_bits(modes: Modes) -> int:
    """Return the bits of the largest price: a compromise between rounding of prices and a coarse grid of time.

    Parameters
    ----------
    modes
        Modes of the jobs.
    """
    if not modes.work.size:
        return FEWEST_BITS
    by_gangs = modes.least(modes.gpu_seconds) / modes.gang
    longest = float(np.ptp(modes.release)) + float(modes.work @ by_gangs[modes.kind])
    used = math.frexp(longest)[1] + int(modes.capacity.sum()).bit_length()
    return max(FEWEST_BITS, min(MOST_BITS, FREE_BITS - used))


def whole_prices(prices: Floats, bits: int) -> TypePrices | None:
    """Return prices as integers up to ``2**bits`` without a common divisor; None if no price is above 0.

    Parameters
    ----------
    prices
        Price of every GPU type, f64[T].
    bits
        Bits of the largest price.
    """
    largest = float(prices.max(initial=0.0))
    if not 0 < largest < math.inf:
        return None
    whole = [int(price) for price in np.round(prices / largest * (1 << bits))]
    divisor = math.gcd(*whole)
    return tuple(price // divisor for price in whole)


def first_prices(modes: Modes) -> list[TypePrices]:
    """Return prices from which searches start: equal, mean speeds, mean relative speeds, and fluid prices of all work.

    Parameters
    ----------
    modes
        Modes of the jobs.
    """
    starts = [np.ones(len(modes.types))]
    if modes.work.size and len(modes.types) > 1:
        speed = np.zeros((len(modes.by_kind), len(modes.types)))
        kind = np.repeat(np.arange(len(modes.by_kind)), np.diff(modes.start))
        np.maximum.at(speed, (kind, modes.gpu_type), modes.rate)
        speed = speed[modes.kind]
        starts.append(speed.mean(axis=0))
        starts.append((speed / speed.max(axis=1, keepdims=True)).mean(axis=0))
        starts.append(fluid_prices(modes, modes.work_by_kind(modes.work))[0])
    bits = price_bits(modes)
    whole = [whole_prices(start, bits) for start in starts]
    return list(dict.fromkeys(start for start in whole if start is not None))


def fluid_prices(
    modes: Modes, kind_work: Floats, own_kind: Ints | None = None, own_work: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the prices (q f64[T], z f64[m]) of the fluid problem; all ones and zeros if HiGHS gives up.

    Parameters
    ----------
    modes
        Modes of the jobs.
    kind_work
        Units of work by kind, f64[K], of jobs without prices of their own.
    own_kind
        Kinds of m jobs with prices of their own, i64[m].
    own_work
        Units of work of these jobs, f64[m].
    """
    from scipy.optimize import linprog  # imported where it is used: it takes longer than most runs
    from scipy.sparse import csr_array

    own_kind = np.zeros(0, dtype=np.int64) if own_kind is None else own_kind
    own_work = np.zeros(0) if own_work is None else own_work
    kinds, types, own = len(modes.by_kind), len(modes.types), own_kind.size
    # columns: q_t, z_j, u of kinds, u of single jobs; a row for every mode of a kind or job
    kind_of = np.concatenate([np.arange(kinds), own_kind])
    count = np.diff(modes.start)[kind_of]
    row = np.repeat(np.arange(kind_of.size), count)
    mode = np.arange(row.size) - np.repeat(np.cumsum(count) - count - modes.start[kind_of], count)
    fastest = modes.least(modes.pace)[kind_of]
    pace = modes.pace[mode] / fastest[row]  # u in units of a job's fastest pace: numbers near 1
    line = np.arange(row.size)
    with_z = row >= kinds
    entries = np.concatenate([np.ones(row.size), -pace * modes.gpus[mode], -pace[with_z]])
    columns = np.concatenate([types + own + row, modes.gpu_type[mode], types + row[with_z] - kinds])
    lines = np.concatenate([line, line, line[with_z]])
    norm = np.concatenate([modes.capacity.astype(np.float64), np.ones(own)])
    size = types + own + kinds + own
    lines = np.concatenate([lines, np.full(norm.size, row.size)])
    columns = np.concatenate([columns, np.arange(norm.size)])
    matrix = csr_array((np.concatenate([entries, norm]), (lines, columns)), shape=(row.size + 1, size))
    seconds = np.concatenate([kind_work, own_work]) * fastest
    gain = np.concatenate([np.zeros(types + own), seconds / max(float(seconds.max(initial=0.0)), 1e-300)])
    limit = np.zeros(row.size + 1)
    limit[-1] = 1.0
    solution = linprog(-gain, A_ub=matrix, b_ub=limit, bounds=(0, None), method="highs")
    if solution.x is None:
        return np.ones(types), np.zeros(own)
    return np.maximum(solution.x[:types], 0.0), np.maximum(solution.x[types : types + own], 0.0)


def best_prices(modes: Modes, value: Callable[[TypePrices], float]) -> TypePrices:
    """Return prices with a large ``value``.

    The search begins with the best start and moves one price at a time up and down by smaller and smaller factors. Any
    prices give a bound: the search only decides how good it is. It is deterministic, with at most `_TRIES` evaluations.

    Parameters
    ----------
    modes
        Modes of the jobs.
    value
        Function from prices to the bound that they give, roughly.
    """
    if len(modes.types) == 1:
        return (1,)
    left, bits = max(4, min(_TRIES, _TRIED_WORK // max(1, modes.work.size))), price_bits(modes)
    values: dict[TypePrices, float] = {}

    def judged(prices: TypePrices) -> float:
        if prices not in values:
            values[prices] = value(prices)
        return values[prices]

    best = max(first_prices(modes), key=judged)
    for step in _STEPS:
        improved = True
        while improved and len(values) < left:
            improved = False
            for t in range(len(best)):
                for factor in (2.0**step, 2.0**-step):
                    changed = np.array(best, dtype=np.float64)
                    changed[t] *= factor
                    rival = whole_prices(changed, bits)
                    if rival is not None and len(values) < left and judged(rival) > judged(best):
                        best, improved = rival, True
    return best


# --- makespan ------------------------------------------------------------------------------------------------------------

OWN_PRICES = 100  # jobs that may get a price of their own
FINENESS = 40  # bits of the largest price
ROUNDS = 4  # of (moment, prices)


class Dual(NamedTuple):
    """A dual solution: t0, q, and z_j > 0 for some jobs, by position."""

    moment: float
    prices: TypePrices
    own: dict[int, int]


def makespan(relaxed: Priced, objective: str) -> Proof:
    """Return the proof with the best moment and prices found.

    Its data are these, charges, and the prices of single jobs' time.

    Parameters
    ----------
    relaxed
        The relaxed instance.
    objective
        Name of the objective.
    """
    proofs = [(_value(modes, dual), modes, dual, more) for modes, more in relaxed.ways() for dual in _candidates(modes)]
    value, modes, dual, more = max(proofs, key=lambda proof: proof[0])
    own = {relaxed.instance.ids[j]: price for j, price in dual.own.items()}
    prices = dict(zip(modes.types, dual.prices, strict=True))
    return value, {"moment": ratio_text(Fraction(dual.moment)), "prices": prices, "own_prices": own, **more}


def _candidates(modes: Modes) -> list[Dual]:
    if not modes.work.size:
        return [Dual(0.0, (1,) * len(modes.types), {})]
    # Prices for a moment, then the release date from which on work costs most at these prices, and so on; beside it
    # the release of the job that ends last if none waits, and the last release of all.
    pace = np.array([float(seconds) for seconds in modes.fewest_seconds])[modes.kind]
    critical = float(modes.release[np.argmax(modes.release + modes.work * pace)])
    duals = {moment: _dual_at(modes, moment, pace) for moment in {critical, float(modes.release.max())}}
    moment = float(modes.release.min())
    for _ in range(ROUNDS):
        if moment in duals:
            break
        duals[moment] = dual = _dual_at(modes, moment, pace)
        order = np.argsort(modes.release, kind="stable")
        cost = rough_costs(modes, dual.prices)[order] / max(total_price(modes, dual.prices), 1)
        release = modes.release[order]
        moment = float(release[np.argmax(release + np.cumsum(cost[::-1])[::-1])])
    return list(duals.values())


def _dual_at(modes: Modes, moment: float, pace: Floats) -> Dual:
    left = np.maximum(modes.work - np.maximum(moment - modes.release, 0.0) / pace, 0.0)
    longest = np.argsort(-left * pace, kind="stable")[: 0 if modes.adds else OWN_PRICES]
    longest = longest[left[longest] > 0]
    rest = left.copy()
    rest[longest] = 0.0
    q, z = fluid_prices(modes, modes.work_by_kind(rest), modes.kind[longest], left[longest])
    largest = max(float(q.max(initial=0.0)), float(z.max(initial=0.0)))
    scale = float(1 << FINENESS) / largest
    own = {int(j): int(price * scale) for j, price in zip(longest, z, strict=True) if int(price * scale) > 0}
    prices = tuple(round(float(price) * scale) for price in q)
    return Dual(moment, prices, own)


def _value(modes: Modes, dual: Dual) -> Fraction:
    # Sums of works by kind; one by one only jobs released before the moment, and those with a price of their own.
    moment, alone = Fraction(dual.moment), modes.fewest_seconds
    came, single = modes.release >= dual.moment, np.zeros(modes.work.size, dtype=bool)
    single[list(dual.own)] = True
    whole = came & ~single
    unit = [unit_cost(modes, kind, dual.prices) for kind in range(len(modes.by_kind))]
    worth = sum((unit[k] * exact_sum(modes.work[whole & (modes.kind == k)]) for k in range(len(unit))), Fraction(0))
    any_left = bool(whole.any())
    for j in np.flatnonzero(~whole).tolist():
        kind, left = int(modes.kind[j]), Fraction(float(modes.work[j]))
        if not came[j]:
            left -= (moment - Fraction(float(modes.release[j]))) / alone[kind]
        if left > 0:
            worth += left * unit_cost(modes, kind, dual.prices, dual.own.get(j, 0))
            any_left = True
    return moment + worth / (total_price(modes, dual.prices) + sum(dual.own.values())) if any_left else Fraction(0)


STATEMENT = "a moment plus the work left, GPUs and own time at prices"
theorem(Theorem("makespan", (MAKESPAN,), STATEMENT, makespan, modes=True))


# --- the relaxations -----------------------------------------------------------------------------------------------------


def typed(instance: Instance, schedule_class: str) -> Priced | None:
    """Return the relaxation by prices for forked jobs, and for gangs whose speed depends on GPU types.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    schedule_class
        Name of the class of schedules.

    Returns
    -------
    Priced | None
        The relaxed instance; None for gangs on one GPU type, or whose speeds do not depend on types: the bounds for
        alike GPUs say as much. For forked jobs there are no other bounds.
    """
    if CLASSES.get(schedule_class).copies:
        [(modes, _)] = modes_for(instance, schedule_class)
        return Priced(instance, modes.alone, modes)
    if len(instance.cluster.gpu_types) == 1 or not any(speeds.sees_types for speeds in instance.speeds):
        return None
    return Priced(instance, seconds_alone(instance), modes_of_gangs(instance))


relaxation(
    Relaxation(
        name="typed",
        classes=EXCLUSIVE_CLASSES,
        find=typed,
        text="gangs or copies of them, GPU types at prices",
        names={"mean-busy-time": {}, "volume": {}, "alone": {}},
        modes=True,
    )
)
