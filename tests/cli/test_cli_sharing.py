"""Two jobs on one GPU through the command line: where interference comes from, what is said once, every mistake one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from optsched.io.sources import load

pytestmark = pytest.mark.release

ROW = "{}\tpython3 x\tdir\t--n\t1\t{}\t1\t1\t-1\t{}"
LM, RESNET = "LM (batch size 5)", "ResNet-50 (batch size 16)"
TWO: dict[str, Any] = {
    "format": "optsched-instance/1",
    "name": "two",
    "cluster": {"nodes": [{"gpus": 1, "gpu_memory": 10}]},
    "jobs": [
        {"id": "a", "duration": 10, "gpu_memory": 4, "model": "A"},
        {"id": "b", "duration": 10, "gpu_memory": 6, "model": "B"},
    ],
}


def written(folder: Path, document: Any, name: str = "two.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(document))
    return path


@pytest.fixture
def two(tmp_path: Path) -> Path:
    return written(tmp_path, TWO)


# --- what it is worth -------------------------------------------------------------------------------------------------


def test_a_ratio_decides_whether_sharing_pays(two: Path, command: Any) -> None:
    for policy, xi, worth in [
        ("sjf-ffs", 1.25, 25),  # both at once: 12.5 each
        ("sjf-bsbf", 1.25, 25),
        ("sjf-ffs", 4, 80),
        ("sjf-bsbf", 4, 30),  # one after the other
        ("fifo", 1.25, 30),  # alone on its GPU
    ]:
        assert command("run", two, "-p", policy, "--interference", xi, "--json").value == worth, (policy, xi)


def test_each_direction_of_a_table_counts(tmp_path: Path, two: Path, command: Any) -> None:
    table = {"kinds": ["A", "B"], "ratios": [[1, 1.5], [3, 1]]}
    file = written(tmp_path, table, "table.json")
    # A ends at 15, by then B has done 5 of its 10 seconds
    assert command("run", two, "-p", "sjf-ffs", "--interference", file, "--json").value == 15 + 20
    table["ratios"] = [[1, None], [3, 1]]  # apart, whatever the other direction says
    file = written(tmp_path, table, "table.json")
    assert command("run", two, "-p", "sjf-ffs", "--interference", file, "--json").value == 30


def test_an_instance_keeps_its_interference_until_another_is_named(tmp_path: Path, two: Path, command: Any) -> None:
    kept = tmp_path / "kept.parquet"
    assert command("convert", two, "--interference", 1.25, "-o", kept).code == 0
    for more, worth in ((["--interference", 1.5], 30), ([], 25)):
        assert command("run", kept, "-p", "sjf-ffs", "--json", "-o", tmp_path / "out", "--force", *more).value == worth
    schedule = next((tmp_path / "out").glob("schedule-01*"))
    assert command("verify", schedule, "--instance", kept).code == 0
    assert command("verify", schedule, "--instance", two, "--interference", 1.25).code == 0
    refused = command("verify", schedule, "--instance", kept, "--interference", 1.5)
    assert refused.code != 0
    assert "Traceback" not in refused.err


def test_a_gavel_trace_beside_measured_interference(tmp_path: Path, command: Any) -> None:
    trace = tmp_path / "t.trace"
    trace.write_text("\n".join([ROW.format(LM, 7000, 0), ROW.format(RESNET, 700, 0)]) + "\n")
    where = (f"gavel:{trace}", "--cluster", "1x1:P100")
    alone = load(f"gavel:{trace}", cluster="1x1:P100")
    done = command("run", *where, "--interference", "p100", "-p", "sjf-ffs", "--json")
    assert done.err == ""
    speeds = alone.throughputs
    assert speeds is not None
    lm, resnet = (float(speeds.get(name, "P100", 1).together) for name in (LM, RESNET))  # type: ignore[union-attr]
    seconds = {LM: 7000 / lm, RESNET: 700 / resnet}
    # both start at 0; who ends first at its slow pace, and what the other has left then
    ends = {LM: seconds[LM] * 3.37, RESNET: seconds[RESNET] * 1.20}
    first, last = sorted(ends, key=ends.__getitem__)
    left = seconds[last] * (1 - ends[first] / ends[last])
    assert done.value == pytest.approx(2 * ends[first] + left)


def test_another_cluster_keeps_the_memory_of_the_gpus(two: Path, command: Any) -> None:
    def memory(**options: Any) -> tuple[set[float | None], list[str]]:
        said: list[str] = []
        found = load(two, cluster="2x1", say=said.append, **options)
        return {group.gpu_memory for group in found.cluster.nodes}, said

    assert memory(interference=1.25) == ({10.0}, ["GPUs of 2x1 have the memory of those of the instance, 10 bytes"])
    assert memory() == ({None}, [])  # nobody shares: memory is a matter of who fits where
    tight = {**TWO, "jobs": [{**job, "gpu_memory": 6} for job in TWO["jobs"]], "interference": {"ratio": 1.25}}
    file = written(two.parent, tight)
    done = command("run", file, "-p", "sjf-ffs", "--cluster", "1x1", "--json")
    assert done.value == 30  # 6 + 6 > 10 bytes
    assert "have the memory of those of the instance" in done.err
    mixed = {**tight, "cluster": {"nodes": [{"gpus": 1, "gpu_memory": 10}, {"gpus": 1, "gpu_memory": 20}]}}
    line = command("run", written(two.parent, mixed), "-p", "sjf-ffs", "--cluster", "1x1").mistake
    assert "those of the instance differ" in line


# --- what is said once ------------------------------------------------------------------------------------------------


def test_models_that_nobody_measured_are_named_once(two: Path, command: Any) -> None:
    policies = ("-p", "sjf-ffs", "-p", "sjf-bsbf", "-p", "fifo")
    done = command("run", two, *policies, "--interference", "p100", "--json")
    assert done.err == "optsched: interference: no measurements of A, B: beside others they run 2 x as long\n"
    assert done.value == 40  # at the ratio 2 of pairs that the table does not know


def test_a_report_says_where_its_interference_comes_from(two: Path, command: Any) -> None:
    for xi, told in [
        ("1.25", "interference: beside another job on its GPUs a job runs 1.25 x as long"),
        ("p100", "26 kinds of jobs, 2 for others (stanford-futuredata/gavel (MIT), co-located on one P100)"),
    ]:
        assert told in " ".join(
            command("run", two, "-p", "fifo", "--interference", xi).shown.split()
        )  # notes are folded at the width of the terminal
    assert "interference" not in command("run", two, "-p", "fifo").shown


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("xi", "told"),
    [
        ("0.9", "interference.ratio = 0.9: invalid (expected: a number from 1"),
        ({"kinds": ["A", "B"], "ratios": [[1, 1]]}, "not a square table"),
    ],
)
def test_interference_that_is_not_legal(xi: Any, told: str, two: Path, tmp_path: Path, command: Any) -> None:
    option = xi if isinstance(xi, str) else written(tmp_path, xi, "xi.json")
    for arguments in (
        ("run", two, "-p", "fifo", "-o", tmp_path / "out"),
        ("convert", two, "-o", tmp_path / "new.json"),
    ):
        assert told in command(*arguments, "--interference", option).mistake
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "new.json").exists()


def test_a_policy_that_shares_needs_interference(two: Path, tmp_path: Path, command: Any) -> None:
    assert (
        "sjf-bsbf shares GPUs, and nothing says what that costs"
        in command("run", two, "-p", "sjf-bsbf", "-o", tmp_path / "out").mistake
    )
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()  # a folder that was there before stays
    assert command("run", two, "-p", "sjf-bsbf", "-o", tmp_path / "out").code == 2
    assert list((tmp_path / "out").iterdir()) == []


def test_jobs_with_tasks_do_not_take_interference(tmp_path: Path, command: Any) -> None:
    document = {
        **TWO,
        "jobs": [{"id": "a", "iterations": 3, "profile": "net", "gpu_memory": 1}],
        "tasks": {"net": {"forward": 1, "backward": 1}},
    }
    assert (
        "interference = 1.5: jobs with tasks take turns on a GPU"
        in command("run", written(tmp_path, document), "--interference", 1.5).mistake
    )


def test_profiles_are_for_jobs_with_batch_sizes(tmp_path: Path, two: Path, command: Any) -> None:
    trace = tmp_path / "t.trace"
    trace.write_text(ROW.format(LM, 100, 0) + "\n")
    for source in (two, f"gavel:{trace}"):
        assert (
            "profiles" in command("run", source, "--cluster", "1x1:P100", "-p", "fifo", "--profiles", tmp_path).mistake
        )


# --- scaling profiles -------------------------------------------------------------------------------------------------


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    (tmp_path / "w.csv").write_text("name,time,application,num_replicas,batch_size\nx-0,5,cifar10,2,256\n")
    (tmp_path / "iterations.csv").write_text("application,batch_size,iterations\ncifar10,128,1000\ncifar10,256,500\n")
    return tmp_path / "w.csv"


def test_a_pollux_trace_runs_at_built_in_profiles(workload: Path, command: Any) -> None:
    run = ("run", f"pollux:{workload}", "--cluster", "1x4", "-p", "fifo")
    assert command(*run, "--json").value > 0
    read = load(f"pollux:{workload}", cluster="1x4", interference=1.5)
    assert read.jobs_at("scalings").size == read.n
    assert read.jobs[0].batch_size == 256
    given = load(f"pollux:{workload}", cluster="1x4", profiles=read.scalings)
    assert given.replace(interference=read.interference).digest == read.digest
    assert "no" in command(*run, "--profiles", workload.parent / "no").mistake


def test_measured_profiles(data_dir: Path, workload: Path) -> None:
    measured = load(f"pollux:{workload}", cluster="1x4", profiles=data_dir / "pollux")
    assert measured.jobs_at("scalings").size == measured.n
    assert measured.scalings["cifar10"].measured is not None
