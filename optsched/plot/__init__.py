"""Pictures: Gantt charts of gangs and tasks, occupancy over time, distances from the best, errors. No pyplot, no display."""

from __future__ import annotations

from optsched.plot.canvas import save
from optsched.plot.files import PLOTS, Plot, plot_file
from optsched.plot.gantt import gantt
from optsched.plot.occupancy import occupancy, overview
from optsched.plot.ratios import ratios
from optsched.plot.robustness import prediction_errors, robustness
from optsched.plot.task_gantt import tasks

__all__ = [
    "PLOTS",
    "Plot",
    "gantt",
    "occupancy",
    "overview",
    "plot_file",
    "prediction_errors",
    "ratios",
    "robustness",
    "save",
    "tasks",
]
