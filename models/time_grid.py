"""Coarsest grid of time on which every release and every completion can lie.

Regular objectives have an optimal schedule in which every job starts at its release or at the completion of another job
(move jobs to the left until nothing moves). All times of such a schedule are the first release plus a multiple of

    unit = gcd of all (r_j - first release) and all p_j,

so a time-indexed model needs slots of that length only: minutes given in seconds cost no more than minutes. The gcd is
taken in exact arithmetic (a float64 is a fraction). Times such as 0.1, which float64 cannot represent, have no common unit
of a useful size. `time_grid` refuses them and rounds nothing; `rounded_grid` rounds them down and gives lower bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

import numpy as np

from optsched.errors import InputError
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.speeds.duration import fixed_durations

FINE = 50  # bits of the total time if times are rounded down
SLOTS = 100_000_000  # largest number of slots of the longest time; with more, the common unit is too small to be useful


@dataclass(frozen=True)
class TimeGrid:
    """Slot k is the time from ``origin + k unit`` to ``origin + (k + 1) unit`` seconds.

    ``release`` and ``duration`` are i64[n] in slots, releases counted from ``origin``, the first arrival.
    """

    origin: float
    unit: Fraction
    release: Ints
    duration: Ints

    @property
    def end(self) -> int:
        """Slot by which every schedule without needless waiting is over."""
        return int(self.release.max(initial=0)) + int(self.duration.sum()) + 1

    @property
    def exact(self) -> bool:
        """True if float64 represents every boundary of schedules without needless waiting; false for a unit of 0.1."""
        first, last = Fraction(self.origin), self.end - 1
        finest = lcm(first.denominator, self.unit.denominator)
        common = gcd(int(first * finest), int(self.unit * finest))
        power = Fraction(common & -common, finest)  # all boundaries are multiples of this power of two
        return abs(first) + last * self.unit <= power * 2**53

    def seconds(self, slots: Ints) -> Floats:
        """Return the absolute times of slot boundaries, in seconds.

        Parameters
        ----------
        slots
            Numbers of slots.
        """
        return np.asarray(self.origin + slots * float(self.unit), dtype=np.float64)

    def slots(self, seconds: Floats) -> Ints:
        """Return the last slot boundary at or before absolute times.

        A time one ulp before a boundary counts as the boundary.

        Parameters
        ----------
        seconds
            Absolute times in seconds.
        """
        # a sum of float64 times may lie an ulp below the boundary that it stands for
        return np.floor((seconds - self.origin) / float(self.unit) + 1e-6).astype(np.int64)


def releases(instance: Instance) -> tuple[float, list[Fraction]]:
    """Return the first arrival, and the exact seconds from it to every arrival.

    Parameters
    ----------
    instance
        Jobs and cluster.
    """
    origin = float(instance.arrival.min())
    return origin, [Fraction(r) - Fraction(origin) for r in instance.arrival.tolist()]


def time_grid(instance: Instance) -> TimeGrid:
    """Return the grid of an instance.

    Parameters
    ----------
    instance
        Jobs and cluster.

    Raises
    ------
    InputError
        If its times have no common unit, or depend on where a job runs.
    """
    duration, (origin, release) = fixed_durations(instance), releases(instance)
    return TimeGrid(origin, *on_common_unit(release, [Fraction(p) for p in duration.tolist()]))


def rounded_grid(instance: Instance) -> TimeGrid:
    """Return releases and durations rounded down to a unit of about 2^-`FINE` of the total time that a schedule can need.

    A feasible schedule remains feasible when its starts are rounded down, too: floor(s) + floor(p) <= floor(s + p).

    Parameters
    ----------
    instance
        Jobs and cluster.

    Raises
    ------
    InputError
        If times depend on where a job runs.
    """
    duration, (origin, release) = [Fraction(p) for p in fixed_durations(instance).tolist()], releases(instance)
    unit = Fraction(2) ** (math.frexp(float(max(release) + sum(duration)))[1] - FINE)
    slots = [np.array([time // unit for time in times], dtype=np.int64) for times in (release, duration)]
    return TimeGrid(origin, unit, *slots)


def on_common_unit(release: Sequence[Fraction], duration: Sequence[Fraction]) -> tuple[Fraction, Ints, Ints]:
    """Return the times as multiples of their largest common unit.

    Parameters
    ----------
    release
        Releases in seconds.
    duration
        Durations in seconds.

    Returns
    -------
    unit
        The unit in seconds.
    release
        Releases in units, i64.
    duration
        Durations in units, i64.

    Raises
    ------
    InputError
        If the longest time has more than `SLOTS` units.
    """
    times = [*release, *duration]
    denominator = lcm(*{time.denominator for time in times})
    numerators = [time.numerator * (denominator // time.denominator) for time in times]
    step = gcd(*numerators)
    unit, longest = Fraction(step, denominator), max(numerators) // step
    if longest > SLOTS:
        raise InputError(
            f"the longest common unit of the times is {float(unit):.2g} s, which makes {longest:.2g} slots",
            field="arrival, duration",
            legal=f"multiples of a common unit that float64 holds exactly, at most {SLOTS:.0g} of them",
        )
    slots = np.array([number // step for number in numerators], dtype=np.int64)
    return unit, slots[: len(release)], slots[len(release) :]
