"""Dialect tiresias on small files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from optsched.errors import RowErrors
from optsched.io.traces import TraceRead

HEAD = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"


def test_duration_counts_and_iterations_are_metadata(read: Callable[..., TraceRead]) -> None:
    found = read("tiresias", HEAD + "j0,1,0,606,vgg19,164,30\nj1,8,30,133,vgg11,147,23\n")
    instance = found.instance()
    assert instance.ids == ("j0", "j1")
    assert instance.arrival.tolist() == [0.0, 30.0]
    assert instance.gpus.tolist() == [1, 8]
    assert instance.duration.tolist() == [164.0, 147.0]
    assert instance.iterations.tolist() == [606.0, 133.0]
    assert instance.table["model"].to_list() == ["vgg19", "vgg11"]
    assert instance.table["profile"].null_count() == 2  # no rate model is asked for


def test_columns_may_stand_in_any_order_and_interval_may_be_absent(read: Callable[..., TraceRead]) -> None:
    found = read("tiresias", "duration,extra,job_id,num_gpu,submit_time,model_name,iterations\n164,?,0,2,5,vgg,7\n")
    assert found.table.select("id", "arrival", "gpus", "duration").row(0) == ("0", 5.0, 2, 164.0)


def test_bad_rows(read: Callable[..., TraceRead]) -> None:
    text = HEAD + "0,1,0,6,m,164,3\n0,1,-1,6,m,164,3\n1,0,0,6,m,164,3\n2,1,0,0,m,164,3\n3,1,0,6,,164,3\n4,1,0,6,m,,3\n"
    with pytest.raises(RowErrors) as caught:
        read("tiresias", text)
    assert [(p.row, p.field) for p in caught.value.problems] == [
        (3, "job_id"),
        (4, "num_gpu"),
        (5, "iterations"),
        (6, "model_name"),
        (7, "duration"),
    ]
    assert read("tiresias", text, skip_bad=True).skipped_rows == 5
