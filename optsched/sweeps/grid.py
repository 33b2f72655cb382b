"""The grid of a sweep: which instances, policies, seeds and objectives, as a TOML file or a mapping says.

objectives = ["total_flow_time"]     # default: each instance's own
seeds = "1-20"                       # or a list; of recipes
policies = ["srtf", "a-srpt:tau=2+consolidated"]

[[instances]]                        # every list is an axis of the grid
recipe = "recurring"
jobs = 640
load = [0.6, 0.9, 1.2]

[[instances]]
source = ["cluster-week", "philly:trace.csv"]
cluster = "8x8"

[[policy]]                           # a policy with lists of parameters, beside those named above
name = "makespan-rounds"
round = [120, 360]

A recipe may also be a function of (seed, **parameters), ``module:function``. ``measure = "..."`` takes the numbers of a cell
from an `optsched.sweeps.measurement.Measurement` instead of metrics and objectives.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optsched.errors import InputError, check_legal
from optsched.io.sources import check_there, load
from optsched.io.traces.generate import RECIPES, generate
from optsched.policies.simulate import specify
from optsched.problem.atomic_files import note_named, read_bytes
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.registry import written
from optsched.sweeps.measurement import imported, measurement_of

KEYS = ("name", "objectives", "measure", "seeds", "policies", "instances", "policy")
READ_WITH = (
    "cluster",
    "columns",
    "limit",
    "skip_bad",
    "throughputs",
    "interference",
    "contention",
    "profiles",
    "job_level",
)
MOST_CELLS = 1_000_000
_RANGE = re.compile(r"(\d+)-(\d+)")


@dataclass(frozen=True)
class Cell:
    """One run of a sweep: a policy on an instance, with the objectives to bound.

    ``where`` : ``recipe`` or ``source``, and the arguments that make or read it. ``measure`` : the measurement that replaces
    objectives, or "".
    """

    where: tuple[tuple[str, Any], ...]
    seed: int | None
    policy: str
    objectives: tuple[str, ...]
    measure: str = ""

    @property
    def key(self) -> str:
        """Identity of the cell in JSON: the same in every file, on every machine."""
        parts = {"where": dict(self.where), "seed": self.seed, "policy": self.policy, "objectives": self.objectives}
        return json.dumps(parts | ({"measure": self.measure} if self.measure else {}), sort_keys=True)

    @property
    def on(self) -> str:
        """Key of the instance: that of the cell without policy and objectives."""
        return Cell(self.where, self.seed, "", ()).key

    @classmethod
    def of_key(cls, key: str) -> Cell:
        """Return the cell of a `key`.

        Parameters
        ----------
        key
            Key of the cell in JSON.
        """
        parts = json.loads(key)
        where = tuple(sorted(parts["where"].items()))
        return cls(where, parts["seed"], parts["policy"], tuple(parts["objectives"]), parts.get("measure", ""))

    def instance(self) -> Instance:
        """Return the instance of the cell; raise `InputError` if it cannot be read or made."""
        given = dict(self.where)
        if "source" in given:
            return load(given.pop("source"), **given)
        recipe, seed = given.pop("recipe"), self.seed or 0
        made: Instance = imported(recipe, "recipe")(seed, **given) if ":" in recipe else generate(recipe, seed, **given)
        return made


@dataclass(frozen=True)
class Grid:
    """All cells of a sweep; the policies of an instance follow each other."""

    name: str
    cells: tuple[Cell, ...]

    @classmethod
    def read(cls, source: GridSource) -> Grid:
        """Return the grid of a TOML file or of a mapping with its keys.

        Every recipe, source, parameter, policy and objective is checked before anything runs.

        Parameters
        ----------
        source
            File, mapping, or a grid, which is returned unchanged.

        Raises
        ------
        InputError
            If the grid is invalid; it names the file, the table, the field, the value and the legal values.
        """
        if isinstance(source, Grid):
            return source
        if isinstance(source, Mapping):
            return _grid(source, "sweep", None)
        return _grid(read_toml(source), Path(source).stem, source)


GridSource = str | os.PathLike[str] | Mapping[str, Any] | Grid


def read_toml(file: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the document of a TOML file.

    Parameters
    ----------
    file
        File to read.

    Raises
    ------
    InputError
        If the file is not TOML.
    """
    try:
        return tomllib.loads(read_bytes(file).decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"not TOML: {error}", file=file, legal="a TOML file") from None


