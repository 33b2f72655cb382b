"""The picture of a schedule file: a Gantt chart, or for large runs the nodes over time above busy GPUs and waiting jobs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from matplotlib.figure import Figure

from optsched.errors import InputError
from optsched.plot.canvas import new_axes, new_figure
from optsched.plot.files import PLOTS, Plot, Window
from optsched.plot.gantt import WIDTH, gantt, too_large
from optsched.plot.node_image import image_height
from optsched.plot.occupancy import occupancy
from optsched.plot.timeline import TASKS_INSTEAD, Drawn, Timeline
from optsched.problem.instance import Instance
from optsched.problem.schedule import JOBS_PER_GPU, Schedule
from optsched.problem.schedule_file import FORMAT

PANEL = 1.5  # inches of each curve under the image


def overview(schedule: Drawn, *, start: float | None = None, end: float | None = None) -> Figure:
    """A figure of a schedule, run or solution of any size, or of what happens in it between two times (seconds).

    Small ones as `optsched.plot.gantt`, large ones by node above `optsched.plot.occupancy`; they say which errors there are.

    >>> import optsched as osd
    >>> osd.plot.save(osd.plot.overview(osd.simulate("rigid-06-1", "srtf")), "srtf.png")
    """
    timeline = Timeline.of(schedule).within(start, end)
    if not too_large(timeline):
        return cast("Figure", gantt(timeline, by="gpu").get_figure(root=True))
    panels = 1 if timeline.arrival is None else 2
    image = image_height(timeline)
    figure = new_figure(WIDTH, image + PANEL * panels)
    grid = figure.add_gridspec(1 + panels, 1, height_ratios=[image - 0.6, *([PANEL] * panels)])
    top = new_axes(figure, grid[0])
    gantt(timeline, by="node", ax=top)
    top.set_xlabel("")
    top.tick_params(labelbottom=False)
    occupancy(timeline, axes=[new_axes(figure, grid[k], sharex=top) for k in range(1, 1 + panels)], title="")
    return figure


def _draw(path: Path, header: Mapping[str, Any], instance: Instance | None, window: Window) -> Figure:
    if instance is not None:
        return overview(Timeline.of(Schedule.load(path, instance), path).within(*window))
    if header.get("sharing") is True and header.get("jobs_per_gpu") != JOBS_PER_GPU:
        raise InputError("jobs share GPUs in it: a chart of gangs cannot show that", file=path, legal=TASKS_INSTEAD)
    timeline = Timeline.read(path, str(header.get("instance")))
    if not timeline.job.size:
        raise InputError("the schedule is empty: nothing can be drawn", file=path, legal="at least one segment")
    return overview(timeline.within(*window))


PLOTS.register("schedule")(Plot(f"a schedule ({FORMAT})", lambda header: header.get("format") == FORMAT, _draw))
