"""The kinds of names that ``list`` knows: their registries, and how their lines and entries are made."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import Any

from optsched.cli.catalogue_entry import (
    Entry,
    ShownParameter,
    first_line,
    paragraphs,
    shown_parameters,
    shown_value,
    with_defaults,
    with_parameters,
    written_with,
)
from optsched.cli.formulation_text import mathematics
from optsched.registry import Registry, parameters_of


def _models() -> list[tuple[str, str]]:
    from optsched.models import FORMULATIONS
    from optsched.models.program import PROGRAMS
    from optsched.solvers.method import METHODS

    rows = {
        name: f"{f.graham}; {'exact' if f.exact else 'bound'}, class {f.schedule_class}"
        for name, f in FORMULATIONS.items()
    }
    others = {}
    for name, method in METHODS.items():
        if name not in rows:
            # the table already names the method: "The method cp-sat: OR-Tools' ..." is shortened
            text = first_line(inspect.getmodule(method.run)).removeprefix(f"The method {name}: ").rstrip(".")
            kind = "exact" if method.exact else "schedule"
            others[name] = f"{method.statement or text}; {kind}, class {method.schedule_class}"
    programs = {
        name: with_parameters(f"{p.notation}; {p.value}, class {p.schedule_class}", parameters_of(p.data))
        for name, p in PROGRAMS.items()
        if name not in others
    }
    return sorted((rows | others | programs).items())


def _bounds() -> list[tuple[str, str]]:
    from optsched.bounds import BOUNDS, lp_dual

    return sorted([*((name, bound.statement) for name, bound in BOUNDS.items()), (lp_dual.KIND, lp_dual.STATEMENT)])


def _guarantees() -> list[tuple[str, str]]:
    from optsched.guarantees.describe import theorems
    from optsched.guarantees.judge import MethodTheorem

    rows = []
    for name, theorem in theorems().items():
        if isinstance(theorem, MethodTheorem):
            about = f"method: {theorem.method}"
        else:
            about = f"policies: {', '.join(theorem.policies)}"
        rows.append((name, f"{theorem.statement} ({theorem.source}); {about}; on {theorem.objective}"))
    return sorted(rows)


def _suites() -> list[tuple[str, str]]:
    from optsched.evaluation.suites import suites, suites_outside_baseline

    return [(name, suite.summary) for name, suite in (suites() | suites_outside_baseline()).items()]


def _instances() -> list[tuple[str, str]]:
    from optsched.io.index import entries

    return [(entry.name, f"{entry.problem}, {entry.objective}: {entry.known}") for entry in entries()]


def _of_model(name: str, text: str) -> Entry:
    from optsched.models import FORMULATIONS
    from optsched.models.program import PROGRAMS
    from optsched.problem.instance import Instance, Job

    parameters: tuple[ShownParameter, ...] = ()
    if name in PROGRAMS:
        data = PROGRAMS.get(name).data
        parameters = shown_parameters(data, partial(data, Instance([Job("a", duration=1)], "1x1")))
    registry: Registry[Any] = FORMULATIONS if name in FORMULATIONS else PROGRAMS
    facts: tuple[tuple[str, str], ...] = ()
    if name in registry:
        model = registry.get(name)
        end = ', model.end("ID") its completion time' if getattr(model, "end", None) else ""
        facts = mathematics(inspect.getdoc(inspect.getmodule(model.build)) or "")
        facts += (
            ("in Python", f'model = osd.formulate(SOURCE, "{name}"); model.job("ID") is the number of a job{end}'),
        )
    return Entry(
        name, text, parameters, written_with(f"optsched solve SOURCE --model {name}:", parameters), facts=facts
    )


def _of_guarantee(name: str, _: str) -> Entry:
    from optsched.guarantees.describe import facts_of, theorems

    theorem = theorems()[name]
    return Entry(name, theorem.statement, about=theorem.proof, facts=facts_of(theorem))


def _recipe(recipe: Any) -> str:
    return with_parameters(recipe.summary, {key: parameter.default for key, parameter in recipe.parameters.items()})


def _of_recipe(recipe: Any, _: str) -> Entry:
    rows = ((key, p.default, f"{p.meaning} ({p.legal})") for key, p in recipe.parameters.items())
    written = f"optsched generate {recipe.name} --set {next(iter(recipe.parameters), 'key')}=... -o FILE"
    return Entry(
        recipe.name,
        recipe.summary,
        tuple(ShownParameter(key, shown_value(default), text) for key, default, text in rows),
        written,
    )


def _family(family: Any) -> str:
    return f"{family.summary}; {family.policy} on {family.objective}: {family.limit}"


def _of_family(family: Any, _: str) -> Entry:
    parameters = shown_parameters(family.make)
    written = f"optsched ratio {family.name}:{family.size}={parameters[0].default} -p {family.policy}"
    return Entry(family.name, _family(family), parameters, written, paragraphs(family.about))


def _of_dialect(dialect: Any, text: str) -> Entry:
    columns = "--columns FIELD=COLUMN,..." if dialect.takes_columns else ", ".join(dialect.header)
    cluster = "from the file, unless --cluster is given" if dialect.brings_cluster else "--cluster NODESxGPUS"
    if dialect.guesses_cluster:
        cluster += f"; without it, what the file states or the most {dialect.counts} that were in use at once"
    facts = (("columns", columns), ("fragment", dialect.fragment), ("cluster", cluster))
    return Entry(dialect.name, text, facts=tuple(fact for fact in facts if fact[1]))


def _of_method(method: Any, text: str) -> Entry:
    from optsched.adversary.attack_method import TOLERANCE_LEGAL

    size = "an integer >= 1; a value of the space takes precedence"
    parameters = tuple(ShownParameter(key, shown_value(value), size) for key, value in method.usual.items())
    parameters += (ShownParameter("tolerance", shown_value(method.tolerance), TOLERANCE_LEGAL),)
    return Entry(method.name, text, parameters, f"optsched attack POLICY --method {method.name}")


def _facts_of_policy(name: str) -> tuple[tuple[str, str], ...]:
    """Return the knowledge of a policy with its default parameters, and the theorems about it."""
    from optsched.guarantees.guarantee import GUARANTEES
    from optsched.guarantees.speed import SPEED_THEOREMS
    from optsched.policies import POLICIES

    registries: tuple[Registry[Any], ...] = (GUARANTEES, SPEED_THEOREMS)
    theorems = [theorem for registry in registries for _, theorem in registry.items() if name in theorem.policies]
    proven = ", ".join(theorem.id for theorem in theorems) or "none known"
    return ("knowledge", str(POLICIES.get(name)().knowledge)), ("guarantees", proven)


@dataclass(frozen=True)
class ListedKind:
    """A kind of names.

    Parameters
    ----------
    summary
        A line about the kind.
    registry
        The registry of the names, ``module:NAME``; "" for kinds with ``rows``.
    says
        Thing -> its line in the list.
    sign
        The text before the parameters of a thing whose docstring describes it; ``{}`` stands for its name.
    rows
        Makes (name, line) of a kind whose things are in several registries or in none.
    about
        (thing, line) -> its entry; for a kind with ``rows`` (name, line) -> entry.
    facts
        Name -> (heading, fact) that the list shows in addition to its line.
    """

    summary: str
    registry: str = ""
    says: Callable[[Any], str] = attrgetter("summary")
    sign: str = ""
    rows: Callable[[], list[tuple[str, str]]] | None = None
    about: Callable[[Any, str], Entry] | None = None
    facts: Callable[[str], tuple[tuple[str, str], ...]] = lambda _: ()

    @property
    def known(self) -> Registry[Any]:
        """The registry; its package is imported."""
        module, _, name = self.registry.partition(":")
        registry: Registry[Any] = getattr(import_module(f"optsched.{module}"), name)
        return registry

    def lines(self) -> list[tuple[str, str]]:
        """Return (name, line) of every thing."""
        return self.rows() if self.rows else [(name, self.says(thing)) for name, thing in self.known.items()]


KINDS = {
    "policies": ListedKind(
        "online policies, for -p", "policies:POLICIES", with_defaults, "-p {}:", facts=_facts_of_policy
    ),
    "placements": ListedKind(
        "placements of gangs on GPUs, for -p POLICY+PLACEMENT",
        "policies.placements:PLACEMENTS",
        with_defaults,
        "-p POLICY+{}:",
    ),
    "predictors": ListedKind(
        "predictors of job lengths, for -p POLICY:predictor=NAME",
        "policies.predictors:PREDICTORS",
        with_defaults,
        "predictor={}/",
    ),
    "models": ListedKind("exact methods, for solve --model", rows=_models, about=_of_model),
    "bounds": ListedKind("certified lower bounds", rows=_bounds),
    "guarantees": ListedKind("theorems that are checked on runs", rows=_guarantees, about=_of_guarantee),
    "families": ListedKind(
        "families of instances with a large ratio, for ratio",
        "guarantees.family:FAMILIES",
        lambda family: with_parameters(_family(family), family.parameters),
        about=_of_family,
    ),
    "lower-bounds": ListedKind(
        "ratios that no online algorithm of a kind can beat",
        "guarantees.guarantee:LOWER_BOUNDS",
        lambda theorem: f"{theorem.statement} ({theorem.source})",
    ),
    "objectives": ListedKind("objectives, for --objective", "problem.objectives:OBJECTIVES", attrgetter("graham")),
    "instances": ListedKind("shipped instances; each name is a SOURCE", rows=_instances),
    "suites": ListedKind("suites of instances, for ratio", rows=_suites),
    "recipes": ListedKind(
        "generators of instances, for generate", "io.traces.generate:RECIPES", _recipe, about=_of_recipe
    ),
    "dialects": ListedKind(
        "formats of traces, for a SOURCE DIALECT:PATH", "io.traces.dialect:DIALECTS", about=_of_dialect
    ),
    "devices": ListedKind(
        "GPU types with a known peak speed, used if a table lacks a rate", "speeds.throughput_sources:DEVICES", str
    ),
    "spaces": ListedKind(
        "kinds of instances that attack searches",
        "adversary.space:SPACES",
        with_defaults,
        "optsched attack POLICY --space {}:",
    ),
    "methods": ListedKind("search methods of attack", "adversary.attack_method:METHODS", about=_of_method),
    "studies": ListedKind("experiments of papers, for reproduce", "studies.study_file:STUDIES"),
    "measures": ListedKind(
        "measures of sweeps and studies, for measure = NAME",
        "sweeps.measurement:MEASUREMENTS",
        lambda measurement: ", ".join(measurement.measures),
    ),
}
