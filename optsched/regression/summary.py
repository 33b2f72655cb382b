"""The table at the end of a test session: what was measured, what was asked of it, and what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HEADS = ("policy", "suite", "objective", "worst", "on", "mean", "limit", "baseline", "change", "guarantee", "test")
SEEN = 0.005  # percent: less is the rounding of what was kept
LEFT = frozenset({"policy", "suite", "objective", "on", "guarantee", "test"})


def table(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines of a table, a row a measurement, without the columns in which nothing stands."""
    cells = [_cells(each) for each in records]
    shown = [head for head in HEADS if any(row[head] for row in cells)]
    wide = {head: max(len(head), *(len(row[head]) for row in cells)) for head in shown}

    def line(row: Mapping[str, str]) -> str:
        parts = (row[head].ljust(wide[head]) if head in LEFT else row[head].rjust(wide[head]) for head in shown)
        return "  ".join(parts).rstrip()

    return [line({head: head for head in shown}), *map(line, cells)]


def _cells(record: Mapping[str, Any]) -> dict[str, str]:
    worst, before = record["worst"], record.get("before")
    grown = 100 * (worst / before - 1) if worst is not None and before else None
    change = "" if grown is None else f"{grown:+.2f} %" if abs(grown) >= SEEN else "none"
    return {
        "policy": record["policy"],
        "suite": record["suite"],
        "objective": record["objective"],
        "worst": _ratio(worst),
        "on": record["worst_instance"] or "",
        "mean": _ratio(record["mean"]),
        "limit": _ratio(record.get("limit")),
        "baseline": _ratio(before),
        "change": change,
        "guarantee": record.get("guarantee", ""),
        "test": record["test"],
    }


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
