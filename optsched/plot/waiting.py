"""The band under a Gantt chart that shows who waits."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from optsched.plot.canvas import QUIET, draw_rectangles, label_left
from optsched.plot.colours import paler
from optsched.plot.rows import label_blocks, points_per_unit
from optsched.plot.timeline import Timeline, levels
from optsched.problem.arrays import Floats, Ints

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
        when, waiting = waiting_curve(timeline)
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


def waiting_curve(timeline: Timeline) -> tuple[Floats, Floats]:
    """How many jobs wait: (times, number from each time on)."""
    _, since, until = timeline.waits
    one = np.ones(since.size)
    return levels(np.concatenate([since, until]), np.concatenate([one, -one]))


def _lanes(t: Timeline) -> Ints | None:
    # The lowest free lane for every wait, by (from, job): as many lanes as jobs ever wait at once. None: too many.
    job, since, until = t.waits
    if job.size > MOST_BARS or waiting_curve(t)[1].max() > MOST_LANES:
        return None
    lanes = np.zeros(job.size, dtype=np.int64)
    free, taken = list(range(MOST_LANES + 1)), list[tuple[float, int]]()
    for k in np.lexsort((job, since)):
        while taken and taken[0][0] <= since[k]:
            heapq.heappush(free, heapq.heappop(taken)[1])
        lanes[k] = heapq.heappop(free)
        heapq.heappush(taken, (float(until[k]), int(lanes[k])))
    return lanes
