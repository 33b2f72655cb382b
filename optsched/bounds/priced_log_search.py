"""A search for prices of GPUs over the cells of a long log: the response of every job, and ascent on the prices.

It computes in floats only: the search decides how good the bound of `optsched.bounds.priced_log` is, never whether it
holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optsched.bounds.sum_costs import SumCosts
from optsched.compiled import njit
from optsched.problem.arrays import Bools, Floats, Ints

FIRST_CELLS = 256  # at the start; as soon as there is one a job, within these limits, no more are halved:
FEW_CELLS, MOST_CELLS = 1024, 16384
SHORTEST = 2.0**-20  # of all time: the cells that are not halved
MOMENT_BITS = 30  # below all time, of the ends of the first cells
FIRST_STEPS, STEPS, FEWEST_STEPS = 100, 60, 40
EFFORT = 1_000_000_000  # cells that jobs look at in all steps: some 35 s
MOVE, FORGETS, KEEPS, CALM = 0.05, 0.05, 0.9, 0.02  # of the ascent, as in RMSProp with momentum


@dataclass(frozen=True, eq=False)
class LogPrices:
    """Prices of a second of a GPU over C cells of time; 0 outside of them.

    Attributes
    ----------
    moments
        Ends of the cells in seconds, rising, the first no later than the first arrival, f64[C + 1].
    price
        Price in every cell, f64[C].
    """

    moments: Floats
    price: Floats


@dataclass(frozen=True, eq=False)
class LogJobs:
    """Jobs of a log on a number of GPUs.

    Attributes
    ----------
    costs
        Costs of the jobs.
    seconds
        Least seconds that every job runs, f64[n].
    gpus
        GPUs of every job, i64[n].
    total
        GPUs of the cluster.
    """

    costs: SumCosts
    seconds: Floats
    gpus: Ints
    total: int

    @cached_property
    def given(self) -> tuple[Floats, ...]:
        """Arguments of the compiled function: release, seconds, gpus, weight, counted."""
        costs = self.costs  # copies: the compiler makes another version of its code for arrays that may not be written
        arrays = (costs.release, self.seconds, self.gpus.astype(np.float64), costs.weight, costs.counted)
        return tuple(array.copy() for array in arrays)

    def responses(self, at: LogPrices) -> tuple[Floats, Floats]:
        """Return the least cost and payment of every job, and the largest payment met on the way, f64[n] each.

        Parameters
        ----------
        at
            Prices.
        """
        least, largest, _ = respond(at.moments, at.price, *self.given, np.zeros(at.price.size))
        return least, largest

    def climb(self, at: LogPrices, steps: int) -> tuple[LogPrices, int]:
        """Return the best prices that an ascent meets, and the number of cells that jobs looked at.

        Parameters
        ----------
        at
            Prices from which it starts.
        steps
            Number of steps.
        """
        room, work = np.diff(at.moments) * self.total, self.seconds * self.gpus
        move = MOVE * float(self.costs.weight @ work) / (float(work.sum()) * math.sqrt(float(self.gpus.mean())))
        best, best_price, price, seen = -np.inf, at.price, at.price, 0
        speed, squares = np.zeros(price.size), np.zeros(price.size)
        for step in range(steps):
            used = np.zeros(price.size)
            least, _, looked = respond(at.moments, price, *self.given, used)
            value, seen = float(least.sum() - price @ room), seen + looked
            if value > best:
                best, best_price = value, price
            slope = used / room - 1.0
            squares += FORGETS * (slope * slope - squares)
            speed += (1.0 - KEEPS) * (slope - speed)
            price = np.maximum(price + move * (1.0 - step / steps) * speed / (np.sqrt(squares) + CALM), 0.0)
        return LogPrices(at.moments, best_price), seen


def best_log_prices(jobs: LogJobs) -> LogPrices | None:
    """Return prices with a large bound; None if times or weights leave nothing to search.

    Ascent over finer and finer cells: those in which GPUs have a price, their neighbours, and those in which more GPUs
    are wanted than the cluster has, are halved.

    Parameters
    ----------
    jobs
        The jobs.
    """
    release = jobs.costs.release
    first, span = float(release.min()), float(np.ptp(release)) + float(jobs.seconds @ jobs.gpus) / jobs.total
    if not (0 < span < math.inf and abs(first) <= span and jobs.costs.weight.any()):
        return None
    unit = math.ldexp(1.0, math.frexp(span)[1] - MOMENT_BITS)
    begin, length = math.floor(first / unit) * unit, math.ceil(span / FIRST_CELLS / unit) * unit
    moments: Floats = np.array([begin + length * k for k in range(FIRST_CELLS + 1)])
    prices = LogPrices(moments, np.zeros(FIRST_CELLS))
    crowded, left, steps = _crowded_moments(jobs), EFFORT, FIRST_STEPS
    while True:
        prices, seen = jobs.climb(prices, steps)
        left -= seen
        enough = prices.price.size > max(FEW_CELLS, min(jobs.gpus.size, MOST_CELLS))
        finer = None if enough else _finer(prices, crowded, span)
        if finer is None:
            return prices if prices.price.any() and np.isfinite(prices.price).all() else None
        more = seen / steps * finer.price.size / prices.price.size  # that a step looks at there, at most
        prices, steps = finer, min(STEPS, int(left / max(more, 1.0)))
        if steps < FEWEST_STEPS:
            return prices if prices.price.any() else None


def _crowded_moments(jobs: LogJobs) -> Floats:
    """Return the arrivals after which more GPUs are wanted than the cluster has, if nobody waits, rising."""
    release, n = jobs.costs.release, jobs.gpus.size
    moments = np.concatenate([release + jobs.seconds, release])  # ends before arrivals
    order = np.argsort(moments, kind="stable")
    wanted = np.cumsum(np.concatenate([-jobs.gpus, jobs.gpus])[order])
    return np.asarray(moments[order[(wanted > jobs.total) & (order >= n)]])


def _finer(at: LogPrices, crowded: Floats, span: float) -> LogPrices | None:
    """Return the same prices with crowded cells cut in halves; None if no cell is crowded."""
    split: Bools = (at.price > 0) | (np.diff(np.searchsorted(crowded, at.moments)) > 0)
    split = split | np.append(split[1:], False) | np.append(False, split[:-1])
    split &= np.diff(at.moments) > SHORTEST * span
    if not split.any():
        return None
    halves = (at.moments[:-1] + at.moments[1:])[split] / 2
    return LogPrices(np.sort(np.concatenate([at.moments, halves])), np.repeat(at.price, 1 + split))


# --- compiled ------------------------------------------------------------------------------------------------------------


@njit(interpreted=False)  # hundreds of millions of steps; and the compiler adds up in another order
def respond(moments, price, release, seconds, gpus, weight, counted, used):  # type: ignore[no-untyped-def]
    """Return the response of every job to prices.

    Parameters
    ----------
    moments
        Ends of the cells in seconds, f64[C + 1].
    price
        Price of a second of a GPU in every cell, f64[C].
    release
        Arrivals in seconds, f64[n].
    seconds
        Seconds that every job runs, f64[n].
    gpus
        GPUs of every job, f64[n].
    weight
        Cost of a second after ``counted``, f64[n].
    counted
        Moment from which the completion costs, f64[n].
    used
        Output: GPU-seconds that jobs pay for, f64[C].

    Returns
    -------
    tuple
        Least cost and payment, f64[n]; largest payment met, f64[n]; number of cells looked at.

    Notes
    -----
    For an end the job takes the cheapest seconds from its arrival on. A later end exchanges the dearest of them for
    cheaper ones of the new moments: between two breakpoints cost and payment are linear.
    """
    cells, looked = price.size, 0
    least, largest = np.zeros(release.size), np.zeros(release.size)
    unit, amount, place = np.empty(2 * cells + 4), np.empty(2 * cells + 4), np.empty(2 * cells + 4, dtype=np.int64)
    for j in range(release.size):
        if weight[j] == 0.0 or seconds[j] == 0.0:
            least[j] = weight[j] * max(release[j] - counted[j], 0.0)
            continue
        first = np.searchsorted(moments[1:], release[j], side="right")
        best, best_end = np.inf, np.inf
        for booking in range(2):
            until = best_end if booking else np.inf
            pieces, paid, missing, now, k = 0, 0.0, seconds[j], release[j], first
            while now < until and (booking or weight[j] * max(now - counted[j], 0.0) < best):
                looked += 1
                cell_end = moments[k + 1] if k < cells else np.inf
                end = min(cell_end, until)
                if now < counted[j] < end:
                    end = counted[j]
                cost, got = gpus[j] * price[k] if k < cells else 0.0, 0.0
                if missing > 0.0:
                    got = min(missing, end - now)
                    paid += cost * got
                    now = now + got if got < end - now else end
                    missing = missing - got if got < missing else 0.0
                    largest[j] = max(largest[j], paid)
                if missing == 0.0:
                    while True:
                        value = weight[j] * max(now - counted[j], 0.0) + paid
                        if value < best:
                            best, best_end = value, now
                        if now >= end or pieces == 0 or unit[0] <= cost:
                            break
                        part = min(amount[0], end - now)
                        paid -= (unit[0] - cost) * part
                        got += part
                        now = now + part if part < end - now else end
                        if part < amount[0]:
                            amount[0] -= part
                        else:
                            pieces = _drop(unit, amount, place, pieces)
                if got > 0.0:
                    pieces = _add(unit, amount, place, pieces, cost, got, k)
                if k == cells and (end == np.inf or end == until):
                    break
                if missing == 0.0 and (pieces == 0 or unit[0] == 0.0) and not booking:
                    break
                now = end
                if end == cell_end:
                    k += 1
            for i in range(pieces if booking else 0):
                if place[i] < cells:
                    used[place[i]] += gpus[j] * amount[i]
        least[j] = best
    return least, largest, looked


@njit
def _add(unit, amount, place, pieces, cost, got, k):  # type: ignore[no-untyped-def]
    """Put a piece on the heap of pieces, the dearest first, and return their number."""
    i = pieces
    while i > 0 and unit[(i - 1) // 2] < cost:
        up = (i - 1) // 2
        unit[i], amount[i], place[i] = unit[up], amount[up], place[up]
        i = up
    unit[i], amount[i], place[i] = cost, got, k
    return pieces + 1


@njit
def _drop(unit, amount, place, pieces):  # type: ignore[no-untyped-def]
    """Take the dearest piece from the heap, and return the number of those left."""
    last, i = pieces - 1, 0
    cost, got, k = unit[last], amount[last], place[last]
    while 2 * i + 1 < last:
        down = 2 * i + 1
        if down + 1 < last and unit[down + 1] > unit[down]:
            down += 1
        if unit[down] <= cost:
            break
        unit[i], amount[i], place[i] = unit[down], amount[down], place[down]
        i = down
    unit[i], amount[i], place[i] = cost, got, k
    return last
