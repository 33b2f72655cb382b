"""`Experiment`: policies on workloads, declared as a table; `RunOutcome`: the same table with its numbers.

Means over seeds and how sure they are (`optsched.intervals`), and paired comparisons on the same workloads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from optsched.intervals import Estimate, estimate, half_width
from optsched.problem.instance import Instance
from optsched.rounding import significant
from optsched.sweeps.grid import Cell
from optsched.sweeps.measurement import Measurement, measurement_of

LARGEST = 100.0  # ends of intervals stay finite: e^100


@dataclass(frozen=True)
class Change:
    """A typical relative change, -0.2 for 20 % less, and its interval (None, None for a single seed)."""

    mean: float
    low: float | None
    high: float | None

    @property
    def direction(self) -> str:
        """Direction of the change: ``lower``, ``higher``, ``equal`` on every seed, or ``no difference shown``.

        There is no difference shown if 0 is in the interval, or there is no interval.
        """
        if self.mean == 0 and not self.low and not self.high:
            return "equal"
        if self.low is None or self.high is None or self.low <= 0 <= self.high:
            return "no difference shown"
        return "lower" if self.mean < 0 else "higher"


def relative(values: Sequence[float], reference: Sequence[float]) -> Change | None:
    """Return the relative change between two rows on the same workloads: geometric mean of the ratios, minus 1.

    The interval is that of the mean log ratio. Pairing removes the effect of the workloads, so fewer seeds distinguish two
    policies, and half as long weighs as much as twice as long.

    Parameters
    ----------
    values
        Values of one row, one for each workload.
    reference
        Values of the other row.

    Returns
    -------
    Change or None
        None if a value is missing or not > 0.
    """
    x, y = np.asarray(values, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    if x.shape != y.shape:
        raise ValueError(f"{x.size} values beside {y.size}")
    if x.size == 0 or not ((x > 0) & (y > 0)).all():
        return None
    log = np.log(x / y)
    mean = float(log.mean())
    if log.size == 1:
        return Change(math.expm1(mean), None, None)
    half = half_width(log)
    return Change(math.expm1(mean), *(math.expm1(min(end, LARGEST)) for end in (mean - half, mean + half)))


@dataclass(frozen=True)
class Workload:
    """A recipe (or ``module:function``) and its parameters: one instance for each seed."""

    recipe: str
    parameters: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, recipe: str, **parameters: Any) -> Workload:
        """Return the workload with parameters given as keywords.

        Parameters
        ----------
        recipe
            Name of the recipe, or ``module:function``.
        **parameters
            Its parameters.
        """
        return cls(recipe, tuple(sorted(parameters.items())))

    def make(self, seed: int) -> Instance:
        """Return the instance of a seed.

        Parameters
        ----------
        seed
            The seed.
        """
        return self.cell(seed).instance()

    def cell(self, seed: int, policy: str = "", measure: str = "") -> Cell:
        """Return a cell of a sweep.

        Parameters
        ----------
        seed
            The seed.
        policy
            The policy.
        measure
            The measurement.
        """
        return Cell(tuple(sorted({"recipe": self.recipe, **dict(self.parameters)}.items())), seed, policy, (), measure)

    def to_json(self) -> dict[str, Any]:
        """Return recipe and parameters."""
        return {"recipe": self.recipe, "parameters": dict(self.parameters)}


# (workload, seed, policy) -> what was measured
Numbers = Mapping[tuple[Workload, int, str], Mapping[str, float]]


@dataclass(frozen=True)
class Experiment:
    """A question, answered by ``rows`` (label -> policy) on ``columns`` (label -> workload).

    ``across`` names the quantity of the columns. ``shown`` are the measures in tables (JSON has all of them).
    ``reference`` is the label of the row that the others are compared with, by the compared measure of the
    ``measurement`` (mean JCT by default). ``published`` are published results to compare with. ``within``: columns may
    also differ in the policy: label -> text in which ``{}`` is replaced by the row's policy. ``seeds``: number of
    workloads of a column, if it differs from the study's. ``short``: times are short, so tables show seconds instead of
    hours. ``remarks``: further sentences, in addition to those of `optsched.studies.findings`.
    """

    name: str
    question: str
    across: str
    columns: Mapping[str, Workload]
    rows: Mapping[str, str]
    reference: str
    shown: tuple[str, ...]
    measurement: Measurement = field(default_factory=lambda: measurement_of("placed-gangs"))
    published: tuple[Published, ...] = ()
    within: Mapping[str, str] = field(default_factory=dict)
    seeds: int | None = None
    short: bool = False
    remarks: tuple[Callable[[RunOutcome], list[str]], ...] = ()

    def __post_init__(self) -> None:
        if self.reference not in self.rows:
            raise ValueError(f"experiment {self.name}: no row {self.reference!r}")
        for each in self.published:
            each.require(self.name, self.rows, self.measurement.measures)
        unknown = [name for name in self.shown if name not in self.measurement.measures]
        if unknown:
            raise ValueError(f"experiment {self.name}: no measures {unknown}")
        lost = [label for label, text in self.within.items() if label not in self.columns or "{}" not in text]
        if lost:
            raise ValueError(f"experiment {self.name}: not a column, or no place for the policy: {lost}")

    def policy(self, row: str, column: str) -> str:
        """Return the policy of a cell.

        Parameters
        ----------
        row, column
            Labels of the cell.
        """
        return self.within.get(column, "{}").replace("{}", self.rows[row])

    def cell(self, row: str, column: str, seed: int) -> Cell:
        """Return a cell of a sweep.

        Parameters
        ----------
        row, column
            Labels of the cell.
        seed
            Seed of the workload.
        """
        return self.columns[column].cell(seed, self.policy(row, column), self.measurement.name)

    def seeds_of(self, usual: tuple[int, ...]) -> tuple[int, ...]:
        """Return the seeds of the experiment's workloads.

        Parameters
        ----------
        usual
            Seeds of the study, used unless the experiment has its own number.
        """
        return usual if self.seeds is None else tuple(range(1, self.seeds + 1))


@dataclass(frozen=True)
class RunOutcome:
    """An experiment with its numbers, over ``seeds``."""

    experiment: Experiment
    seeds: tuple[int, ...]
    numbers: Numbers

    @property
    def complete(self) -> bool:
        """True if every cell was run for every seed."""
        e = self.experiment
        places = ((row, column) for row in e.rows for column in e.columns)
        return all((e.columns[c], seed, e.policy(r, c)) in self.numbers for r, c in places for seed in self.seeds)

    def values(self, row: str, column: str, name: str) -> list[float]:
        """Return the values of a measure in a cell, one for each seed; nan if not defined.

        Parameters
        ----------
        row, column
            Labels of the cell.
        name
            Name of the measure.
        """
        workload, policy = self.experiment.columns[column], self.experiment.policy(row, column)
        found = [self.numbers[workload, seed, policy] for seed in self.seeds]
        return [each.get(name, math.nan) for each in found]

    def estimate(self, row: str, column: str, name: str) -> Estimate | None:
        """Return mean and interval of a measure in a cell; None if it is not defined for every seed.

        The interval stays in the range of the measure: no ratio to a lower bound is below 1, no time below 0.

        Parameters
        ----------
        row, column
            Labels of the cell.
        name
            Name of the measure.
        """
        values, measure = self.values(row, column, name), self.experiment.measurement.measures[name]
        if not values or not np.isfinite(values).all():
            return None
        return estimate(values, *measure.range)

    @property
    def compared(self) -> str:
        """Heading of the compared measure."""
        return self.experiment.measurement.measures[self.experiment.measurement.compared].head

    @cached_property
    def changes(self) -> dict[tuple[str, str], Change | None]:
        """Relative changes of the compared measure from the reference on the same workloads, by (row, column)."""
        against = self.experiment.reference
        return {
            (row, column): self.change(row, against, column)
            for row in self.experiment.rows
            for column in self.experiment.columns
        }

    def change(self, row: str, against: str, column: str) -> Change | None:
        """Return the relative change of the compared measure between two rows on the same workloads.

        For mean JCT, sum C differs in the same direction.

        Parameters
        ----------
        row
            Label of the row.
        against
            Label of the row to compare with.
        column
            Label of the column.
        """
        name = self.experiment.measurement.compared
        return relative(self.values(row, column, name), self.values(against, column, name))

    def to_json(self) -> dict[str, Any]:
        """Return the declaration, and for every cell all measures: mean, interval, and the value of every seed."""
        e = self.experiment
        return {
            "name": e.name,
            "question": e.question,
            "across": e.across,
            "reference": e.reference,
            "seeds": list(self.seeds),
            "columns": [
                {"label": label, **workload.to_json(), **({"within": e.within[label]} if label in e.within else {})}
                for label, workload in e.columns.items()
            ],
            "rows": [{"label": label, "policy": policy} for label, policy in e.rows.items()],
            "cells": [self._cell(row, column) for row in e.rows for column in e.columns],
        }

    def _cell(self, row: str, column: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in self.experiment.measurement.measures:
            value = self.estimate(row, column, name)
            values = [None if math.isnan(v) else v for v in self.values(row, column, name)]
            found[name] = None if value is None else {**_interval(value), "values": values}
        change = self.changes[row, column]
        return {"row": row, "column": column, "change": asdict(change) if change else None, "measures": found}


def _interval(value: Estimate) -> dict[str, float | None]:
    return {"mean": value.mean, "low": value.low, "high": value.high}


# Published results beside what was measured: the same ratio of two rows, and whether it holds here.


@dataclass(frozen=True)
class Published:
    """A published result: a ratio of two rows by one measure.

    ``ratio`` is ``measure`` of each row of ``against`` divided by that of ``row``; above 1 ``row`` is better.

    If more is better (``gain``) the ratio is inverted. ``most`` may be (words, measure of the workload): the largest
    gain of one mechanism; the rest of a ratio is the baseline's loss. ``note`` is a remark on the publication. Without a
    number ``ratio`` is nan.
    """

    what: str
    measure: str
    row: str
    against: tuple[str, ...]
    ratio: float = math.nan
    gain: bool = False
    most: tuple[str, str] | None = None
    note: str = ""

    def pair(self, other: str) -> str:
        """Return the two rows of the ratio as text.

        Parameters
        ----------
        other
            Label of the other row.
        """
        return f"{self.row} / {other}" if self.gain else f"{other} / {self.row}"

    def of(self, claim: Mapping[str, Any]) -> bool:
        """Return whether a ``[[claim]]`` table is about this result.

        Parameters
        ----------
        claim
            The table.
        """
        return (self.what, self.measure, self.row) == (claim["what"], claim["measure"], claim["row"])

    def require(self, experiment: str, rows: Collection[str], measures: Collection[str]) -> None:
        """Check that an experiment has the rows and measures of the result.

        Parameters
        ----------
        experiment
            Name of the experiment.
        rows, measures
            Its rows and measures.

        Raises
        ------
        ValueError
            If one is missing.
        """
        missing = [row for row in (self.row, *self.against) if row not in rows]
        needed = (self.measure,) if self.most is None else (self.measure, self.most[1])
        missing += [name for name in needed if name not in measures]
        if missing:
            raise ValueError(f"experiment {experiment}: what was published needs {missing}")


def beside_published(outcome: RunOutcome) -> list[str]:
    """Return a sentence for every published result and rival: the measured ratio, column by column.

    Parameters
    ----------
    outcome
        Outcome of an experiment.
    """
    published = [each for each in outcome.experiment.published if not math.isnan(each.ratio)]
    return [_sentence(outcome, each, other) for each in published for other in each.against]


def ratio_to(outcome: RunOutcome, published: Published, other: str, column: str) -> Change | None:
    """Return the measured ratio minus 1, over the seeds; None if it is not defined.

    Parameters
    ----------
    outcome
        Outcome of an experiment.
    published
        The published result.
    other
        Label of the rival.
    column
        Label of the column.
    """
    ours, theirs = (outcome.values(row, column, published.measure) for row in (published.row, other))
    return relative(ours, theirs) if published.gain else relative(theirs, ours)


def verdict(change: Change, ratio: float) -> str:
    """Compare a measured ratio with a published one above 1, by the interval if there is one.

    Parameters
    ----------
    change
        Measured ratio minus 1.
    ratio
        Published ratio.
    """
    low, high = (change.mean if end is None else end for end in (change.low, change.high))
    if low <= 0 <= high and change.low is not None:
        return "no difference shown"
    if 1 + change.mean < 1:
        return "opposite direction"
    if 1 + low > ratio:
        return "more than published"
    return "as published" if 1 + high >= ratio else "same direction, smaller"


def _sentence(outcome: RunOutcome, published: Published, other: str) -> str:
    said: dict[str, list[str]] = {}
    for column in outcome.experiment.columns:
        change = ratio_to(outcome, published, other, column)
        if change is None:
            said.setdefault("not measured", []).append(column)
            continue
        factor = f"x{1 + change.mean:.3g}"
        factor += "" if change.low is None or change.high is None else f" [{1 + change.low:.3g}, {1 + change.high:.3g}]"
        if published.most is not None:
            words, name = published.most
            limit = outcome.estimate(published.row, column, name)
            factor += "" if limit is None else f"; {words} at most x{significant(limit.mean, 3, 'up')}"
        said.setdefault(verdict(change, published.ratio), []).append(f"{column} ({factor})")
    shown = "; ".join(f"{text} at {', '.join(columns)}" for text, columns in said.items())
    note = f" ({published.note})" if published.note else ""
    return f"published {published.what}{note}: {published.pair(other)} = {published.ratio:.4g}; here {shown}"
