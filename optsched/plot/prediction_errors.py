"""How wrong predictors were: the share of jobs whose length was predicted within a factor."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, PercentFormatter

from optsched.errors import InputError
from optsched.plot.canvas import new_axes, new_figure, plain
from optsched.plot.canvas import title as set_title
from optsched.plot.robustness import COLOURS
from optsched.policies.predictors.quality import quality
from optsched.problem.arrays import Floats
from optsched.simulation.run import Run


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
        ax.ecdf(factor, color=COLOURS[k % len(COLOURS)], linewidth=1.4, label=f"{name}: {label}")
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
