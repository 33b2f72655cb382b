"""The modules of the package and what they import, read once a process; tests of sources run in one process for that."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "optsched"
one_process = pytest.mark.xdist_group("sources")


@cache
def files() -> list[Path]:
    # rglob does not follow the link to models/
    return [*ROOT.rglob("*.py"), *(ROOT / "models").glob("*.py")]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


@cache
def imported(path: Path) -> list[str]:
    """Return the dotted names that a file imports anywhere: by ``importlib``, too, and under ``TYPE_CHECKING``."""
    found: list[str] = []

    def visit(node: ast.AST) -> None:
        match node:
            case ast.Import():
                found.extend(each.name for each in node.names)
            case ast.ImportFrom(module=str(module), level=0):
                found.extend(f"{module}.{each.name}" for each in node.names)
            case ast.ImportFrom(module=str(module), level=1):
                here = ".".join(path.relative_to(ROOT.parent).parent.parts)
                found.extend(f"{here}.{module}.{each.name}" for each in node.names)
            case ast.Call(func=ast.Attribute()) if _root(node.func) == "importlib":
                found.extend(
                    each.value for each in node.args if isinstance(each, ast.Constant) and type(each.value) is str
                )
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr_context | ast.operator | ast.cmpop):
                visit(child)

    visit(tree(path))
    return found
