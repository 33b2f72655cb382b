"""Dialect swf: every oddity of archive logs, the right readings of made files, and a whole log to the digit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import one_line
from right_readings import assert_read_rightly, right_reading

import optsched as osd
from optsched.errors import RowErrors
from optsched.io.traces.dialect import DIALECTS, TraceRead
from optsched.io.traces.swf_header import SwfHeader

Reader = Callable[..., TraceRead]


def row(job: object, submit: object, wait: object, run: object, processors: int = 4, **more: Any) -> str:
    fields = [job, submit, wait, run, processors, -1, -1, -1, -1, -1, 1, 7, -1, -1, 3, -1, -1, -1]
    places = {"asked": 7, "limit": 8, "status": 10, "group": 12, "after": 16}
    for name, value in more.items():
        fields[places[name]] = value
    return " ".join(map(str, fields)) + "\n"


def said(read: TraceRead) -> str:
    return "\n".join(read.recipe["parameters"].get("said", []))


FILES = [
    "all-failed",
    "archive",
    "checkpoints-double",
    "checkpoints-parts-only",
    "epoch-21-columns",
    "fractions-unsorted",
]
FILES += ["model", "submit-is-start", "tabs-and-names"]


@pytest.mark.parametrize("name", FILES)
def test_right_readings(data_dir: Path, name: str) -> None:
    file = data_dir / "formats" / "swf" / f"{name}.swf"
    reading, read = right_reading(file), DIALECTS.get("swf").read(file)
    assert_read_rightly(read, reading)
    parameters = read.recipe["parameters"]
    reasons: list[str] = list(reading["left_out"].values())
    assert parameters.get("left_out", {}) == {reason: reasons.count(reason) for reason in reasons}
    assert (parameters.get("unix_start"), parameters.get("time_zone")) == (reading["unix_start"], reading["time_zone"])
    if reading["processors"] is not None:
        assert read.cluster == osd.Cluster.parse(f"1x{reading['processors']}")
    expected = {
        "all-failed": "status is 0 (failed) in every row",
        "archive": "MaxProcs is '128 (120,8)'\nstatus of 3 of 27\n a colon: MaxProcs: 9999\nmore than the 128",
        "checkpoints-double": "7 jobs ran in parts",
        "epoch-21-columns": "up to 21\n2 rows with a negative run\ncolumn 17 is 1 in every row\nguessed: 1,542 proc",
        "model": "no MaxProcs: its MaxNodes\nno schedule was logged",
        "submit-is-start": "note in the log: There is no information on wait times - the given submit times are actually",
        "tabs-and-names": "column 17 orders 9 jobs after another\nwaiting time is 0 in every row",
    }
    for part in expected.get(name, "").split("\n"):
        assert part in said(read)


def test_kth_to_the_digit(data_dir: Path) -> None:
    instance = osd.load(f"swf:{data_dir}/swf/KTH-SP2.swf", walltimes="cut")
    ran = instance.table["ran"].list.get(0)
    start, end = (ran.list.get(k).to_numpy() for k in (0, 1))
    assert (instance.n, instance.cluster.gpus) == (28_481, 100)
    assert (end - start == instance.duration).all()
    assert np.mean(start - instance.arrival) == pytest.approx(15_385.255, abs=5e-4)
    assert np.sum(start + instance.duration - instance.arrival) == 690_527_007
    assert float(osd.bound(instance).value) == pytest.approx(253_499_189.68, abs=5e-3)


def test_runs_beyond_the_walltime_are_kept_or_cut_and_counted(read: Reader) -> None:
    text = row(1, 0, 5, 100, limit=60) + row(2, 1, 0, 50, limit=60) + row(3, 2, 0, 9, limit=0)
    kept, cut = (read("swf", text, walltimes=choice) for choice in ("keep", "cut"))
    assert kept.table["walltime"].to_list() == [60, 60, None]
    assert (kept.table["duration"].to_list(), cut.table["duration"].to_list()) == ([100, 50, 9], [60, 50, 9])
    assert cut.table["ran"].to_list() == [[[5, 65]], [[1, 51]], [[2, 11]]]
    assert "1 of 3 jobs ran longer than their walltime, by up to 40 s: they are kept" in said(kept)
    assert "they are cut there" in said(cut)
    assert cut.recipe["parameters"]["walltimes"] == "cut"
    with one_line("walltimes = 'stop'", "keep, cut"):
        read("swf", text, walltimes="stop")


def test_a_job_in_parts_is_cut_in_the_part_that_passes_the_limit(read: Reader) -> None:
    text = row(1, 0, 10, 40, limit=60, status=2) + row(1, -1, 5, 30, limit=60, status=2) + row(1, -1, 9, 9, status=3)
    cut = read("swf", text, walltimes="cut")
    assert cut.table.select("status", "duration", "ran").row(0) == ("1", 60, [[10, 50], [55, 75]])


def test_processors_are_the_allocated_else_the_requested_ones(read: Reader) -> None:
    text = row(1, 0, 0, 5, 3, asked=9) + row(2, 1, 0, 5, -1, asked=2) + row(3, 1, 0, 5, 0, asked=-1)
    read_text = read("swf", text, cluster=None)
    assert read_text.table.select("id", "gpus", "user", "group").rows() == [("1", 3, "7", "3"), ("2", 2, "7", "3")]
    assert read_text.recipe["parameters"]["left_out"] == {"no number of processors": 1}
    assert read_text.cluster == osd.Cluster.parse("1x5")


def test_a_gang_wider_than_the_header_is_a_bad_row_until_the_cluster_is_stated(read: Reader) -> None:
    text = "; MaxProcs: 4\n" + row(1, 0, 0, 5) + row(2, 1, 9, 5, 8)
    with pytest.raises(RowErrors, match="row 3, processors = '8': the gang is larger than the cluster"):
        read("swf", text, cluster=None)
    assert read("swf", text, cluster="2x8").instance().n == 2


def test_a_bad_part_takes_its_job_along(read: Reader) -> None:
    text = row(1, 0, 0, 5) + row(2, 0, 1, 5, status=2) + row(2, -1, "x", 5, status=3) + "1 2 3\n"
    with pytest.raises(RowErrors) as caught:
        read("swf", text)
    assert [(each.row, each.message) for each in caught.value.problems] == [
        (2, "another part is invalid"),
        (3, "invalid"),
        (4, "wrong number of fields"),
    ]
    assert read("swf", text, skip_bad=True).table["id"].to_list() == ["1"]


def test_another_file_is_no_log_in_this_format(read: Reader) -> None:
    with one_line("no row of the Standard Workload Format (SWF)", "18 numbers"):
        read("swf", "arrival,gpus,duration\n0,1,5\n")


def test_only_rows_must_be_utf8(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes("; Installation: Universität\n".encode("latin-1") + row(1, 0, 0, 5).encode())
    assert DIALECTS.get("swf").read(path).table.height == 1
    path.write_bytes(path.read_bytes() + b"2 0 0 5 1 -1 -1 -1 -1 -1 1 \xe4 -1 -1 -1 -1 -1 -1\n")
    with pytest.raises(RowErrors, match="row 3, bytes = '\\?': not UTF-8"):
        DIALECTS.get("swf").read(path)


def test_a_header_with_lines_that_go_on() -> None:
    lines = [
        ";",
        "; Note:  first",
        ";        MaxProcs: 9 of old",
        "; MaxProcs: 64 (60,4)",
        "; Note: second",
        "; UnixStartTime: 0",
    ]
    header = SwfHeader.of([*lines, "; TimeZone: 3600", "; MaxNodes: x"])
    assert header.remarks == ("first MaxProcs: 9 of old", "second")
    assert header.processors == (64, "MaxProcs")
    assert header.clock == {"time_zone": "3600"}
    assert SwfHeader.of(["; MaxProcs: -1", "; MaxNodes: 5"]).processors == (5, "MaxNodes")
