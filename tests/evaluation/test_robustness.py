"""Ratios as predictions get worse, and the picture of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optsched as osd
from optsched.errors import InputError
from optsched.evaluation.robustness import assisted, errors_in, robustness_curves
from optsched.evaluation.suite_ratios import ratios
from optsched.evaluation.suites import drawn


def test_all_policies_that_take_a_predictor_are_known() -> None:
    assert {"a-srpt", "spjf", "spwf"} <= set(assisted())
    assert "srtf" not in assisted()


def test_a_curve_is_what_the_runs_at_every_error_give() -> None:
    suite = drawn("recurring", 3, jobs=12, cluster="2x4")
    found = robustness_curves(suite, ["a-srpt:tau=0.5", "spjf+count"], errors=(4, 1), draws=2)
    for curve, policy in zip(found.curves, ("a-srpt:tau=0.5,predictor=", "spjf:predictor="), strict=True):
        place = "+count" if "spjf" in policy else ""
        assert [point.error for point in curve.points] == [1, 4]
        for point in curve.points:
            texts = [f"{policy}noisy/error={point.error:g}/seed={draw}{place}" for draw in (0, 1)]
            rows = ratios(suite, texts).policies
            every = [each.ratio for row in rows for each in row.measured]
            assert point.worst == max(every)
            assert point.mean == pytest.approx(np.mean(every))
        assert curve.consistency == curve.points[0].worst
        assert curve.robustness == max(point.worst or 0 for point in curve.points)
        assert curve.worst_row.worst == curve.robustness
    right, wrong = (point.factor for point in found.curves[0].points)
    assert right is not None
    assert wrong is not None
    assert 1 < right < wrong  # the theorem promises less where predictions are worse
    assert all(point.factor is None for point in found.curves[1].points)


@pytest.mark.parametrize(
    ("policies", "errors", "message"),
    [
        ("srtf", (1,), "'srtf': it takes no predictions"),
        ("a-srpt:predictor=perfect", (1,), "it names its predictor"),
        ("a-srpt", (0.5,), "error = 0.5"),
        ("a-srpt", (), "at least one factor"),
    ],
)
def test_what_has_no_curve_is_told_in_a_line(policies: str, errors: tuple[float, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        robustness_curves("ddl-04-1", policies, errors=errors)
    with pytest.raises(InputError, match="errors = 'x'"):
        errors_in("1,x")


def test_the_command_writes_curves_and_plot_draws_them(
    command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = command("ratio", "ddl-04-1", "-p", "a-srpt", "-p", "spwf", "--errors", "1,2", "-o", "curves", "--json")
    assert json.loads(Path("curves/robustness.json").read_text()) == done.json
    assert len(list(Path("curves").glob("worst-*.json"))) == 2
    assert command("plot", "curves/robustness.json", "-o", "curves.png").code == 0
    axes = osd.plot.robustness(done.json)
    assert [line.get_xdata().tolist() for line in axes.lines] == [[1, 2]] * 5
    for row in done.json["policies"]:
        for name, key in ((row["policy"], "worst"), (f"theorem for {row['policy']}", "factor")):
            drawn = [line.get_ydata().tolist() for line in axes.lines if line.get_label() == name]
            known = [point[key] for point in row["points"]]
            assert drawn == ([known] if None not in known else [])
    assert "theorem for a-srpt" in [text.get_text() for text in axes.texts]  # named where it ends, not in a legend
    heights = axes.transData.transform([(1, 1), (1, 1.1), (1, 30)])[:, 1]
    assert np.diff(heights).min() > 0.15 * np.ptp(heights)  # a tenth above the optimum is seen beside a theorem's 30
    broken = done.json | {"policies": [{"policy": "p", "points": [{"error": 0}]}]}
    with pytest.raises(InputError, match=r"policies\[0\].points\[0\].error = 0"):
        osd.plot.robustness(broken)
