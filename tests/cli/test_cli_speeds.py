"""Speeds on the command line: stage graphs, tasks and their contention, tables of throughputs; every mistake is one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from problem.documents import Change, put

# -- Bad stage graphs, bandwidths and predictors on the command line: one clear line, exit code 2, nothing written --------


pytestmark = pytest.mark.release

GOOD: dict[str, Any] = {
    "format": "optsched-instance/1",
    "cluster": {"nodes": [{"count": 2, "gpus": 4, "nic_bandwidth": 5e9, "intra_bandwidth": 25e9}]},
    "profiles": {
        "m": {
            "stages": [
                {"name": "a", "replicas": 2, "forward": 0.1, "backward": 0.2, "parameters": 1e9, "activations": 1e6},
                {"name": "b", "replicas": 1, "forward": 0.1, "backward": 0.2},
            ]
        }
    },
    "jobs": [{"id": "x", "gpus": 3, "iterations": 10, "profile": "m"}],
}


TEXTS = {
    "a-srpt:predictor=forrest": "did you mean forest?",
    "a-srpt:predictor=forest/trees": "trees=...",
    "a-srpt:overtake=-1": "a number >= 0; inf: no limit",
    "a-srpt+heavy-edge:variant=best": "variants: auto, plain, multi-seed, local-search",
}


@pytest.mark.parametrize("policy", TEXTS)
def test_bad_policies_and_predictors(policy: str, written: Any, command: Any) -> None:
    assert TEXTS[policy] in command("run", written(GOOD), "-p", policy).mistake


def test_a_good_profile_runs_and_states_its_guarantee(written: Any, command: Any) -> None:
    asked = ("run", written(GOOD), "-p", "a-srpt", "-p", "spjf", "--objective", "total_completion_time", "--json")
    ours, baseline = command(*asked).document["runs"]
    assert ours["guarantee"]["id"] == "a-srpt"
    assert ours["guarantee"]["holds"] is True
    assert ours["guarantee"]["value"] <= ours["guarantee"]["ratio"] * ours["guarantee"]["bound"]
    assert baseline["guarantee"] is None


def test_a_factor_beyond_all_floats_promises_nothing(written: Any, command: Any) -> None:
    path = written({**GOOD, "profiles": {}, "jobs": [{"duration": 1e9}]})
    (run,) = command("run", path, "-p", "a-srpt:predictor=group-mean/prior=1e-300", "--json").document["runs"]
    assert run["guarantee"] is None


def test_seconds_at_the_speed_of_a_profile_have_the_range_of_durations(written: Any, command: Any) -> None:
    path = written(put("profiles", "m", "stages", 0, "forward", to=1e300)(GOOD))
    assert "job 'x' takes from" in command("run", path, "-p", "fifo").refusal


# -- Jobs with tasks through the command line: what a run writes can be verified, every mistake is one clear line ---------


DOCUMENT: dict[str, Any] = {
    "format": "optsched-instance/1",
    "cluster": {"nodes": [{"count": 2, "gpus": 2, "gpu_memory": 16}]},
    "tasks": {"vgg": {"forward": 0.5, "backward": 1, "message": 8}, "lone": {"forward": 1, "backward": 1}},
    "contention": {"seconds_per_byte": 0.5, "penalty": 0.125},
    "jobs": [
        {"id": "a", "gpus": 3, "iterations": 2, "profile": "vgg", "gpu_memory": 8},
        {"id": "b", "gpus": 4, "iterations": 3, "profile": "vgg", "gpu_memory": 8},
        {"id": "c", "arrival": 1, "gpus": 1, "iterations": 3, "profile": "lone", "gpu_memory": 8},
    ],
}


@pytest.fixture
def source(written: Callable[..., Path]) -> Path:
    return written(DOCUMENT)


def test_a_run_is_bounded_written_and_verified(source: Path, tmp_path: Path, command: Any) -> None:
    out = tmp_path / "out"
    document = command("run", source, "--json", "-o", out).document
    assert [run["policy"] for run in document["runs"]] == ["srsf:k=1", "srsf:k=2", "ada-srsf", "leader-first"]
    for run in document["runs"]:
        assert run["bound"]["class"] == "task-sharing"
        assert run["ratio"] >= 1
        assert run["metrics"]["finished"] == 3
        assert run["metrics"]["gpu_hours"]["busy"] * 3600 == pytest.approx(1.5 * (6 + 12) + 6)
    files = sorted(path.name for path in out.iterdir())
    kinds = [name.partition("-")[0] for name in files]
    assert kinds == ["certificate.json", "result.json", *["schedule"] * 4, *["tasks"] * 4]
    for name in files:
        if name != "result.json":
            assert command("verify", out / name, "--instance", source).code == 0, name
    assert command("bound", source, "--json").code == 0


@pytest.mark.parametrize(
    ("change", "arguments", "said"),
    [
        (put("contention", "penalty", to=-0.125), ("-p", "ada-srsf"), ["ada-srsf", "eta >= 0", "-0.125"]),
        (put("contention", "penalty", to=-0.125), ("-p", "k-way"), ["k-way", "eta >= 0"]),
        (put("contention", "penalty", to=-0.5), (), ["contention.penalty", "> -0.5"]),
        (put("contention", "seconds_per_byte", to=0), (), ["seconds_per_byte", "0"]),
        (put("contention", to=...), (), ["contention", "missing", "'a'"]),
        (put("jobs", 1, "gpu_memory", to=17), (), ["job 2 ('b', line 1)", "gpus = 4", "at most 0", "memory"]),
        (put("jobs", 1, "gpus", to=5), (), ["job 2 ('b', line 1)", "gpus = 5", "at most 4"]),
        (put("tasks", "vgg", "message", to=0), (), ["tasks.vgg.message", "0", "greater than 0"]),
        (put("tasks", "vgg", "forward", to=-1), (), ["tasks.vgg.forward", "-1"]),
        (put("jobs", 0, "profile", to="vg"), (), ["job 1 ('a', line 1)", "profile = 'vg'", "did you mean vgg"]),
        (put("jobs", 0, "iterations", to=2.5), (), ["job 1 ('a', line 1)", "iterations = 2.5", "a whole number"]),
        (put("jobs", 0, "duration", to=2), ("-p", "ada-srsf"), ["ada-srsf", "some of these jobs have none"]),
        (dict, ("-p", "srsf+lwf:kappa=0"), ["lwf: kappa", "0", "an integer >= 1"]),
        (dict, ("-p", "srsf:k=0"), ["srsf: k", "an integer >= 1"]),
        (dict, ("-p", "ada-srsf:theta=-1"), ["theta", "-1"]),
        (dict, ("-p", "ada-srsf+consolidated"), ["consolidated", "whole GPUs", "lwf"]),
        (dict, ("-p", "srtf"), ["srtf", "whole jobs", "ada-srsf"]),
        (put("contention", "kinds", to=["vgg"]), (), ["contention.ratios", "square"]),
    ],
)
def test_a_mistake_is_one_clear_line(
    change: Change, arguments: tuple[str, ...], said: list[str], written: Any, tmp_path: Path, command: Any
) -> None:
    err = command("run", written(change(DOCUMENT)), *arguments, "-o", tmp_path / "out").refusal
    assert len(err.splitlines()) <= 2, err  # bad rows: a summary, then a line a row
    for part in said:
        assert part in err, err
    assert not list((tmp_path / "out").glob("*")) if (tmp_path / "out").exists() else True


def test_eta_below_zero_runs_under_rules_that_need_no_theorem(written: Any, command: Any) -> None:
    path = written(put("contention", "penalty", to=-0.125)(DOCUMENT))
    document = command("run", path, "-p", "srsf:k=2", "-p", "ada-srsf:theta=0.4", "--json").document
    assert all(run["ratio"] >= 1 for run in document["runs"])


def test_what_is_not_made_for_jobs_with_tasks_says_so(source: Path, command: Any) -> None:
    for arguments in (("solve", source), ("bound", source, "--class", "gang")):
        assert "share GPUs" in command(*arguments).mistake


# -- Traces that name models, through the command line: speeds from a table, gaps told once, every mistake one clear line.


TABLE: dict[str, Any] = {
    "v100": {"('net', 1)": {"null": 10.0}, "('net', 2)": {"null": 18.0}, "('none', 1)": {"null": 0.0}},
    "v100_unconsolidated": {"('net', 2)": {"null": 8.0}},
    "k80": {"('net', 1)": {"null": 2.0}, "('net', 2)": {"null": 0.0}, "('none', 1)": {"null": 0.0}},
}


@pytest.fixture
def trace(gavel: Callable[..., str]) -> str:
    return gavel(("net", 180, 2, 0), ("net", 100, 1, 1))


@pytest.fixture
def table(written: Callable[..., Path]) -> Path:
    return written(TABLE, "table.json")


@pytest.fixture
def made(trace: str, table: Path, tmp_path: Path, command: Any) -> Path:
    """An instance file of both."""
    path = tmp_path / "made.json"
    assert command("convert", trace, "--cluster", "1x2:V100", "--throughputs", table, "-o", path).code == 0
    return path


def test_jobs_run_at_the_speeds_of_the_table(trace: str, table: Path, tmp_path: Path, command: Any) -> None:
    where = ("--cluster", "1x2:V100+1x1:K80", "--throughputs", table)
    done = command("run", trace, *where, "-p", "fifo", "--json", "-o", tmp_path / "out")
    assert done.err == ""
    run = done.document["runs"][0]
    assert run["value"] == 10 + 50  # the pair on the V100s (no K80 holds it), the single job on the K80
    assert run["bound"]["value"] <= 10 + 19  # the best schedule runs the single job after the pair
    schedule = tmp_path / "out" / "schedule-01-fifo.json"
    assert command("verify", schedule, "--instance", trace, *where).code == 0
    assert command("convert", trace, *where, "-o", tmp_path / "i.json").code == 0
    assert command("verify", schedule, "--instance", tmp_path / "i.json").code == 0
    assert command("verify", tmp_path / "out" / "certificate.json", "--instance", tmp_path / "i.json").code == 0


def test_what_is_derived_is_said_once_and_can_be_refused(trace: str, table: Path, command: Any) -> None:
    where = (trace, "--cluster", "1x2:V100+1x2:P100", "--throughputs", table, "-p", "fifo", "--json")
    done = command("run", *where)
    assert done.document["runs"]
    assert done.err.count("\n") == 1
    assert "P100 = 0.605 x v100" in done.err
    assert "no such row" in command("run", *where, "--strict-throughputs").mistake


def test_the_built_in_table_serves_where_none_is_named(gavel: Any, command: Any) -> None:
    trace = gavel(("A3C", 718, 1, 0))
    run = command("run", trace, "--cluster", "1x1:V100", "-p", "fifo", "--json")
    assert run.value == pytest.approx(100, rel=1e-3)
    assert "--cluster 8x8:V100" in command("run", trace, "--cluster", "1x1", "-p", "fifo").mistake


def test_a_bad_table_is_one_line(trace: str, written: Any, tmp_path: Path, command: Any) -> None:
    path, out = written({"k80": {"('net', 1)": {"null": -2.0}}}, "bad.json"), tmp_path / "i.json"
    line = command("convert", trace, "--cluster", "1x2:V100", "--throughputs", path, "-o", out).mistake
    assert "k80.('net', 1).null" in line
    assert str(path) in line
    assert not out.exists()


def test_unknown_models_are_named_by_row_and_can_be_skipped(
    gavel: Any, tmp_path: Path, table: Path, command: Any
) -> None:
    trace = gavel(("net", 180, 2, 0), ("nett", 1, 1, 0), ("x", 1, 1, 0))
    where = (trace, "--cluster", "1x2:V100", "--throughputs", table)
    err = command("convert", *where, "-o", tmp_path / "i.json").refusal
    assert "2 of 3 rows invalid" in err
    assert "row 2, job_type = 'nett': unknown model" in err
    assert "row 3" in err
    assert not (tmp_path / "i.json").exists()
    assert command("run", *where, "-p", "fifo", "--skip-bad", "--json").document["instance"]["skipped_rows"] == 2


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ("4x2:K80", "throughput of zero for every type"),
        ("1x1:V100+4x2:K80", "row 1, gpus = 2: the gang is larger"),
    ],
)
def test_a_job_that_no_type_has_room_for(cluster: str, said: str, gavel: Any, table: Path, command: Any) -> None:
    where = (gavel(("net", 9, 2, 0)), "--cluster", cluster, "--throughputs", table)
    assert said in command("run", *where, "-p", "fifo").refusal


def test_an_instance_file_takes_another_table(made: Path, written: Any, command: Any) -> None:
    faster = written({"v100": {"('net', 1)": {"null": 20.0}, "('net', 2)": {"null": 36.0}}}, "faster.json")
    for more, worth in (([], 10 + 19), (["--throughputs", faster], 5 + 9)):
        assert command("run", made, *more, "-p", "fifo", "--json").value == worth


def test_an_instance_file_moves_to_gpu_types_that_its_table_does_not_know(made: Path, command: Any) -> None:
    done = command("run", made, "--cluster", "1x2:h100", "-p", "fifo", "--json")
    assert done.err.count("\n") == 1
    assert "h100 = 7.91 x v100 (FP16 tensor) for net on 2, net on 1" in done.err
    # 10 s and then 10 s on V100s, one after the other from 0: completions 10 and 20
    assert done.document["runs"][0]["metrics"]["makespan"] == pytest.approx(20 * 125 / 989)
    done = command("run", made, "--cluster", "1x2:h100", "-p", "fifo", "--strict-throughputs").refusal
    assert "unknown, for every GPU type" in done
    # a type that the table knows, without a rate for the pair, stays closed to it, and one of no known peak to all
    done = command("run", made, "--cluster", "1x2:V100+1x2:mine", "-p", "fifo", "--json")
    assert done.err == ""
    assert done.document["runs"][0]["metrics"]["makespan"] == 20
    assert "unknown, for every GPU type" in command("run", made, "--cluster", "1x2:mine", "-p", "fifo").refusal


def test_strict_refuses_what_a_file_derived(trace: str, table: Path, tmp_path: Path, command: Any) -> None:
    kept = tmp_path / "i.json"
    where = ("--cluster", "1x2:V100+1x2:P100", "--throughputs", table)
    assert command("convert", trace, *where, "-o", kept).code == 0
    assert "a rate that was not measured" in command("run", kept, "--strict-throughputs", "-p", "fifo").mistake
    assert command("run", kept, "--throughputs", table, "-p", "fifo", "--json").code == 0


def test_an_instance_file_with_an_unknown_model_and_a_stage_profile(written: Any, table: Path, command: Any) -> None:
    stage = {"replicas": 1, "forward": 1, "backward": 1}
    document = {
        "format": "optsched-instance/1",
        "cluster": {"nodes": [{"gpus": 1, "gpu": "V100"}]},
        "profiles": {"staged": {"stages": [stage]}},
        "jobs": [{"id": "x", "iterations": 5, "profile": "staged"}, {"id": "y", "iterations": 5, "profile": "nett"}],
    }
    asked = ("--throughputs", table, "-p", "fifo", "--json")
    assert "job 2 ('y', line 1), profile = 'nett': unknown model" in command("run", written(document), *asked).refusal
    known = put("jobs", 1, "profile", to="net")(document)
    assert command("run", written(known), *asked).value == 10 + 10.5
