"""What ``reproduce`` shows: a screen with the claims of the paper, and in a file every table with what its numbers say."""

from __future__ import annotations

import io

from rich.console import Group
from rich.text import Text

from optsched.cli.layout import SafeConsole, Sheet
from optsched.intervals import Estimate
from optsched.rounding import Side, fixed
from optsched.studies.experiment import RunOutcome
from optsched.studies.findings import best, change_text, findings
from optsched.studies.study import Reproduction

HOUR = 3600.0
SCALES = {"s": (1 / HOUR, " [h]"), "short": (1.0, " [s]"), "share": (100.0, " [%]"), "factor": (1.0, "")}


WIDE = 120  # columns of the file of all tables
SCREEN = 12  # rows of the summary: with its heads and what is said on stderr no more than a screen of 25 lines


def summary_view(reproduction: Reproduction) -> Group:
    """A screen: what was claimed, the number of the paper, what was measured and the verdict; else who won where."""
    size, seeds = reproduction.settings["size"], len(reproduction.seeds)
    head = f"study {reproduction.study.name}, size {size}, {seeds} seed{'s' * (seeds != 1)}"
    if not reproduction.outcomes:
        return Group(Text(f"{head}: no experiment is complete"))
    if not reproduction.claims:
        return Group(Text(head), _winners(reproduction))
    sheet = Sheet(("claim", "paper", "measured", "verdict"), texts=("verdict",), tells=("verdict",))
    for row in reproduction.claims[:SCREEN]:
        sheet.add(row.label, row.published, row.spread, row.verdict)
    note = "measured: smallest to largest value over rivals and workloads\nreached: as published, or more"
    return Group(Text(head), sheet, Text(note))


def _winners(reproduction: Reproduction) -> Sheet:
    """For every experiment its last column, the row that is lowest there, and what was compared."""
    sheet = Sheet(("experiment", "at", "lowest", "of"), texts=("at", "lowest", "of"), tells=("lowest",))
    for each in reproduction.outcomes[:SCREEN]:
        column = list(each.experiment.columns)[-1]
        first, beside = best(each, column)
        told = ", ".join(first) + (
            f"; no difference shown to {len(beside)} of {len(each.experiment.rows)}" * bool(beside)
        )
        sheet.add(each.experiment.name, column, told, each.compared)
    if len(reproduction.outcomes) > SCREEN:
        sheet.add(f"and {len(reproduction.outcomes) - SCREEN} more, in the file")
    return sheet


def tables_text(reproduction: Reproduction) -> str:
    """All that a study says, as the file of its tables holds it."""
    console = SafeConsole(width=WIDE, file=io.StringIO(), record=True, color_system=None)
    console.print(reproduction_view(reproduction))
    return "\n".join(line.rstrip() for line in console.export_text().splitlines()) + "\n"


def reproduction_view(reproduction: Reproduction) -> Group:
    """All experiments of a study, with the settings that gave them."""
    settings = reproduction.settings
    seeds = ", ".join(map(str, settings["seeds"]))
    head = (
        f"study {reproduction.study.name} (size {settings['size']}, seeds {seeds}): {reproduction.study.summary}\n"
        f"{settings['method']}\n"
    )
    parts = [part for each in reproduction.outcomes for part in _experiment(each)]
    return Group(Text(head), *parts, *_claims(reproduction))


def _claims(reproduction: Reproduction) -> list[Text | Sheet]:
    rows = reproduction.claims
    if not rows:
        return []
    heads = ("claimed", "measured (columns)", "why")  # of every rival
    sheet = Sheet(heads, tells=heads)
    for row in rows:
        sheet.add(f"{row.claim} ({row.source})", row.measured.replace("; ", "\n"), row.why, section=True)
    return [Text("claimed, measured, why", style="bold"), sheet]


def _experiment(outcome: RunOutcome) -> list[Text | Sheet]:
    e = outcome.experiment
    sheet = Sheet((e.across, *e.columns))
    for name in e.shown:
        measure = e.measurement.measures[name]
        scale, unit = SCALES["short" if e.short and measure.unit == "s" else measure.unit]
        side: Side = "up" if measure.at_most else "nearest"
        rows = {"any row": e.reference} if measure.of_workload else {row: row for row in e.rows}
        cells = {
            label: [cell(outcome.estimate(row, column, name), scale, side) for column in e.columns]
            for label, row in rows.items()
        }
        _section(sheet, measure.head + unit, cells)
    against = {row: [change_text(outcome.changes[row, column]) for column in e.columns] for row in e.rows}
    _section(sheet, f"{outcome.compared} against {e.reference}", {r: c for r, c in against.items() if r != e.reference})
    said = "".join(f"* {sentence}\n" for sentence in findings(outcome))
    return [Text(f"{e.name}: {e.question}", style="bold"), Text(_workload_line(outcome)), sheet, Text(said)]


def _section(sheet: Sheet, head: str, rows: dict[str, list[str]]) -> None:
    # a measure that no row has is left out
    if all(text == "-" for cells in rows.values() for text in cells):
        return
    sheet.add(head, bold=True)
    *others, last = rows
    for row in others:
        sheet.add(f"  {row}", *rows[row])
    sheet.add(f"  {last}", *rows[last], section=True)


def _workload_line(outcome: RunOutcome) -> str:
    """The parameters that all columns share; what differs is what the columns are."""
    workloads = list(outcome.experiment.columns.values())
    shared = set(workloads[0].parameters).intersection(*(each.parameters for each in workloads))
    stated = ", ".join(
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}" for key, value in sorted(shared)
    )
    seeds = "" if outcome.experiment.seeds is None else f"; seeds 1 to {outcome.experiment.seeds}"
    return f"recipe {workloads[0].recipe}: {stated}{seeds}"


def cell(value: Estimate | None, scale: float = 1.0, side: Side = "nearest") -> str:
    """Mean and interval, [low, high], in as many decimals as the mean has three digits for.

    The mean is rounded to ``side``, the interval outwards. Where all seeds gave one number there is no interval.
    """
    if value is None:
        return "-"
    mean = value.mean * scale
    decimals = 3 if abs(mean) < 10 else 2 if abs(mean) < 100 else 1 if abs(mean) < 1000 else 0
    shown = fixed(mean, decimals, side)
    if value.low is None or value.high is None:
        return f"{shown} (all equal)" if value.equal else shown
    return f"{shown} [{fixed(value.low * scale, decimals, 'down')}, {fixed(value.high * scale, decimals, 'up')}]"
