"""Two schedules of one instance above each other, with the jobs that gain or lose by the second."""

from __future__ import annotations

import os
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from optsched.errors import InputError, check_legal
from optsched.plot.canvas import INK, QUIET, Width, key_below, new_axes, new_figure, note, plain, set_title
from optsched.plot.colours import HUES, natural
from optsched.plot.gantt import WIDTH, gantt, too_large
from optsched.plot.labels import policy_labels
from optsched.plot.node_rows import NodeRows, band_height, image_height, short_ids
from optsched.plot.time_axis import in_unit, time_axis
from optsched.plot.timeline import Timeline
from optsched.problem.instance import Source, instance_of
from optsched.problem.schedule import Schedule, Scheduled, schedule_in

GAIN, LOSE = HUES["sky"], HUES["red"]
MOST_ARROWS = 24  # the largest changes
ARROW = {"arrowstyle": "-|>", "lw": 2.0, "shrinkA": 0, "shrinkB": 0}
SAME = 1e-9  # relative: completions that differ by less do so by rounding


def compare(
    a: Schedule | Scheduled | str | os.PathLike[str],
    b: Schedule | Scheduled | str | os.PathLike[str],
    instance: Source | None = None,
    *,
    width: Width | None = None,
    title: str | None = None,
) -> Figure:
    """Draw two schedules of one instance above each other, on one time axis, and their differences below.

    A job that completes earlier in the second is blue in both, one that completes later is red, the others are grey. Below,
    an arrow for each job goes from its completion in the first to that in the second: for the 24 largest changes, jobs by
    id. Clusters too large for blocks are drawn with one row for each node, shaded by the share of busy GPUs.

    Parameters
    ----------
    a, b
        Schedules, runs or solutions of one instance; or schedule files.
    instance
        Instance of schedule files, or its SOURCE.
    width
        Width of a new figure for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.
    title
        Title above the arrows; default: the number of jobs that complete earlier and later in the second, with the mean
        change.

    Raises
    ------
    InputError
        If the two belong to different instances, or one cannot be drawn.

    Examples
    --------
    >>> import optsched as osd
    >>> figure = osd.plot.compare(osd.simulate("rigid-06-1", "fifo"), osd.simulate("rigid-06-1", "srtf"))
    >>> figure.axes[2].get_title(loc="left")
    'srtf instead of fifo: 4 jobs complete earlier, by 17.8 s on average; 2 later, by 10.5 s on average'
    """
    first, second = (_read(each, instance) for each in (a, b))
    if first.instance.digest != second.instance.digest:
        named = f"{first.instance.name!r} and {second.instance.name!r}"
        raise InputError("schedules of two instances", field="a, b", value=named, legal="two of one instance")
    ids, before, after = first.instance.ids, first.completion, second.completion
    change = np.where(np.isnan(after - before), 0.0, after - before)
    change[np.abs(change) <= SAME * np.maximum(1.0, np.abs(np.nan_to_num(after)))] = 0.0
    colours = {ids[j]: GAIN if change[j] < 0 else LOSE for j in np.flatnonzero(change).tolist()}
    lines = [Timeline.of(first), Timeline.of(second)]
    by = "node" if any(map(too_large, lines)) else "gpu"
    largest = np.argsort(-np.abs(change), kind="stable")[: min(MOST_ARROWS, len(colours))].tolist()
    shown = sorted(largest, key=lambda j: natural(ids[j]))
    high = [_height(line, by) for line in lines] + [0.75 + 0.17 * max(len(shown), 1)]
    figure = new_figure(WIDTH, sum(high), width)
    grid = figure.add_gridspec(3, 1, height_ratios=high)
    above = new_axes(figure, grid[0])
    below, moves = (new_axes(figure, grid[k], sharex=above) for k in (1, 2))
    for ax, line in zip((above, below), lines, strict=True):
        gantt(line, by=by, ax=ax, colours=colours, title=line.name)  # type: ignore[arg-type]
        ax.set_xlabel("")
        ax.tick_params(labelbottom=False)
    names = short_ids(ids)
    _draw_moves(moves, [(names[j], float(before[j]), float(after[j])) for j in shown])
    time_axis(moves, min(line.span[0] for line in lines), max(line.span[1] for line in lines))
    said = _in_words(_names(first.policy, second.policy), change)
    set_title(moves, said if title is None else title)
    key = {"earlier in the second": GAIN, "later in the second": LOSE}
    key_below(moves, [Line2D([], [], color=colour, lw=3, label=name) for name, colour in key.items()])
    return figure


def _names(first: str, second: str) -> tuple[str, str]:
    if first == second:
        return first, second
    one, other = policy_labels([first, second])
    return one, other


def _read(given: Any, instance: Source | None) -> Schedule:
    if not isinstance(given, str | os.PathLike):
        return schedule_in(given)
    check_legal(instance is not None, "instance", instance, "the SOURCE that a schedule file belongs to", file=given)
    return Schedule.load(given, instance_of(cast("Source", instance)))


def _height(line: Timeline, by: str) -> float:
    if by == "node":
        return image_height(line)
    rows = NodeRows(line.node_gpus, line.node_names).height
    return 0.7 + float(np.clip(0.24 * (rows + band_height(line, rows)), 1.0, 5.0))


def _draw_moves(ax: Axes, moves: list[tuple[str, float, float]]) -> None:
    plain(ax, "bottom")
    for k, (_, before, after) in enumerate(moves):
        sign, colour, side, aligned = ("-", GAIN, 5, "left") if after < before else ("+", LOSE, -5, "right")
        ax.annotate("", (after, k), (before, k), arrowprops={**ARROW, "color": colour})
        ax.plot([before], [k], "|", color=INK, markersize=7)
        note(ax, sign + in_unit(abs(after - before)), (before, k), (side, 0), ha=aligned, fontsize=7, color=QUIET)
    ax.set_yticks(range(len(moves)), [name for name, *_ in moves], fontsize=7, parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(max(len(moves), 1) - 0.4, -0.6)
    ax.set_ylabel("completion of job", fontsize=8)


def _in_words(names: tuple[str, str], change: np.ndarray[Any, Any]) -> str:
    first, second = names
    earlier, later = -change[change < 0], change[change > 0]
    if not earlier.size and not later.size:
        return f"{second} instead of {first}: every job completes when it did"
    jobs = f"{earlier.size:,} job{'s' if earlier.size != 1 else ''} complete{'s' if earlier.size == 1 else ''} earlier"
    gain = f", by {in_unit(earlier.mean())}{' on average' if earlier.size > 1 else ''}" if earlier.size else ""
    lose = f", by {in_unit(later.mean())}{' on average' if later.size > 1 else ''}" if later.size else ""
    return f"{second} instead of {first}: {jobs}{gain}; {later.size:,} later{lose}"
