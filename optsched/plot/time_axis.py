"""Time axes in seconds, minutes, hours or days; the data stay in seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, Locator

from optsched.deadline import seconds_in

MAX_INTERVALS, LEAST_INTERVALS = 10, 3  # between two labelled ticks of one axis
APART = 0.45  # inches between two such ticks, at least


@dataclass(frozen=True)
class Unit:
    """A unit of time: ``seconds`` long; used for spans below ``below`` seconds; round numbers are ``steps`` and decades."""

    name: str
    seconds: float
    below: float
    steps: tuple[float, ...] = ()


UNITS = (
    Unit("s", 1.0, 600.0),
    Unit("min", 60.0, 6 * 3600.0, (1, 2, 5, 10, 15, 30, 60)),
    Unit("h", 3600.0, 4 * 86400.0, (1, 2, 3, 6, 12, 24)),
    Unit("d", 86400.0, math.inf),
)


def unit_for(span: float) -> Unit:
    """Return the unit for a span of time.

    Parameters
    ----------
    span
        Length in seconds.
    """
    return next(unit for unit in UNITS if not span >= unit.below)


class TimeLocator(Locator):
    """Ticks at round multiples of a unit: quarters of an hour, quarters of a day, else 1, 2 and 5 times a power of ten."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit

    def __call__(self) -> list[float]:
        low, high = sorted(self.axis.get_view_interval())  # type: ignore[union-attr]
        return self.tick_values(low, high)

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Return the tick positions in [vmin, vmax], in seconds.

        Parameters
        ----------
        vmin, vmax
            Ends of the axis in seconds.
        """
        step = self._step((vmax - vmin) / self.unit.seconds, self._most()) * self.unit.seconds
        first, last = math.ceil(vmin / step - 1e-9), math.floor(vmax / step + 1e-9)
        return [k * step for k in range(first, last + 1)]

    def _most(self) -> int:
        """Return the largest number of intervals for which an axis has room for labels."""
        ax: Any = getattr(self.axis, "axes", None)
        figure = None if ax is None else ax.get_figure(root=True)
        if figure is None:
            return MAX_INTERVALS
        return int(np.clip(ax.get_window_extent().width / figure.dpi / APART, LEAST_INTERVALS, MAX_INTERVALS))

    def _step(self, span: float, most: int) -> float:
        least = span / most
        for step in self.unit.steps:
            if step >= least >= self.unit.steps[0] / 2:
                return step
        if not least > 0:
            return 1.0
        decade = 10.0 ** math.floor(math.log10(least))
        return next(k * decade for k in (1, 2, 5, 10) if k * decade >= least * (1 - 1e-12))


def number(value: float) -> str:
    """Format a number with four figures, and with separated thousands.

    Parameters
    ----------
    value
        The number.
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def in_unit(seconds: float, least: float = 2.0) -> str:
    """Format a length of time, e.g. ``2.5 h``, in the largest unit in which it is at least ``least``.

    Parameters
    ----------
    seconds
        Length in seconds.
    least
        Smallest number in the chosen unit.
    """
    unit = next((unit for unit in reversed(UNITS) if abs(seconds) >= least * unit.seconds), UNITS[0])
    return f"{seconds / unit.seconds:.3g} {unit.name}"


def moment(text: float | str | None, field: str) -> float | None:
    """Return seconds from a number, or from text such as ``90``, ``"90s"``, ``"1.5 h"`` (`seconds_in`); None stays None.

    Parameters
    ----------
    text
        Number of seconds, or text.
    field
        Name of the field, for errors.
    """
    return None if text is None else seconds_in(text, field)


def time_axis(ax: Axes, start: float, end: float) -> Unit:
    """Make the x axis show a window of time in a suitable unit, and return the unit.

    Parameters
    ----------
    ax
        Axes to change.
    start, end
        Window in seconds.
    """
    ax.set_xlim(start, end)
    unit = unit_for(end - start)
    label_time(ax, unit, "time")
    return unit


def label_time(ax: Axes, unit: Unit, label: str) -> None:
    """Set ticks and label of an x axis whose data are in seconds.

    Parameters
    ----------
    ax
        Axes to change.
    unit
        Unit of the labels.
    label
        Name of the axis.
    """
    ax.xaxis.set_major_locator(TimeLocator(unit))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: number(seconds / unit.seconds)))
    ax.set_xlabel(f"{label} ({unit.name})", fontsize=9)
