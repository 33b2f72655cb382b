"""The chart of a schedule at the task level: forward and backward tasks on GPUs, all-reduces on network interfaces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from optsched.errors import InputError
from optsched.plot.block_labels import LARGEST_FONT, label_blocks, points_per_unit, short_ids
from optsched.plot.canvas import draw_rectangles, new_axes, new_figure, plain
from optsched.plot.canvas import title as set_title
from optsched.plot.colours import job_colours, paler
from optsched.plot.gantt import WIDTH, key_below, settle
from optsched.plot.interface_row import Piece, outline, side_by_side
from optsched.plot.kinds import PLOTS, Plot, Window
from optsched.plot.task_picture import TaskPicture
from optsched.plot.task_rows import INTERFACE, TaskRows, draw_task_floor, label_task_rows
from optsched.plot.time_axis import in_unit, time_axis
from optsched.plot.timeline import heading
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.task_log import FORMAT, TaskSchedule

if TYPE_CHECKING:
    from optsched.problem.schedule import Schedule
    from optsched.simulation.run import Run


LIGHT, DARK = 0.55, 0.18  # share of white in a forward task, of black in a backward task
MARGIN = 0.06  # of a row, above and below its blocks


def tasks(
    run: Run | Schedule,
    *,
    start: float | None = None,
    end: float | None = None,
    nodes: Sequence[int] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the tasks of a run at the task level between two times.

    One row a GPU with forward (light) and backward tasks (dark) in the colour of their job, grey where it is idle. One row
    a network interface with all-reduces: k at once have 1 / k of its height each, so that a step in a block is a transfer
    that came or went. An all-reduce over several nodes is drawn on each of them.

    Parameters
    ----------
    run : of `optsched.simulate`, or its schedule, with a log of its tasks.
    start, end : seconds. Without either, all, or of a long schedule as much as can be told apart (3,000 tasks); the title
        says so. With ``start`` only, likewise from there on.
    nodes : which nodes; default: all, or the first that fit into 160 rows.
    ax : axes to draw on; by default those of a new figure, which pyplot does not know and a notebook shows.
    title : default: policy, instance, jobs, GPUs and window.

    Raises
    ------
    InputError
        For a schedule without tasks, a window that is empty or has more than 20,000 tasks, and nodes that do not exist.

    Complexity: O(R) for R tasks in the log, O(r log r) for the r tasks of the jobs in the window.

    >>> import optsched as osd
    >>> jobs = [osd.Job(name, iterations=3, profile="net") for name in ("a", "b")]
    >>> shared = osd.Instance(jobs, "1x1", tasks={"net": osd.IterationTasks(forward=1, backward=2)})
    >>> osd.plot.tasks(osd.simulate(shared, "srsf:k=1"), start=0, end=9).get_title(loc="left")
    'srsf:k=1: 2 jobs, 1 GPU (9 s from 0 s on, of 18 s)'
    """
    picture = TaskPicture.of(run, start, end)
    instance = picture.schedule.instance
    rows = TaskRows.of(instance, nodes, sends=bool(instance.cluster.node_count > 1))
    if ax is None:
        ax = new_axes(new_figure(WIDTH, 1.0 + float(np.clip(0.2 * rows.height, 1.2, 9.5))))
    plain(ax, "bottom")
    time_axis(ax, picture.start, picture.end)
    _finer_ticks(ax, picture.end - picture.start)
    set_title(ax, _title(picture, rows) if title is None else title)
    ax.set_ylim(rows.height, 0.0)
    settle(ax)
    _draw(ax, picture, rows)
    return ax


def _draw(ax: Axes, picture: TaskPicture, rows: TaskRows) -> None:
    ids = picture.schedule.instance.ids
    colours, names = job_colours(ids), short_ids(ids)
    x_points, y_points = points_per_unit(ax)
    draw_task_floor(ax, rows, picture.start, picture.end)
    _draw_compute(ax, picture, rows, colours, names, x_points, y_points)
    _draw_transfers(ax, picture, rows, colours, names, y_points)
    label_task_rows(ax, rows, y_points)
    _key(ax, rows.sends)


def _draw_compute(
    ax: Axes, p: TaskPicture, rows: TaskRows, colours: Floats, names: list[str], x_points: float, y_points: float
) -> None:
    top = rows.gpu_top[p.gpu]
    drawn = np.flatnonzero(np.isfinite(top))
    top, job, left, right = top[drawn], p.job[drawn], p.begin[drawn], p.until[drawn]
    face = np.where(p.backward[drawn, None], colours[job] * (1 - DARK), paler(colours[job], LIGHT))
    # White edges part neighbours, but must not eat a block that is hardly wider than they are.
    edges = np.clip((right - left) * x_points * 0.1, 0.0, 0.5) * min(1.0, y_points / 8)
    upper, lower = top + MARGIN, top + 1 - MARGIN
    draw_rectangles(
        ax,
        *(left, right, upper, lower),
        facecolors=face,
        edgecolors="white",
        linewidths=edges,
        zorder=2,
        label="_compute",
    )
    one = _labelled(job, p.node[drawn], p.gpu[drawn], left, right)
    font = min(LARGEST_FONT, 0.72 * y_points)
    label_blocks(ax, [names[j] for j in job[one]], left[one], right[one], upper[one], lower[one], face[one], font)


