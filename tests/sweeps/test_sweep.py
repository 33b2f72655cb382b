"""A sweep gives what runs one by one give, keeps each cell when it is done, and goes on from wherever it was killed."""

from __future__ import annotations

import datetime
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import optsched as osd
from optsched.errors import InputError
from optsched.sweeps import grid as grids, run_sweep as running
from optsched.sweeps.cell import run_cell
from optsched.sweeps.grid import Cell, Grid
from optsched.sweeps.processes import Task, _next, _Process, computed
from optsched.sweeps.run_sweep import results
from optsched.sweeps.store import Store, read
from sweeps.light_work import dies_once, where

GRID: dict[str, Any] = {
    "objectives": ["total_flow_time", "makespan"],
    "policies": ["fifo", "srtf"],
    "seeds": [1, 2],
    "instances": [{"recipe": "rigid", "jobs": [4, 6]}],
}
DRAWN = ["cpu_seconds"]  # what differs from time to time


def alike(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    return one.drop(DRAWN).equals(other.drop(DRAWN))


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.release)])
def test_the_numbers_are_those_of_runs_one_by_one(workers: int, tmp_path: Path) -> None:
    table = osd.sweep(GRID, tmp_path / "s.sqlite", workers=workers)
    assert table.height == 8
    assert table["state"].to_list() == ["done"] * 8
    for row in table.iter_rows(named=True):
        instance = osd.generate("rigid", row["seed"], jobs=row["jobs"])
        run = osd.simulate(instance, row["policy"])
        for name in GRID["objectives"]:
            assert row[name] == run.value(name)
            report = osd.evaluate(instance, row["policy"], name)
            assert row[f"{name}_bound"] <= row[name]
            assert row[f"{name}_ratio"] == pytest.approx(report.lines[0].ratio, rel=1e-12)
        assert row["mean_jct"] == run.metrics["mean_jct"]
        assert row["gpu_hours_busy"] == run.metrics["gpu_hours"]["busy"]


def test_a_log_of_ones_own_is_read_with_its_columns(tmp_path: Path) -> None:
    log, columns = tmp_path / "log.csv", "arrival=submitted,gpus=gpus,duration=seconds"
    log.write_text("submitted,gpus,seconds\n0,1,100\n5,2,50\n7,1,20\n")
    read_as = {"source": f"csv:{log}", "columns": columns, "cluster": ["1x2", "1x4"]}
    table = osd.sweep(GRID | {"instances": [read_as]}, tmp_path / "s.sqlite", workers=1)
    for row in table.iter_rows(named=True):
        instance = osd.load(f"csv:{log}", columns=columns, cluster=row["cluster"])
        assert row["total_flow_time"] == osd.simulate(instance, row["policy"]).value("total_flow_time")


def test_it_runs_nothing_twice_and_the_grid_may_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, ran = tmp_path / "s.sqlite", []

    def here(work: Any, tasks: Any, *_: Any) -> Any:
        for task in tasks:
            ran.append(task.key)
            yield work(task.key)

    monkeypatch.setattr(running, "results", here)
    first = osd.sweep(GRID, store)
    assert alike(osd.sweep(GRID, store), first)
    assert len(ran) == len(set(ran)) == 8
    grown = osd.sweep({**GRID, "seeds": [1, 2, 3]}, store)
    assert grown.height == 12
    assert len(ran) == len(set(ran)) == 12
    assert alike(osd.sweep(GRID, store), first)  # and asks for what it asks for


