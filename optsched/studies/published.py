"""Published results beside what was measured: the same ratio of two rows, and whether it holds here."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from optsched.rounding import significant
from optsched.studies.estimate import Change, estimate, relative


@dataclass(frozen=True)
class Published:
    """``ratio`` = ``measure`` of each row of ``against`` over that of ``row``, as published; above 1: ``row`` is better.

    Where more is better (``gain``) the ratio is turned: that of ``row`` over the others'. ``most`` may be (words, measure of
    the workload): what one mechanism can gain at most; the rest of a ratio is the baseline's loss. ``note`` is what a
    reader must know of the publication. Without a number ``ratio`` is nan.
    """

    what: str
    measure: str
    row: str
    against: tuple[str, ...]
    ratio: float = math.nan
    gain: bool = False
    most: tuple[str, str] | None = None
    note: str = ""

    def of(self, claim: Mapping[str, Any]) -> bool:
        """Is it what a ``[[claim]]`` table says?"""
        return (self.what, self.measure, self.row) == (claim["what"], claim["measure"], claim["row"])

    def require(self, experiment: str, rows: Collection[str], measures: Collection[str]) -> None:
        """ValueError for rows or measures that an experiment does not have."""
        missing = [row for row in (self.row, *self.against) if row not in rows]
        needed = (self.measure,) if self.most is None else (self.measure, self.most[1])
        missing += [name for name in needed if name not in measures]
        if missing:
            raise ValueError(f"experiment {experiment}: what was published needs {missing}")


class MeasuredValue(Protocol):
    """What this module needs of an `optsched.studies.experiment.RunOutcome`."""

    @property
    def experiment(self) -> Any:
        """With ``columns`` and ``published``."""

    def values(self, row: str, column: str, name: str) -> list[float]:
        """One number a seed."""


def beside_published(outcome: MeasuredValue) -> list[str]:
    """A sentence for every published result and row that it was measured against: the ratio here, column by column."""
    published = [each for each in outcome.experiment.published if not math.isnan(each.ratio)]
    return [_sentence(outcome, each, other) for each in published for other in each.against]


def ratio_to(outcome: MeasuredValue, published: Published, other: str, column: str) -> Change | None:
    """The measured ratio less 1, over the seeds; None where it is not defined."""
    ours, theirs = (outcome.values(row, column, published.measure) for row in (published.row, other))
    return relative(ours, theirs) if published.gain else relative(theirs, ours)


def verdict(change: Change, ratio: float) -> str:
    """What a measured ratio says of a published one above 1: by its interval, where there is one."""
    low, high = (change.mean if end is None else end for end in (change.low, change.high))
    if low <= 0 <= high and change.low is not None:
        return "no difference shown"
    if 1 + change.mean < 1:
        return "the other way round"
    if 1 + low > ratio:
        return "more than published"
    return "as published" if 1 + high >= ratio else "the same way, by less"


def _sentence(outcome: MeasuredValue, published: Published, other: str) -> str:
    said: dict[str, list[str]] = {}
    for column in outcome.experiment.columns:
        change = ratio_to(outcome, published, other, column)
        if change is None:
            said.setdefault("not measured", []).append(column)
            continue
        limit = _limit(outcome, published, column)
        said.setdefault(verdict(change, published.ratio), []).append(f"{column} ({_factor(change)}{limit})")
    pair = f"{published.row} / {other}" if published.gain else f"{other} / {published.row}"
    shown = "; ".join(f"{text} at {', '.join(columns)}" for text, columns in said.items())
    note = f" ({published.note})" if published.note else ""
    return f"published {published.what}{note}: {pair} = {published.ratio:.4g}; here {shown}"


def _limit(outcome: MeasuredValue, published: Published, column: str) -> str:
    if published.most is None:
        return ""
    words, name = published.most
    found = estimate(outcome.values(published.row, column, name))
    return "" if found is None else f"; {words} at most x{significant(found.mean, 3, 'up')}"


def _factor(change: Change) -> str:
    ends = "" if change.low is None or change.high is None else f" [{1 + change.low:.3g}, {1 + change.high:.3g}]"
    return f"x{1 + change.mean:.3g}{ends}"
