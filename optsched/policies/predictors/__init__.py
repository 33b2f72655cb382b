"""Predictors of the lengths of jobs at their arrival, registered by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optsched.registry import Registry, made, parameters_of, written
from optsched.simulation.predictor import Predictor

# name -> maker(**parameters) -> Predictor
PREDICTORS: Registry[Callable[..., Predictor]] = Registry(
    "predictor", package="optsched.policies.predictors", tables=("means", "noisy", "shrinkage", "limits")
)


def predictor(text: str | Predictor) -> Predictor:
    """Return the predictor that a text names, e.g. ``forest`` or ``noisy/error=2/seed=1``.

    Parameters
    ----------
    text
        ``NAME[/key=value]...``, or a predictor, which is returned.
    """
    if not isinstance(text, str):
        return text
    result: Predictor = made(PREDICTORS.get, "predictor", text, opens="/", separates="/")
    return result


def spelled(name: str, predictor: Any, always: tuple[str, ...] = ()) -> str:
    """Return the text of a predictor in reports, which `predictor` reads back, e.g. ``forest/refit=200``.

    Parameters
    ----------
    name
        Name of the predictor.
    predictor
        The predictor; parameters at their defaults are left out.
    always
        Parameters that are never left out.
    """
    parts = [name]
    for key, default in parameters_of(type(predictor)).items():
        value = getattr(predictor, key)
        if value != default or key in always:
            parts.append(f"{key}={int(value) if isinstance(value, float) and value.is_integer() else written(value)}")
    return "/".join(parts)
