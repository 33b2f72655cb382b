"""Dialects philly, tiresias and muri, a job a row: columns and units; and what every dialect does with bad rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optsched.errors import RowErrors
from optsched.io.traces.dialect import TraceRead

Reader = Callable[..., TraceRead]
TIRESIAS = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
MURI = (
    "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,"
    "resource_time_0,resource_time_1,resource_time_2,priority\n"
)
TAIL = ",91000,437,0.6,419,49,0\n"


def test_philly_s_columns_and_units(read: Reader) -> None:
    found = read(
        "philly",
        "timestamp,duration,num_gpus,gpu_time,cluster\n"
        "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
        "2017-10-08 23:59:59,2951.5,16,47224.0,6214e9\n"
        "\n",
    )
    assert found.table.to_dict(as_series=False) == {
        "arrival": [7 * 3600 + 116.0, 0.0],
        "duration": [66.0, 2951.5],
        "gpus": [1, 16],
        "group": ["11cb48", "6214e9"],
        "id": ["2", "3"],
    }
    instance = found.instance()
    assert instance.objective is None
    assert instance.cluster.spec == "8x8"


def test_milliseconds_of_muri(read: Reader) -> None:
    found = read("muri", MURI + "0,8,1500,10956,gpt2,4,5095000" + TAIL + "1,1,0,3,dqn,128,250" + TAIL)
    assert found.table["arrival"].to_list() == [1.5, 0.0]
    assert found.table["duration"].to_list() == [5095.0, 0.25]
    assert found.table["iterations"].to_list() == [10956.0, 3.0]
    assert found.table["model"].to_list() == ["gpt2", "dqn"]


def test_columns_may_stand_in_any_order_and_interval_may_be_absent(read: Reader) -> None:
    found = read("tiresias", "duration,extra,job_id,num_gpu,submit_time,model_name,iterations\n164,?,0,2,5,vgg,7\n")
    assert found.table.select("id", "arrival", "gpus", "duration").row(0) == ("0", 5.0, 2, 164.0)
    assert found.instance().table["profile"].null_count() == 1  # the duration counts: no rate model is asked for


def gavel(
    model: str = "A3C", steps: object = 9, gpus: object = 4, weight: object = 1, slo: object = -1, at: object = 7
):
    return "\t".join(map(str, (model, "cmd", "d", "-n", 1, steps, gpus, weight, slo, at))) + "\n"


# dialect: the file, the (row, field) of every bad row, options; row 1 or 2 is legal
BAD: dict[str, tuple[str, list[tuple[int, str]], dict[str, Any]]] = {
    "tiresias": (
        TIRESIAS + "0,1,0,6,m,164,3\n0,1,-1,6,m,164,3\n1,0,0,6,m,164,3\n2,1,0,0,m,164,3\n3,1,0,6,,164,3\n4,1,0,6,m,,3\n",
        [(3, "submit_time"), (4, "num_gpu"), (5, "iterations"), (6, "model_name"), (7, "duration")],
        {},
    ),
    "muri": (
        MURI + "".join(f"{row}{TAIL}" for row in ("0,8,0,1,m,4,9", "0,8,0,1,m,4,9", "1,8,-1,1,m,4,9", "2,8,0,1,m,4,0")),
        [(3, "job_id"), (4, "submit_time"), (5, "duration")],
        {},
    ),
    "gavel": (
        gavel() + gavel(steps=0) + gavel(gpus=0) + gavel(weight=-1) + gavel(slo="soon") + gavel(at=-5)
        + "A3C\ttoo\tshort\n" + gavel(gpus=65) + gavel(model=""),
        [
            *((2, "total_steps"), (3, "scale_factor"), (4, "priority_weight"), (5, "SLO"), (6, "arrival_time")),
            *((7, "columns"), (8, "scale_factor"), (9, "job_type")),
        ],
        {},
    ),
    "pollux": (
        "name,time,application,num_replicas,batch_size\na,1,cifar10,1,128\nb,1,cifar10,1,300\nc,1,vgg,1,128\n"
        "a,1,bert,1,12\nd,-1,bert,1,12\ne,1,bert,0,12\nf,1,bert,1,1.5\n",
        [
            *((3, "batch_size"), (4, "application"), (5, "name"), (6, "time"), (7, "num_replicas"), (8, "batch_size")),
        ],
        {},
    ),
    "csv": (
        "submitted,wanted,seconds,job\n0,1,5,a\n-1,1,5,b\n0,65,5,c\n0,1,0,d\n0,1,5,a\n2024-05-01 08:00:00,1,5,e\n",
        [(3, "submitted"), (4, "wanted"), (5, "seconds"), (6, "job"), (7, "submitted")],
        {"columns": {"arrival": "submitted", "gpus": "wanted", "duration": "seconds", "id": "job"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("dialect", BAD)
def test_bad_rows_are_named_all_at_once_or_left_out(dialect: str, read: Reader, tmp_path: Path) -> None:
    text, bad, options = BAD[dialect]
    (tmp_path / "iterations.csv").write_text(
        "application,batch_size,iterations\ncifar10,256,9\ncifar10,128,9\nbert,12,9\n"
    )
    with pytest.raises(RowErrors) as caught:
        read(dialect, text, **options)
    assert [(problem.row, problem.field) for problem in caught.value.problems] == bad
    values = [str(problem.value) for problem in caught.value.problems if problem.field != "columns"]
    assert all(value in text for value in values)
    if dialect == "pollux":
        assert "from 128 to 256" in caught.value.problems[0].legal
        assert "bert, cifar10" in caught.value.problems[1].legal
    found = read(dialect, text, skip_bad=True, **options)
    assert (found.table.height, found.skipped_rows) == (1, len(bad))