def test_a_cell_that_fails_keeps_its_instance_and_stops_nothing(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    grid = {**GRID, "policies": ["fifo", "sjf-bsbf"], "seeds": [1]}  # which needs interference
    table = osd.sweep(grid, store, workers=1)
    failed = table.filter(pl.col("state") == "failed")
    assert failed["policy"].to_list() == ["sjf-bsbf"] * 2
    assert all("interference" in text and "\n" not in text for text in failed["error"])
    for row in failed.iter_rows(named=True):
        kept = osd.load(row["failed_on"])
        assert kept.digest == osd.generate("rigid", 1, jobs=row["jobs"]).digest
        with pytest.raises(InputError, match="interference"):
            osd.simulate(kept, row["policy"])
    assert alike(osd.sweep(grid, store, workers=1, retry=True), table)
    read(store)
    assert not list(tmp_path.glob("*-wal"))


def test_an_estimate_runs_a_cell_of_each_policy_and_keeps_it(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    found = running.estimate(GRID, store)
    assert (found.cells, found.left) == (8, 6)
    assert found.cpu_seconds > 0
    assert sorted(read(store).filter(pl.col("state") == "done")["policy"]) == ["fifo", "srtf"]
    osd.sweep(GRID, store, workers=1)
    assert running.estimate(GRID, store) == running.Cost(8, 0, 0.0)


def test_files_that_are_none(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.sqlite"
    wrong.write_text("not a database, and longer than the head of one" * 10)
    for use in (lambda: osd.sweep(GRID, wrong), lambda: read(wrong), lambda: read(tmp_path / "none.sqlite")):
        with pytest.raises(InputError, match="not the file of a sweep"):
            use()
    with pytest.raises(InputError, match="cannot write"):
        osd.sweep(GRID, tmp_path / "none" / "s.sqlite")
    with Store(tmp_path / "s.sqlite"), pytest.raises(InputError, match="another sweep"):
        osd.sweep(GRID, tmp_path / "s.sqlite")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"backend": "spark"}, "loky, dask, ray"),
        ({"workers": 0}, "workers"),
        ({"address": "tcp://x"}, "address"),
        ({"backend": "dask", "address": "tcp://127.0.0.1:1"}, "nobody answers"),
        ({"backend": "ray", "address": "127.0.0.1:1"}, "nobody answers"),
        ({"backend": "ray", "address": "127.0.0.1:port"}, "nobody answers"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        osd.sweep(GRID, tmp_path / "s.sqlite", **settings)


@pytest.mark.release
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_workers_that_die(tmp_path: Path) -> None:
    keys = [str(tmp_path / f"{k}{'.once' if k in (3, 17) else ''}") for k in range(30)]
    tasks = [Task(key, "an instance") for key in keys]
    assert sorted(each.key for each in results(dies_once, tasks, workers=2)) == sorted(keys)
    always = str(tmp_path / "always")
    some = [*tasks[:2], Task(always, "another"), *tasks[4:9]]
    found = {each.key: each.error for each in results(dies_once, some, workers=2)}
    assert found.pop(always) == "its worker died whenever it was run (out of memory?)"
    assert found == dict.fromkeys([*keys[:2], *keys[4:9]])


def test_an_instance_stays_with_its_process() -> None:
    """What is proved of an instance is proved once."""
    tasks = [Task(f"{on}{rule}", on) for on in "abcdef" for rule in "xyz"]
    found = dict(computed(where, tasks, 2, 3))
    assert len(set(found.values())) == 2
    homes = {on: {found[f"{on}{rule}"] for rule in "xyz"} for on in "abcdef"}
    assert sum(len(each) for each in homes.values()) <= 7  # the last one may be halved


def test_idle_processes_take_half_of_what_the_slowest_has_left() -> None:
    one, two, more = _Process(), _Process(), Task("b", "b")
    one.left = deque(Task(f"a{k}", "a") for k in range(3))
    assert _next(two, [one, two], deque()) == Task("a2", "a")
    assert (len(one.left), len(two.left)) == (1, 2)
    assert _next(_Process(), [one, two], deque([deque([more])])) is more  # a whole instance goes before that


PROGRAM = """
import sys
import optsched as osd
from tests.sweeps import test_sweep
osd.sweep(getattr(test_sweep, sys.argv[2]), sys.argv[1], workers=2)
"""
LONG: dict[str, Any] = {**GRID, "seeds": list(range(1, 13)), "instances": [{"recipe": "rigid", "jobs": 40}]}
LONGER: dict[str, Any] = {**LONG, "seeds": list(range(1, 1001)), "instances": [{"recipe": "rigid", "jobs": 6}]}


@pytest.mark.release
@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(
    ("name", "kills"), [("LONG", 2), pytest.param("LONGER", 10, marks=pytest.mark.study)], ids=["40", "2000"]
)
def test_killed_at_any_moment_it_ends_with_the_same_table(name: str, kills: int, tmp_path: Path) -> None:
    """Parent, or first a worker, by SIGKILL, at moments drawn: what was committed is never run again."""
    grid: dict[str, Any] = globals()[name]
    cells, store, draw = len(Grid.read(grid).cells), tmp_path / "s.sqlite", random.Random(5)
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    seen: dict[str, Any] = {}
    for turn, target in enumerate(sorted(draw.sample(range(1, cells - 5), kills))):
        command = [sys.executable, "-c", PROGRAM, str(store), name]
        process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.DEVNULL)
        while len(committed(store)) < target and process.poll() is None:
            time.sleep(0.05)
        for worker in children(process.pid)[: turn % 2]:
            os.kill(worker, signal.SIGKILL)
        process.kill()
        process.wait()
        rows = committed(store)
        assert {key: rows[key] for key in seen} == seen  # with the very CPU time: not run again
        seen = rows
    ended = osd.sweep(grid, store, workers=1)
    rows = committed(store)
    assert {key: rows[key] for key in seen} == seen
    assert len(rows) == cells
    assert alike(ended, osd.sweep(grid, tmp_path / "whole.sqlite", workers=1))


def committed(store: Path) -> dict[str, tuple[Any, ...]]:
    if not store.exists():
        return {}
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
        try:
            rows = db.execute("SELECT key, state, cpu_seconds FROM cell WHERE state != 'open'").fetchall()
        except sqlite3.OperationalError:
            return {}  # no table yet
    return {key: rest for key, *rest in rows}


def children(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()
    return sorted(map(int, found), reverse=True)


def test_keys_are_those_of_the_grid() -> None:
    assert run_cell(Grid.read(GRID).cells[0].key).numbers["jobs"] == 4


# -- which cells a grid has, and what is said of one that is wrong ---------------------------------------------------------


RIGID = {"recipe": "rigid", "jobs": 6}


def test_every_list_is_an_axis() -> None:
    grid = Grid.read(
        {
            "seeds": "3-5",
            "objectives": "makespan",
            "policies": "fifo",
            "policy": [
                {"name": ["srtf", "sjf"], "placement": ["count", "consolidated"]},
                {"name": "fifo", "skip": [True]},
            ],
            "instances": [{"recipe": "rigid", "jobs": [4, 6]}, {"source": ["rigid-06-1", "cluster-week"]}],
        }
    )
    policies = ["fifo", "srtf+count", "srtf+consolidated", "sjf+count", "sjf+consolidated", "fifo:skip=true"]
    assert [each.policy for each in grid.cells[:6]] == policies
    assert {each.seed for each in grid.cells} == {3, 4, 5, None}  # what is read has none
    assert len(grid.cells) == len(set(grid.cells)) == (2 * 3 + 2) * 6
    assert {each.objectives for each in grid.cells} == {("makespan",)}
    assert grid.cells[0].instance().n == 4
    assert grid.cells[-1].instance().name == "cluster-week"


def test_a_cell_that_is_named_twice_is_one() -> None:
    grid = Grid.read({"policies": ["fifo", "fifo"], "seeds": [1, 1], "instances": [RIGID, RIGID]})
    assert len(grid.cells) == 1
    assert Cell.of_key(grid.cells[0].key) == grid.cells[0]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"policies": ["srtff"]}, "srtff"),
        ({"policies": []}, "policies"),
        ({"policy": [{"round": 3}]}, "policy"),
        ({"policy": [{"name": "makespan-rounds", "round": [-1]}]}, "round"),
        ({"objectives": ["makespann"]}, "makespann"),
        ({"seeds": "1-x"}, "seeds"),
        ({"seeds": [1.5]}, "seeds"),
        ({"seeds": []}, "seeds"),
        ({"instances": []}, "instances"),
        ({"instances": [{"jobs": 3}]}, "instances, table 1"),
        ({"instances": [RIGID, {"recipe": "rigidd"}]}, "instances, table 2"),
        ({"instances": [{"recipe": "rigid", "jobbs": 3}]}, "jobbs"),
        ({"instances": [{"source": "rigid-06-1", "jobs": 3}]}, "jobs"),
        ({"instances": [{"source": "rigid-06-1", "cluster": {"nodes": 2}}]}, "cluster"),
        ({"instances": [{"recipe": "rigid", "jobs": datetime.date(2026, 1, 1)}]}, "jobs"),
        ({"instances": [3]}, "instances, table 1"),
        ({"policy": ["fifo"]}, "policy"),
        ({"objectives": [3]}, "3"),
        ({"seeds": "0-99999999999"}, "too many cells"),
        ({"polices": ["fifo"]}, "polices"),
    ],
)
def test_a_wrong_grid_is_one_line_before_anything_runs(
    changed: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grids, "MOST_CELLS", 100)  # quicker
    with pytest.raises(InputError, match=said) as caught:
        Grid.read({"policies": ["fifo"], "instances": [RIGID], **changed})
    assert "\n" not in str(caught.value)


