"""``list``: the names of everything registered, each with a line on what it is; with a name, all that is known of it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import Annotated, Any

from typer import Context

from optsched.cli.options import AsJson, argument, names
from optsched.cli.output import answer, print_json, write
from optsched.registry import Registry, known_name, legal_of, parameters_of


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0].replace("``", "")


def _with_defaults(thing: Any) -> str:
    return _with_parameters(_first_line(thing), parameters_of(thing))


def _with_parameters(text: str, parameters: Mapping[str, Any]) -> str:
    shown = ", ".join(f"{key}={_shown(value)}" for key, value in parameters.items())
    return f"{text} [{shown}]" if shown else text


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else "-" if value is None else str(value)


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
            # "The method cp-sat: OR-Tools' ..." says its name once more than a table of names needs
            own = _first_line(inspect.getmodule(method.run)).removeprefix(f"The method {name}: ").rstrip(".")
            kind = "exact" if method.exact else "schedule"
            others[name] = f"{method.statement or own}; {kind}, class {method.schedule_class}"
    programs = {
        name: _with_parameters(f"{p.notation}; {p.value}, class {p.schedule_class}", parameters_of(p.data))
        for name, p in PROGRAMS.items()
        if name not in others
    }
    return sorted((rows | others | programs).items())


def _bounds() -> list[tuple[str, str]]:
    from optsched.bounds import BOUNDS, lp_dual

    return sorted([*((name, each.statement) for name, each in BOUNDS.items()), (lp_dual.KIND, lp_dual.STATEMENT)])


def _guarantees() -> list[tuple[str, str]]:
    from optsched.guarantees.describe import theorems
    from optsched.guarantees.judge import MethodTheorem

    rows = []
    for name, each in theorems().items():
        of = f"method: {each.method}" if isinstance(each, MethodTheorem) else f"policies: {', '.join(each.policies)}"
        rows.append((name, f"{each.statement} ({each.source}); {of}; on {each.objective}"))
    return sorted(rows)


def _suites() -> list[tuple[str, str]]:
    from optsched.guarantees.suites import beside, suites

    return [(name, suite.summary) for name, suite in (suites() | beside()).items()]


def _instances() -> list[tuple[str, str]]:
    from optsched.io.index import entries

    return [(each.name, f"{each.problem}, {each.objective}: {each.known}") for each in entries()]


@dataclass(frozen=True)
class ShownParameter:
    """A parameter that text can set: its default as written, and what it means, where that is said."""

    name: str
    default: str
    meaning: str = ""


@dataclass(frozen=True)
class Entry:
    """One thing: its line in the list, its parameters, how they are ``written``, and all that it says ``about`` itself.

    ``facts``: what else is known of it, each with its heading.
    """

    name: str
    text: str
    parameters: tuple[ShownParameter, ...] = ()
    written: str = ""
    about: str = ""
    facts: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As in ``list KIND NAME --json``."""
        parts = {"parameters": [asdict(each) for each in self.parameters], "facts": dict(self.facts)}
        return {"name": self.name, "text": self.text, **parts, "about": self.about}


def _of_model(name: str, text: str) -> Entry:
    from optsched.models import FORMULATIONS
    from optsched.models.program import PROGRAMS
    from optsched.problem.instance import Instance, Job

    parameters: tuple[ShownParameter, ...] = ()
    if name in PROGRAMS:
        data = PROGRAMS.get(name).data
        parameters = _shown_parameters(data, partial(data, Instance([Job("a", duration=1)], "1x1")))
    known: Registry[Any] = FORMULATIONS if name in FORMULATIONS else PROGRAMS
    facts: tuple[tuple[str, str], ...] = ()
    if name in known:
        of = known.get(name)
        end = ', model.end("ID") its completion time' if getattr(of, "end", None) else ""
        facts = mathematics(inspect.getdoc(inspect.getmodule(of.build)) or "")
        facts += (("in Python", f'model = osd.formulate(SOURCE, "{name}"); model.job("ID") is a job\'s number{end}'),)
    return Entry(name, text, parameters, _written(f"optsched solve SOURCE --model {name}:", parameters), facts=facts)


