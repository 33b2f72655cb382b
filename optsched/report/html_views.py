"""What a notebook shows of an instance, a run, a solution, a certificate: a line, a table, a picture where it is cheap.

Plain HTML without scripts or styles of its own; names are escaped. Pictures are drawn as PNG, inside the fragment. The page
of an attack: what was found, the jobs, the schedules side by side, and the instance file itself.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from optsched.classes import CLASSES, ScheduleClass, usual_class
from optsched.problem.html import VIEWS, escaped, number
from optsched.problem.schedule import Schedule
from optsched.report.classes import UNLIKE

if TYPE_CHECKING:
    from optsched.adversary.attack import Attack
    from optsched.bounds import Certificate
    from optsched.problem.instance import Instance
    from optsched.report.comparison import Report
    from optsched.simulation.run import Run
    from optsched.solvers.solution import Solution

SHOWN_JOBS = 10  # rows of a table of jobs
DRAWN_JOBS, DRAWN_GPUS, DRAWN_SEGMENTS = 60, 64, 600  # a picture of more is asked for with `optsched.plot.gantt`
PICTURE_DPI = 80
FIELDS = ("id", "arrival", "gpus", "duration", "iterations", "profile", "weight", "due")


@VIEWS.register("instance")
def instance_view(instance: Instance) -> str:
    """Name, size and the first jobs."""
    table = instance.table.head(SHOWN_JOBS)
    names = [name for name in FIELDS if table[name].null_count() < table.height]
    facts = [f"{instance.n:,} job{'s' if instance.n != 1 else ''}", f"cluster {instance.cluster.spec}"]
    facts += [instance.objective] if instance.objective else []
    facts += [f"proven optimum {_value(instance.optimum['value'])}"] if instance.optimum else []
    more = f"<p>... and {instance.n - SHOWN_JOBS:,} more jobs</p>" if instance.n > SHOWN_JOBS else ""
    return _head("Instance", instance.name, facts) + _rows(names, table.select(names).rows()) + more


@VIEWS.register("run")
def run_view(run: Run) -> str:
    """Policy, metrics and a Gantt chart."""
    found = run.metrics
    facts = [str(run.knowledge), f"{found['finished']:,} of {found['jobs']:,} jobs finished"]
    names = ("mean_jct", "p95_jct", "mean_queueing", "makespan", "utilization")
    table = _rows(names, [[number(found[name]) for name in names]])
    return _head("Run", f"{run.policy} on {run.instance.name}", facts) + table + picture(run.schedule)


@VIEWS.register("solution")
def solution_view(solution: Solution) -> str:
    """Status, interval, model and a Gantt chart."""
    names = ("objective", "value", "bound", "gap", "model", "seconds")
    row = [
        solution.objective,
        *("" if each is None else number(each) for each in (solution.value, solution.bound)),
        "" if solution.gap is None else f"{solution.gap:.3g}",
        solution.model,
        f"{solution.seconds:.2f}",
    ]
    on = "" if solution.schedule is None else f" of {solution.schedule.instance.name}"
    drawn = "" if solution.schedule is None else picture(solution.schedule)
    return _head("Solution", solution.status + on, [solution.note]) + _rows(names, [row]) + drawn


@VIEWS.register("certificate")
def certificate_view(certificate: Certificate) -> str:
    """What is bounded, by how much, for which schedules, and by which theorem."""
    sign = "at most" if certificate.gain else "at least"
    facts = [f"{certificate.objective} is {sign} {number(certificate.exact_float)}"]
    names = ("class", "kind", "exact", "instance")
    exact = certificate.exact if len(certificate.exact) <= 40 else f"{certificate.exact[:37]}..."
    row = [certificate.schedule_class, certificate.kind, exact, f"{certificate.instance[:12]}..."]
    return _head("Certificate", "", facts) + _rows(names, [row])


@VIEWS.register("schedule")
def schedule_view(schedule: Schedule) -> str:
    """Size and a Gantt chart."""
    facts = [
        f"{len(schedule):,} segments",
        f"{int(schedule.finished.sum()):,} of {schedule.instance.n:,} jobs finished",
    ]
    name = " on ".join(filter(None, (schedule.policy, schedule.instance.name)))
    return _head(type(schedule).__name__, name, facts) + picture(schedule)


@VIEWS.register("report")
def report_view(report: Report) -> str:
    """One row a policy: value, bound, ratio, marked where the bounds are of different classes of schedules."""
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
        for line, mark in zip(report.lines, report.marks, strict=True)
    ]
    note = f"<p>{escaped(UNLIKE)}</p>" if any(report.marks) else ""
    return _head("Report", report.instance.name, [f"{report.instance.n:,} jobs"]) + _rows(names, rows) + note


@VIEWS.register("attack")
def attack_view(found: Attack) -> str:
    """The ratio, the jobs, and what is known of them."""
    names = ["id", *found.columns]
    table = _rows(names, found.instance.table.select(names).rows())
    said = "".join(f"<li>{escaped(fact)}</li>" for fact in found.facts)
    head = _head("Attack", found.instance.name, [found.headline, f"cluster {found.instance.cluster.spec}"])
    return f"{head}{table}<ul>{said}</ul>"


def picture(schedule: Schedule) -> str:
    """A Gantt chart inside the page; empty where it would not be small, or jobs have tasks (`optsched.plot.tasks`)."""
    instance = schedule.instance
    small = instance.n <= DRAWN_JOBS and instance.cluster.gpus <= DRAWN_GPUS and 0 < len(schedule) <= DRAWN_SEGMENTS
    if not (small and usual_class(instance).whole):
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


_STYLE = (
    "body{font-family:sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse}th,td{border:1px solid #999;padding:.2em .6em;text-align:right}"
    "img{max-width:100%}pre{overflow:auto}"
)


def attack_page(found: Attack) -> str:
    """A whole HTML document, without scripts, that shows the instance and how to run it again."""
    drawn = [(caption, picture(schedule)) for caption, schedule in _schedules(found)]
    shown = "".join(f"<h2>{escaped(caption)}</h2>{drawing}" for caption, drawing in drawn if drawing)
    name = f"{found.instance.name}.json"
    again = f"optsched ratio {name} -p {found.policy} --objective {found.confirmed.objective}"
    file = json.dumps(found.instance.to_json(), indent=1)
    replay = f"<h2>Again</h2><p><code>{escaped(again)}</code>, with this file as <code>{escaped(name)}</code>:</p>"
    body = f"{attack_view(found)}{shown}{replay}<pre>{escaped(file)}</pre>"
    title = escaped(f"The worst instance found for {found.policy}")
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def _solved(kind: ScheduleClass) -> bool:
    # Does `optsched.solvers.solve` minimise over this class?
    return kind.rigid and not kind.preemptive


def _schedules(found: Attack) -> Iterator[tuple[str, Schedule]]:
    from optsched.adversary.space import SECONDS  # what a fragment does without, and takes seconds to import
    from optsched.policies.simulate import simulate
    from optsched.solvers.solve import solve

    best, instance = found.confirmed, found.instance
    yield best.policy.text, simulate(instance, best.policy).schedule
    if best.rival is not None:
        yield best.rival.text, simulate(instance, best.rival).schedule
    elif instance.optimum is not None and _solved(CLASSES.get(instance.optimum["class"])):
        optimal = solve(instance, best.objective, time_limit=SECONDS).schedule
        if optimal is not None:
            yield "an optimal schedule", optimal
