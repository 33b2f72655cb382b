"""Exports of real Slurm clusters (22.05, 24.11, 26.05) in every form, compared with what the jobs themselves wrote down."""

from __future__ import annotations

import csv
from collections import defaultdict
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from right_readings import assert_read_rightly, right_reading

from optsched.errors import InputError
from optsched.io.cluster_files import cluster_of
from optsched.io.recognised import source_to_type
from optsched.io.traces.dialect import DIALECTS, TraceRead
from optsched.problem.cluster import Cluster

SECOND = 1.3  # Slurm cuts times to the second; a script starts and ends up to a second around them
RUNS = ("a-22.05", "a-24.11", "a-26.05", "c-22.05", "g-22.05", "g-26.05")
LARGE = Cluster.parse("40x100")
STATES = {
    **dict.fromkeys(("fail3", "sigkill", "arrfail"), "FAILED"),
    **dict.fromkeys(("timeout1", "timeout30s", "timeout90s"), "TIMEOUT"),
    **dict.fromkeys(("cancelrun", "cancelroot", "tail_run", "tail_cpu"), "CANCELLED"),
    "nodefailnr": "NODE_FAIL",
}
STOPPED = ("REQUEUED", "PREEMPTED", "NODE_FAIL")  # of a run; for two minutes the log does not show that the job goes on
WITHOUT_SCRIPT = {"15", "48", "49"}  # sigkill, direct, salloc: they ran, but did not write down when


def exports(folder: Path) -> list[Path]:
    texts = [folder.glob(f"*.{form}.txt") for form in ("short", "shortX", "shortD", "shortXD", "all")]
    return sorted([*chain(*texts), *folder.glob("*.json.gz")])


def shows_all_runs(path: Path) -> bool:
    form = path.name.split(".", 1)[1]
    return "D" in form or form.startswith("all") or ("json" in form and "22.05" in path.parent.name)


def truth_of(folder: Path) -> dict[str, list[dict[str, str]]]:
    """The runs of every job that wrote down when it ran, by the job's id in the log."""
    runs: dict[str, list[dict[str, str]]] = defaultdict(list)
    with (folder / "truth.csv").open(encoding="utf-8", newline="") as file:
        for run in csv.DictReader(file):
            if run["real_start"]:
                runs[f"{run['array_jobid']}_{run['array_task']}" if run["array_task"] else run["jobid"]].append(run)
    return {job: sorted(those, key=lambda run: int(run["restart"])) for job, those in runs.items()}


def gpus_held(run: dict[str, str]) -> int:
    by_name = {"excl": 4, "exclgpu": 4, "het": 1}  # whole nodes; one of two components
    return by_name.get(run["name"], int(run["gpus_asked"]) if run["gpus_asked"].isdigit() else 0)


def near(found: float, right: float) -> bool:
    return abs(found - right) <= SECOND


def assert_is_true(read: TraceRead, truth: dict[str, list[dict[str, str]]], path: Path, unit: str) -> int:
    """Compare all jobs of an export with the truth; return how many."""
    every, rows = shows_all_runs(path), {row["id"]: row for row in read.table.iter_rows(named=True)}
    expected: dict[str, tuple[float, list[dict[str, str]]]] = {}
    for job, runs in truth.items():
        shown = runs if every else runs[-1:]
        # without -D the submission of the last run is the moment at which the run before it was stopped
        submit = float(runs[0]["submit_epoch"] if every or len(runs) == 1 else runs[-2]["real_end"])
        if runs[-1]["real_end"] and (unit != "gpu" or gpus_held(runs[0])):
            expected[job] = (submit, shown)
    earliest = min(submit for job, (submit, _) in expected.items() if job in rows)
    bases = [int(earliest) + k for k in (0, 1)]
    wrong: list[list[Any]] = []
    for base in bases:
        wrong.append([])
        for job, (submit, runs) in expected.items():
            if job not in rows:
                continue
            row, name, state = rows[job], runs[0]["name"], STATES.get(runs[0]["name"], "COMPLETED")
            if row["status"] in STOPPED and len(truth[job]) > 1:
                runs, state = truth[job][: len(row["ran"])], row["status"]
                submit = float(runs[0]["submit_epoch"])
            ends = [(runs[0]["real_start"], 0, 0), (runs[-1]["real_end"], -1, 1)]
            ran = all(near(row["ran"][k][side] + base, float(at)) for at, k, side in ends)
            if name != "resize":  # its second piece is a change of size
                ran &= len(row["ran"]) == len(runs) and all(
                    near(piece[0] + base, float(run["real_start"])) and near(piece[1] + base, float(run["real_end"]))
                    for piece, run in zip(row["ran"], runs, strict=False)
                )
            fine = ran and near(row["arrival"] + base, submit) and row["status"] == state
            if not fine or (unit == "gpu" and row["gpus"] != gpus_held(runs[0])):
                wrong[-1].append((job, name, row, submit - base))
    assert min(wrong, key=len) == []
    last = max(row["ran"][-1][1] for row in rows.values()) + bases[0]
    lost = [
        job for job, (_, runs) in expected.items() if job not in rows and float(runs[-1]["real_end"]) < last - SECOND
    ]
    assert lost == []
    assert {row for row in rows if row not in expected} <= WITHOUT_SCRIPT
    return len(rows)


def compared(folder: Path, tag: str, unit: str) -> dict[str, int]:
    """Number of jobs of each export of a moment, all of which are true."""
    truth, jobs = truth_of(folder), {}
    for path in exports(folder):
        if path.name.startswith(tag):
            assert source_to_type(path) == f"slurm:{path}"
            read = DIALECTS.get("slurm").read(path, cluster=LARGE, unit=unit)
            jobs[path.name] = assert_is_true(read, truth, path, unit)
    return jobs


