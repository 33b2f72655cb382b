"""The folder of the verifier, copied to a place without optsched: what it imports, and what it verifies there."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bounds.tampering import CASES, untouched

import optsched.verifier
from optsched.io.index import LibraryEntry, entries, extracted
from optsched.io.sources import load

FOLDER = Path(optsched.verifier.__file__).parent
FILES = sorted(path.name for path in FOLDER.glob("*.py"))
ENTRIES = entries()
SOME = [known for k, known in enumerate(ENTRIES) if k % 40 == 0 and known.certificate != "priced-gangs"]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that has nothing but the folder."""
    place = tmp_path_factory.mktemp("empty")
    shutil.copytree(FOLDER, place / "verifier", ignore=shutil.ignore_patterns("__pycache__"))
    return place


def run(place: Path, *arguments: str | Path, name: str = "verifier") -> tuple[int, str]:
    """Return exit code and output of the command, which sees neither packages nor this checkout."""
    code = f"import sys, runpy; sys.path.insert(0, {str(place)!r}); sys.argv[1:] = {list(map(str, arguments))!r}; "
    code += f"runpy.run_module({name!r}, run_name='__main__', alter_sys=True)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], cwd=place, capture_output=True, text=True, check=False
    )
    assert (done.stdout + done.stderr).count("\n") == 1, done.stderr
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("name", FILES)
def test_files_are_short_and_import_the_standard_library_and_each_other(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            assert all(part.name.split(".")[0] in sys.stdlib_module_names for part in node.names)
        if isinstance(node, ast.ImportFrom):
            module = str(node.module).split(".")[0]
            assert f"{module}.py" in FILES if node.level else module in sys.stdlib_module_names
            assert node.level <= 1


@pytest.mark.parametrize("case", ["srpt", "typed-srpt", "shared-makespan", "task-srpt", "elastic-volume"])
def test_the_copied_folder_verifies(case: str, copied: Path, tmp_path: Path) -> None:
    document, instance = untouched(case), CASES[case].instance()
    certificate, stated = tmp_path / "c.json", tmp_path / "i.json"
    instance.save(stated)
    certificate.write_text(json.dumps(document))
    head = f"holds: {document['objective']} >= {document['value']} for the class {document['class']}, by {case}\n"
    assert run(copied, certificate, stated) == (0, head)
    certificate.write_text(json.dumps({**document, "value": "10000000/1"}))
    assert run(copied, certificate, stated) == (1, "does not hold: it claims more than its data prove\n")


def test_what_it_cannot_read_ends_with_code_2(copied: Path) -> None:
    assert run(copied, "none.json", "none.json")[0] == 2
    assert run(copied) == (
        2,
        "cannot be judged: usage: python -m verifier CERTIFICATE INSTANCE (two JSON files)\n",
    )


def test_the_folder_may_have_any_name_and_may_be_a_part_of_optsched(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "judge", ignore=shutil.ignore_patterns("__pycache__"))
    document, instance = untouched("volume"), CASES["volume"].instance()
    instance.save(tmp_path / "i.json")
    (tmp_path / "c.json").write_text(json.dumps(document))
    files = (tmp_path / "c.json", tmp_path / "i.json")
    assert run(tmp_path, *files, name="judge")[0] == 0
    command = [sys.executable, "-m", "optsched.verifier", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def in_the_library(known: LibraryEntry, copied: Path, folder: Path) -> None:
    """Check that the copied folder verifies the certificate of an instance in the library."""
    (certificate,) = (path for path in extracted(known, folder) if path.name.endswith(".certificate.json"))
    load(known.name).save(folder / "instance.json")
    code, line = run(copied, certificate, folder / "instance.json")
    assert code == 0, line
    assert line.endswith(f", by {known.certificate}\n")


@pytest.mark.parametrize("known", SOME, ids=lambda known: known.name)
def test_certificates_of_the_library(known: LibraryEntry, copied: Path, tmp_path: Path) -> None:
    in_the_library(known, copied, tmp_path)


@pytest.mark.study
@pytest.mark.parametrize("known", [known for known in ENTRIES if known not in SOME], ids=lambda known: known.name)
def test_every_certificate_of_the_library(known: LibraryEntry, copied: Path, tmp_path: Path) -> None:
    in_the_library(known, copied, tmp_path)
