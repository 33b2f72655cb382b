"""Cells of the cache over time: every request as a triangle that grows by a cell a round, or their sum."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from optsched.classes.kv_cache import is_served
from optsched.classes.kv_cache.problem.requests import requests_of
from optsched.plot.canvas import INK, Width, new_axes, new_figure, plain, set_title
from optsched.plot.colours import CURVES
from optsched.plot.plot_file import CHARTS, PLOTS, Plot, Window
from optsched.plot.time_axis import time_axis
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule, Scheduled, schedule_in
from optsched.rounding import counted

MOST = 400  # executions that are drawn one by one


@CHARTS.register("cells")
def cells(
    schedule: Schedule | Scheduled,
    *,
    start: float | None = None,
    end: float | None = None,
    ax: Axes | None = None,
    width: Width | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the cells of the cache that requests hold over time, and the limit M.

    Up to 400 executions in the window are stacked in order of their starts, as triangles that grow by a cell a round; those
    that were thrown out are hatched. Of more, the curve shows the sum. In rounds of affine length growth is drawn evenly.

    Parameters
    ----------
    schedule
        A schedule of requests, or a run.
    start, end
        Window of time to show, on the clock of the schedule.
    ax
        Axes to draw on; default: those of a new figure that pyplot does not know.
    width
        Width of a new figure for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.
    title
        Title above the axes.
    """
    schedule = schedule_in(schedule)
    instance, requests = schedule.instance, requests_of(schedule.instance)
    left = float(schedule.start.min(initial=np.inf)) if start is None else start
    right = float(schedule.end.max(initial=left)) if end is None else end
    rows = np.flatnonzero((schedule.end > left) & (schedule.start < right))
    rows = rows[np.lexsort((rows, schedule.start[rows]))]
    job, begin, finish = schedule.job[rows], schedule.start[rows], schedule.end[rows]
    counts = schedule.work[rows] > 0
    growth = np.where(counts, requests.output[job] / (finish - begin), 1.0)
    growth[~counts] = np.median(growth[counts]) if counts.any() and requests.affine else 1.0
    times = np.unique(np.concatenate([begin, finish]))
    ax = new_axes(new_figure(9.0, 3.2, width, 0.6), 1, 1, 1) if ax is None else ax
    lower, upper = defaultdict[int, list[tuple[float, float]]](list), defaultdict[int, list[tuple[float, float]]](list)
    curve, most = list[tuple[float, float]](), rows.size <= MOST
    first, last = np.searchsorted(times, begin), np.searchsorted(times, finish)
    for k in range(times.size - 1):
        running = np.flatnonzero((first <= k) & (last > k))
        for t in times[k : k + 2].tolist():
            tops = np.cumsum(requests.prompt[job[running]] + growth[running] * (t - begin[running]))
            curve.append((t, float(tops[-1]) if tops.size else 0.0))
            for i, low, high in (
                zip(running.tolist(), [0.0, *tops.tolist()], tops.tolist(), strict=False) if most else ()
            ):
                lower[i].append((t, low))
                upper[i].append((t, high))
    edge = 0.4 if rows.size <= MOST // 4 else 0.1
    for chosen, hatch in ((True, ""), (False, "////")):
        shown = [i for i in lower if counts[i] == chosen]
        faces = [CURVES[int(job[i]) % len(CURVES)] for i in shown]
        shapes = [lower[i] + upper[i][::-1] for i in shown]
        ax.add_collection(PolyCollection(shapes, facecolors=faces, edgecolors="white", linewidths=edge, hatch=hatch))
    moment, held = zip(*curve, strict=True) if curve else ((), ())
    ax.plot(moment, held, color=INK, lw=0.8 if most else 0.3)
    if not most:
        ax.fill_between(moment, held, color=CURVES[0], alpha=0.4, lw=0)
    ax.axhline(requests.cells, color=INK, lw=0.8, ls="--")
    ax.set_ylim(0, requests.cells * 1.08)
    ax.set_ylabel("cells of the cache")
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    plain(ax, "bottom", "left")
    ax.set_xlim(left, right)
    ax.set_xlabel("rounds")
    if requests.affine:
        time_axis(ax, left, right)
    who = " on ".join(filter(None, (schedule.policy, instance.name)))
    size = f"{counted(instance.n, 'request')}, {requests.cells:,} cells"
    set_title(ax, (f"{who}: {size}" if who else size) if title is None else title)
    return ax


def _draw(path: Path, header: Mapping[str, Any], about: Instance | None, window: Window, width: Width | None) -> Figure:
    if about is None or not is_served(about):
        return PLOTS.get("schedule").draw(path, header, about, window, width)
    figure = cells(Schedule.load(path, about), start=window[0], end=window[1], width=width).figure
    assert isinstance(figure, Figure)
    return figure


def _reads(header: Mapping[str, Any]) -> bool:
    shares = header.get("format") == "optsched-schedule/1" and header.get("sharing") is True
    return shares and "jobs_per_gpu" not in header


PLOTS.register("requests")(Plot("a schedule of requests, with its instance", _reads, _draw))
