"""``optsched list``: the names that commands accept, with a line on each, or all about one name."""

from __future__ import annotations

from typing import Annotated

from typer import Context

from optsched.cli.catalogue import catalogue, entry, kind_of
from optsched.cli.catalogue_entry import Entry
from optsched.cli.completion import names
from optsched.cli.listed_kinds import KINDS
from optsched.cli.options import AsJson, argument
from optsched.cli.output import answer, print_json, write

EXAMPLES = """
  optsched list policies             names for -p
  optsched list policies a-srpt      the parameters of a policy, and its guarantees
  optsched list recipes philly-like  parameters for --set
"""


def _kinds(incomplete: str) -> list[str]:
    return [kind for kind in KINDS if kind.startswith(incomplete)]


def _names(ctx: Context, incomplete: str) -> list[str]:
    kind = ctx.params.get("kind")
    known = names(kind) if kind in ("policies", "placements", "recipes", "dialects", "instances") else []
    return [name for name in known if name.startswith(incomplete)]


def list_names(
    kind: Annotated[str | None, argument("KIND", ", ".join(KINDS), _kinds)] = None,
    name: Annotated[str | None, argument("NAME", "a name of this kind: show all about it", _names)] = None,
    as_json: AsJson = False,
) -> None:
    """List the names that commands accept, with a line on each.

    \b
    optsched list policies
    optsched list recipes philly-like

    \f
    Parameters
    ----------
    kind
        Policies, placements, predictors, models, bounds, guarantees, families, lower-bounds, objectives,
        instances, suites, recipes, dialects, devices, spaces, methods, studies, measures.
    name
        A name of this kind: show all about it.
    as_json
        Print exactly one JSON document to stdout.
    """
    if kind is None:
        if as_json:
            print_json({"kinds": [{"name": kind, "text": listed.summary} for kind, listed in KINDS.items()]})
            return
        wide = max(map(len, KINDS))
        lines = "\n".join(f"  {kind:<{wide}}  {listed.summary}" for kind, listed in KINDS.items())
        write(f"Usage: optsched list KIND [NAME]\n\nKinds:\n{lines}\n\nExamples:{EXAMPLES}")
        return
    kind = kind_of(kind)
    from optsched.cli.text_columns import entry_view, names_view

    if name is not None:
        shown = entry(kind, name)
        answer(as_json, lambda: {kind: [shown.to_json()]}, lambda: entry_view(shown))
        return
    facts = KINDS[kind].facts
    entries = [Entry(name, text, facts=facts(name)) for name, text in catalogue(kind)]
    rows = [{"name": shown.name, "text": shown.text, **dict(shown.facts)} for shown in entries]
    answer(as_json, lambda: {kind: rows}, lambda: names_view(kind, entries))
