"""What every reader of a log shares: rows left out by reason, pieces that ran, durations, and the guessed cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from optsched.errors import InputError, RowErrors
from optsched.io.traces.dialect import (
    DIALECTS,
    Dialect,
    TraceRead,
    TraceRequest,
    finish,
    gpus_in_use,
)
from optsched.io.traces.log_reading import reading_notes
from optsched.io.traces.rows import Rows, pieces_of, seconds_of_durations
from optsched.io.traces.text_table import read_text_table
from optsched.problem.cluster import Cluster
from optsched.problem.instance import Instance, Job

LOG = "id,at,gpus,start,end\na,10,2,10,30\nb,15,1,,\nc,x,3,20,40\nd,12,3,20,40\n"


def read_log(request: TraceRequest) -> TraceRead:
    """Log of the tests."""
    rows = Rows(read_text_table(request.path))
    start, end = rows.number("start", required=False), rows.number("end", required=False)
    rows.leave_out(start.is_null(), "never ran")
    jobs = {"id": rows.unique("id"), "arrival": rows.number("at"), "gpus": rows.gang("gpus")}
    jobs |= {"duration": (end - start).alias("duration"), "ran": pieces_of(start, end)}
    return finish(request, rows, jobs, from_earliest=("arrival",))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    DIALECTS._things["made"] = Dialect("made", "", read_log, guesses_cluster=True)
    yield path
    del DIALECTS._things["made"]


def test_rows_left_out_are_no_bad_rows_and_are_counted_by_reason(log: Path) -> None:
    with pytest.raises(RowErrors) as caught:
        DIALECTS.get("made").read(log)
    assert [problem.row for problem in caught.value.problems] == [4]
    read = DIALECTS.get("made").read(log, skip_bad=True)
    parameters = read.recipe["parameters"]
    assert [parameters[key] for key in ("left_out", "skipped")] == [{"never ran": 1}, {"at: invalid": 1}]
    assert (read.skipped_rows, read.table["id"].to_list()) == (1, ["a", "d"])
    assert read.table["ran"].to_list() == [[[0, 20]], [[10, 30]]]
    assert read.cluster == Cluster.parse("1x5")
    notes = reading_notes(read.instance())
    assert notes[:2] == ["left out: 1 (never ran)", "invalid rows skipped: 1 (at: invalid)"]
    assert "5 GPUs were in use at once" in notes[2]


def test_a_log_of_nothing_but_rows_left_out_says_why(log: Path) -> None:
    log.write_text("id,at,gpus,start,end\nb,15,1,,\n")
    with pytest.raises(InputError, match=r"no job; left out: 1 \(never ran\)"):
        DIALECTS.get("made").read(log)


def test_options_that_a_dialect_does_not_take(log: Path) -> None:
    with pytest.raises(InputError, match="dialect made has no such choice"):
        DIALECTS.get("made").read(log, unit="cpu")
    with pytest.raises(InputError, match="gpu, cpu, node"):
        DIALECTS.get("made").read(log, unit="core")


def test_the_guess_counts_what_ends_and_starts_at_one_instant_once() -> None:
    ran = pieces_of(pl.Series([0.0, 10.0, 10.0]), pl.Series([10.0, 20.0, 10.0]), pl.Series([3, 2, 9]))
    assert gpus_in_use(pl.DataFrame({"gpus": [3, 2, 1], "ran": ran})) == 3


def test_durations() -> None:
    texts = pl.Series(["12", "1-00:00:30", "26:02:03", "90m", "x", None, "1:99:00", "0.5"])
    assert seconds_of_durations(texts).to_list() == [12, 86430, 93723, 5400, None, None, None, 0.5]


def test_pieces_and_walltimes_are_kept_in_files_and_move_with_the_clock(tmp_path: Path) -> None:
    jobs = [
        Job("a", 1.7e9, duration=5, walltime=60, status="OK", ran=((1.7e9 + 1, 1.7e9 + 3), (1.7e9 + 5, 1.7e9 + 8, 1)))
    ]
    made = Instance([*jobs, Job("b", 1.7e9 + 4, duration=3)], "1x4")
    assert made.relative.job(0).ran == ((1, 3), (5, 8, 1))
    for suffix in ("json", "parquet"):
        made.save(tmp_path / f"made.{suffix}")
        assert Instance.load(tmp_path / f"made.{suffix}") == made
    without = made.replace(jobs=made.table.drop("ran"))
    assert made != without
    assert made.digest == without.digest


@pytest.mark.parametrize("ran", [((1,),), ((3, 2),), ((1, 2, 0.5),), ((1, float("nan")),), "x"])
def test_pieces_that_are_none(ran: object) -> None:
    with pytest.raises((RowErrors, InputError), match="pieces"):
        Instance([Job("a", duration=5, ran=ran)], "1x4")  # type: ignore[arg-type]