def _of_guarantee(name: str, _: str) -> Entry:
    from optsched.guarantees.describe import facts_of, theorems

    theorem = theorems()[name]
    return Entry(name, theorem.statement, about=theorem.proof, facts=facts_of(theorem))


def _recipe(recipe: Any) -> str:
    return _with_parameters(recipe.summary, {key: each.default for key, each in recipe.parameters.items()})


def _of_recipe(recipe: Any, _: str) -> Entry:
    meant = ((key, _shown(each.default), f"{each.meaning} ({each.legal})") for key, each in recipe.parameters.items())
    written = f"optsched generate {recipe.name} --set {next(iter(recipe.parameters), 'key')}=... -o FILE"
    return Entry(recipe.name, recipe.summary, tuple(ShownParameter(*each) for each in meant), written)


def _family(family: Any) -> str:
    return f"{family.summary}; {family.policy} on {family.objective}: {family.limit}"


def _of_family(family: Any, _: str) -> Entry:
    parameters = _shown_parameters(family.make)
    written = f"optsched ratio {family.name}:{family.size}={parameters[0].default} -p {family.policy}"
    return Entry(family.name, _family(family), parameters, written, _paragraphs(inspect.getdoc(family.make) or ""))


def _of_dialect(dialect: Any, text: str) -> Entry:
    columns = "--columns FIELD=COLUMN,..." if dialect.takes_columns else ", ".join(dialect.header)
    cluster = "as the file says, unless --cluster does" if dialect.brings_cluster else "--cluster NODESxGPUS"
    facts = (("columns", columns), ("fragment", dialect.fragment), ("cluster", cluster))
    return Entry(dialect.name, text, facts=tuple(each for each in facts if each[1]))


def _of_method(method: Any, text: str) -> Entry:
    from optsched.adversary.attack_method import TOLERANCE_LEGAL

    size = "an integer >= 1; what the kind of instances says goes first"
    parameters = tuple(ShownParameter(key, _shown(value), size) for key, value in method.usual.items())
    parameters += (ShownParameter("tolerance", _shown(method.tolerance), TOLERANCE_LEGAL),)
    return Entry(method.name, text, parameters, f"optsched attack POLICY --method {method.name}")


def _facts_of_policy(name: str) -> tuple[tuple[str, str], ...]:
    """What it knows (of some that depends on the parameters: here, with the usual ones), and the theorems about it."""
    from optsched.guarantees.guarantee import GUARANTEES
    from optsched.guarantees.speed import SPEED_THEOREMS
    from optsched.policies import POLICIES

    theorems = [each for known in (GUARANTEES, SPEED_THEOREMS) for _, each in known.items() if name in each.policies]
    proven = ", ".join(each.id for each in theorems) or "none known"
    return ("knowledge", str(POLICIES.get(name)().knowledge)), ("guarantees", proven)


