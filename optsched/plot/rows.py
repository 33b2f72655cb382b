"""Rows of a chart: a GPU is one unit high, below those of a node perhaps its network interface; nodes are set apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from matplotlib.axes import Axes

from optsched.plot.canvas import FLOOR, INK, QUIET, draw_rectangles, label_left
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
    if row_points < NUMBERED or rows.single:
        ax.set_yticks(middle[nodes], [rows.names[k] for k in nodes], fontsize=8, parse_math=False)
        ax.tick_params(axis="y", length=0)
        return
    places, labels = list[float](), list[str]()
    for top, count in zip(rows.top.tolist(), rows.gpus.tolist(), strict=True):
        places += [top + k + 0.5 for k in range(count)] + [top + count + INTERFACE / 2] * rows.interfaces
        labels += [str(k) for k in range(count)] + ["net"] * rows.interfaces
    ax.set_yticks(places, labels, fontsize=min(7.0, row_points * 0.75), color=QUIET)
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