def _grid(document: Mapping[str, Any], name: str, file: str | os.PathLike[str] | None) -> Grid:
    def refuse(what: str, field: str, value: Any, legal: str) -> InputError:
        return InputError(what, file=file, field=field, value=value, legal=legal)

    unknown = [key for key in document if key not in KEYS]
    if unknown:
        raise refuse("unknown key", unknown[0], document[unknown[0]], ", ".join(KEYS))
    objectives = _list(document.get("objectives", []))
    try:
        objectives = [get_objective(str(objective)).name for objective in objectives]
        policies = [text for each in _policies(document) for text in [specify(each).text]]
        seeds, measure = _seeds(document.get("seeds", [1])), str(document.get("measure", ""))
        if measure:
            measurement_of(measure)
    except InputError as error:
        raise InputError(str(error), file=file) from None
    if measure and objectives:
        raise refuse("beside a measure", "objectives", objectives, "one of the two")
    if not policies:
        raise refuse("no policy", "policies", [], "a list of policies")
    tables = document.get("instances", [])
    if not isinstance(tables, list) or not tables:
        raise refuse("no instances", "instances", tables, "tables [[instances]] with a recipe or a source")
    cells: dict[Cell, None] = {}
    for row, table in enumerate(tables, 1):
        try:
            for where, seed in _instances(table, seeds):
                run = (Cell(where, seed, each, tuple(objectives), measure) for each in policies)
                cells.update(dict.fromkeys(run))
                if len(cells) > MOST_CELLS:
                    raise refuse("too many cells", "instances", f"> {len(cells) - 1}", f"at most {MOST_CELLS:,}")
        except InputError as error:
            raise InputError(f"instances, table {row}: {error}", file=file) from None
    return Grid(str(document.get("name", name)), tuple(cells))


def check_recipe(where: Mapping[str, Any]) -> None:
    """Check a recipe and its parameters; the parameters of a function are not checked.

    Parameters
    ----------
    where
        The recipe and its parameters.

    Raises
    ------
    InputError
        If the recipe or a parameter is unknown.
    """
    given = dict(where)
    name = str(given.pop("recipe"))
    if ":" in name:
        imported(name, "recipe")
    else:
        RECIPES.get(name).resolve(given)


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _policies(document: Mapping[str, Any]) -> Iterator[str]:
    yield from map(str, _list(document.get("policies", [])))
    for table in _list(document.get("policy", [])):
        axes = _axes(table)
        if "name" not in axes:
            raise InputError("no name", field="policy", value=table, legal='tables [[policy]] with name = "POLICY"')
        names, places = axes.pop("name"), axes.pop("placement", [""])
        for name, place, *values in itertools.product(names, places, *axes.values()):
            given = ",".join(f"{key}={written(value)}" for key, value in zip(axes, values, strict=True))
            yield f"{name}{':' * bool(given)}{given}{'+' * bool(place)}{place}"


def _axes(table: Any) -> dict[str, list[Any]]:
    """Return the values of each parameter in a table; {} if it is not a table."""
    axes = {key: _list(value) for key, value in table.items()} if isinstance(table, Mapping) else {}
    for key, values in axes.items():
        for value in values:
            check_legal(isinstance(value, str | int | float), key, value, "a text, a number, true or false, or a list")
    return axes


def _seeds(given: Any) -> list[int]:
    if isinstance(given, str) and (found := _RANGE.fullmatch(given.replace(" ", ""))):
        first, last = map(int, found.groups())
        given = list(range(first, min(last, first + MOST_CELLS) + 1))  # of more there are too many cells
    seeds = _list(given)
    if not seeds or any(type(seed) is not int or seed < 0 for seed in seeds):
        raise InputError("invalid", field="seeds", value=given, legal='"1-20", or a list of integers >= 0')
    return seeds


def _instances(table: Any, seeds: list[int]) -> Iterator[tuple[tuple[tuple[str, Any], ...], int | None]]:
    """(what it is, seed) of every instance of a table, lists of parameters as axes."""
    axes = _axes(table)
    kinds = [key for key in ("recipe", "source") if key in axes]
    check_legal(len(kinds) == 1, "instances", table, "a recipe, or a source")
    for source in axes.get("source", []):
        check_there(str(source))
    for name in ("source", *READ_WITH):  # what the cells will read: nothing is written over it
        for value in axes.get(name, []):
            note_named(str(value))
    for values in itertools.product(*axes.values()):
        where = dict(zip(axes, values, strict=True))
        if kinds == ["recipe"]:
            check_recipe(where)
        elif wrong := [key for key in where if key not in ("source", *READ_WITH)]:
            raise InputError("unknown key", field=wrong[0], value=where[wrong[0]], legal=", ".join(READ_WITH))
        for seed in seeds if kinds == ["recipe"] else [None]:
            yield tuple(sorted(where.items())), seed
