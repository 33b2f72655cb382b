"""Rows of a chart: a GPU is one unit high, below those of a node perhaps its network interface; nodes are set apart.

Blocks bear the ids of their jobs, where they fit; a band below the rows shows who waits. Of a schedule of any size: one row
a node, shaded by how busy it is.
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
    """Where N nodes of ``gpus`` i64[N] GPUs stand on the y axis (downwards); ``interfaces``: have they rows, too?"""

    gpus: Ints
    names: Sequence[str]
    interfaces: bool = False

    @cached_property
    def single(self) -> bool:
        """Is every node one GPU (a classical machine)?"""
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
    """Grey under GPUs and interfaces: what stays grey is idle."""
    span, lower = np.ones(rows.top.size), rows.top + rows.gpus
    sides = start * span, end * span
    draw_rectangles(ax, *sides, rows.top, lower, facecolors=FLOOR, zorder=0, label="_floor")
    if rows.interfaces:
        draw_rectangles(ax, *sides, lower, lower + INTERFACE, facecolors=INTERFACE_FLOOR, zorder=0, label="_interfaces")
    if rows.single:
        ax.hlines(rows.top[1:], start, end, colors="white", linewidths=0.8, zorder=0.5)


def label_rows(ax: Axes, rows: NodeRows, row_points: float) -> None:
    """Names of nodes, as many as fit, and indices of GPUs and "net" where rows are ``row_points`` >= 7 points high."""
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
    """Every k-th of ascending places, so that neighbours are at least this far apart; the first always."""
    if places.size < 2:
        return list(range(places.size))
    distance = float(np.diff(places).min())
    every = next((k for k in (1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64) if k * distance >= least), places.size)
    return list(range(0, places.size, every))


MOST_LABELS = 800  # texts are slow to draw; the largest blocks come first
CHARACTER = 0.62  # width of a character by its height, on the safe side for digits and lower case
LARGEST_FONT = 9.0  # points


def short_ids(ids: Sequence[str]) -> list[str]:
    """Ids without what all of them begin with, up to a separator: "application_1506_0042" -> "0042"."""
    if len(ids) < 2:
        return list(ids)
    first, last = min(ids), max(ids)  # what these two share, all ids share
    same = [a == b for a, b in zip(first, last, strict=False)]
    shared = first[: same.index(False) if False in same else len(same)]
    cut = max(shared.rfind(mark) for mark in "_-/:.# ") + 1
    return [name[cut:] or name for name in ids]


def block_label(name: str, xi: float, wide: float, font: float) -> str:
    """``name``, with the slow-down ``xi`` (nan: none) where ``wide`` points have room for it across."""
    label = f"{name} x{xi:.3g}"
    return label if math.isfinite(xi) and len(label) * font * CHARACTER + 2 <= wide else name


def points_per_unit(ax: Axes) -> tuple[float, float]:
    """Size of one unit of x and of y on paper, in points."""
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
    """Write ``names[k]`` on block k where it fits, upright if need be; returns how many were written."""
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
    """Height in rows of the band under ``rows`` rows, its gap included; 0 when nobody waits."""
    if not timeline.waits[0].size:
        return 0.0
    lanes = _lanes(timeline)
    return BAND_GAP + (max(COUNT_SHARE * rows, 2.0) if lanes is None else LANE * (1 + int(lanes.max())))


def draw_waiting(ax: Axes, timeline: Timeline, top: float, bottom: float, colours: Floats, names: list[str]) -> None:
    """Fill [top, bottom] (its gap included): one pale bar a wait, or the number of waiting jobs where they are many."""
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
    """Inches for the image of this many nodes."""
    return 1.1 + float(np.clip(0.12 * timeline.node_gpus.size, 1.2, 6.5))


def busy_share(timeline: Timeline, start: float, end: float, bins: int = BINS) -> tuple[Floats, int]:
    """(mean share of busy GPUs, f64[rows, bins]; nodes in a row). O(S + rows * bins)."""
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
    """The image, its rows named, and a bar that says what the shades mean."""
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
