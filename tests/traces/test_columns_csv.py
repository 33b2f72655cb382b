"""Dialect csv: anybody's own log, with columns that the user names."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from refusals import one_line

from optsched.errors import InputError, RowErrors
from optsched.io.traces.dialect import TraceRead
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Job

Reader = Callable[..., TraceRead]
NAMED = {"arrival": "submitted", "gpus": "wanted", "duration": "seconds"}


def test_numbers_stay_as_they_stand(read: Reader) -> None:
    found = read("csv", "seconds,wanted,submitted,junk\n60,4,100.5,x\n30,1,7,y\n", columns=NAMED)
    assert found.table.select("id", "arrival", "gpus", "duration").rows() == [
        ("1", 100.5, 4, 60.0),  # the first job is 1, not the number of its line
        ("2", 7.0, 1, 30.0),
    ]
    assert found.recipe["parameters"]["columns"] == NAMED


def test_date_times_count_from_the_earliest_job(read: Reader) -> None:
    text = "submitted;wanted;seconds\n2024-05-01 08:00:30Z;4;60\n2024-05-01T10:00:00+02:00;1;30\n"
    assert read("csv", text, columns=NAMED).table["arrival"].to_list() == [30.0, 0.0]


def test_dates_and_numbers_in_one_column_name_a_row_of_each(read: Reader) -> None:
    text = "seconds,wanted,submitted\n9,1,30\n9,1,2024-05-01 08:00:00\n9,1,{}\n"
    said = r"row 3, submitted = '2024-05-01 08:00:00': .*a number as row 2 has, '30', and not a date-time: one clock"
    with pytest.raises(RowErrors, match=said) as caught:
        read("csv", text.format(-1), columns=NAMED)
    assert (
        caught.value.problems[1].legal == "seconds >= 0, or Unix seconds"
    )  # the row with -1 hears what is wrong with it
    said = "row 2, submitted = '30': .*a date-time as row 3 has, '2024-05-01 08:00:00', and not a number: one clock"
    with pytest.raises(RowErrors, match=said):
        read("csv", text.format("2024-05-01 08:00:09"), columns=NAMED)


def test_date_times_with_and_without_an_offset_are_two_clocks(read: Reader) -> None:
    text = "submitted,wanted,seconds,by\n{},4,60,{}\n2024-05-01 08:00:09,1,30,\n"
    local, zoned = "2024-05-01 09:00:00", "2024-05-01T09:00:00+02:00"
    said = "row 2, {} = '2024.*00': .*a date-time without a UTC offset, as submitted of row {}, '2024.*': one clock"
    for arrival, due, *where in ((zoned, "", "submitted", 3), (local, zoned, "by", 2)):
        with pytest.raises(RowErrors, match=said.format(*where)) as caught:
            read("csv", text.format(arrival, due), columns={**NAMED, "due": "by"})
        assert len(caught.value.problems) == 1
    assert read("csv", text.format(local, local), columns={**NAMED, "due": "by"}).table["due"].to_list() == [3591, None]
    with pytest.raises(RowErrors, match=r"row 3, submitted = .* with a UTC offset, as submitted of row 2"):
        read("csv", text.format(zoned, "") + f"{zoned},1,30,\n", columns=NAMED)


def test_unix_seconds_count_from_the_earliest_job_and_milliseconds_are_refused(read: Reader) -> None:
    text = "submitted,wanted,seconds,by\n1700000100,4,60,1700000200\n1700000000.5,1,30,\n"
    found = read("csv", text, columns={**NAMED, "due": "by"})
    assert found.table["arrival"].to_list() == [99.5, 0.0]
    assert found.table["due"].to_list() == [199.5, None]
    with pytest.raises(RowErrors, match="divide Unix milliseconds by 1000"):
        read("csv", "submitted,wanted,seconds\n1700000100000,4,60\n", columns=NAMED)


UNREAD = (
    "03/02/2026 9:00 AM",
    "2026-03-02 09:00:00 UTC",
    "02.03.2026 09:00",
    "2 Mar 2026 09:00",
    "Mon Mar 2 09:00:00 2026",
    "20260302T090000",
    "09:00",
)


@pytest.mark.parametrize("text", UNREAD)
def test_a_date_time_in_a_form_that_is_not_read_is_called_so(read: Reader, text: str) -> None:
    head = "submitted,wanted,seconds,by\n"
    for options in ({}, {"skip_bad": True}):
        told = f"row 2, submitted = '{text}': a date-time in a form that is not read"
        with one_line(told, "(expected: 2017-10-09 07:01:55, also with T, without seconds") as caught:
            read("csv", head + f"{text},1,60,\n{text},1,30,\n", columns=NAMED, **options)
        assert "illisecond" not in str(caught.value)
    good = "2026-03-02 09:00:00,1,30,{}\n"
    with pytest.raises(RowErrors, match=r"log\.csv: 1 of 2 rows") as rows:
        read("csv", head + good.format("") + f"{text},1,60,\n", columns=NAMED)
    assert (rows.value.problems[0].row, rows.value.problems[0].message) == (3, "a date-time in a form that is not read")
    with pytest.raises(InputError, match=r"by = '.*': a date-time in a form that is not read"):
        read("csv", head + good.format(text), columns={**NAMED, "due": "by"})


def test_what_is_neither_a_number_nor_like_a_date_hears_of_both(read: Reader) -> None:
    with pytest.raises(
        RowErrors, match=r"submitted = 'soon': invalid .expected: seconds >= 0, or Unix seconds, or a date"
    ):
        read("csv", "submitted,wanted,seconds\nsoon,1,30\n", columns=NAMED)
    with pytest.raises(RowErrors, match=r"submitted = 'soon': invalid .expected: a date-time such as"):
        read("csv", "submitted,wanted,seconds\n2026-03-02,1,30\nsoon,1,30\n2026-03-03,1,30\n", columns=NAMED)


def test_all_optional_fields(read: Reader) -> None:
    text = (
        "job,submitted,wanted,seconds,prio,by,who,team,net,mem\n"
        'a,0,4,60,2.5,100,"Ada, Countess",x,bert,16e9\n'
        "b,5,1,30,,,,,,\n"
    )
    labels = {"user": "who", "group": "team", "model": "net", "gpu_memory": "mem"}
    columns = {**NAMED, **labels, "id": "job", "weight": "prio", "due": "by"}
    more = {"weight": 2.5, "due": 100, "user": "Ada, Countess", "group": "x", "model": "bert", "gpu_memory": 16e9}
    found = read("csv", text, columns=columns).instance().jobs
    assert found == [Job("a", gpus=4, duration=60, **more), Job("b", arrival=5, duration=30)]


def test_what_it_costs_to_resume(read: Reader) -> None:
    instance = read("csv", "arrival,gpus,duration,restart,checkpoint\n0,1,5,2.5,\n0,1,5,,4e9\n0,1,5,,\n").instance()
    assert instance.table["restart"].to_list() == [2.5, None, None]
    assert instance.table["checkpoint"].to_list() == [None, 4e9, None]
    with pytest.raises(RowErrors, match="restart"):
        read("csv", "arrival,gpus,duration,restart\n0,1,5,-1\n")


def test_iterations_with_a_profile_instead_of_a_duration(read: Reader) -> None:
    text = "arrival,gpus,iterations,profile\n0,1,500,resnet\n"
    found = read("csv", text)  # the file's own names are the fields' names
    assert found.table.select("iterations", "profile").row(0) == (500.0, "resnet")
    with pytest.raises(RowErrors, match="profile"):
        read("csv", "arrival,gpus,iterations,profile\n0,1,500,\n")


def test_columns_that_do_not_exist(read: Reader) -> None:
    text = "submitted,wanted,seconds\n0,1,5\n"
    with pytest.raises(InputError, match=r"arrival = 'submited': the file has no such column.*did you mean submitted"):
        read("csv", text, columns={**NAMED, "arrival": "submited"})
    with pytest.raises(InputError, match=r"'arival': there is no such field.*did you mean arrival"):
        read("csv", text, columns={**NAMED, "arival": "submitted"})
    with pytest.raises(InputError, match=r"which column is gpus.*columns of the file: submitted, wanted, seconds"):
        read("csv", text, columns={"arrival": "submitted", "duration": "seconds"})
    with pytest.raises(InputError, match="which column is arrival and which is gpus and which is duration"):
        read("csv", text)


def test_a_memory_that_too_few_gpus_have_is_a_bad_row(read: Reader) -> None:
    nodes = (NodeGroup(count=2, gpus=4, gpu_memory=16e9), NodeGroup(gpus=2, gpu_memory=32e9))
    text = "arrival,gpus,duration,gpu_memory\n0,10,5,16e9\n0,2,5,17e9\n0,3,5,17e9\n0,1,5,33e9\n0,11,5,\n"
    with pytest.raises(RowErrors) as caught:
        read("csv", text, cluster=Cluster(nodes))
    assert [(p.row, p.legal) for p in caught.value.problems] == [
        (4, "at most 2, the GPUs of 2x4+1x2 with enough memory"),
        (5, "at most 0, the GPUs of 2x4+1x2 with enough memory"),
        (6, "at most 10, the GPUs of 2x4+1x2"),
    ]
    kept = read("csv", text, cluster=Cluster(nodes), skip_bad=True).instance()
    assert kept.ids == ("1", "2")


def test_durations_and_walltimes_as_people_write_them(read: Reader) -> None:
    text = "submitted,wanted,seconds,limit\n0,1,1-00:00:30,1-12:00:00\n0,1,00:10:00,90m\n0,1,1h30m,\n"
    found = read("csv", text, columns={**NAMED, "walltime": "limit"}).table
    assert found["duration"].to_list() == [86430, 600, 5400]
    assert found["walltime"].to_list() == [129600, 5400, None]
    for bad in ("1:99:00", "-5", "0", "nan", "soon"):
        with pytest.raises(
            RowErrors, match=rf"seconds = '{bad}': .*expected: a finite number of seconds > 0, or HH:MM:SS"
        ):
            read("csv", f"submitted,wanted,seconds\n0,1,{bad}\n", columns=NAMED)
        with pytest.raises(RowErrors, match=rf"limit = '{bad}'"):
            read("csv", f"submitted,wanted,seconds,limit\n0,1,9,{bad}\n", columns={**NAMED, "walltime": "limit"})


def test_dates_with_the_year_first_may_have_slashes(read: Reader) -> None:
    text = "submitted,wanted,seconds\n2026/03/02 09:00:30,1,60\n2026/03/02T09:00,1,30\n"
    assert read("csv", text, columns=NAMED).table["arrival"].to_list() == [30, 0]


RAN = "id,arrival,gpus,start,end,duration,status,user\n"
TIMES = {name: name for name in ("id", "arrival", "gpus", "start", "end", "status", "user")}


def test_start_and_end_say_what_ran_and_how_long(read: Reader) -> None:
    day = "2026/03/02 09"
    text = (
        RAN
        + f"100_1,{day}:00:00,4,{day}:00:10,{day}:01:10,70,FAILED,ada\nb,{day}:00:05,2,{day}:00:20,{day}:00:50,31,,\n"
    )
    text += f"c,{day}:00:01,9,,{day}:00:09,,CANCELLED,bob\nd,{day}:00:01,9,{day}:00:08,,,RUNNING,bob\n"
    text += f"e,{day}:00:02,9,{day}:00:08,{day}:00:08,0,FAILED,bob\n"
    found = read("csv", text, columns={**TIMES, "duration": "duration"}, cluster=None)
    assert found.table.select("id", "arrival", "duration", "status", "ran").rows() == [
        ("100_1", 0, 60, "FAILED", [[10, 70]]),
        ("b", 5, 30, None, [[20, 50]]),
    ]
    assert found.cluster == Cluster.parse("1x6")
    parameters = found.recipe["parameters"]
    assert parameters["left_out"] == {"never ran": 1, "not ended": 1, "ran for 0 s": 1}
    assert parameters["said"][0] == (
        "1 of 2 rows state another duration than end - start, the first in row 2: 70 s, not 60 s; end - start is used"
    )
    assert read("csv", text, columns=TIMES).table["duration"].to_list() == [60, 30]


def test_a_start_with_a_duration_needs_no_end(read: Reader) -> None:
    columns = {name: name for name in ("arrival", "gpus", "start", "duration")}
    assert read("csv", RAN + "a,0,1,5,,10,,\n", columns=columns).table["ran"].to_list() == [[[5, 15]]]
    with pytest.raises(RowErrors, match="row 3, duration = '': missing"):
        read("csv", RAN + "a,0,1,5,,10,,\nb,0,1,5,,,,\n", columns=columns)


def test_starts_and_ends_that_cannot_be(read: Reader) -> None:
    with pytest.raises(RowErrors, match=r"end = '4': before the start .expected: a time from 5 on"):
        read("csv", RAN + "a,0,1,5,4,,,\n", columns=TIMES)
    unix = 1_700_000_000
    with pytest.raises(RowErrors, match=r"start = '0': on another clock .*empty: none"):
        read("csv", RAN + f"a,{unix},1,0,{unix + 9},,,\n", columns=TIMES)
    with pytest.raises(RowErrors, match=r"start = '5': .*a date-time"):
        read("csv", RAN + "a,2026-03-02,1,5,2026-03-03,,,\n", columns=TIMES)
    with pytest.raises(
        InputError, match=r"which column is end.*--columns arrival=arrival,gpus=gpus,start=start,end=end"
    ):
        read("csv", RAN, columns={"arrival": "arrival", "gpus": "gpus", "start": "start"})
    asked = r"which column is arrival and which is .*--columns arrival=Queued,gpus=GPUs,start=Launch,end=Finish with"
    with pytest.raises(InputError, match=asked):
        read("csv", "Queued,GPUs,Launch,Finish\n0,1,0,9\n")


def test_a_bad_row_does_not_own_its_id(read: Reader) -> None:
    text = "arrival,gpus,duration,id\n1,1,-10,A\n2,99,10,A\n3,1,10,A\n4,2,5,B\n5,1,7,A\n"
    found = read("csv", text, skip_bad=True)  # too short, too wide, fine, fine, a duplicate
    assert found.table.select("id", "arrival").rows() == [("A", 3.0), ("B", 4.0)]
    assert found.skipped_rows == 3
    with pytest.raises(RowErrors) as caught:
        read("csv", text)
    assert [(p.row, p.field) for p in caught.value.problems] == [(2, "duration"), (3, "gpus"), (6, "id")]
    assert caught.value.problems[-1].legal == "a name that line 4 does not have"


def test_what_no_instance_can_hold_is_a_bad_row_of_the_file(read: Reader) -> None:
    text = "submitted,wanted,seconds,prio\n0,1,5,\n\n1,1,1e-13,1\n2,1,2e18,1\n3,1,6,1e-19\n"
    columns = {**NAMED, "weight": "prio"}
    with pytest.raises(RowErrors, match=r"log\.csv: 3 of 4 rows") as caught:
        read("csv", text, columns=columns)
    assert [(p.row, p.field, p.value, p.message) for p in caught.value.problems] == [
        (4, "seconds", "1e-13", "too short"),
        (5, "seconds", "2e18", "too long"),
        (6, "prio", "1e-19", "too small"),
    ]
    assert read("csv", text, columns=columns, skip_bad=True).instance().ids == ("1",)
    with pytest.raises(RowErrors, match="row 1, total_steps = '2e18': too many"):
        read("gavel", "A3C\tcmd\td\t-n\t1\t2e18\t1\t1\t-1\t0\n")
