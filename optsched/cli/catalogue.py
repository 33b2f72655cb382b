"""The catalogue: every registered name by kind, with a line on each, and the entry of one name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optsched.cli.catalogue_entry import Entry, description, first_line, paragraphs, shown_parameters, written_with
from optsched.cli.listed_kinds import KINDS
from optsched.registry import known_name


def entry(kind: str, name: str) -> Entry:
    """Return the entry of a name.

    Parameters
    ----------
    kind
        The kind, in any case (see `kind_of`).
    name
        The name, in any case.

    Raises
    ------
    InputError
        The kind or the name is unknown; the message has near matches.
    """
    kind = kind_of(kind)
    texts, listed = dict(catalogue(kind)), KINDS[kind]
    singular = kind.removesuffix("ies") + "y" if kind.endswith("ies") else kind.removesuffix("s")
    name = known_name(name, texts, singular, f"there is no {singular} of this name", value=name)
    if listed.about is not None:
        return listed.about(name if listed.rows else listed.known.get(name), texts[name])
    if not listed.sign:
        return Entry(name, texts[name])
    thing = listed.known.get(name)
    parameters = shown_parameters(thing, _runs(thing) if kind == "policies" else None)
    written = written_with(listed.sign.format(name), parameters)
    return Entry(name, first_line(thing), parameters, written, paragraphs(description(thing)), listed.facts(name))


def _runs(policy: Callable[..., Any]) -> Callable[..., Any]:
    # Some parameters are checked when the policy runs: here it runs without any job.
    from optsched.policies.simulate import simulate
    from optsched.problem.instance import Instance

    return lambda **values: simulate(Instance([], "1x1"), policy(**values))


def catalogue(kind: str) -> list[tuple[str, str]]:
    """Return (name, line) of every name of a kind.

    Parameters
    ----------
    kind
        The kind, in any case (see `kind_of`).

    Raises
    ------
    InputError
        The kind is unknown; the message has near matches.
    """
    return KINDS[kind_of(kind)].lines()


def kind_of(kind: str) -> str:
    """Return the kind that a word names, in any case; the singular is accepted, too (``policy``).

    Parameters
    ----------
    kind
        The word.

    Raises
    ------
    InputError
        The kind is unknown; the message has near matches.
    """
    lower = kind.lower()
    plural = f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}s"
    return known_name(plural if plural in KINDS else kind, KINDS, "kind", "unknown kind", field="list", value=kind)
