"""The statements of a schedule, as plain arrays: the evidence that the referee judges.

Files are read here a second time, apart from `optsched.problem.schedule_file`, because the referee must represent what a
loader refuses: an unknown job or a GPU that does not exist breaks a rule; it does not make the file unreadable.
`InputError` is left for files that say nothing definite: truncated, another format, a missing field, text for a number.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any, NoReturn

import numpy as np
import polars as pl

from optsched.classes import every_class
from optsched.errors import InputError, check_legal, naming
from optsched.problem.arrays import Floats, Ints
from optsched.problem.documents import parse_json
from optsched.problem.gpu_names import named_anyway
from optsched.problem.instance import Instance
from optsched.problem.parquet import read_parquet
from optsched.problem.schedule import Schedule, ends_of, require_any_gpus

FORMAT = "optsched-schedule/1"
PARQUET_MAGIC = b"PAR1"
_PARQUET_HEADER = "optsched-schedule"
_RATIO = re.compile(r"-?\d{1,1000}(/0{0,9}[1-9]\d{0,1000})?", re.ASCII)
_LEGAL = {
    "job": "the id of a job, as text",
    "gpus": "a list of [node, index] pairs of integers",
    "start": "a number of seconds",
    "end": "a number of seconds",
    "work": "a number of seconds",
}
_STEPS = "an integer: sub-steps of gradient accumulation"


@dataclass(frozen=True)
class ScheduleDocument:
    """S segments with K (segment, GPU) pairs, exactly as claimed; nothing in it has been checked.

    Attributes
    ----------
    digest
        Digest of the instance that it was made for.
    job
        Job of every segment, i64[S]; -1 if the segment names no job of the instance.
    unknown
        What such a segment names, by position.
    start, end
        Start and end of every segment in seconds, f64[S].
    work
        Work of every segment, f64[S].
    offset
        Offsets of the segments, i64[S + 1], into ``node`` and ``index``.
    node, index
        Node and index of every GPU, i64[K].
    objective, value, preemptive
        Statements of the file beyond its segments; None: it states nothing.
    stated
        The fields that state its class of schedules (`optsched.classes`).
    steps
        Sub-steps of gradient accumulation, i64[S], 1 if a segment states none; None if no segment does.
    """

    digest: str
    job: Ints
    unknown: dict[int, str]
    start: Floats
    end: Floats
    work: Floats
    offset: Ints
    node: Ints
    index: Ints
    objective: str | None = None
    value: Fraction | float | None = None
    preemptive: bool | None = None
    stated: frozenset[str] = frozenset()
    steps: Ints | None = None


def document_of(schedule: Schedule, instance: Instance) -> ScheduleDocument:
    """Return the document of a schedule in memory.

    Parameters
    ----------
    schedule
        The schedule.
    instance
        The instance that it is checked against, which need not be the one that it was made for.

    Raises
    ------
    InputError
        The arrays of the schedule do not fit together.
    """
    job, offset, node, index = (
        np.asarray(column, dtype=np.int64)
        for column in (schedule.job, schedule.gpu_offset, schedule.gpu_node, schedule.gpu_index)
    )
    start, end, work = (
        np.asarray(column, dtype=np.float64) for column in (schedule.start, schedule.end, schedule.work)
    )
    if not job.shape == start.shape == end.shape == work.shape == (offset.size - 1,):
        raise InputError("the arrays of the schedule have different lengths", legal="S, S, S, S and S + 1")
    ends = offset[0] == 0 and offset[-1] == node.size == index.size
    if not ends or np.any(np.diff(offset) < 0):
        raise InputError("invalid", field="gpu_offset", legal="ascending from 0 to the number of pairs")
    steps = None if schedule.sub_steps is None else np.asarray(schedule.sub_steps, dtype=np.int64)
    if steps is not None and steps.shape != job.shape:
        raise InputError("the steps of the schedule are not one a segment", field="steps", legal=f"{job.size} integers")
    made_for = schedule.instance
    wrong = (job < 0) | (job >= made_for.n)
    unknown = {int(s): f"number {job[s]}" for s in np.flatnonzero(wrong)}
    job = np.where(wrong, -1, job)
    if made_for.digest != instance.digest:  # its job 3 may be our job 5
        names = [unknown.get(s, "") if j < 0 else made_for.ids[j] for s, j in enumerate(job.tolist())]
        found = _jobs(names, instance)
        job, unknown = found["job"], {**found["unknown"], **unknown}
    columns = job, unknown, start, end, work, offset, node, index
    return ScheduleDocument(made_for.digest, *columns, stated=frozenset({schedule.stated}), steps=steps)


def parse_document(content: bytes, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the JSON object in a file.

    Parameters
    ----------
    content
        Content of the file.
    path
        Its path, for messages.

    Raises
    ------
    InputError
        The file holds no JSON object.
    """
    raw = parse_json(content, path, FORMAT)
    if not isinstance(raw, dict):
        raise InputError("not a JSON object", file=path, legal=FORMAT)
    return raw


