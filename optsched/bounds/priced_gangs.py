"""Prices of running jobs over time: together they pay at most what the dearest set of gangs that fit can pay.

**Problem**: rigid gangs alone on their GPUs, of one type or several | sum w_j C_j, sum w_j (C_j - r_j), sum w_j max(C_j
- d_j, 0), and the unweighted forms. The bound is computed on request (``strong``), since the search takes up to a
minute.
**Bound**: cut time into C cells. For any prices omega_kt >= 0 of a second of a GPU of type t in cell k, and delta_jk >=
0 of a second in which job j runs there, both 0 outside the cells for which job j has prices,

    sum_j m_j - sum_k length_k (sum_t G_t omega_kt + D_k),      D_k = max over sets S of gangs with sum_S n_j <= G of
                                                                     sum_{j in S} delta_jk,

m_j the least over all ways to run j alone of its cost and payment: n_j omega_kt + delta_jk a second on type t.
**Proof**: take any schedule. A job on k_t GPUs of the types t takes parts k_t / n_j of its modes, which do no less work
(`optsched.bounds.modes`) and pay sum_t k_t omega_kt + delta_jk a second. The jobs that run at a moment of cell k are a
set S, so that they pay at most sum_t G_t omega_kt + D_k. The rest is that of `optsched.bounds.priced_time`.
**Relations**: delta_jk = n_j omega_k makes D_k <= G omega_k: the bound is never less than `priced_time` on the same
cells with as many GPUs as gangs can fill. `priced_time` lets a gang run on a part of its GPUs while others run; here a
gang of 32 GPUs runs whole or not at all, and cannot use 40 free ones while a gang of 64 runs. It is the Lagrangian dual
of the LP over configurations: in every cell a convex combination of sets of gangs that fit, for every job one of ways
to run (with preemption).
**Method**: prices by GPU first; then ascent with momentum on the prices of jobs, over finer and finer cells where more
gangs want to run than fit (`best_priced_gangs`). Certificates hold prices and the minima m_j, rounded down. The
verifier solves the knapsacks, in integers, and compares each minimum with every moment at which the job may end, in
fractions.
**Guarantee** none. **Complexity** O(P (G + T log P)) a step for P pairs of a job and a cell in which it may run.
**Reference**: knapsack duals of time-indexed programs: van den Akker, Hurkens, Savelsbergh, INFORMS J. Comput. 12
(2000); for gangs, and with job prices of their own, derived here.

This module also holds the search for prices of running jobs over time: responses of jobs to given prices, sets of gangs
that fit together, and ascent. It computes in floats only: the search decides how good the bound is, never whether it
holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from optsched.bounds import priced_time_search as by_gpu
from optsched.bounds.certificate import GANG_CLASSES, Proof
from optsched.bounds.modes import Modes, modes_of_gangs
from optsched.bounds.priced_time import Rounded
from optsched.bounds.priced_time_search import PricedTime, cheapest, scratch_for
from optsched.bounds.proof import proved_bound
from optsched.bounds.sum_costs import SUMS, SumCosts, sum_costs
from optsched.compiled import njit
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.instance import Instance

MOST_CELLS, ENDLESS = 4096, 1 << 14  # of very many jobs one cell a job, but not more than these
SHORTEST = 2.0**-16  # of all time: the cells that are not halved
MOST_PAIRS, MOST_FILLED = 400_000, 100_000_000  # of a job and a cell; times GPUs of the knapsacks
EFFORT = 90_000_000  # pairs times steps: some 25 s
MOST_GPUS = 1 << 14  # of the knapsack, in multiples of the largest unit of all gangs
FIRST_STEPS, STEPS, LAST_STEPS = 200, 60, 300  # of prices by GPU alone; on coarse cells; on the finest
MOVE, FORGETS, KEEPS, CALM = 0.15, 0.05, 0.9, 0.02  # of the ascent, as in RMSProp with momentum
STAY = 1.5  # of a job's waiting so far, cells after its end that it has prices for


@dataclass(frozen=True, eq=False)
class PricedGangs:
    """Prices of GPUs and of running jobs over C cells.

    Job j pays ``price`` for its GPUs, and ``own[start[j] :]`` from cell ``first[j]`` on. The cells from there on,
    start[j + 1] - start[j] of them, are those in which job j pays anything.

    Attributes
    ----------
    moments
        Ends of the cells in seconds, rising, f64[C + 1].
    price
        Price of a second of a GPU by type, f64[C, T].
    first
        First cell of every job, i64[n].
    start
        Offsets of the jobs' own prices, i64[n + 1].
    own
        Prices of a second in which the job runs, f64[P].
    """

    moments: Floats
    price: Floats
    first: Ints
    start: Ints
    own: Floats

    @cached_property
    def job(self) -> Ints:
        """Job of every own price, i64[P]."""
        return np.repeat(np.arange(self.first.size), np.diff(self.start))

    @cached_property
    def cell(self) -> Ints:
        """Cell of every own price, i64[P]."""
        return np.arange(self.own.size) - self.start[self.job] + self.first[self.job]

    @cached_property
    def by_cell(self) -> tuple[Ints, Ints]:
        """Offsets of the cells, i64[C + 1], and own prices by cell, i64[P]."""
        counts = np.bincount(self.cell, minlength=self.price.shape[0])
        return np.concatenate([[0], np.cumsum(counts)]), np.argsort(self.cell, kind="stable")

    @cached_property
    def lengths(self) -> Floats:
        """Seconds of the cells, f64[C]."""
        return np.diff(self.moments)


@dataclass(frozen=True, eq=False)
class GangsToPrice:
    """Jobs that are to be priced: their costs and modes, and their form in compiled code."""

    costs: SumCosts
    modes: Modes

    @cached_property
    def gang(self) -> Ints:
        """GPUs of every job, i64[n]."""
        return self.modes.gang[self.modes.kind]

    @cached_property
    def unit(self) -> int:
        """Greatest common divisor of all gangs, in GPUs."""
        return int(np.gcd.reduce(self.gang))

    @property
    def units(self) -> int:
        """GPUs of the cluster in units."""
        return int(self.modes.capacity.sum()) // self.unit

    @cached_property
    def given(self) -> tuple[object, ...]:
        """Arguments of the compiled functions."""
        return self.gang, by_gpu.job_arrays(self.costs, self.modes), by_gpu.mode_arrays(self.modes)

    def responses(self, at: PricedGangs) -> tuple[Floats, Floats]:
        """Return the least cost and payment of every job, and the largest number met on the way, f64[n] each.

        Parameters
        ----------
        at
            Prices.
        """
        booked = np.zeros(at.price.shape), np.zeros(at.own.size)
        least, largest = _respond(at.moments, at.price, at.first, at.start, at.own, *self.given, *booked)
        return least, largest

    def worth(self, at: PricedGangs, own: Floats) -> Floats:
        """Return the most that gangs which fit together pay a second by their own prices in every cell, f64[C].

        Parameters
        ----------
        at
            Prices, for the cells of the jobs.
        own
            Own prices, f64[P].
        """
        begin, pair = at.by_cell
        size = (self.gang // self.unit)[at.job[pair]]
        most: Floats = _pack(begin, pair, size, own, self.units, np.zeros(own.size))
        return most

    def climb(self, at: PricedGangs, steps: int) -> tuple[float, PricedGangs]:
        """Return the largest value that an ascent meets, and the prices there.

        Parameters
        ----------
        at
            Prices from which it starts.
        steps
            Number of steps.
        """
        begin, pair = at.by_cell
        size = (self.gang // self.unit)[at.job[pair]]
        most = MOVE * float(self.costs.weight.mean()) / math.sqrt(float(self.gang.mean()))
        packing = begin, pair, size, self.units
        start = at.moments, at.price, at.first, at.start, at.own
        capacity = self.modes.capacity.astype(np.float64)
        value, price, own = _climb(*start, *self.given, packing, capacity, at.lengths[at.cell], most, steps)
        return value, PricedGangs(at.moments, price, at.first, at.start, own)


def best_priced_gangs(gangs: GangsToPrice) -> PricedGangs | None:
    """Return prices with a large bound; None if the search would be too large.

    Parameters
    ----------
    gangs
        The jobs.
    """
    moments = by_gpu.equal_cells(gangs.costs, gangs.modes)
    if moments is None or gangs.units > MOST_GPUS:
        return None
    left = EFFORT
    prices = _by_gpu_alone(gangs, moments)
    while True:
        finer = _finer(gangs, prices)
        last = finer is None or finer.own.size * LAST_STEPS > left or finer.own.size * gangs.units > MOST_FILLED
        steps = max(min(LAST_STEPS if last else STEPS, left // prices.own.size), 1)
        _, prices = gangs.climb(prices, steps)
        left -= steps * prices.own.size
        if last or finer is None:
            break
        prices = _finer(gangs, prices) or prices
    return prices if np.isfinite(prices.own).all() and np.isfinite(prices.price).all() else None


def _by_gpu_alone(gangs: GangsToPrice, moments: Floats) -> PricedGangs:
    """Return prices by GPU, with the price of the cheapest type as own prices of the jobs."""
    costs, modes = gangs.costs, gangs.modes
    scale = by_gpu.MOVES[1] * float(costs.weight.sum()) / float(modes.capacity.sum())
    nothing = np.zeros((moments.size - 1, modes.capacity.size))
    _, jobs, arrays = gangs.given
    capacity = modes.capacity.astype(np.float64)
    _, price = by_gpu.ascent(moments, nothing, jobs, arrays, modes.adds, None, capacity, scale, FIRST_STEPS)
    least, _, _ = by_gpu.respond(moments, price, jobs, arrays, modes.adds, None)
    lowest = price.min(axis=1)
    first, last = _stays(gangs, moments, least)
    start = np.concatenate([[0], np.cumsum(last - first)])
    at = PricedGangs(moments, price - lowest[:, None], first, start, np.zeros(int(start[-1])))
    return PricedGangs(moments, at.price, first, start, lowest[at.cell] * gangs.gang[at.job])


def _stays(gangs: GangsToPrice, moments: Floats, least: Floats) -> tuple[Ints, Ints]:
    """Return the cells in which a job may want to run: up to an end above its present cost and payment."""
    costs, cells = gangs.costs, moments.size - 1
    soonest = costs.release + gangs.modes.alone
    alone = costs.weight * np.maximum(soonest - costs.counted, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = costs.counted + np.nan_to_num((alone + STAY * np.maximum(least - alone, 0.0)) / costs.weight, posinf=0.0)
    first = np.clip(np.searchsorted(moments, costs.release, side="right") - 1, 0, cells - 1)
    last = np.searchsorted(moments, np.maximum(far, soonest), side="left") + 1
    return first, np.clip(last, first + 1, cells)


def _finer(gangs: GangsToPrice, at: PricedGangs) -> PricedGangs | None:
    """Return the same prices with crowded cells cut in halves; None if the cells would be too many.

    A cell is crowded if more gangs want to run in it than fit.
    """
    wanted = np.bincount(at.cell, weights=gangs.gang[at.job], minlength=at.lengths.size)
    split: Bools = (wanted > gangs.modes.capacity.sum()) & (at.lengths > SHORTEST * at.lengths.sum())
    if not split.any() or split.size + split.sum() > max(MOST_CELLS, min(at.first.size, ENDLESS)):
        return None
    halves = (at.moments[:-1] + at.moments[1:])[split] / 2
    moments = np.sort(np.concatenate([at.moments, halves]))
    parent = np.repeat(np.arange(split.size), 1 + split)
    least, _ = gangs.responses(at)
    first, last = _stays(gangs, moments, least)
    start = np.concatenate([[0], np.cumsum(last - first)])
    if start[-1] > MOST_PAIRS:
        return None
    finer = PricedGangs(moments, at.price[parent], first, start, np.zeros(int(start[-1])))
    job, cell = finer.job, parent[finer.cell]
    priced = cell < at.first[job] + np.diff(at.start)[job]
    place = np.where(priced, at.start[job] + cell - at.first[job], 0)
    return PricedGangs(moments, finer.price, first, start, np.where(priced, at.own[place], 0.0))


# --- compiled ------------------------------------------------------------------------------------------------------------


@njit(interpreted=False)
def _respond(moments, price, first, start, own, gang, jobs, modes, used_gpu, used_own):  # type: ignore[no-untyped-def]
    """Return least cost and payment, and the largest number met, f64[n]; book GPU-seconds and running times."""
    releases, weights, counts, gains, works, kind = jobs
    begin, gpu_type, rate, charge = modes
    types = price.shape[1]
    least, largest = np.empty(releases.size), np.empty(releases.size)
    scratch = scratch_for(price.shape[0], np.max(begin[1:] - begin[:-1]) if begin.size > 1 else 0, 1)
    for j in range(releases.size):
        a, b = begin[kind[j]], begin[kind[j] + 1]
        own_modes = (gpu_type[a:b], rate[a:b], charge[a:b])
        job = (releases[j], weights[j], counts[j], gains[j], works[j])
        f, cells = first[j], start[j + 1] - start[j]
        seen, used = np.empty((cells, types)), np.zeros((cells, types))
        for k in range(cells):
            for t in range(types):
                seen[k, t] = price[f + k, t] + own[start[j] + k] / gang[j]
        scratch[1][0][:] = -1  # every job has its own prices
        least[j], largest[j], end = cheapest(
            moments[f : f + cells + 1], seen, job, own_modes, False, np.inf, used, scratch, 0
        )
        cheapest(moments[f : f + cells + 1], seen, job, own_modes, False, end, used, scratch, 0)
        for k in range(cells):
            used_gpu[f + k] += used[k]
            used_own[start[j] + k] = used[k].sum() / gang[j]
    return least, largest


@njit(interpreted=False)
def _pack(begin, pair, size, own, units, taken):  # type: ignore[no-untyped-def]
    """Return the most that gangs which fit together pay, f64[C]; ``taken`` f64[P] becomes 1 for those, else 0."""
    most = np.zeros(begin.size - 1)
    take = np.zeros((np.diff(begin).max(), units + 1), dtype=np.bool_)
    best = np.zeros(units + 1)
    for k in range(most.size):
        a, b = begin[k], begin[k + 1]
        wanted = 0
        for i in range(a, b):
            pays = own[pair[i]] > 0.0
            taken[pair[i]] = 1.0 if pays else 0.0
            wanted += size[i] if pays else 0
            most[k] += own[pair[i]]
        if wanted <= units:
            continue
        best[:] = 0.0
        for i in range(a, b):
            take[i - a, :] = False
            for c in range(units, size[i] - 1, -1):
                rival = best[c - size[i]] + own[pair[i]]
                if rival > best[c]:
                    best[c], take[i - a, c] = rival, True
        c = units
        for i in range(b - 1, a - 1, -1):
            taken[pair[i]] = 1.0 if take[i - a, c] else 0.0
            c -= size[i] if take[i - a, c] else 0
        most[k] = best[units]
    return most


@njit(interpreted=False)  # the compiler adds up in another order
def _climb(moments, price, first, start, own, gang, jobs, modes, packing, capacity, length, most, steps):  # type: ignore[no-untyped-def]
    """Return the largest value met and the prices there; steps follow averages of slopes."""
    begin, pair, size, units = packing
    best, kept_price, kept_own, price, own = -np.inf, price, own, price.copy(), own.copy()
    taken, speed, squares = np.zeros(own.size), np.zeros(own.size), np.zeros(own.size)
    gpu_speed, gpu_squares = np.zeros(price.shape), np.zeros(price.shape)
    for step in range(steps):
        used_gpu, used = np.zeros(price.shape), np.zeros(own.size)
        least, _ = _respond(moments, price, first, start, own, gang, jobs, modes, used_gpu, used)
        worth = _pack(begin, pair, size, own, units, taken)
        value = least.sum()
        for k in range(worth.size):
            for t in range(capacity.size):
                worth[k] += price[k, t] * capacity[t]
            value -= worth[k] * (moments[k + 1] - moments[k])
        if value > best:
            best, kept_price, kept_own = value, price.copy(), own.copy()
        calmer = most * (1.0 - step / steps)
        for j in range(first.size):
            for i in range(start[j], start[j + 1]):
                move = calmer * math.sqrt(gang[j])
                own[i] = _step(own[i], used[i] / length[i] - taken[i], i, speed, squares, move)
        if capacity.size > 1:
            for i in range(price.size):
                k, t = i // capacity.size, i % capacity.size
                slope = used_gpu[k, t] / ((moments[k + 1] - moments[k]) * capacity[t]) - 1.0
                price[k, t] = _step(price[k, t], slope, i, gpu_speed.reshape(-1), gpu_squares.reshape(-1), calmer)
    return best, kept_price, kept_own


@njit
def _step(price, slope, i, speed, squares, move):  # type: ignore[no-untyped-def]
    squares[i] += FORGETS * (slope * slope - squares[i])
    speed[i] += (1.0 - KEEPS) * (slope - speed[i])
    return max(price + move * speed[i] / (math.sqrt(squares[i]) + CALM), 0.0)


KIND = "priced-gangs"
MOST_JOBS = 40_000
PRICE_BITS = 26  # of the largest price: as many as are worth their place in files


@proved_bound(
    KIND,
    objectives=SUMS,
    classes=GANG_CLASSES,
    statement="gangs that fit together pay for running, by time",
    strong=True,
)
def build(instance: Instance, objective: str, schedule_class: str) -> Proof | None:
    """Return the proof with the best prices found; None for no job, for very many, and if times are too far apart.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    objective
        Name of the objective.
    schedule_class
        Name of the class of schedules; the bound is the same for all its classes.
    """
    if not 0 < instance.n <= MOST_JOBS:
        return None
    gangs = GangsToPrice(sum_costs(instance, objective), modes_of_gangs(instance))
    prices = best_priced_gangs(gangs)
    return None if prices is None else proof_of(gangs, prices)


def proof_of(gangs: GangsToPrice, found: PricedGangs) -> Proof | None:
    """Return the bound and the data of any prices; None if numbers are too far apart for floats.

    Parameters
    ----------
    gangs
        The jobs.
    found
        Prices.
    """
    rounded = Rounded(PricedTime(found.moments, found.price), PRICE_BITS, found.own)
    at = PricedGangs(rounded.at.moments, rounded.at.price, found.first, found.start, rounded.own_at)
    # integers as floats: exact sums, as far below 2**53
    own_paid = gangs.worth(at, rounded.own.astype(np.float64)).astype(np.int64).astype(object)
    jobs = found.first.size
    proof = rounded.proof(gangs.costs, gangs.modes, gangs.responses(at), jobs, own_paid)
    if proof is None:
        return None
    rows = [rounded.own[a:b].tolist() for a, b in pairwise(found.start.tolist())]
    own = {"own_prices": [[k, row] for k, row in zip(found.first.tolist(), rows, strict=True)]}
    return proof[0], {**rounded.data(gangs.modes), **own, **proof[1]}
