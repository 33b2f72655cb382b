"""The command ``sweep``: its table at 80 columns, the files it writes, what it says of cells that fail."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

GRID = """
objectives = ["total_flow_time", "makespan"]
policies = ["fifo", "sjf-bsbf"]
seeds = "1-2"
[[instances]]
recipe = "rigid"
jobs = [4, 6]
"""


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, screen: Callable[..., Any]) -> Callable[..., Any]:
    monkeypatch.chdir(tmp_path)
    Path("grid.toml").write_text(GRID)
    return partial(screen, 80, "sweep", "grid.toml", "--workers", "1")


def test_table_files_and_failures(sweep: Callable[..., Any]) -> None:
    code, out, err = sweep("-o", "grid.csv")
    assert code == 1
    assert max(map(len, out.splitlines())) <= 80
    assert "failed" in out
    assert err.count("a cell failed") == 4  # sharing without interference
    table = pl.read_csv("grid.csv")
    means = (
        table.filter(pl.col("policy") == "fifo").group_by("jobs", maintain_order=True).agg(pl.col("makespan").mean())
    )
    for jobs, mean in means.iter_rows():
        (row,) = [
            line.replace("│", " ").split() for line in out.splitlines() if f"{jobs} " in line and " fifo " in line
        ][:1]
        assert row[:4] == [str(jobs), "fifo", "2", "0"]
        assert f"{mean:g}" in out
    again = sweep("-o", "grid.parquet")  # nothing is run again
    assert (again.code, again.err) == (1, "optsched: 4 of 8 cells failed; --retry runs them again\n")
    assert pl.read_parquet("grid.parquet").select("policy", "makespan").equals(table.select("policy", "makespan"))
    cells = sweep("--json").json["cells"]
    assert [cell["makespan"] for cell in cells] == table["makespan"].to_list()


def test_what_it_will_cost(sweep: Callable[..., Any]) -> None:
    assert "8 cells, 6 to be run" in sweep("--dry-run").shown
    assert sweep("--dry-run", "--json").document["left"] == 6


def test_a_table_that_cannot_be_written_is_said_before_anything_runs(
    sweep: Callable[..., Any],
) -> None:
    for name in ("grid.xlsx", "none/grid.csv"):
        assert sweep("-o", name).mistake
        assert not Path("grid.sqlite").exists()


@pytest.mark.parametrize("source", ["none.json", "philly:none.csv", "no-such-instance"])
def test_a_source_that_is_nowhere_is_said_before_anything_runs(sweep: Callable[..., Any], source: str) -> None:
    Path("grid.toml").write_text(f'{GRID}[[instances]]\nsource = ["rigid-06-1", "{source}"]\n')
    line = sweep().mistake
    assert "instances, table 2: " in line
    assert source.partition(":")[2] in line
    assert not Path("grid.sqlite").exists()


def test_numbers_of_a_measure_are_shown_as_their_means(sweep: Callable[..., Any]) -> None:
    lines = ['policies = ["fifo", "sjf"]', "seeds = [1, 2]", 'measure = "sharing-optimum"', "[[instances]]"]
    Path("grid.toml").write_text("\n".join([*lines, 'recipe = "sharing-small"', "jobs = 3", "gpus = 2"]))
    out = sweep().shown
    cells = sweep("--json").document["cells"]
    for policy in ("fifo", "sjf"):
        mean = sum(cell["ratio"] for cell in cells if cell["policy"] == policy) / 2
        assert mean >= 1
        (row,) = [line for line in out.splitlines() if f" {policy} " in line.replace("│", " ")][:1]
        assert f"{mean:.3f}"[:4] in row
    assert "mean ratio" in out
