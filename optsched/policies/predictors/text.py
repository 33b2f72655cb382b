"""How a predictor writes itself in reports: text that `optsched.policies.predictors.predictor` reads back."""

from __future__ import annotations

from typing import Any

from optsched.parameters import parameters_of


def spelled(name: str, predictor: Any, always: tuple[str, ...] = ()) -> str:
    """``name`` and the parameters that are not at their defaults (and those of ``always``), e.g. ``forest/refit=200``."""
    parts = [name]
    for key, default in parameters_of(type(predictor)).items():
        value = getattr(predictor, key)
        if value != default or key in always:
            parts.append(f"{key}={_short(value)}")
    return "/".join(parts)


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
