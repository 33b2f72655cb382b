"""`Claim`: the claim of a paper, the measured result, and the reason for the difference; one row for each ``[[claim]]``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from optsched.studies.experiment import Published, RunOutcome, ratio_to, verdict
from optsched.studies.findings import verdicts_on_theorems

ENOUGH = ("as published", "more than published")


@dataclass(frozen=True)
class Claim:
    """A row: the claim and its source, the measured result, and the reason for the difference.

    ``label`` and ``published`` (the number, "-" if there is none), ``spread`` (smallest to largest measured value, in
    the form of ``published``) and ``verdict`` are short enough for a line of a table; ``measured`` has the result for
    every rival. ``measure`` was compared, in ``experiments``; none for a theorem, which is checked in every run.
    """

    claim: str
    source: str
    measured: str
    why: str
    label: str
    published: str
    spread: str
    verdict: str
    measure: str = ""
    experiments: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Measured:
    """The ratio to one rival in one column and its verdict on the claim; "" without a published number."""

    pair: str
    ratio: float
    verdict: str


def claims(tables: Iterable[Mapping[str, Any]], outcomes: tuple[RunOutcome, ...]) -> list[Claim]:
    """Return the rows of the ``[[claim]]`` tables with an experiment that was run, each measured over all of its columns.

    A claim with ``theorem`` is about the guarantees and is measured in all runs that they cover.

    Parameters
    ----------
    tables
        ``[[claim]]`` tables of a study.
    outcomes
        Outcomes of its experiments.
    """
    rows = (_theorem(table, outcomes) if table.get("theorem") else _claim(table, outcomes) for table in tables)
    return [row for row in rows if row is not None]


def _theorem(table: Mapping[str, Any], outcomes: tuple[RunOutcome, ...]) -> Claim | None:
    measured = verdicts_on_theorems(outcomes)
    if not measured:
        return None
    told = "VIOLATED" if measured.startswith("VIOLATED") else "kept"
    spread = measured.partition(" it applies to")[0].removeprefix("VIOLATED in ").removeprefix("kept in ")
    label = table.get("label", table["claim"])
    return Claim(table["claim"], table["source"], measured, table["why"], label, "-", spread, told)


def _claim(table: Mapping[str, Any], outcomes: tuple[RunOutcome, ...]) -> Claim | None:
    mine = [
        (outcome, one)
        for outcome in outcomes
        for one in outcome.experiment.published
        if one.of(table)
        and set(one.against) & set(table["against"])  # the same may be claimed of others, by another number
    ]
    every = [one for other in table["against"] for one in _ratios(mine, other)]
    if not every:
        return None
    return Claim(
        table["claim"],
        table["source"],
        "; ".join(_in_words(every)),
        table["why"],
        table.get("label", table["claim"]),
        _as_published(table, mine[0][1].ratio),
        _spread(table, [one.ratio for one in every]),
        overall([one.verdict for one in every]),
        table["measure"],
        tuple(outcome.experiment.name for outcome, _ in mine),
    )


def _ratios(mine: list[tuple[RunOutcome, Published]], other: str) -> list[_Measured]:
    """The ratio to one rival, column by column."""
    found = []
    for outcome, published in mine:
        for column in outcome.experiment.columns if other in published.against else ():
            change = ratio_to(outcome, published, other, column)
            if change is not None:
                told = "" if math.isnan(published.ratio) else verdict(change, published.ratio)
                found.append(_Measured(published.pair(other), 1 + change.mean, told))
    return found


def _in_words(every: list[_Measured]) -> list[str]:
    """Return a text for every rival: the range of the ratio for each verdict on the claim."""
    said: dict[str, dict[str, list[float]]] = {}
    for one in every:
        said.setdefault(one.pair, {}).setdefault(one.verdict, []).append(one.ratio)
    parts = []
    for pair, told in said.items():
        texts = []
        for text, ratios in told.items():
            ends = f"{min(ratios):.3g}" + (f" to {max(ratios):.3g}" if len(ratios) > 1 else "")
            texts.append(f"{ends} {text} ({len(ratios)})".replace("  ", " "))
        parts.append(f"{pair}: {', '.join(texts)}")
    return parts


def overall(verdicts: list[str]) -> str:
    """Summarise the verdicts of a claim: the common one, or the number of cases that reach the published number.

    Parameters
    ----------
    verdicts
        Verdict of each rival and column.
    """
    if len(set(verdicts)) == 1:
        return verdicts[0] or "no number to compare"
    return f"reached in {sum(each in ENOUGH for each in verdicts)} of {len(verdicts)}"


def _as_published(table: Mapping[str, Any], ratio: float) -> str:
    if math.isnan(ratio):
        return "-"
    return f"{-100 * table['less']:.3g} %" if "less" in table else f"{ratio:.4g} x"


def _spread(table: Mapping[str, Any], ratios: list[float]) -> str:
    """Return the range of the gain over a rival in the form of the paper: by how much less, or by which factor."""
    least, most = min(ratios), max(ratios)
    if "less" in table:
        shown, unit = [f"{100 * (1 / ratio - 1):+.0f}" for ratio in (most, least)], "%"
    else:
        shown, unit = [f"{ratio:.3g}" for ratio in (least, most)], "x"
    return f"{' to '.join(dict.fromkeys(shown))} {unit}"


def markdown(study: str, rows: Iterable[Claim]) -> str:
    """Return the table of claims as a Markdown page.

    Parameters
    ----------
    study
        Name of the study.
    rows
        Claims.
    """
    heads = ("claimed", "source", "measured", "verdict", "why")
    lines = [f"# {study}: claimed, measured, why", "", f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for row in rows:
        cells = (row.claim, row.source, row.measured, row.verdict, row.why)
        lines.append(f"| {' | '.join(text.replace('|', chr(92) + '|') for text in cells)} |")
    note = "Measured: smallest to largest ratio of geometric means over the columns, with their number."
    return "\n".join([*lines, "", note, ""])
