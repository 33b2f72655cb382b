"""HTML views for notebooks.

A view shows a line of facts, a table, and a Gantt chart if it is small. It is plain HTML without scripts or styles; names
are escaped, and charts are PNG inside the fragment.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from optsched.classes import usual_class
from optsched.problem.html import VIEWS, escaped, number
from optsched.problem.schedule import Schedule
from optsched.report.classes import UNLIKE, report_marks

if TYPE_CHECKING:
    from optsched.adversary.attack_search import Attack
    from optsched.bounds import Certificate
    from optsched.evaluation.report import Report
    from optsched.problem.instance import Instance
    from optsched.simulation.run import Run
    from optsched.solvers.solution import Solution

SHOWN_JOBS = 10  # rows of a table of jobs
DRAWN_JOBS, DRAWN_GPUS, DRAWN_SEGMENTS = 60, 64, 600  # a picture of more is asked for with `optsched.plot.gantt`
PICTURE_DPI = 80
FIELDS = ("id", "arrival", "gpus", "duration", "iterations", "profile", "weight", "due")


@VIEWS.register("instance")
def instance_view(instance: Instance) -> str:
    """Return the view of an instance: name, size and the first jobs.

    Parameters
    ----------
    instance
        The instance.
    """
    table = instance.table.head(SHOWN_JOBS)
    names = [name for name in FIELDS if table[name].null_count() < table.height]
    facts = [f"{instance.n:,} job{'s' if instance.n != 1 else ''}", f"cluster {instance.cluster.spec}"]
    facts += [instance.objective] if instance.objective else []
    facts += [f"proven optimum {_value(instance.optimum['value'])}"] if instance.optimum else []
    more = f"<p>... and {instance.n - SHOWN_JOBS:,} more jobs</p>" if instance.n > SHOWN_JOBS else ""
    return _head("Instance", instance.name, facts) + _rows(names, table.select(names).rows()) + more


@VIEWS.register("run")
def run_view(run: Run) -> str:
    """Return the view of a run: policy, metrics and a Gantt chart.

    Parameters
    ----------
    run
        The run.
    """
    metrics = run.metrics
    facts = [str(run.knowledge), f"{metrics['finished']:,} of {metrics['jobs']:,} jobs finished"]
    names = ("mean_jct", "p95_jct", "mean_queueing", "makespan", "utilization")
    table = _rows(names, [[number(metrics[name]) for name in names]])
    return _head("Run", f"{run.policy} on {run.instance.name}", facts) + table + picture(run.schedule)


@VIEWS.register("solution")
def solution_view(solution: Solution) -> str:
    """Return the view of a solution: status, interval, model and a Gantt chart.

    Parameters
    ----------
    solution
        The solution.
    """
    names = ("objective", "value", "bound", "gap", "model", "seconds")
    row = [
        solution.objective,
        *("" if value is None else number(value) for value in (solution.value, solution.bound)),
        "" if solution.gap is None else f"{solution.gap:.3g}",
        solution.model,
        f"{solution.seconds:.2f}",
    ]
    on = "" if solution.schedule is None else f" of {solution.schedule.instance.name}"
    drawn = "" if solution.schedule is None else picture(solution.schedule)
    return _head("Solution", solution.status + on, [solution.note]) + _rows(names, [row]) + drawn


@VIEWS.register("certificate")
def certificate_view(certificate: Certificate) -> str:
    """Return the view of a certificate: the bound, its class of schedules and its kind.

    Parameters
    ----------
    certificate
        The certificate.
    """
    sign = "at most" if certificate.gain else "at least"
    facts = [f"{certificate.objective} is {sign} {number(certificate.exact_float)}"]
    names = ("class", "kind", "exact", "instance")
    exact = certificate.exact if len(certificate.exact) <= 40 else f"{certificate.exact[:37]}..."
    row = [certificate.schedule_class, certificate.kind, exact, f"{certificate.instance[:12]}..."]
    return _head("Certificate", "", facts) + _rows(names, [row])


@VIEWS.register("schedule")
def schedule_view(schedule: Schedule) -> str:
    """Return the view of a schedule: its size and a Gantt chart.

    Parameters
    ----------
    schedule
        The schedule.
    """
    facts = [
        f"{len(schedule):,} segments",
        f"{int(schedule.finished.sum()):,} of {schedule.instance.n:,} jobs finished",
    ]
    name = " on ".join(filter(None, (schedule.policy, schedule.instance.name)))
    return _head(type(schedule).__name__, name, facts) + picture(schedule)


@VIEWS.register("report")
def report_view(report: Report) -> str:
    """Return the view of a report: one row a policy with value, bound and ratio.

    Letters mark ratios that cannot be compared (`optsched.report.classes`).

    Parameters
    ----------
    report
        The report.
    """
    letters = report_marks(report)
    names = ("policy", "knowledge", report.objective, "bound", "ratio", "to", "class", "mean_jct")
    rows = [
        [
            line.run.policy,
            str(line.run.knowledge),
            number(line.value),
            "" if line.bound is None else number(line.bound.value),
            "" if line.ratio is None else f"{line.ratio:.3f} {mark}".rstrip(),
            "" if line.ratio is None or line.bound is None else line.bound.ratio_to,
            "" if line.bound is None else line.bound.schedule_class,
            number(line.run.metrics["mean_jct"]),
        ]
        for line, mark in zip(report.lines, letters, strict=True)
    ]
    note = f"<p>{escaped(UNLIKE)}</p>" if any(letters) else ""
    return _head("Report", report.instance.name, [f"{report.instance.n:,} jobs"]) + _rows(names, rows) + note


@VIEWS.register("attack")
def attack_view(found: Attack) -> str:
    """Return the view of an attack: the ratio, the jobs and further facts.

    Parameters
    ----------
    found
        The result of the attack.
    """
    names = ["id", *found.columns]
    table = _rows(names, found.instance.table.select(names).rows())
    said = "".join(f"<li>{escaped(fact)}</li>" for fact in found.facts)
    head = _head("Attack", found.instance.name, [found.headline, f"cluster {found.instance.cluster.spec}"])
    return f"{head}{table}<ul>{said}</ul>"


def is_small(schedule: Schedule) -> bool:
    """Return True if a schedule of whole jobs is small enough for a Gantt chart.

    Parameters
    ----------
    schedule
        The schedule.
    """
    instance = schedule.instance
    small = instance.n <= DRAWN_JOBS and instance.cluster.gpus <= DRAWN_GPUS and 0 < len(schedule) <= DRAWN_SEGMENTS
    return small and usual_class(instance).whole


def picture(schedule: Schedule) -> str:
    """Return a Gantt chart as an HTML image; empty for a large schedule or jobs with tasks (`optsched.plot.tasks`).

    Parameters
    ----------
    schedule
        The schedule.
    """
    if not is_small(schedule):
        return ""
    from optsched.plot.canvas import png_of  # and with it matplotlib
    from optsched.plot.gantt import gantt

    drawn = base64.b64encode(png_of(gantt(schedule, by="gpu"), dpi=PICTURE_DPI)).decode()
    return f'<img alt="Gantt chart" src="data:image/png;base64,{drawn}">'


def _head(kind: str, name: str, facts: Iterable[str]) -> str:
    said = ", ".join(escaped(fact) for fact in facts if fact)
    named = f" <code>{escaped(name)}</code>" if name else ""
    return f"<p><b>{kind}</b>{named}{': ' if said else ''}{said}</p>"


def _rows(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    head = "".join(f"<th>{escaped(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return number(value) if isinstance(value, int | float) else escaped(str(value))


def _value(value: Any) -> str:
    return number(float(Fraction(value))) if isinstance(value, int | float | Fraction | str) else str(value)
