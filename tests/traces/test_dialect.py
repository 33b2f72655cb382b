"""What all dialects share: the registry, bad rows all at once, skip_bad, limit, gangs, and how a trace was derived."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import one_line

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


UNIX = 1_700_000_000
YEAR = 365.25 * 86400


def csv_log(*arrivals: object, due: object = "") -> str:
    return "arrival,gpus,duration,due\n" + "".join(f"{each},1,50,{due}\n" for each in arrivals)


# the arrivals of a log, and which of the rows is on another clock
SENTINELS = [
    ((0, UNIX, UNIX + 10), 0),
    ((UNIX, UNIX + 10, 1), 2),
    ((0, UNIX), 0),  # of two the later clock
    ((UNIX, 4294967294, UNIX + 10), 1),  # 2^32 - 2
    ((UNIX, UNIX + 10, 2147483647), 2),  # the last second of 2038's clocks
    ((UNIX, UNIX + 10, 99999999999), 2),
    ((0, 5, UNIX), 2),  # seconds from the beginning, and one from 1970
    (("2026-03-02 09:00", "1970-01-01 00:00:00", "2026-03-02 09:01"), 1),
    (("2026-03-02", "2026-03-03", "9999-12-31"), 2),
    (("0001-01-01", "2026-03-02", "2026-03-03"), 0),
    (("2000-01-01 00:00:00", "2026-03-02", "2026-03-03"), 0),
]


@pytest.mark.parametrize(("arrivals", "bad"), SENTINELS)
def test_a_time_that_cannot_be_on_the_clock_of_the_others_is_a_bad_row(
    read: Reader, arrivals: tuple[object, ...], bad: int
) -> None:
    with pytest.raises(RowErrors, match=f"log.csv: 1 of {len(arrivals)} rows") as caught:
        read("csv", csv_log(*arrivals))
    (problem,) = caught.value.problems
    assert (problem.row, problem.field, problem.value) == (bad + 2, "arrival", str(arrivals[bad]))
    assert problem.message == "on another clock"
    others = [(f"{each!s:}", k + 2) for k, each in enumerate(arrivals) if k != bad]
    assert f"from {others[0][0]!r} (row {others[0][1]}) to {others[-1][0]!r} (row {others[-1][1]})" in problem.legal
    found = read("csv", csv_log(*arrivals), skip_bad=True)
    assert found.skipped_rows == 1
    assert found.table["arrival"].min() == 0
    assert found.table["arrival"].max() <= 86400


def test_every_dialect_looks_at_its_clock(read: Reader, tmp_path: Path) -> None:
    (tmp_path / "iterations.csv").write_text("application,batch_size,iterations\nbert,12,9\n")
    muri = "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,"
    muri += "resource_time_0,resource_time_1,resource_time_2,priority\n"
    logs = {
        "philly": HEAD + row(10) + row(20) + row(30).replace("2017", "1970"),
        "tiresias": "job_id,num_gpu,submit_time,iterations,model_name,duration\n"
        + "".join(f"{at},1,{at},5,m,9\n" for at in (UNIX, UNIX + 1, 0)),
        "muri": muri + "".join(f"{at},1,{at},5,m,4,9,0,0,0,0,0,0\n" for at in (UNIX * 1000, UNIX * 1000 + 1, 0)),
        "gavel": "".join(f"A3C\tcmd\td\t-n\t1\t9\t1\t1\t-1\t{at}\n" for at in (UNIX, 0, UNIX + 1)),
        "pollux": "name,time,application,num_replicas,batch_size\n"
        + "".join(f"{at},{at},bert,1,12\n" for at in (0, UNIX, UNIX + 9)),
    }
    for dialect, text in logs.items():
        with pytest.raises(RowErrors, match="on another clock") as caught:
            read(dialect, text)
        assert len(caught.value.problems) == 1
        assert read(dialect, text, skip_bad=True).skipped_rows == 1


def test_due_dates_are_on_the_clock_of_the_arrivals(read: Reader) -> None:
    for due in (0, 2147483647, 9_000_000_000):
        with pytest.raises(RowErrors, match=rf"row 2, due = '{due}': on another clock .*; empty: none"):
            read("csv", csv_log(UNIX, UNIX + 9, due=due))
    with pytest.raises(RowErrors, match="due = '9999-12-31': on another clock"):
        read("csv", csv_log("2026-03-02", due="9999-12-31"))
    assert read("csv", csv_log(UNIX, UNIX + 9, due=UNIX + 5 * 86400)).table["due"].to_list() == [432000.0] * 2
    assert read("csv", csv_log(0, 9, due=900_000_000)).table["due"].to_list() == [9e8] * 2


@pytest.mark.parametrize(
    "arrivals",
    [
        (0, 5, 900_000_000),  # from the log's own beginning, for 28 years
        tuple(k * 400_000_000 for k in range(4)),  # and longer than that: no gap that is too large
        tuple(int(UNIX - 20 * YEAR + k * YEAR * 9) for k in range(6)),  # 45 years of Unix seconds, begun before 2001
        tuple(f"{year}-06-01 12:00" for year in range(1971, 2030, 9)),
        (UNIX,),
        (0,),
    ],
)
def test_a_log_may_be_as_long_as_it_likes(read: Reader, arrivals: tuple[object, ...]) -> None:
    assert read("csv", csv_log(*arrivals)).table.height == len(arrivals)


SWF_ROW = "1 0 5 100 4 -1 -1 4 200 -1 1 7 3 -1 1 -1 -1 -1\n"
SWF = "; Version: 2.2\n;\tUnixStartTime: 843000000\n;\n" + SWF_ROW


@pytest.mark.parametrize(
    "text",
    [SWF, SWF_ROW, "\n" + SWF.replace("\n", "\r\n"), "; Computer: SP2\n", "   1 0.5 5 " + SWF_ROW[6:-1] + " a,b\n"],
)
@pytest.mark.parametrize("dialect", ["csv", "tiresias", "gavel"])
def test_the_standard_workload_format_is_called_by_its_name(read: Reader, dialect: str, text: str) -> None:
    with one_line("log.csv: this looks like the Standard Workload Format (SWF) (expected: swf:"):
        read(dialect, text)


def test_a_header_whose_first_name_is_empty_is_no_standard_workload_format(read: Reader) -> None:
    text = ";arrival;gpus;duration\n0;0;4;60\n1;5;1;30\n"
    assert read("csv", text).table["duration"].to_list() == [60.0, 30.0]


def test_archive_logs_are_called_by_their_name(data_dir: Path) -> None:
    for file in (*(data_dir / "swf").glob("*.swf"), *(data_dir / "formats" / "swf").glob("a*.swf")):
        with one_line("Standard Workload Format"):
            DIALECTS.get("csv").read(file)


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
