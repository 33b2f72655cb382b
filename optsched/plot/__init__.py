"""Pictures: Gantt charts of gangs and tasks, occupancy over time, distances from the best, errors. No pyplot, no display."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes

from optsched.plot.bars_and_lines import bars, lines
from optsched.plot.canvas import save
from optsched.plot.curves import error_histogram, jct_cdf
from optsched.plot.difference import compare
from optsched.plot.gantt import gantt
from optsched.plot.interactive import interactive
from optsched.plot.occupancy import occupancy, over_time, overview
from optsched.plot.plot_file import CHARTS, plot_file
from optsched.plot.proofs import convergence, prices
from optsched.plot.ratios import ratios, robustness
from optsched.plot.sliders import sliders
from optsched.plot.trace_events import save_trace

tasks: Callable[..., Axes]  # of runs at the task level; the folder of their class defines it

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
    "save_trace",
    "sliders",
    "tasks",
]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:  # a type checker that saw it would let every name pass

    def __getattr__(name: str) -> Any:
        if not name.startswith("_") and name in CHARTS:
            return CHARTS.get(name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
