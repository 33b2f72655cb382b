"""Archives as an installer makes them, and what must be in them: the modules and instances of the tree, each once."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Where the folders of the tree lie in an installed package.
PLACES = {"optsched": "optsched", "models": "optsched/models", "instances": "optsched/_instances"}
PAGES = {
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "CITATION.cff",
    "LICENSE",
    "NOTICE",
    "Makefile",
    "pyproject.toml",
}


def build(kind: str, source: Path, into: Path) -> Path:
    """The ``wheel``, ``editable`` wheel or ``sdist`` of a folder, by the hook that installers call; warnings are errors."""
    system = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    into.mkdir(parents=True, exist_ok=True)
    code = f"import {system['build-backend']} as backend; backend.build_{kind}({str(into)!r})"
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", code], cwd=source, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (archive,) = into.iterdir()
    return archive


def in_tree(tree: Path) -> set[str]:
    """The files of a tree that travel, under their names in an installed package; not through the link."""
    return {
        f"{place}/{file.relative_to(tree / folder).as_posix()}"
        for folder, place in PLACES.items()
        for file in (tree / folder).rglob("*")
        if file.is_file()
        and not {"__pycache__"} & {*file.parts}
        and not file.is_relative_to(tree / "optsched" / "models")
    }


def in_wheel(wheel: Path) -> set[str]:
    """The files of a wheel without its metadata; a name that comes twice is an error."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    twice = [name for name, count in Counter(names).items() if count > 1]
    assert twice == []
    return {name for name in names if ".dist-info/" not in name}


def in_sdist(sdist: Path) -> set[str]:
    """The files of an sdist, relative to its one folder; a name that comes twice is an error, and so is a link."""
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    names = [member.name.partition("/")[2] for member in members]
    assert [member.name for member in members if not member.isfile()] == []
    assert len(names) == len(set(names))
    return set(names)


def unpack(sdist: Path, into: Path) -> Path:
    """The one folder of an sdist, unpacked."""
    with tarfile.open(sdist) as archive:
        archive.extractall(into, filter="data")
    (folder,) = into.iterdir()
    return folder
