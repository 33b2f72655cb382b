"""The page of ``run``: the distance from the best possible schedule, policies over time, and who gains and loses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from optsched.classes import CLASSES
from optsched.errors import printable
from optsched.evaluation.as_logged import AS_LOGGED
from optsched.evaluation.report import Report
from optsched.evaluation.score import in_words
from optsched.io.traces.log_reading import (
    COUNTS,
    LEFT_OUT,
    NOT_MODELLED,
    ORIGIN,
    SAID,
    SKIPPED,
    ZONE,
    clock_of,
    reading_notes,
    unit_of,
)
from optsched.plot.labels import by_label
from optsched.plot.time_axis import in_unit
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.report.job_groups import (
    SAME,
    JobGroups,
    by_duration,
    by_people,
    by_size,
    completion_times,
    gains,
    queued_hours,
)
from optsched.report.optimality_sentence import DEFINED, comparison, distance, objective_in_words
from optsched.report.page import CURVES, PageFacts, PageLines, PageSection, PageTable, page
from optsched.report.page_charts import line_chart
from optsched.report.series import over_time
from optsched.rounding import counted, number, ratio
from optsched.simulation.knowledge import Knowledge
from optsched.simulation.metrics import bounded_slowdowns
from optsched.speeds.duration import solo_times

FULL = 0.95  # share of the GPUs from which on a cluster counts as full
MOST_GROUPS = 10  # users or groups on each side of the table of gains


def run_page(
    report: Report,
    table: PageTable,
    notes: Sequence[str] = (),
    command: str = "",
    more: Sequence[PageSection] = (),
) -> str:
    """Return the page of a run.

    Parameters
    ----------
    report
        The report.
    table
        The table of ``run``.
    notes
        The notes below that table.
    command
        The command that made the page.
    more
        Further sections, which stand above the assumptions.
    """
    schedules = {label: run.schedule for label, run in by_label(report.runs).items()}
    instance, first = report.instance, report.lines[0]
    sections = [
        PageSection("Policies", [*_tables(table, report), PageLines(without_reading(notes, instance))]),
        *over_time_section(schedules),
        *slowdown_section(schedules),
        *gains_section(schedules),
        *more,
        assumptions_section(report),
    ]
    title = f"{instance.name or 'Jobs'}: {', '.join(list(schedules)[:4])}{' ...' if len(schedules) > 4 else ''}"
    details = [*comparison(report), *filter(None, [DEFINED.get(report.objective)])]
    return page(
        title,
        distance(first),
        sections,
        details=details,
        figures=key_figures(report),
        command=command,
        instance=instance,
    )


def _tables(table: PageTable, report: Report) -> list[PageTable]:
    """Return the table of ``run`` as two: the distance from the best possible schedule, with the bound, and the metrics."""
    end = len(table.heads) - (2 if any(line.guarantee for line in report.lines) else 1)
    bounds = ["-" if line.bound is None else number(line.bound.value) for line in report.lines]
    rows = [[*row[:3], bound, row[3], *row[end:]] for row, bound in zip(table.rows, bounds, strict=True)]
    heads = ["policy", "knowledge", objective_in_words(report.objective), "bound", "ratio", *table.heads[end:]]
    measured = [[row[0], *row[4:end]] for row in table.rows]
    return [
        PageTable(heads, rows, "Distance from the best possible schedule", table.texts),
        PageTable([table.heads[0], *table.heads[4:end]], measured, "Metrics"),
    ]


def key_figures(report: Report) -> list[tuple[str, str]]:
    """Return the main numbers of the first policy, as (number, meaning).

    Parameters
    ----------
    report
        The report.
    """
    first, instance, figures = report.lines[0], report.instance, []
    metrics = first.run.metrics
    if first.ratio is not None and first.bound is not None:
        exact = first.bound.exact or first.optimal
        times = f"{ratio(first.ratio, 2, exact=exact)} \u00d7"
        figures.append((times if exact else f"\u2264\u00a0{times}", "times the best possible"))
    if metrics["finished"] and not metrics["unfinished"]:
        figures.append((in_unit(metrics["mean_jct"]), "mean JCT"))
        figures.append((in_unit(metrics["mean_queueing"]), "mean wait"))
    figures.append((f"{100 * metrics['utilization']:.1f} %", f"utilisation of the {unit_of(instance)}s"))
    figures = [(value, f"{first.policy}: {meaning}") for value, meaning in figures]
    return [*figures, (f"{instance.n:,}", f"jobs on {counted(instance.cluster.gpus, unit_of(instance))}")]


def over_time_section(schedules: Mapping[str, Schedule]) -> list[PageSection]:
    """Return the section of occupancy, queue and utilisation over time; none for empty schedules.

    Parameters
    ----------
    schedules
        Schedules by name; curves of the first `CURVES` are drawn.
    """
    drawn = {name: schedule for name, schedule in list(schedules.items())[:CURVES] if len(schedule)}
    if not drawn:
        return []
    series, end, step, part = over_time(drawn)
    instance = next(iter(drawn.values())).instance
    gpus, unit, clock = instance.cluster.gpus, unit_of(instance), clock_of(instance)
    full = f"time with {100 * FULL:.0f} % of the {unit}s held"
    heads = ("policy", f"mean {unit}s held", full, "mean jobs waiting", "most jobs waiting", "at")
    rows, used = [], []
    for name, s in series.items():
        busy = f"{100 * float((s.held >= FULL * gpus).mean()):.0f} %"
        when = clock.date(instance.epoch + s.when, "%Y-%m-%d %H:%M") if clock else in_unit(s.when)
        waits = (number(s.waiting.mean()), f"{s.most_waiting:,.0f}", when)
        rows.append((name, number(s.held.mean()), busy, *waits))
        used.append(f"{name}: {100 * float(np.dot(s.utilization, np.diff(np.append(s.days, end))) / end):.1f} %")
    holds = [f"{row[0]}: mean {row[1]} of {gpus:,} {unit}s" for row in rows]
    queues = [f"{row[0]}: mean {row[3]} jobs, at most {row[4]} at {row[5]}" for row in rows]
    last = max(float(schedule.relative.end.max()) for schedule in drawn.values())
    start = f", {clock.moment(instance.epoch)}" if clock else ""
    intro = f"Time counts from the first submission{start}. The first two charts show means by {step}."
    if end < last:
        intro += f" The charts end before the last few jobs, which run until {in_unit(last)}."
    if len(schedules) > len(drawn):
        intro += f" The charts show the first {len(drawn)} policies."
    named = series.items()
    share = f"Utilisation: share of the {unit}s that do work, by {part}"
    charts = [
        line_chart(
            f"{unit[0].upper()}{unit[1:]}s held, of {gpus:,}",
            [(n, s.edges, s.held) for n, s in named],
            end,
            holds,
            gpus,
        ),
        line_chart("Waiting jobs", [(n, s.edges, s.waiting) for n, s in named], end, queues),
        line_chart(share, [(n, s.days, 100 * s.utilization) for n, s in named], end, used, 100.0, " %"),
    ]
    table = PageTable(heads, rows, f"The first two charts in numbers, over {in_unit(end)}")
    return [PageSection("Over time", [*charts, table], intro, legend=list(series))]


def slowdown_section(schedules: Mapping[str, Schedule]) -> list[PageSection]:
    """Return the section of the mean bounded slowdown by class of size and duration; none without jobs.

    Parameters
    ----------
    schedules
        Schedules of the same jobs by name.
    """
    instance = next(iter(schedules.values())).instance
    if not instance.n:
        return []
    values = {name: bounded_slowdowns(s.relative.instance, s.relative.completion) for name, s in schedules.items()}
    size, length = by_size(instance), by_duration(instance)
    intro = (
        "The slowdown of a job is its completion time divided by its processing time (at least 10 seconds). 1 means that "
        "the job never waited. Each number is the mean over the jobs of a class."
    )
    tables = [_slowdowns(size, values, "gang"), _slowdowns(length, values, "processing time")]
    crossed = _slowdowns(size.crossed(length), values, "gang and processing time")
    return [PageSection("Slowdown by class of job", tables, intro, more=[crossed], more_title="By gang and duration")]


def _slowdowns(groups: JobGroups, values: Mapping[str, np.ndarray], head: str) -> PageTable:
    sizes, means = groups.sizes, [groups.means(value) for value in values.values()]
    rows = [
        (name, f"{sizes[k]:,}", *(_slowdown(float(mean[k])) for mean in means))
        for k, name in enumerate(groups.names)
        if sizes[k]
    ]
    return PageTable((head, "jobs", *values), rows, f"Mean slowdown by {head}")


def _slowdown(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def gains_section(schedules: Mapping[str, Schedule]) -> list[PageSection]:
    """Return the section that shows who gains and who loses against the first schedule; none for a single one.

    Parameters
    ----------
    schedules
        Schedules of the same jobs by name.
    """
    (base, first), *others = schedules.items()
    if not others:
        return []
    field, groups = by_people(first.instance)
    changes = {name: gains(first, other, groups) for name, other in others}
    heads, rows = ["policy", "jobs earlier", "jobs later", "largest delay of a job"], []
    heads += [f"{field}s that gain", f"{field}s that lose"] if field else []
    for name, change in changes.items():
        counts = (f"{n:,} ({100 * n / max(first.instance.n, 1):.1f} %)" for n in (change.earlier, change.later))
        people = (f"{int(side.sum()):,}" for side in (change.change < -SAME, change.change > SAME))
        rows.append([name, *counts, in_unit(change.worst), *(people if field else ())])
    parts = [PageTable(heads, rows, f"Jobs that complete earlier or later than under {base}")]
    if field:
        parts.append(_people(schedules, field, groups, {name: change.change for name, change in changes.items()}))
    gain = f"{field} gains if its mean job completion time (JCT)" if field else "job gains if its completion time"
    intro = f"Every policy is compared with {base}, the first one. A {gain} decreases."
    return [PageSection("Who gains and who loses", parts, intro)]


def _people(
    schedules: Mapping[str, Schedule], field: str, groups: JobGroups, changes: Mapping[str, np.ndarray]
) -> PageTable:
    """Return the table of the groups that gain and lose most under the policy with the smallest total flow time."""
    base, first = next(iter(schedules.items()))
    chosen = min(changes, key=lambda name: float(np.nansum(completion_times(schedules[name]))))
    order, which = np.argsort(changes[chosen] * groups.sizes, kind="stable").tolist(), "all"
    if len(order) > 2 * MOST_GROUPS:
        which = f"the {MOST_GROUPS} that gain most and the {MOST_GROUPS} that lose most, of {len(order):,}"
        order = [*order[:MOST_GROUPS], *order[-MOST_GROUPS:]]
    means, hours = groups.means(completion_times(first)), groups.sums(queued_hours(first))
    rows = [
        [groups.names[k], f"{groups.sizes[k]:,}", number(hours[k]), number(means[k] / 3600)]
        + [f"{change[k] / 3600:+.3g}" for change in changes.values()]
        for k in order
    ]
    heads = [
        field,
        "jobs",
        f"queued {unit_of(first.instance)}-h, {base}",
        f"mean JCT in h, {base}",
        *(f"change, {name}" for name in changes),
    ]
    caption = f"Change of the mean JCT in hours by {field} ({which}), sorted by the total change under {chosen}"
    return PageTable(heads, rows, caption)


def assumptions_section(report: Report) -> PageSection:
    """Return the section of assumptions: knowledge, restart costs, class of the bounds, and the reading of the log.

    Parameters
    ----------
    report
        The report.
    """
    facts = [
        (f"Knowledge of {line.policy}", f"{line.knowledge}: it {Knowledge(line.knowledge).meaning}")
        for line in report.lines
        if line.knowledge in tuple(Knowledge) and line.policy != AS_LOGGED
    ]
    for bound in dict.fromkeys(line.bound for line in report.lines if line.bound is not None):
        best = (
            f"{CLASSES.get(bound.schedule_class).optimum} and knows all jobs in advance (class {bound.schedule_class})"
        )
        proof = "a proven optimum" if bound.exact else "a bound on it, re-verified from the instance"
        facts.append(("The best possible", f"{best}; {proof}: {bound.kind}"))
    facts.append(("Restart costs", _restart_costs(report)))
    return PageSection("Assumptions", [PageFacts([*facts, *reading_facts(report.instance, report.skipped_rows)])])


def _restart_costs(report: Report) -> str:
    table = report.instance.table
    stated = int((table["restart"].is_not_null() | table["checkpoint"].is_not_null()).sum())
    said = [
        f"{stated:,} of {table.height:,} jobs state what a restart costs." if stated else "No job states restart costs."
    ]
    stopping = [run for run in report.runs if run.preemptions]
    for run in stopping:
        hours = number(run.metrics["gpu_hours"]["overhead"])
        said.append(f"{run.policy} stops jobs; restarts take {hours} {unit_of(report.instance)}-hours of its run.")
    return " ".join(said if stopping else [*said, "No policy stops a job."])


def without_reading(notes: Sequence[str], instance: Instance) -> list[str]:
    """Return notes without those on how the log was read, which stand among the assumptions.

    Parameters
    ----------
    notes
        The notes of a table.
    instance
        The instance.
    """
    reading = set(map(printable, reading_notes(instance)))
    return [note for note in notes if note not in reading]


def reading_facts(instance: Instance, skipped_rows: int = 0) -> list[tuple[str, str]]:
    """Return facts on how the source was read, as (term, statement).

    Parameters
    ----------
    instance
        The instance.
    skipped_rows
        Invalid rows of the source that were left out.
    """
    hours = float(np.dot(instance.gpus, solo_times(instance).seconds)) / 3600.0
    facts = [("Jobs", f"{instance.n:,}, which ask for {in_words(hours)} {unit_of(instance)}-hours")]
    recipe = instance.recipe or {}
    parameters = recipe.get("parameters")
    if recipe.get("name"):
        said = parameters.items() if isinstance(parameters, Mapping) else ()
        stated = (
            (name, str(value))
            for name, value in said
            if name not in (NOT_MODELLED, LEFT_OUT, SKIPPED, SAID, ORIGIN, ZONE, COUNTS) and value is not None
        )
        shown = ", ".join(f"{name} {value if len(value) < 80 else value[:80] + ' ...'}" for name, value in stated)
        facts.append(("Source", f"{recipe['name']}{f' ({shown})' if shown else ''}"))
    if skipped_rows:
        facts.append(("Rows left out", f"{skipped_rows:,} invalid rows of the source"))
    return [*facts, *(("Reading of the log", line) for line in reading_notes(instance))]
