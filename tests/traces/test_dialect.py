"""What all dialects share: the registry, bad rows all at once, skip_bad, limit, gangs, and how a trace was derived."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from optsched.errors import InputError, RowErrors
from optsched.io.traces.dialect import DIALECTS, TraceRead
from optsched.problem.cluster import Cluster

HEAD = "timestamp,duration,num_gpus,gpu_time,cluster\n"
Reader = Callable[..., TraceRead]


def row(second: int, duration: object = 10, gpus: object = 1, tenant: str = "vc") -> str:
    return f"2017-10-09 07:{second // 60:02d}:{second % 60:02d},{duration},{gpus},0,{tenant}\n"


def test_every_dialect_says_what_it_is() -> None:
    names = {"philly", "tiresias", "gavel", "pollux", "muri", "classic", "orlib-wt", "csv"}
    assert names <= set(DIALECTS.names())
    for name, dialect in DIALECTS.items():
        assert dialect.name == name
        assert dialect.summary.endswith(".")
        module = __import__(dialect.reader.__module__, fromlist=["read"])
        assert len(module.__doc__.splitlines()) > 10  # columns, units, an example row, source


ALL_KINDS_OF_BAD = (
    HEAD
    + row(30)
    + row(10, duration="0")
    + "yesterday,10,1,10,vc\n"
    + row(20, gpus="1.5")
    + "2017-10-09 07:00:00,10,1\n"
    + row(40, tenant=" ")
    + row(50, gpus=65)
    + row(5, duration="nan")
    + row(25, gpus=64)
)


def test_all_bad_rows_are_reported_at_once_or_counted_and_the_good_ones_kept(read: Reader) -> None:
    with pytest.raises(RowErrors) as caught:
        read("philly", ALL_KINDS_OF_BAD)
    fields = ["duration", "timestamp", "num_gpus", "columns", "cluster", "num_gpus", "duration"]
    assert [(p.row, p.field) for p in caught.value.problems] == list(enumerate(fields, 3))
    lines = str(caught.value).splitlines()
    assert "7 of 9 rows" in lines[0]
    assert len(lines) == 8
    assert "row 8, num_gpus = '65'" in lines[6]
    assert "at most 64" in lines[6]
    found = read("philly", ALL_KINDS_OF_BAD, skip_bad=True)
    assert found.table["id"].to_list() == ["2", "10"]
    assert found.table["arrival"].to_list() == [5.0, 0.0]  # the earliest legal row is 0
    assert found.skipped_rows == 7
    assert found.recipe["parameters"]["rows"] == 9
    assert found.recipe["parameters"]["skipped_rows"] == 7


def test_nothing_legal_left_is_an_error(read: Reader) -> None:
    with pytest.raises(InputError, match="no legal row"):
        read("philly", HEAD + row(1, duration=0), skip_bad=True)
    with pytest.raises(InputError, match="no rows"):
        read("philly", HEAD)


def test_limit_takes_the_first_by_arrival_then_row(read: Reader) -> None:
    text = HEAD + row(30) + row(10) + row(20) + row(10) + row(10)
    found = read("philly", text, limit=3)
    assert found.table["id"].to_list() == ["3", "5", "6"]  # in the order of the file
    whole = read("philly", text).instance()
    assert whole.head(3).ids == found.instance().ids
    assert read("philly", text, limit=9).table.height == 5
    ties = HEAD + row(10) * 200 + row(5) * 200
    assert read("philly", ties, limit=300).table["id"].to_list() == [str(k) for k in [*range(2, 102), *range(202, 402)]]
    for limit in (0, -1, True, 2.0):
        with pytest.raises(InputError, match="limit"):
            read("philly", text, limit=limit)


def test_a_wide_gang_beyond_the_limit_is_nobodys_problem(read: Reader) -> None:
    text = HEAD + row(10) + row(50, gpus=128) + row(20) + row(30)
    found = read("philly", text, limit=2)
    assert (found.table["id"].to_list(), found.skipped_rows) == (["2", "4"], 0)
    with pytest.raises(RowErrors, match="row 3, num_gpus = '128'"):
        read("philly", text)
    with pytest.raises(RowErrors, match="row 2, duration"):  # a row that cannot be read is, wherever it stands
        read("philly", HEAD + row(50, duration="x") + row(10), limit=1)


def test_skip_bad_with_limit_counts_the_wide_gangs_on_the_way(read: Reader) -> None:
    text = HEAD + row(10) + row(15, gpus=128) + row(20) + row(30) + row(50, gpus=128)
    found = read("philly", text, limit=2, skip_bad=True)
    assert (found.table["id"].to_list(), found.skipped_rows) == (["2", "4"], 1)
    assert read("philly", text, skip_bad=True).skipped_rows == 2


def test_without_a_cluster_gangs_are_not_judged_and_there_is_no_instance(read: Reader) -> None:
    found = read("philly", HEAD + row(10, gpus=4096), cluster=None)
    assert found.table["gpus"].to_list() == [4096]
    with pytest.raises(InputError, match=r"needs a cluster.*e\.g\. 8x8"):
        found.instance()


def test_a_trace_says_how_it_was_derived(read: Reader) -> None:
    text = HEAD + row(10) + row(20)
    found = read("philly", text, limit=1)
    assert found.recipe["name"] == "philly"
    assert found.recipe["parameters"]["file"] == "log.csv"
    assert found.recipe["parameters"]["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert found.recipe["parameters"]["limit"] == 1


def test_wrong_dialect_names_the_one_that_fits(read: Reader) -> None:
    with pytest.raises(InputError, match=r"missing: job_id.*they fit dialect philly"):
        read("tiresias", HEAD + row(10))
    with pytest.raises(InputError, match="wrong dialect"):
        read("gavel", HEAD + row(10))


def test_a_file_in_milliseconds_is_not_read_as_seconds(read: Reader) -> None:
    head = "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,"
    text = head + "resource_time_0,resource_time_1,resource_time_2,priority\n0,8,0,10,gpt2,4,5000,9,437,0.6,419,49,0\n"
    assert read("muri", text).table["duration"].to_list() == [5.0]
    with pytest.raises(InputError, match=r"its columns are those of another.*muri:PATH"):
        read("tiresias", text)


def test_options_that_a_dialect_does_not_take(read: Reader) -> None:
    with pytest.raises(InputError, match=r"dialect philly has columns of its own.*csv"):
        read("philly", HEAD + row(10), columns={"arrival": "timestamp"})
    with pytest.raises(InputError, match="takes no #fragment"):
        read("philly", HEAD + row(10), fragment="3")
    with pytest.raises(InputError, match=r"no dialect named 'phily'.*did you mean philly"):
        DIALECTS.get("phily")


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    for name in DIALECTS.names():
        with pytest.raises(InputError, match="no such file"):
            DIALECTS.get(name).read(tmp_path / "none.txt", cluster=Cluster.parse("8x8"))
