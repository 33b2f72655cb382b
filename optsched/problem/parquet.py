"""Parquet, read and written by polars: its length and its rows are looked at before, and what fails is one line."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from optsched.errors import InputError
from optsched.problem.atomic_files import atomic_path, read_bytes
from optsched.problem.documents import parse_json

FEW_ROWS, ROWS_A_BYTE = 100_000, 16  # times and ids of rows differ: no honest file holds more in a byte


def write_parquet(table: pl.DataFrame, path: str | os.PathLike[str], metadata: dict[str, str]) -> None:
    """Write a table with its key-value ``metadata``, whole or not at all; `InputError` when it cannot be."""
    with atomic_path(path) as temporary:
        try:
            table.write_parquet(temporary, metadata=metadata)
        except pl.exceptions.ComputeError as error:  # so it says that the disk is full
            number = re.search(r"\(os error (\d+)\)", str(error))
            raise OSError(int(number[1]), os.strerror(int(number[1]))) if number else OSError(str(error)) from None


def write_headed(table: pl.DataFrame, path: str | os.PathLike[str], header: Mapping[str, Any]) -> None:
    """Write a table with a JSON ``header`` under the name of its format, ``NAME/VERSION``."""
    write_parquet(table, path, {header["format"].partition("/")[0]: json.dumps(header)})


def read_headed(path: str | os.PathLike[str], form: str, wrong: str) -> tuple[dict[str, Any], pl.DataFrame]:
    """(header, table) of a file that `write_headed` wrote; `InputError` that says ``wrong`` for another format."""
    metadata, table = read_parquet(path, path, form)
    header = parse_json(metadata.get(form.partition("/")[0], "null").encode(), path, form)
    if not isinstance(header, dict) or header.get("format") != form:
        raise InputError(wrong, file=path, legal=f"format {form}")
    return header, table


def read_parquet(
    source: str | os.PathLike[str] | bytes, path: str | os.PathLike[str], legal: str
) -> tuple[dict[str, str], pl.DataFrame]:
    """(key-value metadata, table) of a Parquet file, or of its content where that has been read already.

    Raises `InputError`: no such file, longer than 2 GiB, no Parquet, damaged, or a footer that claims more rows than so many
    bytes hold: more than 100,000 and 16 a byte.
    """
    content = source if isinstance(source, bytes) else read_bytes(source)
    metadata = parquet_metadata(content, path, legal)
    try:
        rows = pl.scan_parquet(io.BytesIO(content)).select(pl.len()).collect().item()  # of the footer: nothing is read
        most = max(FEW_ROWS, ROWS_A_BYTE * len(content))
        if rows > most:
            raise InputError(f"claims {rows} rows in {len(content)} bytes", file=path, legal=f"at most {most} rows")
        return metadata, pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise _damaged(path, legal) from None


def parquet_metadata(content: bytes, path: str | os.PathLike[str], legal: str) -> dict[str, str]:
    """The key-value metadata of the footer; `InputError` where there is none that can be read."""
    try:
        return pl.read_parquet_metadata(io.BytesIO(content))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise _damaged(path, legal) from None


def _damaged(path: str | os.PathLike[str], legal: str) -> InputError:
    return InputError("not a Parquet file, or a truncated one, or one that is damaged", file=path, legal=legal)