@dataclass(frozen=True)
class ListedKind:
    """Names of one kind: a line about them; their registry, ``module:NAME``, and what a list ``says`` of a thing there.

    ``sign``: what stands before the parameters of a thing whose docstring is all about it; of others ``about`` knows more,
    of a thing, or of the name of what has ``rows``: things in several registries or in none. ``facts``: what the list says
    of each name beside its text, with headings.
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
        found: Registry[Any] = getattr(import_module(f"optsched.{module}"), name)
        return found

    def lines(self) -> list[tuple[str, str]]:
        """(name, one line) of everything."""
        return self.rows() if self.rows else [(name, self.says(thing)) for name, thing in self.known.items()]


KINDS = {
    "policies": ListedKind(
        "online policies, for -p", "policies:POLICIES", _with_defaults, "-p {}:", facts=_facts_of_policy
    ),
    "placements": ListedKind(
        "which GPUs a gang gets, for -p POLICY+PLACEMENT",
        "policies.placements:PLACEMENTS",
        _with_defaults,
        "-p POLICY+{}:",
    ),
    "predictors": ListedKind(
        "what policies believe of lengths, for -p POLICY:predictor=NAME",
        "policies.predictors:PREDICTORS",
        _with_defaults,
        "predictor={}/",
    ),
    "models": ListedKind("exact methods, for solve --model", rows=_models, about=_of_model),
    "bounds": ListedKind("certified lower bounds", rows=_bounds),
    "guarantees": ListedKind("theorems that runs are held against", rows=_guarantees, about=_of_guarantee),
    "families": ListedKind(
        "instances on which a policy loses much, for ratio",
        "guarantees.family:FAMILIES",
        lambda each: _with_parameters(_family(each), each.parameters),
        about=_of_family,
    ),
    "lower-bounds": ListedKind(
        "what no online algorithm can do",
        "guarantees.guarantee:LOWER_BOUNDS",
        lambda each: f"{each.statement} ({each.source})",
    ),
    "objectives": ListedKind(
        "what is minimised, for --objective", "problem.objectives:OBJECTIVES", attrgetter("graham")
    ),
    "instances": ListedKind("instances that come with optsched, a SOURCE each", rows=_instances),
    "suites": ListedKind("sets of instances, for ratio", rows=_suites),
    "recipes": ListedKind(
        "generators of instances, for generate", "io.traces.generate:RECIPES", _recipe, about=_of_recipe
    ),
    "dialects": ListedKind(
        "traces that are read as they are, for a SOURCE DIALECT:PATH", "io.traces.dialect:DIALECTS", about=_of_dialect
    ),
    "devices": ListedKind(
        "GPU types whose peak speed is known, for rates that no table has", "speeds.throughput_sources:DEVICES", str
    ),
    "spaces": ListedKind(
        "kinds of instances among which attack looks for bad ones",
        "adversary.space:SPACES",
        _with_defaults,
        "optsched attack POLICY --space {}:",
    ),
    "methods": ListedKind(
        "ways in which attack looks for the worst one", "adversary.attack_method:METHODS", about=_of_method
    ),
    "studies": ListedKind("experiments that can be run again, for reproduce", "studies.study_file:STUDIES"),
    "measures": ListedKind(
        "what cells of a sweep and studies measure, for measure = NAME",
        "sweeps.measurement:MEASUREMENTS",
        lambda each: ", ".join(each.measures),
    ),
}


def entry(kind: str, name: str) -> Entry:
    """All about one name of a kind, in any case; `InputError` with near matches for an unknown kind or name."""
    kind = kind_of(kind)
    texts, listed = dict(catalogue(kind)), KINDS[kind]
    singular = kind.removesuffix("ies") + "y" if kind.endswith("ies") else kind.removesuffix("s")
    name = known_name(name, texts, singular, f"there is no {singular} of this name", value=name)
    if listed.about is not None:
        return listed.about(name if listed.rows else listed.known.get(name), texts[name])
    if not listed.sign:
        return Entry(name, texts[name])
    thing = listed.known.get(name)
    _, _, about = (inspect.getdoc(thing) or "").partition("\n")
    parameters = _shown_parameters(thing, _runs(thing) if kind == "policies" else None)
    written = _written(listed.sign.format(name), parameters)
    return Entry(name, _first_line(thing), parameters, written, _paragraphs(about), listed.facts(name))


_SECTION = re.compile(r"(Sets|Data|Variables|Optimum|Size|Reference)\b[^:]*: ")
_ROW = re.compile(r"(.*\S)\s+(\(\d+\))(?:\s+(\w+(?:, \w+)*))?")


def mathematics(docstring: str) -> tuple[tuple[str, str], ...]:
    """Sets, data, variables, objective, constraints by number and name, ... of a formulation, from its module's docstring.

    A section begins a line with its name and ends with a blank line or the next one; the program is indented, and a row of
    it ends with its number and the name that it has in the model (see the files of `optsched.models`).
    """
    sections: dict[str, list[str]] = {}
    rows: dict[str, list[str]] = {}
    head, open_row = "", list[str]()
    for line in docstring.splitlines():
        begin = _SECTION.match(line)
        if begin or not line.strip():
            head = begin[1].lower() if begin else ""
        if head:
            sections.setdefault(head, []).append(line.removeprefix(begin[0]) if begin else line)
        elif line.startswith("    ") and "variables" in sections:
            ended = _ROW.fullmatch(line.strip())
            open_row.append(re.sub(r"\s{2,}", "   ", (ended[1] if ended else line).strip().removeprefix("s.t. ")))
            if ended:
                name = ended[3] or ("objective" if ended[2] == "(0)" else "")
                rows[f"{ended[2]} {name}".strip()] = open_row
                open_row = []
    parts = {key: sections.pop(key) for key in ("sets", "data", "variables") if key in sections} | rows | sections
    return tuple((key, " ".join(text).replace("``", "").strip()) for key, text in parts.items())


def _shown_parameters(maker: Any, tried: Callable[..., Any] | None = None) -> tuple[ShownParameter, ...]:
    known = parameters_of(maker).items()
    return tuple(ShownParameter(key, _shown(value), legal_of(maker, key, tried or maker)) for key, value in known)


def _runs(policy: Callable[..., Any]) -> Callable[..., Any]:
    # Some parameters are judged when the policy runs: here, without any job.
    from optsched.policies.simulate import simulate
    from optsched.problem.instance import Instance

    return lambda **values: simulate(Instance([], "1x1"), policy(**values))


def _written(sign: str, parameters: tuple[ShownParameter, ...]) -> str:
    return sign + ",".join(f"{each.name}={each.default}" for each in parameters) if parameters else ""


def _paragraphs(text: str) -> str:
    # each on one line: how wide they are is the reader's affair
    return "\n\n".join(" ".join(part.split()) for part in text.strip().replace("``", "").split("\n\n"))


def catalogue(kind: str) -> list[tuple[str, str]]:
    """(name, one line) of everything of a kind; `InputError` with near matches for an unknown kind."""
    return KINDS[kind_of(kind)].lines()


def kind_of(kind: str) -> str:
    """The kind that is meant, in any case, also by one of its things: ``policy``; `InputError` for an unknown one."""
    lower = kind.lower()
    plural = f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}s"
    return known_name(plural if plural in KINDS else kind, KINDS, "kind", "unknown kind", field="list", value=kind)


# --- the command --------------------------------------------------------------------------------------------------------

EXAMPLES = """
  optsched list policies             what may follow -p
  optsched list policies a-srpt      its parameters, and what it promises
  optsched list recipes philly-like  what may follow --set
