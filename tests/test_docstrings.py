"""Docstrings: numpydoc sections name every parameter, and first lines say what a thing is or does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sources import ROOT, files, one_process, tree

pytestmark = one_process
Function = ast.FunctionDef | ast.AsyncFunctionDef
# A first line that begins with one of these is a question or a fragment.
NOT_FIRST = {"What", "How", "Of", "As", "Where", "Whether", "Who", "That", "Which", "Why", "When", "And", "Or"}
SECTION = re.compile(r"^Parameters\n-{3,}\n(.*?)(?=^\S[^\n]*\n-{3,}\n|\Z)", re.DOTALL | re.MULTILINE)


def documented(docstring: str) -> set[str]:
    """Return the names that the section Parameters explains."""
    section = SECTION.search(docstring)
    lines = section[1].splitlines() if section else []
    heads = [line.split(" : ")[0] for line in lines if line and not line.startswith(" ")]
    return {name.strip().strip("*\\") for head in heads for name in head.split(",")}


def parameters(function: Function) -> set[str]:
    """Return the public parameters of a function."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    names = {argument.arg for argument in every if argument is not None}
    return {name for name in names if name not in ("self", "cls") and not name.startswith("_")}


def is_declared_elsewhere(function: Function) -> bool:
    """Tell an overload or a setter, whose docstring is that of another definition."""
    marks = [ast.unparse(mark) for mark in function.decorator_list]
    return any(mark == "overload" or mark.endswith(".setter") for mark in marks)


def public(nodes: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Yield the public functions and methods of a module, with their names."""
    for node in nodes:
        if isinstance(node, ast.If | ast.Try):
            yield from public(node.body, prefix)
        elif isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
            if isinstance(node, ast.ClassDef):
                yield from public(node.body, f"{prefix}{node.name}.")
            elif not is_declared_elsewhere(node):
                yield f"{prefix}{node.name}", node


def incomplete(source: ast.Module) -> list[str]:
    """Return the public functions whose section Parameters lacks a name, or has one too many."""
    return [
        f"{name}: {sorted(parameters(function) ^ documented(ast.get_docstring(function) or ''))}"
        for name, function in public(source.body)
        if parameters(function) and parameters(function) != documented(ast.get_docstring(function) or "")
    ]


def riddles(source: ast.Module) -> list[str]:
    """Return the first lines that begin as questions or fragments do."""
    nodes = [node for node in ast.walk(source) if isinstance(node, ast.Module | ast.ClassDef | Function)]
    firsts = [(ast.get_docstring(node) or "").split(maxsplit=1) for node in nodes]
    return [" ".join(words)[:80] for words in firsts if words and words[0].strip("`,") in NOT_FIRST]


def of_every_file(wrong: dict[Path, list[str]]) -> str:
    """Return what is wrong, a line each."""
    return "\n".join(f"{path.relative_to(ROOT)}: {text}" for path, texts in wrong.items() for text in texts)


def test_every_public_function_explains_its_parameters() -> None:
    wrong = {path: incomplete(tree(path)) for path in files()}
    assert not of_every_file(wrong), of_every_file(wrong)


def test_first_lines_say_what_a_thing_is_or_does() -> None:
    wrong = {path: riddles(tree(path)) for path in files()}
    assert not of_every_file(wrong), of_every_file(wrong)


@pytest.mark.parametrize(
    ("docstring", "wrong"),
    [
        ("Return x.\n\n    Parameters\n    ----------\n    x\n        A number.\n    ", []),
        ("Return x.", ["f: ['x']"]),
        ("Return x.\n\n    Parameters\n    ----------\n    y\n        A number.\n    ", ["f: ['x', 'y']"]),
    ],
)
def test_a_missing_or_unknown_parameter_is_found(docstring: str, wrong: list[str]) -> None:
    assert incomplete(ast.parse(f'def f(x):\n    """{docstring}"""\n')) == wrong


def test_a_riddle_is_found() -> None:
    assert riddles(ast.parse('"""What it is asked."""\n')) == ["What it is asked."]
