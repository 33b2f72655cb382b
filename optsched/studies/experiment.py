"""`Experiment`: policies on workloads, declared as a table; `RunOutcome`: the same table with its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from optsched.problem.instance import Instance
from optsched.studies.estimate import Change, Estimate, estimate, relative
from optsched.studies.published import Published
from optsched.sweeps.grid import Cell
from optsched.sweeps.measurement import Measurement, measurement_of


@dataclass(frozen=True)
class Workload:
    """A recipe (or ``module:function``) and its parameters: one instance a seed."""

    recipe: str
    parameters: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, recipe: str, **parameters: Any) -> Workload:
        """By keywords."""
        return cls(recipe, tuple(sorted(parameters.items())))

    def make(self, seed: int) -> Instance:
        """The instance of a seed."""
        return self.cell(seed).instance()

    def cell(self, seed: int, policy: str = "", measure: str = "") -> Cell:
        """Of a sweep."""
        return Cell(tuple(sorted({"recipe": self.recipe, **dict(self.parameters)}.items())), seed, policy, (), measure)

    def to_json(self) -> dict[str, Any]:
        """Recipe and parameters."""
        return {"recipe": self.recipe, "parameters": dict(self.parameters)}


# (workload, seed, policy) -> what was measured
Numbers = Mapping[tuple[Workload, int, str], Mapping[str, float]]


@dataclass(frozen=True)
class Experiment:
    """A question, answered by ``rows`` (label -> policy) on ``columns`` (label -> workload).

    ``across`` says what the columns are; ``shown`` are the measures that a table prints (JSON holds all of them);
    ``reference`` is the label of the row that the others are compared with, on the measure that the ``measurement``
    compares by (mean JCT, unless it says otherwise). ``published`` are results of others to stand beside.
    ``within``: columns may differ in the policy as well: label -> text in which the row's policy takes the place of ``{}``.
    ``seeds``: how many workloads a column has, where that is not what the study says. ``short``: times are seconds so few
    that tables show them as such, not as hours.
    ``remarks``: more that an outcome says, besides what `optsched.studies.findings` finds in every experiment.
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
        """The policy of a cell."""
        return self.within.get(column, "{}").replace("{}", self.rows[row])

    def cell(self, row: str, column: str, seed: int) -> Cell:
        """Of a sweep."""
        return self.columns[column].cell(seed, self.policy(row, column), self.measurement.name)

    def seeds_of(self, usual: tuple[int, ...]) -> tuple[int, ...]:
        """The seeds of its workloads: ``usual``, unless it has its own number."""
        return usual if self.seeds is None else tuple(range(1, self.seeds + 1))


@dataclass(frozen=True)
class RunOutcome:
    """An experiment with its numbers, over ``seeds``."""

    experiment: Experiment
    seeds: tuple[int, ...]
    numbers: Numbers

    @property
    def complete(self) -> bool:
        """Has every cell been run, for every seed?"""
        e = self.experiment
        places = ((row, column) for row in e.rows for column in e.columns)
        return all((e.columns[c], seed, e.policy(r, c)) in self.numbers for r, c in places for seed in self.seeds)

    def values(self, row: str, column: str, name: str) -> list[float]:
        """What was measured in a cell, one number a seed; nan where it is not defined."""
        workload, policy = self.experiment.columns[column], self.experiment.policy(row, column)
        found = [self.numbers[workload, seed, policy] for seed in self.seeds]
        return [each.get(name, math.nan) for each in found]

    def estimate(self, row: str, column: str, name: str) -> Estimate | None:
        """Mean and interval of a measure in a cell; None where it is not defined."""
        return estimate(self.values(row, column, name))

    @property
    def compared(self) -> str:
        """How the measure is headed that rows are compared by."""
        return self.experiment.measurement.measures[self.experiment.measurement.compared].head

    @cached_property
    def changes(self) -> dict[tuple[str, str], Change | None]:
        """(row, column) -> the compared measure against the reference on the same workloads, relative."""
        against = self.experiment.reference
        return {
            (row, column): self.change(row, against, column)
            for row in self.experiment.rows
            for column in self.experiment.columns
        }

    def change(self, row: str, against: str, column: str) -> Change | None:
        """The compared measure of a row against another, on the same workloads, relative.

        For mean JCT: sum C differs in the same direction.
        """
        name = self.experiment.measurement.compared
        return relative(self.values(row, column, name), self.values(against, column, name))

    def to_json(self) -> dict[str, Any]:
        """The declaration, and of every cell all measures: mean, interval, and the value of every seed."""
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
            found[name] = None if value is None else {**value.to_json(), "values": values}
        change = self.changes[row, column]
        return {"row": row, "column": column, "change": change.to_json() if change else None, "measures": found}