"""


def _kinds(incomplete: str) -> list[str]:
    return [kind for kind in KINDS if kind.startswith(incomplete)]


def _names(ctx: Context, incomplete: str) -> list[str]:
    kind = ctx.params.get("kind")
    known = names(kind) if kind in ("policies", "placements", "recipes", "dialects", "instances") else []
    return [name for name in known if name.startswith(incomplete)]


def list_names(
    kind: Annotated[str | None, argument("KIND", ", ".join(KINDS), _kinds)] = None,
    name: Annotated[str | None, argument("NAME", "one of them: all about it", _names)] = None,
    as_json: AsJson = False,
) -> None:
    """Names that can be used, each with a line on what it is.

    \b
    optsched list policies
    optsched list recipes philly-like
    """
    if kind is None:
        if as_json:
            print_json({"kinds": [{"name": kind, "text": each.summary} for kind, each in KINDS.items()]})
            return
        wide = max(map(len, KINDS))
        every = "\n".join(f"  {kind:<{wide}}  {each.summary}" for kind, each in KINDS.items())
        write(f"Usage: optsched list KIND [NAME]\n\nKinds:\n{every}\n\nExamples:{EXAMPLES}")
        return
    kind = kind_of(kind)
    if name is not None:
        found = entry(kind, name)
        answer(as_json, lambda: {kind: [found.to_json()]}, lambda tables: tables.entry_view(found))
        return
    facts = KINDS[kind].facts
    listed = [Entry(name, text, facts=facts(name)) for name, text in catalogue(kind)]
    lines = [{"name": each.name, "text": each.text, **dict(each.facts)} for each in listed]
    answer(as_json, lambda: {kind: lines}, lambda tables: tables.names_view(kind, listed))
