"""Tables for people: what the command line prints without ``--json``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from optsched.bounds import Certificate
from optsched.classes import usual_class
from optsched.cli.layout import Sheet
from optsched.errors import printable
from optsched.guarantees.evaluate import PolicyRatios, RatioTable
from optsched.guarantees.judge import Judgement
from optsched.guarantees.optimum_bounds import KNOWN
from optsched.guarantees.robustness import Robustness
from optsched.io.traces.dialect import not_modelled
from optsched.problem.instance import Instance
from optsched.problem.objectives import OBJECTIVES
from optsched.registry import PartsByClass
from optsched.report.classes import UNLIKE, marks
from optsched.report.comparison import Report
from optsched.rounding import Side, fixed, number, ratio, significant
from optsched.simulation.run import Run
from optsched.speeds.duration import solo_times

if TYPE_CHECKING:
    from optsched.adversary.attack import Attack
    from optsched.cli.catalogue import Entry
    from optsched.contract.examine import Examination
    from optsched.solvers.solution import Solution
    from optsched.speeds.least_squares import Fitted


SHORTEST = 1e-12  # of a duration; what is shorter is the rounding of clocks


def duration(seconds: float) -> str:
    """Seconds in the unit a reader would choose."""
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.3g} s" if abs(seconds) >= SHORTEST else "0 s"


def instance_line(instance: Instance, skipped: int = 0) -> str:
    """One line that says what was read."""
    left_out = f", {_many(skipped, 'row')} skipped" if skipped else ""
    cluster = f"{printable(instance.cluster.spec)} ({_many(instance.cluster.gpus, 'GPU')})"
    return f"{printable(instance.name or 'instance')}: {_many(instance.n, 'job')} on {cluster}{left_out}"


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


AVOIDED = "queued GPU-h avoided"
METRICS = ("mean JCT", "p99 JCT", "queueing", "makespan", "util", "max FTF", "idle GPU-h", "wait GPU-h")


def metric_cells(run: Run) -> tuple[str, ...]:
    """What a run's metrics are in the columns `METRICS`."""
    m = run.metrics
    hours = m["gpu_hours"]
    times = (m["mean_jct"], m["p99_jct"], m["mean_queueing"], m["makespan"])
    if m["unfinished"]:  # a policy that leaves jobs undone must not look good by those that it did
        return (*("-" for _ in times), f"{100 * m['utilization']:.1f} %", "-", number(hours["idle"]), "-")
    return (
        *(duration(seconds) for seconds in times),
        f"{100 * m['utilization']:.1f} %",
        f"{m['max_ftf']:.2f}",
        number(hours["idle"]),
        number(hours["waiting"] + hours["overhead"]),
    )


def report_view(report: Report) -> Group:
    """The table of ``run``: knowledge, objective, ratio to the bound, metrics, GPU-hours."""
    kept = [k for k, name in enumerate(METRICS) if name != report.objective]  # not the makespan twice
    heads = ("policy", "knowledge", report.objective, "ratio", *(METRICS[k] for k in kept), AVOIDED)
    theorems = any(line.guarantee for line in report.lines)
    sheet = Sheet((*heads, *["guarantee"] * theorems), texts=("knowledge",), tells=("guarantee",))
    for line, mark in zip(report.lines, report.marks, strict=True):
        exact, cells = line.bound is not None and line.bound.exact, metric_cells(line.run)
        sheet.add(
            line.run.policy,
            line.knowledge,
            number(line.value),
            "-" if line.ratio is None else f"{'=' if exact else '<='} {ratio(line.ratio, exact=exact)} {mark}".rstrip(),
            *(cells[k] for k in kept),
            number(line.queued_avoided),
            *(["-" if line.guarantee is None else judged(line.guarantee, report.objective)] if theorems else []),
        )
    notes = [instance_line(report.instance, report.skipped_rows), *notes_of(report.instance)]
    notes += map(printable, not_modelled(report.instance))
    notes += [*_bound_notes(report), *_unfinished_notes(report)]
    return Group(sheet, *(Text(note) for note in notes))


