"""Jobs of Microsoft's own ``cluster_job_log`` of Philly: JSON, with the attempts of every job and the GPUs of each.

Dialect ``philly`` reads it where the file is JSON::

    [{"jobid": "application_1", "status": "Pass", "vc": "vc1", "user": "u1", "submitted_time": "2017-10-07 01:11:39",
      "attempts": [{"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23",
                    "detail": [{"ip": "m47", "gpus": ["gpu0", "gpu1"]}]}]}]

==============  =====================================================  ==================================================
field           unit                                                   becomes
==============  =====================================================  ==================================================
jobid           text                                                   ``id``
user, vc        text                                                   ``user``, ``group``
status          Pass, Killed, Failed                                   ``status``
submitted_time  local date-time                                        ``arrival``: seconds since the earliest legal job
attempts        start_time, end_time: local; null, "None" and "" are   ``ran``: a piece for each attempt that started;
                missing                                                ``duration``: the sum of their lengths
detail          the GPUs that an attempt held on each machine          ``gpus``: GPUs of the first attempt that started and
                                                                       lists any; a piece states its own if they differ,
                                                                       and has these if its attempt lists none
==============  =====================================================  ==================================================

No number of GPUs is stated anywhere: they are counted in ``detail``. Left out by reason: jobs without an attempt, without a
start, with an attempt that has no end, without GPUs, and those that ran for 0 s. Rows are counted from 1 in the order of
the file, which is not sorted. Times are Pacific and have no zone.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import polars as pl

from optsched.errors import InputError, RowProblem
from optsched.io.traces.dialect import TraceRead, TraceRequest, finish
from optsched.io.traces.ran_jobs import said_of
from optsched.io.traces.rows import Rows, seconds_of_date_times
from optsched.io.traces.text_table import TextTable
from optsched.problem.documents import parse_json

FIELDS = ("jobid", "submitted_time", "status", "user", "vc")
EXPECTED = "a list of jobs with jobid, submitted_time and attempts, as cluster_job_log of msr-fiddle/philly-traces"
ATTEMPTS_LEGAL = "a list of attempts with start_time, end_time and detail; no attempt ends before it starts"
Attempt = tuple[str, str, int]  # start, end, GPUs


def read_attempts(request: TraceRequest, text: str, digest: str) -> TraceRead:
    """Return the jobs of a ``cluster_job_log``.

    Parameters
    ----------
    request
        The file and the options of the call.
    text
        Content of the file.
    digest
        Digest of the file.
    """
    document = parse_json(text.encode(), request.path, EXPECTED, row=True)
    if not isinstance(document, list) or not document:
        raise InputError("no list of jobs", file=request.path, legal=EXPECTED)
    fields: dict[str, list[str]] = {name: [] for name in FIELDS}
    attempts, problems = [], []
    for row, job in enumerate(document, 1):
        if not isinstance(job, dict):
            problems.append(RowProblem(row, "job", str(job)[:40], EXPECTED))
            job = {}
        for name, values in fields.items():
            values.append(_text(job.get(name)))
        attempts.append(_attempts(job.get("attempts")))
    rows = Rows(replace(TextTable.of_jobs(str(request.path), fields, digest), problems=tuple(problems)))
    gangs, pieces, reasons = _ran(attempts)
    for reason in sorted(set(filter(None, reasons))):
        rows.leave_out(pl.Series([reason == other for other in reasons]), reason)
    ran = pl.Series("ran", pieces, dtype=pl.List(pl.List(pl.Float64)))
    rows.reject(ran.is_null(), "attempts", ATTEMPTS_LEGAL)
    lengths = [sum(end - start for start, end, *_ in job) if job else None for job in pieces]
    changed = pl.Series([any(piece[2:] for piece in job or ()) for job in pieces])
    said_of(
        rows,
        changed,
        "{} of the jobs ran attempts on other numbers of GPUs; an instance lets them run all their seconds on the first "
        "number, so its bounds may be above what ran",
    )
    said_of(
        rows,
        pl.Series([_overlap(job or []) for job in pieces]),
        "{} of the jobs have attempts that overlap: the duration is the sum of the attempts, longer than the job ran",
    )
    rows.say("times are Pacific and have no zone: the hour that is repeated in November occurs twice")
    jobs = {"id": rows.unique("jobid"), "arrival": rows.date_times("submitted_time"), "ran": ran}
    jobs |= {"gpus": pl.Series(gangs, dtype=pl.Int64), "duration": pl.Series(lengths, dtype=pl.Float64)}
    labels = {"status": "status", "user": "user", "group": "vc"}
    jobs |= {field: rows.text(name, required=False) for field, name in labels.items()}
    return finish(request, rows, jobs, from_earliest=("arrival",))


def _text(value: Any) -> str:
    # null, "None" and what is no text are missing
    return "" if not isinstance(value, str | int | float) or value == "None" else str(value).strip()


def _attempts(value: Any) -> list[Attempt] | None:
    # None: malformed
    if not isinstance(value, list) or not all(isinstance(attempt, dict) for attempt in value):
        return None
    found = []
    for attempt in value:
        machines = attempt.get("detail") or []
        if not isinstance(machines, list) or not all(isinstance(machine, dict) for machine in machines):
            return None
        lists = [machine.get("gpus") or [] for machine in machines]
        if not all(isinstance(gpus, list) for gpus in lists):
            return None
        found.append((_text(attempt.get("start_time")), _text(attempt.get("end_time")), sum(map(len, lists))))
    return found


def _overlap(pieces: list[list[float]]) -> bool:
    ordered = sorted(piece for piece in pieces if piece[1] > piece[0])
    return any(piece[0] < before[1] for before, piece in pairwise(ordered))


def _ran(attempts: list[list[Attempt] | None]) -> tuple[list[int | None], list[list[list[float]] | None], list[str]]:
    # by job: the gang, the pieces (None: malformed), and why it is left out
    texts = [text for job in attempts for start, end, _ in job or () for text in (start, end)]
    seconds = iter(seconds_of_date_times(pl.Series(texts, dtype=pl.String)).to_list())
    gangs: list[int | None] = []
    pieces: list[list[list[float]] | None] = []
    reasons = []
    for job in attempts:
        times = [(start, end, next(seconds), next(seconds), gpus) for start, end, gpus in job or ()]
        started = [attempt for attempt in times if attempt[0]]
        gang = next((gpus for *_, gpus in started if gpus), 0)
        why, ran = "", None
        if job is not None and all((at is not None or not start) for start, _, at, _, _ in times):
            whole = [(at, to, gpus) for _, _, at, to, gpus in started if to is not None and to >= at]
            if not started:
                why = "no start time" if times else "no attempt"
            elif not all(end for _, end, *_ in started):
                why = "still running"
            elif not gang:
                why = "no GPUs"
            elif len(whole) == len(started):
                ran = [[at, to] if gpus in (gang, 0) else [at, to, float(gpus)] for at, to, gpus in whole]
                why = "" if any(to > at for at, to, _ in whole) else "run time 0"
        gangs.append(gang or None)
        pieces.append(ran)
        reasons.append(why)
    return gangs, pieces, reasons
