"""The table of ``run``: value, ratio, metrics and guarantee of every policy, with notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from rich.console import Group
from rich.text import Text

from optsched.classes import usual_class
from optsched.cli.layout import Sheet
from optsched.cli.wording import duration, instance_line
from optsched.errors import printable
from optsched.evaluation.advice.sentences import at_most
from optsched.evaluation.as_logged import AS_LOGGED
from optsched.evaluation.optimum_bounds import KNOWN
from optsched.evaluation.report import Report, queued_hours
from optsched.guarantees.judge import Judgement
from optsched.io.traces.log_reading import in_its_unit, reading_notes
from optsched.problem.instance import Instance
from optsched.registry import PartsByClass
from optsched.report.classes import UNLIKE, report_marks
from optsched.rounding import counted, number, ratio, significant
from optsched.simulation.knowledge import Knowledge
from optsched.simulation.run import Run
from optsched.speeds.duration import solo_times

QUEUED, AVOIDED, WAIT, SLOWDOWN = "queued GPU-h", "queued GPU-h avoided", "mean wait", "mean slowdown"
SLOWDOWN_NOTE = "slowdown: bounded slowdown, max(1, JCT / max(duration, 10 s))"
METRICS = ("mean JCT", "p99 JCT", "util", WAIT, "makespan", "max FTF", "idle GPU-h", QUEUED)


def metric_cells(run: Run) -> tuple[str, ...]:
    """Return the metrics of a run as the columns `METRICS` show them.

    Parameters
    ----------
    run
        The run.
    """
    metrics = run.metrics
    hours = metrics["gpu_hours"]
    utilization = f"{100 * metrics['utilization']:.1f} %"
    if metrics["unfinished"]:  # means over the finished jobs alone would flatter a policy that leaves others undone
        return ("-", "-", utilization, "-", "-", "-", number(hours["idle"]), "-")
    return (
        duration(metrics["mean_jct"]),
        duration(metrics["p99_jct"]),
        utilization,
        duration(metrics["mean_queueing"]),
        duration(metrics["makespan"]),
        f"{metrics['max_ftf']:.2f}",
        number(hours["idle"]),
        number(hours["waiting"] + hours["overhead"]),
    )


class Columns(NamedTuple):
    """Metrics of a table: their heads, their cells for a run; ``queued``: the table compares queued GPU-hours."""

    heads: tuple[str, ...] = METRICS
    cells: Callable[[Run], tuple[str, ...]] = metric_cells
    queued: bool = True


# by class of schedules: the metrics that its runs are judged by
COLUMNS: PartsByClass[Columns] = PartsByClass("optsched.cli", Columns())


def columns_of(instance: Instance) -> Columns:
    """Return the columns with metrics for runs of an instance.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    """
    return COLUMNS.of(usual_class(instance).name)


def report_view(report: Report) -> Group:
    """Return the table of ``run`` with its notes.

    Parameters
    ----------
    report
        The report.
    """
    metrics = columns_of(report.instance)
    columns = [k for k, name in enumerate(metrics.heads) if name != report.objective]  # not the makespan twice
    shown = (*(metrics.heads[k] for k in columns), *[AVOIDED] * metrics.queued)
    heads = ("policy", "knowledge", report.objective, "ratio", *(in_its_unit(report.instance, head) for head in shown))
    theorems = any(line.guarantee for line in report.lines)
    sheet = Sheet((*heads, *["guarantee"] * theorems), texts=("knowledge",), tells=("guarantee",))
    letters = report_marks(report)
    for line, letter in zip(report.lines, letters, strict=True):
        exact, cells = line.bound is not None and line.bound.exact, metrics.cells(line.run)
        quotient = "-"
        if line.ratio is not None:
            quotient = f"{'=' if exact else '<='} {ratio(line.ratio, exact=exact)} {letter}".rstrip()
        sheet.add(
            line.run.policy,
            line.knowledge,
            number(line.value),
            quotient,
            *(cells[k] for k in columns),
            *[number(line.queued_avoided)] * metrics.queued,
            *(["-" if line.guarantee is None else judged(line.guarantee, report.objective)] if theorems else []),
        )
    notes = [instance_line(report.instance, report.skipped_rows), *notes_of(report.instance)]
    notes += map(printable, reading_notes(report.instance))
    notes += bound_notes(report, letters) + (_metric_notes(report) if metrics.queued else [])
    notes += [*limit_notes(report), *_log_notes(report)]
    notes += _unfinished_notes(report)
    return Group(sheet, *(Text(note) for note in notes))


def finished_view(instance: Instance, objective: str, runs: list[Run]) -> Group:
    """Return the table of an interrupted ``run``: the policies that had finished, without ratios.

    Parameters
    ----------
    instance
        The instance.
    objective
        Name of the objective.
    runs
        The finished runs.
    """
    metrics = columns_of(instance)
    heads = (in_its_unit(instance, head) for head in metrics.heads)
    sheet = Sheet(("policy", "knowledge", objective, *heads), texts=("knowledge",))
    for run in runs:
        sheet.add(run.policy, str(run.knowledge), number(run.value(objective)), *metrics.cells(run))
    note = "interrupted: these policies had finished; no bound was computed"
    return Group(sheet, Text(instance_line(instance)), Text(note))


def judged(judgement: Judgement, objective: str) -> str:
    """Return a judgement in words; its factor is shown only with the theorem's own objective.

    Parameters
    ----------
    judgement
        The judgement.
    objective
        The objective of the table.
    """
    if judgement.objective != objective:
        return f"{judgement.id}: {judgement.verdict}, on {judgement.objective}"
    return f"{judgement.id}: <= {significant(judgement.ratio, 4, 'up')} x optimum {judgement.verdict}"


# by class of schedules: notes on an instance on which its results depend
NOTES: PartsByClass[Callable[[Instance], list[str]]] = PartsByClass("optsched.cli", lambda _: [])


def notes_of(instance: Instance) -> list[str]:
    """Return the notes on an instance.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    """
    return NOTES.of(usual_class(instance).name)(instance)


def bound_notes(report: Report, letters: list[str]) -> list[str]:
    """Return a line for every bound of a report.

    Parameters
    ----------
    report
        The report.
    letters
        Letter of every line of the report; empty where all ratios may be compared.
    """
    notes = []
    prefixes = {line.bound: f"{letter}: " for line, letter in zip(report.lines, letters, strict=True) if letter}
    for bound in dict.fromkeys(line.bound for line in report.lines):
        if bound is None:
            without = ", ".join(line.run.policy for line in report.lines if line.bound is None)
            notes.append(f"no ratio for {without}: no bound on {report.objective} is known for this class of schedules")
            continue
        prefix = prefixes.get(bound, "")
        if bound.kind == KNOWN:
            methods = " and ".join((report.instance.optimum or {}).get("proved_by", [])) or "an unnamed method"
            value = number(bound.value, 12)
            notes.append(f"{prefix}optimum {value} (class {bound.schedule_class}; proved by {methods})")
            continue
        side = "optimum" if bound.exact else "upper bound" if bound.gain else "lower bound"
        value = number(bound.value, 12, "up" if bound.gain else "down")
        notes.append(f"{prefix}{side} {value} ({bound.kind}, class {bound.schedule_class}; re-verified)")
    return notes + ([UNLIKE] if any(letters) else [])


def _metric_notes(report: Report) -> list[str]:
    first, most = report.lines[0], ""
    if first.avoidable_queueing is not None:
        queued = queued_hours(first.run)
        most = (
            f" ({number(queued)}, of which at most {at_most(first.avoidable_queueing, queued, number)} are avoidable)"
        )
    what = f"{QUEUED}: GPU-hours in which gangs waited or restarted; {AVOIDED}: difference from {first.policy}{most}"
    notes = [in_its_unit(report.instance, what)]
    bounded = int((~solo_times(report.instance).exact).sum())
    if bounded:
        jobs = counted(bounded, "job")
        notes.append(f"max FTF is an upper bound: for {jobs} the time on the best placement is known only as a bound")
    return notes


def limit_notes(report: Report) -> list[str]:
    """Return a note on jobs without limits, if a policy of a report reads limits.

    Parameters
    ----------
    report
        The report.
    """
    readers = [run.policy for run in report.runs if run.knowledge == Knowledge.USER_LIMITS]
    without = report.instance.table["walltime"].null_count()
    if not readers or not without:
        return []
    who = ", ".join(readers) if len(readers) < 3 else f"{len(readers)} policies"
    jobs = f"{without:,} of {report.instance.n:,}"
    return [f"users' limits for {who}: {jobs} jobs state none, which count as a year; walltime=exact takes durations"]


def _unfinished_notes(report: Report) -> list[str]:
    notes = []
    for run in (line.run for line in report.lines if line.run.unfinished):
        names = ", ".join(map(printable, run.unfinished[:5])) + (" ..." if len(run.unfinished) > 5 else "")
        what = "has no run in the log" if run is report.logged else "did not finish"
        notes.append(f"{run.policy}: {counted(len(run.unfinished), 'job')} {what}: {names}")
    return notes


def _log_notes(report: Report) -> list[str]:
    if report.logged is None:
        return []
    rules = Counter(entry.rule for entry in report.logged.inconsistencies)
    if not rules:
        return []
    listed = ", ".join(f"{count:,} {rule}" for rule, count in rules.items())
    ratio, note = (
        report.lines[0].ratio,
        f"{AS_LOGGED}: the log is inconsistent ({listed}): `optsched score` lists where",
    )
    return [note + ("; its value is therefore better than the bound" if ratio is not None and ratio < 1 else "")]
