"""The Gantt chart of a schedule: who runs where and when, who waits, and what restarts cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.typing import ColorType

from optsched.errors import check_legal
from optsched.plot.canvas import INK, Mark, Width, draw_rectangles, key_below, new_axes, new_figure, plain, set_title
from optsched.plot.colours import job_colours, paler
from optsched.plot.rows import (
    LARGEST_FONT,
    NodeRows,
    band_height,
    block_label,
    draw_floor,
    draw_node_image,
    draw_waiting,
    image_height,
    label_blocks,
    label_rows,
    points_per_unit,
    short_ids,
)
from optsched.plot.time_axis import time_axis
from optsched.plot.timeline import NOBODY, Drawn, Timeline
from optsched.problem.arrays import Bools, Floats, Ints

By = Literal["gpu", "node", "auto"]

MOST_ROWS, MOST_BLOCKS = 160, 20_000  # beyond either, blocks would be smaller than a pixel
RASTER_BLOCKS = 3_000  # from here on a vector file holds the blocks as a picture
MOST_ARRIVALS = 400  # more ticks than this are a grey line
GREY = "#d4d4d4"
OTHERS = np.array(to_rgb(GREY))  # jobs beyond the limit
WIDTH = 11.0


def gantt(
    schedule: Drawn,
    *,
    by: By = "auto",
    ax: Axes | None = None,
    width: Width | None = None,
    limit: int | None = None,
    start: float | None = None,
    end: float | None = None,
    colours: Mapping[str, ColorType] | None = None,
    title: str | None = None,
) -> Axes:
    """Draw a schedule, or that of a run or a solution.

    One block a gang and run of neighbouring GPUs, one colour and id a job; grey is idle; hatched is time that a job held
    its GPUs without progress (a restart); ticks at the top are arrivals; the band at the bottom shows who waits. While two
    jobs share a GPU each has half of its row, in the first half that is free, with its slow-down xi there where it fits
    (the worst xi on any GPU of a gang rules). The axes are in seconds, labelled in s, min, h or d.

    Parameters
    ----------
    by : ``"gpu"``, one row a GPU; ``"node"``, one row a node, shaded by the share of its GPUs that is busy, for clusters
        and traces too large for blocks; ``"auto"`` chooses.
    ax : axes to draw on; by default those of a new figure, which pyplot does not know and a notebook shows.
    width : of a new figure, for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.
    limit : show the first ``limit`` jobs by arrival, until the last of them ends; the others are grey.
    start, end : show only what happens between these times, in seconds of the schedule's clock.
    colours : of jobs by id, to tell them apart by what they have in common; jobs not in it are grey.
    title : default: policy (of a solution: what is known of the optimum), instance, jobs, GPUs and window.

    Returns the axes; ``gantt(...).figure.savefig(...)`` writes the picture.

    Raises `InputError` for an unknown ``by``, a limit < 1, a window in which nothing lies, or segments that cannot be drawn
    on the cluster.

    Complexity: O(K log K) for K pairs of segment and GPU; ``by="node"`` draws at most 512 x 1200 cells.

    >>> import optsched as osd
    >>> osd.plot.gantt(osd.simulate("rigid-06-1", "srtf"), start=10, end=30).get_title(loc="left")
    'srtf on rigid-06-1: 6 jobs, 8 GPUs, 10 to 30 s'
    >>> osd.plot.gantt(osd.solve("rigid-06-1")).get_title(loc="left")
    'optimal total_completion_time 156 on rigid-06-1: 6 jobs, 8 GPUs'
    """
    check_legal(by in ("gpu", "node", "auto"), "by", by, "gpu, node or auto")
    timeline = Timeline.of(schedule).within(start, end)
    shown = timeline.first_jobs(limit)
    if by == "auto":
        by = "node" if too_large(timeline, shown) else "gpu"
    rows = NodeRows(timeline.node_gpus, timeline.node_names)
    if ax is None:
        row = 0.3 if timeline.lanes == 1 else 0.42  # inches; half of a row holds an id, too
        high = 1.0 + float(np.clip(row * (rows.height + band_height(timeline, rows.height)), 1.2, 8.5))
        ax = new_axes(new_figure(WIDTH, image_height(timeline) if by == "node" else high, width))
    left, right = timeline.span
    if not shown.all() and timeline.window is None:
        last = timeline.end[shown[timeline.job]]
        right = max(float(last.max(initial=left)), left + 1e-9 * (right - left))
    plain(ax, "bottom")
    time_axis(ax, left, right)
    set_title(ax, _title(timeline, shown, by) if title is None else title)
    if by == "node":
        draw_node_image(ax, timeline, left, right)
    else:
        _draw_blocks(ax, timeline, rows, shown, left, right, colours)
    return ax


def too_large(timeline: Timeline, shown: Bools | None = None) -> bool:
    """Are there more GPUs or blocks than a picture can tell apart?"""
    drawn = timeline.job.size if shown is None else int(shown[timeline.job].sum())
    return timeline.gpus > MOST_ROWS or drawn > MOST_BLOCKS


def _title(timeline: Timeline, shown: Bools, by: By) -> str:
    if shown.all():
        return timeline.name
    count = int(shown.sum())
    first = f"the first {count:,} jobs" if count > 1 else "the first job"
    return f"{timeline.name} ({f'{first} in colour' if by == 'gpu' else f'until {first} ended'})"


@dataclass(frozen=True, eq=False)
class Blocks:
    """B blocks: ``segment`` i64[B] from ``left`` to ``right`` seconds, between the edges ``upper`` and ``lower`` f64[B].

    ``xi`` f64[B]: how many times slower a partner on the same GPUs makes the job; nan where there is none, or it is not
    known.
    """

    segment: Ints
    left: Floats
    right: Floats
    upper: Floats
    lower: Floats
    xi: Floats


def blocks_of(t: Timeline, rows: NodeRows) -> Blocks:
    """Neighbouring GPUs of a gang are one block; where two jobs are on a GPU, each has half of its row. O(K log K)."""
    if t.lanes > 1:
        return _halves(t, rows)
    segment = np.repeat(np.arange(t.job.size), np.diff(t.gpu_offset))
    order = np.lexsort((t.index, t.node, segment))
    segment, node, index = segment[order], t.node[order], t.index[order]
    first, gpus = _runs((np.diff(segment) == 0) & (np.diff(node) == 0) & (np.diff(index) == 1), segment.size)
    segment, top = segment[first], rows.top[node[first]] + index[first]
    return Blocks(segment, t.start[segment], t.end[segment], top, top + gpus, np.full(segment.size, np.nan))


def _runs(joined: Bools, size: int) -> tuple[Ints, Ints]:
    # (first, length) of the runs of ``size`` things, each of which is or is not ``joined`` to the next
    first = np.flatnonzero(np.concatenate([np.ones(min(size, 1), dtype=bool), ~joined]))
    return first, np.diff(np.append(first, size))


def _halves(t: Timeline, rows: NodeRows) -> Blocks:
    cells = t.cells
    keys = cells.index, cells.node, cells.right, cells.left, cells.lower, cells.upper
    order = np.lexsort(keys)
    index, *same = (key[order] for key in keys)
    joined = (np.diff(index) == 1) & np.logical_and.reduce([np.diff(key) == 0 for key in same])
    joined &= ~cells.shared[order][:-1]  # halves of two rows would read as one job on each
    first, gpus = _runs(joined, index.size)
    chosen = order[first]
    top = rows.top[cells.node[chosen]] + cells.index[chosen]
    both = cells.shared[chosen]
    parts = []
    for mine, other, lane in ((cells.upper, cells.lower, 0), (cells.lower, cells.upper, 1)):
        here = np.flatnonzero(mine[chosen] != NOBODY)
        row, half = chosen[here], np.where(both[here], 0.5, 1.0) * gpus[here]
        upper, xi = top[here] + np.where(both[here], lane * half, 0.0), np.full(row.size, np.nan)
        if t.xi is not None:
            kind, table = t.xi
            beside = table[kind[t.job[mine[row]]], kind[t.job[other[row]]]]
            xi = np.where(other[row] == NOBODY, np.nan, beside)
        parts.append((mine[row], cells.left[row], cells.right[row], upper, upper + half, xi))
    return Blocks(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _draw_blocks(
    ax: Axes,
    t: Timeline,
    rows: NodeRows,
    shown: Bools,
    start: float,
    end: float,
    given: Mapping[str, ColorType] | None,
) -> None:
    band = band_height(t, rows.height)
    ax.set_ylim(rows.height + band, -0.35 if t.arrival is not None else 0.0)
    settle(ax)
    x_points, y_points = points_per_unit(ax)
    own = job_colours(t.ids) if given is None else np.array([to_rgb(given.get(name, GREY)) for name in t.ids])
    names, colours = short_ids(t.ids), np.where(shown[:, None], own, OTHERS)
    draw_floor(ax, rows, start, end)
    blocks = blocks_of(t, rows)
    seen = (blocks.left < end) & (blocks.right >= start)
    segment, left, right, xi = blocks.segment[seen], blocks.left[seen], blocks.right[seen], blocks.xi[seen]
    job = t.job[segment]
    # White edges part neighbours, but must not eat a block that is hardly wider than they are.
    edges = np.clip((right - left) * x_points * 0.1, 0.0, 0.7) * min(1.0, y_points / 8)
    margin = 0.05 if y_points >= 5 else 0.0
    upper, lower = blocks.upper[seen] + margin, blocks.lower[seen] - margin
    many = segment.size > RASTER_BLOCKS
    style = {"edgecolors": "white", "linewidths": edges, "zorder": 2, "rasterized": many, "label": "_blocks"}
    draw_rectangles(ax, left, right, upper, lower, facecolors=colours[job], **style)
    restarts = _draw_overhead(ax, t, segment, upper, lower, colours, many)
    font = min(LARGEST_FONT, (0.72 if t.lanes == 1 else 0.38) * y_points)
    mine = shown[job]
    wide = (right[mine] - left[mine]) * x_points
    label_blocks(
        ax,
        [block_label(names[j], x, room, font) for j, x, room in zip(job[mine], xi[mine], wide, strict=True)],
        *(left[mine] + t.overhead[segment[mine]], right[mine], upper[mine], lower[mine], colours[job[mine]]),
        font,
    )
    if band:
        draw_waiting(ax, t, rows.height, rows.height + band, colours, names)
    label_rows(ax, rows, y_points)
    # the key says only what no id or label does: the marks that occur in this picture
    key = [*_draw_arrivals(ax, t, colours, shown), *restarts]
    if t.lanes > 1 and t.cells.shared.any():
        said = "two on a row: a shared GPU" + (", x1.5: slower" if np.isfinite(xi).any() else "")
        key.append(Line2D([], [], marker="_", ls="", ms=7, color=INK, label=said))
    if key:
        key_below(ax, key)


def _draw_overhead(
    ax: Axes, t: Timeline, segment: Ints, upper: Floats, lower: Floats, colours: Floats, many: bool
) -> list[Mark]:
    lost = t.overhead[segment]
    held = lost > 0
    if not held.any():
        return []
    begin, colour = t.start[segment[held]], paler(colours[t.job[segment[held]]], 0.7)
    hatched: dict[str, Any] = {"edgecolor": INK, "lw": 0.0, "hatch": "//////"}
    style = {"facecolors": colour, "zorder": 3, "rasterized": many, "label": "_overhead", **hatched}
    draw_rectangles(ax, begin, begin + lost[held], upper[held], lower[held], **style)
    return [Patch(facecolor="#dddddd", label="held, no progress: restart, contention", **hatched)]


def _draw_arrivals(ax: Axes, t: Timeline, colours: Floats, shown: Bools) -> list[Mark]:
    if t.arrival is None:
        return []
    if t.window is not None:
        shown = shown & (t.arrival >= t.window[0]) & (t.arrival <= t.window[1])
    if int(shown.sum()) > MOST_ARRIVALS or not (shown.any() or t.window is None):
        return []
    edge: dict[str, Any] = {"edgecolors": INK, "linewidths": 0.4, "clip_on": False, "zorder": 5, "label": "_arrivals"}
    ax.scatter(t.arrival[shown], np.full(int(shown.sum()), -0.3), marker="v", s=22, c=colours[shown], **edge)
    return [Line2D([], [], marker="v", ls="", ms=5, color="white", mec=INK, mew=0.5, label="arrival")]


def settle(ax: Axes) -> None:
    """Let the layout of a figure of our own decide the size of its axes now: whether an id fits depends on it."""
    figure = ax.get_figure(root=True)
    engine = figure.get_layout_engine() if figure is not None else None
    if figure is not None and engine is not None:
        engine.execute(figure)
