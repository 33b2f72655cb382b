"""``list``: names that can be used; with a name, all that is known of it."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Context

from optsched.cli.catalogue import KINDS, catalogue, entry
from optsched.cli.options import AsJson, names
from optsched.cli.output import print_json, show, write

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
    kind: Annotated[
        str | None, Argument(metavar="KIND", help=", ".join(KINDS), show_default=False, autocompletion=_kinds)
    ] = None,
    name: Annotated[
        str | None,
        Argument(metavar="NAME", help="one of them: all about it", show_default=False, autocompletion=_names),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Names that can be used, each with a line on what it is.

    optsched list policies; optsched list recipes philly-like
    """
    if kind is None:
        if as_json:
            print_json({"kinds": [{"name": kind, "text": each.summary} for kind, each in KINDS.items()]})
            return
        wide = max(map(len, KINDS))
        every = "\n".join(f"  {kind:<{wide}}  {each.summary}" for kind, each in KINDS.items())
        write(f"Usage: optsched list KIND [NAME]\n\nKinds:\n{every}\n\nExamples:{EXAMPLES}")
        return
    found = None if name is None else entry(kind, name)
    rows = catalogue(kind) if found is None else []
    if as_json:
        lines = [{"name": name, "text": text} for name, text in rows]
        print_json({kind: lines if found is None else [found.to_json()]})
        return
    from optsched.cli.tables import entry_view, names_view

    show(names_view(kind, rows) if found is None else entry_view(found))
