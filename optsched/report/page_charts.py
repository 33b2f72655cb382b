"""Charts of a page as data: positions in per cent, which the template draws as SVG in the colours of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from optsched.plot.colours import ink_on, job_colours
from optsched.plot.gantt import blocks_of
from optsched.plot.node_rows import NodeRows
from optsched.plot.time_axis import number, unit_for
from optsched.plot.timeline import Timeline
from optsched.problem.arrays import Floats
from optsched.problem.schedule import Schedule

WIDE, HIGH = 1000, 400  # units of the drawing of curves, which is stretched to its place
TICKS = 5  # on an axis, about; a phone has room for their labels
ROW = 16.0  # pixels of a GPU's row in a Gantt chart
LETTER, SHOWN_WIDTH = 7.0, 700.0  # pixels of a letter, and of a chart on a screen

Tick = tuple[float, str]  # position in per cent, label


@dataclass(frozen=True)
class Curve:
    """A curve of a chart: its name, its colour (from 1 on) and the path of its SVG element."""

    name: str
    colour: int
    path: str


@dataclass(frozen=True)
class LineChart:
    """Step curves over a common axis.

    Parameters
    ----------
    title
        Title.
    alternative
        What the chart shows, as text for readers who do not see it.
    curves
        The curves.
    across, up
        Ticks of both axes.
    x_label
        Label of the horizontal axis.
    """

    kind: ClassVar[str] = "lines-chart"
    title: str
    alternative: str
    curves: Sequence[Curve]
    across: Sequence[Tick]
    up: Sequence[Tick]
    x_label: str = ""


@dataclass(frozen=True)
class Block:
    """A rectangle of a Gantt chart: a gang on neighbouring GPUs; ``left`` and ``width`` in per cent, the rest in pixels."""

    left: float
    width: float
    top: float
    height: float
    colour: str
    ink: str
    label: str
    fact: str


@dataclass(frozen=True)
class GanttChart:
    """A Gantt chart.

    Parameters
    ----------
    title
        Title.
    alternative
        What the chart shows, as text.
    blocks
        The rectangles.
    rows
        (top in pixels, height, label) of every node.
    height
        Height in pixels.
    across
        Ticks of the time axis.
    x_label
        Label of the time axis.
    """

    kind: ClassVar[str] = "gantt"
    title: str
    alternative: str
    blocks: Sequence[Block]
    rows: Sequence[tuple[float, float, str]]
    height: float
    across: Sequence[Tick]
    x_label: str


@dataclass(frozen=True)
class Strip:
    """A row of a strip chart: a mark for every number, and their mean, in per cent; ``text`` says the mean and the worst."""

    name: str
    marks: Sequence[float]
    mean: float
    text: str


@dataclass(frozen=True)
class StripChart:
    """Numbers of several policies on a common axis.

    Parameters
    ----------
    title
        Title.
    alternative
        What the chart shows, as text.
    strips
        A row a policy.
    across
        Ticks of the axis.
    """

    kind: ClassVar[str] = "strips"
    title: str
    alternative: str
    strips: Sequence[Strip]
    across: Sequence[Tick]


def round_ticks(low: float, high: float, most: int = TICKS) -> list[float]:
    """Return round numbers in [low, high]: multiples of 1, 2, 2.5 or 5 times a power of ten.

    Parameters
    ----------
    low, high
        Ends of the axis.
    most
        Largest number of intervals.
    """
    least = (high - low) / most
    if not least > 0:
        return [low]
    decade = 10.0 ** math.floor(math.log10(least))
    step = next(k * decade for k in (1, 2, 2.5, 5, 10) if k * decade >= least * (1 - 1e-12))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def time_ticks(end: float) -> tuple[list[Tick], str]:
    """Return the ticks of a time axis from 0, and its label.

    Parameters
    ----------
    end
        End of the axis in seconds.
    """
    unit = unit_for(end)
    ticks = [(100 * t * unit.seconds / end, number(t)) for t in round_ticks(0.0, end / unit.seconds)]
    return ticks, {"s": "seconds", "min": "minutes", "h": "hours", "d": "days"}[unit.name]


def step_path(edges: Floats, values: Floats, end: float, top: float) -> str:
    """Return the path of a step function as SVG.

    Parameters
    ----------
    edges
        Times from which on each value holds, f64[m].
    values
        The values, f64[m].
    end
        Time at which the drawing ends; the last value holds until then.
    top
        Value at the upper edge of the drawing.
    """
    x = np.rint(np.clip(edges / end, 0.0, 1.0) * WIDE).astype(np.int64).tolist()
    y = np.rint((1 - np.clip(values / top, 0.0, 1.0)) * HIGH).astype(np.int64).tolist()
    if not x:
        return ""
    moves = [f"M{x[0]} {y[0]}"]
    for k in range(1, len(x)):
        if y[k] != y[k - 1]:
            moves.append(f"H{x[k]}V{y[k]}")
    return "".join([*moves, f"H{WIDE}"])


def line_path(points: Sequence[tuple[float, float]]) -> str:
    """Return the path of straight lines through points as SVG.

    Parameters
    ----------
    points
        (x, y) from 0 to 1, y upwards.
    """
    return "M" + "L".join(f"{x * WIDE:.0f} {(1 - y) * HIGH:.0f}" for x, y in points) if points else ""


def line_chart(
    title: str,
    curves: Sequence[tuple[str, Floats, Floats]],
    end: float,
    alternative: str,
    *,
    top: float = 0.0,
    per_cent: bool = False,
) -> LineChart:
    """Return a chart of step functions of time.

    Parameters
    ----------
    title
        Title.
    curves
        (name, times in seconds f64[m], values f64[m]) of every curve.
    end
        End of the time axis in seconds.
    alternative
        What the chart shows, as text.
    top
        Value that the vertical axis reaches at least.
    per_cent
        True if values are shares.
    """
    top = max([top, *(float(values.max(initial=0.0)) for _, _, values in curves)]) or 1.0
    across, label = time_ticks(end)
    scale = 100 if per_cent else 1
    up = [(100 * value / (top * scale), number(value) + (" %" if per_cent else "")) for value in _up(top * scale)]
    drawn = [Curve(name, k, step_path(x, y, end, top)) for k, (name, x, y) in enumerate(curves, 1)]
    return LineChart(title, alternative, drawn, across, up, f"{label} since the first arrival")


def _up(top: float) -> list[float]:
    return round_ticks(0.0, top, 4)[1:]


def gantt_chart(schedule: Schedule, title: str) -> GanttChart:
    """Return the Gantt chart of a small schedule.

    Parameters
    ----------
    schedule
        The schedule, of whole jobs.
    title
        Title.
    """
    t = Timeline.of(schedule.relative)
    rows = NodeRows(t.node_gpus, t.node_names)
    found, end = blocks_of(t, rows), max(t.span[1], 1e-12)
    colours, across = job_colours(t.ids), time_ticks(end)
    blocks = []
    for segment, left, right, upper, lower in zip(
        found.segment, found.left, found.right, found.upper, found.lower, strict=True
    ):
        job, wide = int(t.job[segment]), 100 * float(right - left) / end
        name, colour = t.ids[job], colours[job]
        fits = LETTER * len(name) + 4 <= wide / 100 * SHOWN_WIDTH
        fact = f"job {name}: {number(float(left))} to {number(float(right))} s"
        shade = "#" + "".join(f"{round(255 * part):02x}" for part in colour)
        place = round(100 * float(left) / end, 3), round(wide, 3), float(upper) * ROW, float(lower - upper) * ROW
        blocks.append(Block(*place, shade, ink_on(colour), name if fits else "", fact))
    alternative = (
        f"{len(t.ids):,} jobs on {t.gpus:,} GPUs, {t.job.size:,} segments, the last one ends after {number(end)} s"
    )
    nodes = zip(rows.top, t.node_gpus, t.node_names, strict=True)
    named = [(float(top) * ROW, float(gpus) * ROW, name) for top, gpus, name in nodes]
    return GanttChart(title, alternative, blocks, named, rows.height * ROW, *across)


def strip_chart(title: str, numbers: Sequence[tuple[str, Sequence[float]]], least: float = 1.0) -> StripChart:
    """Return a chart with a mark for every number of every policy.

    Parameters
    ----------
    title
        Title.
    numbers
        (policy, numbers) of every row; a policy without numbers is left out.
    least
        Left end of the axis, unless a number is smaller.
    """
    rows = [(name, np.sort(np.asarray(values, dtype=np.float64))) for name, values in numbers if len(values)]
    low = min([least, *(float(values[0]) for _, values in rows)])
    high = max([least, *(float(values[-1]) for _, values in rows)])
    wide = (high - low) * 1.02 or 1.0
    strips, said = [], []
    for name, values in rows:
        kept = values[np.unique(np.linspace(0, values.size - 1, min(values.size, 300)).astype(np.int64))]
        marks = np.unique(np.round(100 * (kept - low) / wide, 1)).tolist()
        text = f"mean {values.mean():.3f}, largest {values[-1]:.3f}"
        strips.append(Strip(name, marks, round(100 * float(values.mean() - low) / wide, 2), text))
        said.append(f"{name}: {text}")
    across = [(100 * (value - low) / wide, number(value)) for value in round_ticks(low, low + wide)]
    return StripChart(title, "; ".join(said), strips, across)
