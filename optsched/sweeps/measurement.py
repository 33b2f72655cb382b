"""`Measurement`: numbers of a cell that replace metrics and objectives; a grid selects it by ``measure = "..."``."""

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
    """A number of a run: its heading, its unit (``s``, ``share`` or ``factor``) and its meaning.

    ``of_workload``: it describes the workload and is the same for every policy. ``at_most``: it is a ratio to a lower bound,
    so the ratio to the optimum is at most this. ``never_below_one``: it is at least 1 by definition, as every such ratio is;
    no number is below 0.
    """

    head: str
    unit: str
    meaning: str
    of_workload: bool = False
    at_most: bool = False
    never_below_one: bool = False

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest possible number."""
        return float(self.at_most or self.never_below_one), 1.0 if self.unit == "share" else math.inf


@dataclass(frozen=True, eq=False)
class Measurement:
    """Numbers that are measured for a policy on an instance.

    ``take(policy, proven)`` runs a policy on ``proven.instance`` and returns numbers by name; nan if one is not defined. The
    referee checks the schedule and bounds are verified, or an error is raised. For studies ``measures`` describes the
    numbers, and rows are ``compared`` by one of them, for which less is better. There may be more numbers, for sentences:
    ``kept`` is the verdict on the theorems (`KEPT`, `OPEN`, `VIOLATED`).
    """

    name: str
    take: Callable[[str, OptimumBounds], Mapping[str, float]]
    measures: Mapping[str, Measure] = field(default_factory=dict)
    compared: str = ""


MEASUREMENTS: Registry[Measurement] = Registry("measure", package="optsched.sweeps.measures")
measurement = MEASUREMENTS.maker(Measurement, lambda made: made.name)


def measurement_of(name: str) -> Measurement:
    """Return a measurement by name, or that of a function which every worker can import.

    Parameters
    ----------
    name
        A registered name, or ``module:function``.

    Raises
    ------
    InputError
        If there is no such measurement.
    """
    return MEASUREMENTS.get(name) if ":" not in name else Measurement(name, imported(name, "measure"))


def imported(path: str, what: str) -> Callable[..., Any]:
    """Import a function, also from a module of the current folder.

    Parameters
    ----------
    path
        ``module:function``.
    what
        Name of the field, for errors.

    Raises
    ------
    InputError
        If there is no such function.
    """
    module, _, function = path.partition(":")
    found = thing_in(module, function, "function", what)
    if not callable(found):
        raise InputError("not a function", field=what, value=path, legal="module:function")
    return found  # type: ignore[no-any-return]


def kept(judged: Iterable[Judgement]) -> float:
    """Return the worst verdict on theorems: `KEPT`, `OPEN` or `VIOLATED`; nan without theorems.

    Parameters
    ----------
    judged
        Judgements of one run.
    """
    return min(({True: KEPT, None: OPEN, False: VIOLATED}[each.holds] for each in judged), default=math.nan)


def certified_mean(proven: OptimumBounds, schedule_class: str | None = None) -> float:
    """Return the certified lower bound on the mean JCT, in seconds; nan if none is known.

    Parameters
    ----------
    proven
        Proven bounds of an instance.
    schedule_class
        Class of schedules; None: the default class.
    """
    lower = proven.lower("total_flow_time", schedule_class)
    return math.nan if lower is None else float(lower) / proven.instance.n


def over(value: float, bound: float) -> float:
    """Return a ratio; nan if the bound is not > 0.

    Parameters
    ----------
    value
        Numerator.
    bound
        Denominator.
    """
    return value / bound if bound > 0 else math.nan
