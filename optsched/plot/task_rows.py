"""Rows of a chart of tasks: the GPUs of a node, below them its network interface."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from matplotlib.axes import Axes

from optsched.errors import InputError
from optsched.plot.canvas import FLOOR, INK, QUIET, draw_rectangles, label_left
from optsched.plot.rows import LABEL_HEIGHT, spread
from optsched.plot.timeline import node_names
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.schedule import node_first

MOST_ROWS = 160
NODE_GAP = 0.6  # between nodes, in rows
INTERFACE = 1.5  # height of the row of an interface
INTERFACE_FLOOR = "#dfe3e8"
NUMBERED = 7.0  # points: rows at least this high carry the index of their GPU


@dataclass(frozen=True, eq=False)
class TaskRows:
    """Where the GPUs and interfaces of ``nodes`` stand on the y axis (downwards); ``sends``: are interfaces shown?"""

    instance: Instance
    nodes: tuple[int, ...]
    sends: bool

    @classmethod
    def of(cls, instance: Instance, nodes: Sequence[int] | None, sends: bool) -> TaskRows:
        """Rows of these nodes; None: of all, or of the first that fit into `MOST_ROWS`."""
        gpus, count = instance.cluster.node_gpus, instance.cluster.node_count
        if nodes is None:
            fit = int(np.searchsorted(np.cumsum(gpus + sends), MOST_ROWS, side="right"))
            return cls(instance, tuple(range(max(1, min(fit, count)))), sends)
        wrong = [h for h in nodes if isinstance(h, bool) or not isinstance(h, int | np.integer) or not 0 <= h < count]
        if wrong or not nodes or len(set(nodes)) < len(nodes):
            legal = f"different integers from 0 to {count - 1}"
            raise InputError("invalid", field="nodes", value=list(nodes), legal=legal)
        rows = int((gpus[list(nodes)] + sends).sum())
        if rows > MOST_ROWS:
            raise InputError("too many rows for one picture", field="nodes", value=rows, legal=f"at most {MOST_ROWS}")
        return cls(instance, tuple(int(h) for h in nodes), sends)

    @cached_property
    def gpus(self) -> Ints:
        """GPUs of every node shown."""
        return np.asarray(self.instance.cluster.node_gpus[list(self.nodes)], dtype=np.int64)

    @cached_property
    def top(self) -> Floats:
        """Upper edge of every node shown."""
        step = self.gpus + (INTERFACE if self.sends else 0.0) + NODE_GAP
        return np.asarray(np.cumsum(step) - step)

    @cached_property
    def height(self) -> float:
        """Height of all rows."""
        return float(self.top[-1] + self.gpus[-1] + (INTERFACE if self.sends else 0.0))

    @cached_property
    def gpu_top(self) -> Floats:
        """Upper edge of every GPU of the cluster, nan where it is not shown, f64[G]."""
        first, found = node_first(self.instance), np.full(self.instance.cluster.gpus, np.nan)
        for h, top, count in zip(self.nodes, self.top.tolist(), self.gpus.tolist(), strict=True):
            found[first[h] : first[h] + count] = top + np.arange(count)
        return found

    @cached_property
    def interface_top(self) -> dict[int, float]:
        """Upper edge of the interface of every node shown."""
        return dict(zip(self.nodes, (self.top + self.gpus).tolist(), strict=True)) if self.sends else {}


def draw_task_floor(ax: Axes, rows: TaskRows, start: float, end: float) -> None:
    """Grey where GPUs and interfaces are idle, interfaces a little darker."""
    span = np.ones(rows.top.size)
    edge = (start * span, end * span)
    lower = rows.top + rows.gpus
    draw_rectangles(ax, *edge, rows.top, lower, facecolors=FLOOR, zorder=0, label="_floor")
    if rows.sends:
        draw_rectangles(ax, *edge, lower, lower + INTERFACE, facecolors=INTERFACE_FLOOR, zorder=0, label="_interfaces")


def label_task_rows(ax: Axes, rows: TaskRows, row_points: float) -> None:
    """Names of nodes, as many as fit; indices of GPUs and "net" where rows are high enough."""
    if row_points >= NUMBERED:
        places, names = [], []
        for top, count in zip(rows.top.tolist(), rows.gpus.tolist(), strict=True):
            places += [top + k + 0.5 for k in range(count)] + [top + count + INTERFACE / 2] * rows.sends
            names += [str(k) for k in range(count)] + ["net"] * rows.sends
        ax.set_yticks(places, names, fontsize=min(7.0, row_points * 0.75), color=QUIET)
    else:
        ax.set_yticks([])
    ax.tick_params(axis="y", length=0, pad=2)
    middle = rows.top + rows.gpus / 2
    called = node_names(rows.instance.cluster)
    for k in spread(middle * row_points, LABEL_HEIGHT):
        away, size = (20, 8.5) if row_points >= NUMBERED else (4, 8)
        label_left(ax, called[rows.nodes[k]], middle[k], away, fontsize=size, color=INK)
