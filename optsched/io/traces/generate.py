"""Instances from recipes: `generate`, and the ``key=value`` texts of the command line.

Every instance says how it was made: ``instance.recipe`` holds the name of the recipe, the seed and all parameters,
and ``generate(recipe["name"], recipe["seed"], **recipe["parameters"])`` gives the same instance again, bit for bit
with the same numpy (`numpy.random.Generator` over PCG64; numpy may change how it turns bits into variates).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from optsched.errors import InputError, check_legal
from optsched.io.traces.recipe import RECIPES, shown
from optsched.problem.instance import Instance


def generate(recipe: str, seed: int = 0, **parameters: Any) -> Instance:
    """An instance of a recipe (`RECIPES.names()`).

    Parameters
    ----------
    seed : integer >= 0; the same seed and parameters give the same instance.
    parameters : those of the recipe, typed or as text; ``None`` means the default.

    Raises
    ------
    InputError
        Unknown recipe or parameter (with near matches), or a value that is invalid.

    Complexity: O(n), vectorised; a million jobs take about a second.

    >>> import optsched as osd
    >>> osd.generate("rigid", seed=1, jobs=6)
    Instance('rigid-1', 6 jobs, 1x8)
    >>> osd.generate("rigid", seed=1, jobs=6) == osd.generate("rigid", seed=1, jobs=6)
    True
    """
    chosen = RECIPES.get(recipe)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError("invalid", field="seed", value=seed, legal="an integer >= 0")
    values = chosen.resolve(parameters)
    drawn = chosen.draw(np.random.Generator(np.random.PCG64(int(seed))), values)
    record = {
        "name": recipe,
        "seed": int(seed),
        "parameters": {name: shown(value) for name, value in values.items() if value is not None},
        **({"derived": drawn.derived} if drawn.derived else {}),
    }
    name = f"{recipe}-{seed}"
    parts = (pl.DataFrame(drawn.table), drawn.cluster, name, drawn.objective, record)
    speeds = ("profiles", "throughputs", "tasks", "contention", "scalings", "interference")
    return Instance(*parts, **{name: getattr(drawn, name) for name in speeds})


def settings(texts: Iterable[str], option: str = "--set") -> dict[str, str]:
    """``["jobs=10", "gap=5"]`` as a mapping; `InputError` for a text without ``=`` or a key given twice."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip().replace("-", "_")
        check_legal(bool(equals and key and value.strip()), option, text, "key=value")
        if key in found:
            raise InputError("the key is given twice", field=option, value=text, legal="each key once")
        found[key] = value.strip()
    return found
