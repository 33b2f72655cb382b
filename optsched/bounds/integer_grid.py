"""The integer grid on which the compiled bounds compute: no division, and no rounding except a floor at the start.

Time in seconds is multiplied by ``2**k`` and by the capacity U of the machine (see `gang_machine`). A job of width u_j
is then an integer amount of work ``u_j floor(d_j 2**k)`` for a machine that does one unit of it a tick, and is released
at the tick ``U floor(r_j 2**k)``. One tick is ``1 / (2**k U)`` seconds.

Float64 times are integers times powers of two. k is the smallest number >= 0 that makes every r_j and d_j an integer,
if all sums then fit in 61 bits: the instance on the grid is the given one. Otherwise k is the largest that fits, and
releases and durations are rounded **down**. The lower bound stays valid: a schedule of the given instance also respects
the earlier releases, and the rates of each job multiplied by (rounded work / work) <= 1 do the rounded work by the same
moments. So the optimum of the rounded instance, of completion times as of mean busy times, is not larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optsched.bounds.certificate import ratio_text
from optsched.compiled import njit
from optsched.problem.arrays import Floats, Ints

BITS = 61  # of the latest tick: sums of two ticks still fit in a signed word
_SMALL_BITS = 80  # sums of 2**80 times smaller times never overflow a float
_SMALL = 2.0**-_SMALL_BITS
_FINEST = 1000  # 2.0**k and its inverse stay normal numbers


@dataclass(frozen=True)
class GridJobs:
    """Jobs on the grid of a machine.

    Attributes
    ----------
    capacity
        Capacity U of the machine.
    exponent
        Exponent k of the grid.
    origin
        Tick from which releases count.
    release
        Release of every job in ticks from ``origin``, i64[n].
    work
        Work of every job in ticks, i64[n].
    """

    capacity: int
    exponent: int
    origin: int
    release: Ints
    work: Ints

    @property
    def tick(self) -> Fraction:
        """Seconds of one tick."""
        return 1 / (Fraction(2) ** self.exponent * self.capacity)

    def data(self) -> dict[str, Any]:
        """Return what a certificate states of the grid."""
        return {"capacity": self.capacity, "grid_exponent": self.exponent, "tick": ratio_text(self.tick)}


def on_grid(
    release: Floats,
    seconds: Floats,
    width: Ints,
    capacity: int,
    moments: Floats | None = None,
    ticks: Callable[[int], Ints] | None = None,
) -> GridJobs:
    """Return jobs on the finest grid that is needed and fits. Complexity O(n).

    Parameters
    ----------
    release
        Earliest start of every job's work, in seconds, f64[n].
    seconds
        Length of every job's work in seconds, f64[n].
    width
        Units of capacity that every job holds, i64[n].
    capacity
        Units of the machine.
    moments
        Further times that shall be on the grid, in seconds, f64[].
    ticks
        Function from a grid exponent to the exact works in ticks, i64[n], if ``seconds`` is rounded.
    """
    held = release if moments is None else np.concatenate([release, moments])
    k = grid_exponent(held, seconds, width, capacity)
    scale = math.ldexp(1.0, k)
    start = _floors(release, scale)
    first = int(start.min()) if start.size else 0
    work = _floors(seconds, scale) * width if ticks is None else ticks(k)
    return GridJobs(capacity, k, first * capacity, (start - first) * np.int64(capacity), work)


def due_ticks(due: Floats, grid: GridJobs) -> Ints:
    """Return due dates in ticks from the origin of a grid, i64[n], rounded **up**, which makes no job later.

    Parameters
    ----------
    due
        Due dates in seconds, f64[n], which the grid can hold.
    grid
        The jobs on their grid.
    """
    ticks = -_floors(-due, math.ldexp(1.0, grid.exponent)) - np.int64(grid.origin // grid.capacity)
    return np.asarray(ticks * np.int64(grid.capacity), dtype=np.int64)


def grid_exponent(moments: Floats, seconds: Floats, width: Ints, capacity: int) -> int:
    """Return k: the smallest number >= 0 that loses nothing, or the largest that fits in `BITS` bits.

    Parameters
    ----------
    moments
        Times that shall be on the grid, in seconds, f64[].
    seconds
        Length of every job's work in seconds, f64[n].
    width
        Units of capacity that every job holds, i64[n].
    capacity
        Units of the machine.
    """
    if moments.size == 0:
        return 0
    last, first, longest = float(moments.max()), float(moments.min()), float(seconds.max())
    latest = (last * _SMALL - first * _SMALL) * capacity + float(np.sum(width * (seconds * _SMALL)))
    sizes = (latest, last * _SMALL, first * _SMALL, longest * _SMALL)
    # frexp: every one is < 2**bits (0 has no exponent); one bit more makes up for the relative error of the sum
    bits = 1 + _SMALL_BITS + max((math.frexp(size)[1] for size in sizes if size), default=0)
    fits = min(BITS - bits, _FINEST)
    # copies: numba compiles once more for arrays that may not be written
    return min(max(fraction_bits(moments.copy(), fits), fraction_bits(seconds.copy(), fits)), fits)


@njit
def fraction_bits(values: Floats, enough: int) -> int:
    """Return the smallest k >= 0 that makes every ``value * 2**k`` an integer; at most ``max(enough, 0)``.

    Parameters
    ----------
    values
        Numbers, f64[].
    enough
        Largest k that is tried.
    """
    k, scale = 0, 1.0
    for x in values:
        while k < enough and np.floor(x * scale) != x * scale:
            k += 1
            scale *= 2.0
    return k


def _floors(values: Floats, scale: float) -> Ints:
    scaled = values * scale
    # a product that is lost below the smallest float has a floor too
    return np.where((scaled == 0.0) & (values < 0.0), -1.0, np.floor(scaled)).astype(np.int64)
