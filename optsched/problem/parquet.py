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
from optsched.problem.memory import require_room

FEW_ROWS, ROWS_A_BYTE = 100_000, 16  # times and ids of rows differ: no honest file holds more in a byte

LEVEL = 1  # of zstd: schedules are written in two thirds of the time of level 3 and are 2 % longer


def write_parquet(table: pl.DataFrame, path: str | os.PathLike[str], metadata: dict[str, str]) -> None:
    """Write a table with metadata to a Parquet file, whole or not at all.

    Parameters
    ----------
    table
        Table to write.
    path
        File to write.
    metadata
        Key-value metadata of the footer.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with atomic_path(path) as temporary:
        try:
            table.write_parquet(temporary, metadata=metadata, compression_level=LEVEL)
        except pl.exceptions.ComputeError as error:  # so it says that the disk is full
            number = re.search(r"\(os error (\d+)\)", str(error))
            raise OSError(int(number[1]), os.strerror(int(number[1]))) if number else OSError(str(error)) from None


def write_headed(table: pl.DataFrame, path: str | os.PathLike[str], header: Mapping[str, Any]) -> None:
    """Write a table to a Parquet file with a JSON header in the metadata.

    Parameters
    ----------
    table
        Table to write.
    path
        File to write.
    header
        Header; its ``format``, ``NAME/VERSION``, decides the key.
    """
    write_parquet(table, path, {header["format"].partition("/")[0]: json.dumps(header)})


def read_headed(path: str | os.PathLike[str], form: str, wrong: str) -> tuple[dict[str, Any], pl.DataFrame]:
    """Return the header and the table of a file that `write_headed` wrote.

    Parameters
    ----------
    path
        File to read.
    form
        Format that the header must name.
    wrong
        Message of the error for another format.

    Raises
    ------
    InputError
        If the file has another format, or cannot be read.
    """
    metadata, table = read_parquet(path, path, form)
    header = parse_json(metadata.get(form.partition("/")[0], "null").encode(), path, form)
    if not isinstance(header, dict) or header.get("format") != form:
        raise InputError(wrong, file=path, legal=f"format {form}")
    return header, table


def read_parquet(
    source: str | os.PathLike[str] | bytes, path: str | os.PathLike[str], legal: str
) -> tuple[dict[str, str], pl.DataFrame]:
    """Return the key-value metadata and the table of a Parquet file.

    Parameters
    ----------
    source
        File, or its content if it has been read already.
    path
        Name of the file, for the error.
    legal
        Description of a legal file, for the error.

    Raises
    ------
    InputError
        If the file is missing, longer than 2 GiB, not Parquet or damaged, or its footer claims more rows than
        its bytes can hold: more than 100,000 and more than 16 a byte.
    """
    content = source if isinstance(source, bytes) else read_bytes(source)
    metadata = parquet_metadata(content, path, legal)
    try:
        rows = pl.scan_parquet(io.BytesIO(content)).select(pl.len()).collect().item()  # of the footer: nothing is read
        most = max(FEW_ROWS, ROWS_A_BYTE * len(content))
        if rows > most:
            raise InputError(f"claims {rows} rows in {len(content)} bytes", file=path, legal=f"at most {most} rows")
        require_room(len(content), path, rows)
        return metadata, pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise _damaged(path, legal) from None


def parquet_metadata(content: bytes, path: str | os.PathLike[str], legal: str) -> dict[str, str]:
    """Return the key-value metadata in the footer of a Parquet file.

    Parameters
    ----------
    content
        Bytes of the file.
    path
        Name of the file, for the error.
    legal
        Description of a legal file, for the error.

    Raises
    ------
    InputError
        If the footer cannot be read.
    """
    try:
        return pl.read_parquet_metadata(io.BytesIO(content))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise _damaged(path, legal) from None


def _damaged(path: str | os.PathLike[str], legal: str) -> InputError:
    return InputError("not a Parquet file, or a truncated one, or one that is damaged", file=path, legal=legal)