def finished_view(instance: Instance, objective: str, runs: list[Run]) -> Group:
    """What is known of a ``run`` that was interrupted: policies that had finished. No ratio: nothing was bounded yet."""
    sheet = Sheet(("policy", "knowledge", objective, *METRICS), texts=("knowledge",))
    for run in runs:
        sheet.add(run.policy, str(run.knowledge), number(run.value(objective)), *metric_cells(run))
    return Group(
        sheet, Text(instance_line(instance)), Text("interrupted: the policies above had finished; no bound yet")
    )


# By class of schedules: notes on an instance, which its results depend on.
NOTES: PartsByClass[Callable[[Instance], list[str]]] = PartsByClass("optsched.cli", lambda _: [])


def notes_of(instance: Instance) -> list[str]:
    """Return the notes on an instance.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    """
    return NOTES.of(usual_class(instance).name)(instance)


def judged(judgement: Judgement, objective: str) -> str:
    """The factor stands only beside its own objective: a factor on completion times is none on flow times."""
    if judgement.objective != objective:
        return f"{judgement.id}: {judgement.verdict}, on {judgement.objective}"
    return f"{judgement.id}: <= {significant(judgement.ratio, 4, 'up')} x optimum {judgement.verdict}"


def ratio_view(table: RatioTable) -> Group:
    """The table of ``ratio``: worst and mean over the suite, and what became of the theorems."""
    heads = ("policy", "knowledge", "worst ratio", "on", "mean ratio", "median", "p90", "instances", "guarantee")
    sheet = Sheet(heads, texts=("knowledge", "on"), tells=("guarantee",))
    letters = marks([row.classes for row in table.policies])
    for row, mark in zip(table.policies, letters, strict=True):
        exact = all(each.bound is not None and each.bound.exact for each in row.measured if each.ratio is not None)
        sheet.add(
            row.policy,
            row.knowledge or "-",
            _marked(row.worst, mark, exact=exact),
            row.worst_instance or "-",
            *(_marked(each, mark, exact=exact) for each in (row.mean, *map(row.percentile, (50, 90)))),
            str(len(row.measured) - len(row.without)),
            _kept_cell(row.guarantee()),
        )
    rows = [each for policy in table.policies for each in policy.measured if each.ratio is not None]
    optima = sum(1 for each in rows if each.bound is not None and each.bound.exact)
    notes = [
        f"{table.suite}: {table.objective or 'each instance on its own objective'}",
        *([] if table.speed is None else [f"policies on machines {table.speed} times as fast as those of the optimum"]),
        f"ratios to the optimum of the class of the run in {optima} cases, else to a verified bound ({len(rows) - optima})",
    ]
    notes += _letters(table.policies, letters)
    missing = list(dict.fromkeys(name for policy in table.policies for name in policy.without))
    if missing:
        notes.append(f"no ratio (no bound, an optimum of 0, or unfinished jobs): {', '.join(missing)}")
    return Group(sheet, *(Text(note) for note in notes))


def robustness_view(found: Robustness) -> Group:
    """The table of ``ratio --errors``: consistency first, then what worse predictions cost."""
    heads = ("policy", "knowledge", "error", "worst ratio", "mean ratio", "theorem", "violated")
    sheet, firsts = Sheet(heads, texts=("knowledge",)), [curve.rows[0] for curve in found.curves]
    letters = marks([row.classes for row in firsts])
    for curve, row, mark in zip(found.curves, firsts, letters, strict=True):
        for k, point in enumerate(curve.points):
            sheet.add(
                *(("", "") if k else (curve.policy, row.knowledge or "-")),
                number(point.error),
                *(_marked(each, mark, exact=True) for each in (point.worst, point.mean)),
                "-" if point.factor is None else number(point.factor),
                str(point.violated),
            )
    notes = [
        f"{found.suite}: {found.table.objective or 'each instance on its own objective'}; {found.draws} "
        f"draw{'s' if found.draws > 1 else ''} of the noise at every error",
        *(
            f"{curve.policy}: consistency {ratio(curve.consistency, 4, exact=True)}, "
            f"robustness {ratio(curve.robustness, 4, exact=True)}"
            for curve in found.curves
            if curve.consistency is not None and curve.robustness is not None
        ),
        *_letters(firsts, letters),
    ]
    return Group(sheet, *(Text(note) for note in notes))


