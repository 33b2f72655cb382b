"""The text layer: encodings, line ends, quotes, and line numbers that point into the file."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from optsched.errors import InputError
from optsched.io.traces.text_table import read_text_table


def write(folder: Path, content: bytes) -> Path:
    path = folder / "log.csv"
    path.write_bytes(content)
    return path


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
def test_every_way_to_write_the_same_table(tmp_path: Path, content: bytes) -> None:
    table = read_text_table(write(tmp_path, content))
    assert table.fields.rows() == [("1", "2"), ("3", "4")]
    assert table.fields.columns == ["a", "b"]
    assert table.line.to_list() == [2, 3]
    assert table.problems == ()
    assert table.sha256 == hashlib.sha256(content).hexdigest()


def test_blank_lines_are_no_rows_but_count_as_lines(tmp_path: Path) -> None:
    table = read_text_table(write(tmp_path, b"\na,b\n\n1,2\n   \n3,4\n\n\n"))
    assert table.fields.rows() == [("1", "2"), ("3", "4")]
    assert table.line.to_list() == [4, 6]


def test_quotes_hide_separators_and_line_ends(tmp_path: Path) -> None:
    table = read_text_table(write(tmp_path, b'a,b\n"x, y",2\n"two\nlines",4\n5,"say ""six"""\n'))
    assert table.fields.rows() == [("x, y", "2"), ("two\nlines", "4"), ("5", 'say "six"')]
    assert table.line.to_list() == [2, 3, 5]  # the record that begins on line 3 ends on line 4


def test_an_open_quote_is_an_error_of_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="row 3: the quotes do not match"):
        read_text_table(write(tmp_path, b'a,b\n1,2\n"3,4\n5,6\n'))


@pytest.mark.parametrize("quoted", [False, True])
def test_ragged_rows_are_problems_and_do_not_shift_the_others(tmp_path: Path, quoted: bool) -> None:
    last = b'"7",8\n' if quoted else b"7,8\n"
    table = read_text_table(write(tmp_path, b"a,b\n1\n3,4\n5,6,7\n" + last))
    assert [(p.row, p.field, p.value, p.legal) for p in table.problems] == [
        (2, "columns", 1, "2 fields a row"),
        (4, "columns", 3, "2 fields a row"),
    ]
    assert table.fields.rows()[1] == ("3", "4")
    assert table.fields.rows()[3] == ("7", "8")


def test_bytes_that_are_not_utf8_are_problems_of_their_rows(tmp_path: Path) -> None:
    table = read_text_table(write(tmp_path, b"a,b\n1,2\n\xff,4\n5,\xc3\n7,8\n"))
    assert [(p.row, p.message) for p in table.problems] == [(3, "not UTF-8"), (4, "not UTF-8")]
    assert table.fields.rows()[0] == ("1", "2")
    with pytest.raises(InputError, match="row 1: not UTF-8"):
        read_text_table(write(tmp_path, b"\xff,b\n1,2\n"))


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
def test_files_that_are_no_tables(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_text_table(write(tmp_path, content))


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.csv: no such file"):
        read_text_table(tmp_path / "nothing.csv")
    with pytest.raises(InputError, match="cannot read"):
        read_text_table(tmp_path)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_the_likeliest_of_the_header(tmp_path: Path, separator: str) -> None:
    content = separator.join(["a", "b", "c d"]) + "\n" + separator.join(["1", "2", "3"]) + "\n"
    table = read_text_table(write(tmp_path, content.encode()), separator=None)
    assert table.fields.columns == ["a", "b", "c d"]
    assert table.fields.rows() == [("1", "2", "3")]


def test_without_header_the_commonest_width_tells_the_names(tmp_path: Path) -> None:
    names = {2: ("x", "y"), 3: ("x", "y", "z")}
    path = write(tmp_path, b'1\t2\n3\t4\n5\t6\t"7\n')
    table = read_text_table(path, separator="\t", names=names)
    assert table.fields.columns == ["x", "y"]
    assert table.line.to_list() == [1, 2, 3]
    assert [p.row for p in table.problems] == [3]
    with pytest.raises(InputError, match=r"columns = 2: wrong dialect\?.*rows of 3, 4 tab-separated columns"):
        read_text_table(path, separator="\t", names={3: ("x", "y", "z"), 4: ("a", "b", "c", "d")})
