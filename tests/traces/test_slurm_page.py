"""The program for Slurm's accounting in docs/files-and-formats.md, on logs other than the one that the page shows."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from pages.page import ROOT, Page

from optsched.errors import RowErrors
from optsched.problem.instance import Instance

(PROGRAM,) = [
    block.text
    for block in Page(ROOT / "docs" / "files-and-formats.md").blocks
    if block.language == "python" and "sacct.txt" in block.text
]
Recipe = Callable[..., Instance]
HEAD = "JobID|User|State|Submit|Elapsed|AllocTRES\n"
NODE = "billing=8,cpu=8,{}mem=64G,node=1"


def row(name: str, gpus: str, state: str = "COMPLETED", elapsed: str = "00:01:00", second: int = 0) -> str:
    return f"{name}|ada|{state}|2026-03-02T09:00:{second:02d}|{elapsed}|{NODE.format(gpus)}\n"


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """The instance that the page's program makes of such a log."""

    def run(log: str) -> Instance:
        monkeypatch.chdir(tmp_path)
        Path("sacct.txt").write_text(log, encoding="utf-8")
        found: dict[str, object] = {}
        exec(PROGRAM.replace('cluster="2x4"', 'cluster="9x8"'), found)
        made = found["slurm"]
        assert isinstance(made, Instance)
        return made

    return run


def gangs(made: Instance) -> dict[str, int]:
    return dict(zip(made.ids, made.gpus.tolist(), strict=True))


def test_gpus_with_a_type_count_and_types_of_one_job_add_up(recipe: Recipe) -> None:
    """Without the column State, too, as an old export may be."""
    log = "JobID|User|Submit|Elapsed|AllocTRES\n" + "".join(
        f"{name}|{user}|2026-04-01T08:0{name}:00|{elapsed}|{NODE.format(gpus)}\n"
        for name, user, elapsed, gpus in (
            ("1", "ada", "02:00:00", "gres/gpu:nvidia_geforce_rtx_2080_ti=4,"),
            ("2", "bob", "1-00:30:00", "gres/gpu=1,"),
            ("3", "cy", "00:10:00", "gres/gpu:a100=2,gres/gpu:v100=1,"),
        )
    )
    made = recipe(log)
    assert gangs(made) == {"1": 4, "2": 1, "3": 3}
    assert made.duration.tolist() == [7200.0, 88200.0, 600.0]


def test_a_total_is_not_added_to_its_types(recipe: Recipe) -> None:
    both = "gres/gpu:a100=6,gres/gpu:v100=2,gres/gpu=8,gres/gpumem=40G,gres/gpuutil=90,"
    assert gangs(recipe(HEAD + row("1", both))) == {"1": 8}


def test_steps_and_what_has_not_ended_are_no_jobs(recipe: Recipe, capsys: pytest.CaptureFixture[str]) -> None:
    gpu = "gres/gpu=1,"
    log = row("1", gpu) + row("1.batch", gpu) + row("1.extern", gpu) + row("1.0", gpu) + row("2", gpu, "RUNNING")
    log += (
        row("3", "", "PENDING", "00:00:00") + row("4_[1-5%2]", "", "PENDING", "00:00:00") + row("5_7", gpu, "TIMEOUT")
    )
    log += row("6", gpu, "PENDING", "00:00:30") + row("7", gpu, "CANCELLED by 1001", "00:00:00") + row("8", "")
    log += row("9", gpu, "RESIZING") + row("9", gpu, "CANCELLED by 0") + row("10", gpu, "SUSPENDED")
    assert gangs(recipe(HEAD + log)) == {"1": 1, "5_7": 1, "9": 1}
    said = "left out: {'a step': 3, 'RUNNING': 1, 'PENDING': 3, 'never ran': 1, 'RESIZING': 1, 'SUSPENDED': 1}"
    assert f"{said} and without GPUs: 1\n" in capsys.readouterr().out


def test_components_of_a_heterogeneous_job_are_one_job(recipe: Recipe) -> None:
    log = (
        row("11+0", "gres/gpu=1,", elapsed="00:00:06") + row("11+1", "", elapsed="00:00:09") + row("12", "gres/gpu=2,")
    )
    made = recipe(HEAD + log)
    assert gangs(made) == {"11": 1, "12": 2}
    assert made.duration.tolist() == [9.0, 60.0]


def test_what_it_cannot_read_right_is_refused(recipe: Recipe) -> None:
    gpu = "gres/gpu=1,"
    with pytest.raises(AssertionError, match="made with -D"):
        recipe(HEAD + row("1", gpu, "NODE_FAIL") + row("1", gpu))
    with pytest.raises(RowErrors, match="row 3, seconds"):
        recipe(HEAD + row("1", gpu) + row("2", gpu, elapsed="INVALID"))


@pytest.mark.parametrize("version", ["22.05", "24.11", "26.05"])
@pytest.mark.parametrize("export", ["end.short", "end.shortX", "final.shortX"])
def test_real_exports_are_read_as_what_the_jobs_did(recipe: Recipe, data_dir: Path, version: str, export: str) -> None:
    folder = data_dir / "slurm" / f"a-{version}"
    head, *lines = (folder / f"{export}.txt").read_text(encoding="utf-8").splitlines()
    names = head.split("|")
    at = [names.index(name) for name in HEAD.strip().split("|")]
    fields = [line.split("|") for line in lines]  # two names of jobs have a bar or a line end: they have no GPU
    made = recipe(HEAD + "".join("|".join(each[k] for k in at) + "\n" for each in fields if len(each) == len(names)))
    with (folder / "truth.csv").open(encoding="utf-8", newline="") as file:
        runs = {
            f"{run['array_jobid']}_{run['array_task']}" if run["array_task"] else run["jobid"]: run
            for run in csv.DictReader(file)
        }  # of a job that was requeued the last one
    read = dict(zip(made.ids, zip(made.gpus.tolist(), made.duration.tolist(), strict=True), strict=True))
    compared = 0
    for job, run in runs.items():
        whole_node = run["name"] in ("excl", "exclgpu")  # held 4, asked for less
        asked = 4 if whole_node else int(run["gpus_asked"]) if run["gpus_asked"].isdigit() else 0
        if asked and run["real_end"] and (job in read or export.startswith("end")):
            gpus, seconds = read[job]
            assert gpus == asked, run["name"]
            assert seconds == pytest.approx(float(run["real_end"]) - float(run["real_start"]), abs=3), run["name"]
            compared += 1
    assert compared >= 15
