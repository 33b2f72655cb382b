"""Compiled code on disk: what cannot be read is absent, what others may write is not used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import optsched.compiled.kept_code as kept_code

CALLS = """
import numpy as np
from optsched.compiled import without_interpreting
from optsched.policies.placements.first_fit import _count
from optsched.compiled.heap import push, pop
from optsched.policies.ties import leading_of
with without_interpreting():
    print(leading_of(1.5), file=open("out", "w"))
print(sum(d.stats.cache_hits.total() for d in [leading_of]))
"""


# An engine, with all that is linked into it; then every file of it cut off, from its caches' point of view.
RUN = """
from optsched.compiled import without_interpreting
from optsched.io.sources import load
from optsched.policies.simulate import simulate
with without_interpreting():
    found = simulate(load("rigid-06-1"), "fifo").schedule.completion.tolist()
assert found == [21, 11, 60, 44, 45, 24], found
"""
CUT = f"""{RUN}
from pathlib import Path
from numba.core.caching import NullCache
from optsched.compiled.function import FUNCTIONS
from optsched.compiled.linking import PREFIX, KeptCache
tried = 0
for function in FUNCTIONS:
    if isinstance(function._cache, NullCache):
        function._open_caches()
    for cache in (function._cache, function._linked_cache):
        if not isinstance(cache, KeptCache):
            continue
        index = Path(cache._cache_file._index_path)
        for key, name in cache._cache_file._load_index().items():
            there = lambda: cache.load_overload(key[0], function.targetctx) is not None
            known = there()  # linked code may stand under a name of another process
            assert known or name.startswith(PREFIX), name
            for file in (index, index.parent / name):
                whole = file.read_bytes()
                for size in range(0, len(whole), 1000):
                    file.write_bytes(whole[:size])
                    assert not there(), (file, size)
                    tried += known
                file.write_bytes(whole)
            assert there() == known, name
print(tried)
"""


def loaded(cache: Path, script: str = CALLS) -> int:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, cwd=cache, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return int(done.stdout or 0)


def test_files_that_are_cut_off_are_absent_and_written_anew(tmp_path: Path) -> None:
    assert loaded(tmp_path) == 0
    assert loaded(tmp_path) == 1
    files = sorted(tmp_path.rglob("*.nb[ic]"))
    assert {file.suffix for file in files} == {".nbi", ".nbc"}
    for file in files:
        whole = file.read_bytes()
        for size in (0, len(whole) // 2):
            file.write_bytes(whole[:size])
            assert loaded(tmp_path) == 0
            assert loaded(tmp_path) == 1  # it is whole again


@pytest.mark.study
def test_an_engine_whose_files_are_cut_off_anywhere(tmp_path: Path) -> None:
    loaded(tmp_path, RUN)
    assert loaded(tmp_path, CUT) > 5000
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
