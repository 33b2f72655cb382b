"""Charts of runs and of tables, one call each: distributions of completion times and errors, bars, lines.

Rows are mappings or a polars frame. Rows with the same place in a chart (seeds) are drawn as their mean with its 95 %
confidence interval (`optsched.intervals`); one row a place is drawn as it is, with the interval that it names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MultipleLocator, NullLocator, PercentFormatter

from optsched.errors import InputError, check_legal
from optsched.intervals import estimate
from optsched.plot.canvas import (
    INK,
    NARROW,
    QUIET,
    Width,
    key_above,
    legend,
    name_lines,
    new_axes,
    new_figure,
    note,
    plain,
    set_labels,
    set_title,
    wide_on_paper,
)
from optsched.plot.colours import CURVES, MARKS, ink_on
from optsched.plot.labels import by_label
from optsched.plot.time_axis import in_unit, label_time, number, unit_for
from optsched.problem.arrays import Floats
from optsched.simulation.run import Run

Rows = Sequence[Mapping[str, Any]] | pl.DataFrame

LONG = 30.0  # times the shortest (of the middle 98 %) are spread over more than this: a log axis
SHORT = 100.0  # below such a factor a log axis has ticks within decades, too
REACH = 2.0  # an axis ends where an interval is higher than so many times the largest value
LEAP = 4.0  # a bar so many times longer than the next one is cut
NUMBER = 0.2  # inches that the number above a bar takes
MOST_VALUES, MOST_TICKS = 16, 9  # more bars carry no number, more places on a log axis are ticks at powers of ten
NEAR = 0.03  # an excess over 1 below it is drawn on an almost linear scale
DRAWN = 4000  # steps of a curve; of more, quantiles
BINS = 48  # of a histogram, about
MINUTE, HOUR, DAY = 60, 3600, 86_400
MOMENTS = (0.001, 0.01, 0.1, 1, 10, MINUTE, 10 * MINUTE, HOUR, 10 * HOUR, DAY, 10 * DAY, 100 * DAY, 1000 * DAY)  # ticks
MOMENT = 0.5  # inches that the label of such a tick takes
MORE_MOMENTS = (2, 5, 20, 2 * MINUTE, 5 * MINUTE, 20 * MINUTE, 2 * HOUR, 5 * HOUR, 2 * DAY, 5 * DAY)  # of a short axis


def frame(
    ax: Axes | None, width: float, height: float, paper: Width | None = None, shape: float | None = 0.72
) -> tuple[Axes, Figure]:
    """These axes, or those of a new figure (see `new_figure`), with a frame at the left and at the bottom."""
    ax = ax if ax is not None else new_axes(new_figure(width, height, paper, shape))
    plain(ax, "left", "bottom")
    ax.set_axisbelow(True)
    ax.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    return ax, cast("Figure", ax.get_figure(root=True))


def log_axis(ax: Axes, which: Literal["x", "y"], places: npt.ArrayLike = ()) -> None:
    """Make an axis logarithmic, labelled in plain numbers: at these places if they are few and apart, else at decades."""
    ax.set(**{f"{which}scale": "log"})
    axis = ax.xaxis if which == "x" else ax.yaxis
    every = np.unique(np.asarray(places, dtype=np.float64))
    apart = every.size < 2 or np.diff(np.log(every)).min() * 25 > np.log(every[-1] / every[0])
    if 0 < every.size <= MOST_TICKS and apart:
        axis.set_major_locator(FixedLocator(every.tolist()))
    else:
        low, high = sorted(axis.get_view_interval())
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < SHORT * low else (1.0,)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def excess_axis(ax: Axes) -> None:
    """Make the y axis of ratios >= 1 logarithmic in ratio - 1: 1.03 and 1.3 stay apart beside a theorem's 30."""

    def excess(ratio: Floats) -> Floats:
        return np.log10(np.maximum(ratio - 1 + NEAR, 1e-9))

    ax.set_yscale("function", functions=(excess, lambda y: 10.0**y + 1 - NEAR))
    low, high = ax.get_ylim()
    ax.set_ylim(1.0 if low <= 1.2 else low, high)
    ax.yaxis.set_major_locator(FixedLocator([1, 1.03, 1.1, 1.3, *(k * 10.0**d for d in range(7) for k in (2, 4, 10))]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


# --- distributions ------------------------------------------------------------------------------------------------------


def jct_cdf(
    runs: Mapping[str, Run | npt.ArrayLike] | Iterable[Run],
    *,
    ax: Axes | None = None,
    width: Width | None = None,
    title: str | None = None,
) -> Figure:
    """Draw, for every named run, the share of jobs with a completion time C_j - r_j of at most x: a step curve.

    The time axis is logarithmic where the middle 98 % of all times span more than a factor of 30. The legend says the mean;
    a job that did not finish counts among the jobs, so that its curve ends below 100 %, and the legend says how many.

    Parameters
    ----------
    runs : at least one by name; a run, or its seconds f64[n] >= 0 (nan: not finished). Runs without names bear those of
        their policies.
    ax : axes to draw on; by default those of a new figure, which pyplot does not know and a notebook shows.
    width : of a new figure, for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.

    Raises `InputError` for no runs, a run in which no job finished, and a time below 0.

    >>> import optsched as osd
    >>> runs = [osd.simulate("cluster-week", policy) for policy in ("fifo", "srtf")]
    >>> [text.get_text() for text in osd.plot.jct_cdf(runs).axes[0].get_legend().get_texts()]
    ['fifo: mean 5.37 h', 'srtf: mean 2.35 h']
    """
    times = {name: _completion_times(name, run) for name, run in by_label(runs).items()}
    check_legal(bool(times), "runs", "none", "at least one run")
    ax, figure = frame(ax, 7.5, 4.0, width)
    for k, (name, jct) in enumerate(times.items()):
        done = np.sort(jct[np.isfinite(jct)])
        share = np.arange(1, done.size + 1) / jct.size
        if done.size > DRAWN:
            chosen = np.linspace(0, done.size - 1, DRAWN).astype(np.int64)
            done, share = done[chosen], share[chosen]
        said = f"{name}: mean {in_unit(float(np.nanmean(jct)))}"
        left = int(np.isnan(jct).sum())
        said += f" ({left:,} unfinished)" if left else ""
        x, y = np.concatenate([done[:1], done]), np.concatenate([[0.0], share])
        ax.plot(x, y, drawstyle="steps-post", color=CURVES[k % len(CURVES)], linewidth=1.5, label=said)
    every = np.concatenate([jct[np.isfinite(jct)] for jct in times.values()])
    low, high = np.quantile(every, [0.01, 0.99]).tolist()
    if every.min() > 0 and high > LONG * low:
        log_axis(ax, "x")
        ax.set_xlim(float(every.min()) / 1.1, float(every.max()) * 1.1)
        seen = [at for at in sorted(MOMENTS + MORE_MOMENTS * (high < SHORT * low)) if every.min() <= at <= every.max()]
        ax.xaxis.set_major_locator(FixedLocator(seen, nbins=max(2, int(wide_on_paper(ax) / MOMENT))))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: in_unit(seconds, least=1.0)))
        ax.set_xlabel("job completion time (from arrival)", fontsize=9)
    else:
        ax.set_xlim(0.0, float(every.max()) * 1.02 or 1.0)
        label_time(ax, unit_for(float(every.max())), "job completion time, from arrival")
    ax.set_ylim(0, 1.02)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set_ylabel("share of jobs", fontsize=9)
    set_title(ax, title or "")
    if figure.get_figwidth() < NARROW:
        key_above(ax)
    else:
        legend(ax, "lower right")
    return figure


