"""Instances from recipes: `generate`, the type of a recipe, and the parameters that recipes have.

A recipe is one file in `optsched.io.traces.recipes`, or a function of one, that registers itself in `RECIPES`: named, typed
parameters, and a function that draws jobs from a seeded generator. Every instance records how it was made:
``instance.recipe`` has the name of the recipe, the seed and all parameters, and
``generate(recipe["name"], recipe["seed"], **recipe["parameters"])`` gives the same instance again, bit for bit with the
same numpy (`numpy.random.Generator` over PCG64; numpy may change how it turns bits into variates).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import polars as pl

from optsched.errors import InputError, check_legal
from optsched.io.traces.laws import DurationLaw, GangLaw, duration_law, gang_law
from optsched.problem.arrays import is_whole
from optsched.problem.cluster import Cluster
from optsched.problem.instance import Instance
from optsched.registry import Registry, check_known


@dataclass(frozen=True)
class Parameter:
    """One parameter: ``parse`` takes a typed value or its text and raises ValueError if it is not ``legal``."""

    default: Any
    legal: str
    meaning: str
    parse: Callable[[Any], Any]

    def resolve(self, recipe: str, name: str, value: Any) -> Any:
        """Return the typed value.

        Parameters
        ----------
        recipe
            Name of the recipe.
        name
            Name of the parameter.
        value
            The value, typed or as text; None: the default.

        Raises
        ------
        InputError
            If the value is not legal; the message names recipe, parameter, value and legal values.
        """
        if value is None:
            return None if self.default is None else self.parse(self.default)
        try:
            return self.parse(value)
        except InputError:
            raise
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"invalid for recipe {recipe}", field=name, value=value, legal=self.legal) from None


def integer(default: int | None, meaning: str, *, least: int = 1, most: int = 10**8) -> Parameter:
    """Return a parameter that is an integer from ``least`` to ``most``.

    Parameters
    ----------
    default
        Default value; None: none.
    meaning
        Meaning in a few words.
    least
        Least value.
    most
        Largest value.
    """

    def parse(value: Any) -> int:
        number = float(value)
        if isinstance(value, bool) or not number.is_integer() or not least <= number <= most:
            raise ValueError(value)
        return int(number)

    return Parameter(default, f"an integer from {least} to {most}", meaning, parse)


def _finite(value: Any, *, positive: bool = False) -> float:
    parsed = float(value)
    if isinstance(value, bool) or not math.isfinite(parsed) or parsed < 0 or (positive and parsed == 0):
        raise ValueError(value)
    return parsed


def _truth(value: Any) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).lower() not in words:
        raise ValueError(value)
    return words[str(value).lower()]


def _maker(legal: str, parse: Callable[[Any], Any], usual: str = "") -> Callable[..., Parameter]:
    def make(default: Any, meaning: str = usual) -> Parameter:
        return Parameter(default, legal, meaning, parse)

    return make


number = _maker("a finite number > 0", partial(_finite, positive=True))
non_negative = _maker("a finite number >= 0", _finite)
yes_or_no = _maker("true or false", _truth)
cluster = _maker("e.g. 8x8", lambda at: at if isinstance(at, Cluster) else Cluster.parse(str(at)), "where the jobs run")
# laws of `optsched.io.traces.laws`
durations = _maker("a law of durations", lambda text: duration_law(str(text)), "law of the durations in seconds")
gangs = _maker("a law of GPU counts", lambda text: gang_law(str(text)), "law of the numbers of GPUs")


def choice(default: str, options: tuple[str, ...], meaning: str) -> Parameter:
    """Return a parameter that is one of a few words.

    Parameters
    ----------
    default
        Default value.
    options
        The words.
    meaning
        Meaning in a few words.
    """

    def parse(value: Any) -> str:
        if value not in options:
            raise ValueError(value)
        return str(value)

    return Parameter(default, f"one of {', '.join(options)}", meaning, parse)


class Draw:
    """Jobs that a recipe drew, and the other parts of their instance.

    ``table`` has columns of `optsched.problem.job_table.Job` but the ids (jobs are numbered from 1).

    ``derived`` has numbers that follow from the parameters and that matter to a reader (say, the mean gap); ``speeds``
    has further arguments of the `Instance`: ``profiles`` and the like that the jobs name, ``contention``, ``interference``.
    """

    def __init__(
        self,
        table: Mapping[str, Any] | pl.DataFrame,
        cluster: Cluster,
        objective: str | None = None,
        derived: Mapping[str, Any] = MappingProxyType({}),
        **speeds: Any,
    ) -> None:
        self.table, self.cluster, self.objective = table, cluster, objective
        self.derived, self.speeds = dict(derived), speeds


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
        """Return typed values of all parameters, defaults filled in.

        Parameters
        ----------
        given
            Given values by name, typed or as text.

        Raises
        ------
        InputError
            If a name is unknown or a value is not legal.
        """
        named = {key.replace("-", "_"): value for key, value in given.items()}
        for key in named:
            check_known(key, self.parameters, "parameter", f"recipe {self.name} has no such parameter", field=key)
        return {name: each.resolve(self.name, name, named.get(name)) for name, each in self.parameters.items()}


RECIPES: Registry[Recipe] = Registry(
    "recipe",
    package="optsched.io.traces.recipes",
    tables=("classical", "ddl", "gavel_recipes", "hadar_recipes", "open_cluster"),
)


def recipe(name: str, **parameters: Parameter) -> Callable[[Drawing], Drawing]:
    """Decorate a drawing function to register it under ``name``; the first line of its docstring becomes the summary.

    Parameters
    ----------
    name
        Name of the recipe.
    **parameters
        Parameters of the recipe, by name.
    """

    def add(draw: Drawing) -> Drawing:
        summary = (draw.__doc__ or "").strip().partition("\n")[0]
        RECIPES.register(name)(Recipe(name, summary, parameters, draw))
        return draw

    return add


def in_proportion(jobs: int, counts: Mapping[T, int]) -> list[T]:
    """Return keys of ``counts`` in its order: job k = 0 .. jobs-1 has the one at the place (k + 1/2) / jobs of the counts.

    Hence of sum(counts) jobs exactly counts[key] get a key, and of any other number at most one more or less than their
    share. It uses whole numbers throughout. O(jobs log len(counts)).

    Parameters
    ----------
    jobs
        Number of jobs.
    counts
        Count of every key.
    """
    upper, keys = np.cumsum(np.array(list(counts.values()), dtype=np.int64)), list(counts)
    place = (2 * np.arange(jobs, dtype=np.int64) + 1) * upper[-1]  # (k + 1/2) / jobs, times 2 jobs and all counts
    return [keys[i] for i in np.searchsorted(2 * jobs * upper, place, side="right").tolist()]


def generate(recipe: str, seed: int = 0, **parameters: Any) -> Instance:
    """Return an instance of a recipe.

    Complexity: O(n), vectorised; a million jobs take about a second.

    Parameters
    ----------
    recipe
        Name of the recipe (`RECIPES.names()`).
    seed
        Integer >= 0; the same seed and parameters give the same instance.
    **parameters
        Parameters of the recipe, typed or as text; ``None`` means the default.

    Raises
    ------
    InputError
        If recipe or parameter is unknown (with near matches), or a value is invalid.

    Examples
    --------
    >>> import optsched as osd
    >>> osd.generate("rigid", seed=1, jobs=6)
    Instance('rigid-1', 6 jobs, 1x8)
    >>> osd.generate("rigid", seed=1, jobs=6) == osd.generate("rigid", seed=1, jobs=6)
    True
    """
    recipe = RECIPES.canonical(recipe)
    chosen = RECIPES.get(recipe)
    check_legal(is_whole(seed) and seed >= 0, "seed", seed, "an integer >= 0")
    values = chosen.resolve(parameters)
    drawn = chosen.draw(np.random.Generator(np.random.PCG64(int(seed))), values)
    record = {
        "name": recipe,
        "seed": int(seed),
        "parameters": {name: _shown(value) for name, value in values.items() if value is not None},
        **({"derived": drawn.derived} if drawn.derived else {}),
    }
    parts = (pl.DataFrame(drawn.table), drawn.cluster, f"{recipe}-{seed}", drawn.objective, record)
    return Instance(*parts, **drawn.speeds)


def _shown(value: Any) -> Any:
    """Return a parameter as in a recipe record: laws and clusters in their text form, which `resolve` reads back."""
    if isinstance(value, DurationLaw | GangLaw):
        return value.text
    return value.spec if isinstance(value, Cluster) else value


def settings(texts: Iterable[str], option: str = "--set") -> dict[str, str]:
    """Return ``["jobs=10", "gap=5"]`` as a mapping.

    Parameters
    ----------
    texts
        The texts.
    option
        Name of the option, for errors.

    Raises
    ------
    InputError
        If a text has no ``=``, or a key is given twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip().replace("-", "_")
        check_legal(bool(equals and key and value.strip()), option, text, "key=value")
        if key in found:
            raise InputError("the key is given twice", field=option, value=text, legal="each key once")
        found[key] = value.strip()
    return found
