"""Chart of a schedule at the task level: forward and backward tasks on GPUs, all-reduces on network interfaces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from optsched.classes.task_sharing.problem.task_log import FORMAT, TRANSFER, TaskLog, TaskSchedule
from optsched.errors import InputError, check_legal
from optsched.plot.canvas import Width, draw_rectangles, key_below, new_axes, new_figure, plain, set_title
from optsched.plot.colours import job_colours, paler
from optsched.plot.gantt import WIDTH, settle
from optsched.plot.node_rows import (
    INTERFACE,
    LARGEST_FONT,
    NodeRows,
    draw_floor,
    label_blocks,
    label_rows,
    points_per_unit,
    short_ids,
)
from optsched.plot.plot_file import CHARTS, PLOTS, Plot, Window
from optsched.plot.time_axis import in_unit, time_axis
from optsched.plot.timeline import heading, node_names
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.cluster import Cluster
from optsched.problem.instance import Instance

if TYPE_CHECKING:
    from optsched.problem.schedule import Schedule
    from optsched.simulation.run import Run


MOST_TASKS = 20_000  # beyond, blocks are smaller than a pixel
FIRST_TASKS = 3_000  # without a window that was asked for, as many as can be told apart
LIGHT, DARK = 0.55, 0.18  # share of white in a forward task, of black in a backward task
MARGIN = 0.06  # of a row, above and below its blocks
MOST_ROWS = 160


@CHARTS.register("tasks")
def tasks(
    run: Run | Schedule,
    *,
    start: float | None = None,
    end: float | None = None,
    nodes: Sequence[int] | None = None,
    ax: Axes | None = None,
    width: Width | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the tasks of a run at the task level between two times.

    Each GPU has a row with forward (light) and backward tasks (dark) in the colour of their job; grey is idle. Each network
    interface has a row with all-reduces: k at once have 1 / k of its height each, so a step in a block shows that a transfer
    starts or ends. An all-reduce over several nodes is drawn on each of them.

    Parameters
    ----------
    run
        Result of `optsched.simulate`, or its schedule, with a log of its tasks.
    start, end
        Window in seconds. Without both, the whole schedule, or for a long one its first 3,000 tasks, as the title says. With
        ``start`` only, the same from there on.
    nodes
        Nodes to draw; default: all, or the first that fit into 160 rows.
    ax
        Axes to draw on; by default those of a new figure, which pyplot does not know and a notebook shows.
    width
        Width of a new figure for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.
    title
        Title; default: policy, instance, jobs, GPUs and window.

    Raises
    ------
    InputError
        If the schedule has no tasks, the window is empty or has more than 20,000 tasks, or a node does not exist.

    Notes
    -----
    Complexity: O(R) for R tasks in the log, O(r log r) for the r tasks of the jobs in the window.

    Examples
    --------
    >>> import optsched as osd
    >>> jobs = [osd.Job(name, iterations=3, profile="net") for name in ("a", "b")]
    >>> shared = osd.Instance(jobs, "1x1", tasks={"net": osd.IterationTasks(forward=1, backward=2)})
    >>> osd.plot.tasks(osd.simulate(shared, "srsf:k=1"), start=0, end=9).get_title(loc="left")
    'srsf:k=1: 2 jobs, 1 GPU (9 s from 0 s on, of 18 s)'
    """
    picture = TaskPicture.of(run, start, end)
    cluster = picture.schedule.instance.cluster
    shown, names = chosen_nodes(cluster, nodes), node_names(cluster)
    rows = NodeRows(cluster.node_gpus[shown], [names[h] for h in shown], interfaces=cluster.node_count > 1)
    if ax is None:
        ax = new_axes(new_figure(WIDTH, 1.0 + float(np.clip(0.2 * rows.height, 1.2, 9.5)), width))
    plain(ax, "bottom")
    time_axis(ax, picture.start, picture.end)
    if (span := picture.end - picture.start) < 10:  # late in a long schedule four figures would not tell ticks apart
        digits = max(0, 1 - math.floor(math.log10(span)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:,.{digits}f}"))
    set_title(ax, _title(picture, len(shown)) if title is None else title)
    ax.set_ylim(rows.height, 0.0)
    settle(ax)
    draw_floor(ax, rows, picture.start, picture.end)
    _draw_compute(ax, picture, shown, rows)
    _draw_transfers(ax, picture, shown, rows)
    label_rows(ax, rows, points_per_unit(ax)[1])
    _key(ax, rows.interfaces)
    return ax


def chosen_nodes(cluster: Cluster, nodes: Sequence[int] | None) -> list[int]:
    """Return the nodes to draw.

    Parameters
    ----------
    cluster
        Cluster of the schedule.
    nodes
        Requested nodes; None: all, or the first whose GPUs and interfaces fit into `MOST_ROWS`.

    Raises
    ------
    InputError
        If a requested node does not exist or occurs twice.
    """
    count, rows = cluster.node_count, cluster.node_gpus + (cluster.node_count > 1)
    if nodes is None:
        fit = int(np.searchsorted(np.cumsum(rows), MOST_ROWS, side="right"))
        return list(range(max(1, min(fit, count))))
    wrong = [h for h in nodes if isinstance(h, bool) or not isinstance(h, int | np.integer) or not 0 <= h < count]
    if wrong or not nodes or len(set(nodes)) < len(nodes):
        raise InputError("invalid", field="nodes", value=list(nodes), legal=f"different integers from 0 to {count - 1}")
    if (asked := int(rows[list(nodes)].sum())) > MOST_ROWS:
        raise InputError("too many rows for one picture", field="nodes", value=asked, legal=f"at most {MOST_ROWS}")
    return [int(h) for h in nodes]


def _draw_compute(ax: Axes, p: TaskPicture, nodes: list[int], rows: NodeRows) -> None:
    ids, (x_points, y_points) = p.schedule.instance.ids, points_per_unit(ax)
    colours, names = job_colours(ids), short_ids(ids)
    node_top = np.full(p.schedule.instance.cluster.node_count, np.nan)  # nan: not shown
    node_top[nodes] = rows.top
    top: Floats = node_top[p.node] + p.index
    drawn = np.flatnonzero(np.isfinite(top))
    top, job, left, right = top[drawn], p.job[drawn], p.begin[drawn], p.until[drawn]
    face = np.where(p.backward[drawn, None], colours[job] * (1 - DARK), paler(colours[job], LIGHT))
    # White edges part neighbours, but must not eat a block that is hardly wider than they are.
    edges = np.clip((right - left) * x_points * 0.1, 0.0, 0.5) * min(1.0, y_points / 8)
    upper, lower = top + MARGIN, top + 1 - MARGIN
    style = {"edgecolors": "white", "linewidths": edges, "zorder": 2, "label": "_compute"}
    draw_rectangles(ax, left, right, upper, lower, facecolors=face, **style)
    one = _labelled(job, p.node[drawn], p.index[drawn], left, right)
    font = min(LARGEST_FONT, 0.72 * y_points)
    label_blocks(ax, [names[j] for j in job[one]], left[one], right[one], upper[one], lower[one], face[one], font)


def _labelled(job: Ints, node: Ints, index: Ints, left: Floats, right: Floats) -> Ints:
    """One block of an iteration and node is enough: the longer task, of those that begin together on the first GPU."""
    length = np.zeros(int(job.max(initial=0)) + 1)
    np.maximum.at(length, job, right - left)
    long = np.flatnonzero(right - left >= length[job] * (1 - 1e-9))
    order = long[np.lexsort((index[long], left[long], node[long], job[long]))]
    same = (np.diff(job[order]) == 0) & (np.diff(node[order]) == 0) & (np.diff(left[order]) == 0)
    return np.asarray(order[np.concatenate([np.ones(min(1, order.size), bool), ~same])])


def _draw_transfers(ax: Axes, p: TaskPicture, nodes: list[int], rows: NodeRows) -> None:
    ids = p.schedule.instance.ids
    names = short_ids(ids)
    corners: list[list[tuple[float, float]]] = []
    widest: list[Piece] = []
    job: list[int] = []
    height = INTERFACE - 2 * MARGIN
    for node, top in zip(nodes, (rows.top + rows.gpus).tolist(), strict=True) if rows.interfaces else ():
        mine = [k for k, j in enumerate(p.sender.tolist()) if node in p.spanned[j]]
        found = side_by_side(p.sent[mine].tolist(), p.received[mine].tolist())
        for k, pieces in zip(mine, found, strict=True):
            corners.append(outline(pieces, top + MARGIN, height))
            room = max(pieces, key=lambda one: (one.end - one.start) * (one.lower - one.upper))
            above, below = (top + MARGIN + part * height for part in (room.upper, room.lower))
            widest.append(Piece(room.start, room.end, above, below))
            job.append(int(p.sender[k]))
    face = job_colours(ids)[np.array(job, dtype=np.int64)]
    ax.add_collection(
        PolyCollection(corners, facecolors=face, edgecolors="white", linewidths=0.5, zorder=2, label="_transfers"),
        autolim=False,
    )
    left, right, upper, lower = np.array(widest, dtype=np.float64).reshape(-1, 4).T
    font = min(LARGEST_FONT, 0.72 * points_per_unit(ax)[1])
    label_blocks(ax, [names[j] for j in job], left, right, upper, lower, face, font)


def _title(p: TaskPicture, nodes: int) -> str:
    instance = p.schedule.instance
    whole = heading(p.schedule.policy, instance.name, instance.n, instance.cluster.gpus)
    shown = []
    if p.start > 0 or p.end < p.last:
        shown.append(f"{in_unit(p.end - p.start)} from {in_unit(p.start)} on, of {in_unit(p.last)}")
    if nodes < instance.cluster.node_count:
        shown.append(f"{nodes:,} of {instance.cluster.node_count:,} nodes")
    return whole + (f" ({'; '.join(shown)})" if shown else "")


def _key(ax: Axes, sends: bool) -> None:
    grey = np.array([0.55, 0.55, 0.55])
    handles = [
        Patch(facecolor=tuple(paler(grey, LIGHT)), label="forward"),
        Patch(facecolor=tuple(grey * (1 - DARK)), label="backward"),
    ]
    if sends:
        handles.append(Patch(facecolor=tuple(grey), label="all-reduce (net): k at once, each 1/k high"))
    ax.set_xlabel(ax.get_xlabel(), loc="left", fontsize=9)
    key_below(ax, handles)


def _draw_file(
    path: Path, header: Mapping[str, Any], instance: Instance | None, window: Window, width: Width | None
) -> Figure:
    if instance is None:
        message = "a file of tasks is drawn with its instance"
        raise InputError(message, file=path, field="instance", legal="--instance SOURCE")
    drawn = tasks(TaskSchedule.load_tasks(path, instance), start=window[0], end=window[1], width=width)
    return cast("Figure", drawn.get_figure(root=True))


# --- what is drawn: the tasks in a window -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TaskPicture:
    """Tasks and all-reduces of ``schedule`` between ``start`` and ``end`` seconds.

    K tasks: ``job``, ``node``, ``index`` i64[K] of their GPU there, ``backward`` bool[K], ``begin``, ``until`` f64[K].
    T all-reduces: ``sender`` i64[T] are their jobs, ``sent``, ``received`` f64[T] their starts and ends; ``spanned`` maps a
    job to the nodes of its gang. ``last``: end of the schedule.
    """

    schedule: TaskSchedule
    start: float
    end: float
    last: float
    job: Ints
    node: Ints
    index: Ints
    backward: Bools
    begin: Floats
    until: Floats
    sender: Ints
    sent: Floats
    received: Floats
    spanned: dict[int, set[int]]

    @classmethod
    def of(cls, run: Run | Schedule, start: float | None = None, end: float | None = None) -> TaskPicture:
        """Return the tasks in a window, in O(R) for R tasks and O(r log r) for the r tasks of the jobs in it.

        Parameters
        ----------
        run
            A run or schedule at the task level.
        start, end
            Window in seconds; without both, all tasks, or the first `FIRST_TASKS` of a long log.

        Raises
        ------
        InputError
            If the schedule has no log of tasks, or the window is empty or has more than `MOST_TASKS`.
        """
        schedule = getattr(run, "schedule", run)
        if not isinstance(schedule, TaskSchedule):
            raise InputError("its jobs have no tasks", field="schedule", legal="a schedule at the task level")
        log = schedule.tasks
        if log is None:
            message = "the schedule was made without a log of its tasks"
            raise InputError(message, field="record", value=False, legal="True")
        gang = _gangs(schedule, log)
        last = float(log.end.max(initial=float(log.start.min(initial=0.0))))
        low, high = _window(log, last, start, end)
        seen = (log.start < high) & (log.end > low) & (log.end > log.start)
        if (count := int(seen.sum())) > MOST_TASKS:
            message, legal = f"{count:,} tasks are too many for one picture", f"a window of at most {MOST_TASKS:,}"
            raise InputError(message, field="start, end", value=(low, high), legal=legal)
        computed, sent = seen & (log.worker != TRANSFER), seen & (log.worker == TRANSFER)
        job, offset = log.job.astype(np.int64), schedule.gpu_offset
        place = offset[gang[job[computed]]] + log.worker[computed]
        return cls(
            *(schedule, low, high, last, job[computed], schedule.gpu_node[place], schedule.gpu_index[place]),
            *(_is_backward(log, computed), log.start[computed], log.end[computed]),
            *(job[sent], log.start[sent], log.end[sent]),
            {
                j: set(schedule.gpu_node[offset[gang[j]] : offset[gang[j] + 1]].tolist())
                for j in set(job[sent].tolist())
            },
        )


def _gangs(schedule: TaskSchedule, log: TaskLog) -> Ints:
    """The segment of every job, i64[n], -1: none; `InputError` when a task is of no worker of its job's gang."""
    gang = np.full(schedule.instance.n, -1, dtype=np.int64)
    gang[schedule.job] = np.arange(schedule.job.size)
    bad = (log.job < 0) | (log.job >= gang.size) | ~np.isfinite(log.start + log.end)
    mine = gang[np.where(bad, 0, log.job)] if gang.size else np.full(len(log), -1)
    size = np.append(np.diff(schedule.gpu_offset), 0)[mine]
    bad |= (mine < 0) | (log.worker < TRANSFER) | (log.worker >= size)
    if bad.any():
        row = int(bad.argmax())
        raise InputError(
            f"task {row + 1} (of {len(log)}) cannot be drawn",
            field="job, worker, start, end",
            value=(int(log.job[row]), int(log.worker[row]), float(log.start[row]), float(log.end[row])),
            legal="a worker of a gang that was placed, at finite times",
        )
    return gang


def _window(log: TaskLog, last: float, start: float | None, end: float | None) -> tuple[float, float]:
    for field, value in (("start", start), ("end", end)):
        check_legal(value is None or math.isfinite(value), field, value, "a finite number of seconds")
    if not len(log) and start is None and end is None:
        return 0.0, 1.0
    low = float(log.start.min(initial=0.0)) if start is None else float(start)
    high = last if end is None else float(end)
    if end is None and low < last:
        later = log.start if start is None else log.start[log.end > low]
        if later.size > FIRST_TASKS:
            high = float(np.partition(later, FIRST_TASKS)[FIRST_TASKS])
    if not low < high:
        legal = f"start < end, within the {last:g} s of the schedule"
        raise InputError("an empty window", field="start, end", value=(low, high), legal=legal)
    return low, high


def _is_backward(log: TaskLog, computed: Bools) -> Bools:
    """Return which tasks in ``computed`` are backward: every second one of a worker, by start."""
    wanted = np.zeros(int(log.job.max(initial=0)) + 1, dtype=bool)
    wanted[log.job[computed]] = True
    rows = np.flatnonzero(wanted[log.job] & (log.worker != TRANSFER))
    order = rows[np.lexsort((log.end[rows], log.start[rows], log.worker[rows], log.job[rows]))]
    job, worker = log.job[order], log.worker[order]
    new = np.concatenate([[True], (np.diff(job) != 0) | (np.diff(worker) != 0)]) if order.size else np.zeros(0, bool)
    rank = np.arange(order.size)
    found = np.zeros(len(log), dtype=bool)
    found[order] = (rank - np.maximum.accumulate(np.where(new, rank, 0))) % 2 == 1
    return found[computed]


# --- all-reduces on an interface: side by side in its row, as high as their share of it --------------------------------


class Piece(NamedTuple):
    """Part of a row, between ``upper`` and ``lower`` in [0, 1] downwards, that a transfer has from ``start`` to ``end``."""

    start: float
    end: float
    upper: float
    lower: float


def side_by_side(start: Sequence[float], end: Sequence[float]) -> list[list[Piece]]:
    """Return the pieces of every transfer of one interface, by time, in O(m log m + P) for m transfers and P pieces.

    While k transfers run, each has 1 / k of the row; the one that started first is at the top. At one instant ends come
    before starts.

    Parameters
    ----------
    start, end
        Times of the transfers in seconds.
    """
    pieces: list[list[Piece]] = [[] for _ in start]
    events = sorted(
        [(time, 1, start[i], i) for i, time in enumerate(start)]
        + [(time, 0, start[i], i) for i, time in enumerate(end)]
    )
    running: list[int] = []
    for (now, starts, _, i), (following, *_) in pairwise(events):
        if starts and end[i] > start[i]:
            running.append(i)
        elif not starts and i in running:
            running.remove(i)
        if following <= now:
            continue
        for position, j in enumerate(running):
            mine, part = pieces[j], (position / len(running), (position + 1) / len(running))
            if mine and mine[-1][2:] == part:
                mine[-1] = mine[-1]._replace(end=following)
            else:
                mine.append(Piece(now, following, *part))
    return pieces


def outline(pieces: Sequence[Piece], top: float, height: float) -> list[tuple[float, float]]:
    """Return the corners, clockwise, of the polygon that pieces form in a row.

    Parameters
    ----------
    pieces
        Pieces of one transfer.
    top
        Upper edge of the row.
    height
        Height of the row.
    """
    above = [(x, top + p.upper * height) for p in pieces for x in (p.start, p.end)]
    below = [(x, top + p.lower * height) for p in reversed(pieces) for x in (p.end, p.start)]
    return above + below


PLOTS.register("tasks")(Plot(f"tasks ({FORMAT})", lambda header: header.get("format") == FORMAT, _draw_file))
