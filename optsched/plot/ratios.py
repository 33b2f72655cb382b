"""How far every policy is from the best possible: the value of each run beside its proven bound."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from optsched.errors import InputError, check_legal
from optsched.plot.canvas import INK, key_above, new_axes, new_figure, note, plain, title as set_title
from optsched.plot.curves import cut
from optsched.plot.files import PLOTS, Plot, number_in
from optsched.plot.time_axis import label_time, number, unit_for
from optsched.problem.objectives import OBJECTIVES
from optsched.rounding import ratio as shown_ratio

PROVEN, ABOVE = "#0072B2", "#a9d4ef"


@dataclass(frozen=True)
class Bar:
    """One run of a result: nan or None where a number is not known."""

    policy: str
    value: float
    bound: float
    ratio: float
    to: str

    @property
    def text(self) -> str:
        """What stands behind the bar: the ratio is at most what is shown."""
        return "" if math.isnan(self.ratio) else f"{shown_ratio(self.ratio, exact=self.to == 'optimum')} × {self.to}"


def ratios(
    result: Mapping[str, Any], *, ax: Axes | None = None, title: str | None = None, file: Path | None = None
) -> Axes:
    """Draw the document of ``optsched run --json`` (``result.json``): a bar a policy, in its order.

    The dark part of a bar is the proven lower bound, which no schedule of its class can go below; the pale part is what
    the policy lost to it at most. (Of a gain: dark is the value, pale up to the proven upper bound.) Behind the
    bar: value, and value / optimum or value / bound. A bar that would flatten the others is cut.

    Parameters
    ----------
    ax : axes to draw on; by default those of a new figure, which pyplot does not know and a notebook shows.
    title : default: instance, jobs and GPUs.
    file : named in errors.

    Raises
    ------
    InputError
        When a field of the contract is missing or not of its type.

    >>> import optsched as osd
    >>> axes = osd.plot.ratios(osd.evaluate("rigid-06-1", ["fifo", "srtf"]).to_json())
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['fifo', 'srtf']
    """
    bars = _bars(result, file)
    objective = str(result["objective"])
    ax = ax if ax is not None else new_axes(new_figure(9.0, 1.3 + 0.42 * len(bars)))
    plain(ax, "bottom")
    y = np.arange(len(bars))
    value = np.nan_to_num([bar.value for bar in bars])
    bound = np.nan_to_num([bar.bound for bar in bars])
    known, gain = bound > 0, objective in OBJECTIVES and OBJECTIVES.get(objective).gain
    pale, dark = (bound, value) if gain else (value, bound)
    shown = known | gain
    names = ("up to the proven upper bound", "value") if gain else ("value above the bound", "proven lower bound")
    ax.barh(y, pale, height=0.62, color=ABOVE, label=names[0], zorder=2)
    ax.barh(y[shown], dark[shown], height=0.62, color=PROVEN, label=names[1], zorder=3)
    longest = max(float(value.max()), float(bound.max()), 0.0) or 1.0
    limit = cut(np.maximum(value, bound), 0.0) or longest
    for k in np.flatnonzero(np.maximum(value, bound) > limit).tolist():
        ax.plot([limit * 0.955, limit * 0.965], [k + 0.33, k - 0.33], color="white", lw=3, zorder=4)
    ax.set_xlim(0, limit)
    ax.set_ylim(len(bars) - 0.5, -0.5)
    ax.set_yticks(y, [bar.policy for bar in bars], fontsize=9, parse_math=False)
    ax.tick_params(axis="y", length=0)
    size, unit = _label_values(ax, objective, limit)
    for k, bar in enumerate(bars):
        said = "not all jobs finished" if math.isnan(bar.value) else f"{number(bar.value / size)}{unit}"
        text = "   ".join(filter(None, (said, bar.text)))
        note(ax, text, (min(max(value[k], bound[k]), limit), k), (5, 0), color=INK)
    set_title(ax, _title(result) if title is None else title, pad=20.0 if known.any() else 6.0)
    if known.any():
        key_above(ax, reverse=True)
    return ax


def _label_values(ax: Axes, objective: str, longest: float) -> tuple[float, str]:
    # (size of the unit, its name): every loss of the registry is a (weighted) sum or maximum of times.
    name = objective.replace("_", " ")
    if objective not in OBJECTIVES or OBJECTIVES.get(objective).gain:
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: number(x)))
        ax.set_xlabel(name, fontsize=9)
        return 1.0, ""
    unit = unit_for(longest)
    label_time(ax, unit, name)
    return unit.seconds, f" {unit.name}"


def _title(result: Mapping[str, Any]) -> str:
    of = result.get("instance")
    of = of if isinstance(of, Mapping) else {}
    parts = [
        f"{of[key]:,} {what}" for key, what in (("jobs", "jobs"), ("gpus", "GPUs")) if isinstance(of.get(key), int)
    ]
    return ": ".join(filter(None, (str(of.get("name") or ""), ", ".join(parts))))


def _bars(result: Mapping[str, Any], file: Path | None) -> list[Bar]:
    runs, bars = result.get("runs"), []
    check_legal(isinstance(result.get("objective"), str), "objective", result.get("objective"), "a name", file=file)
    if not isinstance(runs, list) or not runs:
        raise InputError("no runs to draw", file=file, field="runs", legal="a list with at least one run")
    for k, run in enumerate(runs):
        at = f"runs[{k}]"
        check_legal(isinstance(run, Mapping), at, run, "an object with policy and value", file=file)
        check_legal(isinstance(run.get("policy"), str), f"{at}.policy", run.get("policy"), "a name", file=file)
        bound = run.get("bound") or {}
        check_legal(isinstance(bound, Mapping), f"{at}.bound", bound, "an object with value", file=file)
        value, ratio = number_in(run, "value", at, file), number_in(run, "ratio", at, file)
        to = "optimum" if run.get("ratio_to") == "optimum" else "bound"
        bars.append(Bar(run["policy"], value, number_in(bound, "value", f"{at}.bound", file), ratio, to))
    return bars


PLOTS.register("result")(
    Plot(
        "the result.json of `optsched run -o`",
        lambda header: "runs" in header and "objective" in header,
        lambda path, header, *_: cast("Figure", ratios(header, file=path).get_figure(root=True)),
        timed=False,
    )
)
