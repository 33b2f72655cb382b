"""Text tables and checks of their columns: encodings, what is legal, what is reported, and that every bad row is found."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, strategies as st
from refusals import one_line

from optsched.errors import InputError, RowErrors
from optsched.io.traces.rows import Rows, offered_gpus, seconds_of_date_times
from optsched.io.traces.text_table import TextTable, read_text_table
from optsched.problem.cluster import Cluster, NodeGroup

# -- The text layer: encodings, line ends, quotes, and line numbers that point into the file ------------------------------


Read = Callable[..., TextTable]


@pytest.fixture
def table_of(written: Callable[..., Path]) -> Read:
    return lambda content, **options: read_text_table(written(content, "log.csv"), **options)


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n1,2\n3,4\n",
        b"a,b\n1,2\n3,4",
        b"a,b\r\n1,2\r\n3,4\r\n",
        b"a,b\r1,2\r3,4\r",
        b"\xef\xbb\xbfa,b\n1,2\n3,4\n",
        b' "a" ,b\n1,2\n"3",4\n'.replace(b' "a" ', b'"a"'),
    ],
    ids=["plain", "no last line end", "crlf", "cr", "bom", "quotes"],
)
def test_every_way_to_write_the_same_table(table_of: Read, content: bytes) -> None:
    table = table_of(content)
    assert table.fields.rows() == [("1", "2"), ("3", "4")]
    assert table.fields.columns == ["a", "b"]
    assert table.line.to_list() == [2, 3]
    assert table.problems == ()
    assert table.sha256 == hashlib.sha256(content).hexdigest()


def test_blank_lines_are_no_rows_but_count_as_lines(table_of: Read) -> None:
    table = table_of(b"\na,b\n\n1,2\n   \n3,4\n\n\n")
    assert table.fields.rows() == [("1", "2"), ("3", "4")]
    assert table.line.to_list() == [4, 6]


def test_quotes_hide_separators_and_line_ends(table_of: Read) -> None:
    table = table_of(b'a,b\n"x, y",2\n"two\nlines",4\n5,"say ""six"""\n')
    assert table.fields.rows() == [("x, y", "2"), ("two\nlines", "4"), ("5", 'say "six"')]
    assert table.line.to_list() == [2, 3, 5]  # the record that begins on line 3 ends on line 4


def test_an_open_quote_is_an_error_of_its_line(table_of: Read) -> None:
    with pytest.raises(InputError, match="row 3: the quotes do not match"):
        table_of(b'a,b\n1,2\n"3,4\n5,6\n')


@pytest.mark.parametrize("quoted", [False, True])
def test_ragged_rows_are_problems_and_do_not_shift_the_others(table_of: Read, quoted: bool) -> None:
    last = b'"7",8\n' if quoted else b"7,8\n"
    table = table_of(b"a,b\n1\n3,4\n5,6,7\n" + last)
    assert [(p.row, p.field, p.value, p.legal) for p in table.problems] == [
        (2, "columns", 1, "2 fields a row"),
        (4, "columns", 3, "2 fields a row"),
    ]
    assert table.fields.rows()[1] == ("3", "4")
    assert table.fields.rows()[3] == ("7", "8")


