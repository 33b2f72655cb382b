"""Dialect ``swf``: the Standard Workload Format of the Parallel Workloads Archive, and what simulators write under its name.

Rows of at least 18 numbers between blanks or tabs, -1 for what is unknown; comments after semicolons, those before the
first row are the header (`optsched.io.traces.swf_header`)::

    ; MaxProcs: 100
    ; Note: uses the EASY scheduler
        1        0 964980  97225   56     -1    -1   56 210000    -1  1   1   1  -1 -1 -1 -1 -1

======  =======================================================================================================
column  becomes
======  =======================================================================================================
1       ``id``
2       ``arrival``, kept unchanged; Unix seconds (>= 1e9) are counted from the earliest job
2 + 3   the start in ``ran``; 3 is the waiting time, -1: when the job ran is not known
4       ``duration``; rows with -1, another negative number or 0 are left out, by reason
5, 8    ``gpus``: processors that the job had, else those it asked for
9       ``walltime``, the limit that the user stated; -1 or 0: none
11      ``status`` as in the file: 1 completed, 0 failed, 5 cancelled, -1 unknown, 2 to be continued. It drops no job
12      ``user``
13, 15  ``group``: the group; the queue where no row has a group
17      not kept: a job that must end first; the number of jobs that name one is reported
others  not kept; columns beyond 18 are counted
======  =======================================================================================================

A job that was checkpointed has a row a part (status 2 for a part that is continued, then 3 completed or 4 failed), with or
without a summary before them. All rows of an id are one job: its run time is that of the summary, else the sum, and its
parts say when it ran. The cluster is one node with ``MaxProcs``, else ``MaxNodes``, else the most processors in use at
once; ``--cluster`` replaces it. These are CPU archives: what ``gpus`` counts here are processors.

Definition: S. J. Chapin et al., "Benchmarks and Standards for the Evaluation of Parallel Job Schedulers", JSSPP 1999, in
version 2.2 of the archive of D. Feitelson. Read whole: KTH-SP2-1996-2 and 10,000 jobs of Lublin's model. Oddities seen in
NASA-iPSC-1993-3.1, HPC2N-2002, LCG-2005 and in files of Alea, CQSim, evalys and AccaSim are read from rows made like them.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from optsched.errors import InputError, RowProblem
from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish
from optsched.io.traces.one_clock import are_unix_seconds
from optsched.io.traces.rows import Rows, pieces_of
from optsched.io.traces.swf_header import SwfHeader
from optsched.io.traces.text_table import SWF_COLUMNS, TextTable, is_swf, read_text
from optsched.problem.cluster import Cluster
from optsched.rounding import counted

COLUMNS = (
    *("job", "submit", "wait", "run", "processors", "cpu", "memory", "requested_processors", "requested_time"),
    *("requested_memory", "status", "user", "group", "application", "queue", "partition", "preceding", "think"),
)
PARTS = {"2": "2", "3": "1", "4": "0"}  # status of a part, and of a job whose last part it is
CANCELLED = "5"
LEGAL = f"rows of {SWF_COLUMNS} numbers between blanks, -1 for what is unknown"


def recognises(lines: Sequence[str]) -> bool:
    """Return True if the first lines of a file are those of a log in this format, also behind a line of names.

    Parameters
    ----------
    lines
        The first lines.
    """
    named = bool(lines) and len(lines[0].split()) >= SWF_COLUMNS and not is_swf(lines)
    unknown = any(line.startswith(";") or "-1" in line.split() for line in lines)  # tables of other numbers have none
    return unknown and is_swf(lines[1:] if named else lines)


@dialect("swf", guesses_cluster=True, counts="processors", recognises=recognises)
def read(request: TraceRequest) -> TraceRead:
    """Standard Workload Format, of the Parallel Workloads Archive; the gang of a job is its processors.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    rows, header = _rows(request)
    label = {name: rows.text(name, required=False).replace("-1", None) for name in ("user", "group", "queue")}
    label["group"] = label["group"] if label["group"].count() else label["queue"]
    jobs, pieces = _one_row_a_job(rows, _numbers(rows))
    gpus = pl.select(pl.when(jobs["processors"] > 0).then(jobs["processors"]).otherwise(jobs["requested_processors"]))
    jobs = jobs.with_columns(gpus.to_series().cast(pl.Int64).alias("gpus"))
    _leave_out(rows, jobs)
    _say_statuses(rows, jobs)
    stated = jobs.select(
        pl.when(pl.col("submit") != -1).then("submit"), pl.when(pl.col("requested_time") > 0).then("requested_time")
    )
    columns = {"id": rows.unique("job"), "arrival": stated["submit"], "walltime": stated["requested_time"]}
    columns |= {"gpus": jobs["gpus"], "duration": jobs["run"]}
    columns |= {"status": jobs["status"], "user": label["user"], "group": label["group"]}
    declared = _processors(rows, header)
    if _was_logged(rows, jobs):
        columns["ran"] = pieces
    rows.said += [f"note in the log: {note}" for note in header.notes]
    unix = are_unix_seconds(jobs["submit"].filter(rows.good))
    return finish(
        request,
        rows,
        columns,
        fields={"arrival": "submit", "gpus": "processors", "duration": "run", "walltime": "requested_time"},
        from_earliest=("arrival",) if unix else (),
        notes=header.clock | ({"unix_start": 0, "clock": "from the earliest job"} if unix else {}),
        cluster=None if declared is None or request.cluster else Cluster.parse(f"1x{declared}"),
    )


