"""Names for shell completion, read from the source lines that register them.

Importing the modules that bear the names takes seconds, which a key press must not. A test compares the names with the
registries.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
# kind: (folder, pattern of the line that registers a name)
_REGISTRATIONS = {
    "policies": (
        "policies",
        re.compile(r'^@(?:POLICIES\.register|queue_order|task_order|_predicted)\("([^"]+)"', re.MULTILINE),
    ),
    "placements": ("policies/placements", re.compile(r'^@PLACEMENTS\.register\("([^"]+)"\)', re.MULTILINE)),
    "recipes": ("io/traces/recipes", re.compile(r'^@recipe\(\s*"([^"]+)"', re.MULTILINE)),
    "dialects": ("io/traces", re.compile(r'^@dialect\(\s*"([^"]+)"', re.MULTILINE)),
}


def names(kind: str) -> list[str]:
    """Return all names of a kind, sorted.

    Parameters
    ----------
    kind
        ``policies``, ``placements``, ``recipes``, ``dialects``, ``instances`` or ``library-suites``.
    """
    if kind in ("instances", "library-suites"):
        return sorted({row["name" if kind == "instances" else "suite"] for row in _index()})
    folder, line = _REGISTRATIONS[kind]
    files = (*(_PACKAGE / folder).rglob("*.py"), *(_PACKAGE / "classes").glob(f"*/{folder}/**/*.py"))
    return sorted({name for file in files for name in line.findall(file.read_text(encoding="utf-8"))})


def _index() -> list[dict[str, str]]:
    for folder in (_PACKAGE / "_instances", _PACKAGE.parent / "instances"):
        index = folder / "index.csv"
        if index.is_file():
            with index.open(encoding="utf-8", newline="") as lines:
                return list(csv.DictReader(lines))
    return []


def completing(*kinds: str) -> Callable[[str], list[str]]:
    """Return the function that typer calls to complete names of these kinds.

    Parameters
    ----------
    *kinds
        As for `names`.
    """

    def complete(incomplete: str) -> list[str]:
        return [name for kind in kinds for name in names(kind) if name.startswith(incomplete)]

    return complete


def complete_policy(incomplete: str) -> list[str]:
    """Complete the name of a policy, or of a placement after ``+``.

    Parameters
    ----------
    incomplete
        The text that the user has typed.
    """
    head, plus, tail = incomplete.rpartition("+")
    known = names("placements" if plus else "policies")
    return [f"{head}{plus}{name}" for name in known if name.startswith(tail)]
