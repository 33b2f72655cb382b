"""What was claimed, what came out, and why: a row for every ``[[claim]]`` of a study."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from optsched.studies.experiment import RunOutcome
from optsched.studies.findings import verdicts_on_theorems
from optsched.studies.published import Published, ratio_to, verdict


@dataclass(frozen=True)
class Claim:
    """A row: what was claimed, by whom, what was measured here, and why the two differ."""

    claim: str
    source: str
    measured: str
    why: str

    def to_json(self) -> dict[str, str]:
        """By name."""
        return asdict(self)


def claims(tables: Iterable[Mapping[str, Any]], outcomes: tuple[RunOutcome, ...]) -> list[Claim]:
    """The rows of the ``[[claim]]`` tables of which an experiment was run, each measured over all of its columns.

    A claim with ``theorem`` is about the guarantees, and measured in all runs they apply to.
    """
    rows = []
    for table in tables:
        if table.get("theorem"):
            measured = verdicts_on_theorems(outcomes)
        else:
            mine = [(each, one) for each in outcomes for one in each.experiment.published if one.of(table)]
            measured = "; ".join(text for other in table["against"] if (text := _measured(mine, other)))
        if measured:
            rows.append(Claim(table["claim"], table["source"], measured, table["why"]))
    return rows


def _measured(mine: list[tuple[RunOutcome, Published]], other: str) -> str:
    """The ratio to one rival in words: from where to where it goes, and what that says of the claim."""
    said: dict[str, list[float]] = {}
    pair = ""
    for outcome, published in mine:
        if other in published.against:
            pair = f"{published.row} / {other}" if published.gain else f"{other} / {published.row}"
            for column in outcome.experiment.columns:
                change = ratio_to(outcome, published, other, column)
                if change is not None:
                    told = "" if math.isnan(published.ratio) else verdict(change, published.ratio)
                    said.setdefault(told, []).append(1 + change.mean)
    parts = []
    for told, ratios in said.items():
        ends = f"{min(ratios):.3g}" + (f" to {max(ratios):.3g}" if len(ratios) > 1 else "")
        parts.append(f"{ends} {told} ({len(ratios)})".replace("  ", " "))
    return f"{pair}: {', '.join(parts)}" if parts else ""


def markdown(study: str, rows: Iterable[Claim]) -> str:
    """The table as a page."""
    lines = [f"# {study}: claimed, measured, why", "", "| claimed | source | measured | why |", "|---|---|---|---|"]
    lines += ["| " + " | ".join(text.replace("|", "\\|") for text in asdict(row).values()) + " |" for row in rows]
    note = "Measured: from the least to the greatest ratio of geometric means over the columns (how many of them)."
    return "\n".join([*lines, "", note, ""])
