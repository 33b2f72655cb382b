"""Dialect muri: milliseconds become seconds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from optsched.errors import RowErrors
from optsched.io.traces import TraceRead

HEAD = (
    "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,"
    "resource_time_0,resource_time_1,resource_time_2,priority\n"
)
TAIL = ",91000,437,0.6,419,49,0\n"


def test_milliseconds(read: Callable[..., TraceRead]) -> None:
    found = read("muri", HEAD + "0,8,1500,10956,gpt2,4,5095000" + TAIL + "1,1,0,3,dqn,128,250" + TAIL)
    assert found.table["arrival"].to_list() == [1.5, 0.0]
    assert found.table["duration"].to_list() == [5095.0, 0.25]
    assert found.table["iterations"].to_list() == [10956.0, 3.0]
    assert found.table["model"].to_list() == ["gpt2", "dqn"]


def test_bad_rows(read: Callable[..., TraceRead]) -> None:
    text = (
        HEAD
        + "0,8,0,1,gpt2,4,9"
        + TAIL
        + "0,8,0,1,gpt2,4,9"
        + TAIL
        + "1,8,-1,1,gpt2,4,9"
        + TAIL
        + "2,8,0,1,gpt2,4,0"
        + TAIL
    )
    with pytest.raises(RowErrors) as caught:
        read("muri", text)
    assert [(p.row, p.field, p.value) for p in caught.value.problems] == [
        (3, "job_id", "0"),
        (4, "submit_time", "-1"),
        (5, "duration", "0"),
    ]
