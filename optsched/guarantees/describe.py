"""Theorems in words, for ``list guarantees NAME`` and for the page of all theorems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optsched.classes import CLASSES, PREEMPTIVE
from optsched.guarantees.family import FAMILIES, Family
from optsched.guarantees.guarantee import GUARANTEES, LOWER_BOUNDS, Guarantee, TightFamily
from optsched.guarantees.judge import METHOD_THEOREMS, MethodTheorem
from optsched.guarantees.speed import SPEED_THEOREMS, SpeedTheorem
from optsched.registry import Registry

STATUS = {
    "proved": "proved here",
    "published": "published; the proof is not repeated here",
    "recollected": "recollected: the source was not at hand",
}
AT_SPEED_1 = "the best schedule on machines of speed 1, which may preempt"


Theorem = Guarantee | SpeedTheorem | MethodTheorem


def theorems() -> dict[str, Theorem]:
    """Return the theorems that runs and solutions are checked against, by name."""
    return {**dict(GUARANTEES.items()), **dict(SPEED_THEOREMS.items()), **dict(METHOD_THEOREMS.items())}


def facts_of(theorem: Theorem) -> tuple[tuple[str, str], ...]:
    """Return (heading, fact) of a theorem in order, without its statement and its proof.

    Parameters
    ----------
    theorem
        The theorem.
    """
    if isinstance(theorem, MethodTheorem):
        against, about = CLASSES.get(PREEMPTIVE).optimum, ("method", f"optsched solve ... --model {theorem.method}")
    else:
        against, about = AT_SPEED_1, ("policies", ", ".join(theorem.policies))
    if isinstance(theorem, Guarantee):
        against = CLASSES.get(theorem.schedule_class).optimum
    tight = theorem.tight if isinstance(theorem, Guarantee) else None
    return (
        ("problem", theorem.notation),
        ("objective", theorem.objective),
        ("against", against),
        about,
        ("knowledge", theorem.knowledge),
        ("status", STATUS[theorem.status]),
        ("source", theorem.source),
        *([] if tight is None else [("tight", tight.text)]),
        *([] if tight is None or tight.family is None else [(_reached(tight), try_of(tight.family))]),
    )


def _reached(tight: TightFamily) -> str:
    return "exactly" if tight.exact else "in the limit"


def try_of(family: Family) -> str:
    """Return the command that runs the policy of a family on its member of the default size.

    Parameters
    ----------
    family
        The family.
    """
    return f"optsched ratio {family.of_size(family.parameters[family.size]).text} -p {family.policy}"


def page(text: Callable[[str], str] | None = None) -> str:
    """Return the page of all theorems and all families, in Markdown.

    Parameters
    ----------
    text
        Function that writes a sentence in Markdown. Default: `cell`.
    """
    write = cell if text is None else text
    parts = [_HEAD]
    for name, theorem in GUARANTEES.items():
        family = theorem.tight.family
        facts = [(head, write(fact)) for head, fact in facts_of(theorem) if head != _reached(theorem.tight)]
        if family is not None:
            facts.append((_reached(theorem.tight), f"[`{family.name}`](#{family.name})"))
        rows = "\n".join(f"| {head} | {fact} |" for head, fact in facts)
        parts.append(f"## {name}\n\n{write(theorem.statement)}\n\n| | |\n|---|---|\n{rows}\n\n{write(theorem.proof)}\n")
    parts.append("## Families of bad instances\n\n| family | members | on them |\n|---|---|---|")
    for name, family in FAMILIES.items():
        loses = f"`{family.policy}`, {family.objective}: {write(family.limit)}"
        parts.append(f"| [`{name}`](#{name}) | {write(family.summary)} | {loses} |")
    parts.append("")
    for name, family in FAMILIES.items():
        about = " ".join(family.about.replace("``", "`").split())
        parts.append(f"### {name}\n\n{write(about)}\n\n```sh\n{try_of(family)}\n```\n")
    others: dict[str, Registry[Any]] = {
        "What no online algorithm can do": LOWER_BOUNDS,
        "Faster machines": SPEED_THEOREMS,
        "Methods that know everything in advance": METHOD_THEOREMS,
    }
    for heading, entries in others.items():
        parts.append(f"## {heading}\n")
        for name, theorem in entries.items():
            statement = f"{write(theorem.statement)} ({write(theorem.source)}; {STATUS[theorem.status]})"
            parts.append(f"### {name}\n\n{statement}\n\n{write(theorem.proof)}\n")
    return "\n".join(parts)


def cell(text: str) -> str:
    """Return a sentence with all marks of Markdown escaped, also the border of a cell; text in backticks is unchanged.

    Parameters
    ----------
    text
        The sentence.
    """
    marks = str.maketrans({"|": "\\|", "*": "\\*", "_": "\\_", "<": "&lt;"})
    parts = text.split("`")
    return "`".join(part if k % 2 else part.translate(marks) for k, part in enumerate(parts))


_HEAD = """# All theorems, and where they are tight

[README](../README.md) | [theorems that are checked](theorems.md)

This page is written from the registry of guarantees (`make pages`); `optsched list guarantees NAME` prints one of them.
**Proved**: the proof is here or in the module of the theorem; **published**: the proof is in the source;
**recollected**: the source was not at hand, and the theorem is only checked on runs.
"""