def _rows(request: TraceRequest) -> tuple[Rows, SwfHeader]:
    text, not_utf8, digest = read_text(request.path)
    lines = pl.DataFrame({"text": text.split("\n")}).with_row_index("line", offset=1)
    lines = lines.with_columns(
        pl.col("line").cast(pl.Int64), pl.col("text").str.replace_all(r"\s+", " ").str.strip_chars()
    )
    lines = lines.filter(pl.col("text") != "")
    comment = lines["text"].str.starts_with(";")
    first = lines["line"].filter(~comment).head(1)
    before = text.split("\n", int(first[0]) - 1 if len(first) else -1)
    header = SwfHeader.of(line for line in before[: int(first[0]) - 1 if len(first) else None] if line.startswith(";"))
    lines = lines.filter(~comment)
    words = lines["text"].str.count_matches(" ", literal=True) + 1
    number = lines["text"].str.contains(r"^[-+]?[\d.]+ [-+]?[\d.]+ ")
    if not ((words >= SWF_COLUMNS) & number).any():
        legal = f"{LEGAL}, comments after semicolons"
        raise InputError("no row of the Standard Workload Format (SWF)", file=request.path, legal=legal)
    if words[0] >= SWF_COLUMNS and not number[0]:  # a line of names
        lines, words = lines[1:], words[1:]
    fields = lines["text"].str.splitn(" ", SWF_COLUMNS + 1).struct.rename_fields([*COLUMNS, "more"]).struct.unnest()
    short = words < SWF_COLUMNS
    problems = [
        RowProblem(line, "columns", count, f"at least {SWF_COLUMNS} fields a row", "wrong number of fields")
        for line, count in zip(lines["line"].filter(short), words.filter(short), strict=True)
    ]
    read = set(lines["line"].to_list()) if not_utf8 else set()
    problems += [RowProblem(line, "bytes", "?", "UTF-8 text", "not UTF-8") for line in not_utf8 if line in read]
    rows = Rows(TextTable(str(request.path), fields.drop("more"), lines["line"], tuple(problems), digest))
    more = int((words > SWF_COLUMNS).sum())
    if more:
        most = int(words.max())  # type: ignore[arg-type]
        rows.say(
            f"{counted(more, 'row')} with more than {SWF_COLUMNS} columns, up to {most}: those beyond are not read"
        )
    return rows, header


def _numbers(rows: Rows) -> pl.DataFrame:
    # the columns that are used, as f64[rows]; `job` and `status` as text
    legal = "a number; -1: unknown"
    columns = [rows.number(name, legal=legal) for name in ("submit", "wait", "run", "requested_time", "preceding")]
    columns += [
        rows.number(name, whole=True, legal="an integer; -1: unknown")
        for name in ("processors", "requested_processors")
    ]
    return pl.DataFrame([rows.text("job"), rows.text("status"), *columns]).with_row_index("row")