def _marked(value: float | None, mark: str, *, exact: bool) -> str:
    return "-" if value is None else f"{ratio(value, 4, exact=exact)} {mark}".rstrip()


def _letters(rows: Sequence[PolicyRatios], letters: Sequence[str]) -> list[str]:
    """The line that says which letter is which class of schedules; none without letters."""
    known: dict[str, dict[str, None]] = {}
    for row, letter in zip(rows, letters, strict=True):
        known.setdefault(letter, {}).update(dict.fromkeys(row.classes.values()))
    if len(known) < 2:
        return []
    legend = (f"{letter}: {', '.join(of)}" for letter, of in known.items())
    return [f"{UNLIKE} ({'; '.join(legend)})"]


def _kept_cell(summary: dict[str, Any] | None) -> str:
    if summary is None:
        return "-"
    broken = f", VIOLATED on {', '.join(summary['violated'])}" if summary["violated"] else ""
    return f"{summary['id']} on {summary['objective']}: {summary['kept']} hold, {summary['open']} open{broken}"


def _bound_notes(report: Report) -> list[str]:
    notes = []
    letters = {line.bound: f"{mark}: " for line, mark in zip(report.lines, report.marks, strict=True) if mark}
    for shown in dict.fromkeys(line.bound for line in report.lines):
        letter = letters.get(shown, "")
        if shown is None:
            without = ", ".join(line.run.policy for line in report.lines if line.bound is None)
            notes.append(f"no bound on {report.objective} is known for the class of {without}: no ratio")
            continue
        if shown.kind == KNOWN:
            methods = " and ".join((report.instance.optimum or {}).get("proved_by", [])) or "nobody named"
            notes.append(
                f"{letter}optimum {number(shown.value, 12)} (class {shown.schedule_class}; proved by {methods})"
            )
            continue
        what = "optimum" if shown.exact else f"bound: no schedule is {'above' if shown.gain else 'below'}"
        value = number(shown.value, 12, "up" if shown.gain else "down")
        notes.append(f"{letter}{what} {value} ({shown.kind}, class {shown.schedule_class}; proved again)")
    notes += [UNLIKE] if any(report.marks) else []
    avoided = f"{AVOIDED} = those of the first policy, less its own: time in queues, no hardware"
    notes.append(f"wait = GPU-hours that gangs waited or restarted; {avoided}")
    bounded = int((~solo_times(report.instance).exact).sum())
    if bounded:
        notes.append(f"FTF is from above: of {bounded} jobs a bound on the solo time is known, not the best placement")
    return notes


def _unfinished_notes(report: Report) -> list[str]:
    notes = []
    for run in (line.run for line in report.lines if line.run.unfinished):
        names = ", ".join(map(printable, run.unfinished[:5])) + (" ..." if len(run.unfinished) > 5 else "")
        notes.append(f"{run.policy}: {_many(len(run.unfinished), 'job')} did not finish: {names}")
    return notes


def solution_view(document: dict[str, Any], instance: Instance, *notes: str) -> Group:
    """The table of ``solve``, and what is to be said of it."""
    value = "value" if "value_is" in document else document["objective"]
    heads = ("status", value, "bound", "gap", "model", "solver", "rows", "columns", "nonzeros", "seconds")
    sheet = Sheet(heads, texts=("model", "solver"))
    # no side is the safe one of a program: it may maximise
    sides: tuple[Side, Side] = ("nearest", "nearest") if "value_is" in document else ("up", "down")
    if document["objective"] in OBJECTIVES and OBJECTIVES.get(document["objective"]).gain:
        sides = ("down", "up")
    sheet.add(
        document["status"],
        number(document["value"], 12, sides[0]),
        number(document["bound"], 12, sides[1]),
        gap_text(document["gap"]),
        str(document["model"] or "-"),
        str(document["solver"] or "-"),
        number(document["rows"]),
        number(document["columns"]),
        number(document["nonzeros"] or None),
        f"{document['seconds']:.2f}",
    )
    return Group(sheet, *(Text(line) for line in (instance_line(instance), *notes)))