def test_bytes_that_are_not_utf8_are_problems_of_their_rows(table_of: Read) -> None:
    table = table_of(b"a,b\n1,2\n\xff,4\n5,\xc3\n7,8\n")
    assert [(p.row, p.message) for p in table.problems] == [(3, "not UTF-8"), (4, "not UTF-8")]
    assert table.fields.rows()[0] == ("1", "2")
    with pytest.raises(InputError, match="row 1: not UTF-8"):
        table_of(b"\xff,b\n1,2\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\n  \n", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"\xc2\xa0\n", "the file is empty"),
        (b'""\n', "the file is empty"),
        ("a,b\n1,2\n".encode("utf-16"), "not a text file in UTF-8"),
        (b"PAR1\x00\x01", "not a text file in UTF-8"),
        (b"a,a\n1,2\n", "a: the header names a column twice"),
    ],
)
def test_files_that_are_no_tables(table_of: Read, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        table_of(content)


def test_a_folder_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_text_table(tmp_path)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_the_likeliest_of_the_header(table_of: Read, separator: str) -> None:
    content = separator.join(["a", "b", "c d"]) + "\n" + separator.join(["1", "2", "3"]) + "\n"
    table = table_of(content.encode(), separator=None)
    assert table.fields.columns == ["a", "b", "c d"]
    assert table.fields.rows() == [("1", "2", "3")]


def test_without_header_the_commonest_width_tells_the_names(table_of: Read) -> None:
    content, names = b'1\t2\n3\t4\n5\t6\t"7\n', {2: ("x", "y"), 3: ("x", "y", "z")}
    table = table_of(content, separator="\t", names=names)
    assert table.fields.columns == ["x", "y"]
    assert table.line.to_list() == [1, 2, 3]
    assert [p.row for p in table.problems] == [3]
    with pytest.raises(InputError, match=r"columns = 2: wrong dialect\?.*rows of 3, 4 tab-separated columns"):
        table_of(content, separator="\t", names={3: ("x", "y", "z"), 4: ("a", "b", "c", "d")})


# -- Checks of columns: what is legal, what is reported, and that every bad row is found ----------------------------------


def rows_of(**columns: list[str]) -> Rows:
    count = len(next(iter(columns.values())))
    line = pl.Series("line", range(2, count + 2), dtype=pl.Int64)
    return Rows(TextTable("log.csv", pl.DataFrame(columns), line, (), ""))


def problems(rows: Rows) -> list[tuple[int, str, object, str]]:
    with pytest.raises(RowErrors) as caught:
        rows.raise_problems()
    return [(p.row, p.field, p.value, p.message) for p in caught.value.problems]


LEGAL = ["1", " 2 ", "3.5", "1e3", "+4", "0.0000001"]
NO_NUMBERS = ["", " ", "x", "nan", "NaN", "inf", "-inf", "1e999", "1,5", "0x10", "1_000", "--1"]


def test_numbers_are_read_as_python_reads_them() -> None:
    rows = rows_of(t=LEGAL)
    assert rows.positive("t").to_list() == [float(text) for text in LEGAL]
    rows.raise_problems()


@pytest.mark.parametrize("text", [*NO_NUMBERS, "0", "-1", "-0.0"])
def test_what_is_no_positive_number(text: str) -> None:
    rows = rows_of(t=["1", text, "2"])
    assert rows.positive("t").to_list() == [1.0, None, 2.0]
    message = "missing" if not text.strip() else "invalid"
    assert problems(rows) == [(3, "t", text, message)]
    assert rows.good.to_list() == [True, False, True]


@pytest.mark.parametrize("text", [*NO_NUMBERS, "0", "-3", "1.5", "1e17"])
def test_what_is_no_gang(text: str) -> None:
    rows = rows_of(g=["8", text, "2.0"])
    assert rows.gang("g").to_list() == [8, None, 2]
    assert [p[0] for p in problems(rows)] == [3]


def test_zero_is_a_non_negative_number() -> None:
    rows = rows_of(t=["0", "-0", "3", "-1"])
    assert rows.non_negative("t").to_list() == [0.0, 0.0, 3.0, None]
    assert problems(rows) == [(5, "t", "-1", "invalid")]


def test_an_optional_field_may_be_empty_but_not_wrong() -> None:
    rows = rows_of(w=["", "2", "x"])
    assert rows.number("w", least=0, required=False).to_list() == [None, 2.0, None]
    assert problems(rows) == [(4, "w", "x", "invalid")]


def test_a_row_is_reported_with_the_first_problem_of_each_field_and_in_the_order_of_the_file() -> None:
    rows = rows_of(a=["1", "x", "1", ""], b=["y", "y", "1", "1"])
    rows.positive("a")
    rows.positive("b")
    assert [(row, field) for row, field, _, _ in problems(rows)] == [(2, "b"), (3, "a"), (3, "b"), (5, "a")]
    rows.number("a", above=2)  # of a field that is bad already nothing more
    assert [(row, field) for row, field, *_ in problems(rows)] == [
        (2, "b"),
        (2, "a"),
        *[(3, "a"), (3, "b")],
        (4, "a"),
        (5, "a"),
    ]


def test_every_bad_row_is_found_and_counted() -> None:
    rows = rows_of(a=["0"] * 700 + ["1"] * 300)
    rows.positive("a")
    with pytest.raises(RowErrors) as caught:
        rows.raise_problems()
    assert len(caught.value.problems) == 700
    lines = str(caught.value).splitlines()
    assert "700 of 1000 rows" in lines[0]
    assert "log.csv" in lines[0]
    assert len(lines) == 22
    assert "row 2, a = '0'" in lines[1]
    assert "expected: a finite number > 0" in lines[1]


def test_ids_are_unique_and_the_first_owner_is_named() -> None:
    rows = rows_of(id=["a", "b", "a", "", "b", "c", "a"])
    assert rows.unique("id").to_list() == ["a", "b", "a", None, "b", "c", "a"]
    rows.reject_duplicates()
    with pytest.raises(RowErrors) as caught:
        rows.raise_problems()
    assert [(p.row, p.message, p.legal) for p in caught.value.problems] == [
        (4, "duplicate id", "a name that line 2 does not have"),
        (5, "missing", "a text that is not empty"),
        (6, "duplicate id", "a name that line 3 does not have"),
        (8, "duplicate id", "a name that line 2 does not have"),
    ]


def test_missing_columns_name_what_is_there_and_what_is_wanted(table_of: Read) -> None:
    told = ("missing: time, length", "there are: when, gpus", "expected: a header with time, gpus, length")
    with one_line(*told):
        Rows(table_of("when,gpus\n1,2\n")).require(("time", "gpus", "length"))


DATE_TIMES = [
    ("2017-10-09 07:01:55", "2017-10-09T07:01:55+00:00"),
    ("2017-10-09T07:01:55", "2017-10-09T07:01:55+00:00"),
    ("2017-10-09 07:01", "2017-10-09T07:01:00+00:00"),
    ("2017-10-09", "2017-10-09T00:00:00+00:00"),
    ("2017-10-09 07:01:55.250", "2017-10-09T07:01:55.250+00:00"),
    ("2017-10-09T07:01:55Z", "2017-10-09T07:01:55+00:00"),
    ("2017-10-09 07:01:55+02:00", "2017-10-09T07:01:55+02:00"),
    ("2017-10-09 07:01:55-0330", "2017-10-09T07:01:55-03:30"),
    ("2017-10-09 07:01:55.5 +0545", "2017-10-09T07:01:55.500+05:45"),
]


@pytest.mark.parametrize(("text", "same"), DATE_TIMES)
def test_date_times_agree_with_the_standard_library(text: str, same: str) -> None:
    assert seconds_of_date_times(pl.Series([text])).to_list() == [datetime.datetime.fromisoformat(same).timestamp()]


@given(st.lists(st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(2100, 1, 1)), min_size=1, max_size=5))
def test_any_date_time_survives(moments: list[datetime.datetime]) -> None:
    expected = [moment.replace(tzinfo=datetime.UTC).timestamp() for moment in moments]
    found = seconds_of_date_times(pl.Series([str(moment) for moment in moments])).to_list()
    assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("text", ["yesterday", "2017-02-30 00:00:00", "2017-10-09 25:00:00", "12", "07:01:55", "2017"])