def _one_row_a_job(rows: Rows, table: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    """Return the table, in which one row of a job has its run time, status and pieces, and the pieces; leave others out."""
    start = (table["submit"] + table["wait"]).set(table["wait"] < 0, None)
    pieces = pieces_of(start, start + table["run"])
    part = pl.col("status").is_in(list(PARTS))
    table = table.with_columns(part=part, several=part.any().over("job"), good=rows.good)
    if not table["several"].any():
        return table, pieces
    # of each job: the summary, else the first part
    table = table.with_columns(
        kept=(pl.col("row") == pl.col("row").sort_by("part", "row").first().over("job")) | ~pl.col("several"),
        broken=pl.col("several") & ~pl.col("good").all().over("job"),
    )
    rows.reject(table["broken"] & rows.good, "job", "a job whose other rows can be read", "another part is invalid")
    rows.pass_over(~table["kept"])
    stay = pl.col("wait") + pl.col("run").clip(0)
    parts = table.filter("part", ~pl.col("broken")).with_columns(
        end=(pl.col("submit").first() + stay.cum_sum()).over("job"), known=(pl.col("wait") >= 0).all().over("job")
    )
    piece = pl.concat_list(pl.col("end") - pl.col("run"), "end").filter(pl.col("run") > 0)
    joined = parts.group_by("job", maintain_order=True).agg(
        sum=pl.col("run").clip(0).sum(),
        last=pl.col("status").last().replace(PARTS),
        ran=piece,
        known=pl.col("known").first(),
    )
    rows.say(
        f"{counted(joined.height, 'job')} ran in parts (status 2, 3 and 4), a row each: the rows of an id are one job"
    )
    table = table.join(joined, on="job", how="left", maintain_order="left")
    of_parts = pl.col("part") & pl.col("several")
    table = table.with_columns(
        ran=pl.when("several").then(pl.when("known").then("ran")).otherwise(pieces),
        run=pl.when(of_parts).then("sum").otherwise("run"),
        status=pl.when(of_parts).then("last").otherwise("status"),
    )
    return table, table["ran"]


def _leave_out(rows: Rows, jobs: pl.DataFrame) -> None:
    negative = rows.good & (jobs["run"] < -1)
    if negative.any():
        rows.say(f"{counted(int(negative.sum()), 'row')} with a negative run time other than -1: no end was logged")
    rows.leave_out((jobs["status"] == CANCELLED) & (jobs["run"] <= 0), "cancelled before it started")
    rows.leave_out(jobs["run"] < 0, "no run time")
    rows.leave_out(jobs["run"] == 0, "run time 0")
    rows.leave_out((jobs["gpus"] < 1), "no number of processors")
    rows.leave_out(jobs["submit"] == -1, "no submission time")


def _say_statuses(rows: Rows, jobs: pl.DataFrame) -> None:
    status = jobs["status"].filter(rows.good)
    count = {name: int((status == name).sum()) for name in ("-1", "0")}
    if 0 < count["0"] == len(status):
        rows.say("the status is 0 (failed) in every row, as a converter writes it: the jobs are kept")
    if count["-1"]:
        rows.say(f"the status of {count['-1']:,} of {counted(len(status), 'job')} is -1: unknown, not failed")


def _processors(rows: Rows, header: SwfHeader) -> int | None:
    count, field = header.processors
    if field == "MaxNodes":
        rows.say("the header has no MaxProcs: its MaxNodes is the number of processors")
    value = header.fields.get(field.lower(), "")
    if count is not None and value != str(count):
        rows.say(f"{field} is {value!r} in the header: {count} is taken")
    return count


def _was_logged(rows: Rows, jobs: pl.DataFrame) -> bool:
    """Return whether the waiting times are those of a schedule; note why not, and how many predecessors are lost."""
    judged = jobs.filter(rows.good)
    before, wait = judged["preceding"], judged["wait"]
    constant = before.n_unique() == 1 and len(before) > 1
    named = 0 if constant else int((before > 0).sum())
    if constant and before[0] > 0:
        rows.say(f"column 17 is {before[0]:g} in every row, which is no job that must end first")
    if named:
        rows.say(f"column 17 orders {counted(named, 'job')} after another one: this order is not kept")
    if not (wait >= 0).any():
        rows.say("no schedule was logged: the waiting time is unknown in every row")
        return False
    if named and (wait == 0).all():
        rows.say("no schedule was logged: the waiting time is 0 in every row, also of jobs that wait for another one")
        return False
    return True
