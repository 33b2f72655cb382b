"""The fast machine of a cluster with several GPU types: a price on a second of every type, whatever runs there.

Job j has ``work_j`` units to do on gangs of g_j GPUs and takes ``a_jt`` seconds a unit when its whole gang is on type t
(infinite where it may not run). For prices omega_t >= 0, with c_t GPUs of type t in the cluster,

    v_j = work_j g_j min_t omega_t a_jt,     U = sum_t c_t omega_t,     p_j = v_j / U.

**Theorem.** Completion times of a schedule on the cluster are those of a preemptive schedule on one unit-speed machine
with works p_j.
**Proof.** A gang on GPUs of types S runs at most as fast as on any one of them: at a rate x <= 1 / a_jt for every t in S.
Its GPUs cost ``sum omega_t >= sum (omega_t a_jt) x >= g_j x min_t omega_t a_jt`` a second: at least v_j / work_j a unit of
work. All GPUs together cost U a second. So the machine that serves j with the share (its cost now) / U is never
over-committed, and has served it for p_j seconds, at least, when its work is done. Copies of a job that run at once add
up in cost as in work: the theorem holds for the class ``forking``, too. GPUs are counted for all jobs; nodes only
forbid schedules.

Equal prices and equal speeds give p_j = g_j d_j / G, the machine of `gang_machine` with threshold 1. Only ratios of
prices count.

Speeds are the floats ``1 / rate`` of `optsched.speeds.type_speeds`, taken as exact rationals, as in the engine. Prices in
certificates are integers; the grid of integers (`optsched.bounds.grid`) rounds down only, so all is exact.

**Reference**: section 4.3 of this project's reference sheet on Hadar; for one type the virtual machine of Luo et al.,
INFOCOM 2025.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.bounds.certificate import ratio_text, rounded_down
from optsched.bounds.gang_machine import GangMachine
from optsched.bounds.grid import GridJobs, grid_exponent
from optsched.bounds.sum_costs import TARDINESS, SumCosts, ends_after, sum_costs
from optsched.problem.instance import Instance
from optsched.speeds.duration import paces
from optsched.speeds.type_speeds import type_speeds

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
TypePrices = tuple[int, ...]

FORKING = "forking"
FEWEST_BITS, MOST_BITS, FREE_BITS = (
    8,
    24,
    46,
)  # of the largest price; of price x GPUs x seconds, to leave some to the grid
_TRIES, _TRIED_WORK = 120, 2_000_000  # evaluations of a search: at most the first, fewer for many jobs
_STEPS = (1.0, 0.5, 0.2, 0.07, 0.02)  # of a search, in powers of two


@dataclass(frozen=True, eq=False)
class TypedJobs:
    """n jobs of K kinds on T GPU types.

    ``pace`` f64[K, T]: seconds a unit of work takes a gang on that type, the least over placements (inf: none).
    ``gang`` i64[K], ``kind`` i64[n], ``work`` and ``release`` f64[n], ``capacity`` i64[T] GPUs.
    """

    types: tuple[str, ...]
    capacity: Ints
    pace: Floats
    gang: Ints
    kind: Ints
    work: Floats
    release: Floats

    @cached_property
    def exact_pace(self) -> list[dict[int, Fraction]]:
        """For every kind: type to seconds a unit of work, where it runs."""
        return [
            {t: Fraction(seconds) for t, seconds in enumerate(row) if math.isfinite(seconds)}
            for row in self.pace.tolist()
        ]

    def work_by_kind(self, work: Floats) -> Floats:
        """``work`` f64[n] added up by kind, f64[K]."""
        return np.bincount(self.kind, weights=work, minlength=self.gang.size).astype(np.float64)

    @cached_property
    def price_bits(self) -> int:
        """Bits of the largest price: what is not paid for exactly is lost to the bound, and so is time on a coarse grid."""
        if not self.work.size:
            return FEWEST_BITS
        longest = float(np.ptp(self.release)) + float(self.work @ self.pace.min(axis=1)[self.kind])
        used = math.frexp(longest)[1] + int(self.capacity.sum()).bit_length()
        return max(FEWEST_BITS, min(MOST_BITS, FREE_BITS - used))

    def alone(self, forking: bool) -> list[Fraction]:
        """The least seconds that a unit of work of every kind takes: as one gang, or on all GPUs at once."""
        if not forking:
            return [min(row.values()) for row in self.exact_pace]
        capacity = self.capacity.tolist()
        speeds = [sum(capacity[t] / seconds for t, seconds in row.items()) for row in self.exact_pace]
        return [gang / speed for gang, speed in zip(self.gang.tolist(), speeds, strict=True)]

    def total(self, prices: TypePrices) -> int:
        """U, the price of all GPUs."""
        return sum(price * int(count) for price, count in zip(prices, self.capacity, strict=True))

    def unit_cost(self, kind: int, prices: TypePrices, own: int = 0) -> Fraction:
        """``min_t a_t (own + g omega_t)`` of a kind, exactly: its GPUs, and its own seconds at the price ``own``."""
        gang = int(self.gang[kind])
        return min(seconds * (own + gang * prices[t]) for t, seconds in self.exact_pace[kind].items())

    def unit_costs(self, prices: TypePrices) -> list[Fraction]:
        """``g min_t omega_t a_t`` of every kind, exactly."""
        return [self.unit_cost(kind, prices) for kind in range(self.gang.size)]

    @property
    def width(self) -> Floats:
        """GPUs that a second of every kind on every type is charged for, f64[K, T]."""
        return np.repeat(self.gang[:, None].astype(np.float64), len(self.types), axis=1)

    def rough_costs(self, prices: TypePrices) -> Floats:
        """``v_j`` in floats, f64[n]."""
        with np.errstate(invalid="ignore"):
            priced = self.pace * np.array(prices, dtype=np.float64) * self.width
        unit = np.where(np.isfinite(self.pace), priced, np.inf).min(axis=1, initial=np.inf)
        return self.work * unit[self.kind]

    def rough_grid(self, prices: TypePrices) -> GridJobs:
        """The jobs of the machine, works in floats: for searches."""
        return self._grid(prices, self.rough_costs(prices), None)

    def grid(self, prices: TypePrices) -> GridJobs:
        """The jobs of the machine with works rounded down exactly. O(n) with integers of any length."""
        return self._grid(prices, self.rough_costs(prices), self.unit_costs(prices))

    def _grid(self, prices: TypePrices, cost: Floats, exact: list[Fraction] | None) -> GridJobs:
        total = self.total(prices)
        k = grid_exponent(self.release, cost, GangMachine(0, total, np.ones(cost.size, dtype=np.int64)))
        scale = math.ldexp(1.0, k)
        ticks = np.floor(self.release * scale).astype(np.int64)
        first = int(ticks.min()) if ticks.size else 0
        if exact is None:
            work = np.floor(cost * scale).astype(np.int64)
        else:
            work = np.array(_ticks(self.work, [exact[kind] for kind in self.kind], k), dtype=np.int64)
        return GridJobs(0, total, k, first * total, (ticks - first) * np.int64(total), work)


def _ticks(work: Floats, unit: list[Fraction], exponent: int) -> list[int]:
    up, down = max(exponent, 0), max(-exponent, 0)
    ticks = []
    for amount, cost in zip(work.tolist(), unit, strict=True):
        p, q = amount.as_integer_ratio()
        ticks.append(((p * cost.numerator) << up) // ((q * cost.denominator) << down))
    return ticks


def typed_jobs(instance: Instance) -> TypedJobs:
    """The kinds of an instance; `InputError` where a profile or a bandwidth is missing. O(n log n)."""
    paces(instance)  # says which job's seconds are out of range
    speeds = type_speeds(instance)
    together, spread = speeds.reachable
    with np.errstate(divide="ignore"):
        pace = 1.0 / np.maximum(together, spread)
    rows = np.column_stack([instance.gpus.astype(np.float64), pace])
    kinds, kind = np.unique(rows, axis=0, return_inverse=True)
    return TypedJobs(
        speeds.types,
        speeds.capacity,
        kinds[:, 1:],
        kinds[:, 0].astype(np.int64),
        kind.reshape(-1).astype(np.int64),
        instance.work,
        instance.arrival,
    )


def worth_pricing(instance: Instance, schedule_class: str) -> bool:
    """Do prices say more than the bounds for alike GPUs? For the class ``forking`` there are no others."""
    by_type = len(instance.cluster.gpu_types) > 1 and any(speeds.sees_types for speeds in instance.speeds)
    return schedule_class == FORKING or by_type


def forked_seconds(jobs: TypedJobs) -> list[float]:
    """The seconds that every job takes at least on all GPUs at once, rounded down."""
    unit = jobs.alone(forking=True)
    return [rounded_down(Fraction(work) * unit[kind]) for work, kind in zip(jobs.work.tolist(), jobs.kind, strict=True)]


def typed_costs(instance: Instance, objective: str, schedule_class: str, jobs: TypedJobs) -> SumCosts:
    """The costs of a sum objective; ``duration`` is what a job takes at least in a schedule of the class."""
    costs = sum_costs(instance, objective)
    if schedule_class != FORKING:
        return costs
    seconds = np.array(forked_seconds(jobs), dtype=np.float64)
    late = ends_after(costs.release, seconds, costs.counted) if objective in TARDINESS else costs.late
    return replace(costs, duration=seconds, late=late)


def price_data(jobs: TypedJobs, prices: TypePrices, grid: GridJobs) -> dict[str, Any]:
    """What a certificate says of prices and grid."""
    named = dict(zip(jobs.types, prices, strict=True))
    return {"prices": named, "capacity": grid.capacity, "grid_exponent": grid.exponent, "tick": ratio_text(grid.tick)}


def whole_prices(prices: Floats, bits: int) -> TypePrices | None:
    """The prices as integers up to ``2**bits`` without a common divisor; None when there is none above 0."""
    largest = float(prices.max(initial=0.0))
    if not 0 < largest < math.inf:
        return None
    whole = [int(price) for price in np.round(prices / largest * (1 << bits))]
    divisor = math.gcd(*whole)
    return tuple(price // divisor for price in whole)


def first_prices(jobs: TypedJobs) -> list[TypePrices]:
    """Where searches start: equal prices, mean speeds, mean relative speeds, fluid prices of all work."""
    from optsched.bounds.fluid_prices import fluid_prices  # scipy.optimize takes a while to import

    starts = [np.ones(len(jobs.types))]
    if jobs.work.size and len(jobs.types) > 1:
        speed = (1.0 / jobs.pace)[jobs.kind]
        starts.append(speed.mean(axis=0))
        starts.append((speed / speed.max(axis=1, keepdims=True)).mean(axis=0))
        starts.append(fluid_prices(jobs, jobs.work_by_kind(jobs.work))[0])
    whole = [whole_prices(start, jobs.price_bits) for start in starts]
    return list(dict.fromkeys(start for start in whole if start is not None))


def best_prices(jobs: TypedJobs, value: Callable[[TypePrices], float]) -> TypePrices:
    """Prices with a large ``value``: the best start, then one price at a time up and down by smaller and smaller factors.

    Any prices give a bound; the search only decides how good it is. Deterministic; at most `_TRIES` evaluations.
    """
    left = max(4, min(_TRIES, _TRIED_WORK // max(1, jobs.work.size)))
    known: dict[TypePrices, float] = {}

    def judged(prices: TypePrices) -> float:
        if prices not in known:
            known[prices] = value(prices)
        return known[prices]

    best = max(first_prices(jobs), key=judged)
    if len(jobs.types) == 1:
        return best
    for step in _STEPS:
        improved = True
        while improved and len(known) < left:
            improved = False
            for t in range(len(best)):
                for factor in (2.0**step, 2.0**-step):
                    changed = np.array(best, dtype=np.float64)
                    changed[t] *= factor
                    rival = whole_prices(changed, jobs.price_bits)
                    if rival is not None and len(known) < left and judged(rival) > judged(best):
                        best, improved = rival, True
    return best
