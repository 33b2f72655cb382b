"""What the experiments of SJF-BSBF say beyond who is lowest: one policy against another, and the worst workload."""

from __future__ import annotations

from collections.abc import Callable

from optsched.rounding import significant
from optsched.studies.experiment import RunOutcome
from optsched.studies.findings import change_text

Remark = Callable[[RunOutcome], list[str]]


def against(row: str, other: str) -> Remark:
    """How ``row`` compares with ``other``, which need not be the reference, in every column."""

    def remark(outcome: RunOutcome) -> list[str]:
        parts = []
        for column in outcome.experiment.columns:
            change = outcome.change(row, other, column)
            told = "unknown" if change is None else change.direction
            shown = f" ({change_text(change)})" if told in ("lower", "higher") else ""
            parts.append(f"{column}: {told}{shown}")
        return [f"{row} against {other}: {'; '.join(parts)}"]

    return remark


def by_workload(row: str, other: str) -> Remark:
    """On how many of the workloads ``row`` is below, equal to, above ``other``."""

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
    """The largest value of the compared measure over the workloads of every column."""

    def remark(outcome: RunOutcome) -> list[str]:
        name, columns = outcome.experiment.measurement.compared, list(outcome.experiment.columns)
        most = {
            row: [f"{significant(max(outcome.values(row, c, name)), 3, 'up')} at {c}" for c in columns] for row in rows
        }
        said = "; ".join(f"{row}: {', '.join(parts)}" for row, parts in most.items())
        return [f"largest {outcome.compared} of {len(outcome.seeds)} workloads: {said}"]

    return remark
