"""Dialect batsim: the jobs of a simulation, with the schedule that it found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from right_readings import assert_read_rightly, right_reading

import optsched as osd
from optsched.errors import RowErrors
from optsched.io.traces.dialect import DIALECTS, TraceRead

Reader = Callable[..., TraceRead]
HEAD = (
    "job_id,workload_name,submission_time,requested_number_of_resources,requested_time,final_state,starting_time,"
    "execution_time,finish_time,allocated_resources\n"
)
ROW = "{},w,1,{},-1,COMPLETED_SUCCESSFULLY,2,{},5,{}\n"


def test_right_reading(data_dir: Path) -> None:
    file = data_dir / "formats" / "batsim" / "out_jobs.csv"
    read = DIALECTS.get("batsim").read(file)
    assert_read_rightly(read, right_reading(file))
    assert read.recipe["parameters"]["left_out"] == {"rejected": 3}
    assert read.cluster == osd.Cluster.parse("1x6")
    assert read.table["ran"].list.len().to_list() == [1] * read.table.height


def test_what_was_held_is_what_the_intervals_count(read: Reader) -> None:
    found = read("batsim", HEAD + ROW.format("a", 2, 3, "0-1 7") + ROW.format("b", 1, 9, "2"), cluster=None)
    assert found.table.select("gpus", "duration", "walltime").rows() == [(3, 3, None), (1, 3, None)]
    assert found.cluster == osd.Cluster.parse("1x8")
    lines = "\n".join(found.recipe["parameters"]["said"])
    assert "1 job held another number" in lines
    assert "in 1 row the execution_time is not finish_time - starting_time, the first in row 3" in lines


@pytest.mark.parametrize("intervals", ["3-1", "0-2 1", "0,x", "0-", "1000000"])
def test_intervals_that_are_none(read: Reader, intervals: str) -> None:
    with pytest.raises(RowErrors, match=r"allocated_resources = .*without a resource twice"):
        read("batsim", HEAD + ROW.format("a", 1, 3, f'"{intervals}"'))


def test_ids_of_several_workloads_get_the_name_of_theirs(read: Reader) -> None:
    text = HEAD + ROW.format("1", 1, 3, "0") + ROW.format("1", 1, 3, "1").replace(",w,", ",v,")
    assert read("batsim", text).instance().ids == ("w!1", "v!1")
    with pytest.raises(RowErrors, match="duplicate id"):
        read("batsim", HEAD + ROW.format("1", 1, 3, "0") * 2)
