"""`optsched measure`: a real campaign of two processes, killed and continued, and its file in `fit` and `run`."""

from __future__ import annotations

import csv
import math
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import optsched as osd
from optsched.io.measurements import measured_interference, measured_scalings
from optsched.measure import device_times
from optsched.measure.device_times import CannotMeasure, campaign


def measured(path: Path, split: tuple[int, ...] = (), seconds: float = 0.02) -> int:
    plan = campaign("sharing", ["arithmetic"], split, "cpu", seconds, 1)
    return device_times.measure(plan, path, lambda *_: None)


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_a_campaign_is_measured_fitted_and_run(tmp_path: Path, command: Any) -> None:
    path = tmp_path / "sharing.csv"
    again = ("measure", "sharing", "--models", "arithmetic", "--seconds", 0.05, "--repetitions", 2, "-o", path)
    done = command(*again)
    assert "4 new" in done.out
    assert [row["beside"] + row["repetition"] for row in rows(path)] == [
        name + turn for turn in "12" for name in ("", "arithmetic", "arithmetic")
    ]
    assert all(float(row["low"]) <= float(row["seconds"]) <= float(row["high"]) for row in rows(path))
    fitted = command("fit", "interference", path, "--picture", tmp_path / "errors.png")
    assert "arithmetic beside arithmetic" in fitted.out
    assert (tmp_path / "errors.png").stat().st_size > 1000
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("arrival,gpus,duration,model\n0,1,3600,arithmetic\n60,1,1200,arithmetic\n")
    xi = measured_interference(path).model.slowdown("arithmetic", "arithmetic")
    together, in_turns = pytest.approx(2400 + 2400 * xi), pytest.approx(3600 + 4740)
    for policy, worth in (("sjf-ffs", [together]), ("sjf", [in_turns]), ("sjf-bsbf", [together, in_turns])):
        done = command("run", f"csv:{jobs}", "--cluster", "1x1", "--interference", path, "-p", policy, "--json")
        assert done.value in worth
    assert "0 new" in command(*again).out


def test_a_file_that_was_cut_off_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "sharing.csv"
    assert measured(path, (1, 2)) == 5
    whole, groups = path.read_text().splitlines(keepends=True), [row["group"] for row in rows(path)]
    for kept, new in ((whole[:2], 4), ([*whole[:4], whole[4][:20]], 3), (whole[:1], 5), ([], 5)):
        path.write_text("".join(kept))  # after a single row of a pair, and within a row
        assert measured(path, (1, 2)) == new
        assert [row["group"] for row in rows(path)] == groups


def test_another_campaign_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sharing.csv"
    measured(path)
    before = path.read_bytes()
    with pytest.raises(CannotMeasure, match=r"row 2: window = '0.02' \(expected: '0.03', as now"):
        measured(path, seconds=0.03)
    assert path.read_bytes() == before
    path.write_text("model,seconds\n")
    with pytest.raises(CannotMeasure, match="no measurements of this command"):
        measured(path)


@pytest.mark.release
def test_the_file_runs_without_optsched_and_keeps_its_rows_when_it_is_interrupted(tmp_path: Path) -> None:
    words = [sys.executable, "-I", device_times.__file__, "sharing", "--models", "arithmetic", "--seconds", "0.3"]
    process = subprocess.Popen([*words, "--repetitions", "500"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    path = tmp_path / "sharing.csv"
    while not path.exists() or path.read_text().count("\n") < 3:
        time.sleep(0.05)
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert said.splitlines()[-1].endswith("keeps what was measured, the same command continues")
    assert subprocess.run(["ps", "-p", ",".join(children.stdout.split())], capture_output=True).returncode == 1
    assert all(row["seconds"] for row in rows(path))


def test_pairs_that_do_not_fit_are_never_shared(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("model,beside,seconds,problem\na,,1,\nb,,2,\na,b,,memory\nb,a,,memory\na,a,1.5,\n")
    table = measured_interference(path).model
    assert [table.slowdown(*pair) for pair in ("ab", "ba", "bb")] == [math.inf, math.inf, 2.0]
    path.write_text("model,beside,seconds,problem\na,,,memory\n")
    with pytest.raises(osd.InputError, match=r"problem.*empty for a model alone"):
        measured_interference(path)


def test_sub_batches_are_kinds_and_the_jobs_choose(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    head = "model,beside,batch,steps,beside_batch,beside_steps,seconds\n"
    path.write_text(head + "a,,64,1,,,1\na,,64,4,,,1.2\na,a,64,1,64,1,1.9\na,a,64,4,64,4,1.5\na,a,64,1,64,4,1.6\n")
    assert measured_interference(path).model.kinds == ("a@16", "a@64")
    jobs = [
        osd.Job(f"j{k}", gpus=2, duration=5, model="a", batch_size=samples) for k, samples in enumerate((30, 30, 200))
    ]
    said: list[str] = []
    source = tmp_path / "plain.json"
    osd.Instance(jobs, "1x2").save(source)
    table = osd.load(source, interference=path, say=said.append).interference
    assert table is not None
    assert (table.kinds, table.slowdown("a", "a")) == (("a",), pytest.approx(1.25))
    assert said == ["interference: ratios of the sub-batches a@16"]


def test_sub_steps_are_fitted(tmp_path: Path) -> None:
    path, lines = tmp_path / "batches.csv", ["model,gpus,batch,steps,seconds"]
    for batch in (64, 32):
        lines += [f"a,1,{batch},{s},{s * 0.01 + 0.002 * batch}" for s in (1, 2, 4, 8)]
    path.write_text("\n".join(lines))
    model = measured_scalings(path)["a"].model
    assert (model.compute, model.per_sample) == (pytest.approx(0.01), pytest.approx(0.002))
    path.write_text("model,gpus,batch,steps,seconds\na,2,64,2,1\n")
    with pytest.raises(osd.InputError, match=r"steps.*1 for several GPUs"):
        measured_scalings(path)


def test_splits_and_mistakes(command: Any) -> None:
    assert [load.steps for (load,) in campaign("batches", ["arithmetic"], [], "cpu", 1, 1).groups] == [
        1,
        2,
        4,
        8,
        1,
        2,
        4,
    ]
    for words, said in (
        ("pairs", "KIND = 'pairs'"),
        ("sharing --models resnet", "--models = 'resnet'"),
        ("sharing --seconds 0", "--seconds = 0"),
        ("batches --split 1,x", "--split = '1,x'"),
        ("sharing -o x.txt", ".csv"),
    ):
        assert said in command("measure", *words.split()).mistake


@pytest.mark.parametrize("name", [name for name in device_times.WORKLOADS if name not in device_times.WITHOUT_TORCH])
def test_networks_train(name: str) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch (the extra measure)")
    samples, build = device_times.WORKLOADS[name]
    build(torch, "cpu", 0, samples[0], 2)()
