"""Tables of results: what they say is what the metrics say; pandas frames come in and go out."""

from __future__ import annotations

import importlib.util

import numpy as np
import polars as pl
import pytest

import optsched as osd
from optsched.errors import InputError

pytestmark = pytest.mark.release

YEAR_2024 = 1_704_067_200.0


def late(instance: osd.Instance) -> osd.Instance:
    """The same jobs in a log that counts from 1970, and a tenth of a second apart."""
    return instance.replace(jobs=instance.table.with_columns(pl.col("arrival") + YEAR_2024))


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("rigid-10-1", "srtf"),
        ("rigid-10-1", "tiresias:threshold=20,round=3,restart=2"),
        ("sharing-cluster", "sjf-bsbf"),
    ],
)
def test_the_table_of_jobs_says_what_the_metrics_say(name: str, policy: str) -> None:
    run = osd.simulate(name, policy)
    jobs, found = run.jobs, run.metrics
    assert jobs.columns == ["id", "arrival", "start", "end", "jct", "queueing", "gpus"]
    assert tuple(jobs["id"]) == run.instance.ids
    assert jobs["gpus"].to_list() == run.instance.gpus.tolist()
    assert jobs["jct"].mean() == pytest.approx(found["mean_jct"])
    assert jobs["queueing"].mean() == pytest.approx(found["mean_queueing"])
    assert jobs["end"].max() == pytest.approx(found["makespan"])
    assert (jobs["start"] >= jobs["arrival"]).all()
    assert jobs.select(pl.col("end") - pl.col("arrival")).to_series().to_list() == pytest.approx(jobs["jct"].to_list())


def test_moments_are_on_the_logs_clock_and_lengths_lose_nothing_to_it() -> None:
    plain = osd.generate("poisson", seed=1, jobs=30, cluster="1x4", load=0.9)
    first = osd.simulate(plain, "srtf").jobs
    moved = osd.simulate(late(plain), "srtf")
    second = moved.jobs
    assert second["arrival"].to_list() == (moved.instance.arrival).tolist()
    assert second["end"].min() > YEAR_2024
    exact = osd.simulate(moved.instance.relative, "srtf")
    for name in ("jct", "queueing"):  # not one bit is lost to the epoch
        assert second[name].to_list() == exact.jobs[name].to_list()
    assert second["jct"].to_list() == pytest.approx(first["jct"].to_list(), abs=1e-5)
    assert moved.segments["seconds"].to_list() == exact.segments["seconds"].to_list()


def test_the_table_of_segments_is_the_schedule() -> None:
    run = osd.simulate("rigid-10-1", "srtf")
    table, segments = run.segments, list(run.schedule.segments())
    assert table.height == len(segments)
    for row, segment in zip(table.iter_rows(named=True), segments, strict=True):
        assert row["job"] == run.instance.ids[segment.job]
        assert (row["start"], row["end"], row["work"]) == (segment.start, segment.end, segment.work)
        assert list(zip(row["node"], row["index"], strict=True)) == list(segment.gpus)
        assert row["gpus"] == len(segment.gpus)
        assert row["seconds"] == segment.end - segment.start
    assert "steps" in osd.simulate("sharing-cluster", "sjf-bsbf").segments.columns
    assert osd.solve("rigid-06-1").segments.height == 6


def test_what_a_job_that_did_not_finish_does_not_have_is_null() -> None:
    instance = osd.Instance([osd.Job("a", duration=5), osd.Job("b", duration=5)], "1x1")
    half = osd.Schedule.from_segments(instance, [osd.Segment(0, ((0, 0),), 0, 3, 3)])
    run = osd.simulate(instance, "fifo")
    jobs = type(run)(half, "half", run.knowledge, True, 0, 0, 0.0).jobs
    assert jobs.row(0, named=True) == {**dict.fromkeys(jobs.columns), "id": "a", "arrival": 0, "start": 0, "gpus": 1}
    assert jobs.row(1, named=True) == {**dict.fromkeys(jobs.columns), "id": "b", "arrival": 0, "gpus": 1}
    nothing = osd.simulate(osd.Instance([], "1x1"), "fifo")
    assert nothing.jobs.height == nothing.segments.height == 0


def test_tables_go_to_pandas_without_pyarrow() -> None:
    pytest.importorskip("pandas")
    run = osd.simulate("rigid-10-1", "srtf")
    for table in (run.jobs, run.segments, osd.compare("rigid-06-1", "fifo"), osd.solve("rigid-06-1").jobs):
        frame = table.to_pandas()
        assert list(frame.columns) == table.columns
        assert frame.iloc[:, 0].tolist() == table[table.columns[0]].to_list()
    assert run.jobs.to_pandas()["jct"].dtype == np.float64


def test_who_has_no_pandas_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    table = osd.simulate("rigid-06-1", "fifo").jobs
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pandas is not installed \(expected: pip install 'optsched\[pandas\]'\)"):
        table.to_pandas()


def test_a_pandas_frame_of_jobs_is_an_instance() -> None:
    pd = pytest.importorskip("pandas")
    instance = osd.load("rigid-10-1")
    names = ["id", "arrival", "gpus", "duration"]
    frame = pd.DataFrame({name: instance.table[name].to_list() for name in names}, index=range(5, 15))
    assert osd.Instance(frame, "1x8", objective=instance.objective).digest == instance.digest
    assert osd.simulate(instance.replace(jobs=frame), "fifo").value() == osd.simulate(instance, "fifo").value()


def test_what_pandas_calls_missing_is_missing() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "duration": [5.0, 6.0],
            "due": [float("nan"), 40],
            "gpus": pd.array([2, 1], dtype="Int64"),
            "user": ["ann", None],
            "gpu_types": [["V100"], None],
        }
    )
    instance = osd.Instance(frame, "1x2:V100")
    assert instance.jobs == [
        osd.Job("1", duration=5, gpus=2, user="ann", gpu_types=("V100",)),
        osd.Job("2", duration=6, due=40),
    ]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"duration": [1, "long"]}, "duration: wrong type of column"),
        ({"duration": [1, 2], "seconds": [1, 2]}, "seconds: unknown job column"),
        ({"duration": [1, -2]}, "row 2, duration = -2"),
        ({"duration": [1, 2], "gpus": [1.5, 1]}, r"row 1, gpus = 1\.5"),
    ],
)
def test_a_frame_that_is_not_legal_is_told(columns: dict[str, list[object]], message: str) -> None:
    pd = pytest.importorskip("pandas")
    with pytest.raises(InputError, match=message):
        osd.Instance(pd.DataFrame(columns), "1x2")


def test_date_times_are_no_seconds() -> None:
    table = pl.DataFrame({"arrival": ["2024-05-01 08:00:00"], "duration": [3]})
    with pytest.raises(InputError, match=r"arrival = Datetime.*wrong type of column \(expected: seconds"):
        osd.Instance(table.with_columns(pl.col("arrival").str.to_datetime()), "1x1")


@pytest.mark.parametrize("wrong", ["rigid-06-1", 7, None])
def test_what_is_no_collection_of_jobs_is_told(wrong: object) -> None:
    with pytest.raises(InputError, match=r"jobs = .*no jobs \(expected: a list of optsched\.Job"):
        osd.Instance(wrong, "1x1")
