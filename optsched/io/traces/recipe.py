"""What a recipe is: named, typed parameters and a function that draws jobs from a seeded generator.

A recipe is one file in `optsched.io.traces.recipes` that files itself in `RECIPES`. `optsched.io.traces.generate.generate`
resolves its parameters, seeds the generator and writes name, seed and parameters into the instance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import polars as pl

from optsched.errors import InputError
from optsched.io.traces.laws import DurationLaw, GangLaw, duration_law, gang_law
from optsched.problem.cluster import Cluster
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.interference import Interference
from optsched.problem.profile import Profile
from optsched.problem.scaling import Scaling
from optsched.problem.throughputs import Throughputs
from optsched.registry import Registry, near_matches


@dataclass(frozen=True)
class Parameter:
    """One parameter: ``parse`` takes a typed value or its text and raises ValueError when it is not ``legal``."""

    default: Any
    legal: str
    meaning: str
    parse: Callable[[Any], Any]

    def resolve(self, recipe: str, name: str, value: Any) -> Any:
        """The typed value; `InputError` naming recipe, parameter, value and what is legal."""
        if value is None:
            return None if self.default is None else self.parse(self.default)
        try:
            return self.parse(value)
        except InputError:
            raise
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"invalid for recipe {recipe}", field=name, value=value, legal=self.legal) from None


def integer(default: int | None, meaning: str, *, least: int = 1, most: int = 10**8) -> Parameter:
    """An integer from ``least`` to ``most``."""

    def parse(value: Any) -> int:
        number = float(value)
        if isinstance(value, bool) or not number.is_integer() or not least <= number <= most:
            raise ValueError(value)
        return int(number)

    return Parameter(default, f"an integer from {least} to {most}", meaning, parse)


def number(default: float | None, meaning: str) -> Parameter:
    """A finite number > 0."""
    return Parameter(default, "a finite number > 0", meaning, lambda value: _finite(value, positive=True))


def non_negative(default: float, meaning: str) -> Parameter:
    """A finite number >= 0."""
    return Parameter(default, "a finite number >= 0", meaning, _finite)


def _finite(value: Any, *, positive: bool = False) -> float:
    parsed = float(value)
    if isinstance(value, bool) or not math.isfinite(parsed) or parsed < 0 or (positive and parsed == 0):
        raise ValueError(value)
    return parsed


def choice(default: str, options: tuple[str, ...], meaning: str) -> Parameter:
    """One of a few words."""

    def parse(value: Any) -> str:
        if value not in options:
            raise ValueError(value)
        return str(value)

    return Parameter(default, f"one of {', '.join(options)}", meaning, parse)


def yes_or_no(default: bool, meaning: str) -> Parameter:
    """True or false."""
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

    def parse(value: Any) -> bool:
        if str(value).lower() not in words:
            raise ValueError(value)
        return words[str(value).lower()]

    return Parameter(default, "true or false", meaning, parse)


def cluster(default: str, meaning: str = "where the jobs run") -> Parameter:
    """A cluster in its text form."""
    return Parameter(
        default, "e.g. 8x8", meaning, lambda value: value if isinstance(value, Cluster) else Cluster.parse(str(value))
    )


def durations(default: str, meaning: str = "law of the durations in seconds") -> Parameter:
    """A law of durations (`optsched.io.traces.laws`)."""
    return Parameter(default, "a law of durations", meaning, lambda value: duration_law(str(value)))


def gangs(default: str, meaning: str = "law of the numbers of GPUs") -> Parameter:
    """A law of GPU counts (`optsched.io.traces.laws`)."""
    return Parameter(default, "a law of GPU counts", meaning, lambda value: gang_law(str(value)))


@dataclass(frozen=True)
class Draw:
    """What a recipe drew: columns of `optsched.problem.job.Job` but the ids (jobs are numbered from 1), cluster, objective.

    ``derived`` holds numbers that follow from the parameters and that a reader will ask for (say, the mean gap);
    ``profiles``, ``throughputs``, ``tasks`` and ``scalings`` are the speeds that the jobs name, ``contention`` what messages
    cost, ``interference`` what two jobs on a GPU cost each other.
    """

    table: Mapping[str, Any] | pl.DataFrame
    cluster: Cluster
    objective: str | None = None
    derived: dict[str, Any] = field(default_factory=dict)
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    throughputs: Throughputs | None = None
    tasks: Mapping[str, IterationTasks] = field(default_factory=dict)
    contention: Contention | None = None
    scalings: Mapping[str, Scaling] = field(default_factory=dict)
    interference: Interference | None = None


T = TypeVar("T")
Values = Mapping[str, Any]  # of parameters, by name
Drawing = Callable[[np.random.Generator, Values], Draw]


@dataclass(frozen=True)
class Recipe:
    """A way to make instances: ``draw(rng, values)`` with one value a parameter, already typed and checked."""

    name: str
    summary: str
    parameters: Mapping[str, Parameter]
    draw: Drawing

    def resolve(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Typed values of all parameters, defaults filled in; `InputError` for unknown names and illegal values."""
        named = {key.replace("-", "_"): value for key, value in given.items()}
        for key in named:
            if key not in self.parameters:
                legal = near_matches(key, list(self.parameters), kind="parameter")
                raise InputError(f"recipe {self.name} has no such parameter", field=key, legal=legal)
        return {name: each.resolve(self.name, name, named.get(name)) for name, each in self.parameters.items()}


RECIPES: Registry[Recipe] = Registry(
    "recipe", package="optsched.io.traces.recipes", tables=("classical", "open_cluster", "gavel", "hadar")
)


def recipe(name: str, **parameters: Parameter) -> Callable[[Drawing], Drawing]:
    """Decorator that files a drawing function under ``name``; the first line of its docstring becomes the summary."""

    def add(draw: Drawing) -> Drawing:
        summary = (draw.__doc__ or "").strip().partition("\n")[0]
        RECIPES.register(name)(Recipe(name, summary, parameters, draw))
        return draw

    return add


def shown(value: Any) -> Any:
    """A parameter as it stands in a recipe record: laws and clusters in their text form, which `resolve` reads back."""
    if isinstance(value, DurationLaw | GangLaw):
        return value.text
    return value.spec if isinstance(value, Cluster) else value


def in_proportion(jobs: int, counts: Mapping[T, int]) -> list[T]:
    """Keys of ``counts``, in its order: job k = 0 .. jobs-1 has the one at the place (k + 1/2) / jobs of the counts.

    So that of sum(counts) jobs exactly counts[key] get a key, and of any other number at most one more or less than their
    share. Whole numbers throughout; O(jobs log len(counts)).
    """
    upper, keys = np.cumsum(np.array(list(counts.values()), dtype=np.int64)), list(counts)
    place = (2 * np.arange(jobs, dtype=np.int64) + 1) * upper[-1]  # (k + 1/2) / jobs, times 2 jobs and all counts
    return [keys[i] for i in np.searchsorted(2 * jobs * upper, place, side="right").tolist()]
