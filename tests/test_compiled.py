"""Compiled code is kept on disk under the content of everything that compiles, and numba is left as it was."""

from __future__ import annotations

from pathlib import Path

import numba
import pytest

from optsched import compiled


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "engine.py").write_text("from optsched.fast import (\n    step,\n)\nfrom optsched import slow\n")
    (tmp_path / "fast.py").write_text("from optsched.compiled import njit\n")
    (tmp_path / "slow.py").write_text("from optsched.deep.constants import ONE\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "constants.py").write_text("ONE = 1  # frozen, see optsched.compiled\n")
    (tmp_path / "other.py").write_text("from optsched.compiled import njit\n")
    monkeypatch.setattr(compiled, "_PACKAGE", tmp_path)
    for name in ("_imports", "_stamp", "_folder"):
        monkeypatch.setattr(compiled, name, getattr(compiled, name).__wrapped__)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    return tmp_path


@pytest.mark.parametrize("name", ["engine.py", "fast.py", "deep/constants.py"])
def test_the_stamp_follows_every_compiled_module_behind_a_file(package: Path, name: str) -> None:
    before = compiled._stamp(package / "engine.py")
    (package / name).write_text((package / name).read_text() + "# changed\n")
    assert compiled._stamp(package / "engine.py") != before


@pytest.mark.parametrize("name", ["slow.py", "other.py"])
def test_the_stamp_leaves_out_what_cannot_matter(package: Path, name: str) -> None:
    before = compiled._stamp(package / "engine.py")
    (package / name).write_text((package / name).read_text() + "# changed\n")
    assert compiled._stamp(package / "engine.py") == before


def test_code_is_kept_in_the_folder_of_this_version_and_numba_is_left_alone(package: Path) -> None:
    function = compiled.njit(lambda x: x + 1)
    assert function(1) == 2
    folder = package / "__pycache__" / f"compiled-{compiled._stamp(Path(__file__))}"
    assert list(folder.rglob("*.nbi"))
    assert numba.config.CACHE_DIR == ""


def test_both_uses_compile(package: Path) -> None:
    @compiled.njit
    def plain(x: int) -> int:
        return x + 1

    @compiled.njit(inline="always")
    def inlined(x: int) -> int:
        return x + 2

    assert (plain(1), inlined(1)) == (2, 3)


def test_a_package_that_cannot_be_written_uses_the_users_cache(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (package / "__pycache__").write_text("a file where a folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(package / "cache"))
    assert compiled._folder("stamp") == str(package / "cache" / "optsched" / "compiled-stamp")


def test_old_versions_are_forgotten(package: Path) -> None:
    import os

    old = package / "__pycache__" / "compiled-old"
    young = package / "__pycache__" / "compiled-young"
    for folder in (old, young):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    compiled._folder("stamp")
    assert not old.exists()
    assert young.exists()
