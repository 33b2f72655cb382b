"""The jobs of a JSON document as a table, read in pieces and by columns.

A list of a million jobs is cut into pieces of some megabytes. Each piece is parsed by pydantic's JSON reader, and each of
its columns is validated by the rules of one field. The memory for Python objects does not grow with the number of jobs.

The reader accepts nothing that the reader of whole documents refuses. If it meets anything unusual, it returns None, and the
whole document is read, which names every problem.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Annotated, Any, NamedTuple

import polars as pl
from pydantic import BaseModel, Field, TypeAdapter
from pydantic_core import from_json

from optsched.problem.documents import loads_once
from optsched.problem.job_table import COLUMNS

PIECE = 1 << 22  # bytes of a piece, at least
PLACEHOLDER = "optsched: the jobs are read by columns"  # in the place of the list of jobs
_LIST = re.compile(rb'"jobs"[ \t\n\r]*:[ \t\n\r]*(?=\[)')
_COMMA = re.compile(rb"[ \t\n\r]*,[ \t\n\r]*(?=\{)")


class Unusual(ValueError):
    """The jobs cannot be read by columns."""


class JobListReader:
    """The reader of lists of jobs.

    Parameters
    ----------
    model
        Model of one job; a rule of a job applies to one field.
    """

    def __init__(self, model: type[BaseModel]) -> None:
        fields = model.model_fields.items()
        self._usual = {name: field.default for name, field in fields}
        self._columns: Mapping[str, TypeAdapter[list[Any]]] = {
            name: TypeAdapter(list[Annotated[field.annotation, Field(), *field.metadata]])  # type: ignore[name-defined]
            for name, field in fields
        }

    def split(self, content: bytes) -> tuple[bytes, pl.DataFrame] | None:
        """Return a document with an empty list of jobs, and the table of its jobs; None if it must be read whole.

        Parameters
        ----------
        content
            Bytes of the document.
        """
        begin = _LIST.search(content)
        if begin is None or PLACEHOLDER.encode() in content:
            return None
        head, at, tables = content[: begin.end()], begin.end() + 1, list[pl.DataFrame]()
        try:
            for piece in _pieces(content, at):
                tables.append(self._table(piece))
                at = piece.end
            if loads_once(head + json.dumps(PLACEHOLDER).encode() + content[at:])["jobs"] != PLACEHOLDER:
                return None  # a list of the same name elsewhere
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        return head + b"[]" + content[at:], self._joined(tables)

    def _table(self, piece: _Piece) -> pl.DataFrame:
        """Return the table of the jobs of a piece; raise ValueError if they break a rule."""
        rows = piece.rows
        if not set(map(type, rows)) <= {dict}:
            raise Unusual
        names, stated = set[str]().union(*rows), sum(map(len, rows))
        if not names <= COLUMNS.keys() or (rows and not names):
            raise Unusual
        if piece.text.count(b":") != stated:  # if there is one colon for each key, no key is given twice
            loads_once(piece.text)
        complete = stated == len(names) * len(rows)
        columns = []
        for name in names:
            get = itemgetter(name)
            values = list(map(get, rows)) if complete else [row.get(name, self._usual[name]) for row in rows]
            columns.append(pl.Series(name, self._columns[name].validate_python(values, strict=True), COLUMNS[name]))
        return pl.DataFrame(columns)

    def _joined(self, tables: list[pl.DataFrame]) -> pl.DataFrame:
        """Return the table of all pieces; a job without an id is called by its position."""
        table = pl.concat(tables, how="diagonal")
        position = pl.int_range(1, pl.len() + 1).cast(pl.String)
        usual = {"id": position, **{name: pl.lit(value) for name, value in self._usual.items() if value is not None}}
        stated = (name for name in COLUMNS if name in table.columns)
        filled = (pl.col(name).fill_null(usual[name]) if name in usual else pl.col(name) for name in stated)
        return table.select(filled)


class _Piece(NamedTuple):
    """A part of a list: its text with brackets, its elements, and its end in the document."""

    text: bytes
    rows: list[Any]
    end: int


def _pieces(content: bytes, at: int) -> Iterator[_Piece]:
    """Yield the pieces of a list whose first element begins at a position; the last one ends behind the bracket.

    Texts of lists, joined by commas, are the text of a list. A cut within a text or behind the list leaves no list.
    """
    while (cut := _cut(content, at)) is not None:
        text = b"[%b]" % content[at : cut[0]]
        try:
            rows = _read(text)
        except ValueError:
            break
        yield _Piece(text, rows, cut[1])
        at = cut[1]
    rest = "[" + content[at:].decode()
    text = rest[: json.JSONDecoder().raw_decode(rest)[1]].encode()
    yield _Piece(text, _read(text), at + len(text) - 1)


def _read(text: bytes) -> Any:
    return from_json(text, allow_inf_nan=False, cache_strings="keys")


def _cut(content: bytes, at: int) -> tuple[int, int] | None:
    """Return the end of a piece and the begin of the next one; None if the rest is one piece."""
    at += PIECE
    while (brace := content.find(b"}", at)) >= 0:
        comma = _COMMA.match(content, brace + 1)
        if comma is not None:
            return brace + 1, comma.end()
        at = brace + 1
    return None
