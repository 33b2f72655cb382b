"""Every policy of README and docs keeps what a policy keeps: a reader's first policy is not called broken."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages.page import Page, name_of, page_files

from optsched.contract.examine import examine

pytestmark = pytest.mark.release

HEREDOC = re.compile(r"<<'?(\w+)'?\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


def sources() -> Iterator[tuple[str, str]]:
    for path in page_files():
        for block in Page(path).blocks:
            texts = [block.text] if block.language == "python" else [found[2] for found in HEREDOC.finditer(block.text)]
            yield from ((name_of(path), text) for text in texts if re.search(r"^class \w+.*:", text, re.MULTILINE))


def policies() -> Iterator[tuple[str, str, str]]:
    """Page, class and the imports and definitions of its block."""
    for name, text in sources():
        kept = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef)
        body = [each for each in ast.parse(text).body if isinstance(each, kept)]
        module = "\n".join(ast.unparse(each) for each in body)
        for each in body:
            says = isinstance(each, ast.ClassDef) and {
                part.name for part in each.body if isinstance(part, ast.FunctionDef)
            } & {"decide", "order", "key"}
            if says and isinstance(each, ast.ClassDef):
                yield name, each.name, module


FOUND = list(policies())


@pytest.mark.parametrize(("page", "name", "module"), FOUND, ids=[f"{page}-{name}" for page, name, _ in FOUND])
def test_a_policy_of_the_pages_is_not_broken(
    page: str, name: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "documented.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "documented", raising=False)
    found = examine(f"documented:{name}")
    assert [(each.check, each.said) for each in found.broken] == []
    assert any(each.verdict == "holds" for each in found.findings)


def test_the_pages_have_policies() -> None:
    assert "README.md" in {page for page, _, _ in FOUND}
    assert len(FOUND) >= 4
