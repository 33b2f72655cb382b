"""Trees as people have them: a checkout, one without symbolic links, an unpacked sdist; and their archives, made once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from install.archives import ROOT, build, unpack

LEFTOVERS = (".git", *(line.rstrip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()))


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree as it stands, without what git does not know: nothing is written beside the sources."""
    copy = tmp_path_factory.mktemp("tree") / "optsched"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(*LEFTOVERS))
    return copy


@pytest.fixture(scope="session")
def without_links(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree as git checks it out with ``core.symlinks=false``: a link is a text file that holds its target."""
    copy = tmp_path_factory.mktemp("without-links") / "optsched"
    shutil.copytree(tree, copy, symlinks=True)
    link = copy / "optsched" / "models"
    target = link.readlink() if link.is_symlink() else Path("../models")
    link.unlink(missing_ok=True)
    link.write_text(target.as_posix())
    return copy


@pytest.fixture(scope="session")
def sdist(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", tree, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="session")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, unpacked: a tree with no link at all."""
    return unpack(sdist, tmp_path_factory.mktemp("unpacked"))


@pytest.fixture(scope="session")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tree, tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Says a line in the summary of the session: what a way took."""
    return lambda line: request.node.user_properties.append(("way", line))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    lines = [
        line
        for each in terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
        if each.when == "call"
        for name, line in each.user_properties
        if name == "way"
    ]
    if lines:
        terminalreporter.section("ways")
        for line in lines:
            terminalreporter.line(line)
