"""The fast machine of a cluster with several GPU types: a price on a second of every type, whatever runs there.

Let job j have ``work_j`` units to do in its modes o (`optsched.bounds.modes`): a_o seconds a unit for n_o
GPUs of the type t_o. For prices omega_t >= 0, with G_t GPUs of type t in the cluster,

    v_j = work_j min_o omega_t(o) n_o a_o,     U = sum_t G_t omega_t,     p_j = v_j / U.

**Theorem.** Completion times of a schedule on the cluster are those of a preemptive schedule on one unit-speed machine
with works p_j.
**Proof.** At every moment the parts of its modes that j takes do the work that it does then, and each unit of it costs
v_j / work_j at least: omega_t n_o a second for 1 / a_o units. All jobs together pay for G_t GPUs of type t at most, hence
at most U a second. So the machine that serves j with the share (what it pays) / U is never over-committed, and has served
it for p_j seconds, at least, when its work is done. GPUs are counted for all jobs; nodes only forbid schedules.

Equal prices and equal speeds give p_j = n_j d_j / G, the machine of `gang_machine` with threshold 1. Only ratios of
prices count. Prices in certificates are integers; the grid of integers (`optsched.bounds.grid`) rounds down only, so all is
exact. C_j >= r_j + e_j with e_j the seconds of j's work at its fastest.

**Reference**: for one type the virtual machine of Luo et al., INFOCOM 2025; prices and several types are derived here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from optsched.bounds.certificate import ELASTIC_CLASSES, EXCLUSIVE_CLASSES
from optsched.bounds.modes import FORKING, Modes, modes_of_copies, modes_of_elastic, modes_of_gangs
from optsched.bounds.relaxation import FastMachine, Machines, Relaxation, Relaxed, Value, relaxation
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
    """Jobs with modes, on machines by prices."""

    modes: Modes

    def machines(self, value: Value, rounds: int = 1) -> Iterator[Machines]:
        """That of the best prices found; once more in every round, where there are prices to choose."""
        for _ in range(rounds if len(self.modes.types) > 1 else 1):
            yield (self.at(best_prices(self.modes, lambda prices: value(self.at(prices)))),)

    def ways(self) -> list[tuple[Modes, dict[str, Any]]]:
        """(modes, what else a certificate says) for bounds that need no machine."""
        return [(self.modes, {})]

    def at(self, prices: TypePrices) -> FastMachine:
        """The machine at some prices."""
        return machine_at(self.modes, prices, self.alone, dict)


def machine_at(modes: Modes, prices: TypePrices, alone: Floats, more: Callable[[], dict[str, Any]]) -> FastMachine:
    """The machine of modes at some prices; ``more``: what else a certificate says."""
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
    """``v_j`` in floats, f64[n]."""
    unit = modes.least(modes.gpu_seconds * np.array(prices, dtype=np.float64)[modes.gpu_type])
    return np.asarray(modes.work * unit[modes.kind], dtype=np.float64)


def total_price(modes: Modes, prices: TypePrices) -> int:
    """U, the price of all GPUs."""
    return sum(price * count for price, count in zip(prices, modes.capacity.tolist(), strict=True))


def unit_cost(modes: Modes, kind: int, prices: TypePrices, own: int = 0) -> Fraction:
    """``min_o a_o (own + n_o omega)`` of a kind, exactly: its GPUs, and its own seconds at the price ``own``."""
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
    """Bits of the largest price: what is not paid for exactly is lost to the bound, and so is time on a coarse grid."""
    if not modes.work.size:
        return FEWEST_BITS
    by_gangs = modes.least(modes.gpu_seconds) / modes.gang
    longest = float(np.ptp(modes.release)) + float(modes.work @ by_gangs[modes.kind])
    used = math.frexp(longest)[1] + int(modes.capacity.sum()).bit_length()
    return max(FEWEST_BITS, min(MOST_BITS, FREE_BITS - used))


def whole_prices(prices: Floats, bits: int) -> TypePrices | None:
    """The prices as integers up to ``2**bits`` without a common divisor; None when there is none above 0."""
    largest = float(prices.max(initial=0.0))
    if not 0 < largest < math.inf:
        return None
    whole = [int(price) for price in np.round(prices / largest * (1 << bits))]
    divisor = math.gcd(*whole)
    return tuple(price // divisor for price in whole)


def first_prices(modes: Modes) -> list[TypePrices]:
    """Where searches start: equal prices, mean speeds, mean relative speeds, fluid prices of all work."""
    from optsched.bounds.fluid_prices import fluid_prices  # scipy.optimize takes a while to import

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


def best_prices(modes: Modes, value: Callable[[TypePrices], float]) -> TypePrices:
    """Prices with a large ``value``: the best start, then one price at a time up and down by smaller and smaller factors.

    Any prices give a bound; the search only decides how good it is. Deterministic; at most `_TRIES` evaluations.
    """
    if len(modes.types) == 1:
        return (1,)
    left, bits = max(4, min(_TRIES, _TRIED_WORK // max(1, modes.work.size))), price_bits(modes)
    known: dict[TypePrices, float] = {}

    def judged(prices: TypePrices) -> float:
        if prices not in known:
            known[prices] = value(prices)
        return known[prices]

    best = max(first_prices(modes), key=judged)
    for step in _STEPS:
        improved = True
        while improved and len(known) < left:
            improved = False
            for t in range(len(best)):
                for factor in (2.0**step, 2.0**-step):
                    changed = np.array(best, dtype=np.float64)
                    changed[t] *= factor
                    rival = whole_prices(changed, bits)
                    if rival is not None and len(known) < left and judged(rival) > judged(best):
                        best, improved = rival, True
    return best


# --- the relaxations -----------------------------------------------------------------------------------------------------


def typed(instance: Instance, schedule_class: str) -> Priced | None:
    """Gangs where prices say more than the bounds for alike GPUs; forked jobs, of which there are no others."""
    if schedule_class == FORKING:
        modes = modes_of_copies(instance)
        return Priced(instance, modes.alone, modes)
    if len(instance.cluster.gpu_types) == 1 or not any(speeds.sees_types for speeds in instance.speeds):
        return None
    return Priced(instance, seconds_alone(instance), modes_of_gangs(instance))


def elastic(instance: Instance, schedule_class: str) -> Priced:
    """Jobs on any number of GPUs; those that are rigid, on their gangs."""
    modes = modes_of_elastic(instance)
    alone = seconds_alone(instance).copy()
    for speeds in instance.speeds:
        if speeds.elastic:
            alone[speeds.jobs] = modes.alone[speeds.jobs]
    return Priced(instance, alone, modes)


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
relaxation(Relaxation("forking", (FORKING,), typed, "copies on all GPUs at once", only=("alone",)))
relaxation(
    Relaxation(
        name="elastic",
        classes=ELASTIC_CLASSES,
        find=elastic,
        text="jobs on any number of GPUs, types at prices",
        names={"mean-busy-time": {}},
        modes=True,
    )
)
