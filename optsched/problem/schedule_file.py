"""Schedule files: JSON (``"format": "optsched-schedule/1"``) or Parquet, one row a segment.

Where jobs share GPUs a segment has ``steps``, its sub-steps of gradient accumulation: in JSON where they are more than 1, in
Parquet as a column. A JSON file may have ``"starts"`` in place of segments: the start of every job, in seconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from optsched.errors import InputError
from optsched.problem.atomic_files import read_bytes, suffix_of, write_atomic
from optsched.problem.documents import parse_json
from optsched.problem.parquet import read_headed, write_headed

FORMAT = "optsched-schedule/1"
TRACE = ".trace.json"  # ends the name of a trace for Perfetto (`optsched.plot.save_trace`)
_COLUMNS = {
    "job": pl.String(),
    "node": pl.List(pl.Int64),
    "index": pl.List(pl.Int64),
    "start": pl.Float64(),
    "end": pl.Float64(),
    "work": pl.Float64(),
}
_WHOLE = 2.0**53
Array = npt.NDArray[Any]


class Segments(NamedTuple):
    """The columns of S segments, as a schedule holds them."""

    job: Array  # position of the job in the instance, i64[S]
    start: Array  # seconds, f64[S]
    end: Array
    work: Array  # units of work done in the segment, f64[S]
    gpu_offset: Array  # the GPUs of segment s are the entries from gpu_offset[s] to gpu_offset[s + 1], i64[S + 1]
    gpu_node: Array  # node of every GPU, i64
    gpu_index: Array  # its number on the node, i64
    policy: str = ""
    steps: Array | None = None  # sub-steps of gradient accumulation, i64[S]; None where jobs do not share GPUs


def is_trace(path: str | os.PathLike[str]) -> bool:
    """Return True if a file name says that the file is a trace.

    Parameters
    ----------
    path
        The file name.
    """
    return Path(path).name.lower().endswith(TRACE)


def write_segments(
    path: str | os.PathLike[str], segments: Segments, digest: str, ids: pl.Series, stated: Mapping[str, Any]
) -> None:
    """Write segments to ``.json`` or ``.parquet``, whole or not at all.

    Parameters
    ----------
    path
        File to write; its suffix decides the format.
    segments
        Columns of the schedule.
    digest
        Digest of the instance that is scheduled.
    ids
        Ids of the jobs of the instance, in its order.
    stated
        Further entries of the header, for the referee to check.
    """
    header = {"format": FORMAT, "instance": digest, "policy": segments.policy, **stated}
    gangs = np.diff(segments.gpu_offset)
    times = {"start": segments.start, "end": segments.end, "work": segments.work}
    if suffix_of(path, "a schedule") == ".parquet":
        table = pl.DataFrame({"job": ids.gather(segments.job), **times})
        lists = _lists(gangs, node=segments.gpu_node, index=segments.gpu_index)
        table = pl.concat([table, lists], how="horizontal").select(list(_COLUMNS)).cast(_COLUMNS)  # type: ignore[arg-type]
        if segments.steps is not None:
            table = table.with_columns(pl.Series("steps", segments.steps, dtype=pl.Int64))
        write_headed(table, path, header)
        return
    # one call for all ids: a line break inside of one is escaped, so that those between them are the only ones
    quoted = pl.Series(json.dumps(ids.to_list(), separators=("\n", ":"))[1:-1].split("\n"), dtype=pl.String)
    rows = _rows(quoted.gather(segments.job), gangs, segments.gpu_node, segments.gpu_index, segments.steps, **times)
    head = json.dumps(header, indent=1)[:-2]
    write_atomic(path, f'{head},\n "segments": [\n{rows}\n ]\n}}\n')


def _rows(names: pl.Series, length: Array, node: Array, index: Array, steps: Array | None, **times: Array) -> str:
    """The text of all segments, one a line: written a column at a time, since a row at a time takes four times as long."""
    pairs = pl.select(pl.format("[{}, {}]", pl.lit(pl.Series(node)), pl.lit(pl.Series(index)))).to_series()
    gangs = _lists(length, gpus=pairs)["gpus"].list.join(", ")
    parts: list[pl.Expr | pl.Series] = [pl.lit('  {"job": '), names, pl.lit(', "gpus": ['), gangs, pl.lit("]")]
    for name, column in times.items():
        # the shortest decimals that are read as these numbers; whole ones (below 2**53) without ``.0``, as `short_number`
        value = pl.Series(np.asarray(column, dtype=np.float64))
        whole = (value == value.round()) & (value.abs() < _WHOLE)
        texts = pl.when(whole).then(value.cast(pl.Int64, strict=False).cast(pl.String)).otherwise(value.cast(pl.String))
        parts += [pl.lit(f', "{name}": '), texts]
    if steps is not None:
        several = pl.Series(np.asarray(steps, dtype=np.int64))
        parts.append(pl.when(several != 1).then(pl.format(', "steps": {}', several)).otherwise(pl.lit("")))
    return str(pl.select(pl.concat_str([*parts, pl.lit("}")]).str.join(",\n")).item())


def _lists(length: Array, **columns: Array | pl.Series) -> pl.DataFrame:
    """Columns of lists: row s has the next ``length[s]`` entries of each; O(entries), in numpy and polars alone."""
    row = pl.Series(np.repeat(np.arange(length.size), length)).set_sorted()  # else every row is looked up in a table
    some = pl.DataFrame({"row": row, **columns}).group_by("row", maintain_order=True).agg(pl.all()).drop("row")
    if some.height == length.size:
        return some
    place = np.where(length > 0, np.cumsum(length > 0) - 1, some.height)  # behind the last one: a list of nothing
    return some.vstack(some.clear().select(pl.lit([], dtype=kind).alias(name) for name, kind in some.schema.items()))[
        place
    ]


def read_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[dict[str, Any]] | None]:
    """Return the header and the segments of a schedule file; no segments (None) if it has only the starts of the jobs.

    Parameters
    ----------
    path
        File to read.

    Raises
    ------
    InputError
        When the file is not a schedule.
    """
    if Path(path).suffix.lower() == ".parquet":
        return _read_parquet(path)
    doc = parse_json(read_bytes(path), path, f"format {FORMAT}")
    if has_starts(doc):
        return doc, None
    if not isinstance(doc, dict) or doc.get("format") != FORMAT or not isinstance(doc.get("segments"), list):
        raise InputError("not a schedule file", file=path, legal=f"format {FORMAT}")
    return doc, doc["segments"]


def has_starts(document: Any) -> bool:
    """Return True if a document is a schedule that has only the starts of the jobs.

    Such a document is ``{"starts": {"job id": seconds, ...}}``, or has a list in the order of the jobs. It need not state
    a format or an instance.

    Parameters
    ----------
    document
        JSON document.
    """
    return (
        isinstance(document, Mapping)
        and isinstance(document.get("starts"), Mapping | list)
        and "segments" not in document
        and document.get("format", FORMAT) == FORMAT
    )


def starts_in(header: Mapping[str, Any], digest: str, path: str | os.PathLike[str]) -> Any:
    """Return the starts of a document, by job id or in the order of the jobs.

    Parameters
    ----------
    header
        Document (`has_starts`).
    digest
        Digest of the instance; the document may omit it.
    path
        File of the document, for the error.

    Raises
    ------
    InputError
        When the document belongs to another instance.
    """
    if header.get("instance", digest) != digest:
        raise InputError("the schedule belongs to another instance", file=path, field="instance", legal=digest)
    return header["starts"]


def read_segments(path: str | os.PathLike[str], digest: str, index: Mapping[str, int]) -> Segments:
    """Return the segments of a schedule file.

    Parameters
    ----------
    path
        File to read.
    digest
        Digest of the instance that the file must name.
    index
        Position of every job id in the instance.

    Raises
    ------
    InputError
        When the file is not a schedule, has no segments, or belongs to another instance.
    """
    header, rows = read_file(path)
    if rows is None:
        raise InputError("it has starts and no GPUs", file=path, legal="with the instance of the schedule (--instance)")
    return segments_in(header, rows, path, digest, index)


def segments_in(
    header: Mapping[str, Any],
    rows: list[dict[str, Any]],
    path: str | os.PathLike[str],
    digest: str,
    index: Mapping[str, int],
) -> Segments:
    """Return the segments that `read_file` read.

    Parameters
    ----------
    header
        Header of the file.
    rows
        Its segments.
    path
        The file, for errors.
    digest
        Digest of the instance that the file must name.
    index
        Position of every job id in the instance.

    Returns
    -------
    Segments
        The columns; ``steps`` are given in a file with ``"sharing": true``, else they are None.

    Raises
    ------
    InputError
        When a segment is invalid, or the file belongs to another instance.
    """
    if header.get("instance") != digest:
        raise InputError("the schedule belongs to another instance", file=path, field="instance", legal=digest)
    try:
        job = np.array([index[row["job"]] for row in rows], dtype=np.int64)
        gangs = [np.array(row["gpus"], dtype=np.int64).reshape(-1, 2) for row in rows]
        given = [row[field] for row in rows for field in ("start", "end", "work")]
        times = np.array(given, dtype=np.float64).reshape(-1, 3)
        if not ({int, float}.issuperset(map(type, given)) and np.isfinite(times).all()):  # numpy takes text and true
            raise ValueError("start, end and work are finite numbers of seconds")
        steps = [row.get("steps", 1) for row in rows] if header.get("sharing") is True else None
        if steps is not None and any(type(each) is not int or each < 1 for each in steps):
            raise ValueError("steps is an integer >= 1")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"a segment is invalid: {error!r}", file=path, legal=FORMAT) from None
    offset = np.cumsum([0, *(len(gang) for gang in gangs)], dtype=np.int64)
    flat = np.concatenate([*gangs, np.zeros((0, 2), dtype=np.int64)])
    start, end, work = np.ascontiguousarray(times.T)
    pairs = flat[:, 0].copy(), flat[:, 1].copy()
    split = None if steps is None else np.array(steps, dtype=np.int64)
    return Segments(job, start, end, work, offset, *pairs, str(header.get("policy", "")), split)


def _read_parquet(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    header, table = read_headed(path, FORMAT, "not a schedule file")
    rows = table.to_dicts()
    try:
        for row in rows:
            row["gpus"] = list(zip(row.pop("node"), row.pop("index"), strict=True))
    except (KeyError, TypeError, ValueError):
        raise InputError("a segment's GPUs are invalid", file=path, legal="lists node and index, alike long") from None
    return header, rows
