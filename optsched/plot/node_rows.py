"""Rows of a chart: a GPU is one unit high; a network interface may follow the GPUs of a node; nodes are set apart.

Blocks are labelled with the ids of their jobs if there is room; a band below the rows shows waiting jobs. Schedules of any
size can have one row for each node, shaded by its share of busy GPUs.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from optsched.plot.canvas import FLOOR, INK, QUIET, draw_rectangles, label_left, least_font
from optsched.plot.colours import ink_on, paler
from optsched.plot.timeline import Timeline, bin_means
from optsched.problem.arrays import Floats, Ints

NODE_GAP = 0.5  # between nodes, in rows
INTERFACE, INTERFACE_FLOOR = 1.5, "#dfe3e8"  # height of the row of an interface, its colour where it is idle
NUMBERED = 7.0  # points: rows at least this high carry the index of their GPU
LABEL_HEIGHT = 11.0  # points that a label of a node needs


@dataclass(frozen=True, eq=False)
class NodeRows:
    """Rows of N nodes with ``gpus`` i64[N] GPUs on the y axis (downwards); ``interfaces``: whether interfaces have rows."""

    gpus: Ints
    names: Sequence[str]
    interfaces: bool = False

    @cached_property
    def single(self) -> bool:
        """True if every node is one GPU (a classical machine)."""
        return bool((self.gpus == 1).all()) and not self.interfaces

    @cached_property
    def top(self) -> Floats:
        """Upper edge of every node, f64[N]."""
        high = self.gpus + INTERFACE * self.interfaces + (0.0 if self.single else NODE_GAP)
        return np.asarray(np.cumsum(high) - high)

    @cached_property
    def height(self) -> float:
        """Height of all nodes."""
        return float(self.top[-1] + self.gpus[-1] + INTERFACE * self.interfaces) if self.top.size else 1.0


def draw_floor(ax: Axes, rows: NodeRows, start: float, end: float) -> None:
    """Draw grey behind GPUs and interfaces; visible grey is idle time.

    Parameters
    ----------
    ax
        Axes to draw on.
    rows
        Rows of the nodes.
    start, end
        Time in seconds.
    """
    span, lower = np.ones(rows.top.size), rows.top + rows.gpus
    sides = start * span, end * span
    draw_rectangles(ax, *sides, rows.top, lower, facecolors=FLOOR, zorder=0, label="_floor")
    if rows.interfaces:
        draw_rectangles(ax, *sides, lower, lower + INTERFACE, facecolors=INTERFACE_FLOOR, zorder=0, label="_interfaces")
    if rows.single:
        ax.hlines(rows.top[1:], start, end, colors="white", linewidths=0.8, zorder=0.5)


def label_rows(ax: Axes, rows: NodeRows, row_points: float) -> None:
    """Label as many nodes as fit, and GPUs and interfaces ("net") if rows are at least 7 points high.

    Parameters
    ----------
    ax
        Axes to label.
    rows
        Rows of the nodes.
    row_points
        Height of a row in points.
    """
    middle = rows.top + rows.gpus / 2
    nodes = spread(middle * row_points, LABEL_HEIGHT)
    small = min(7.0, row_points * 0.75)
    if row_points < NUMBERED or rows.single or small < least_font(ax):
        ax.set_yticks(middle[nodes], [rows.names[k] for k in nodes], fontsize=8, parse_math=False)
        ax.tick_params(axis="y", length=0)
        return
    places, labels = list[float](), list[str]()
    for top, count in zip(rows.top.tolist(), rows.gpus.tolist(), strict=True):
        places += [top + k + 0.5 for k in range(count)] + [top + count + INTERFACE / 2] * rows.interfaces
        labels += [str(k) for k in range(count)] + ["net"] * rows.interfaces
    ax.set_yticks(places, labels, fontsize=small, color=QUIET)
    ax.tick_params(axis="y", length=0, pad=2)
    for k in nodes:
        label_left(ax, rows.names[k], middle[k], 8 + 5 * max(map(len, labels)), fontsize=8.5, color=INK)


def spread(places: Floats, least: float) -> list[int]:
    """Return the indices of every k-th place, starting with the first, so that neighbours are far enough apart.

    Parameters
    ----------
    places
        Ascending places, f64[n].
    least
        Smallest distance of neighbours.
    """
    if places.size < 2:
        return list(range(places.size))
    distance = float(np.diff(places).min())
    every = next((k for k in (1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64) if k * distance >= least), places.size)
    return list(range(0, places.size, every))


MOST_LABELS = 800  # texts are slow to draw; the largest blocks come first
CHARACTER = 0.62  # width of a character by its height, on the safe side for digits and lower case
LARGEST_FONT = 9.0  # points


def short_ids(ids: Sequence[str]) -> list[str]:
    """Return ids without their common prefix up to a separator: "application_1506_0042" becomes "0042".

    Parameters
    ----------
    ids
        Ids of jobs.
    """
    if len(ids) < 2:
        return list(ids)
    first, last = min(ids), max(ids)  # what these two share, all ids share
    same = [a == b for a, b in zip(first, last, strict=False)]
    shared = first[: same.index(False) if False in same else len(same)]
    cut = max(shared.rfind(mark) for mark in "_-/:.# ") + 1
    return [name[cut:] or name for name in ids]


def block_label(name: str, xi: float, wide: float, font: float) -> str:
    """Return the label of a block: the name, with the slow-down if there is room.

    Parameters
    ----------
    name
        Name of the job.
    xi
        Slow-down; nan: none.
    wide
        Width of the block in points.
    font
        Font size in points.
    """
    label = f"{name} x{xi:.3g}"
    return label if math.isfinite(xi) and len(label) * font * CHARACTER + 2 <= wide else name


def points_per_unit(ax: Axes) -> tuple[float, float]:
    """Return the sizes of one unit of x and of y, in points.

    Parameters
    ----------
    ax
        Axes of a figure.
    """
    figure = ax.get_figure(root=True)
    box = ax.get_window_extent()
    scale = 72.0 / (figure.dpi if figure is not None else 72.0)
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    return box.width * scale / abs(right - left), box.height * scale / abs(top - bottom)


def label_blocks(
    ax: Axes,
    names: Sequence[str],
    left: Floats,
    right: Floats,
    top: Floats,
    bottom: Floats,
    colour: Floats,
    font: float,
) -> int:
    """Write names on the blocks that have room for them, upright if necessary.

    Parameters
    ----------
    ax
        Axes to draw on.
    names
        Label of each block.
    left, right, top, bottom
        Edges of the blocks in data coordinates, f64[m] each.
    colour
        RGB of the blocks, f64[m, 3].
    font
        Font size in points.

    Returns
    -------
    int
        Number of labels written.
    """
    x_points, y_points = points_per_unit(ax)
    low, high = sorted(ax.get_xlim())
    left, right = np.clip(left, low, high), np.clip(right, low, high)
    wide, tall = (right - left) * x_points, (bottom - top) * y_points
    if font < least_font(ax):
        return 0
    long = np.array([len(name) for name in names]) * font * CHARACTER + 2
    across = (wide >= long) & (tall >= font)
    upright = ~across & (tall >= long) & (wide >= font * 1.1)
    fits = np.flatnonzero(across | upright)
    for k in fits[np.argsort(-(wide * tall)[fits], kind="stable")][:MOST_LABELS]:
        ax.text(
            *((left[k] + right[k]) / 2, (top[k] + bottom[k]) / 2, names[k]),
            rotation=90 if upright[k] else 0,
            ha="center",
            va="center_baseline" if across[k] else "center",
            fontsize=font,
            color=ink_on(colour[k]),
            clip_on=True,
            parse_math=False,
            zorder=4,
        )
    return min(fits.size, MOST_LABELS)


# --- a band below the rows shows who waits ---------------------------------------------------------------------------

MOST_LANES, MOST_BARS = 12, 400  # more waiting jobs or more waits than this are drawn as a count
RASTER_STEPS = 3_000  # from here on a vector file holds the count as a picture
LANE = 0.62  # height of a waiting job, in rows
COUNT_SHARE = 0.12  # height of the count, as a share of the rows above it
BAND_GAP = 0.9  # between nodes and band, in rows


def band_height(timeline: Timeline, rows: float) -> float:
    """Return the height of the band of waiting jobs, in rows, with its gap; 0 if no job waits.

    Parameters
    ----------
    timeline
        The schedule.
    rows
        Number of rows above the band.
    """
    if not timeline.waits[0].size:
        return 0.0
    lanes = _lanes(timeline)
    return BAND_GAP + (max(COUNT_SHARE * rows, 2.0) if lanes is None else LANE * (1 + int(lanes.max())))


def draw_waiting(ax: Axes, timeline: Timeline, top: float, bottom: float, colours: Floats, names: list[str]) -> None:
    """Draw the band of waiting jobs: one pale bar for each wait, or the number of waiting jobs if there are many.

    Parameters
    ----------
    ax
        Axes to draw on.
    timeline
        The schedule.
    top, bottom
        Edges of the band, with its gap, in data coordinates.
    colours
        RGB of the jobs, f64[n, 3].
    names
        Labels of the jobs.
    """
    lanes, label = _lanes(timeline), "waiting"
    top += BAND_GAP
    if lanes is None:
        when, waiting = timeline.waiting
        most = float(waiting.max())
        edge, many = bottom - waiting / most * (bottom - top), when.size > RASTER_STEPS
        look: dict[str, Any] = {"color": QUIET, "alpha": 0.55, "lw": 0, "zorder": 2, "rasterized": many}
        ax.fill_between(when, bottom, edge, step="post", label="_waits", **look)
        label += f"\n(peak {most:,.0f})"
    else:
        job, since, until = timeline.waits
        upper: Floats = top + LANE * lanes.astype(np.float64) + 0.06
        lower: Floats = upper + (LANE - 0.12)
        fill = paler(colours[job], 0.72)
        style = {"facecolors": fill, "edgecolors": colours[job], "linewidths": 0.6, "zorder": 2, "label": "_waits"}
        draw_rectangles(ax, since, until, upper, lower, **style)
        font = min(7.0, points_per_unit(ax)[1] * (LANE - 0.12) * 0.85)
        label_blocks(ax, [names[j] for j in job], since, until, upper, lower, fill, font)
    label_left(ax, label, (top + bottom) / 2, 5, fontsize=8, color=QUIET, linespacing=1.1)


def _lanes(t: Timeline) -> Ints | None:
    # The lowest free lane for every wait, by (from, job): as many lanes as jobs ever wait at once. None: too many.
    job, since, until = t.waits
    if job.size > MOST_BARS or t.waiting[1].max() > MOST_LANES:
        return None
    lanes = np.zeros(job.size, dtype=np.int64)
    free, taken = list(range(MOST_LANES + 1)), list[tuple[float, int]]()
    for k in np.lexsort((job, since)):
        while taken and taken[0][0] <= since[k]:
            heapq.heappush(free, heapq.heappop(taken)[1])
        lanes[k] = heapq.heappop(free)
        heapq.heappush(taken, (float(until[k]), int(lanes[k])))
    return lanes


# --- of a schedule of any size: a row a node --------------------------------------------------------------------------

BINS = 1200  # about one a pixel
MOST_IMAGE_ROWS = 512  # beyond, neighbouring nodes share a row
PARTED_ROWS = 100  # up to here a white line parts the rows
BUSY = LinearSegmentedColormap.from_list("optsched-busy", [FLOOR, "#8ccbf0", "#0072B2", "#004a75"])


def image_height(timeline: Timeline) -> float:
    """Return the height of an image with one row for each node, in inches.

    Parameters
    ----------
    timeline
        The schedule.
    """
    return 1.1 + float(np.clip(0.12 * timeline.node_gpus.size, 1.2, 6.5))


def busy_share(timeline: Timeline, start: float, end: float, bins: int = BINS) -> tuple[Floats, int]:
    """Compute the mean share of busy GPUs in every part of a window, in O(S + rows * bins).

    Parameters
    ----------
    timeline
        The schedule.
    start, end
        Window in seconds.
    bins
        Number of equal parts of the window.

    Returns
    -------
    tuple
        The shares, f64[rows, bins], and the number of nodes in a row.
    """
    nodes = timeline.node_gpus.size
    together = -(-nodes // MOST_IMAGE_ROWS)
    rows = -(-nodes // together)
    size = np.bincount(np.arange(nodes) // together, weights=timeline.node_gpus, minlength=rows)
    begin, finish, node, count = timeline.held
    row = np.concatenate([node, node]) // together
    when = np.concatenate([begin, finish])
    change = np.concatenate([count, -count]).astype(np.float64)
    return bin_means(row, when, change, rows, start, end, bins) / size[:, None], together


def draw_node_image(ax: Axes, timeline: Timeline, start: float, end: float) -> None:
    """Draw the image of busy GPUs by node, with labelled rows and a colour bar.

    Parameters
    ----------
    ax
        Axes to draw on.
    timeline
        The schedule.
    start, end
        Window in seconds.
    """
    share, together = busy_share(timeline, start, end)
    rows = share.shape[0]
    ax.set_ylim(rows, 0)
    smooth = "nearest" if rows <= 200 else "antialiased"
    extent = (start, end, rows, 0)
    image = ax.imshow(share, aspect="auto", extent=extent, cmap=BUSY, vmin=0.0, vmax=1.0, interpolation=smooth)
    if rows <= PARTED_ROWS:
        ax.hlines(np.arange(1, rows), start, end, colors="white", linewidths=0.5)
    names = [name + " ff." * (together > 1) for name in timeline.node_names[::together]]
    figure = ax.get_figure(root=True)
    points = ax.get_window_extent().height * 72 / (figure.dpi if figure is not None else 72) / rows
    chosen = spread((np.arange(rows) + 0.5) * points, LABEL_HEIGHT)
    ax.set_yticks([k + 0.5 for k in chosen], [names[k] for k in chosen], fontsize=8, parse_math=False)
    ax.tick_params(axis="y", length=0)
    if figure is not None:
        bar = figure.colorbar(image, ax=ax, pad=0.01, fraction=0.025, aspect=30, format=lambda x, _: f"{x:.0%}")
        bar.set_label("busy GPUs of a node", fontsize=8)
        bar.ax.tick_params(labelsize=7)
        bar.outline.set_visible(False)