def _labelled(job: Ints, node: Ints, gpu: Ints, left: Floats, right: Floats) -> Ints:
    """One block of an iteration and node is enough: the longer task, of those that begin together on the first GPU."""
    length = np.zeros(int(job.max(initial=0)) + 1)
    np.maximum.at(length, job, right - left)
    long = np.flatnonzero(right - left >= length[job] * (1 - 1e-9))
    order = long[np.lexsort((gpu[long], left[long], node[long], job[long]))]
    same = (np.diff(job[order]) == 0) & (np.diff(node[order]) == 0) & (np.diff(left[order]) == 0)
    return np.asarray(order[np.concatenate([np.ones(min(1, order.size), bool), ~same])])


def _draw_transfers(
    ax: Axes, p: TaskPicture, rows: TaskRows, colours: Floats, names: list[str], y_points: float
) -> None:
    corners: list[list[tuple[float, float]]] = []
    widest: list[Piece] = []
    job: list[int] = []
    height = INTERFACE - 2 * MARGIN
    for node, top in rows.interface_top.items():
        mine = [k for k, j in enumerate(p.sender.tolist()) if node in p.spanned[j]]
        found = side_by_side(p.sent[mine].tolist(), p.received[mine].tolist())
        for k, pieces in zip(mine, found, strict=True):
            corners.append(outline(pieces, top + MARGIN, height))
            room = max(pieces, key=lambda one: (one.end - one.start) * (one.lower - one.upper))
            above, below = (top + MARGIN + part * height for part in (room.upper, room.lower))
            widest.append(Piece(room.start, room.end, above, below))
            job.append(int(p.sender[k]))
    face = colours[np.array(job, dtype=np.int64)]
    ax.add_collection(
        PolyCollection(corners, facecolors=face, edgecolors="white", linewidths=0.5, zorder=2, label="_transfers"),
        autolim=False,
    )
    left, right, upper, lower = np.array(widest, dtype=np.float64).reshape(-1, 4).T
    font = min(LARGEST_FONT, 0.72 * y_points)
    label_blocks(ax, [names[j] for j in job], left, right, upper, lower, face, font)


def _finer_ticks(ax: Axes, span: float) -> None:
    if span < 10:  # seconds, late in a long schedule: four figures would not tell neighbouring ticks apart
        digits = max(0, 1 - math.floor(math.log10(span)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:,.{digits}f}"))


def _title(p: TaskPicture, rows: TaskRows) -> str:
    instance = p.schedule.instance
    whole = heading(p.schedule.policy, instance.name, instance.n, instance.cluster.gpus)
    shown = []
    if p.start > 0 or p.end < p.last:
        shown.append(f"{in_unit(p.end - p.start)} from {in_unit(p.start)} on, of {in_unit(p.last)}")
    if len(rows.nodes) < instance.cluster.node_count:
        shown.append(f"{len(rows.nodes):,} of {instance.cluster.node_count:,} nodes")
    return whole + (f" ({'; '.join(shown)})" if shown else "")


def _key(ax: Axes, sends: bool) -> None:
    grey = np.array([0.55, 0.55, 0.55])
    handles = [
        Patch(facecolor=tuple(paler(grey, LIGHT)), label="forward"),
        Patch(facecolor=tuple(grey * (1 - DARK)), label="backward"),
    ]
    if sends:
        handles.append(Patch(facecolor=tuple(grey), label="all-reduce (net): k at once, 1/k of the height each"))
    ax.set_xlabel(ax.get_xlabel(), loc="left", fontsize=9)
    key_below(ax, handles)


def _draw_file(path: Path, header: Mapping[str, Any], instance: Instance | None, window: Window) -> Figure:
    if instance is None:
        raise InputError(
            "a file of tasks is drawn with its instance", file=path, field="instance", legal="--instance SOURCE"
        )
    start, end = window
    drawn = tasks(TaskSchedule.load_tasks(path, instance), start=start, end=end)
    return cast("Figure", drawn.get_figure(root=True))


PLOTS.register("tasks")(Plot(f"tasks ({FORMAT})", lambda header: header.get("format") == FORMAT, _draw_file))
