"""A search for prices of GPUs over time: the response of every job to given prices, and projected ascent on the prices.

It computes in floats only: the search decides how good the bound of `optsched.bounds.priced_time` is, never whether it
holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optsched.bounds.modes import Modes
from optsched.bounds.sum_costs import SumCosts
from optsched.compiled import njit
from optsched.problem.arrays import Floats, Ints

CELLS = 64
EFFORT = 30_000_000  # steps of the inner loop: some 0.3 s
MOST_STEPS, FEWEST_STEPS, TRIAL = 1_000, 60, 24
MOVES = (0.003, 0.02, 0.1)  # first moves to try, as parts of the price at which all jobs wait for every GPU
FAR = 1024  # times the length of all cells: the first arrival is so near to 0, as in `Instance.relative`
LONGER = 1.25  # the prices reach so much farther than the machine is busy


@dataclass(frozen=True, eq=False)
class PricedTime:
    """Prices of GPUs over C cells of time; after the last cell they are 0.

    Attributes
    ----------
    moments
        Ends of the cells in seconds, rising, f64[C + 1].
    price
        Price of a second of a GPU by type in every cell, f64[C, T].
    """

    moments: Floats
    price: Floats

    @property
    def lengths(self) -> Floats:
        """Seconds of the cells, f64[C, 1]."""
        return np.diff(self.moments)[:, None]


def responses(costs: SumCosts, modes: Modes, priced: PricedTime) -> tuple[Floats, Floats]:
    """Return the least cost and payment of every job, and the largest number met on the way, f64[n] each.

    Parameters
    ----------
    costs
        Costs of the jobs.
    modes
        Modes of the jobs.
    priced
        Prices of GPUs.
    """
    given = job_arrays(costs, modes), mode_arrays(modes), modes.adds, turn_arrays(modes)
    least, largest, _ = respond(priced.moments, priced.price, *given)
    return least, largest


def job_arrays(costs: SumCosts, modes: Modes) -> tuple[Floats, Floats, Floats, Floats, Floats, Ints]:
    """Return the jobs as arrays for compiled code: (release, weight, counted, gain, work, kind), [n] each.

    Parameters
    ----------
    costs
        Costs of the jobs.
    modes
        Modes of the jobs.
    """
    # copies: the compiler makes another version of its code for arrays that may not be written
    given = (costs.release, costs.weight, costs.counted, costs.gain, modes.work)
    release, weight, counted, gain, work = (array.copy() for array in given)
    return release, weight, counted, gain, work, modes.kind.copy()


def mode_arrays(modes: Modes) -> tuple[Ints, Ints, Floats, Floats]:
    """Return the modes as arrays for compiled code: (start, gpu_type, rate, gpus).

    Parameters
    ----------
    modes
        Modes of the jobs.
    """
    return modes.start, modes.gpu_type, modes.rate, modes.gpus


def turn_arrays(modes: Modes) -> tuple[Floats, Floats] | None:
    """Return the turns as arrays for compiled code: (taken, bends); None if there are no turns.

    Parameters
    ----------
    modes
        Modes of the jobs.
    """
    return None if modes.turns is None else (modes.turns.taken, modes.turns.bends)


def best_priced_time(costs: SumCosts, modes: Modes) -> PricedTime | None:
    """Return prices with a large bound; None if the search would be too large, or if no price helps.

    Parameters
    ----------
    costs
        Costs of the jobs.
    modes
        Modes of the jobs.
    """
    count = int((modes.start[1:] - modes.start[:-1])[modes.kind].sum())
    steps = min(EFFORT // max(count * CELLS, 1), MOST_STEPS)
    if steps < FEWEST_STEPS:
        return None
    moments = equal_cells(costs, modes)
    if moments is None:
        return None
    scale = float(costs.weight.sum()) / float(modes.capacity.sum())
    if costs.gain.any():
        scale = float((costs.gain / modes.alone).sum()) / float(modes.fewest_gpu_seconds.sum())
    nothing = np.zeros((CELLS, modes.capacity.size))
    given = (
        job_arrays(costs, modes),
        mode_arrays(modes),
        modes.adds,
        turn_arrays(modes),
        modes.capacity.astype(np.float64),
    )
    tried = [ascent(moments, nothing, *given, part * scale, TRIAL) for part in MOVES]
    (value, price), part = max(zip(tried, MOVES, strict=True), key=lambda pair: pair[0][0])
    for slower, share in ((1.0, 2), (0.3, 3), (0.1, 6)):
        rival, rival_price = ascent(moments, price, *given, slower * part * scale, steps // share)
        if rival > value:
            value, price = rival, rival_price
    return PricedTime(moments, price) if price.any() and np.isfinite(price).all() else None


def equal_cells(costs: SumCosts, modes: Modes) -> Floats | None:
    """Return the ends of cells of equal length, in seconds, for as long as there may be a queue.

    They are multiples of a power of two.

    Parameters
    ----------
    costs
        Costs of the jobs.
    modes
        Modes of the jobs.

    Returns
    -------
    Floats | None
        Ends of the cells, f64[C + 1]; None if the times are too far from the clock's zero.
    """
    first, last = float(costs.release.min()), float(costs.release.max())
    busy = modes.busy
    length = (max(last - first, busy) + busy / 2) * LONGER / CELLS
    if not 0 < length < math.inf:
        return None
    unit = math.ldexp(1.0, math.frexp(length)[1] - 12)
    start = math.floor(first / unit) * unit
    length = math.ceil(length / unit) * unit
    moments = np.array([start + length * k for k in range(CELLS + 1)])
    # far from the clock's zero floats have no digits for the minima
    return moments if abs(first) <= FAR * length * CELLS else None


INTERPRETED = 20_000  # cells of all jobs: some tenths of a second as Python


@njit(interpreted=False)  # hundreds of thousands of steps; and the compiler adds up in another order
def ascent(moments, price, jobs, modes, adds, turns, capacity, move, steps):  # type: ignore[no-untyped-def]
    """Return the largest value met and the prices there.

    Steps follow slopes, and are shorter where earlier slopes were large (AdaGrad).

    Parameters
    ----------
    moments
        Ends of the cells in seconds, f64[C + 1].
    price
        Prices from which it starts, f64[C, T].
    jobs
        Arrays of `job_arrays`.
    modes
        Arrays of `mode_arrays`.
    adds
        Whether a job takes all its modes at once.
    turns
        Arrays of `turn_arrays`, or None.
    capacity
        GPUs of every type, f64[T].
    move
        Size of the first step.
    steps
        Number of steps.
    """
    best, best_price = -np.inf, price
    room = (moments[1:] - moments[:-1]).reshape(-1, 1) * capacity
    squares = np.full(price.shape, 1e-12)
    for _ in range(steps):
        least, _, used = respond(moments, price, jobs, modes, adds, turns)
        value = least.sum() - (price * room).sum()
        if value > best:
            best, best_price = value, price
        slope = (used - room) / room
        squares += slope * slope
        before, price = price, np.maximum(price + move * slope / np.sqrt(squares), 0.0)
        if not (before.any() or price.any()):  # nobody waits where GPUs cost nothing: so it is in all later steps
            break
    return best, best_price


@njit(interpreted=lambda moments, price, jobs, *_: price.size * jobs[0].size <= INTERPRETED)
def respond(moments, price, jobs, modes, adds, turns):  # type: ignore[no-untyped-def]
    """Return the response of every job to prices.

    Parameters
    ----------
    moments
        Ends of the cells in seconds, f64[C + 1].
    price
        Price of a second of a GPU, f64[C, T].
    jobs
        Arrays of `job_arrays`.
    modes
        Arrays of `mode_arrays`.
    adds
        Whether a job takes all its modes at once.
    turns
        Arrays of `turn_arrays`, or None.

    Returns
    -------
    tuple
        Least cost and payment, f64[n]; largest number met, f64[n]; GPU-seconds paid for, f64[C, T].
    """
    releases, weights, counts, gains, works, kind = jobs
    start, gpu_type, rate, charge = modes
    least, largest, used = np.empty(releases.size), np.empty(releases.size), np.zeros(price.shape)
    cells, kinds = price.shape[0], start.size - 1
    scratch = scratch_for(cells, np.max(start[1:] - start[:-1]) if kinds else 0, kinds)
    for j in range(releases.size):
        a, b = start[kind[j]], start[kind[j] + 1]
        own = (gpu_type[a:b], rate[a:b], charge[a:b])
        job = (releases[j], weights[j], counts[j], gains[j], works[j])
        if turns is None:
            least[j], largest[j], end = cheapest(moments, price, job, own, adds, np.inf, used, scratch, kind[j])
            cheapest(moments, price, job, own, adds, end, used, scratch, kind[j])
        else:
            taken, bends = turns[0][kind[j]], turns[1][kind[j]]
            path, seconds = (price * taken).sum(axis=1).reshape(-1, 1), np.zeros((cells, 1))
            least[j], largest[j], end = cheapest(moments, path, job, own, adds, np.inf, seconds, scratch, kind[j])
            cheapest(moments, path, job, own, adds, end, seconds, scratch, kind[j])
            used += seconds * taken
            saved = _saved(moments, price, job[0], bends, used)
            least[j], largest[j] = least[j] - saved, largest[j] + saved
    return least, largest, used


@njit
def _saved(moments, price, release, bends, used):  # type: ignore[no-untyped-def]
    """Return the most that turns of a job save where prices change after its release, and book the change."""
    cells, types = price.shape
    saved = 0.0
    for k in range(cells):
        most, best = 0.0, -1
        for v in range(bends.shape[0]):
            less = 0.0
            for t in range(types):
                less += bends[v, t] * ((price[k + 1, t] if k + 1 < cells else 0.0) - price[k, t])
            if less > most:
                most, best = less, v
        if best >= 0 and moments[k + 1] > release:
            saved += most
            for t in range(types):
                used[k, t] += bends[best, t]
                if k + 1 < cells:
                    used[k + 1, t] -= bends[best, t]
    return saved


@njit
def _cost(job, end):  # type: ignore[no-untyped-def]
    """Return the cost of a job that ends at ``end``; it rises with the end."""
    release, weight, counted, gain, _ = job
    cost = weight * max(end - counted, 0.0)
    if gain > 0.0:
        cost = cost - gain / (end - release) if end > release else -np.inf
    return cost


@njit
def scratch_for(cells, most, kinds):  # type: ignore[no-untyped-def]
    """Return arrays that `cheapest` writes into, for jobs of some kinds under the same prices.

    Parameters
    ----------
    cells
        Number C of cells.
    most
        Most modes of a kind.
    kinds
        Number of kinds.

    Returns
    -------
    tuple
        Pieces of work: price of a unit, amount, step and cell of each, and work of the steps of one cell. Steps of every
        kind by cell: their number, -1 if it is not computed yet; price of a unit and rate; source and target.
    """
    size = (cells + 2) * most + 1
    step_of, cell_of = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    pieces = (np.empty(size), np.empty(size), step_of, cell_of, np.empty(most))
    ends = np.empty((2, kinds, cells + 1, most), dtype=np.int64)
    return pieces, (np.full((kinds, cells + 1), -1), np.empty((kinds, cells + 1, most, 2)), ends[0], ends[1])


@njit
def cheapest(moments, price, job, modes, adds, until, used, scratch, kind):  # type: ignore[no-untyped-def]
    """Return the cheapest way of a job to end; book its GPU-seconds if the end is given.

    Parameters
    ----------
    moments
        Ends of the cells in seconds, f64[C + 1].
    price
        Price of a second of a GPU, f64[C, T].
    job
        The job's release, weight, counted, gain and work.
    modes
        GPU type, rate and GPUs of each of its modes, [O].
    adds
        Whether it takes all its modes at once.
    until
        End of the job in seconds, for which GPU-seconds are booked; inf for the best end.
    used
        Output: GPU-seconds, f64[C, T].
    scratch
        Arrays of `scratch_for`.
    kind
        Kind of the job: the steps of jobs of one kind under the same prices are computed once.

    Returns
    -------
    tuple
        Least cost and payment; largest number met; the end at which cost and payment are least.

    Notes
    -----
    The work that is done so far is kept in pieces by rising price of a unit; work that is not done yet is the dearest.
    A longer stay exchanges the dearest for cheaper work of the new moments: between two breakpoints all is linear.
    """
    release, _, counted, _, work = job
    cells = price.shape[0]
    unit, amount, step_of, cell_of, got = scratch[0]
    known, steps, source, target = scratch[1][0][kind], scratch[1][1][kind], scratch[1][2][kind], scratch[1][3][kind]
    unit[0], amount[0], cell_of[0] = np.inf, work, -1
    pieces, paid, largest, best, best_end = 1, 0.0, 0.0, np.inf, np.inf
    k, now = np.searchsorted(moments[1 : cells + 1], release, side="right"), release
    while k <= cells and now < until and _cost(job, now) < best:
        end = min(moments[k + 1] if k < cells else np.inf, until)
        if known[k] < 0:
            prices = price[k] if k < cells else np.zeros(price.shape[1])
            known[k] = _steps(prices, modes, adds, steps[k], source[k], target[k])
        m = known[k]
        got[:] = 0.0
        while now < end:
            dearest, own = unit[pieces - 1] if pieces > 0 else -1.0, -1
            for i in range(m):
                if got[i] > 0 and steps[k, i, 0] >= dearest:
                    dearest, own = steps[k, i, 0], i
            speed = cost = 0.0
            for i in range(m):
                if steps[k, i, 0] < dearest:
                    speed += steps[k, i, 1]
                    cost += steps[k, i, 0] * steps[k, i, 1]
            if speed == 0.0:
                break
            held = got[own] if own >= 0 else amount[pieces - 1]
            last = held / speed <= end - now
            seconds = held / speed if last else end - now
            if now < counted < now + seconds:
                seconds, last = counted - now, False
            for i in range(m):
                if steps[k, i, 0] < dearest:
                    got[i] += steps[k, i, 1] * seconds
            left = 0.0 if last else held - speed * seconds
            if own >= 0:
                got[own] = left
            else:
                amount[pieces - 1] = left
                pieces -= 1 if last else 0
            paid += (cost - (dearest * speed if dearest < np.inf else 0.0)) * seconds
            largest = max(largest, paid)
            now = now + seconds if seconds < end - now else end
            if pieces == 0 or unit[pieces - 1] < np.inf:
                value = _cost(job, now) + paid
                if value < best:
                    best, best_end = value, now
        for i in range(m):
            if got[i] > 0:
                pieces += _sorted_in(unit, amount, step_of, cell_of, pieces, (steps[k, i, 0], got[i], i, k))
        now = end
        k += 1
    if until < np.inf:
        for place in range(pieces):
            cell, i = cell_of[place], step_of[place]
            if 0 <= cell < cells:
                _book(used[cell], modes, source[cell, i], target[cell, i], amount[place] / steps[cell, i, 1])
    return best, largest, best_end


@njit
def _book(used, modes, source, target, seconds):  # type: ignore[no-untyped-def]
    """Book the GPU-seconds of a step from one mode (-1: none) to another."""
    gpu_type, _, charge = modes
    used[gpu_type[target]] += seconds * charge[target]
    if source >= 0:
        used[gpu_type[source]] -= seconds * charge[source]


@njit
def _sorted_in(unit, amount, step_of, cell_of, pieces, piece):  # type: ignore[no-untyped-def]
    """Insert one more piece of work behind those that are no dearer."""
    place = pieces
    while place > 0 and unit[place - 1] > piece[0]:
        unit[place], amount[place] = unit[place - 1], amount[place - 1]
        step_of[place], cell_of[place] = step_of[place - 1], cell_of[place - 1]
        place -= 1
    unit[place], amount[place], step_of[place], cell_of[place] = piece
    return 1


@njit
def _steps(price, modes, adds, steps, source, target):  # type: ignore[no-untyped-def]
    """Return the number of steps, from mode to mode, of the cheapest way to higher and higher rates."""
    gpu_type, rate, charge = modes
    if adds:
        for i in range(rate.size):
            steps[i, 0], steps[i, 1] = price[gpu_type[i]] * charge[i] / rate[i], rate[i]
            source[i], target[i] = -1, i
        return rate.size
    m, at, reached, paid = 0, -1, 0.0, 0.0
    while True:
        best, least = -1, np.inf
        for i in range(rate.size):
            if rate[i] > reached:
                slope = (price[gpu_type[i]] * charge[i] - paid) / (rate[i] - reached)
                if slope < least or (slope == least and rate[i] > rate[best]):
                    best, least = i, slope
        if best < 0:
            return m
        steps[m, 0], steps[m, 1] = max(least, 0.0), rate[best] - reached
        source[m], target[m] = at, best
        m, at, reached, paid = m + 1, best, rate[best], price[gpu_type[best]] * charge[best]
