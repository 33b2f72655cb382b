"""Dialect ``csv``: your own log; you say which column holds which field.

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
arrival     yes         seconds >= 0, kept unchanged; or a date-time (2024-05-01 08:00:00, 2024/05/01, also with T, a
                        fraction, all or none with an offset), or Unix seconds (>= 1e9): then counted from the earliest job;
                        one that is not on the clock of the others is a bad row (`optsched.io.traces.one_clock`)
gpus        yes         integer >= 1
start                   on the clock of ``arrival``: when the job really started; an empty field: it never did
end         with start  on the clock of ``arrival``: when it really ended
duration    yes, or     seconds > 0, or 01:30:00, 1-00:00:30, 90m. With start and end it may be left out: end - start counts,
                        and rows that state another duration are reported
iterations  with        number > 0; with a duration and without a profile it is information only, 0 is unknown
profile     profile     name of the rate profile that gives the seconds of an iteration
id                      text, unique; else jobs are numbered from 1, in the order of the file
weight                  number >= 0; an empty field is 1
due                     on the clock of ``arrival``; an empty field is no due date
gpu_memory              bytes >= 0 on each GPU; an empty field is no need
restart                 seconds >= 0 that it costs to resume it; an empty field leaves that to the policy
checkpoint              bytes >= 0 that it reads to resume, at the storage bandwidth of the cluster
walltime                limit that the user stated, in the forms of ``duration``; an empty field is no limit
status                  final state of the job, text; it drops no job
user                    text; so are ``group`` and ``model``
==========  ==========  ======================================================================================

With ``start`` the jobs have what ran (``ran``), and without a cluster the most GPUs in use at once are it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import polars as pl

from optsched.errors import InputError
from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish
from optsched.io.traces.one_clock import are_unix_seconds
from optsched.io.traces.ran_jobs import say_other_durations
from optsched.io.traces.rows import DATE_TIME_LEGAL, Rows, pieces_of, seconds_of_date_times, seconds_of_durations
from optsched.io.traces.text_table import read_text_table
from optsched.registry import NOTHING, check_known

NEEDED = ("arrival", "gpus", "duration")
RAN = ("start", "end")  # serve in place of a duration
# names of columns in logs, in lower case and letters only; the likeliest first
KNOWN_AS = {
    "arrival": "arrival arrivaltime submit submitted submittime submittedtime submittedat submission submissiontime "
    "submitat queued queuedat enqueued timestamp time",
    "gpus": "gpus gpu numgpus numgpu ngpus ngpu gpunum gpucount gpusrequested requestedgpus reqgpus gpuswanted gpudemand "
    "gangsize gang workers",
    "duration": "duration durations durationseconds runseconds seconds runtime runtimeseconds runtimes elapsed "
    "elapsedseconds elapsedraw servicetime jobduration length run",
    "start": "start started starttime startedat starttimestamp startat began begin begintime launch launched launchedat "
    "launchtime",
    "end": "end ended endtime endedat endtimestamp endat finish finished finishtime finishedat completed completedat "
    "completiontime stop stopped stoptime",
    "walltime": "walltime timelimit limit requestedtime reqtime requestedwalltime walltimelimit maxruntime estimate",
    "status": "status state jobstate jobstatus finalstate",
    "id": "id job jobid jobname name",
    "user": "user userid username",
    "group": "group groupid team vc queue account partition",
    "model": "model modelname",
}
BY_RATE = ("iterations", "profile")
TEXTS = ("user", "group", "model", "status")
FIELDS = (*NEEDED, *RAN, "walltime", *BY_RATE, "id", "weight", "due", "gpu_memory", "restart", "checkpoint", *TEXTS)
UNIX_MILLISECONDS = 1e11
SECONDS_LEGAL = "seconds >= 0, or Unix seconds"
MILLISECONDS_LEGAL = f"seconds < {UNIX_MILLISECONDS:g} (divide Unix milliseconds by 1000)"
UNREAD = "a date-time in a form that is not read"
DATE_TIMES_LEGAL = (
    "2017-10-09 07:01:55, also with T, without seconds or without a time, as 2017/10/09, and with Z or +02:00 behind it in "
    "all rows or in none; or Unix seconds"
)
_MONTH = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
# 3/2/2026, 02.03.2026; 2 Mar 2026; Mar 2; 9:00, also behind an ISO date and before a zone's name; 20260302T0900
_DATES = (r"\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}", rf"\d{{1,2}}[\s./-]{_MONTH}", rf"\b{_MONTH}[a-z]*\.?\s+\d", r"\d:\d\d")
_LIKE_A_DATE_TIME = "(?i)" + "|".join((*_DATES, r"^\d{8}T\d{4}"))


@dialect("csv", takes_columns=True, guesses_cluster=True)
def read(request: TraceRequest) -> TraceRead:
    """Your own log: any delimited file with a header row; map its columns with --columns arrival=NAME,gpus=NAME,....

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    rows = Rows(read_text_table(request.path, separator=None))
    columns = _columns(rows, request.columns)
    _require_numbers(rows, columns)
    text = rows.text(columns["arrival"], required=False)
    # Use the clock of most fields; the others are then bad rows.
    numbers = text.cast(pl.Float64, strict=False).is_not_null().sum()
    date_times = int(seconds_of_date_times(text).is_not_null().sum()) > int(numbers)
    arrival = _times(rows, columns["arrival"], date_times, required=True)
    jobs = {"arrival": arrival, "gpus": rows.gang(columns["gpus"])}
    other_times = {field: _times(rows, columns[field], date_times, required=False) for field in RAN if field in columns}
    if other_times:
        jobs |= _what_ran(rows, columns, other_times)
    elif "duration" in columns:
        jobs["duration"] = rows.durations(columns["duration"], above=0)
    if "walltime" in columns:
        jobs["walltime"] = rows.durations(columns["walltime"], above=0, required=False)
    if "iterations" in columns:
        known = "duration" in jobs and "profile" not in columns
        jobs["iterations"] = (rows.count_for_information if known else rows.positive)(columns["iterations"])
    if "profile" in columns:
        jobs["profile"] = rows.text(columns["profile"], required="duration" not in jobs)
    if "id" in columns:
        jobs["id"] = rows.unique(columns["id"])
    else:  # the first job is 1, whatever its line in the file is
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
    times = {columns[field]: column for field, column in other_times.items()}
    return finish(request, rows, jobs, from_earliest=clock, notes=notes, times=times)


