"""Busy GPUs and waiting jobs over time, for runs of any size.

`overview` is the picture of a schedule file: a Gantt chart, or for large runs the nodes over time above these curves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from optsched.errors import InputError, check_legal
from optsched.plot.canvas import INK, NARROW, QUIET, Width, key_above, new_axes, new_figure, plain, root_of, set_title
from optsched.plot.colours import CURVES
from optsched.plot.gantt import WIDTH, gantt, too_large
from optsched.plot.interactive import interactive
from optsched.plot.labels import by_label
from optsched.plot.node_rows import BINS, image_height
from optsched.plot.plot_file import PLOTS, Plot, Window
from optsched.plot.time_axis import in_unit, time_axis
from optsched.plot.timeline import TASKS_INSTEAD, Drawn, Timeline, bin_means, levels
from optsched.plot.trace_events import trace_text
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.schedule import JOBS_PER_GPU, Schedule, Scheduled, schedule_in
from optsched.problem.schedule_file import FORMAT, has_starts

PANEL = 1.5  # inches of each curve under the image
FEW, PARTS = 600, 240  # of runs that are compared: intervals up to which curves are drawn as they are; parts of means
TAIL, FEWEST_JOBS = 0.02, 10  # a tail: so many of the jobs, the last to complete; of so few jobs one, of fewer none
LONG_TAIL, AFTER = 2.0, 1.05  # it is cut where it makes the picture so many times longer; what is left of it
EXACT = 4000  # up to this many changes a curve is drawn as it is, beyond as means over bins
BUSY, OVERHEAD, WAITING, SHARED = "#0072B2", "#E69F00", "#767676", "#004a75"


def occupancy(
    schedule: Drawn,
    *,
    axes: Sequence[Axes] | None = None,
    width: Width | None = None,
    start: float | None = None,
    end: float | None = None,
    title: str | None = None,
) -> tuple[Axes, ...]:
    """Draw busy GPUs and, below, waiting jobs over time.

    Busy GPUs are split into work and overhead (held without progress: restarts), or, if jobs share GPUs, into those with one
    job and those with two. Curves with many changes are means over 1200 equal parts of the window, as their labels say; the
    largest number of waiting jobs is exact.

    Parameters
    ----------
    schedule
        A schedule, a run or a solution.
    axes
        (busy, waiting) to draw on, or (busy,); default: those of a new figure that pyplot does not know.
    width
        Width of a new figure for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.
    start, end
        Window of time to show, in seconds of the schedule's clock.
    title
        Title above the axes.

    Returns
    -------
    tuple of Axes
        (busy, waiting), in seconds; (busy,) if arrivals are not known (a schedule file without its instance).

    Notes
    -----
    Complexity: O(K log K) for K pairs of segment and GPU.

    Examples
    --------
    >>> import optsched as osd
    >>> busy, waiting = osd.plot.occupancy(osd.simulate("cluster-week", "srtf"))
    >>> waiting.get_ylabel().splitlines()[0]
    'waiting jobs'
    """
    timeline = Timeline.of(schedule).within(start, end)
    count = 1 if timeline.arrival is None else 2
    if axes is None:
        figure = new_figure(WIDTH, 1.2 + 1.9 * count, width, 0.6 * count)
        first = new_axes(figure, count, 1, 1)
        axes = [first, *(new_axes(figure, count, 1, k, sharex=first) for k in range(2, count + 1))]
    check_legal(1 <= len(axes) <= 2, "axes", len(axes), "one or two axes")
    drawn = tuple(axes)[:count]
    left, right = timeline.span
    for ax in drawn:
        plain(ax, "bottom", "left")
        time_axis(ax, left, right)
        if ax is not drawn[-1]:
            ax.set_xlabel("")
            ax.tick_params(labelbottom=False)
    if title != "":
        set_title(drawn[0], timeline.name if title is None else title)
    _draw_busy(drawn[0], timeline, left, right)
    if len(drawn) == 2:
        _draw_waiting(drawn[1], timeline, left, right)
    for ax in drawn:
        ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    return drawn


def _draw_busy(ax: Axes, t: Timeline, start: float, end: float) -> None:
    begin, finish, _, count = t.held
    exact = 2 * count.size <= EXACT
    when, held, width = _curve(begin, finish, count, start, end, exact)
    ax.fill_between(when, held, step="post", color=BUSY, lw=0, label="working" if t.lanes == 1 else "one job")
    if t.lanes > 1 and t.cells.shared.any():
        both = t.cells.shared
        left, right = t.cells.left[both], t.cells.right[both]
        when, shared, _ = _curve(left, right, np.ones(left.size), start, end, exact)
        ax.fill_between(when, shared, step="post", color=SHARED, lw=0, label="two jobs")
        key_above(ax)
    lost = t.overhead > 0
    if lost.any():
        begin, gangs = t.start[lost], np.diff(t.gpu_offset)[lost]
        when, overhead, _ = _curve(begin, begin + t.overhead[lost], gangs, start, end, exact)
        ax.fill_between(
            when, overhead, step="post", color=OVERHEAD, lw=0, label="held, no progress: restart, contention"
        )
        key_above(ax)
    ax.axhline(t.gpus, color=INK, lw=0.8, ls=(0, (4, 3)))
    ax.set_ylim(0, t.gpus * 1.06)
    ax.set_ylabel(f"busy of {t.gpus:,} GPUs" + _averaged(width), fontsize=9)


def _draw_waiting(ax: Axes, t: Timeline, start: float, end: float) -> None:
    _, since, until = t.waits
    when, waiting, width = _curve(since, until, np.ones(since.size), start, end, 2 * since.size <= EXACT)
    ax.fill_between(when, waiting, step="post", color=WAITING, lw=0)
    ax.set_ylim(0, max(float(waiting.max(initial=0.0)), 1.0) * 1.06)
    ax.set_ylabel("waiting jobs" + _averaged(width), fontsize=9)
    most = float(t.waiting[1].max(initial=0.0))
    corner: dict[str, Any] = {"transform": ax.transAxes, "ha": "right", "va": "top"}
    ax.text(0.998, 0.98, f"peak: {most:,.0f}", **corner, fontsize=8, color=QUIET)


def _curve(
    begin: Floats, finish: Floats, count: Floats | Ints, start: float, end: float, exact: bool, bins: int = BINS
) -> tuple[Floats, Floats, float]:
    # (times, level from each on, width of a bin or 0 when exact) of intervals that count this much each
    time, change = np.concatenate([begin, finish]), np.concatenate([count, -count]).astype(np.float64)
    if exact:
        return *levels(time, change), 0.0
    means = bin_means(np.zeros(time.size, dtype=np.int64), time, change, 1, start, end, bins)[0]
    return np.linspace(start, end, bins + 1), np.append(means, means[-1:]), (end - start) / bins


def over_time(
    runs: Mapping[str, Schedule | Scheduled] | Iterable[Schedule | Scheduled],
    *,
    end: float | None = None,
    ax: Sequence[Axes] | None = None,
    width: Width | None = None,
    title: str | None = None,
) -> Figure:
    """Compare runs over time: the share of GPUs in use and, below, the number of waiting jobs.

    Time counts from the first arrival of each run's instance. Curves with many changes are means over 240 equal parts of the
    window, as the labels say. At the task level a job holds its GPUs from its placement to its completion, and a GPU with
    several jobs counts once.

    Parameters
    ----------
    runs
        Runs, solutions or schedules by name; without names they are labelled with their policies.
    end
        End of the window in seconds. Default: the whole time, unless the last 2 % of the jobs (one of ten to a hundred) take
        more than half of it. Then these are cut off, and the labels show how many there are and until when they run.
    ax
        (utilisation, waiting) to draw on; by default those of a new figure.
    width
        Width of a new figure for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.
    title
        Title above the axes.

    Raises
    ------
    InputError
        If there are no runs, ``end`` is not > 0, or a schedule cannot be drawn.

    Notes
    -----
    Complexity: O(K log K) for K pairs of segment and GPU.

    Examples
    --------
    >>> import optsched as osd
    >>> runs = [osd.simulate("cluster-week", policy) for policy in ("fifo", "srtf")]
    >>> [axes.get_ylabel().splitlines()[0] for axes in osd.plot.over_time(runs).axes]
    ['GPUs in use', 'waiting jobs']
    """
    made = {name: schedule_in(run).relative for name, run in by_label(runs).items()}
    check_legal(bool(made), "runs", "none", "at least one run")
    check_legal(end is None or end > 0, "end", end, "seconds > 0")
    lines = {name: Timeline.of(each, residents=True) for name, each in made.items()}
    if ax is None:
        figure = new_figure(WIDTH, 4.6, width, 1.2)
        first = new_axes(figure, 2, 1, 1)
        ax = first, new_axes(figure, 2, 1, 2, sharex=first)
    check_legal(len(ax) == 2, "ax", len(ax), "two axes")
    used, waiting = ax
    last = max(t.span[1] for t in lines.values())
    shown = min(last, window_end(list(made.values()), last) if end is None else end)
    exact = all(max(t.held[0].size, t.waits[0].size) <= FEW for t in lines.values())
    for k, (name, t) in enumerate(lines.items()):
        begin, finish, _, count = t.held
        _, since, until = t.waits
        label, colour = name + _cut_off(made[name], shown), CURVES[k % len(CURVES)]
        for panel, part in ((used, (begin, finish, count / t.gpus)), (waiting, (since, until, np.ones(since.size)))):
            when, level, mean = _curve(*part, 0.0, shown, exact, PARTS)
            level = np.concatenate([[0.0], level])
            when, level = np.concatenate([[0.0], when, [last]]), np.append(level, level[-1])
            panel.step(when, level, where="post", label=label, color=colour, linewidth=1.3)
    for panel, what, most in ((used, "GPUs in use", 1.0), (waiting, "waiting jobs", None)):
        plain(panel, "bottom", "left")
        time_axis(panel, 0.0, shown)
        panel.set_ylim(0, most and 1.04)
        panel.grid(axis="y", color="#e6e6e6", linewidth=0.6)
        panel.set_ylabel(what + _averaged(mean), fontsize=8 if root_of(panel).get_figwidth() < NARROW else 9)
    used.set_xlabel("")
    used.tick_params(labelbottom=False)
    used.yaxis.set_major_formatter(PercentFormatter(1.0))
    waiting.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    set_title(used, title or "")
    key_above(used)
    return root_of(used)


def window_end(made: Sequence[Schedule], last: float) -> float:
    """Return the end of a window without the last few jobs if these take more than half of the time; otherwise ``last``.

    Parameters
    ----------
    made
        Schedules whose times count from the first arrival.
    last
        End of the last schedule in seconds.
    """
    ends = 0.0
    for each in made:
        arrival, done = each.instance.arrival, np.sort(each.completion)
        few = int(TAIL * done.size) or int(done.size >= FEWEST_JOBS)
        if not few or np.isnan(done).any():
            return last
        ends = max(ends, float(done[-1 - few]), float(arrival.max()))
    return ends * AFTER if last > LONG_TAIL * ends else last


def _cut_off(made: Schedule, shown: float) -> str:
    """Return the note on jobs that run on after the window ends."""
    later = np.flatnonzero(~(made.completion <= shown))
    if not later.size or not made.end.size or made.end.max() <= shown:
        return ""
    jobs = f"{later.size:,} job{'s' if later.size > 1 else ''}"
    return f" (cut: {jobs} until {in_unit(float(made.end.max()))})"


def _averaged(width: float) -> str:
    return f"\n(means of {in_unit(width)})" if width else ""


def overview(
    schedule: Drawn, *, start: float | None = None, end: float | None = None, width: Width | None = None
) -> Figure:
    """Draw a schedule, run or solution of any size.

    A small one is drawn as by `optsched.plot.gantt`, a large one by node above `optsched.plot.occupancy`; both describe the
    errors.

    Parameters
    ----------
    schedule
        A schedule, a run or a solution.
    start, end
        Window of time to show, in seconds of the schedule's clock.
    width
        Width of the figure for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.

    Examples
    --------
    >>> import optsched as osd
    >>> osd.plot.save(osd.plot.overview(osd.simulate("rigid-06-1", "srtf")), "srtf.png")
    """
    timeline = Timeline.of(schedule).within(start, end)
    if not too_large(timeline):
        return cast("Figure", gantt(timeline, by="gpu", width=width).get_figure(root=True))
    panels = 1 if timeline.arrival is None else 2
    image = image_height(timeline)
    figure = new_figure(WIDTH, image + PANEL * panels, width)
    grid = figure.add_gridspec(1 + panels, 1, height_ratios=[image - 0.6, *([PANEL] * panels)])
    top = new_axes(figure, grid[0])
    gantt(timeline, by="node", ax=top)
    top.set_xlabel("")
    top.tick_params(labelbottom=False)
    occupancy(timeline, axes=[new_axes(figure, grid[k], sharex=top) for k in range(1, 1 + panels)], title="")
    return figure


def _read(path: Path, header: Mapping[str, Any], instance: Instance | None) -> Schedule | Timeline:
    if instance is not None:
        return Schedule.load(path, instance)
    if header.get("sharing") is True and header.get("jobs_per_gpu") != JOBS_PER_GPU:
        raise InputError("jobs share GPUs in it: a chart of gangs cannot show that", file=path, legal=TASKS_INSTEAD)
    timeline = Timeline.read(path, str(header.get("instance")))
    if not timeline.job.size:
        raise InputError("the schedule is empty: nothing can be drawn", file=path, legal="at least one segment")
    return timeline


def _draw(
    path: Path, header: Mapping[str, Any], instance: Instance | None, window: Window, width: Width | None
) -> Figure:
    return overview(Timeline.of(_read(path, header, instance), path).within(*window), width=width)


def _page(path: Path, header: Mapping[str, Any], instance: Instance | None, window: Window) -> Any:
    return interactive(_read(path, header, instance), start=window[0], end=window[1])


def _trace(path: Path, header: Mapping[str, Any], instance: Instance | None, window: Window) -> str:
    return trace_text(_read(path, header, instance), start=window[0], end=window[1])


PLOTS.register("schedule")(
    Plot(
        f"a schedule ({FORMAT})",
        lambda header: header.get("format") == FORMAT or has_starts(header),
        _draw,
        page=_page,
        trace=_trace,
    )
)
