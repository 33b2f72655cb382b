"""Compiled code on disk: what cannot be read is absent, what others may write is not used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from examples import few

import optsched.compiled.function as function
import optsched.compiled.kept_code as kept_code

CALLS = """
from optsched.compiled import without_interpreting
from optsched.policies.ties import leading_of
with without_interpreting():
    print(leading_of(1.5), file=open("out", "w"))
print(sum(leading_of.dispatcher().stats.cache_hits.values()))
"""
MEET = """
import glob, os, time
open(f"ready-{os.getpid()}", "w").close()
while len(glob.glob("ready-*")) < 2: time.sleep(0.001)
"""

# An engine, with all that it calls.
RUN = """
from optsched.compiled import without_interpreting
from optsched.io.sources import load
from optsched.policies.simulate import simulate
with without_interpreting():
    found = simulate(load("rigid-06-1"), "fifo").schedule.completion.tolist()
assert found == [21, 11, 60, 44, 45, 24], found
"""


def loaded(cache: Path, script: str = CALLS) -> int:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, cwd=cache, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return int(done.stdout or 0)


@pytest.mark.compiled
def test_files_that_are_cut_off_are_absent_and_written_anew(tmp_path: Path) -> None:
    assert loaded(tmp_path) == 0
    assert loaded(tmp_path) == 1
    files = sorted(tmp_path.rglob("*.nb[ic]"))
    assert {file.suffix for file in files} == {".nbi", ".nbc"}
    for file, part in few([(file, part) for part in (0, 0.5) for file in files], 2):
        whole = file.read_bytes()
        file.write_bytes(whole[: int(part * len(whole))])
        assert loaded(tmp_path) == 0
        assert loaded(tmp_path) == 1  # it is whole again


@pytest.mark.compiled
@pytest.mark.skipif(os.name != "posix", reason="files are locked on POSIX")
def test_two_processes_that_need_the_same_compile_it_once(tmp_path: Path) -> None:
    """The other one waits, and loads it: of both, one finds it in the cache."""
    script = CALLS.replace("with without", f"{MEET}with without")
    environment, command = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}, [sys.executable, "-c", script]
    pair = [subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True) for _ in "12"]
    assert sorted(each.communicate()[0].strip() for each in pair) == ["0", "1"]


@pytest.mark.study
def test_an_engine_whose_files_are_cut_off(tmp_path: Path) -> None:
    loaded(tmp_path, RUN)
    files = sorted(tmp_path.rglob("*.nb[ic]"))
    for part in (0, 0.3, 0.999):  # all of them at once: compiled again
        for file in files:
            whole = file.read_bytes()
            file.write_bytes(whole[: int(part * len(whole))])
        loaded(tmp_path, RUN)


@pytest.mark.skipif(os.name != "posix", reason="owners and modes of files are POSIX")
def test_a_folder_that_others_may_write_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    monkeypatch.setattr(kept_code.numba.config, "CACHE_DIR", str(first))
    monkeypatch.setenv("XDG_CACHE_HOME", str(second))
    find = kept_code._folder.__wrapped__
    ours = Path(find("0"))
    assert ours.parent == first
    assert ours.stat().st_mode & 0o777 == 0o700
    ours.chmod(0o777)
    elsewhere = Path(find("0"))
    assert elsewhere.is_relative_to(second)
    assert f"{ours} is not used" in capsys.readouterr().err
    monkeypatch.setattr(os, "getuid", lambda: 12345)  # somebody else's
    assert find("0") == ""
    assert capsys.readouterr().err.count("is not used") == 2


def test_where_nothing_can_be_written_functions_are_compiled_for_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full: opening the file fails, now and again."""
    monkeypatch.setattr(function, "folder_of", lambda _: "" if kept_code._nothing else str(tmp_path))
    monkeypatch.setattr(kept_code, "_nothing", False)
    # The remedies remove the machine code of all functions in use. That of the package is for other tests.
    package = [file for folder in filter(None, kept_code._used) for file in Path(folder).rglob("*.nb[ic]")]
    monkeypatch.setattr(kept_code, "_used", {str(tmp_path)})
    monkeypatch.setattr(function, "FUNCTIONS", [])

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    called = function.njit(lambda x: x + 1)
    calls = function.njit(lambda x: called(x) + called(x))
    with function.without_interpreting(), monkeypatch.context() as disk:
        disk.setattr("os.replace", full)
        assert calls(1) == 4
    assert kept_code._nothing
    assert all(file.is_file() for file in package)


@pytest.mark.skipif(os.name != "posix", reason="a path that is no file anywhere")
def test_code_that_has_no_file_is_compiled_and_not_kept() -> None:
    names: dict[str, Any] = {}
    exec(compile("def twice(x):\n    return x + x\n", "<console>", "exec"), names)
    with function.without_interpreting():
        assert function.njit(names["twice"])(3) == 6


@pytest.mark.skipif(os.name != "posix", reason="links and times of folders are POSIX")
def test_only_its_own_old_folders_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_code.numba.config, "CACHE_DIR", str(tmp_path))
    theirs, old = tmp_path / "compiled-thesis", tmp_path / f"compiled-{'0' * 16}"
    for folder in (theirs, old):
        folder.mkdir()
        os.utime(folder, (0, 0))
    (tmp_path / f"compiled-{'1' * 16}").symlink_to(tmp_path / "nowhere")
    assert kept_code._folder.__wrapped__("2" * 16)
    assert theirs.is_dir()
    assert not old.exists()