def document_of_json(raw: dict[str, Any], instance: Instance, path: str | os.PathLike[str]) -> ScheduleDocument:
    """Return the document of a parsed ``.json`` schedule file.

    Parameters
    ----------
    raw
        The parsed document.
    instance
        The instance that it is checked against.
    path
        Path of the file, for messages.

    Raises
    ------
    InputError
        A field is missing or of another type than the format says.
    """
    header = _header(raw, path)
    segments = raw.get("segments")
    if not isinstance(segments, list):
        raise InputError("not a schedule file", file=path, field="segments", legal="a list of segments")
    columns = {field: _column(segments, field, path) for field in _LEGAL}
    gangs = columns["gpus"]
    pairs = list(chain.from_iterable(gangs))
    offset = np.cumsum([0, *map(len, gangs)], dtype=np.int64)
    times: dict[str, Any] = {field: _numbers(columns[field]) for field in ("start", "end", "work")}
    try:
        node, index = (np.array([pair[i] for pair in pairs], dtype=np.int64) for i in (0, 1))
    except OverflowError:
        raise InputError("a number beyond 64 bits", file=path, field="gpus", legal=_LEGAL["gpus"]) from None
    where = {**_jobs(columns["job"], instance), "offset": offset, "node": node, "index": index}
    return ScheduleDocument(**where, **times, steps=_steps(segments, path), **header)


def document_of_starts(raw: dict[str, Any], instance: Instance, path: str | os.PathLike[str]) -> ScheduleDocument:
    """Return the document of a file that has only the starts of the jobs, with GPUs named.

    A job for which no GPUs are left gets GPUs that others hold, too: the rule capacity names it.

    Parameters
    ----------
    raw
        The parsed document; it may omit the instance.
    instance
        The instance that it is checked against.
    path
        Path of the file, for messages.

    Raises
    ------
    InputError
        A start is no number, the time of a job depends on its placement, or jobs are restricted to some nodes.
    """
    header, starts = _header({"instance": instance.digest, **raw}, path), raw["starts"]
    in_order = [*instance.ids, *(f"number {k}" for k in range(instance.n, len(starts)))][: len(starts)]
    by_id: dict[str, Any] = starts if isinstance(starts, dict) else dict(zip(in_order, starts, strict=True))
    for name, seconds in by_id.items():
        legal = type(seconds) in (int, float) and abs(seconds) < 2.0**1023
        check_legal(legal, f"starts: {name}", seconds, _LEGAL["start"], file=path)
    jobs = _jobs([*by_id], instance)
    start, known = _numbers([*by_id.values()]), jobs["job"] >= 0
    job, end, work = jobs["job"][known], start.copy(), np.zeros(start.size)
    with naming(path):
        require_any_gpus(instance)
        end[known] = ends_of(instance, job, start[known])
    work[known] = instance.work[job]
    gangs = np.ones(start.size, dtype=np.int64)
    gangs[known] = instance.gpus[job]
    offset, node, index = named_anyway(instance, start, end, gangs)
    return ScheduleDocument(**jobs, **header, start=start, end=end, work=work, offset=offset, node=node, index=index)


def _steps(segments: list[Any], path: str | os.PathLike[str]) -> Ints | None:
    if not any("steps" in segment for segment in segments):
        return None
    column = [segment.get("steps", 1) for segment in segments]
    for s, each in enumerate(column):
        if type(each) is not int or abs(each) >= 2**63:
            raise InputError("invalid", file=path, field=f"segments[{s}].steps", value=each, legal=_STEPS)
    return np.array(column, dtype=np.int64)


