"""Pictures: Gantt charts of gangs and tasks, occupancy over time, distances from the best, errors. No pyplot, no display."""

from __future__ import annotations

from optsched.plot.bars_and_lines import bars, lines
from optsched.plot.canvas import save
from optsched.plot.curves import error_histogram, jct_cdf
from optsched.plot.difference import compare
from optsched.plot.gantt import gantt
from optsched.plot.interactive import interactive
from optsched.plot.occupancy import occupancy, over_time, overview
from optsched.plot.plot_file import plot_file
from optsched.plot.proofs import convergence, prices
from optsched.plot.ratios import ratios, robustness
from optsched.plot.sliders import sliders
from optsched.plot.task_gantt import tasks

__all__ = [
    "bars",
    "compare",
    "convergence",
    "error_histogram",
    "gantt",
    "interactive",
    "jct_cdf",
    "lines",
    "occupancy",
    "over_time",
    "overview",
    "plot_file",
    "prices",
    "ratios",
    "robustness",
    "save",
    "sliders",
    "tasks",
]


def __dir__() -> list[str]:
    return sorted(__all__)
