"""Files that somebody or some disk spoiled: every one is read, or refused in one line, and none takes long.

Spoiled Parquet is read by a library that complains on stderr of some of it, and ends the process for one in some thousands.
"""

from __future__ import annotations

import json
import resource
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from fuzzed_files import LOGS, Base, any_of, bases, read_spoiled, spoiled

SECONDS, BYTES = 2.0, 500e6  # that one file may take


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[Base]:
    return bases(tmp_path_factory.mktemp("bases"))


def read_all(originals: list[Base], seed: int, count: int, folder: Path) -> Counter[str]:
    """Spoils so many files; fails at the first that ends in anything but a number of jobs or a clear line."""
    tally, most = Counter[str](), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for k in range(count):
        rng = np.random.default_rng([seed, k])
        base = any_of(rng, originals)
        content = spoiled(rng, base.content, base.suffix)
        begin = time.process_time()
        jobs = read_spoiled(base, content, folder)
        taken = time.process_time() - begin
        now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert taken < SECONDS, (base.kind, taken, content[:400])
        assert (now - most) * 1024 < BYTES, (base.kind, now, content[:400])
        most = now
        tally[f"{base.kind} {'refused' if jobs is None else 'read'}"] += 1
        if jobs is not None and base.kind == "instance" and base.suffix == ".json":
            assert jobs == len(json.loads(content)["jobs"])  # nothing was lost on the way
    return tally


def test_the_originals_are_read(originals: list[Base], tmp_path: Path) -> None:
    for base in originals:
        assert read_spoiled(base, base.content, tmp_path) is not None, (base.kind, base.content[:200])


@pytest.fixture(scope="module")
def texts(originals: list[Base]) -> list[Base]:
    return [base for base in originals if base.suffix != ".parquet"]


def test_spoiled_files_are_read_or_refused(
    texts: list[Base], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tally = read_all(texts, 1, 500, tmp_path)
    assert capfd.readouterr().err == ""
    assert {kind.split()[0] for kind in tally} == {base.kind for base in texts}


def test_spoiled_tables_are_read_or_refused(originals: list[Base], tmp_path: Path) -> None:
    tally = read_all([base for base in originals if base.suffix == ".parquet"], 1, 300, tmp_path)
    assert {kind.split()[0] for kind in tally} == {"instance", "schedule", "tasks"}


@pytest.mark.study
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_spoiled_files_are_read_or_refused(
    seed: int, texts: list[Base], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    read_all(texts, seed, 10_000, tmp_path)
    assert capfd.readouterr().err == ""


@pytest.mark.study
@pytest.mark.parametrize("kind", [*LOGS, "compressed"])
def test_many_spoiled_logs_of_a_format_are_read_or_refused(
    kind: str, texts: list[Base], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    read_all([base for base in texts if base.kind == kind], 12, 10_000, tmp_path)
    assert capfd.readouterr().err == ""