def _what_ran(rows: Rows, columns: Mapping[str, str], times: Mapping[str, pl.Series]) -> dict[str, pl.Series]:
    """Return ``duration`` and ``ran`` of jobs with a start, and an end or a duration; leave rows out that never ran."""
    start = times["start"]
    stated = rows.durations(columns["duration"], required=False) if "duration" in columns else None
    rows.leave_out(start.is_null(), "never ran")
    if "end" not in times:
        assert stated is not None
        rows.reject(stated.is_null(), columns["duration"], "a duration, where there is a start", "missing")
        rows.leave_out(stated == 0, "ran for 0 s")
        return {"duration": stated, "ran": pieces_of(start, start + stated)}
    end = times["end"]
    rows.leave_out(end.is_null(), "not ended")
    legal = pl.select(
        pl.format("a time from {} on, the start", rows.text(columns["start"], required=False))
    ).to_series()
    rows.reject((end < start).fill_null(False), columns["end"], legal, "before the start")
    rows.leave_out(end == start, "ran for 0 s")
    duration = (end - start).alias(columns.get("duration", "duration"))
    if stated is not None:
        say_other_durations(rows, columns["duration"], stated, duration)
    return {"duration": duration, "ran": pieces_of(start, end)}


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
    by_times = "end" in columns or ("start" in columns and "duration" not in columns)
    needed: tuple[str, ...] = (*NEEDED[:2], *RAN) if by_times else NEEDED[:2] if by_rate else NEEDED
    missing = [field for field in needed if field not in columns]
    if missing:
        guessed = guessed_columns(there)
        if "duration" in missing and "duration" not in guessed and all(field in guessed for field in RAN):
            needed = (*NEEDED[:2], *RAN)  # they serve in place of a duration
        asked = asked_columns(there, columns, needed)
        why = f"which column is {' and which is '.join(missing)}?"
        legal = f"--columns {asked} with columns of the file: {', '.join(there)}"
        raise InputError(why, file=rows.file, field="columns", legal=legal)
    return columns


def asked_columns(there: Sequence[str], columns: Mapping[str, str] = NOTHING, needed: Sequence[str] = ()) -> str:
    """Return what to type behind ``--columns`` in a shell, with ``...`` where no column of the file is likely to be meant.

    Parameters
    ----------
    there
        Names of the columns.
    columns
        Columns that the user has named, by field.
    needed
        Fields to name; none: those that a job needs, or start, end and what is asked about a schedule that ran, if the
        file has columns for them.
    """
    guessed = {**guessed_columns(there), **columns}
    if not needed:
        ran = all(field in guessed for field in RAN)
        labels = [field for field in ("walltime", "user", "status") if field in guessed]
        needed = (*NEEDED[:2], *RAN, *labels) if ran else NEEDED
    return shlex.quote(",".join(f"{field}={guessed.get(field, '...')}" for field in needed))


def guessed_columns(there: Sequence[str]) -> dict[str, str]:
    """Return the column that is likely to hold each field, by its name; fields without such a column are left out.

    Parameters
    ----------
    there
        Names of the columns.
    """
    plain = {"".join(filter(str.isalpha, name.lower())): name for name in reversed(there)}
    found = {field: [plain[each] for each in names.split() if each in plain] for field, names in KNOWN_AS.items()}
    return {field: names[0] for field, names in found.items() if names}


def _require_numbers(rows: Rows, columns: Mapping[str, str]) -> None:
    """Raise `InputError` if a column that must hold numbers, or times, holds none at all: another one must be meant."""

    def holds_numbers(column: str) -> bool:
        return bool(seconds_of_durations(rows.text(column, required=False)).is_finite().any())

    for field in (*NEEDED, "walltime", "iterations", "weight", "gpu_memory", "restart", "checkpoint"):
        column = columns.get(field)
        if column is None or holds_numbers(column):
            continue
        text = rows.text(column, required=False).drop_nulls()
        # `_times` reports what looks like a date-time
        like = seconds_of_date_times(text).is_not_null() | text.str.contains(_LIKE_A_DATE_TIME)
        dates = field == "arrival" and like.any()
        if len(text) > 1 and not dates:  # if there is one row, the row is reported
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
    said = pl.DataFrame({"row": rows.line}).with_columns(legal.alias("legal"))["legal"]
    if date_times:
        return rows.date_times(column, legal=said, required=required).alias(column)
    return rows.number(column, least=0, below=UNIX_MILLISECONDS, legal=said, required=required)
