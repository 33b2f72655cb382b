"""How long a job will run, said at its arrival: predictors, registered under their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optsched.registry import Registry, made, parameters_of, written
from optsched.simulation.predictor import Predictor

# name -> maker(**parameters) -> Predictor
PREDICTORS: Registry[Callable[..., Predictor]] = Registry(
    "predictor", package="optsched.policies.predictors", tables=("means", "noisy", "shrinkage")
)


def predictor(text: str | Predictor) -> Predictor:
    """The predictor that ``NAME[/key=value]...`` names, e.g. ``forest`` or ``noisy/error=2/seed=1``."""
    if not isinstance(text, str):
        return text
    found: Predictor = made(PREDICTORS.get, "predictor", text, opens="/", separates="/")
    return found


def spelled(name: str, predictor: Any, always: tuple[str, ...] = ()) -> str:
    """``name`` and the parameters that are not at their defaults (and those of ``always``), e.g. ``forest/refit=200``.

    So a predictor writes itself in reports: text that `predictor` reads back.
    """
    parts = [name]
    for key, default in parameters_of(type(predictor)).items():
        value = getattr(predictor, key)
        if value != default or key in always:
            parts.append(f"{key}={int(value) if isinstance(value, float) and value.is_integer() else written(value)}")
    return "/".join(parts)
