"""Charts of tables, one call each: bars and lines.

Rows are mappings or a polars frame. Rows with the same place in a chart (seeds) are drawn as their mean with its 95 %
confidence interval (`optsched.intervals`); one row a place is drawn as it is, with the interval that it names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from optsched.errors import InputError, check_legal
from optsched.intervals import estimate
from optsched.plot.canvas import (
    INK,
    QUIET,
    Width,
    key_above,
    name_lines,
    note,
    set_labels,
    set_title,
    wide_on_paper,
)
from optsched.plot.colours import CURVES, MARKS, ink_on
from optsched.plot.curves import frame, log_axis
from optsched.plot.time_axis import number
from optsched.problem.arrays import Floats

Rows = Sequence[Mapping[str, Any]] | pl.DataFrame

REACH = 2.0  # an axis ends where an interval is higher than so many times the largest value
LEAP = 4.0  # a bar so many times longer than the next one is cut
NUMBER = 0.2  # inches that the number above a bar takes
MOST_VALUES = 16  # more bars carry no number


class Point(NamedTuple):
    """A value and its interval; nan for unknown numbers."""

    value: float
    low: float = math.nan
    high: float = math.nan


def points(
    rows: Rows,
    keys: Sequence[str],
    value: str,
    low: str | None,
    high: str | None,
    half: str | None = None,
    least: float | None = None,
) -> dict[tuple[Any, ...], Point]:
    """Return the point of every combination of the columns ``keys``, in the order of the rows.

    Rows with a null value are left out. Without interval columns, several rows of a combination become their mean with its
    95 % interval.

    Parameters
    ----------
    rows
        Mappings or a polars frame.
    keys
        Columns that identify a point.
    value
        Column of the value.
    low, high
        Columns with the ends of an interval, or None.
    half
        Column with half the width of an interval, or None.
    least
        Lower limit of all intervals, or None.
    """
    table = rows.to_dicts() if isinstance(rows, pl.DataFrame) else list(rows)
    stated = [name for name in (low, high, half) if name is not None]
    found: dict[tuple[Any, ...], list[Point]] = {}
    for k, row in enumerate(table):
        for name in (*keys, value, *stated):
            if name not in row:
                raise InputError("no such column", field=f"rows[{k}]", value=name, legal=", ".join(map(str, row)))
        y, near = _number(row, value, k), _number(row, half, k)
        ends = (_number(row, low, k), _number(row, high, k)) if half is None else (y - near, y + near)
        if not math.isnan(y):
            found.setdefault(tuple(row[key] for key in keys), []).append(Point(y, *ends))
    check_legal(bool(found), value, "null in every row", "a number in at least one row")
    for place, several in found.items():
        if stated and len(several) > 1:
            raise InputError(f"{len(several)} rows with an interval at one place", field=", ".join(keys), value=place)
    return {
        place: _within(several[0], least) if len(several) == 1 else _mean(several, least)
        for place, several in found.items()
    }


def _number(row: Mapping[str, Any], name: str | None, k: int) -> float:
    value = math.nan if name is None or row[name] is None else row[name]
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or math.isinf(value):
        raise InputError("invalid", field=f"rows[{k}].{name}", value=value, legal="a finite number, or null")
    return float(value)


def _mean(several: Sequence[Point], least: float | None) -> Point:
    found = estimate([point.value for point in several], least)
    return Point(found.mean, *(math.nan if end is None else end for end in (found.low, found.high)))


def _within(point: Point, least: float | None) -> Point:
    # a stated interval, cut at what is possible
    return point if least is None else Point(point.value, *np.maximum(point[1:], least).tolist())


def bars(
    rows: Rows,
    *,
    value: str,
    by: str,
    group: str | None = None,
    low: str | None = None,
    high: str | None = None,
    half: str | None = None,
    least: float | None = None,
    reference: float | None = None,
    ylabel: str = "",
    ax: Axes | None = None,
    width: Width | None = None,
    title: str | None = None,
) -> Figure:
    """Draw a table as bars with confidence intervals; the bars of a ``group`` have one colour and are next to each other.

    A bar more than four times as long as the next one, with most bars below, is cut and labelled with its value, so that it
    does not flatten the others.

    Parameters
    ----------
    rows
        Mappings or a polars frame. Several rows of one bar (seeds) are drawn as their mean with its 95 % interval
        (`optsched.intervals`: one or two rows, or equal ones, have none).
    value, by, group
        Columns with the height of a bar, its place on the x axis, and its colour.
    low, high, half
        Columns with the ends of an interval, or half of its width; each row is then a bar of its own.
    least
        Lower limit of values and intervals: 1 for ratios to the best possible. Default: 0, unless a value is negative.
    reference
        Value of a horizontal line, such as 1 for ratios.
    ylabel
        Label of the y axis.
    ax
        Axes to draw on; by default those of a new figure.
    width
        Width of a new figure for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.
    title
        Title above the axes.

    Raises
    ------
    InputError
        If a column does not exist, a value is not a finite number (null: no bar), or a bar has several rows with
        intervals.

    Examples
    --------
    >>> import optsched as osd
    >>> rows = [{"policy": "fifo", "jct": 3.0, "half": 0.4}, {"policy": "srtf", "jct": 2.0, "half": 0.1}]
    >>> axes = osd.plot.bars(rows, value="jct", by="policy", half="half", ylabel="mean JCT (h)").axes[0]
    >>> [float(bar.get_height()) for bar in axes.patches]
    [3.0, 2.0]
    """
    found = points(rows, [by] if group is None else [by, group], value, low, high, half, least)
    places, groups = list(dict.fromkeys(key[0] for key in found)), list(dict.fromkeys(key[1:] for key in found))
    # inches of the longest line above the axes
    key = 0.08 * sum(len("".join(map(str, name))) + 6 for name in groups[:4])
    screen = min(11.0, max(4.5, 1.0 + key, 1.5 + 0.28 * len(places) * (len(groups) + 1)))
    ax, figure = frame(ax, screen, 3.8, width)
    wide, limit = 0.8 / len(groups), cut(np.array([point.value for point in found.values()]), reference or 0.0)
    numbered = len(found) <= MOST_VALUES and wide_on_paper(ax) > NUMBER * len(places) * (len(groups) + 1)
    highest = limit or _reach(ax, found.values(), reference or 0.0)
    for g, name in enumerate(groups):
        mine = [k for k, place in enumerate(places) if (place, *name) in found]
        x = np.array(mine) + (g - (len(groups) - 1) / 2) * wide
        drawn = [found[(places[k], *name)] for k in mine]
        y, below, above = np.array(drawn).T
        colour = CURVES[g % len(CURVES)]
        ax.bar(x, y, width=wide * 0.92, color=colour, label="".join(map(str, name)) or None, zorder=2)
        sure, ends = np.isfinite(below + above), np.array([y - below, above - y])
        style: dict[str, Any] = {"ecolor": INK, "elinewidth": 1.0, "capsize": 2.5, "zorder": 3}
        ax.errorbar(x[sure], y[sure], yerr=ends[:, sure], fmt="none", **style)
        for at, top, level in zip(x, np.fmax(y, above), y, strict=True):
            said: dict[str, Any] = {"text": f"{level:.3g}", "ha": "center", "fontsize": 7.5}
            if limit is not None and level > limit:
                note(ax, at=(at, limit), shift=(0, -3), va="top", color=ink_on(np.array(to_rgb(colour))), **said)
                ax.plot([at - wide / 2, at + wide / 2], [limit * 0.89, limit * 0.92], color="white", lw=2, zorder=4)
            elif numbered and highest is not None and top > highest:  # beside an interval that goes on
                note(ax, at=(at, level), shift=(2, 2), va="bottom", color=INK, **{**said, "ha": "left"})
            elif numbered:
                note(ax, at=(at, max(top, 0.0)), shift=(0, 2), va="bottom", color=INK, **said)
    every = np.array([*found.values(), (reference or 0.0,) * 3])
    ax.set_ylim(min(0.0, np.nanmin(every)) * 1.08, highest or np.nanmax(every) * 1.08 or 1.0)
    if reference is not None:
        ax.axhline(reference, color=INK, lw=0.9, ls=(0, (4, 3)), zorder=2.5)
    names = [f"{place}" for place in places]
    crowded = max(map(len, names)) * len(names) * 0.075 > figure.get_figwidth() - 1.2
    turned: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
    ax.set_xticks(range(len(places)), names, fontsize=8.5, parse_math=False, **turned)
    ax.tick_params(axis="x", length=0)
    set_labels(ax, y=ylabel or value.replace("_", " "))
    set_title(ax, title or "")
    if group is not None:
        key_above(ax)
    return figure


def _reach(ax: Axes, found: Iterable[Point], reference: float = 0.0) -> float | None:
    """Return the end of an axis that intervals would stretch beyond `REACH` times the largest value; otherwise None."""
    every = np.array(list(found))
    values, ends = max(float(every[:, 0].max()), reference), float(np.nanmax(every))
    if values <= 0 or ends <= REACH * values:
        return None
    corner: dict[str, Any] = {"transform": ax.transAxes, "ha": "right", "va": "top", "fontsize": 8, "color": QUIET}
    white = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.0}
    ax.text(0.998, 0.99, f"intervals go on to {number(ends)}", bbox=white, zorder=5, **corner)
    return REACH * values


def cut(values: Floats, reference: float) -> float | None:
    """Return the height at which bars are cut: above the last one before a leap by more than `LEAP` with half of them below.

    Parameters
    ----------
    values
        Heights of the bars, f64[n].
    reference
        Height that remains visible.

    Returns
    -------
    float or None
        None if no bar is cut.
    """
    tall = np.sort(values[values > 0])
    leaps = np.flatnonzero(tall[1:] > LEAP * tall[:-1]) if tall.size == values.size else np.zeros(0, dtype=np.int64)
    leaps = leaps[leaps + 1 >= tall.size / 2]
    return 1.3 * max(float(tall[leaps[0]]), reference) if leaps.size else None


def lines(
    rows: Rows,
    *,
    x: str,
    y: str,
    by: str,
    low: str | None = None,
    high: str | None = None,
    least: float | None = None,
    xlabel: str = "",
    ylabel: str = "",
    logx: bool = False,
    logy: bool = False,
    ax: Axes | None = None,
    width: Width | None = None,
    title: str | None = None,
) -> Figure:
    """Draw a table as lines, one for every value of the column ``by``, each labelled at its end; bands are intervals.

    Parameters
    ----------
    rows
        Mappings or a polars frame. Several rows of one point (seeds) are drawn as their mean with its 95 % interval
        (`optsched.intervals`: one or two rows, or equal ones, have none).
    x, y, by
        Columns with the place, the value, and the line.
    low, high
        Columns with the ends of an interval; each row is then a point of its own.
    least
        Lower limit of values and intervals: 1 for ratios to the best possible. Default: 0, unless a value is negative.
    xlabel, ylabel
        Labels of the axes.
    logx, logy
        Whether an axis is logarithmic, for values > 0.
    ax
        Axes to draw on; by default those of a new figure. If the figure has no layout engine, a legend names the lines.
    width
        Width of a new figure for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.
    title
        Title above the axes.

    Raises
    ------
    InputError
        If a column does not exist, a value is not a finite number (null: no point) or not > 0 on a logarithmic axis, or one
        point has several rows with intervals.

    Examples
    --------
    >>> import optsched as osd
    >>> rows = [{"load": x, "ratio": x**k, "policy": f"p{k}"} for k in (1, 2) for x in (1, 2, 4)]
    >>> axes = osd.plot.lines(rows, x="load", y="ratio", by="policy", logx=True).axes[0]
    >>> [line.get_ydata().tolist() for line in axes.lines]
    [[1.0, 2.0, 4.0], [1.0, 4.0, 16.0]]
    """
    found = points(rows, [by, x], y, low, high, least=least)
    for key, point in found.items():
        at = _number({x: key[1]}, x, 0)
        check_legal(at > 0 or not logx, x, at, "> 0 on a logarithmic axis")
        check_legal(point.value > 0 or not logy, y, point.value, "> 0 on a logarithmic axis")
    ax, figure = frame(ax, 7.5, 4.0, width)
    for k, name in enumerate(dict.fromkeys(key[0] for key in found)):
        mine = sorted((key[1], point) for key, point in found.items() if key[0] == name)
        place, (value, below, above) = np.array([at for at, _ in mine]), np.array([point for _, point in mine]).T
        colour, mark = CURVES[k % len(CURVES)], MARKS[k % len(MARKS)]
        ax.plot(place, value, color=colour, marker=mark, markersize=4.5, linewidth=1.5, label=f"{name}", zorder=3)
        if np.isfinite(below + above).any():
            ax.fill_between(place, below, above, color=colour, alpha=0.15, lw=0, zorder=1)
    if logx:
        log_axis(ax, "x", [key[1] for key in found])
    if logy:
        log_axis(ax, "y")
    elif (reach := _reach(ax, found.values())) is not None:
        ax.set_ylim(min(0.0, np.nanmin([*found.values()])), reach)
    set_labels(ax, xlabel or x.replace("_", " "), ylabel or y.replace("_", " "))
    set_title(ax, title or "")
    name_lines(ax)
    return figure
