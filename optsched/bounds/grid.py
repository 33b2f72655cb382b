"""The integer grid on which the compiled bounds compute: no division, no rounding but a floor at the start.

Time in seconds is multiplied by ``2**k`` and by the capacity U of the machine (see `gang_machine`), so that a job is an
integer amount of work ``u_j floor(d_j 2**k)`` for a machine that does one unit of it a tick, released at the tick
``U floor(r_j 2**k)``. One tick is ``1 / (2**k U)`` seconds.

Float64 times are integers times powers of two. k is the smallest one >= 0 that makes every r_j and d_j an integer, if
all sums then fit in 61 bits: the instance on the grid is the given one. Otherwise k is the largest that fits, and releases
and durations are rounded **down**. That keeps a lower bound valid: a schedule of the given instance also respects the
earlier releases, and the rates of each job multiplied by (rounded work / work) <= 1 do the rounded work by the same
moments; so the optimum of the rounded instance, whether of completion times or of mean busy times, is not larger.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.bounds.certificate import ratio_text
from optsched.bounds.gang_machine import GangMachine
from optsched.compiled import njit

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

BITS = 61  # of the latest tick: sums of two ticks still fit in a signed word
_SMALL_BITS = 80  # sums of 2**80 times smaller times never overflow a float
_SMALL = 2.0**-_SMALL_BITS
_FINEST = 1000  # 2.0**k and its inverse stay normal numbers


@dataclass(frozen=True)
class GridJobs:
    """Jobs on the grid: ``release`` ticks counted from ``origin``, ``work`` in ticks, i64[n]; ``exponent`` is k."""

    threshold: int
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
        """What a certificate says of the machine and the grid."""
        return {
            "threshold": self.threshold,
            "capacity": self.capacity,
            "grid_exponent": self.exponent,
            "tick": ratio_text(self.tick),
        }


def on_grid(release: Floats, duration: Floats, machine: GangMachine) -> GridJobs:
    """The jobs of a machine on the finest grid that is needed and fits. O(n)."""
    return _on_grid(release, duration, machine, grid_exponent(release, duration, machine))


def on_grid_with_dues(release: Floats, duration: Floats, due: Floats, machine: GangMachine) -> tuple[GridJobs, Ints]:
    """The jobs and their due dates, in ticks from the same origin, on a grid that holds both; i64[n].

    Due dates are rounded **up**, and those after the machine's last possible completion are moved down to it: neither
    makes any tardiness larger, and the second changes none.
    """
    if release.size == 0:
        return on_grid(release, duration, machine), np.zeros(0, dtype=np.int64)
    horizon = (float(release.max()) + float(np.sum(machine.width * duration)) / machine.capacity) * (1 + 1e-9)
    due = np.minimum(due, np.ceil(horizon))
    k = grid_exponent(np.concatenate([release, due]), duration, machine)
    ticks = -_floors(-due, math.ldexp(1.0, k)) - _floors(release, math.ldexp(1.0, k)).min()
    return _on_grid(release, duration, machine, k), ticks * np.int64(machine.capacity)


def grid_exponent(moments: Floats, duration: Floats, machine: GangMachine) -> int:
    """k: the smallest >= 0 that loses nothing, or the largest that fits in `BITS` bits."""
    if moments.size == 0:
        return 0
    last, first, longest = float(moments.max()), float(moments.min()), float(duration.max())
    latest = (last * _SMALL - first * _SMALL) * machine.capacity + float(np.sum(machine.width * (duration * _SMALL)))
    sizes = (latest, last * _SMALL, first * _SMALL, longest * _SMALL)
    # frexp: every one is < 2**bits (0 has no exponent); one bit more makes up for the relative error of the sum
    bits = 1 + _SMALL_BITS + max((math.frexp(size)[1] for size in sizes if size), default=0)
    fits = min(BITS - bits, _FINEST)
    return min(max(fraction_bits(moments, fits), fraction_bits(duration, fits)), fits)


def _on_grid(release: Floats, duration: Floats, machine: GangMachine, k: int) -> GridJobs:
    scale = math.ldexp(1.0, k)
    ticks = _floors(release, scale)
    first = int(ticks.min()) if ticks.size else 0
    return GridJobs(
        threshold=machine.threshold,
        capacity=machine.capacity,
        exponent=k,
        origin=first * machine.capacity,
        release=(ticks - first) * np.int64(machine.capacity),
        work=_floors(duration, scale) * machine.width,
    )


@njit(cache=True)
def fraction_bits(values: Floats, enough: int) -> int:
    """The smallest k >= 0 that makes every ``value * 2**k`` an integer, or ``max(enough, 0)`` if none below does."""
    k, scale = 0, 1.0
    for x in values:
        while k < enough and np.floor(x * scale) != x * scale:
            k += 1
            scale *= 2.0
    return k


@njit(cache=True)
def _floors(values: Floats, scale: float) -> Ints:
    ticks = np.empty(values.size, dtype=np.int64)
    for i in range(values.size):
        scaled = values[i] * scale
        # a product that is lost below the smallest float has a floor too
        ticks[i] = np.int64(-1) if scaled == 0.0 and values[i] < 0.0 else np.int64(np.floor(scaled))
    return ticks
