"""`Measurement`: what a cell of a sweep measures instead of metrics and objectives; a grid names it, ``measure = "..."``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from optsched.errors import InputError
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.guarantees.judge import Judgement
from optsched.policies.simulate import thing_in
from optsched.registry import Registry

# what became of a theorem, under the name ``kept``; nan: none applies
KEPT, OPEN, VIOLATED = 1.0, 0.0, -1.0


@dataclass(frozen=True)
class Measure:
    """A number of a run: how it is headed, its unit (``s``, ``share`` or ``factor``) and what it says.

    ``of_workload``: it says something about the workload and is the same for every policy. ``at_most``: a ratio to a lower
    bound, which the ratio to the optimum is at most. ``never_below_one``: by what it is, as every such ratio; no number is
    below 0.
    """

    head: str
    unit: str
    meaning: str
    of_workload: bool = False
    at_most: bool = False
    never_below_one: bool = False

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest number that it can be."""
        return float(self.at_most or self.never_below_one), 1.0 if self.unit == "share" else math.inf


@dataclass(frozen=True, eq=False)
class Measurement:
    """What is measured of a policy on an instance.

    ``take(policy, proven)`` runs a policy on ``proven.instance`` and gives numbers by name; nan where one is not defined.
    The referee accepts the schedule and bounds are proved again, or an error is raised.
    For studies ``measures`` says what they are, and rows are ``compared`` by one of them, for which less is better. There
    may be more numbers, for sentences: ``kept``, what became of the theorems (`KEPT`, `OPEN`, `VIOLATED`).
    """

    name: str
    take: Callable[[str, OptimumBounds], Mapping[str, float]]
    measures: Mapping[str, Measure] = field(default_factory=dict)
    compared: str = ""


MEASUREMENTS: Registry[Measurement] = Registry("measure", package="optsched.sweeps.measures")
measurement = MEASUREMENTS.maker(Measurement, lambda made: made.name)


def measurement_of(name: str) -> Measurement:
    """The measurement of a name; of ``module:function`` what that function takes, wherever a worker can import it.

    `InputError` where there is none.
    """
    return MEASUREMENTS.get(name) if ":" not in name else Measurement(name, imported(name, "measure"))


def imported(path: str, what: str) -> Callable[..., Any]:
    """The function that ``module:function`` means, in the current folder, too; `InputError` where there is none."""
    module, _, function = path.partition(":")
    found = thing_in(module, function, "function", what)
    if not callable(found):
        raise InputError("not a function", field=what, value=path, legal="module:function")
    return found  # type: ignore[no-any-return]


def kept(judged: Iterable[Judgement]) -> float:
    """What became of theorems: the worst of their verdicts."""
    return min(({True: KEPT, None: OPEN, False: VIOLATED}[each.holds] for each in judged), default=math.nan)


def certified_mean(proven: OptimumBounds, schedule_class: str | None = None) -> float:
    """The certified lower bound on the mean JCT; nan where none is known."""
    lower = proven.lower("total_flow_time", schedule_class)
    return math.nan if lower is None else float(lower) / proven.instance.n


def over(value: float, bound: float) -> float:
    """A ratio; nan where there is nothing to compare with."""
    return value / bound if bound > 0 else math.nan