PRICES = 20  # that are shown, the largest ones


def program_view(solution: Solution, instance: Instance) -> Group:
    """The table of ``solve --model`` for a program without a schedule: its optimum, and what its duals say."""
    lines = [f"value: {solution.meaning}", *filter(None, [solution.note])]
    if solution.opposite is not None:
        apart = "" if solution.gap is None else f", {number(100 * solution.gap, 3)} % apart"
        lines.append(f"its dual {solution.opposite.model}: {number(solution.opposite.value, 12)}{apart}")
    gap = None if solution.gap is None else round(solution.gap, 9)  # rounding is no gap
    parts: list[Any] = [solution_view({**solution.to_json(), "gap": gap}, instance, *lines)]
    if solution.duals:
        prices = Sheet(("dual", "value"))
        for name, value in sorted(solution.duals.items(), key=lambda each: -abs(each[1]))[:PRICES]:
            prices.add(name, number(value, 6))
        parts.append(prices)
        if len(solution.duals) > PRICES:
            parts.append(Text(f"... and {len(solution.duals) - PRICES} smaller ones (--json)"))
    return Group(*parts)


def gap_text(gap: float | None) -> str:
    """A gap in per cent, at most what is shown: 0.00 % is no gap at all."""
    return "-" if gap is None else f"{fixed(100 * gap, 2, 'up')} %"


def certificate_view(certificate: Certificate, instance: Instance) -> Group:
    """What ``bound`` prints."""
    side = "upper bound" if certificate.gain else "lower bound"
    sheet = Sheet(("objective", side, "kind", "class of schedules"), texts=("kind", "class of schedules"))
    value = number(certificate.exact_float, 12, "up" if certificate.gain else "down")
    sheet.add(certificate.objective, value, certificate.kind, certificate.schedule_class)
    return Group(sheet, Text(instance_line(instance)), Text("proved again from the instance, in exact arithmetic"))


def attack_view(found: Attack) -> Group:
    """What ``attack`` prints: a line that says what was found, the jobs, and what there is to say of them."""
    shown = found.columns
    sheet = Sheet(("job", *shown))
    for row in found.instance.table.to_dicts():
        sheet.add(row["id"], *(row[name] if isinstance(row[name], str) else number(row[name]) for name in shown))
    lines = [instance_line(found.instance), *found.facts]
    return Group(Text(found.headline, style="bold"), sheet, *map(Text, lines))


def library_suites_view(rows: list[dict[str, Any]]) -> Group:
    """What ``library`` prints: suites, their sizes, how many of their optima are proved, the largest gap, CPU time."""
    sheet = Sheet(("suite", "instances", "jobs", "solved", "worst gap", "CPU s"))
    for suite in dict.fromkeys(row["suite"] for row in rows):
        some = [row for row in rows if row["suite"] == suite]
        jobs = [row["jobs"] for row in some]
        least, most = min(jobs), max(jobs)
        gaps = [row["gap"] for row in some if not row["solved"]]
        worst = "" if not gaps else "unknown" if None in gaps else gap_text(max(gaps))
        proved = sum(row["solved"] for row in some)
        seconds = sum(row["seconds"] or 0.0 for row in some)
        span = f"{least:,}" if least == most else f"{least}-{most:,}"
        sheet.add(suite, str(len(some)), span, str(proved), worst, f"{seconds:,.0f}")
    solved = sum(row["solved"] for row in rows)
    return Group(sheet, Text(f"{len(rows)} instances, {solved} solved; optsched library list SUITE: one by one"))


