"""Names for shell completion, without importing what bears them: that takes seconds, and a key press must not.

They are read from the lines of the source that register them; a test compares them with the registries.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
# kind: (folder, what the line of a registration looks like)
_FOUND = {
    "policies": (
        "policies",
        re.compile(r'^@(?:POLICIES\.register|queue_order|task_order|_predicted)\("([^"]+)"', re.MULTILINE),
    ),
    "placements": ("policies/placements", re.compile(r'^@PLACEMENTS\.register\("([^"]+)"\)', re.MULTILINE)),
    "recipes": ("io/traces/recipes", re.compile(r'^@recipe\(\s*"([^"]+)"', re.MULTILINE)),
    "dialects": ("io/traces", re.compile(r'^@dialect\(\s*"([^"]+)"', re.MULTILINE)),
}


def names(kind: str) -> list[str]:
    """All names of a kind, sorted: policies, placements, recipes, dialects, instances, library-suites."""
    if kind in ("instances", "library-suites"):
        return sorted({row["name" if kind == "instances" else "suite"] for row in _index()})
    folder, line = _FOUND[kind]
    files = (_PACKAGE / folder).rglob("*.py")
    return sorted({name for file in files for name in line.findall(file.read_text(encoding="utf-8"))})


def _index() -> list[dict[str, str]]:
    import csv

    for folder in (_PACKAGE / "_instances", _PACKAGE.parent / "instances"):
        index = folder / "index.csv"
        if index.is_file():
            with index.open(encoding="utf-8", newline="") as lines:
                return list(csv.DictReader(lines))
    return []


def completing(*kinds: str) -> Callable[[str], list[str]]:
    """What typer asks for the names that begin as the user has."""

    def complete(incomplete: str) -> list[str]:
        return [name for kind in kinds for name in names(kind) if name.startswith(incomplete)]

    return complete


def complete_policy(incomplete: str) -> list[str]:
    """A policy, or behind ``+`` a placement."""
    head, plus, tail = incomplete.rpartition("+")
    found = names("placements" if plus else "policies")
    return [f"{head}{plus}{name}" for name in found if name.startswith(tail)]
