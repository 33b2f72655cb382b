"""The bars of `ratios` against the document of `optsched run --json`."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from optsched.errors import InputError
from optsched.plot.ratios import ratios
from optsched.problem.instance import Instance, Job
from optsched.report.comparison import evaluate

pytestmark = pytest.mark.release

RESULT: dict[str, Any] = {
    "instance": {"name": "three", "jobs": 1200, "gpus": 8, "skipped_rows": 0},
    "objective": "total_flow_time",
    "runs": [
        {
            "policy": "fifo",
            "value": 7200.0,
            "bound": {"value": 3600.0, "exact": False},
            "ratio": 2.0,
            "ratio_to": "bound",
        },
        {"policy": "$best", "value": 3600.0, "bound": {"value": 3600.0}, "ratio": 1.0, "ratio_to": "optimum"},
        {"policy": "stuck", "value": None, "bound": {"value": 3600.0}, "ratio": None, "ratio_to": None},
        {"policy": "free", "value": 5400, "bound": None, "ratio": None, "ratio_to": None},
    ],
}


def widths(ax: Axes) -> list[list[float]]:
    return [[bar.get_width() for bar in container] for container in ax.containers]


def test_a_bar_is_the_value_and_its_dark_part_the_bound() -> None:
    ax = ratios(RESULT)
    assert widths(ax) == [[7200, 3600, 0, 5400], [3600, 3600, 3600]]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["fifo", "$best", "stuck", "free"]
    assert [text.get_text() for text in ax.texts] == [
        "120 min   2.000 × bound",
        "60 min   1.000 × optimum",
        "not all jobs finished",
        "90 min",
    ]
    assert ax.get_xlabel() == "total flow time (min)"
    assert ax.get_title(loc="left") == "three: 1,200 jobs, 8 GPUs"
    assert ax._repr_png_().startswith(b"\x89PNG")


def test_an_objective_that_is_not_a_time_has_no_unit() -> None:
    ax = ratios({**RESULT, "objective": "total_utility"})
    assert ax.get_xlabel() == "total utility"
    assert ax.texts[0].get_text() == "7,200   2.000 × bound"


def test_draws_what_a_report_says() -> None:
    inst = Instance([Job(f"j{k}", arrival=k, gpus=1 + k % 2, duration=4 - k % 3) for k in range(6)], "1x2")
    report = evaluate(inst, ["fifo", "srtf"])
    ax = ratios(report.to_json())
    assert np.allclose(widths(ax)[0], [line.value for line in report.lines])


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["runs"], [], "runs: no runs to draw"),
        (["runs"], None, "runs: no runs"),
        (["objective"], 3, "objective = 3"),
        (["runs", 0], 7, r"runs\[0\] = 7"),
        (["runs", 1, "policy"], None, r"runs\[1\]\.policy"),
        (["runs", 0, "value"], "many", r"runs\[0\]\.value = 'many'.*a finite number >= 0, or null"),
        (["runs", 0, "value"], -1, r"runs\[0\]\.value = -1"),
        (["runs", 0, "value"], True, r"runs\[0\]\.value = True"),
        (["runs", 0, "bound", "value"], math.inf, r"runs\[0\]\.bound\.value = inf"),
        (["runs", 0, "bound"], 5, r"runs\[0\]\.bound = 5"),
        (["runs", 0, "ratio"], [1], r"runs\[0\]\.ratio"),
    ],
)
def test_a_broken_document_names_the_field(path: list[Any], value: Any, message: str) -> None:
    document = copy.deepcopy(RESULT)
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(InputError, match=message):
        ratios(document)
