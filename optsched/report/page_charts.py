"""Charts of a page as data: positions in per cent, which the template draws as SVG in the colours of the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from optsched.io.traces.log_reading import unit_of
from optsched.plot.colours import ink_on, job_colours
from optsched.plot.gantt import blocks_of
from optsched.plot.node_rows import NodeRows
from optsched.plot.time_axis import number, unit_for
from optsched.plot.timeline import Timeline
from optsched.problem.arrays import Floats
from optsched.problem.schedule import Schedule

WIDE, HIGH = 1000, 400  # units of the drawing of curves, which is stretched to its place
ACROSS, UP = 5, 4  # ticks on an axis, about; a phone has room for their labels
MOST_MARKS = 300  # of a strip
ROW = 16.0  # pixels of a GPU's row in a Gantt chart
LETTER, SHOWN_WIDTH = 7.0, 700.0  # pixels of a letter, and of a chart on a screen
UNITS = {"s": "seconds", "min": "minutes", "h": "hours", "d": "days"}

Tick = tuple[float, str]  # position in per cent, label


@dataclass(frozen=True)
class PageChart:
    """A chart of a page.

    ``shape`` is ``curves``, ``gantt`` or ``strips``; ``alternative`` says in text what the chart shows. ``marks`` are
    (colour from 1 on, path) of every curve; (left, width, top, height, colour, ink, label, fact) of every block, with top
    and height in pixels; (name, positions, mean, text) of every strip. ``across`` and ``up`` are the ticks of the axes.
    ``rows`` are (top, height, label) of the nodes of a Gantt chart, in pixels.
    """

    kind: ClassVar[str] = "chart"
    shape: str
    title: str
    alternative: str
    marks: Sequence[Any]
    across: Sequence[Tick]
    up: Sequence[Tick] = ()
    x_label: str = ""
    rows: Sequence[tuple[float, float, str]] = ()
    height: float = 0.0


def line_chart(
    title: str,
    curves: Sequence[tuple[str, Floats, Floats]],
    end: float,
    said: Sequence[str],
    top: float = 0.0,
    unit: str = "",
) -> PageChart:
    """Return a chart of step functions of time.

    Parameters
    ----------
    title
        Title.
    curves
        (name, times in seconds f64[m], values f64[m]) of every curve.
    end
        End of the time axis in seconds.
    said
        What each curve shows, as text.
    top
        Value that the vertical axis reaches at least.
    unit
        Unit behind the labels of the vertical axis.
    """
    top = max([top, *(float(values.max(initial=0.0)) for _, _, values in curves)]) or 1.0
    across, label = _time_ticks(end)
    up = [(100 * value / top, number(value) + unit) for value in _round(0.0, top, UP)[1:]]
    marks = [(k, _steps(times / end, values / top)) for k, (_, times, values) in enumerate(curves, 1)]
    return PageChart("curves", title, "; ".join(said), marks, across, up, f"{label} since the first submission")


def error_chart(title: str, curves: Sequence[tuple[str, Sequence[tuple[float, float]]]]) -> PageChart:
    """Return a chart of ratios, from 1 on, at prediction errors on a logarithmic axis.

    Parameters
    ----------
    title
        Title.
    curves
        (name, (error, ratio) of every point) of every curve.
    """
    errors = sorted({error for _, points in curves for error, _ in points}) or [1.0]
    wide = math.log(errors[-1] / errors[0]) or 1.0
    top = max([1.01, *(value for _, points in curves for _, value in points)])
    place = {error: math.log(error / errors[0]) / wide for error in errors}
    marks = []
    for k, (_, points) in enumerate(curves, 1):
        corners = (f"{place[x] * WIDE:.0f} {(1 - (y - 1) / (top - 1)) * HIGH:.0f}" for x, y in points)
        marks.append((k, "M" + "L".join(corners) if points else ""))
    said = (f"{name}: " + ", ".join(f"{y:.3f} at {x:g}" for x, y in points) for name, points in curves)
    across = [(100 * place[error], number(error)) for error in errors]
    up = [(100 * (value - 1) / (top - 1), number(value)) for value in _round(1.0, top, UP)]
    return PageChart("curves", title, "; ".join(said), marks, across, up, "prediction error (log scale)")


def gantt_chart(schedule: Schedule, title: str) -> PageChart:
    """Return the Gantt chart of a small schedule.

    Parameters
    ----------
    schedule
        The schedule, of whole jobs.
    title
        Title.
    """
    t = Timeline.of(schedule.relative)
    rows, colours, end = NodeRows(t.node_gpus, t.node_names), job_colours(t.ids), max(t.span[1], 1e-12)
    blocks = blocks_of(t, rows)
    marks = []
    for segment, left, right, top, bottom in zip(
        *(values.tolist() for values in (blocks.segment, blocks.left, blocks.right, blocks.upper, blocks.lower)),
        strict=True,
    ):
        job = int(t.job[segment])
        name, colour, wide = t.ids[job], colours[job], 100 * (right - left) / end
        label = name if LETTER * len(name) + 4 <= wide / 100 * SHOWN_WIDTH else ""
        shade = "#" + "".join(f"{round(255 * part):02x}" for part in colour)
        fact = f"job {name}: {number(left)} to {number(right)} s"
        place = round(100 * left / end, 3), round(wide, 3), top * ROW, (bottom - top) * ROW
        marks.append((*place, shade, ink_on(colour), label, fact))
    nodes = zip(rows.top.tolist(), t.node_gpus.tolist(), t.node_names, strict=True)
    across, label = _time_ticks(end)
    jobs = f"{len(t.ids):,} jobs on {t.gpus:,} {unit_of(schedule.instance)}s"
    said = f"{jobs}, {t.job.size:,} segments, the last one ends after {number(end)} s"
    named = [(top * ROW, gpus * ROW, name) for top, gpus, name in nodes]
    return PageChart("gantt", title, said, marks, across, x_label=label, rows=named, height=rows.height * ROW)


def strip_chart(title: str, numbers: Sequence[tuple[str, Sequence[float]]], least: float = 1.0) -> PageChart:
    """Return a chart with a mark for every number of every policy, and their mean.

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
    wide = (max([least, *(float(values[-1]) for _, values in rows)]) - low) * 1.02 or 1.0
    marks = []
    for name, values in rows:
        drawn = values[np.unique(np.linspace(0, values.size - 1, min(values.size, MOST_MARKS)).astype(np.int64))]
        places = np.unique(np.round(100 * (drawn - low) / wide, 1)).tolist()
        text = f"mean {values.mean():.3f}, largest {values[-1]:.3f}"
        marks.append((name, places, round(100 * float(values.mean() - low) / wide, 2), text))
    across = [(100 * (value - low) / wide, number(value)) for value in _round(low, low + wide, ACROSS)]
    return PageChart("strips", title, "; ".join(f"{mark[0]}: {mark[3]}" for mark in marks), marks, across)


def _round(low: float, high: float, most: int) -> list[float]:
    """Return at most about ``most`` round numbers in [low, high]: multiples of 1, 2, 2.5 or 5 times a power of ten."""
    least = (high - low) / most
    decade = 10.0 ** math.floor(math.log10(least))
    step = next(k * decade for k in (1, 2, 2.5, 5, 10) if k * decade >= least * (1 - 1e-12))
    return [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _time_ticks(end: float) -> tuple[list[Tick], str]:
    unit = unit_for(end)
    times = _round(0.0, end / unit.seconds, ACROSS)
    return [(100 * time * unit.seconds / end, number(time)) for time in times], UNITS[unit.name]


def _steps(across: Floats, up: Floats) -> str:
    """Return the path of a step function: values ``up`` from ``across`` on, both from 0 to 1."""
    x = np.rint(np.clip(across, 0.0, 1.0) * WIDE).astype(np.int64).tolist()
    y = np.rint((1 - np.clip(up, 0.0, 1.0)) * HIGH).astype(np.int64).tolist()
    moves = [f"H{x[k]}V{y[k]}" for k in range(1, len(x)) if y[k] != y[k - 1]]
    return "".join([f"M{x[0]} {y[0]}", *moves, f"H{WIDE}"])
