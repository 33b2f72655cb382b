"""Distributions of completion times and of errors, one call each, and the axes of such charts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal, cast

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MultipleLocator, NullLocator, PercentFormatter

from optsched.errors import InputError, check_legal
from optsched.plot.canvas import (
    INK,
    NARROW,
    Width,
    key_above,
    legend,
    new_axes,
    new_figure,
    note,
    plain,
    set_labels,
    set_title,
    wide_on_paper,
)
from optsched.plot.colours import CURVES
from optsched.plot.labels import by_label
from optsched.plot.time_axis import in_unit, label_time, number, unit_for
from optsched.problem.arrays import Floats
from optsched.simulation.run import Run

LONG = 30.0  # times the shortest (of the middle 98 %) are spread over more than this: a log axis
SHORT = 100.0  # below such a factor a log axis has ticks within decades, too
MOST_TICKS = 9  # more places on a log axis are ticks at powers of ten
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
    """Return axes with a frame at the left and at the bottom, and their figure.

    Parameters
    ----------
    ax
        Axes to use; None makes a new figure (see `new_figure`).
    width, height
        Size of a new figure in inches.
    paper
        Width of a new figure on paper.
    shape
        Largest height of a new figure on paper, as a multiple of its width.
    """
    ax = ax if ax is not None else new_axes(new_figure(width, height, paper, shape))
    plain(ax, "left", "bottom")
    ax.set_axisbelow(True)
    ax.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    return ax, cast("Figure", ax.get_figure(root=True))


def log_axis(ax: Axes, which: Literal["x", "y"], places: npt.ArrayLike = ()) -> None:
    """Make an axis logarithmic, with plain numbers as labels.

    Parameters
    ----------
    ax
        Axes to change.
    which
        The axis.
    places
        Places of the ticks, used if they are few and apart; otherwise the ticks are at decades.
    """
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
    """Make a y axis of ratios >= 1 logarithmic in ratio - 1, so that 1.03 and 1.3 differ visibly next to 30.

    Parameters
    ----------
    ax
        Axes to change.
    """

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
    """Draw for every run the share of jobs with a completion time C_j - r_j of at most x: a step curve.

    The time axis is logarithmic if the middle 98 % of all times span more than a factor of 30. The legend shows the mean. An
    unfinished job counts among the jobs: its curve ends below 100 %, and the legend shows how many are unfinished.

    Parameters
    ----------
    runs
        At least one run by name; a run, or its seconds f64[n] >= 0 (nan: not finished). Runs without names are labelled with
        their policies.
    ax
        Axes to draw on; by default those of a new figure, which pyplot does not know and a notebook shows.
    width
        Width of a new figure for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.
    title
        Title above the axes.

    Raises
    ------
    InputError
        If there are no runs, a run has no finished job, or a time is below 0.

    Examples
    --------
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
    """Draw the errors of predictors: one histogram for each, one above the other, with shared bins on a log axis.

    The solid line is the median; dotted lines contain 95 % of the jobs (on both sides for signed errors). Both are also
    written as numbers. Every histogram is as high as its largest bin.

    Parameters
    ----------
    errors
        For every predictor, error factors max(n / n^, n^ / n) >= 1; or signed errors log2(n^ / n), with n a length and n^
        its prediction; or a run of a policy that takes predictions, drawn signed. Runs without names are labelled with
        their policies.
    signed
        Which of the two the arrays are; default: signed if there is a run or any value below 1.
    ax
        Axes to draw on; by default those of a new figure.
    width
        Width of a new figure for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.
    title
        Title above the axes.

    Raises
    ------
    InputError
        If there is nothing to draw, a value is not finite, a factor is below 1, or a run has no predictions.

    Examples
    --------
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
