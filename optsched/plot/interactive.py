"""Interactive chart: a schedule of ten thousand jobs in one HTML file, with the facts of the job under the pointer.

It is drawn by Bokeh, the extra ``interactive``. Its canvas redraws 10,000 rectangles in less than 0.1 s without a graphics
card, and detects the rectangle under the pointer. (Plotly took ten times as long in the same browser, as SVG and as WebGL;
its WebGL traces have no rectangles, and its library is four times as large.)
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from matplotlib.colors import to_hex

from optsched.errors import InputError, NotInstalledError
from optsched.plot.canvas import FLOOR, INK
from optsched.plot.colours import CURVES, PALETTE, job_colours
from optsched.plot.gantt import blocks_of
from optsched.plot.node_rows import NodeRows, spread
from optsched.plot.timeline import Drawn, Timeline, levels
from optsched.problem.arrays import Ints
from optsched.problem.schedule import schedule_in

if TYPE_CHECKING:
    from bokeh.models import Column

HIGH, LOW = 560, 170  # pixels of the chart, and of a curve below it
MOST_BLOCKS, MOVING = 200_000, 8_000  # of more than that, while one zooms or moves, every fourth is drawn
LABELS = ("user", "group", "model")
PLACE = {tuple(colour): k for k, colour in enumerate(PALETTE.tolist())}
CLOCK = """
if ($ === null || Number.isNaN($)) return "-";
const ms = Math.round(Math.abs($) * 1000), d = Math.floor(ms / 864e5), two = (x) => String(Math.floor(x)).padStart(2, "0");
const part = ms % 1000 ? "." + String(ms % 1000).padStart(3, "0").replace(/0+$/, "") : "";
const clock = two(ms / 36e5 % 24) + ":" + two(ms / 6e4 % 60) + ":" + two(ms / 1000 % 60) + part;
return ($ < 0 ? "-" : "") + (d ? d + " d " : "") + clock;
"""  # $ seconds as 1 d 02:03:04.5


def interactive(
    schedule: Drawn, *, start: float | None = None, end: float | None = None, title: str | None = None
) -> Column:
    """Draw a schedule, or that of a run or solution, as an interactive chart; `optsched.plot.save` writes it as ``.html``.

    The upper chart is a Gantt chart of GPUs, the lower ones show busy GPUs and waiting jobs on the same time axis. The wheel
    zooms in time, dragging moves, and a box also zooms into GPUs. The facts under the pointer are id, user, group and model
    if known, arrival, start and end of this segment, completion, JCT, GPUs and nodes, and predictions.

    Parameters
    ----------
    schedule
        A schedule, a run or a solution.
    start, end
        Window of time to show, in seconds of the schedule's clock; the axis shows days and hours:minutes:seconds.
    title
        Title, as in `optsched.plot.gantt`.

    Returns
    -------
    Column
        A column of Bokeh figures.

    Raises
    ------
    NotInstalledError
        If Bokeh is not installed.
    InputError
        If there are more than 200,000 blocks, or `gantt` refuses the schedule.

    Examples
    --------
    >>> import optsched as osd
    >>> osd.plot.save(osd.plot.interactive(osd.simulate("rigid-12-1", "srtf")), "srtf.html")
    """
    if importlib.util.find_spec("bokeh") is None:
        raise NotInstalledError("interactive pictures need Bokeh: pip install 'optsched[interactive]'")
    from bokeh.models import Column

    t = Timeline.of(schedule).within(start, end)
    panels = [_chart(schedule, t, t.name if title is None else title)]
    begin, finish, _, count = t.held
    curves = {f"busy of {t.gpus:,} GPUs": levels(np.append(begin, finish), np.append(count, -count).astype(np.float64))}
    if t.waits[0].size:
        curves["waiting jobs"] = t.waiting
    for k, (name, (when, level)) in enumerate(curves.items()):
        panels[-1].xaxis.major_label_text_font_size = "0pt"
        panels.append(_panel(t, LOW, "", panels[0].x_range))
        panels[-1].step(when, level, mode="after", color=CURVES[k])
        panels[-1].yaxis.axis_label = name
    panels[-1].xaxis.axis_label = "time: days, hours:minutes:seconds"
    return Column(*panels, sizing_mode="stretch_width")


def _chart(schedule: Drawn, t: Timeline, title: str) -> Any:
    from bokeh.models import ColumnDataSource, CustomJSHover, HoverTool, LinearColorMapper

    rows = NodeRows(t.node_gpus, t.node_names)
    blocks = blocks_of(t, rows)
    segment = blocks.segment
    if segment.size > MOST_BLOCKS:
        message, legal = f"{segment.size:,} blocks are too many for one page", "a shorter window of time"
        raise InputError(message, field="start, end", value=t.span, legal=legal)
    chart = _panel(t, HIGH, title)
    chart.quad(t.span[0], t.span[1], rows.top, rows.top + rows.gpus, color=FLOOR, line_color=None)
    edges = {"left": blocks.left, "right": blocks.right}
    edges |= {"top": (blocks.upper + 0.05).astype(np.float32), "bottom": (blocks.lower - 0.05).astype(np.float32)}
    facts = _facts(schedule, t, segment)
    shade = np.array([PLACE[tuple(each)] for each in job_colours(t.ids).tolist()], dtype=np.int32)
    palette = [to_hex(each) for each in PALETTE.tolist()]
    colour = {"field": "shade", "transform": LinearColorMapper(palette=palette, low=-0.5, high=len(palette) - 0.5)}
    source = ColumnDataSource({**edges, **facts, "shade": shade[t.job[segment]]})
    drawn = chart.quad(*edges, color=colour, line_color=None, source=source)
    held = t.overhead[segment] > 0
    if held.any():
        part = {name: values[held] for name, values in edges.items()}
        part["right"] = part["left"] + t.overhead[segment][held]
        hatch = {"hatch_pattern": "right_diagonal_line", "hatch_color": INK, "hatch_scale": 6.0}
        chart.quad(**part, fill_color="white", fill_alpha=0.5, line_color=None, **hatch)
    timed = ["left", "right", *(name for name, values in facts.items() if values.dtype == np.float64)]
    shown = {name: name for name in facts} | {"here from": "left", "here to": "right"}
    said = [(label, f"@{{{name}}}" + "{custom}" * (name in timed)) for label, name in shown.items()]
    clock = CustomJSHover(code=CLOCK.replace("$", "value"))
    formatters = {f"@{{{name}}}": clock for name in timed}
    chart.add_tools(HoverTool(renderers=[drawn], tooltips=said, formatters=formatters))
    chart.y_range.start, chart.y_range.end = rows.height, 0.0
    middle = rows.top + rows.gpus / 2
    named = spread(middle * HIGH * 0.85 / rows.height, 13.0)
    chart.yaxis.ticker = middle[named].tolist()
    chart.yaxis.major_label_overrides = {float(middle[k]): t.node_names[k] for k in named}
    return chart


def _panel(t: Timeline, height: int, title: str, shared: Any = None) -> Any:
    """An empty figure over the time of ``t``, whose ticks are round times at every zoom."""
    from bokeh.models import AdaptiveTicker, CompositeTicker, CustomJSTickFormatter, Range1d
    from bokeh.plotting import figure

    x_range = shared or Range1d(*t.span, bounds=(t.span[0], t.span[1]))
    shape = {"height": height, "sizing_mode": "stretch_width", "min_border_left": 90, "title": title or None}
    tools = {"tools": "xwheel_zoom,pan,box_zoom,undo,reset,save", "active_scroll": "xwheel_zoom"}
    panel = figure(x_range=x_range, lod_threshold=MOVING, lod_factor=4, **shape, **tools)
    panel.toolbar_location = None if shared else "right"
    steps = [
        AdaptiveTicker(base=10, mantissas=[1, 2, 5], max_interval=0.5),
        AdaptiveTicker(base=60, mantissas=[1, 2, 5, 10, 15, 20, 30], min_interval=1, max_interval=1800),
        AdaptiveTicker(base=24, mantissas=[1, 2, 3, 6, 12], min_interval=3600, max_interval=43200),
        AdaptiveTicker(base=10, mantissas=[1, 2, 5], min_interval=86400),
    ]
    panel.xaxis.ticker = CompositeTicker(tickers=steps, desired_num_ticks=8)
    panel.xaxis.formatter = CustomJSTickFormatter(code=CLOCK.replace("$", "tick"))
    panel.xgrid.grid_line_color = panel.ygrid.grid_line_color = panel.outline_line_color = None
    return panel


def _facts(schedule: Drawn, t: Timeline, segment: Ints) -> dict[str, np.ndarray[Any, Any]]:
    """Return the known facts of the job of every block by their labels; floats are times in seconds."""
    job, names = t.job[segment], np.array([name.removeprefix("node ") for name in t.node_names], dtype=object)
    nodes = [", ".join(names[np.unique(gang)]) for gang in np.split(t.node, t.gpu_offset[1:-1])]
    held: dict[str, Any] = {
        "GPUs": np.diff(t.gpu_offset).astype(np.int32)[segment],
        "nodes": np.array(nodes, dtype=object)[segment],
    }
    known: dict[str, Any] = {"job": np.array(t.ids, dtype=object)}
    if not isinstance(schedule, Timeline):
        made = schedule_in(schedule)
        instance, table = made.instance, made.instance.table
        for name in LABELS:
            if name in table.columns and table[name].null_count() < len(table):
                known[name] = table[name].cast(pl.String).fill_null("-").to_numpy().astype(object)
        known |= {"arrival": instance.arrival, "completion": made.completion, "JCT": made.completion - instance.arrival}
        if (predicted := getattr(schedule, "predicted", None)) is not None:
            # work is counted in iterations where a job has no duration
            kind = np.float64 if np.isfinite(instance.duration).all() else np.float32
            known |= {"length": instance.work.astype(kind), "predicted length": predicted.astype(kind)}
    return {name: values[job] for name, values in known.items()} | held
