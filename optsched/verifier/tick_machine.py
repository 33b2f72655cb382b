"""One machine in place of a cluster: jobs with releases and works in integer ticks, and the rules that serve them."""

from __future__ import annotations

import heapq
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from .document_fields import Data, written
from .exact_numbers import integers, quotient_below

FILLED = 1 << 16  # of more GPUs, U = G


class Machine(NamedTuple):
    """A machine of ``capacity`` units: a job has ``work`` from its ``release`` on, in ticks, ``second`` of them a second.

    ``stated`` is what certificates state of it. A job ends ``tail`` seconds or more after its work (None: 0), and half of
    ``reach`` seconds or more after the mean moment of its work (None: of what it takes alone).
    """

    release: list[int]
    work: list[int]
    capacity: int
    second: Fraction
    stated: Data
    tail: list[float] | None = None
    reach: list[float] | None = None


def machine_on_grid(
    release: list[int],
    work: list[int],
    capacity: int,
    exponent: int,
    stated: Data,
    tail: list[float] | None = None,
    reach: list[float] | None = None,
) -> Machine:
    """Return a machine on a grid of ``2**exponent`` steps a second.

    Parameters
    ----------
    release
        Releases in steps.
    work
        Works in units times steps.
    capacity
        Units of the machine.
    exponent
        Exponent of the grid.
    stated
        What certificates state of the machine in addition to capacity and grid.
    tail
        Seconds that jobs take at least after their work; None: 0.
    reach
        Twice the seconds from the mean moment of the work to the end, at least; None: those of the job alone.
    """
    second = Fraction(2) ** exponent * capacity
    stated = {**stated, "grid_exponent": exponent, "capacity": capacity, "tick": written(1 / second)}
    return Machine([capacity * r for r in release], work, capacity, second, stated, tail, reach)


def fill(gangs: list[int], total: int) -> int:
    """Return the most GPUs that gangs hold together; all GPUs if these are too many to try.

    Parameters
    ----------
    gangs
        GPUs of every gang.
    total
        GPUs of the cluster.
    """
    filled, most = 1, (2 << total) - 1  # bit b: some gangs have b GPUs together
    for size in gangs if total <= FILLED else ():
        filled |= (filled << size) & most
        if filled >> total:
            return total
    return filled.bit_length() - 1 if total <= FILLED else total


def srpt_ends(release: list[int], work: list[int]) -> list[int]:
    """Return the completions in order, where the job with the least work left is always served.

    Parameters
    ----------
    release
        Releases in ticks.
    work
        Works in ticks.
    """
    waiting, ends, now = list[int](), list[int](), 0
    left = -1  # of the job in service; none is in service below 0
    for j in sorted(range(len(release)), key=release.__getitem__):
        arrival = release[j]
        while 0 <= left <= arrival - now:
            now += left
            ends.append(now)
            left = heapq.heappop(waiting) if waiting else -1
        left -= arrival - now if left >= 0 else 0
        if left < 0:
            left = work[j]
        elif work[j] < left:
            heapq.heappush(waiting, left)
            left = work[j]
        else:
            heapq.heappush(waiting, work[j])
        now = arrival
    if left >= 0:
        now += left
        ends.append(now)
    return ends + list(accumulate(sorted(waiting), initial=now))[1:]


def served(release: list[int], work: list[int], order: list[int]) -> tuple[list[int], dict[int, int]]:
    """Return the completions of a machine that always serves the released job that is first in an order.

    Parameters
    ----------
    release
        Releases in ticks.
    work
        Works in ticks, positive.
    order
        Jobs, the most urgent first.

    Returns
    -------
    tuple
        Completions in ticks, and by interrupted job how much ``sum b^2 - a^2`` over its pieces [a, b) is less than it would
        be in one piece that ends with its last one.
    """
    n = len(release)
    place, ends, left = [0] * n, [0] * n, list(work)
    for k, j in enumerate(order):
        place[j] = k
    pieces = dict[int, int]()  # sum of b^2 - a^2 of interrupted jobs so far
    waiting = list[int]()  # places in the order
    job, begin, end = -1, 0, 0  # in service since, until

    def finish() -> None:
        ends[job] = end
        if job in pieces:
            pieces[job] += end * end - begin * begin

    for j in sorted(range(n), key=release.__getitem__):
        arrival = release[j]
        while job >= 0 and end <= arrival:
            finish()
            if not waiting:
                job = -1
                break
            job, begin = order[heapq.heappop(waiting)], end
            end += left[job]
        if job < 0:
            job, begin, end = j, arrival, arrival + work[j]
        elif place[j] < place[job]:
            pieces[job] = pieces.get(job, 0) + arrival * arrival - begin * begin
            left[job] = end - arrival
            heapq.heappush(waiting, place[job])
            job, begin, end = j, arrival, arrival + work[j]
        else:
            heapq.heappush(waiting, place[j])
    if job >= 0:
        finish()
    for k in sorted(waiting):
        job, begin = order[k], end
        end += left[job]
        finish()
    gaps = {j: work[j] * (2 * ends[j] - work[j]) - squares for j, squares in pieces.items()}
    return ends, {j: gap for j, gap in gaps.items() if gap}


def dues(moments: list[int], unit: int, on: Machine) -> list[int]:
    """Return the moment of every job less its tail on a machine, rounded up to the grid, in ticks.

    Parameters
    ----------
    moments
        Moments c_j, in parts of a second.
    unit
        Parts of a second.
    on
        The machine.
    """
    step = on.second / on.capacity
    up, down = step.numerator, step.denominator
    if on.tail is None:
        down *= unit
        return [-(-c * up // down) * on.capacity for c in moments]
    tails, parts = integers(on.tail)
    ticks = list[int]()
    for c, tail in zip(moments, tails, strict=True):
        p, q = quotient_below(tail * unit - c * parts, parts * unit).as_integer_ratio()
        ticks.append(-(p * up // (q * down)) * on.capacity)
    return ticks
