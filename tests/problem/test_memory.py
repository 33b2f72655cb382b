"""Runs that do not fit into memory are refused before they start."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from refusals import one_line

from optsched import Instance, Job, load
from optsched.problem import memory
from optsched.problem.memory import free_bytes, require_memory


def test_a_run_that_does_not_fit_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda: 1e9)
    require_memory(900_000)
    require_memory(100, 3)
    with one_line("1,000,000 jobs needs about 1.5 GB of memory, and 1.0 GB are free", "OPTSCHED_MEMORY=any"):
        require_memory(1_000_000, 3)
    monkeypatch.setenv(memory.ANYWAY, "any")
    require_memory(1_000_000, 3)


@pytest.mark.parametrize("name", ["jobs.json", "jobs.csv", "jobs.csv.gz", "jobs.parquet"])
def test_a_file_that_does_not_fit_is_refused_before_it_is_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    instance = Instance([Job(str(j), duration=1) for j in range(100)], "1x1")
    if name.startswith("jobs.csv"):
        text = b"arrival,gpus,duration\n" + b"0,1,1\n" * 100
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        source, cluster = f"csv:{path}", "1x1"
    else:
        instance.save(path)
        source, cluster = str(path), None
    assert load(source, cluster=cluster).n == 100
    monkeypatch.setattr(memory, "FEW", 4000)
    monkeypatch.setattr(memory, "free_bytes", lambda: 4000.0)
    with one_line("reading", "needs about 0.0 GB of memory", "OPTSCHED_MEMORY=any"):
        load(source, cluster=cluster)
    monkeypatch.setenv(memory.ANYWAY, "any")
    assert load(source, cluster=cluster).n == 100


@pytest.mark.parametrize(
    "names", [("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")]
)
def test_the_limit_of_the_control_group_counts(
    names: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_CONTROL", tmp_path)
    machine = free_bytes()
    assert machine > 0
    folder = tmp_path if names[0] == "memory.max" else tmp_path / "memory"
    folder.mkdir(exist_ok=True)
    (folder / names[0]).write_text("5000\n")
    (folder / names[1]).write_text("4000\n")
    assert free_bytes() == 1000
    (folder / "memory.stat").write_text("active_file 7\ninactive_file 500\n")
    assert free_bytes() == 1500
    (folder / names[0]).write_text("max\n")
    assert free_bytes() > 1e6
