"""Notebooks as they are stored: public names only, one question, no outputs. (`make docs` runs them.)"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import optsched as osd

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NAMESPACES = {name: importlib.import_module(f"optsched.{name}") for name in osd._NAMESPACES}


def cells(path: Path, kind: str) -> list[Any]:
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == kind]


def code(path: Path) -> ast.Module:
    return ast.parse("\n".join("".join(cell["source"]) for cell in cells(path, "code")))


def foreign_imports(tree: ast.Module) -> Iterator[str]:
    """Imports of the package that are not the one that everybody writes, and imports by its name as text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (ast.unparse(node) for each in node.names if each.name.startswith("optsched."))
            yield from (ast.unparse(node) for each in node.names if each.name == "optsched" and each.asname != "osd")
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "optsched":
            yield ast.unparse(node)
        if isinstance(node, ast.Constant) and str(node.value).startswith("optsched."):
            yield ast.unparse(node)


def dotted(node: ast.expr) -> list[str]:
    """The names of ``osd.a.b``: [a, b]; [] of anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names, node = [node.attr, *names], node.value
    return names if isinstance(node, ast.Name) and node.id == "osd" else []


def private_names(tree: ast.Module) -> Iterator[str]:
    """Names of ``osd``, and of its namespaces, that their ``__all__`` does not hold, and ``_private`` ones of anything."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            first, *rest = [*dotted(node), "", ""][:2] if dotted(node) else ["", ""]
            known = first in osd.__all__ and (first not in NAMESPACES or rest[0] in ("", *NAMESPACES[first].__all__))
            if (first and not known) or node.attr.startswith("_"):
                yield ast.unparse(node)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_uses_public_names_only(path: Path) -> None:
    tree = code(path)
    assert [*foreign_imports(tree), *private_names(tree)] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs_and_asks_one_question(path: Path) -> None:
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells(path, "code"))
    heads = [line for cell in cells(path, "markdown") for line in cell["source"] if line.startswith("# ")]
    assert len(heads) == 1
    assert heads[0].strip().endswith("?"), "the title is its question"
    assert sum("osd.plot." in "".join(cell["source"]) for cell in cells(path, "code")) >= 3, "it shows what it found"


@pytest.mark.parametrize(
    "line",
    [
        "from optsched.bounds import bound",
        "import optsched.bounds as osd",
        "import optsched",
        "importlib.import_module('optsched.bounds')",
        "osd.bounds.KINDS",
        "osd.speeds.duration.paces",
        "osd.plot.canvas",
        "run._made",
    ],
)
def test_what_a_notebook_may_not_write_is_found(line: str) -> None:
    assert [*foreign_imports(ast.parse(line)), *private_names(ast.parse(line))]


def test_what_a_notebook_may_write_passes() -> None:
    tree = ast.parse(
        "import numpy as np\nimport optsched as osd\nosd.plot.gantt(osd.simulate(i, 'fifo')).figure\nosd.plot"
    )
    assert [*foreign_imports(tree), *private_names(tree)] == []


@pytest.mark.parametrize("space", NAMESPACES)
def test_a_namespace_and_each_of_its_names_is_there_and_documented(space: str) -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    assert f"`osd.{space}`" in page
    for name in NAMESPACES[space].__all__:
        thing = getattr(getattr(osd, space), name)
        assert not inspect.ismodule(thing), f"osd.{space}.{name} is a module"
        assert inspect.getdoc(thing) or not callable(thing), f"osd.{space}.{name} says nothing"
