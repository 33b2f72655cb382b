"""Dialect ``csv``: anybody's own log; the user says which column holds what.

A text file with a header, separated by comma, semicolon, tab or bar (the header's likeliest), quotes allowed::

    job,submitted,gpus_wanted,seconds
    a,2024-05-01 08:00:00,4,3600
    b,2024-05-01 08:00:30,1,60

read with ``columns={"arrival": "submitted", "gpus": "gpus_wanted", "duration": "seconds", "id": "job"}``, on the
command line ``--columns arrival=submitted,gpus=gpus_wanted,duration=seconds,id=job``. Without ``columns`` the file's
own names must be the fields' names.

==========  ==========  ======================================================================================
field       needed      unit
==========  ==========  ======================================================================================
arrival     yes         seconds >= 0, kept as they stand; or a date-time (2024-05-01 08:00:00, also with T, a
                        fraction, all or none with an offset), or Unix seconds (>= 1e9): then counted from the earliest job;
                        one that is not on the clock of the others is a bad row (`optsched.io.traces.one_clock`)
gpus        yes         integer >= 1
duration    yes, or     seconds > 0
iterations  with        number > 0; with a duration and without a profile data that nothing reads, 0 is not known
profile     profile     name of the rate profile that says how long an iteration takes
id                      text, unique; else jobs are numbered from 1, in the order of the file
weight                  number >= 0; an empty field is 1
due                     on the clock of ``arrival``; an empty field is no due date
gpu_memory              bytes >= 0 on each GPU; an empty field is no need
restart                 seconds >= 0 that it costs to resume it; an empty field leaves that to the policy
checkpoint              bytes >= 0 that it reads to resume, at the storage bandwidth of the cluster
user                    text; so are ``group`` and ``model``
==========  ==========  ======================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from optsched.errors import InputError
from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish
from optsched.io.traces.one_clock import are_unix_seconds
from optsched.io.traces.rows import DATE_TIME_LEGAL, Rows, seconds_of_date_times
from optsched.io.traces.text_table import read_text_table
from optsched.registry import check_known

NEEDED = ("arrival", "gpus", "duration")
# what logs call them, in lower case without other characters than letters; the likeliest first
KNOWN_AS = {
    "arrival": "arrival arrivaltime submit submitted submittime submittedtime submittedat submission submissiontime "
    "submitat queued queuedat enqueued timestamp time",
    "gpus": "gpus gpu numgpus numgpu ngpus ngpu gpunum gpucount gpusrequested requestedgpus reqgpus gpuswanted gpudemand "
    "gangsize gang workers",
    "duration": "duration durations durationseconds runseconds seconds runtime runtimeseconds runtimes elapsed "
    "elapsedseconds elapsedraw servicetime jobduration length run",
    "id": "id job jobid jobname name",
    "user": "user userid username",
    "group": "group groupid team vc queue account partition",
    "model": "model modelname",
}
BY_RATE = ("iterations", "profile")
TEXTS = ("user", "group", "model")
FIELDS = (*NEEDED, *BY_RATE, "id", "weight", "due", "gpu_memory", "restart", "checkpoint", *TEXTS)
UNIX_MILLISECONDS = 1e11
SECONDS_LEGAL = "seconds >= 0, or Unix seconds"
MILLISECONDS_LEGAL = f"seconds < {UNIX_MILLISECONDS:g} (divide Unix milliseconds by 1000)"
UNREAD = "a date-time in a form that is not read"
DATE_TIMES_LEGAL = (
    "2017-10-09 07:01:55, also with T, without seconds or without a time, and with Z or +02:00 behind it in all rows or in "
    "none; or Unix seconds"
)
_MONTH = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
# 2026/03/02, 3/2/2026, 02.03.2026; 2 Mar 2026; Mar 2; 9:00, also behind an ISO date and before a zone's name; 20260302T0900
_DATES = (r"\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}", rf"\d{{1,2}}[\s./-]{_MONTH}", rf"\b{_MONTH}[a-z]*\.?\s+\d", r"\d:\d\d")
_LIKE_A_DATE_TIME = "(?i)" + "|".join((*_DATES, r"^\d{8}T\d{4}"))


@dialect("csv", takes_columns=True)
def read(request: TraceRequest) -> TraceRead:
    """Your own log: any separated file with a header; --columns arrival=...,gpus=...,duration=... names its columns."""
    rows = Rows(read_text_table(request.path, separator=None))
    columns = _columns(rows, request.columns)
    _require_numbers(rows, columns)
    text = rows.text(columns["arrival"], required=False)
    # The clock that more of the fields are in; the others are then bad rows.
    numbers = text.cast(pl.Float64, strict=False).is_not_null().sum()
    date_times = int(seconds_of_date_times(text).is_not_null().sum()) > int(numbers)
    arrival = _times(rows, columns["arrival"], date_times, required=True)
    jobs = {"arrival": arrival, "gpus": rows.gang(columns["gpus"])}
    if "duration" in columns:
        jobs["duration"] = rows.number(columns["duration"], above=0, legal="a finite number of seconds > 0")
    if "iterations" in columns:
        known = "duration" in columns and "profile" not in columns
        jobs["iterations"] = (rows.count_for_information if known else rows.positive)(columns["iterations"])
    if "profile" in columns:
        jobs["profile"] = rows.text(columns["profile"], required="duration" not in columns)
    if "id" in columns:
        jobs["id"] = rows.unique(columns["id"])
    else:  # the first job is 1, whatever lines are above it in the file
        jobs["id"] = pl.int_range(1, rows.count + 1, eager=True).cast(pl.String)
    for field in ("weight", "gpu_memory", "restart", "checkpoint"):
        if field in columns:
            jobs[field] = rows.number(columns[field], least=0, required=False)
    if "due" in columns:
        jobs["due"] = _times(rows, columns["due"], date_times, required=False)
    jobs |= {field: rows.text(columns[field], required=False) for field in TEXTS if field in columns}
    shifted = date_times or are_unix_seconds(arrival)
    clock = tuple(name for name in ("arrival", "due") if name in jobs) if shifted else ()
    notes = {"clock": "from the earliest job" if shifted else "as in the file"}
    return finish(request, rows, jobs, from_earliest=clock, notes=notes)


def _columns(rows: Rows, wanted: Mapping[str, str] | None) -> dict[str, str]:
    # field -> column of the file, complete and existing
    there = rows.columns
    columns = dict(wanted) if wanted else {field: field for field in FIELDS if field in there}
    for field, column in columns.items():
        if field not in FIELDS and field in there and column in FIELDS:
            where = {"file": rows.file, "field": "columns", "value": f"{field}={column}"}
            raise InputError("the other way round", **where, legal=f"FIELD=COLUMN: {column}={field}")
        why, where = "there is no such field of a job", {"file": rows.file, "field": "columns", "value": field}
        check_known(field, FIELDS, "field", why, **where)
        check_known(column, there, "column", "the file has no such column", **where | {"field": field, "value": column})
    by_rate = "duration" not in columns and all(field in columns for field in BY_RATE)
    needed = ("arrival", "gpus") if by_rate else NEEDED
    missing = [field for field in needed if field not in columns]
    if missing:
        guessed = {**guessed_columns(there), **columns}
        asked = ",".join(f"{field}={guessed.get(field, '...')}" for field in needed)
        why = f"which column is {' and which is '.join(missing)}?"
        legal = f"--columns {asked} with columns of the file: {', '.join(there)}"
        raise InputError(why, file=rows.file, field="columns", legal=legal)
    return columns


def guessed_columns(there: Sequence[str]) -> dict[str, str]:
    """Field -> the column that is likely to be it, by its name; fields that no column looks like are left out."""
    plain = {"".join(filter(str.isalpha, name.lower())): name for name in reversed(there)}
    found = {field: [plain[each] for each in names.split() if each in plain] for field, names in KNOWN_AS.items()}
    return {field: names[0] for field, names in found.items() if names}


def _require_numbers(rows: Rows, columns: Mapping[str, str]) -> None:
    """`InputError` where a column that must hold numbers, or times, holds none at all: another one is meant."""

    def holds_numbers(column: str) -> bool:
        return bool(rows.text(column, required=False).cast(pl.Float64, strict=False).is_finite().any())

    for field in (*NEEDED, "iterations", "weight", "gpu_memory", "restart", "checkpoint"):
        column = columns.get(field)
        if column is None or holds_numbers(column):
            continue
        text = rows.text(column, required=False).drop_nulls()
        # what looks like a date-time is told by `_times`
        like = seconds_of_date_times(text).is_not_null() | text.str.contains(_LIKE_A_DATE_TIME)
        dates = field == "arrival" and like.any()
        if len(text) > 1 and not dates:  # of one row it is the row that is told
            where = {"file": rows.file, "field": "columns", "value": f"{field}={column}"}
            legal = f"a column of numbers: {', '.join(filter(holds_numbers, rows.columns)) or 'there is none'}"
            raise InputError(f"the column holds no number, but words such as {text[0][:40]!r}", **where, legal=legal)


def _times(rows: Rows, column: str, date_times: bool, *, required: bool) -> pl.Series:
    text = rows.text(column, required=False)
    moment, value = seconds_of_date_times(text).is_not_null(), text.cast(pl.Float64, strict=False)
    number = value.is_not_null()
    unread = (~moment & ~number & text.str.contains(_LIKE_A_DATE_TIME)).fill_null(False)
    if unread.any() and not moment.any() and not number.any():
        where = {"row": rows.line.filter(unread)[0], "field": column, "value": text.filter(unread)[0]}
        raise InputError(UNREAD, file=rows.file, **where, legal=DATE_TIMES_LEGAL)
    rows.reject(unread, column, DATE_TIMES_LEGAL, UNREAD)
    other, same = (number, moment) if date_times else (moment, number)
    legal = pl.lit(DATE_TIME_LEGAL)
    if not date_times:
        legal = pl.lit(SECONDS_LEGAL if number.any() else f"{SECONDS_LEGAL}, or {DATE_TIME_LEGAL}")
        legal = pl.when(value >= UNIX_MILLISECONDS).then(pl.lit(MILLISECONDS_LEGAL)).otherwise(legal)
    if other.any() and same.any():
        kinds = ("a date-time", "a number") if date_times else ("a number", "a date-time")
        line, like = rows.line.filter(same)[0], text.filter(same)[0]
        mixed = f"{kinds[0]} as row {line} has, {like!r}, and not {kinds[1]}: one clock for the whole column"
        legal = pl.when(other).then(pl.lit(mixed)).otherwise(legal)
    said = pl.DataFrame({"row": rows.line}).select(legal.alias("legal"))["legal"]
    if date_times:
        return rows.date_times(column, legal=said, required=required).alias(column)
    return rows.number(column, least=0, below=UNIX_MILLISECONDS, legal=said, required=required)