@pytest.mark.parametrize("folder", RUNS)
def test_every_form_is_read_as_what_the_jobs_did(data_dir: Path, folder: str) -> None:
    """Submission, start, end, GPUs and state of every job, in the eight forms of an export at the end."""
    jobs = compared(data_dir / "slurm" / folder, "end", "gpu")
    assert (len(jobs), len(set(jobs.values()))) == (8, 1), jobs


@pytest.mark.study
@pytest.mark.parametrize("folder", RUNS)
def test_jobs_without_gpus_too(data_dir: Path, folder: str) -> None:
    jobs = compared(data_dir / "slurm" / folder, "end", "cpu")
    assert (len(jobs), len(set(jobs.values()))) == (8, 1), jobs


@pytest.mark.study
@pytest.mark.parametrize("unit", ["gpu", "cpu"])
@pytest.mark.parametrize(
    ("folder", "tag"), [(f"a-{version}", tag) for version in ("22.05", "24.11", "26.05") for tag in ("mid", "final")]
)
def test_while_jobs_wait_and_run(data_dir: Path, folder: str, tag: str, unit: str) -> None:
    """Until a requeued job may start again, no form shows that it goes on: its runs so far are read, with their state."""
    assert len(compared(data_dir / "slurm" / folder, tag, unit)) >= 8


def read_at(path: Path, **options: Any) -> TraceRead:
    return DIALECTS.get("slurm").read(path, **options)


@pytest.mark.parametrize("folder", RUNS)
def test_the_same_cluster_from_text_json_and_csv_is_the_same_instance(
    data_dir: Path, tmp_path: Path, folder: str
) -> None:
    text = data_dir / "slurm" / folder / "end.shortD.txt"
    by_comma = tmp_path / "comma.csv"  # as sacct --delimiter=, prints it
    by_comma.write_text(text.read_text(encoding="utf-8").replace("|", ","), encoding="utf-8")
    read = [read_at(text), read_at(by_comma), read_at(text.with_name("end.D.json.gz"))]
    assert len({each.instance().digest for each in read}) == 1
    for each in read[1:]:
        assert each.table["ran"].to_list() == read[0].table["ran"].to_list()
        for name in ("walltime", "status", "user", "group"):
            assert each.table[name].to_list() == read[0].table[name].to_list(), name


@pytest.mark.parametrize(
    ("variant", "refused"),
    [
        ("clock-goes-back", ""),
        ("epoch", ""),
        ("new-york", ""),
        ("semicolon", ""),
        ("trailing-bar", ""),
        ("columns", "fixed width.*sacct with -P"),
        ("default", "fixed width.*sacct with -P"),
        ("default-P", r"lacks Submit, Start, End, AllocTRES.*TZ=UTC SLURM_TIME_FORMAT=%s sacct -a -D -P -S"),
        ("day-month-minutes", "without its seconds.*SLURM_TIME_FORMAT=%s"),
        ("relative", "without its date.*SLURM_TIME_FORMAT=%s"),
        ("no-header", "no header.*TZ=UTC"),
        ("truncated", "row 6, End = '2026-11-28T01:20:45'.*-T.*sacct without -T"),
        ("units-g", "lacks State, Submit, Start, End"),
    ],
)
def test_variants_are_read_as_the_same_jobs_or_refused_with_advice(data_dir: Path, variant: str, refused: str) -> None:
    folder = data_dir / "slurm" / "variants-22.05"
    if refused:
        with pytest.raises(InputError, match=refused) as caught:
            read_at(folder / f"{variant}.txt")
        assert "\n" not in str(caught.value)
        return
    read = read_at(folder / f"{variant}.txt")
    assert read.table.rows() == read_at(folder / "utc.txt").table.rows()
    assert any("clock went back" in line for line in read.recipe["parameters"]["said"]) == (
        variant == "clock-goes-back"
    )


def test_the_made_export_is_read_rightly(data_dir: Path) -> None:
    file = data_dir / "formats" / "sacct" / "sacct.txt"
    read = read_at(file)
    assert_read_rightly(read, right_reading(file))
    counts = {"cancelled before it started": 2, "no GPUs": 2, "still running at the export": 2, "still waiting": 10}
    assert read.recipe["parameters"]["left_out"] == counts


def test_an_export_without_gpus_says_which_setting_is_missing(data_dir: Path) -> None:
    folder = data_dir / "slurm" / "n-24.11"
    for path in (folder / "mid.short.txt", folder / "mid.all.txt", folder / "mid.json.gz"):
        with pytest.raises(InputError, match=r"no row has gres/gpu.*AccountingStorageTRES.*--unit cpu"):
            read_at(path)


@pytest.mark.parametrize(
    ("folder", "spec"),
    [("a-22.05", "3x4:a100+1x4:v100"), ("c-22.05", "2x8+1x2:h100+1x2:l40s"), ("g-26.05", "2x8+1x2:h100+1x2:l40s")],
)
def test_nodes_of_real_clusters(data_dir: Path, tmp_path: Path, folder: str, spec: str) -> None:
    nodes = data_dir / "slurm" / folder / "end.nodes.txt"
    lines = tmp_path / "nodes.txt"  # as without --oneliner
    lines.write_text(nodes.read_text().replace(" Gres=", "\n   Gres=").replace(" NodeAddr=", "\n   NodeAddr="))
    for path in (nodes, nodes.with_name("end.sinfo.txt"), lines):
        assert cluster_of(f"slurm-nodes:{path}") == Cluster.parse(spec)