def test_a_wrong_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    for text, said in (("policies = [", "not TOML"), ('policies = ["nobody"]', "nobody")):
        file.write_text(text)
        with pytest.raises(InputError, match=said) as caught:
            Grid.read(file)
        assert str(file) in str(caught.value)
    with pytest.raises(InputError, match="none"):
        Grid.read(tmp_path / "none.toml")


# -- the command: its table at 80 columns, the files it writes, what it says of cells that fail ----------------------------


FILE = """
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
    Path("grid.toml").write_text(FILE)
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
        assert row[:5] == [str(jobs), "fifo", "non-clairvoyant", "2", "0"]
        assert f"{mean:g}" in out
    again = sweep("-o", "grid.parquet")  # nothing is run again
    assert (again.code, again.err) == (1, "optsched: 4 of 8 cells failed; run them again with --retry\n")
    assert pl.read_parquet("grid.parquet").select("policy", "makespan").equals(table.select("policy", "makespan"))
    cells = sweep("--json").json["cells"]
    assert [cell["makespan"] for cell in cells] == table["makespan"].to_list()


def test_what_it_will_cost(sweep: Callable[..., Any]) -> None:
    assert "8 cells, 6 to run" in sweep("--dry-run").shown
    assert sweep("--dry-run", "--json").document["left"] == 6


def test_a_table_that_cannot_be_written_is_said_before_anything_runs(sweep: Callable[..., Any]) -> None:
    for name in ("grid.xlsx", "none/grid.csv"):
        assert sweep("-o", name).mistake
        assert not Path("grid.sqlite").exists()


@pytest.mark.parametrize("source", ["none.json", "philly:none.csv", "no-such-instance"])
def test_a_source_that_is_nowhere_is_said_before_anything_runs(sweep: Callable[..., Any], source: str) -> None:
    Path("grid.toml").write_text(f'{FILE}[[instances]]\nsource = ["rigid-06-1", "{source}"]\n')
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
    assert all(word in out for word in ("knowledge", "clairvoyant", "mean", "ratio"))
