"""Text files as tables of strings, with the line number of every row.

Every reader of traces starts here: bytes -> UTF-8 text -> lines -> fields, without a Python loop over rows. Nothing
is interpreted yet; `optsched.io.traces.rows` does that. Accepted: gzip and Zstandard, a UTF-8 byte order mark, CRLF, blank
lines and a last line without line end.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from optsched.errors import InputError, RowProblem
from optsched.io.traces.compressed import plain
from optsched.problem.atomic_files import LONGEST, read_bytes
from optsched.problem.memory import require_room


@dataclass(frozen=True)
class TextTable:
    """Fields as text, one row a record.

    ``fields`` has one String column a name, ``line`` the 1-based line number of each row (a header counts),
    ``problems`` the rows with a wrong number of fields or bytes that are not UTF-8, ``sha256`` the file's bytes.
    """

    file: str
    fields: pl.DataFrame
    line: pl.Series
    problems: tuple[RowProblem, ...]
    sha256: str

    @classmethod
    def of_jobs(cls, file: str, columns: Mapping[str, Sequence[str]], sha256: str) -> TextTable:
        """Return a table of columns that are no lines of the file: rows are counted from 1.

        Parameters
        ----------
        file
            Name of the file.
        columns
            Values of each column, all of equal length.
        sha256
            Digest of the file.
        """
        fields = pl.DataFrame({name: pl.Series(values, dtype=pl.String) for name, values in columns.items()})
        return cls(file, fields, pl.Series("line", range(1, fields.height + 1), dtype=pl.Int64), (), sha256)


def read_utf8(path: str | os.PathLike[str]) -> tuple[str, str]:
    """Read text as `read_text`, from a file of which nothing can be skipped.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    InputError
        If a line is not UTF-8; the message names the first one.
    """
    text, not_utf8, digest = read_text(path)
    if not_utf8:
        raise InputError("not UTF-8", file=path, row=not_utf8[0], legal="UTF-8 text")
    return text, digest


def read_text(path: str | os.PathLike[str]) -> tuple[str, list[int], str]:
    r"""Return the text of a file with ``\n`` line ends, the line numbers that are not UTF-8, and sha256 of the bytes.

    A file in gzip or Zstandard is decompressed; the digest is that of the bytes of the file itself. Bytes that are not
    UTF-8 become U+FFFD, so that the rest of the file can still be read and checked.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    InputError
        If the file is missing, cannot be read or decompressed, is empty, or is not text.
    """
    raw = read_bytes(path, LONGEST)
    digest = hashlib.sha256(raw).hexdigest()
    raw = plain(raw, path, LONGEST)
    require_room(len(raw), path)
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\x00" in raw[:65536]:
        raise InputError("this is not a text file in UTF-8", file=path, legal="UTF-8 text")
    raw = raw.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if not raw.strip():
        raise InputError("the file is empty", file=path, legal="at least one row")
    try:
        return raw.decode(), [], digest
    except UnicodeDecodeError:
        lines = enumerate(raw.split(b"\n"), 1)
        wrong = [number for number, line in lines if line.decode(errors="ignore").encode() != line]
        return raw.decode(errors="replace"), wrong, digest


def read_text_table(
    path: str | os.PathLike[str],
    *,
    separator: str | None = ",",
    names: Mapping[int, Sequence[str]] | None = None,
    expected: str = "a text file with separators",
) -> TextTable:
    """Read a separated file.

    Parameters
    ----------
    path
        The file.
    separator
        Separator between fields; None takes the likeliest of ``, ; tab |`` from the first line.
    names
        For files without header: the column names by number of columns (most rows decide). Such files have no
        quotes. None: the first line is the header.
    expected
        Text of the format that a user who gives JSON should give instead.

    Raises
    ------
    InputError
        If the file is missing, empty, binary or JSON, if a header names a column twice, or if the number of columns
        is unknown.
    """
    text, not_utf8, digest = read_text(path)
    if text.lstrip().startswith(("[", "{")):
        raise InputError("this is JSON, not a table", file=path, legal=expected)
    _refuse_swf(path, text)
    first = text.lstrip("\n").partition("\n")[0]
    separator = separator or max(",;\t|", key=first.count)
    if names is None and '"' in text:
        line, width, fields = _split_quoted(path, text, separator)
    else:
        line, width, fields = _split_plain(text, separator)
    if not fields.height:  # the file has only blanks
        raise InputError("the file is empty", file=path, legal="at least one row")
    if names is None:
        header = [str(name).strip() for name in fields.row(0)[: width[0]]]
        for name in header:
            if header.count(name) > 1:
                raise InputError("the header names a column twice", file=path, row=1, field=name, legal="unique names")
        line, width, fields = line[1:], width[1:], fields[1:]
    else:
        common = int(width.value_counts(sort=True, name="rows")[width.name][0])
        if common not in names:
            why = "wrong dialect? no header is expected and the number of columns is unknown"
            kind = {",": "comma", "\t": "tab"}.get(separator, repr(separator))
            legal = f"rows of {', '.join(map(str, sorted(names)))} {kind}-separated columns"
            raise InputError(why, file=path, field="columns", value=common, legal=legal)
        header = list(names[common])
    absent = pl.Series([None] * fields.height, dtype=pl.String)
    fields = pl.DataFrame({name: fields.to_series(k) if k < fields.width else absent for k, name in enumerate(header)})
    problems = [
        RowProblem(row, "columns", count, f"{len(header)} fields a row", "wrong number of fields")
        for row, count in zip(line.filter(width != len(header)), width.filter(width != len(header)), strict=True)
    ]
    # a bad header, or a bad line inside a quoted record, cannot be skipped
    for row in sorted(set(not_utf8) - set(line.to_list())) if not_utf8 else ():
        raise InputError("not UTF-8", file=path, row=row, legal="UTF-8 text")
    problems += [RowProblem(row, "bytes", "?", "UTF-8 text", "not UTF-8") for row in not_utf8]
    return TextTable(str(path), fields, line, tuple(problems), digest)


SWF_COLUMNS = 18
_SWF_HEADER = re.compile(
    r";\s*(Version|Computer|UnixStartTime|MaxJobs|MaxRecords|MaxNodes|MaxProcs|Installation)\b", re.I
)


def is_swf(lines: Iterable[str]) -> bool:
    """Return True for the Standard Workload Format: comments after semicolons, then rows of at least 18 numbers and blanks.

    Parameters
    ----------
    lines
        The first lines of a file, or all.
    """
    comments = False
    for line in lines:
        fields = line.split(maxsplit=SWF_COLUMNS)
        if fields and not line.startswith(";"):
            return len(fields) >= SWF_COLUMNS and all(_NUMBER.fullmatch(field) for field in fields[:SWF_COLUMNS])
        comments = comments or bool(_SWF_HEADER.match(line))
    return comments


def _refuse_swf(path: str | os.PathLike[str], text: str) -> None:
    if is_swf(line[0] for line in re.finditer(r"[^\n]*\n?", text)):
        raise InputError("this looks like the Standard Workload Format (SWF)", file=path, legal=f"swf:{path}")


_NUMBER = re.compile(r"[-+]?\d+(\.\d*)?")


def _split_plain(text: str, separator: str) -> tuple[pl.Series, pl.Series, pl.DataFrame]:
    # Vectorised: 82,000 rows of five fields take about 0.05 s.
    lines = pl.DataFrame({"text": text.split("\n")}).with_row_index("line", offset=1)
    lines = lines.filter(pl.col("text").str.strip_chars() != "")
    width = lines["text"].str.count_matches(separator, literal=True).cast(pl.Int64) + 1
    widest = int(width.max() or 1)  # type: ignore[arg-type]
    fields = lines["text"].str.split_exact(separator, widest - 1).struct.unnest()
    return lines["line"].cast(pl.Int64), width, fields


def _split_quoted(path: str | os.PathLike[str], text: str, separator: str) -> tuple[pl.Series, pl.Series, pl.DataFrame]:
    # Quotes may hide separators and line ends, so the standard library's parser splits the records.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    records: list[list[str]] = []
    lines: list[int] = []
    begin = 1
    try:
        for record in reader:
            if len(record) > 1 or any(field.strip() for field in record):
                records.append(record)
                lines.append(begin)
            begin = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"the quotes do not match: {error}", file=path, row=begin, legal='"..." closed') from None
    width = pl.Series("width", [len(record) for record in records], dtype=pl.Int64)
    widest = max((len(record) for record in records), default=1)
    padded = [record + [None] * (widest - len(record)) for record in records]
    fields = pl.DataFrame(padded, schema=[(f"field_{k}", pl.String) for k in range(widest)], orient="row")
    return pl.Series("line", lines, dtype=pl.Int64), width, fields