def _completion_times(name: str, run: Run | npt.ArrayLike) -> Floats:
    if isinstance(run, Run):
        made = run.schedule.relative
        times = made.completion - made.instance.arrival
    else:
        times = np.asarray(run, dtype=np.float64).reshape(-1)
    where = f"runs[{name!r}]"
    if not np.isfinite(times).any():
        raise InputError("no job finished in it", field=where, legal="at least one completion time, in seconds")
    check_legal(
        not (times < 0).any(), where, float(np.nanmin(times)), "seconds >= 0, nan for a job that did not finish"
    )
    return np.where(np.isfinite(times), times, np.nan)


def error_histogram(
    errors: Mapping[str, Run | npt.ArrayLike] | Iterable[Run],
    *,
    signed: bool | None = None,
    ax: Axes | None = None,
    width: Width | None = None,
    title: str | None = None,
) -> Figure:
    """Draw how wrong predictors were: a histogram a predictor, one above the other, with shared bins on a log axis.

    Full line: the median; dotted: 95 % of the jobs are within (of signed errors: on both sides). Both stand behind it in
    numbers. A histogram is as high as its largest bin.

    Parameters
    ----------
    errors : of every predictor, error factors max(n / n^, n^ / n) >= 1; or signed errors log2(n^ / n), with n a length and
        n^ what was predicted; or a run of a policy that takes predictions, drawn signed. Runs without names bear those of
        their policies.
    signed : which of the two arrays are; default: signed when there is a run, or any value below 1.
    ax : axes to draw on; by default those of a new figure.
    width : of a new figure, for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.

    Raises `InputError` for nothing to draw, a value that is not finite, a factor below 1, and a run without predictions.

    >>> import optsched as osd
    >>> figure = osd.plot.error_histogram({"good": [1, 1.1, 1.3, 2], "bad": [2, 4, 4, 64]})
    >>> [text.get_text().splitlines() for text in figure.axes[0].texts]
    [['median x1.2', '95 % within x1.89'], ['median x4', '95 % within x55']]
    """
    given = by_label(errors)
    check_legal(bool(given), "errors", "none", "at least one predictor")
    every = {name: _errors(name, each) for name, each in given.items()}
    if signed is None:
        signed = any(isinstance(each, Run) for each in given.values()) or any((e < 1).any() for e in every.values())
    for name, values in every.items():
        if not signed:
            check_legal(bool((values >= 1).all()), f"errors[{name!r}]", float(values.min()), "factors >= 1")
            every[name] = np.log2(values)
    ax, figure = frame(ax, 7.5, 1.2 + 0.75 * len(every), width, None)
    plain(ax, "bottom")
    ax.grid(visible=False)
    low = min(float(values.min()) for values in every.values())
    high = max(*(float(values.max()) for values in every.values()), low + 1.0)
    edges, names, narrow = np.linspace(low, high, BINS + 1), list(every), figure.get_figwidth() < NARROW
    tall = 0.55 if narrow else 0.85  # of the row of a histogram
    for k, values in enumerate(every.values()):
        foot, count = float(len(every) - 1 - k), np.histogram(values, edges)[0]
        ax.stairs(
            foot + tall * count / count.max(), edges, baseline=foot, fill=True, color=CURVES[k % len(CURVES)], alpha=0.6
        )
        middle, within = float(np.median(2.0**values)), float(np.quantile(2.0 ** np.abs(values), 0.95))
        ax.vlines(math.log2(middle), foot, foot + 1.06 * tall, colors=INK, linewidths=1.4)
        sides = [-math.log2(within), math.log2(within)][not signed :]
        ax.vlines(sides, foot, foot + 1.06 * tall, colors=INK, linestyles=":", linewidths=1.2)
        said = f"median x{middle:.3g}", f"95 % within x{within:.3g}"
        if narrow:
            above = f"{names[k]}\n{', '.join(said)}"
            note(ax, above, (0, foot + 0.97), (0, 0), "axes fraction", color=INK, fontsize=8, va="top", in_layout=False)
        else:
            note(ax, "\n".join(said), (1, foot + 0.45), (6, 0), "axes fraction", color=INK)
    ax.set_ylim(0, len(every))
    ax.set_yticks(np.arange(len(every))[::-1] + 0.4, names, fontsize=9, parse_math=False)
    ax.tick_params(axis="y", length=0, labelleft=not narrow)
    step = max(1, math.ceil((high - low) / min(9.0, wide_on_paper(ax) / 0.4)))
    ax.xaxis.set_major_locator(MultipleLocator(step))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: number(2.0**x) if x > -0.5 else f"1/{number(2.0**-x)}"))
    exact = "predicted / true length (1: exact)"
    set_labels(ax, exact if signed else "larger of true / predicted and predicted / true length (1: exact)")
    set_title(ax, title or "")
    return figure


