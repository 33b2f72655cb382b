"""What there is: the names of everything registered, each with its first line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from optsched.errors import InputError
from optsched.registry import Registry, near_matches


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0].replace("``", "")


def _documented(registry: Registry[Any]) -> list[tuple[str, str]]:
    return [(name, _first_line(thing)) for name, thing in registry.items()]


def _policies() -> list[tuple[str, str]]:
    from optsched.online import POLICIES
    from optsched.parameters import parameters_of

    return [(name, _with_parameters(_first_line(p), parameters_of(p))) for name, p in POLICIES.items()]


def _placements() -> list[tuple[str, str]]:
    from optsched.parameters import parameters_of
    from optsched.placement import PLACEMENTS

    return [(name, _with_parameters(_first_line(p), parameters_of(p))) for name, p in PLACEMENTS.items()]


def _predictors() -> list[tuple[str, str]]:
    from optsched.parameters import parameters_of
    from optsched.prediction import PREDICTORS

    return [(name, _with_parameters(_first_line(p), parameters_of(p))) for name, p in PREDICTORS.items()]


def _with_parameters(text: str, parameters: Any) -> str:
    shown = ", ".join(f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in parameters.items())
    return f"{text} [{shown}]" if shown else text


def _models() -> list[tuple[str, str]]:
    from optsched.models import FORMULATIONS
    from optsched.offline.task import ROADS

    rows = {name: f"{f.graham}; {'exact' if f.exact else 'bound'}" for name, f in FORMULATIONS.items()}
    others = {name: _first_line(inspect.getmodule(road.run)) for name, road in ROADS.items() if name not in rows}
    return sorted((rows | others).items())


def _bounds() -> list[tuple[str, str]]:
    from optsched.bounds import BOUNDS

    return [(name, b.statement) for name, b in BOUNDS.items()]


def _guarantees() -> list[tuple[str, str]]:
    from optsched.ratios import GUARANTEES

    return [
        (name, f"{g.statement} ({g.source}); policies: {', '.join(g.policies)}; on {g.objective}")
        for name, g in GUARANTEES.items()
    ]


def _suites() -> list[tuple[str, str]]:
    from optsched.ratios.suites import MADE, suites

    return [(name, suite.summary) for name, suite in (suites() | MADE).items()]


def _objectives() -> list[tuple[str, str]]:
    from optsched.objectives import OBJECTIVES

    return [(name, objective.graham) for name, objective in OBJECTIVES.items()]


def _instances() -> list[tuple[str, str]]:
    from optsched.sources import shipped

    rows = []
    for each in shipped():
        best = f"optimum {each.optimum:g}" if each.optimum is not None else f"bounds {each.lower} .. {each.upper}"
        rows.append((each.name, f"{each.problem}, {each.objective}: {best}"))
    return rows


def _recipes() -> list[tuple[str, str]]:
    from optsched.traces.recipe import RECIPES

    return [(name, recipe.summary) for name, recipe in RECIPES.items()]


def _dialects() -> list[tuple[str, str]]:
    from optsched.traces.dialect import DIALECTS

    return [(name, dialect.summary) for name, dialect in DIALECTS.items()]


def _studies() -> list[tuple[str, str]]:
    from optsched.studies.study import STUDIES

    return [(name, each.summary) for name, each in STUDIES.items()]


KINDS: dict[str, Callable[[], list[tuple[str, str]]]] = {
    "policies": _policies,
    "placements": _placements,
    "predictors": _predictors,
    "models": _models,
    "bounds": _bounds,
    "guarantees": _guarantees,
    "objectives": _objectives,
    "instances": _instances,
    "suites": _suites,
    "recipes": _recipes,
    "dialects": _dialects,
    "studies": _studies,
}


def catalogue(kind: str) -> list[tuple[str, str]]:
    """(name, one line) of everything of a kind; `InputError` with near matches for an unknown kind."""
    if kind not in KINDS:
        raise InputError("unknown kind", field="list", value=kind, legal=near_matches(kind, list(KINDS), kind="kind"))
    return KINDS[kind]()
