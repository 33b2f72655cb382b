"""The tables of ``ratio``: ratios over a suite, and consistency and robustness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from optsched.cli.layout import Sheet
from optsched.evaluation.robustness import Robustness
from optsched.evaluation.suite_ratios import PolicyRatios, RatioTable
from optsched.report.classes import UNLIKE, marks
from optsched.rounding import counted, number, ratio

OWN = "each instance on its own objective"


def ratio_view(table: RatioTable) -> Group:
    """Return the table of ``ratio``: worst and mean ratio over the suite, and the judgements of theorems.

    Parameters
    ----------
    table
        The ratios.
    """
    heads = ("policy", "knowledge", "worst ratio", "on", "mean ratio", "median", "p90", "instances", "guarantee")
    sheet = Sheet(heads, texts=("knowledge", "on"), tells=("guarantee",))
    letters = marks([row.classes for row in table.policies])
    for row, letter in zip(table.policies, letters, strict=True):
        bounds = [entry.bound for entry in row.measured if entry.ratio is not None]
        exact = all(bound is not None and bound.exact for bound in bounds)
        numbers = (row.mean, *map(row.percentile, (50, 90)))
        sheet.add(
            row.policy,
            row.knowledge or "-",
            _marked(row.worst, letter, exact=exact),
            row.worst_instance or "-",
            *(_marked(value, letter, exact=exact) for value in numbers),
            str(len(row.measured) - len(row.without)),
            _guarantee_cell(row.guarantee()),
        )
    return Group(sheet, *(Text(note) for note in _ratio_notes(table, letters)))


def _ratio_notes(table: RatioTable, letters: Sequence[str]) -> list[str]:
    entries = [entry for policy in table.policies for entry in policy.measured if entry.ratio is not None]
    optima = sum(1 for entry in entries if entry.bound is not None and entry.bound.exact)
    notes = [f"{table.suite}: {table.objective or OWN}"]
    if table.speed is not None:
        notes.append(f"policies run on machines {table.speed} times as fast as those of the optimum")
    notes.append(
        f"{counted(optima, 'ratio')} to the optimum of the run's class of schedules, {len(entries) - optima} to a verified "
        "bound"
    )
    notes += _letter_notes(table.policies, letters)
    missing = list(dict.fromkeys(name for policy in table.policies for name in policy.without))
    if missing:
        notes.append(f"no ratio (no bound, an optimum of 0, or unfinished jobs): {', '.join(missing)}")
    return notes


def robustness_view(robustness: Robustness) -> Group:
    """Return the table of ``ratio --errors``: ratios at every prediction error.

    Parameters
    ----------
    robustness
        The curves of the policies.
    """
    heads = ("policy", "knowledge", "error", "worst ratio", "mean ratio", "theorem", "violated")
    sheet, firsts = Sheet(heads, texts=("knowledge",)), [curve.rows[0] for curve in robustness.curves]
    letters = marks([row.classes for row in firsts])
    for curve, row, letter in zip(robustness.curves, firsts, letters, strict=True):
        for k, point in enumerate(curve.points):
            sheet.add(
                *(("", "") if k else (curve.policy, row.knowledge or "-")),
                number(point.error),
                *(_marked(value, letter, exact=True) for value in (point.worst, point.mean)),
                "-" if point.factor is None else number(point.factor),
                str(point.violated),
            )
    notes = [
        f"{robustness.suite}: {robustness.table.objective or OWN}; {counted(robustness.draws, 'draw')} of the noise at "
        "every error",
        *(
            f"{curve.policy}: consistency {ratio(curve.consistency, 4, exact=True)}, "
            f"robustness {ratio(curve.robustness, 4, exact=True)}"
            for curve in robustness.curves
            if curve.consistency is not None and curve.robustness is not None
        ),
        *_letter_notes(firsts, letters),
    ]
    return Group(sheet, *(Text(note) for note in notes))


def _marked(value: float | None, letter: str, *, exact: bool) -> str:
    return "-" if value is None else f"{ratio(value, 4, exact=exact)} {letter}".rstrip()


def _letter_notes(rows: Sequence[PolicyRatios], letters: Sequence[str]) -> list[str]:
    """Return the line that lists the classes of schedules of every letter; none without letters."""
    classes: dict[str, dict[str, None]] = {}
    for row, letter in zip(rows, letters, strict=True):
        classes.setdefault(letter, {}).update(dict.fromkeys(row.classes.values()))
    if len(classes) < 2:
        return []
    legend = (f"{letter}: {', '.join(names)}" for letter, names in classes.items())
    return [f"{UNLIKE} ({'; '.join(legend)})"]


def _guarantee_cell(summary: dict[str, Any] | None) -> str:
    if summary is None:
        return "-"
    violated = f", VIOLATED on {', '.join(summary['violated'])}" if summary["violated"] else ""
    return f"{summary['id']} on {summary['objective']}: {summary['kept']} hold, {summary['open']} open{violated}"
