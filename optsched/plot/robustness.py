"""Consistency and robustness as curves: the ratio of every prediction-assisted policy as its predictions get worse."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from optsched.errors import InputError, check_legal
from optsched.guarantees.robustness import FORMAT
from optsched.plot.canvas import name_lines, new_axes, new_figure, plain, title as set_title
from optsched.plot.colours import CURVES, MARKS
from optsched.plot.curves import excess_axis, log_axis
from optsched.plot.files import PLOTS, Plot, number_in

FAR = 4.0  # times what was measured: a theorem beyond it puts the ratio on a log axis


def robustness(
    document: Mapping[str, Any], *, ax: Axes | None = None, title: str | None = None, file: Path | None = None
) -> Axes:
    """Draw the document of ``optsched ratio --errors --json``: worst ratio (solid) and mean (dashed) of every policy.

    To the left, at error 1, is consistency; the highest point of a solid line is robustness. What a theorem promises at
    each error is a line of its own, thin and dash-dotted, named where it ends. The ratio is on an axis that is
    logarithmic in ratio - 1 where the theorem is more than `FAR` times above what was measured: neither flattens the other.

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
    >>> axes = osd.plot.robustness(osd.guarantees.robustness_curves("ddl-04-1", "spwf", errors=(1, 2)).to_json())
    >>> axes.get_ylabel()
    'ratio to the best possible (worst solid, mean dashed)'
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
        ax.plot(errors, worst, color=colour, marker=mark, markersize=4.5, linewidth=1.4, label=policy)
        ax.plot(errors, mean, color=colour, linestyle="--", linewidth=1.0)
        if np.isfinite(factor).any():
            ax.plot(errors, factor, color=colour, linestyle="-.", linewidth=1.0, label=f"theorem for {policy}")
    log_axis(ax, "x", [error for _, errors, *_ in curves for error in errors])
    drawn = np.concatenate([[*worst, *mean, *factor] for _, _, worst, mean, factor in curves])
    if np.nanmax(drawn) > FAR * max(np.nanmax(worst) for _, _, worst, *_ in curves) and np.nanmin(drawn) > 1 - 1e-6:
        excess_axis(ax)
    ax.set_xlabel("error of predictions: largest factor between true and predicted length", fontsize=9)
    ax.set_ylabel("ratio to the best possible (worst solid, mean dashed)", fontsize=9)
    ax.grid(axis="y", color="#e6e6e6", linewidth=0.6)
    name_lines(ax)
    shown = f"{document['suite']}: {document.get('objective') or 'each instance on its own objective'}"
    set_title(ax, shown if title is None else title)
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
        lambda path, header, *_: cast("Figure", robustness(header, file=path).get_figure(root=True)),
        timed=False,
    )
)
