"""Units in which gangs are searched: of times, of slots that prices have, and of values.

Where times and values have common units that float64 holds, these. Else times are rounded down to 2^-50 of the whole time,
and costs to 2^-42 of what a schedule costs more than it must: then a schedule stays one, and costs no more. What is proved
of the rounded problem holds, and an optimum is one but for `CLOSE` of what is at stake.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from optsched.models.time_grid import TimeGrid, rounded_grid
from optsched.problem.arrays import Floats, Ints
from optsched.solvers.method import there
from optsched.solvers.solve_state import CLOSE, SolveState
from optsched.speeds.duration import fixed_durations

MOST_SLOTS = 10_000  # more cost time and gain little
LARGEST, VALUES = 1 << 44, 42  # a value in steps; bits of one where steps are made up
EXACT = 2.0**53


class Times(NamedTuple):
    """Of the jobs of `StartJobs`, in units of time, 2^``shift`` a slot: ``release``, ``length`` i64[n].

    Started at t, job j costs max(floor(rise_j (t - release_j) + base_j), 0) steps more than on arrival, f64[n]. ``before``
    i64[n]: see `alike`.
    """

    release: Ints
    length: Ints
    shift: int
    rise: Floats
    base: Floats
    before: Ints

    def cost(self, starts: Ints) -> Floats:
        """f64[n, S] of starting job j at ``starts`` i64[n, S]."""
        waits = self.rise[:, None] * (starts - self.release[:, None])
        return np.asarray(np.maximum(np.floor(waits + self.base[:, None]), 0.0))


@dataclass(frozen=True, eq=False)
class Clock:
    """Times in units of ``grid``, 2^``shift`` a slot; values in a ``step``, from ``zero`` on: what jobs pay at least.

    A better value is lower by a ``margin``. ``rise`` and ``base`` f64[n] as in `Times`.
    """

    grid: TimeGrid
    step: Fraction
    zero: Fraction
    margin: Fraction
    rise: Floats
    base: Floats

    @classmethod
    def of(cls, state: SolveState) -> Clock:
        """The common units of times and values where floats hold them; else both are rounded down to fine ones."""
        duration, arrival, value = fixed_durations(state.instance), state.instance.arrival, there(state.value)
        soonest = [Fraction(r) + Fraction(p) for r, p in zip(arrival.tolist(), duration.tolist(), strict=True)]
        zero = sum((cost.at(end) for cost, end in zip(state.costs, soonest, strict=True)), Fraction(0))
        late = [min(end - cost.kink, Fraction(0)) for cost, end in zip(state.costs, soonest, strict=True)]
        grid, step = state.grid, state.finest_step
        margin = step or state.at_stake * Fraction(CLOSE) / 2
        if grid is not None and step is not None and (value - zero) / step < LARGEST:
            slopes = [cost.slope / step for cost in state.costs]
            rates = [(slope * grid.unit, slope * wait) for slope, wait in zip(slopes, late, strict=True)]
            if max(rise * grid.end - base for rise, base in rates) < EXACT:
                return cls(grid, step, zero, margin, *np.array(rates, dtype=np.float64).T)
        grid = rounded_grid(state.instance)
        step = Fraction(2) ** math.frexp(float(max((value - zero) / 2**VALUES, margin / 2**10)))[1]
        rise = np.array([float(cost.slope * grid.unit / step) for cost in state.costs])
        base = np.array([float(cost.slope * wait / step) for cost, wait in zip(state.costs, late, strict=True)])
        # a unit more: floor(t) - floor(r) may be that much more than t - r; the rest is for rounding of floats
        return cls(grid, step, zero, margin, rise, base * (1 + 2.0**-50) - rise - 2)

    @property
    def shift(self) -> int:
        """0 where slots of one unit are few enough."""
        return (self.grid.end // MOST_SLOTS).bit_length()

    @property
    def slots(self) -> int:
        """By which every left-shifted schedule is over."""
        return (self.grid.end >> self.shift) + 1


def alike(state: SolveState, order: Ints) -> Ints:
    """i64[n], in this order: the last job before that is alike but for its arrival, -1 where there is none."""
    found, last = np.full(order.size, -1), dict[tuple[object, ...], int]()
    duration, arrival = fixed_durations(state.instance), state.instance.arrival
    for k, j in enumerate(order.tolist()):
        cost = state.costs[j]
        length = float(duration[j])
        if cost.kink <= Fraction(float(arrival[j])) + Fraction(length):  # pays as much a second from then on
            kind = length, int(state.instance.gpus[j]), cost.slope
            found[k], last[kind] = last.get(kind, -1), k
    return found