def _errors(name: str, given: Run | npt.ArrayLike) -> Floats:
    where = f"errors[{name!r}]"
    if isinstance(given, Run):
        if given.predicted is None:
            raise InputError(f"the policy {given.policy} takes no predictions", field=where, legal="one that does")
        return np.asarray(np.log2(given.predicted / given.instance.work))
    values = np.asarray(given, dtype=np.float64).reshape(-1)
    if not values.size or not np.isfinite(values).all():
        raise InputError("nothing to draw, or not finite", field=where, legal="at least one finite number")
    return values


# --- tables -------------------------------------------------------------------------------------------------------------


class Point(NamedTuple):
    """A value and its interval; nan where there is none."""

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
    """The point of every combination of the columns ``keys``, in the order of the rows; null values are left out.

    ``low``, ``high`` or ``half``: columns of the ends of an interval, or of half of its width. Without them, and with
    several rows a combination: the mean and its 95 % interval. No interval goes below ``least``.
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
    """Draw a table as bars with confidence intervals; the bars of a ``group`` have one colour and stand side by side.

    A bar more than four times as long as the next one, with most bars below, is cut and says its value, so that it does not
    flatten the others.

    Parameters
    ----------
    rows : mappings, or a polars frame. Several rows of one bar (seeds) are drawn as their mean with its 95 % interval
        (`optsched.intervals`: none of one or two, or of equal ones).
    value, by, group : columns: the height of a bar, its place on the x axis, its colour.
    low, high, half : columns: the ends of an interval, or half of its width; each row is then a bar of its own.
    least : no value can be below it, nor is an interval drawn there: 1 for ratios to the best possible. Default: 0, unless
        a value is negative.
    reference : a horizontal line, such as 1 for what ratios compare with.
    ax : axes to draw on; by default those of a new figure.
    width : of a new figure, for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.

    Raises `InputError` for a column that does not exist, a value that is no finite number (null: no bar), and several rows
    of one bar with intervals.

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
    """Where an axis ends that intervals would stretch beyond `REACH` times the largest value, which is said; else None."""
    every = np.array(list(found))
    values, ends = max(float(every[:, 0].max()), reference), float(np.nanmax(every))
    if values <= 0 or ends <= REACH * values:
        return None
    corner: dict[str, Any] = {"transform": ax.transAxes, "ha": "right", "va": "top", "fontsize": 8, "color": QUIET}
    white = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.0}
    ax.text(0.998, 0.99, f"intervals go on to {number(ends)}", bbox=white, zorder=5, **corner)
    return REACH * values


def cut(values: Floats, reference: float) -> float | None:
    """Where bars are cut: above the last one before a leap by more than `LEAP` that has half of them below."""
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
    """Draw a table as lines, one for every value of the column ``by``, each named at its end; bands are intervals.

    Parameters
    ----------
    rows : mappings, or a polars frame. Several rows of one point (seeds) are drawn as their mean with its 95 % interval
        (`optsched.intervals`: none of one or two, or of equal ones).
    x, y, by : columns: the place, the value, the line.
    low, high : columns: the ends of an interval; each row is then a point of its own.
    least : no value can be below it, nor is an interval drawn there: 1 for ratios to the best possible. Default: 0, unless
        a value is negative.
    logx, logy : logarithmic axes, for values > 0.
    ax : axes to draw on; by default those of a new figure. Where nothing lays a figure out anew, a legend names the lines.
    width : of a new figure, for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.

    Raises `InputError` for a column that does not exist, a value that is no finite number (null: no point), or not > 0 on a
    logarithmic axis, and several rows of one point with intervals.

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