def test_what_is_no_date_time(text: str) -> None:
    rows = rows_of(t=["2017-10-09 07:01:55", text])
    assert rows.date_times("t").to_list()[1] is None
    assert problems(rows) == [(3, "t", text, "invalid")]


def test_gangs_wider_than_the_cluster_name_what_it_offers() -> None:
    rows = rows_of(g=["4", "64", "65", "128"])
    gpus = rows.gang("g")
    rows.reject_wide(gpus, "g", Cluster.parse("8x8"), rows.good)
    with pytest.raises(RowErrors) as caught:
        rows.raise_problems()
    assert [(p.row, p.value, p.legal) for p in caught.value.problems] == [
        (4, "65", "at most 64, the GPUs of 8x8"),
        (5, "128", "at most 64, the GPUs of 8x8"),
    ]


def test_memory_limits_what_a_cluster_offers() -> None:
    groups = (
        NodeGroup(count=2, gpus=4, gpu_memory=16e9),
        NodeGroup(count=1, gpus=8, gpu_memory=32e9),
        NodeGroup(gpus=1),
    )
    memory = pl.Series([None, 0.0, 16e9, 17e9, 33e9])
    assert offered_gpus(Cluster(groups), len(memory), memory).to_list() == [17, 17, 17, 9, 1]
