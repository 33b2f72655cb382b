"""The generated part of docs/layers.md: the layers of `test_layers.LAYERS` and the imports that the modules really have."""

from __future__ import annotations

import ast
import re
import textwrap
from collections import defaultdict
from pathlib import Path

import test_layers
from sources import ROOT, files, tree
from test_layers import LAYER, LAYERS

from pages.page import ROOT as PROJECT

PAGE = PROJECT / "docs" / "layers.md"
BEGIN, END = "<!-- layers: make pages writes this part -->", "<!-- layers: end -->"
WIDTH = 110  # columns of the drawing
FOLDER = "classes."  # packages in the folders of classes have the layer of the package that they extend
SHOWN = {name: level for name, level in LAYER.items() if not name.startswith(FOLDER)}


def rewritten(text: str) -> str:
    """Return the text of the page with its generated part up to date."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{drawing()}\n\n{table()}\n\n{END}{after}"


def drawing() -> str:
    """Return a block with one layer a line, the highest first."""
    lines = []
    for level in reversed(range(len(LAYERS))):
        names = "  ".join(map(shown, sorted(LAYERS[level] & SHOWN.keys())))
        lines += textwrap.wrap(names, WIDTH, initial_indent=f"{level:2}  ", subsequent_indent="    ")
    return "\n".join(["```text", *lines, "```"])


def table() -> str:
    """Return a table with one package a row: its layer, its contents, and the packages that it imports."""
    used = imports()
    rows = ["| layer | package | contents | imports |", "|---|---|---|---|"]
    for name in sorted(SHOWN, key=lambda name: (-LAYER[name], name)):
        below = ", ".join(f"`{shown(other)}`" for other in sorted(used[name], key=lambda other: (-LAYER[other], other)))
        rows.append(f"| {LAYER[name]} | `{shown(name)}` | {contents(name)} | {below or '-'} |")
    return "\n".join(rows)


def imports() -> dict[str, set[str]]:
    """Return the packages that each package imports."""
    used: dict[str, set[str]] = defaultdict(set)
    for path in files():
        name = test_layers.package(path)
        if name not in SHOWN:
            continue
        targets = [parts for parts in test_layers.within(path) if parts != ["__version__"]]
        used[name] |= {test_layers.package_of(parts) for parts in targets} & SHOWN.keys() - {name}
    return used


def place(name: str) -> Path:
    """Return the file whose docstring describes a package or a module."""
    folder = ROOT / name.replace(".", "/")
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def shown(name: str) -> str:
    """Return the name as a path: ``policies/placements/`` for a package, ``errors`` for a module."""
    return name.replace(".", "/") + "/" * place(name).name.startswith("__init__") * (name != "__init__")


def contents(name: str) -> str:
    """Return the first sentence of the docstring."""
    text = " ".join((ast.get_docstring(tree(place(name))) or "").partition("\n\n")[0].split())
    sentence = re.split(r"\.(?:\s+[A-Z`]|$)|:$", text, maxsplit=1)[0].replace("``", "`")
    return re.sub(r"([|*<])", r"\\\1", sentence)
