"""Compiled code is kept on disk under the content of everything that compiles, and numba is left as it was."""

from __future__ import annotations

from pathlib import Path

import numba
import pytest

from optsched import compiled


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "fast.py").write_text("from optsched.compiled import njit\n")
    (tmp_path / "slow.py").write_text("import math\n")
    monkeypatch.setattr(compiled, "_PACKAGE", tmp_path)
    monkeypatch.setattr(compiled, "_stamp", compiled._stamp.__wrapped__)
    monkeypatch.setattr(compiled, "_folder", compiled._folder.__wrapped__)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    return tmp_path


def test_the_stamp_follows_every_module_that_compiles(package: Path) -> None:
    before = compiled._stamp()
    (package / "slow.py").write_text("import cmath\n")
    assert compiled._stamp() == before
    (package / "fast.py").write_text("from optsched.compiled import njit  # changed\n")
    assert compiled._stamp() != before


def test_code_is_kept_in_the_folder_of_this_version_and_numba_is_left_alone(package: Path) -> None:
    function = compiled.njit(lambda x: x + 1)
    assert function(1) == 2
    folder = package / "__pycache__" / f"compiled-{compiled._stamp()}"
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
    assert compiled._folder() == str(package / "cache" / "optsched" / f"compiled-{compiled._stamp()}")


def test_old_versions_are_forgotten(package: Path) -> None:
    import os

    old = package / "__pycache__" / "compiled-old"
    young = package / "__pycache__" / "compiled-young"
    for folder in (old, young):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    compiled._folder()
    assert not old.exists()
    assert young.exists()
