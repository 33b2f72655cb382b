"""The curves of prediction errors against factors counted by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import optsched as osd
from optsched.errors import InputError
from optsched.plot.robustness import prediction_errors
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import Run


def run_of(predicted: list[float]) -> Run:
    """Four jobs of 10 s, one after the other on a GPU, of which this was predicted."""
    run = simulate(Instance([Job(f"{k}", duration=10) for k in range(4)], "1x1"), "spjf")
    return dataclasses.replace(run, predicted=np.array(predicted, dtype=np.float64))


def test_the_curve_is_the_share_of_jobs_within_a_factor_in_either_direction() -> None:
    ax = prediction_errors({"$some$": run_of([10, 5, 40, 20]), "exact": run_of([10] * 4)})
    some, exact = ax.lines

    def share(line: object, factor: float) -> float:
        x, y = line.get_xdata(), line.get_ydata()  # type: ignore[attr-defined]
        return float(y[np.flatnonzero(np.asarray(x) <= factor)[-1]])

    # 1, 2 (half as long), 4, 2 (twice as long)
    assert [share(some, factor) for factor in (1, 1.99, 2, 3.99, 4)] == [0.25, 0.25, 0.75, 0.75, 1]
    assert share(exact, 1) == 1
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [  # type: ignore[union-attr]
        "$some$: half of the jobs within 2, 95 % within 3.7",
        "exact: half of the jobs within 1, 95 % within 1",
    ]
    assert ax.get_xscale() == "log"
    assert ax.get_ylabel() == "jobs with at most this error"
    assert ax._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_runs_without_predictions_are_refused() -> None:
    with pytest.raises(InputError, match="at least one run"):
        prediction_errors({})
    with pytest.raises(InputError, match="fifo takes no predictions"):
        osd.plot.prediction_errors({"a": osd.simulate("rigid-06-1", "fifo")})
