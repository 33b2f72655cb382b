"""Consistency and robustness as curves: the ratio of every prediction-assisted policy as its predictions get worse.

`prediction_errors`: how wrong predictors were, as the share of jobs whose length was predicted within a factor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter

from optsched.errors import InputError, check_legal
from optsched.guarantees.robustness import FORMAT
from optsched.plot.canvas import new_axes, new_figure, plain
from optsched.plot.canvas import title as set_title
from optsched.plot.colours import CURVES, MARKS
from optsched.plot.files import PLOTS, Plot, number_in
from optsched.plot.time_axis import number
from optsched.policies.predictors.quality import quality
from optsched.problem.arrays import Floats
from optsched.simulation.run import Run


def robustness(
    document: Mapping[str, Any], *, ax: Axes | None = None, title: str | None = None, file: Path | None = None
) -> Axes:
    """Draw the document of ``optsched ratio --errors --json``: worst ratio (solid) and mean (dashed) of every policy.

    To the left, at error 1, is consistency; the highest point of a solid line is robustness. The factor that a theorem
    promises at error 1 stands in the legend: it is far above what is drawn.

    Parameters
    ----------
    ax : axes to draw on; by default those of a new figure.
    title : default: the suite and its objective.
    file : named in errors.

    Raises
    ------
    InputError
        When a field is missing or not of its type.

    >>> import optsched as osd
    >>> from optsched.guarantees.robustness import robustness
    >>> axes = osd.plot.robustness(robustness("ddl-04-1", "spwf", errors=(1, 2)).to_json())
    >>> axes.get_ylabel()
    'ratio: worst solid, mean dashed'
    """
    check_legal(isinstance(document.get("suite"), str), "suite", document.get("suite"), "a name", file=file)
    rows = document.get("policies")
    if not isinstance(rows, list) or not rows:
        raise InputError("no policies to draw", file=file, field="policies", legal="a list with at least one policy")
    curves = [_curve(row, f"policies[{k}]", file) for k, row in enumerate(rows)]
    ax = ax if ax is not None else new_axes(new_figure(7.5, 4.2))
    plain(ax, "left", "bottom")
    for k, (policy, errors, worst, mean, factor) in enumerate(curves):
        colour, mark = CURVES[k % len(CURVES)], MARKS[k % len(MARKS)]
        promise = "" if math.isnan(factor) else f" (theorem: {number(factor)})"
        ax.plot(errors, worst, color=colour, marker=mark, markersize=4.5, linewidth=1.4, label=policy + promise)
        ax.plot(errors, mean, color=colour, linestyle="--", linewidth=1.0)
    every = sorted({error for _, errors, *_ in curves for error in errors})
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(every))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    ax.set_xlabel("prediction error (largest factor)", fontsize=9)
    ax.set_ylabel("ratio: worst solid, mean dashed", fontsize=9)
    ax.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    legend = ax.legend(fontsize=8.5, frameon=False, loc="upper left")
    for text in legend.get_texts():
        text.set_parse_math(False)
    shown = f"{document['suite']}: {document.get('objective') or 'each instance on its own objective'}"
    set_title(ax, shown if title is None else title)
    return ax


Curve = tuple[str, list[float], list[float], list[float], float]  # policy, errors, worst, mean, promised factor


def _curve(row: Any, where: str, file: Path | None) -> Curve:
    check_legal(isinstance(row, Mapping), where, row, "an object with policy and points", file=file)
    check_legal(isinstance(row.get("policy"), str), f"{where}.policy", row.get("policy"), "a name", file=file)
    points = row.get("points")
    if not isinstance(points, list) or not all(isinstance(point, Mapping) for point in points):
        raise InputError("invalid", file=file, field=f"{where}.points", value=points, legal="a list of points")
    errors, worst, mean = (
        [number_in(point, key, f"{where}.points[{k}]", file) for k, point in enumerate(points)]
        for key in ("error", "worst", "mean")
    )
    for k, error in enumerate(errors):
        check_legal(error > 0, f"{where}.points[{k}].error", error, "a finite number > 0", file=file)
    promised = number_in(points[0], "factor", f"{where}.points[0]", file) if points else math.nan
    return row["policy"], errors, worst, mean, promised


PLOTS.register("robustness")(
    Plot(
        "the robustness.json of `optsched ratio --errors -o`",
        lambda header: header.get("format") == FORMAT,
        lambda path, header, *_: cast("Figure", robustness(header, file=path).get_figure(root=True)),
        timed=False,
    )
)


def prediction_errors(runs: Mapping[str, Run], *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw, for every named run, the share of jobs j with max(n_j / n^_j, n^_j / n_j) at most x: a step curve.

    n is the length, n^ what was predicted at the arrival. The x axis is logarithmic, from 1: no error. The legend says the
    median and the 95th percentile.

    Parameters
    ----------
    runs : at least one, each of a policy that takes predictions, on an instance with jobs.
    ax : axes to draw on; by default those of a new figure.

    Raises
    ------
    InputError
        When there is no run, or one has no predictions or no jobs.

    >>> import optsched as osd
    >>> axes = osd.plot.prediction_errors({"mean": osd.simulate("ddl-06-1", "spjf:predictor=global-mean")})
    >>> axes.get_xlabel()
    'error of the prediction: the larger of true / predicted and predicted / true'
    """
    if not runs:
        raise InputError("no runs to draw", field="runs", legal="at least one run")
    factors = {name: _factors(name, run) for name, run in runs.items()}
    ax = ax if ax is not None else new_axes(new_figure(7.5, 4.0))
    plain(ax, "left", "bottom")
    for k, (name, (factor, label)) in enumerate(factors.items()):
        ax.ecdf(factor, color=CURVES[k % len(CURVES)], linewidth=1.4, label=f"{name}: {label}")
    most = max(float(factor.max()) for factor, _ in factors.values())
    ax.set_xscale("log")
    ax.set(xlim=(0.98, max(2.0, 1.05 * most)), ylim=(0, 1.02))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set_xlabel("error of the prediction: the larger of true / predicted and predicted / true", fontsize=9)
    ax.set_ylabel("jobs with at most this error", fontsize=9)
    ax.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    for text in ax.legend(fontsize=8.5, frameon=False, loc="lower right").get_texts():
        text.set_parse_math(False)
    set_title(ax, "How wrong were the predictions?" if title is None else title)
    return ax


def _factors(name: str, run: Run) -> tuple[Floats, str]:
    if run.predicted is None:
        message = f"the policy {run.policy} takes no predictions"
        raise InputError(message, field=f"runs[{name!r}]", legal="one that does")
    found = quality(run.instance.work, run.predicted)
    ratio = run.predicted / run.instance.work
    return np.maximum(ratio, 1 / ratio), f"half of the jobs within {found.p50:.3g}, 95 % within {found.p95:.3g}"
