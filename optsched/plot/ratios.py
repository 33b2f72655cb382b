"""Distance of every policy from the best possible: values of runs with their proven bounds, and ratios as curves.

Consistency and robustness are the ratios of every prediction-assisted policy as its predictions get worse.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from optsched.errors import InputError, check_legal
from optsched.evaluation.robustness import FORMAT
from optsched.plot.bars_and_lines import cut
from optsched.plot.canvas import (
    INK,
    NARROW,
    Width,
    inches,
    key_above,
    name_lines,
    new_axes,
    new_figure,
    note,
    plain,
    root_of,
    set_labels,
    set_title,
    wide_on_paper,
)
from optsched.plot.colours import CURVES, MARKS
from optsched.plot.curves import excess_axis, log_axis
from optsched.plot.labels import policy_labels
from optsched.plot.plot_file import PLOTS, Plot, number_in
from optsched.plot.time_axis import number
from optsched.problem.objectives import OBJECTIVES, FairSlowdown
from optsched.rounding import number as shown_number, ratio as shown_ratio

SIZES = (("jobs", "jobs"), ("gpus", "GPUs"))  # of an instance, in a title
TICK = 1.6  # inches that a tick's label takes: sums of seconds are long numbers
PROVEN, ABOVE = "#0072B2", "#a9d4ef"


class Bar(NamedTuple):
    """One run of a result; nan for unknown numbers. ``text`` is written behind it: the ratio is at most the number shown."""

    policy: str
    value: float
    bound: float
    text: str


def ratios(
    result: Mapping[str, Any],
    *,
    ax: Axes | None = None,
    width: Width | None = None,
    title: str | None = None,
    file: Path | None = None,
) -> Axes:
    """Draw the document of ``optsched run --json`` (``result.json``): one bar for each policy, in its order.

    The dark part of a bar is the proven lower bound, which no schedule of its class can go below; the pale part is the most
    that the policy lost to it. (For a gain, dark is the value, and pale goes up to the proven upper bound.) Behind the bar
    are the numbers of the table of ``optsched run``: the value, in seconds if it is a time, and the ratio, "=" to the
    optimum, "<=" if only a bound is known. A bar that would flatten the others is cut.

    Parameters
    ----------
    result
        The document.
    ax
        Axes to draw on; by default those of a new figure, which pyplot does not know and a notebook shows.
    width
        Width of a new figure for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.
    title
        Title; default: instance, jobs and GPUs.
    file
        File of the document, for errors.

    Raises
    ------
    InputError
        If a field of the document is missing or has the wrong type.

    Examples
    --------
    >>> import optsched as osd
    >>> axes = osd.plot.ratios(osd.evaluate("rigid-06-1", ["fifo", "srtf"]).to_json())
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['fifo', 'srtf']
    """
    bars = _bars(result, file)
    objective = str(result["objective"])
    policies, numbers = policy_labels([bar.policy for bar in bars]), [_in_words(bar) for bar in bars]
    row = 0.42  # inches
    if width is not None and inches(width) < NARROW:  # numbers stand above the bars, below the name of a policy
        row = 0.6
    if ax is None:
        ax = new_axes(new_figure(9.0, 1.3 + row * len(bars), width))
    narrow = root_of(ax).get_figwidth() < NARROW
    plain(ax, "bottom")
    high, lower = (0.4, 0.27) if narrow else (0.62, 0.0)  # of a bar, and how far below the middle of its row
    y = np.arange(len(bars)) + lower
    value = np.nan_to_num([bar.value for bar in bars])
    bound = np.nan_to_num([bar.bound for bar in bars])
    known, gain = bound > 0, objective in OBJECTIVES and OBJECTIVES.get(objective).gain
    pale, dark = (bound, value) if gain else (value, bound)
    shown = known | gain
    names = ("up to the proven upper bound", "value") if gain else ("value above the bound", "proven lower bound")
    ax.barh(y, pale, height=high, color=ABOVE, label=names[0], zorder=2)
    ax.barh(y[shown], dark[shown], height=high, color=PROVEN, label=names[1], zorder=3)
    longest = max(float(value.max()), float(bound.max()), 0.0) or 1.0
    limit = cut(np.maximum(value, bound), 0.0) or longest
    for k in np.flatnonzero(np.maximum(value, bound) > limit).tolist():
        ax.plot([limit * 0.955, limit * 0.965], [y[k] + 0.53 * high, y[k] - 0.53 * high], color="white", lw=3, zorder=4)
    ax.set_xlim(0, limit)
    ax.set_ylim(len(bars) - 0.5, -0.5)
    ax.set_yticks(y, policies, fontsize=9, parse_math=False)
    ax.tick_params(axis="y", length=0, labelleft=not narrow)
    _label_values(ax, objective)
    for k, text in enumerate(numbers):
        if narrow:
            above: dict[str, Any] = {"fontsize": 8, "va": "bottom", "in_layout": False}
            note(ax, f"{policies[k]}\n{text}", (0, y[k] - high / 2), (0, 2), "axes fraction", color=INK, **above)
        else:
            note(ax, text, (min(max(value[k], bound[k]), limit), k), (5, 0), color=INK)
    of: Any = result.get("instance") if isinstance(result.get("instance"), Mapping) else {}
    size_of = [f"{of[key]:,} {what}" for key, what in SIZES if isinstance(of.get(key), int)]
    named = ": ".join(filter(None, (str(of.get("name") or ""), ", ".join(size_of))))
    set_title(ax, named if title is None else title)
    if known.any():
        key_above(ax, reverse=True)
    return ax


def _in_words(bar: Bar) -> str:
    said = "not all jobs finished" if math.isnan(bar.value) else shown_number(bar.value)
    return "   ".join(filter(None, (said, bar.text)))


def _label_values(ax: Axes, objective: str) -> None:
    name = objective.replace("_", " ")
    known = OBJECTIVES.get(objective) if objective in OBJECTIVES else None
    timed = known is not None and not known.gain and not isinstance(known, FairSlowdown)  # these are quotients
    ax.xaxis.set_major_locator(MaxNLocator(int(np.clip(wide_on_paper(ax) / TICK, 2, 8))))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: number(x)))
    set_labels(ax, f"{name} (s)" if timed else name)


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
        exact = run.get("ratio_to") == "optimum"
        to = "= {} × optimum" if exact else "<= {} × optimum"
        text = "" if math.isnan(ratio) else to.format(shown_ratio(ratio, exact=exact))
        bars.append(Bar(run["policy"], value, number_in(bound, "value", f"{at}.bound", file), text))
    return bars


PLOTS.register("result")(
    Plot(
        "the result.json of `optsched run -o`",
        lambda header: "runs" in header and "objective" in header,
        lambda path, header, _, __, width: cast("Figure", ratios(header, file=path, width=width).get_figure(root=True)),
        timed=False,
    )
)


FAR = 4.0  # times what was measured: a theorem beyond it puts the ratio on a log axis


def robustness(
    document: Mapping[str, Any],
    *,
    ax: Axes | None = None,
    width: Width | None = None,
    title: str | None = None,
    file: Path | None = None,
) -> Axes:
    """Draw the document of ``optsched ratio --errors --json``: worst ratio (solid) and mean (dashed) of every policy.

    The value at the left, at error 1, is the consistency; the highest point of a solid line is the robustness. The factor of
    a theorem at each error is a thin dash-dotted line, labelled at its end. The y axis is logarithmic in ratio - 1 if the
    theorem is more than `FAR` times above the measured ratios, so that neither flattens the other.

    Parameters
    ----------
    document
        The document.
    ax
        Axes to draw on; by default those of a new figure.
    width
        Width of a new figure for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.
    title
        Title; default: the suite and its objective.
    file
        File of the document, for errors.

    Raises
    ------
    InputError
        If a field is missing or has the wrong type.

    Examples
    --------
    >>> import optsched as osd
    >>> axes = osd.plot.robustness(osd.robustness_curves("ddl-04-1", "spwf", errors=(1, 2)).to_json())
    >>> axes.get_ylabel()
    'ratio to the best possible (worst solid, mean dashed)'
    """
    check_legal(isinstance(document.get("suite"), str), "suite", document.get("suite"), "a name", file=file)
    rows = document.get("policies")
    if not isinstance(rows, list) or not rows:
        raise InputError("no policies to draw", file=file, field="policies", legal="a list with at least one policy")
    curves = [_curve(row, f"policies[{k}]", file) for k, row in enumerate(rows)]
    ax = ax if ax is not None else new_axes(new_figure(7.5, 4.2, width, 0.8))
    plain(ax, "left", "bottom")
    names = policy_labels([curve[0] for curve in curves])
    for k, (policy, (_, errors, worst, mean, factor)) in enumerate(zip(names, curves, strict=True)):
        colour, mark = CURVES[k % len(CURVES)], MARKS[k % len(MARKS)]
        ax.plot(errors, worst, color=colour, marker=mark, markersize=4.5, linewidth=1.4, label=policy)
        ax.plot(errors, mean, color=colour, linestyle="--", linewidth=1.0)
        if np.isfinite(factor).any():
            ax.plot(errors, factor, color=colour, linestyle="-.", linewidth=1.0, label=f"theorem for {policy}")
    log_axis(ax, "x", [error for _, errors, *_ in curves for error in errors])
    drawn = np.concatenate([[*worst, *mean, *factor] for _, _, worst, mean, factor in curves])
    if np.nanmax(drawn) > FAR * max(np.nanmax(worst) for _, _, worst, *_ in curves) and np.nanmin(drawn) > 1 - 1e-6:
        excess_axis(ax)
    set_labels(
        ax,
        "error of predictions: largest factor between true and predicted length",
        "ratio to the best possible (worst solid, mean dashed)",
    )
    ax.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    shown = f"{document['suite']}: {document.get('objective') or 'each instance on its own objective'}"
    set_title(ax, shown if title is None else title)
    name_lines(ax)
    return ax


Curve = tuple[str, list[float], list[float], list[float], list[float]]  # policy, errors, worst, mean, promised factors


def _curve(row: Any, where: str, file: Path | None) -> Curve:
    check_legal(isinstance(row, Mapping), where, row, "an object with policy and points", file=file)
    check_legal(isinstance(row.get("policy"), str), f"{where}.policy", row.get("policy"), "a name", file=file)
    points = row.get("points")
    if not isinstance(points, list) or not all(isinstance(point, Mapping) for point in points):
        raise InputError("invalid", file=file, field=f"{where}.points", value=points, legal="a list of points")
    errors, worst, mean, factor = (
        [number_in(point, key, f"{where}.points[{k}]", file) for k, point in enumerate(points)]
        for key in ("error", "worst", "mean", "factor")
    )
    for k, error in enumerate(errors):
        check_legal(error > 0, f"{where}.points[{k}].error", error, "a finite number > 0", file=file)
    return row["policy"], errors, worst, mean, factor


PLOTS.register("robustness")(
    Plot(
        "the robustness.json of `optsched ratio --errors -o`",
        lambda header: header.get("format") == FORMAT,
        lambda path, header, _, __, width: cast(
            "Figure", robustness(header, file=path, width=width).get_figure(root=True)
        ),
        timed=False,
    )
)
