"""`WorkingClock`: an instance in units of time that fit a solver whose tolerances are absolute numbers.

HiGHS takes 1e-9 of anything for nothing. A model whose rows hold times (`Formulation.in_seconds`) is therefore built in

* the exact common unit of all times, where they have one and it makes them integers that are not large, else
* seconds times a power of two, with which the longest job lasts about a hundred, where it is far from that in seconds.

Either way every time in units is a float without rounding. Values of regular objectives count in the same units, since
costs are ``base + slope max(C - kink, 0)`` with base and kink times, or 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl

from optsched.errors import InputError
from optsched.models.formulation import REGULAR
from optsched.models.time_grid import time_grid
from optsched.problem.instance import Instance
from optsched.problem.job_table import LONGEST, SHORTEST

PLAIN = (0.125, 2.0**20)  # longest times, in seconds, that a model takes as they are
FEW = 2**20  # units of the common unit in the longest time; a unit finer than that is no better than a power of two


@dataclass(frozen=True)
class WorkingClock:
    """``instance`` has the times of another one in units of ``unit`` seconds."""

    instance: Instance
    unit: Fraction

    @classmethod
    def of(cls, instance: Instance, objective: str) -> WorkingClock:
        """The clock for an instance whose time counts from its first arrival; O(n)."""
        own = cls(instance, Fraction(1))
        if objective not in REGULAR or not np.isfinite(instance.duration).all():
            return own
        unit = _common_unit(instance) or _power_of_two(instance)
        return own if unit == 1 else cls(_in_units(instance, unit), unit)

    def units(self, seconds: float) -> float:
        """A time in units, rounded up."""
        exact = Fraction(seconds) / self.unit
        nearest = float(exact)
        return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def _times(instance: Instance) -> list[float]:
    due = instance.due[np.isfinite(instance.due)]
    return [*instance.arrival.tolist(), *instance.duration.tolist(), *due.tolist()]


def _common_unit(instance: Instance) -> Fraction | None:
    try:
        unit = time_grid(instance).unit
    except InputError:
        return None
    in_units = [Fraction(time) / unit for time in _times(instance)]
    fits = all(time.denominator == 1 and abs(time) <= FEW for time in in_units)
    return unit if fits else None


def _power_of_two(instance: Instance) -> Fraction:
    longest = float(instance.duration.max())
    if PLAIN[0] <= longest <= PLAIN[1]:
        return Fraction(1)
    unit = Fraction(2) ** (math.frexp(longest)[1] - 7)
    times = [abs(Fraction(time)) / unit for time in _times(instance) if time]
    return unit if times and min(times) >= SHORTEST and max(times) <= LONGEST else Fraction(1)


def _in_units(instance: Instance, unit: Fraction) -> Instance:
    def units(name: str) -> pl.Series:
        times = [None if time is None else float(Fraction(time) / unit) for time in instance.table[name].to_list()]
        return pl.Series(name, times, dtype=pl.Float64)

    table = instance.table.with_columns(units(name) for name in ("arrival", "duration", "due"))
    return instance.replace(jobs=table, optimum=None)
