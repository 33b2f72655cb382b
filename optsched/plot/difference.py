"""Two schedules of one instance above each other, and which jobs gain or lose by the second."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from optsched.errors import InputError
from optsched.plot.block_labels import short_ids
from optsched.plot.canvas import INK, QUIET, new_axes, new_figure, plain
from optsched.plot.canvas import title as set_title
from optsched.plot.colours import HUES, natural
from optsched.plot.gantt import WIDTH, gantt, key_below, too_large
from optsched.plot.node_image import image_height
from optsched.plot.rows import NodeRows
from optsched.plot.time_axis import in_unit, time_axis
from optsched.plot.timeline import Timeline
from optsched.plot.waiting import band_height
from optsched.problem.instance_source import Source, instance_of
from optsched.problem.schedule import Schedule, Scheduled, schedule_in

GAIN, LOSE = HUES["sky"], HUES["red"]
MOST_ARROWS = 24  # the largest changes
SAME = 1e-9  # relative: completions that differ by less do so by rounding


def compare(
    a: Schedule | Scheduled | str | os.PathLike[str],
    b: Schedule | Scheduled | str | os.PathLike[str],
    instance: Source | None = None,
    *,
    title: str | None = None,
) -> Figure:
    """Draw two schedules of one instance above each other, on one time axis, and below them what differs.

    A job that completes earlier in the second is blue in both, one that completes later is red, the others are grey. Below,
    an arrow a job goes from its completion in the first to that in the second: of the 24 largest changes, jobs by id.
    Clusters too large for blocks are drawn a row a node, shaded by the share of busy GPUs.

    Parameters
    ----------
    a, b : schedules, runs or solutions of one instance; or schedule files, with the ``instance`` they belong to.
    title : above all; default: how many jobs complete earlier and later in the second, and by how much on average.

    Raises
    ------
    InputError
        When the two are of different instances, or one cannot be drawn.

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
    figure = new_figure(WIDTH, sum(high))
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
    set_title(moves, _in_words(first.policy, second.policy, change) if title is None else title)
    key_below(
        moves,
        [
            Line2D([], [], color=GAIN, lw=3, label="earlier in the second"),
            Line2D([], [], color=LOSE, lw=3, label="later in the second"),
        ],
    )
    return figure


def _read(given: Any, instance: Source | None) -> Schedule:
    if not isinstance(given, str | os.PathLike):
        return schedule_in(given)
    if instance is None:
        raise InputError(
            "a schedule file is compared with its instance", file=given, field="instance", legal="a SOURCE"
        )
    return Schedule.load(given, instance_of(instance))


def _height(line: Timeline, by: str) -> float:
    rows = NodeRows(line.node_gpus, line.node_names)
    return (
        image_height(line)
        if by == "node"
        else 0.7 + float(np.clip(0.24 * (rows.height + band_height(line, rows.height)), 1.0, 5.0))
    )


def _draw_moves(ax: Axes, moves: list[tuple[str, float, float]]) -> None:
    plain(ax, "bottom")
    for k, (_, before, after) in enumerate(moves):
        colour = GAIN if after < before else LOSE
        style: dict[str, Any] = {
            "arrowprops": {"arrowstyle": "-|>", "color": colour, "lw": 2.0, "shrinkA": 0, "shrinkB": 0}
        }
        ax.annotate("", (after, k), (before, k), **style)
        ax.plot([before], [k], "|", color=INK, markersize=7)
        said = f"{'-' if after < before else '+'}{in_unit(abs(after - before))}"
        left = after > before
        ax.annotate(
            said,
            (before, k),
            (-5 if left else 5, 0),
            textcoords="offset points",
            fontsize=7,
            color=QUIET,
            ha="right" if left else "left",
            va="center",
        )
    ax.set_yticks(range(len(moves)), [name for name, *_ in moves], fontsize=7, parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(max(len(moves), 1) - 0.4, -0.6)
    ax.set_ylabel("completion of job", fontsize=8)


def _in_words(first: str, second: str, change: np.ndarray[Any, Any]) -> str:
    earlier, later = -change[change < 0], change[change > 0]
    if not earlier.size and not later.size:
        return f"{second} instead of {first}: every job completes when it did"
    jobs = f"{earlier.size:,} job{'s' if earlier.size != 1 else ''} complete{'s' if earlier.size == 1 else ''} earlier"
    gain = f", by {in_unit(earlier.mean())}{' on average' if earlier.size > 1 else ''}" if earlier.size else ""
    lose = f", by {in_unit(later.mean())}{' on average' if later.size > 1 else ''}" if later.size else ""
    return f"{second} instead of {first}: {jobs}{gain}; {later.size:,} later{lose}"
