"""The tables of ``reproduce`` for people: one an experiment, its measures below each other, then what they say."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from optsched.cli.layout import Sheet
from optsched.intervals import Estimate
from optsched.rounding import Side, fixed
from optsched.studies.experiment import RunOutcome
from optsched.studies.findings import change_text, findings
from optsched.studies.study import Reproduction

HOUR = 3600.0
SCALES = {"s": (1 / HOUR, " [h]"), "short": (1.0, " [s]"), "share": (100.0, " [%]"), "factor": (1.0, "")}


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
    heads = ("claimed", "measured (columns)", "why")
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
