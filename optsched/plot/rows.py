"""Rows of a Gantt chart: a GPU is one unit high, nodes are set apart, node 0 is at the top."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from matplotlib.axes import Axes

from optsched.plot.canvas import FLOOR, INK, QUIET, draw_rectangles, label_left
from optsched.plot.timeline import NOBODY, Timeline
from optsched.problem.arrays import Floats, Ints

NODE_GAP = 0.5  # between nodes of several GPUs, in rows
NUMBERED = 7.0  # points: rows at least this high carry the index of their GPU
LABEL_HEIGHT = 11.0  # points that a label of a node needs


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


@dataclass(frozen=True)
class PlotRows:
    """Where GPUs stand on the y axis (downwards)."""

    timeline: Timeline

    @cached_property
    def single(self) -> bool:
        """Is every node one GPU (a classical machine)?"""
        return bool((self.timeline.node_gpus == 1).all())

    @cached_property
    def top(self) -> Floats:
        """Upper edge of every node, f64[N]."""
        gpus = self.timeline.node_gpus
        gap = 0.0 if self.single else NODE_GAP
        return np.cumsum(gpus) - gpus + gap * np.arange(gpus.size)

    @cached_property
    def height(self) -> float:
        """Height of all nodes."""
        return float(self.top[-1] + self.timeline.node_gpus[-1]) if self.top.size else 1.0

    @cached_property
    def blocks(self) -> Blocks:
        """Neighbouring GPUs of a gang are one block; where two jobs are on a GPU, each has half of its row. O(K log K)."""
        t = self.timeline
        if t.sharing:
            return self._shared_blocks()
        segment = np.repeat(np.arange(t.job.size), np.diff(t.gpu_offset))
        order = np.lexsort((t.index, t.node, segment))
        segment, node, index = segment[order], t.node[order], t.index[order]
        same = (np.diff(segment) == 0) & (np.diff(node) == 0) & (np.diff(index) == 1)
        first = np.flatnonzero(np.concatenate([[True], ~same])) if segment.size else np.zeros(0, dtype=np.int64)
        gpus = np.diff(np.append(first, segment.size))
        segment, top = segment[first], self.top[node[first]] + index[first]
        return Blocks(segment, t.start[segment], t.end[segment], top, top + gpus, np.full(segment.size, np.nan))

    def _shared_blocks(self) -> Blocks:
        cells = self.timeline.cells
        keys = cells.index, cells.node, cells.right, cells.left, cells.lower, cells.upper
        order = np.lexsort(keys)
        index, *same = (key[order] for key in keys)
        joined = (np.diff(index) == 1) & np.logical_and.reduce([np.diff(key) == 0 for key in same])
        joined &= ~cells.shared[order][:-1]  # halves of two rows would read as one job on each
        first = np.flatnonzero(np.concatenate([[True], ~joined])) if index.size else np.zeros(0, dtype=np.int64)
        gpus = np.diff(np.append(first, index.size))
        chosen = order[first]
        top = self.top[cells.node[chosen]] + cells.index[chosen]
        both = cells.shared[chosen]
        parts = []
        for mine, other, lane in ((cells.upper, cells.lower, 0), (cells.lower, cells.upper, 1)):
            here = np.flatnonzero(mine[chosen] != NOBODY)
            row, half = chosen[here], np.where(both[here], 0.5, 1.0) * gpus[here]
            upper = top[here] + np.where(both[here], lane * half, 0.0)
            xi = self._xi(mine[row], other[row])
            parts.append((mine[row], cells.left[row], cells.right[row], upper, upper + half, xi))
        return Blocks(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def _xi(self, segment: Ints, other: Ints) -> Floats:
        t = self.timeline
        if t.xi is None or not segment.size:
            return np.full(segment.size, np.nan)
        kind, table = t.xi
        return np.where(other == NOBODY, np.nan, table[kind[t.job[segment]], kind[t.job[other]]])


def draw_floor(ax: Axes, rows: PlotRows, start: float, end: float) -> None:
    """A grey floor under every node: what stays grey is idle."""
    top, gpus = rows.top, rows.timeline.node_gpus
    span = np.ones(top.size)
    draw_rectangles(ax, start * span, end * span, top, top + gpus, facecolors=FLOOR, zorder=0, label="_floor")
    if rows.single:
        ax.hlines(top[1:], start, end, colors="white", linewidths=0.8, zorder=0.5)


def label_rows(ax: Axes, rows: PlotRows, row_points: float) -> None:
    """Names of nodes, as many as fit, and indices of GPUs where rows are high enough."""
    t = rows.timeline
    middle = rows.top + t.node_gpus / 2
    numbered = row_points >= NUMBERED and not rows.single
    nodes = spread(middle * row_points, LABEL_HEIGHT)
    names = [t.node_names[k] for k in nodes]
    if not numbered:
        ax.set_yticks(middle[nodes], names, fontsize=8, parse_math=False)
        ax.tick_params(axis="y", length=0)
        return
    places = np.concatenate([top + np.arange(count) + 0.5 for top, count in zip(rows.top, t.node_gpus, strict=True)])
    numbers = [str(k) for count in t.node_gpus for k in range(count)]
    ax.set_yticks(places, numbers, fontsize=min(7.0, row_points * 0.75), color=QUIET)
    ax.tick_params(axis="y", length=0, pad=2)
    digits = max(len(label) for label in numbers)
    for y, name in zip(middle[nodes], names, strict=True):
        label_left(ax, name, y, 8 + 5 * digits, fontsize=8.5, color=INK)


def spread(places: Floats, least: float) -> list[int]:
    # Every k-th of ascending places, so that neighbours are at least this far apart; the first always.
    if places.size < 2:
        return list(range(places.size))
    distance = float(np.diff(places).min())
    every = next((k for k in (1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64) if k * distance >= least), places.size)
    return list(range(0, places.size, every))
