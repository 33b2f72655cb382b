"""Findings of an experiment in sentences, all computed from its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from optsched.rounding import significant
from optsched.studies.experiment import Change, RunOutcome, beside_published
from optsched.sweeps.measurement import OPEN, VIOLATED

FIVEFOLD = 4.0


def findings(outcome: RunOutcome) -> list[str]:
    """Return sentences: lowest rows, comparisons with the reference, theorems, published results, remarks.

    Parameters
    ----------
    outcome
        Outcome of the experiment.
    """
    remarks = [sentence for remark in outcome.experiment.remarks for sentence in remark(outcome)]
    return [*_winners(outcome), *_comparisons(outcome), *_guarantee(outcome), *beside_published(outcome), *remarks]


def best(outcome: RunOutcome, column: str) -> tuple[list[str], list[str]]:
    """Return the rows with the lowest mean of the compared measure (mean JCT by default), and those not shown to differ.

    Parameters
    ----------
    outcome
        Outcome of an experiment.
    column
        Label of the column.

    Returns
    -------
    tuple of lists
        One row and those equal to it; other rows that paired intervals do not distinguish from it.
    """
    name = outcome.experiment.measurement.compared
    known = {row: outcome.estimate(row, column, name) for row in outcome.experiment.rows}
    means = {row: math.inf if each is None else each.mean for row, each in known.items()}
    first = min(means, key=lambda row: means[row])
    told = {row: _direction(outcome.change(row, first, column)) for row in means}
    equal = [row for row in means if told[row] == "equal"]
    return equal, [row for row in means if told[row] not in ("equal", "higher")]


def _direction(change: Change | None) -> str:
    return "unknown" if change is None else change.direction


def _winners(outcome: RunOutcome) -> list[str]:
    said: dict[str, list[str]] = {}
    for column in outcome.experiment.columns:
        first, beside = best(outcome, column)
        others = len(outcome.experiment.rows) - len(first)
        text = " = ".join(first)
        if beside:
            text += f"; no difference shown to {'any other row' if len(beside) == others else ' | '.join(beside)}"
        elif others:
            text += ", below every other row"
        said.setdefault(text, []).append(column)
    return [f"lowest {outcome.compared} at {', '.join(columns)}: {text}" for text, columns in said.items()]


def _comparisons(outcome: RunOutcome) -> list[str]:
    """One sentence a row; rows of which the same is said share one."""
    reference = outcome.experiment.reference
    said: dict[str, list[str]] = {}
    for row in outcome.experiment.rows:
        if row != reference:
            at: dict[str, list[str]] = {}
            for column in outcome.experiment.columns:
                change = outcome.changes[row, column]
                told = _direction(change)
                shown = f"{column} ({change_text(change)})" if told in ("lower", "higher") else column
                at.setdefault(told, []).append(shown)
            order = ("lower", "higher", "no difference shown", "equal", "unknown")
            parts = [f"{told} at {', '.join(at[told])}" for told in order if told in at]
            said.setdefault("; ".join(parts), []).append(row)
    return [f"{' | '.join(rows)} against {reference}: {text}" for text, rows in said.items()]


def change_text(change: Change | None) -> str:
    """Format a relative change with its interval in per cent, or as a factor beyond fivefold.

    Parameters
    ----------
    change
        The change; None: a dash.
    """
    if change is None:
        return "-"
    if change.low is None or change.high is None:
        return _percent(change.mean)
    return f"{_percent(change.mean)} [{_percent(change.low)}, {_percent(change.high)}]"


def _percent(change: float) -> str:
    return f"{100 * change:+.1f} %" if change < FIVEFOLD else f"x {1 + change:.3g}"


def verdicts_on_theorems(outcomes: Iterable[RunOutcome]) -> str:
    """Return the verdict on the theorems in all runs that they cover; "" if there are none.

    Parameters
    ----------
    outcomes
        Outcomes of experiments.
    """
    runs = {place: each for outcome in outcomes for place, each in outcome.numbers.items()}
    every = [each["kept"] for each in runs.values() if not math.isnan(each.get("kept", math.nan))]
    broken, unproven = every.count(VIOLATED), every.count(OPEN)
    if not every or broken:
        return f"VIOLATED in {broken} of {len(every)} runs" if broken else ""
    opened = f"; in {unproven} the bound is too weak to tell" if unproven else ""
    return f"kept in {len(every) - unproven} of {len(every)} runs it applies to{opened}"


def _guarantee(outcome: RunOutcome) -> list[str]:
    cells = [(row, column) for row in outcome.experiment.rows for column in outcome.experiment.columns]
    every = [
        (v, row, column) for row, column in cells for v in outcome.values(row, column, "kept") if not math.isnan(v)
    ]
    if not every:
        return []
    broken = [f"{row} at {column}" for v, row, column in every if v == VIOLATED]
    if broken:
        return [f"guarantee VIOLATED by {', '.join(dict.fromkeys(broken))}"]
    unproven = sum(1 for v, _, _ in every if v == OPEN)
    kept = f"guarantee kept in {len(every) - unproven} of {len(every)} runs it applies to"
    opened = f" ({unproven} open: the bound is too weak to tell)" if unproven else ""
    if "guarantee" not in outcome.experiment.measurement.measures:  # theorems about several objectives
        rows = dict.fromkeys(row for _, row, _ in every)
        return [f"{kept}{opened}: {', '.join(rows)}"]
    margins = []
    for row, column in cells:
        ratios, factors = outcome.values(row, column, "ratio"), outcome.values(row, column, "guarantee")
        margins += [(r / f, r, f, row, column) for r, f in zip(ratios, factors, strict=True) if not math.isnan(f)]
    closest, ratio, factor, row, column = max(margins)
    return [
        f"{kept}{opened}; closest in {row} at {column}: measured sum C / bound {significant(ratio, 3, 'up')}, "
        f"guaranteed {significant(factor, 3, 'up')} ({significant(100 * closest, 2, 'up')} %)"
    ]


Remark = Callable[[RunOutcome], list[str]]


def against(row: str, other: str) -> Remark:
    """Return a remark that compares two rows in every column.

    Parameters
    ----------
    row
        Label of the row.
    other
        Label of the row to compare with, not necessarily the reference.
    """

    def remark(outcome: RunOutcome) -> list[str]:
        parts = []
        for column in outcome.experiment.columns:
            change = outcome.change(row, other, column)
            told = _direction(change)
            shown = f" ({change_text(change)})" if told in ("lower", "higher") else ""
            parts.append(f"{column}: {told}{shown}")
        return [f"{row} against {other}: {'; '.join(parts)}"]

    return remark


def by_workload(row: str, other: str) -> Remark:
    """Return a remark that counts the workloads on which a row is below, equal to, or above another.

    Parameters
    ----------
    row, other
        Labels of the rows.
    """

    def remark(outcome: RunOutcome) -> list[str]:
        name = outcome.experiment.measurement.compared
        said: dict[str, list[str]] = {}
        for column in outcome.experiment.columns:
            pairs = list(zip(outcome.values(row, column, name), outcome.values(other, column, name), strict=True))
            below, above = sum(x < y for x, y in pairs), sum(x > y for x, y in pairs)
            text = f"{below} lower, {len(pairs) - below - above} equal, {above} higher"
            said.setdefault(text, []).append(column)
        parts = [f"{text} at {', '.join(columns)}" for text, columns in said.items()]
        return [f"{row} against {other}, workload by workload ({len(outcome.seeds)} a column): {'; '.join(parts)}"]

    return remark


def worst(*rows: str) -> Remark:
    """Return a remark with the largest value of the compared measure over the workloads of every column.

    Parameters
    ----------
    *rows
        Labels of the rows.
    """

    def remark(outcome: RunOutcome) -> list[str]:
        name, columns = outcome.experiment.measurement.compared, list(outcome.experiment.columns)
        most = {
            row: [f"{significant(max(outcome.values(row, c, name)), 3, 'up')} at {c}" for c in columns] for row in rows
        }
        said = "; ".join(f"{row}: {', '.join(parts)}" for row, parts in most.items())
        return [f"largest {outcome.compared} of {len(outcome.seeds)} workloads: {said}"]

    return remark


REMARKS: dict[str, Callable[..., Remark]] = {"against": against, "by-workload": by_workload, "worst": worst}