def claim_of_parquet(content: bytes, instance: Instance, path: str | os.PathLike[str]) -> ScheduleDocument:
    """Return the document of a ``.parquet`` schedule file.

    Parameters
    ----------
    content
        Content of the file.
    instance
        The instance that it is checked against.
    path
        Its path, for messages.

    Raises
    ------
    InputError
        The file is no schedule file, or a field is missing or of a wrong type.
    """
    metadata, table = read_parquet(content, path, FORMAT)
    raw = parse_json(metadata.get(_PARQUET_HEADER, "null").encode(), path, FORMAT)
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise InputError("not a schedule file", file=path, field="format", legal=FORMAT)
    header = _header(raw, path)
    integers = pl.List(pl.Int64)
    for field in ("job", "node", "index", "start", "end", "work"):
        dtype = table.schema.get(field)
        legal = {"job": dtype == pl.String, "node": dtype == integers, "index": dtype == integers}
        if dtype is None or not legal.get(field, dtype.is_numeric()):
            raise InputError(
                "missing" if dtype is None else f"a column of the wrong type {dtype}", file=path, field=field
            )
        if table[field].null_count():
            raise InputError("a segment without this field", file=path, field=field, legal=_LEGAL.get(field))
    steps = table.schema.get("steps")
    if steps is not None and (not steps.is_integer() or table["steps"].null_count()):
        raise InputError("a column of the wrong type, or with gaps", file=path, field="steps", legal=_STEPS)
    width = table["node"].list.len()
    gpus = table.select("node", "index").filter(width > 0)
    if not (width == table["index"].list.len()).all():
        raise InputError("not as many nodes as indices in a segment", file=path, field="gpus")
    node, index = (gpus[field].explode() for field in ("node", "index"))
    if node.null_count() or index.null_count():
        raise InputError("a GPU without a number", file=path, field="gpus", legal=_LEGAL["gpus"])
    columns: dict[str, Any] = {field: table[field].cast(pl.Float64).to_numpy() for field in ("start", "end", "work")}
    columns["offset"] = np.concatenate([[0], np.cumsum(width.to_numpy())]).astype(np.int64)
    columns |= {"node": node.to_numpy().astype(np.int64), "index": index.to_numpy().astype(np.int64)}
    stated = None if steps is None else table["steps"].to_numpy().astype(np.int64)
    return ScheduleDocument(**_jobs(table["job"].to_list(), instance), **columns, steps=stated, **header)


def _header(raw: dict[str, Any], path: str | os.PathLike[str]) -> dict[str, Any]:
    """The stated facts of a file, as the fields of `ScheduleDocument` of the same names."""
    digest = raw.get("instance")
    if not isinstance(digest, str):
        raise InputError("missing, or not text", file=path, field="instance", legal="sha256 of the instance")
    objective = raw.get("objective")
    named = [made.stated for made in every_class() if made.stated and not made.only]
    flags = {field: raw.get(field) for field in ("preemptive", *named)}
    check_legal(objective is None or isinstance(objective, str), "objective", objective, "a name, or none", file=path)
    for field, flag in flags.items():
        check_legal(flag is None or isinstance(flag, bool), field, flag, "true or false", file=path)
    value = raw.get("value")
    if type(value) is int or (isinstance(value, str) and _RATIO.fullmatch(value)):
        value = Fraction(value)
    elif not (value is None or type(value) is float):
        raise InputError("invalid", file=path, field="value", value=value, legal='a number or "p/q"')
    stated = frozenset(field for field in named if flags[field])
    return {
        "digest": digest,
        "objective": objective,
        "value": value,
        "preemptive": flags["preemptive"],
        "stated": stated,
    }


def _column(segments: list[Any], field: str, path: str | os.PathLike[str]) -> list[Any]:
    # Types are tested a column at a time; only when one is wrong is the culprit looked for.
    try:
        column = [segment[field] for segment in segments]
    except (KeyError, TypeError, IndexError):
        _blame(segments, field, path)
    if not _well_typed(column, field):
        _blame(segments, field, path)
    return column


def _well_typed(column: list[Any], field: str) -> bool:
    kinds = set(map(type, column))
    if field == "job":
        return kinds <= {str}
    if field != "gpus":
        return kinds <= {int, float}
    if not kinds <= {list}:
        return False
    pairs = list(chain.from_iterable(column))
    if not (set(map(type, pairs)) <= {list} and set(map(len, pairs)) <= {2}):
        return False
    return set(map(type, chain.from_iterable(pairs))) <= {int}


def _blame(segments: list[Any], field: str, path: str | os.PathLike[str]) -> NoReturn:
    for s, segment in enumerate(segments):
        where = f"segments[{s}]"
        if not isinstance(segment, dict):
            raise InputError(
                "not a segment", file=path, field=where, value=segment, legal=f"fields {', '.join(_LEGAL)}"
            )
        if field not in segment:
            raise InputError("missing", file=path, field=f"{where}.{field}", legal=_LEGAL[field])
        if not _well_typed([segment[field]], field):
            value = segment[field]
            raise InputError("invalid", file=path, field=f"{where}.{field}", value=value, legal=_LEGAL[field])
    raise AssertionError("a column is wrong and none of its values is")


def _jobs(names: list[str], instance: Instance) -> dict[str, Any]:
    """The fields ``job`` and ``unknown`` of a document."""
    position = {name: j for j, name in enumerate(instance.ids)}
    job = np.array([position.get(name, -1) for name in names], dtype=np.int64)
    return {"job": job, "unknown": {int(s): repr(names[s]) for s in np.flatnonzero(job < 0)}}


def _numbers(column: list[int | float]) -> Floats:
    try:
        return np.array(column, dtype=np.float64)
    except OverflowError:  # an integer beyond the largest float is as good as infinite
        return np.array([x if abs(x) < 2.0**1023 else np.inf for x in column], dtype=np.float64)