def library_view(rows: list[dict[str, Any]]) -> Group:
    """What ``library list SUITE`` prints: an instance a row, its optimum or interval, and who vouches for that."""
    sheet = Sheet(("instance", "jobs", "value", "bound", "gap", "by"), tells=("by",))
    for row in rows:
        gap = "optimal" if row["solved"] else gap_text(row["gap"])
        by = row["proved_by"] or f"{row['found_by']}; bound {row['bound_by']}"
        sheet.add(row["name"], f"{row['jobs']:,}", number(row["value"]), number(row["bound"]), gap, by)
    what = ", ".join(dict.fromkeys(f"{row['problem']} ({row['objective']}, {row['class']})" for row in rows[:1]))
    more = "" if len({row["problem"] for row in rows}) <= 1 else ", ..."
    return Group(sheet, Text(f"{len(rows)} instances: {what}{more}" if rows else "no such instances"))


def fits_view(found: Mapping[str, Fitted[Any]]) -> Group:
    """What ``fit`` prints: a row a constant; a line a fit, how well it meets the measurements, and what was assumed."""
    sheet, notes = Sheet(("constant", "value", "std error", "95 % from", "to", "unit"), texts=("unit",)), []
    for name, each in found.items():
        of = f"{name}: " * bool(name)
        for row in each.constants:
            numbers = (row.value, row.error, *each.interval(row.name))
            sheet.add(of + row.name, *("-" if math.isnan(x) else f"{x:.4g}" for x in numbers), row.unit)
        rows, explained = len(each.measured), "-" if math.isnan(each.r_squared) else f"{each.r_squared:.6g}"
        error = f"largest relative error {100 * each.largest_error:.2g} %"
        notes += [of + note for note in (f"{rows} row{'s' * (rows > 1)}, R^2 {explained}, {error}", *each.notes)]
    return Group(sheet, *map(Text, notes))


def names_view(kind: str, entries: Sequence[Entry]) -> Table:
    """What ``list`` prints: names and what they are, and below that what else a list says of them."""
    rows = []
    for each in entries:
        facts = "; ".join(f"{head}: {fact}" for head, fact in each.facts)
        rows.append((each.name, "\n".join(filter(None, [each.text, facts]))))
    return _texts([kind, ""], rows)


def _texts(heads: Sequence[str], rows: Iterable[Sequence[str]], whole: int = 1) -> Table:
    """Texts whose first ``whole`` columns stand in one piece; the others are broken between words."""
    table = Table(header_style="bold", pad_edge=False)
    for k, head in enumerate(heads):
        table.add_column(head, no_wrap=k < whole, overflow="ellipsis" if k < whole else "fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def examination_view(found: Examination) -> Group:
    """What ``check-policy`` prints."""
    rows = [
        (each.check, each.verdict.replace("broken", "BROKEN"), each.said or each.summary) for each in found.findings
    ]
    who = found.subject
    table = _texts(["check", "", ""], rows, whole=2)
    return Group(table, Text(f"{who.text}: {who.knowledge}, for {who.level.name}"))


def entry_view(entry: Entry) -> Group:
    """What ``list KIND NAME`` prints: its parameters with their defaults, then all that it says of itself."""
    parts: list[Any] = [Text(f"{entry.name}: {entry.text}\n")]
    if entry.parameters:
        shown = 3 if any(each.meaning for each in entry.parameters) else 2
        rows = [(each.name, each.default, each.meaning)[:shown] for each in entry.parameters]
        table = _texts(("parameter", "default", "legal values")[:shown], rows)
        parts += [table, Text(f"written as: {entry.written}\n")]
    if entry.facts:
        facts = Table(box=None, show_header=False, pad_edge=False)
        facts.add_column(no_wrap=True, style="bold")
        facts.add_column(overflow="fold")
        for head, fact in entry.facts:
            facts.add_row(Text(head), Text(fact))
        parts += [facts, Text()]
    return Group(*parts, *([Text(entry.about)] if entry.about else []))
