"""The command line as a script sees it: JSON on stdout, one clear line on stderr, exit codes."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from optsched.guarantees.judge import METHOD_THEOREMS
from optsched.guarantees.weighted_completion_times import LP_ORDER
from optsched.io.sources import load
from optsched.problem.instance import Instance, Job

METRICS = {
    "mean_jct",
    "mean_bsld",
    "p95_bsld",
    "p50_jct",
    "p95_jct",
    "p99_jct",
    "makespan",
    "total_completion_time",
    "total_weighted_completion_time",
    "total_flow_time",
    "max_flow_time",
    "mean_queueing",
    "utilization",
    "max_ftf",
    "mean_ftf",
    "gpu_hours",
    "finished",
    "unfinished",
    "jobs",
}


def test_run_json_has_the_fields_of_the_contract(command: Any, small: Path) -> None:
    document = command("run", small, "-p", "fifo", "-p", "srtf", "--json").document
    assert document["instance"] == {"name": "small", "jobs": 3, "gpus": 2, "skipped_rows": 0}
    assert document["objective"] == "total_completion_time"
    fifo, srtf = document["runs"]
    assert set(fifo) == {
        "policy",
        "knowledge",
        "value",
        "bound",
        "ratio",
        "ratio_to",
        "guarantee",
        "metrics",
        "events",
        "seconds",
    }
    assert set(fifo["bound"]) == {"value", "kind", "class", "exact"}
    assert set(fifo["metrics"]) == METRICS
    hours = {"busy", "overhead", "idle", "waiting", "queued_avoided", "queued_avoidable"}
    assert set(fifo["metrics"]["gpu_hours"]) == hours
    assert fifo["value"] == 4 + 7 + 9
    assert srtf["value"] == 3 + 5 + 9  # b and c first; at 3 c has less left than a needs
    assert fifo["knowledge"] == "non-clairvoyant"
    assert (fifo["guarantee"]["id"], fifo["guarantee"]["objective"]) == ("fifo-gangs", "makespan")
    assert srtf["guarantee"] is None
    assert fifo["ratio"] == pytest.approx(fifo["value"] / fifo["bound"]["value"])


def test_run_without_policies_runs_three(command: Any, small: Path) -> None:
    assert [line["policy"] for line in command("run", small, "--json").json["runs"]] == ["fifo", "sjf", "srtf"]


def test_objective_option_wins_over_the_instance(command: Any, small: Path) -> None:
    document = command("run", small, "-p", "sjf", "--objective", "makespan", "--json").json
    assert document["objective"] == "makespan"
    assert document["runs"][0]["value"] == document["runs"][0]["metrics"]["makespan"]


def test_queued_hours_avoided_are_against_the_first_policy(command: Any, small: Path) -> None:
    first, second = command("run", small, "-p", "fifo", "-p", "sjf", "--json").json["runs"]
    assert first["metrics"]["gpu_hours"]["queued_avoided"] == 0
    waiting = [line["metrics"]["gpu_hours"]["waiting"] for line in (first, second)]
    assert second["metrics"]["gpu_hours"]["queued_avoided"] == pytest.approx(waiting[0] - waiting[1])


def test_run_writes_what_verify_accepts(command: Any, small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert command("run", small, "-p", "fifo", "-p", "srtf", "-o", folder, "--json").code == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["certificate.json", "result.json", "schedule-01-fifo.json", "schedule-02-srtf.json"]
    for name in names:
        if name != "result.json":
            done = command("verify", folder / name, "--instance", small, "--json")
            assert (done.code, done.json["holds"]) == (0, True), done.out
    tampered = json.loads((folder / "schedule-01-fifo.json").read_text())
    tampered["segments"][0]["end"] += 1
    (folder / "schedule-01-fifo.json").write_text(json.dumps(tampered))
    done = command("verify", folder / "schedule-01-fifo.json", "--instance", small)
    assert done.code == 1
    assert "capacity" in done.err


def test_solve_finds_and_saves_the_optimum(command: Any, small: Path, tmp_path: Path) -> None:
    done = command("solve", small, "-o", tmp_path / "best.json", "--json")
    document = done.json
    keys = ["status", "objective", "value", "bound", "gap", "model", "solver", "rows", "columns", "nonzeros", "seconds"]
    assert set(document) == set(keys)
    assert (document["status"], document["value"], document["bound"]) == ("optimal", 17, 17)
    assert command("verify", tmp_path / "best.json", "--instance", small).code == 0


def test_solve_holds_the_theorem_on_a_method_against_what_it_finds(
    command: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    ask = "solve", "single-06-1", "--model", "lp-order", "--objective", "total_weighted_completion_time"
    found = command(*ask, "--json").json["guarantee"]
    assert (found["id"], found["value"], found["bound"], found["holds"]) == ("lp-order", 257, 242, True)
    assert "lp-order: <= 1.746 x optimum holds" in command(*ask).out
    assert "guarantee" not in command(*ask[:4], "--json").json  # total_completion_time: it says nothing of that
    monkeypatch.chdir(tmp_path)
    Instance([Job("a", 2, duration=3)], "1x1").save("one.json")
    proved = command("solve", "one.json", *ask[2:], "--json").json
    assert (proved["status"], proved.get("guarantee")) == ("optimal", None)  # an optimum needs no factor
    monkeypatch.setitem(METHOD_THEOREMS._things, "lp-order", replace(LP_ORDER, ratio=Fraction(1)))
    broken = command(*ask)
    assert broken.code == 1
    assert "breaks the guarantee 'lp-order'" in broken.err
    assert [path.name.split("-lp-order-")[0] for path in tmp_path.glob("v*.json")] == ["violated"]


def test_bound_saves_a_certificate(command: Any, small: Path, tmp_path: Path) -> None:
    assert command("bound", small, "-o", tmp_path / "low.json", "--json").document["class"] == "gang"
    assert command("verify", tmp_path / "low.json", "--instance", small).code == 0
    assert command("verify", tmp_path / "low.json", "--instance", small, "--cluster", "1x4").code == 1


def test_bound_says_when_nothing_stronger_is_computed(command: Any, small: Path) -> None:
    plain = command("bound", small, "--strong", "--objective", "makespan")
    assert plain.code == 0
    assert "--strong adds nothing" in plain.err
    assert "--strong" not in command("bound", small, "--objective", "makespan").err


def test_a_known_optimum_is_used_for_its_own_class(command: Any, tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    load("rigid-06-1").save(path)  # another file of a shipped instance: the same digest
    for source in ("rigid-06-1", path):
        done = command("run", source, "-p", "sjf", "-p", "srtf", "--json")
        sjf, srtf = done.json["runs"]
        assert sjf["ratio_to"] == "optimum"
        best = load("rigid-06-1").optimum["value"]
        assert sjf["bound"] == {"value": best, "kind": "known-optimum", "class": "gang-nonpreemptive", "exact": True}
        assert srtf["bound"]["class"] == "gang"
        assert "states" not in done.err


def test_a_stated_optimum_that_nobody_proved_is_in_no_ratio(command: Any, tmp_path: Path) -> None:
    path = tmp_path / "stated.json"
    optimum = {"objective": "total_completion_time", "class": "gang-nonpreemptive", "value": 17, "proved_by": ["hand"]}
    jobs = [Job("a", gpus=2, duration=4), Job("b", duration=3), Job("c", duration=5)]
    Instance(jobs, "1x2", objective="total_completion_time", optimum=optimum).save(path)
    for name in ("run", "ratio"):
        done = command(name, path, "-p", "sjf", "--json")
        rows = done.json["runs"] if name == "run" else done.json["policies"][0]["instances"]
        assert rows[0]["bound"]["kind"] != "known-optimum"
        told = "states an optimum of 17 (class gang-nonpreemptive), not proved here: `optsched solve` proves one"
        assert told in done.err
        assert done.err.count("\n") == 1


def test_a_refuted_optimum_is_an_error(command: Any, tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    optimum = {"objective": "total_completion_time", "class": "gang-nonpreemptive", "value": 30}
    Instance([Job("a", duration=4)], "1x2", objective="total_completion_time", optimum=optimum).save(path)
    assert "refuted" in command("run", path).mistake


def test_generate_convert_and_run(command: Any, tmp_path: Path) -> None:
    made = tmp_path / "made.json"
    assert command("generate", "rigid", "--set", "jobs=7", "--seed", "3", "-o", made, "--json").code == 0
    assert command("convert", made, "-o", tmp_path / "made.parquet").code == 0
    assert Instance.load(made).digest == Instance.load(tmp_path / "made.parquet").digest
    assert command("run", tmp_path / "made.parquet", "-p", "wspt", "--json").code == 0


KINDS = "policies placements models bounds objectives instances recipes dialects devices guarantees suites"


@pytest.mark.parametrize("kind", KINDS.split())
def test_list_names_everything(command: Any, kind: str) -> None:
    rows = command("list", kind, "--json").json[kind]
    assert rows
    assert all(row["name"] and row["text"] for row in rows)


def test_random_placement_follows_the_seed(command: Any, tmp_path: Path) -> None:
    made = tmp_path / "made.json"
    command("generate", "poisson", "--set", "jobs=40", "--set", "cluster=4x4", "-o", made)

    def segments(seed: int) -> Any:
        folder = tmp_path / str(seed)
        command("run", made, "-p", "fifo+random", "--seed", seed, "-o", folder, "--force")
        return json.loads(next(folder.glob("schedule-*")).read_text())["segments"]

    assert segments(1) != segments(2)
    assert segments(1) == segments(1)


LOG = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
BAD = {
    "missing file": (["run", "none.json"], "none.json"),
    "missing trace": (["run", "philly:none.csv", "--cluster", "8x8"], "none.csv"),
    "wrong dialect": (["run", "philly:{log}", "--cluster", "1x2"], "timestamp"),
    "empty trace": (["run", "tiresias:{empty}", "--cluster", "1x2"], "empty"),
    "no cluster": (["run", "tiresias:{log}"], "cluster"),
    "gang too large": (["run", "{small}", "--cluster", "1x1"], "gpus"),
    "unknown policy": (["run", "{small}", "-p", "sjff"], "sjf"),
    "unknown suite": (["ratio", "singel", "-p", "fifo"], "single"),
    "unknown policy of a suite": (["ratio", "single", "-p", "fifu"], "fifo"),
    "no policy": (["ratio", "single"], "--policy"),
    "unknown objective of a suite": (["ratio", "single", "-p", "fifo", "--objective", "makspan"], "makespan"),
    "unknown objective": (["run", "{small}", "--objective", "total_flowtime"], "total_flow_time"),
    "unknown model": (["solve", "{small}", "--model", "time-index"], "time-indexed"),
    "unwritable folder": (["run", "{small}", "-o", "no/such/folder"], "no/such/folder"),
    "unwritable file": (["bound", "{small}", "-o", "no/such/file.json"], "no/such/file.json"),
    "unwritable schedule": (["solve", "{small}", "-o", "no/such/file.json"], "no/such/file.json"),
    "truncated JSON": (["run", "{truncated}"], "truncated"),
    "truncated Parquet": (["run", "{parquet}"], "Parquet"),
    "truncated certificate": (["verify", "{truncated}", "--instance", "{small}"], "truncated"),
    "unknown kind": (["list", "polices"], "policies"),
    "unknown option": (["run", "{small}", "--foo"], "--foo"),
    "bad limit": (["run", "{small}", "--limit", "0"], "limit"),
    "bad suffix": (["convert", "{small}", "-o", "x.txt"], ".json"),
    "bad time limit": (["solve", "{small}", "--time-limit", "-1"], "time"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_line_and_exit_2(
    command: Any, case: str, small: Path, written: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = small.read_text()
    Instance.load(small).save(tmp_path / "whole.parquet")
    files = {"small": whole, "log": LOG + "0,1,0,5,m,5,1\n", "empty": "", "truncated": whole[:150]}
    files["parquet"] = (tmp_path / "whole.parquet").read_bytes()[:200]
    places = {name: written(content, f"{name}.json").name for name, content in files.items() if name != "parquet"}
    places["parquet"] = written(files["parquet"], "cut.parquet").name
    before = sorted(path.name for path in tmp_path.iterdir())
    arguments, expected = BAD[case]
    done = command(*(argument.format(**places) for argument in arguments))
    assert done.code == 2
    assert expected in done.err
    assert "Traceback" not in done.err
    rows = done.err.strip().splitlines()
    assert len([row for row in rows if not row.startswith("  ")]) == 1, done.err
    assert done.out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "arguments", [["solve", "{small}"], ["convert", "{small}"], ["generate", "poisson"]], ids=lambda a: a[0]
)
def test_a_name_of_no_format_is_refused_before_the_work(
    command: Any, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("too late")

    monkeypatch.setattr("optsched.io.sources.load_counted", never)
    monkeypatch.setattr("optsched.io.traces.generate.generate", never)
    done = command(*(argument.format(small=small) for argument in arguments), "-o", str(tmp_path / "x.txt")).mistake
    assert ".json or .parquet" in done


@pytest.mark.parametrize("name", ["weights", "times"])
def test_numbers_whose_sums_overflow_are_refused_when_read(command: Any, written: Any, name: str) -> None:
    jobs = {"weights": {"weight": 1e300, "duration": 1e10}, "times": {"duration": 1e308}}[name]
    document = {"format": "optsched-instance/1", "cluster": {"nodes": [{"gpus": 2}]}, "jobs": [jobs, jobs]}
    assert "at most 1e+18" in command("run", written(document), "--json").refusal


def test_all_bad_rows_are_reported_at_once_and_can_be_skipped(command: Any, written: Any) -> None:
    rows = ["0,1,0,5,m,5,1", "1,0,0,5,m,5,1", "2,1,-3,5,m,5,1", "3,1,0,5,m,nan,1", "4,9,0,5,m,5,1", "5,2,4,5,m,2,1"]
    path = written(LOG + "\n".join(rows) + "\n", "log.csv")
    summary, *lines = command("run", f"tiresias:{path}", "--cluster", "1x2").refusal.splitlines()
    assert "4 of 6" in summary
    assert [int(line.split("row ")[1].split(",")[0]) for line in lines] == [3, 4, 5, 6]
    kept = command("run", f"tiresias:{path}", "--cluster", "1x2", "--skip-bad", "--json").json
    assert kept["instance"]["skipped_rows"] == 4
    assert kept["instance"]["jobs"] == 2


@pytest.mark.study
def test_the_whole_philly_trace(command: Any, data_dir: Path) -> None:
    source = f"philly:{data_dir / 'philly' / 'philly.csv'}"
    policies = ("fifo:skip=true", "srtf", "tiresias")
    arguments = [part for policy in policies for part in ("-p", policy)]
    document = command("run", source, "--cluster", "64x8", *arguments, "--json").json
    assert document["instance"]["jobs"] == 82247
    for line in document["runs"]:
        assert line["metrics"]["finished"] == 82247
        assert line["metrics"]["unfinished"] == 0
        assert line["ratio"] >= 1
        assert line["bound"]["class"] == "gang"
