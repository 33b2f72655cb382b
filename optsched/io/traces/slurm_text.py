"""Text that ``sacct`` prints with ``-P`` or ``-p``, as records: any delimiter, any list of fields, nothing is quoted.

Names of jobs may hold the delimiter and line ends. A row with too many fields is joined again if one reading of it fits
(`optsched.io.traces.slurm_fields`); a row with too few goes on in the next lines.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from optsched.errors import InputError, RowProblem
from optsched.io.traces.slurm_fields import FIELDS, FREE, READ, is_legal, joined_again, with_commas_hidden
from optsched.io.traces.text_table import TextTable

RIGHT_EXPORT = (
    "TZ=UTC SLURM_TIME_FORMAT=%s sacct -a -D -P -S 2026-01-01 -E now --format=JobIDRaw,JobID,State,Submit,Eligible,Start,"
    "End,ElapsedRaw,Suspended,TimelimitRaw,NNodes,NCPUS,ReqTRES,AllocTRES,Partition,User,Account,NodeList,Flags,Reason,"
    "JobName > sacct.txt"
)
MOST_LINES = 8  # of one row
DAMAGED = "wrong number of fields"


def records(path: Path, text: str, not_utf8: Sequence[int], digest: str) -> TextTable:
    """Return the fields of an export that the dialect reads, one row a record.

    Parameters
    ----------
    path
        The file, for errors.
    text
        Its text.
    not_utf8
        Lines that are not UTF-8.
    digest
        Digest of the file.

    Raises
    ------
    InputError
        If the text is no export of ``sacct``, or one without a header or a delimiter.
    """
    lines = text.split("\n")
    first = next(k for k, line in enumerate(lines) if line.strip())
    delimiter, names = _header(path, lines, first)
    at = {name: names.index(name) for name in READ if name in names}
    columns: dict[str, list[str]] = {name: [] for name in at}
    rows: list[int] = []
    problems: list[RowProblem] = []
    broken = set(not_utf8)
    split = _quoted if _is_quoted(text, delimiter) else _plain
    for row, fields in split(lines[first + 1 :], names, delimiter):
        line = first + 2 + row
        if fields is None:
            problems.append(RowProblem(line, "columns", None, f"{len(names)} fields{_advice(names)}", DAMAGED))
        elif line in broken and any("\ufffd" in fields[k] for k in at.values()):
            problems.append(RowProblem(line, "bytes", "?", "UTF-8 text", "not UTF-8"))
        rows.append(line)
        for name, k in at.items():
            columns[name].append(fields[k] if fields is not None else "")
    table = pl.DataFrame({name: pl.Series(values, dtype=pl.String) for name, values in columns.items()})
    return TextTable(str(path), table, pl.Series("line", rows, dtype=pl.Int64), tuple(problems), digest)


def _advice(names: Sequence[str]) -> str:
    return "" if names[-1] == "JobName" else "; put JobName last in --format, or export with --json"


def _header(path: Path, lines: Sequence[str], first: int) -> tuple[str, list[str]]:
    head = lines[first].strip(" ")
    words = re.findall(r"[A-Za-z][\w]*", head)
    if not any(word.lower() in ("jobid", "jobidraw") for word in words):
        if re.match(r"\d+(_\S+|\+\d+)?(\.\w+)?\W", head):
            why, legal = "the export has no header (-n, --noheader): which column is which?", "an export with a header"
        else:
            why, legal = "this is no export of sacct", "the output of sacct -P or sacct --json"
        raise InputError(why, file=path, row=first + 1, legal=f"{legal}: {RIGHT_EXPORT}")
    gaps = re.split(r"[A-Za-z][\w]*", head.replace('"', ""))[1:-1]
    if any(gap.strip(" ") == "" for gap in gaps) or len(set(gaps)) > 1:
        why = "columns of fixed width cut their texts"
        raise InputError(why, file=path, row=first + 1, legal=f"sacct with -P: {RIGHT_EXPORT}")
    proper = {name.lower(): name for name in FIELDS}
    return gaps[0] if gaps else "|", [proper.get(word.lower(), word) for word in words]


def _is_quoted(text: str, delimiter: str) -> bool:
    # sacct quotes nothing; a program that has read its output and written it again may.
    if len(delimiter) > 1 or '"' not in text:
        return False
    edge = re.escape(delimiter)
    return re.search(rf'(?:^|{edge})"[^"\n]*"(?:{edge}|$)', text, re.MULTILINE) is not None


Split = Iterator[tuple[int, list[str] | None]]  # position of the first line, the fields; None: they do not fit


def _quoted(lines: Sequence[str], names: Sequence[str], delimiter: str) -> Split:
    reader = csv.reader(io.StringIO("\n".join(lines), newline=""), delimiter=delimiter)
    begin = 0
    try:
        for fields in reader:
            if fields and fields != list(names):
                yield begin, fields if len(fields) == len(names) else None
            begin = reader.line_num
    except csv.Error:
        yield begin, None


def _plain(lines: Sequence[str], names: Sequence[str], delimiter: str) -> Split:
    header = [name.lower() for name in names]
    free_end = names[-1] in FREE and names[0] in ("JobID", "JobIDRaw")
    row = 0
    while row < len(lines):
        begin = row
        fields, row = _row_at(lines, begin, names, delimiter)
        if fields is None:
            pieces = lines[begin].split(delimiter)
            damaged = len(pieces) >= len(names) or (len(pieces) > 1 and is_legal(names[0], pieces[0]))
            # behind a row whose name stands last, a line that does not begin with an id is the second line of the name
            if lines[begin].strip() and (damaged or not free_end or not begin):
                yield begin, None
        elif fields[0].lower() != header[0] or [field.lower() for field in fields] != header:
            yield begin, fields


def _row_at(lines: Sequence[str], begin: int, names: Sequence[str], delimiter: str) -> tuple[list[str] | None, int]:
    """Return the fields of the row that begins with a line, and the position of the line behind it."""
    text = lines[begin]
    for behind in range(begin + 1, begin + 1 + MOST_LINES):
        fields = _fitting(text, names, delimiter)
        if fields is not None:
            return fields, behind
        too_many = delimiter != "," and text.count(delimiter) >= len(names)
        if too_many or behind >= len(lines) or not lines[behind].strip():
            break
        if _fitting(lines[behind], names, delimiter) is not None:
            break
        text += "\n" + lines[behind]
    return None, begin + 1


def _fitting(text: str, names: Sequence[str], delimiter: str) -> list[str] | None:
    comma, count = delimiter == ",", len(names)
    fields = with_commas_hidden(text) if comma else text.split(delimiter)
    if len(fields) == count + 1 and not fields[-1]:  # -p: a delimiter behind the last field, too
        fields.pop()
    if len(fields) == count and (not comma or all(map(is_legal, names, fields))):
        return fields
    pieces = text.split(delimiter) if comma else fields
    return joined_again(pieces, names, delimiter) if len(pieces) >= count else None
