"""The tables of ``score``: the result in a sentence, its bounds, groups of jobs, and what is odd in the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import polars as pl
from rich.console import Group
from rich.text import Text

from optsched.cli.layout import Sheet
from optsched.cli.run_table import METRICS, QUEUED, SLOWDOWN, SLOWDOWN_NOTE, WAIT, bound_notes, metric_cells, notes_of
from optsched.cli.wording import duration, instance_line
from optsched.errors import printable
from optsched.evaluation.score import WEEK, Score
from optsched.io.traces.log_reading import clock_of, in_its_unit, moment_in_words, reading_notes, unit_of
from optsched.problem.table import Table
from optsched.rounding import counted, number, ratio

DEFAULT_KEYS = ("size", "week")
ROWS = 10  # of a table of groups
LISTED = 5  # inconsistencies and spans
GROUPED = ("jobs", "GPU-h", QUEUED, "mean JCT", WAIT, "p95 wait", SLOWDOWN, "ratio alone")


def score_view(score: Score, tables: Mapping[str, Table], *, whole: bool = False) -> Group:
    """Return the tables of ``score`` with their notes.

    Parameters
    ----------
    score
        The result.
    tables
        Tables of groups by their key.
    whole
        True to print all rows of the tables of groups.
    """
    sentence = printable(score.sentence[0].upper() + score.sentence[1:] + ".")
    parts: list[Text | Sheet] = [Text(sentence, style="bold"), _bounds(score), _metrics(score)]
    for key, table in tables.items():
        parts.append(_groups(score, key, table if whole else table[:ROWS]))
        if not whole and len(table) > ROWS:
            more = counted(len(table) - ROWS, f"more {key}")
            parts.append(Text(f"and {more}: --all shows all, --by {key} --csv FILE writes all"))
    instance = score.instance
    notes = [instance_line(instance, score.report.skipped_rows), *notes_of(instance)]
    notes += [printable(note) for note in reading_notes(instance)]
    notes += bound_notes(score.report, [""])
    notes.append(SLOWDOWN_NOTE)
    notes.append("ratio alone: total flow time / a certified bound on it as if these jobs had the cluster alone")
    if score.left_out:
        names = ", ".join(map(printable, score.left_out[:LISTED])) + (" ..." if len(score.left_out) > LISTED else "")
        notes.append(f"without {counted(len(score.left_out), 'job')} that never ran: {names}")
    notes += _log_notes(score)
    return Group(*parts, *map(Text, notes))


def _bounds(score: Score) -> Sheet:
    line, exact = score.line, score.optimal or (score.line.bound is not None and score.line.bound.exact)
    queued = line.run.metrics["gpu_hours"]["waiting"] + line.run.metrics["gpu_hours"]["overhead"]
    slowdown, least = line.run.metrics["mean_bsld"], score.least_slowdown
    sheet = Sheet(("", line.policy, "best possible", "ratio", "avoidable at most"))
    sign = "=" if exact else "<=" if line.bound is not None and line.bound.gain else ">="
    sheet.add(
        score.objective,
        number(line.value, 12),
        "-" if line.bound is None else f"{sign} {number(line.bound.value, 12, 'up' if line.bound.gain else 'down')}",
        "-" if line.ratio is None else f"{'=' if exact else '<='} {ratio(line.ratio, exact=exact)}",
        "0" if score.optimal else number(score.avoidable, 4, "nearest" if exact else "up"),
    )
    if score.report.least_queued is not None:
        least_queued = f">= {number(score.report.least_queued, 4, 'down')}"
        sheet.add(
            in_its_unit(score.instance, QUEUED),
            number(queued),
            least_queued,
            "-",
            number(line.avoidable_queueing, 4, "up"),
        )
    over = slowdown / least
    sheet.add(SLOWDOWN, f"{slowdown:,.3f}", f">= {number(least, 4, 'down')}", f"<= {ratio(over)}", "-")
    return sheet


def _metrics(score: Score) -> Sheet:
    metrics = (in_its_unit(score.instance, head) for head in METRICS)
    sheet = Sheet(("policy", "knowledge", *metrics, "p95 slowdown"), texts=("knowledge",))
    run = score.run
    sheet.add(run.policy, str(run.knowledge), *metric_cells(run), f"{run.metrics['p95_bsld']:,.1f}")
    return sheet


def _groups(score: Score, key: str, table: pl.DataFrame) -> Sheet:
    instance, clock = score.instance, clock_of(score.instance)
    sheet = Sheet((key, *(in_its_unit(instance, head) for head in GROUPED)))
    for row in table.iter_rows(named=True):
        times = (duration(row[name]) for name in ("mean_jct", "mean_queueing", "p95_queueing"))
        name = "-" if row[key] is None else str(row[key])
        if key == "week" and clock is not None:
            name += f": {clock.date(instance.epoch + WEEK * (row[key] - 1))}"
        sheet.add(
            name,
            f"{row['jobs']:,}",
            number(row["gpu_hours"]),
            number(row["queued_gpu_hours"]),
            *times,
            f"{row['mean_bsld']:,.2f}",
            "-" if row["ratio"] is None else f"<= {ratio(row['ratio'])}",
        )
    return sheet


def _log_notes(score: Score) -> list[str]:
    notes, wrong, spans, unit = [], score.inconsistencies, score.idle_spans, unit_of(score.instance)
    if wrong:
        rules = ", ".join(f"{count:,} {rule}" for rule, count in Counter(entry.rule for entry in wrong).items())
        notes.append(f"the log is inconsistent in {counted(len(wrong), 'place')} ({rules}):")
        notes += [f"  {printable(str(entry))}" for entry in wrong[:LISTED]]
        notes += [f"  ... and {len(wrong) - LISTED:,} more (--json lists them)"] * (len(wrong) > LISTED)
    if spans:
        hours = number(sum(span.gpu_hours for span in spans))
        what = "an outage, dedicated time, or a limit that the instance does not know"
        times = counted(len(spans), "time")
        notes.append(
            f"{times} for more than an hour the next job waited although it fitted ({hours} idle {unit}-h): {what}"
        )
    for span in spans[:LISTED]:
        length, start = duration(span.end - span.start), moment_in_words(score.instance, span.start)
        idle, waiting = counted(span.idle, unit), counted(span.waiting, "job")
        notes.append(f"  from {start} for {length}: at least {idle} idle, up to {waiting} waiting")
    return notes
