"""Traces that name models, through the command line: speeds from a table, gaps told once, every mistake one clear line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.release

ROW = "{}\tpython3 x\tdir\t--n\t1\t{}\t{}\t1\t-1\t{}"
TABLE: dict[str, Any] = {
    "v100": {"('net', 1)": {"null": 10.0}, "('net', 2)": {"null": 18.0}, "('none', 1)": {"null": 0.0}},
    "v100_unconsolidated": {"('net', 2)": {"null": 8.0}},
    "k80": {"('net', 1)": {"null": 2.0}, "('net', 2)": {"null": 0.0}, "('none', 1)": {"null": 0.0}},
}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "t.trace"
    path.write_text("\n".join([ROW.format("net", 180, 2, 0), ROW.format("net", 100, 1, 1)]) + "\n")
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.json"
    path.write_text(json.dumps(TABLE))
    return path


def test_jobs_run_at_the_speeds_of_the_table(trace: Path, table: Path, tmp_path: Path, command: Any) -> None:
    where = ("--cluster", "1x2:V100+1x1:K80", "--throughputs", table)
    done = command("run", f"gavel:{trace}", *where, "-p", "fifo", "--json", "-o", tmp_path / "out")
    assert done.err == ""
    run = done.document["runs"][0]
    assert run["value"] == 10 + 50  # the pair on the V100s (no K80 holds it), the single job on the K80
    assert run["bound"]["value"] <= 10 + 19  # the best schedule runs the single job after the pair
    schedule = tmp_path / "out" / "schedule-01-fifo.json"
    assert command("verify", schedule, "--instance", f"gavel:{trace}", *where).code == 0
    assert command("convert", f"gavel:{trace}", *where, "-o", tmp_path / "i.json").code == 0
    assert command("verify", schedule, "--instance", tmp_path / "i.json").code == 0
    assert command("verify", tmp_path / "out" / "certificate.json", "--instance", tmp_path / "i.json").code == 0


def test_what_is_derived_is_said_once_and_can_be_refused(trace: Path, table: Path, command: Any) -> None:
    where = (f"gavel:{trace}", "--cluster", "1x2:V100+1x2:P100", "--throughputs", table, "-p", "fifo", "--json")
    done = command("run", *where)
    assert done.document["runs"]
    assert done.err.count("\n") == 1
    assert "P100 = 0.605 x v100" in done.err
    assert "no such row" in command("run", *where, "--strict-throughputs").mistake


def test_the_built_in_table_serves_where_none_is_named(tmp_path: Path, command: Any) -> None:
    trace = tmp_path / "t.trace"
    trace.write_text(ROW.format("A3C", 718, 1, 0) + "\n")
    run = command("run", f"gavel:{trace}", "--cluster", "1x1:V100", "-p", "fifo", "--json")
    assert run.value == pytest.approx(100, rel=1e-3)
    assert "--cluster 8x8:V100" in command("run", f"gavel:{trace}", "--cluster", "1x1", "-p", "fifo").mistake


def test_a_bad_table_is_one_line(trace: Path, tmp_path: Path, command: Any) -> None:
    path, out = tmp_path / "bad.json", tmp_path / "i.json"
    path.write_text(json.dumps({"k80": {"('net', 1)": {"null": -2.0}}}))
    line = command("convert", f"gavel:{trace}", "--cluster", "1x2:V100", "--throughputs", path, "-o", out).mistake
    assert "k80.('net', 1).null" in line
    assert str(path) in line
    assert not out.exists()


def test_unknown_models_are_named_by_row_and_can_be_skipped(tmp_path: Path, table: Path, command: Any) -> None:
    trace = tmp_path / "t.trace"
    trace.write_text("\n".join([ROW.format("net", 180, 2, 0), ROW.format("nett", 1, 1, 0), ROW.format("x", 1, 1, 0)]))
    where = (f"gavel:{trace}", "--cluster", "1x2:V100", "--throughputs", table)
    err = command("convert", *where, "-o", tmp_path / "i.json").refusal
    assert "2 of 3 rows invalid" in err
    assert "row 2, job_type = 'nett': unknown model" in err
    assert "row 3" in err
    assert not (tmp_path / "i.json").exists()
    assert command("run", *where, "-p", "fifo", "--skip-bad", "--json").document["instance"]["skipped_rows"] == 2


def test_a_job_that_no_type_has_room_for(tmp_path: Path, table: Path, command: Any) -> None:
    trace = tmp_path / "t.trace"
    trace.write_text(ROW.format("net", 9, 2, 0) + "\n")
    for cluster, said in (
        ("4x2:K80", "throughput of zero for every type"),
        ("1x1:V100+4x2:K80", "row 1, gpus = 2: the gang is larger"),
    ):
        where = (f"gavel:{trace}", "--cluster", cluster, "--throughputs", table)
        assert said in command("run", *where, "-p", "fifo").refusal


def test_an_instance_file_takes_another_table(trace: Path, table: Path, tmp_path: Path, command: Any) -> None:
    kept = tmp_path / "i.json"
    assert command("convert", f"gavel:{trace}", "--cluster", "1x2:V100", "--throughputs", table, "-o", kept).code == 0
    faster = tmp_path / "faster.json"
    faster.write_text(json.dumps({"v100": {"('net', 1)": {"null": 20.0}, "('net', 2)": {"null": 36.0}}}))
    values = []
    for more in ([], ["--throughputs", faster]):
        values.append(command("run", kept, *more, "-p", "fifo", "--json").value)
    assert values == [10 + 19, 5 + 9]


def test_an_instance_file_moves_to_gpu_types_that_its_table_does_not_know(
    trace: Path, table: Path, tmp_path: Path, command: Any
) -> None:
    made = tmp_path / "i.json"
    assert command("convert", f"gavel:{trace}", "--cluster", "1x2:V100", "--throughputs", table, "-o", made).code == 0
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


def test_strict_refuses_what_a_file_derived(trace: Path, table: Path, tmp_path: Path, command: Any) -> None:
    kept = tmp_path / "i.json"
    where = ("--cluster", "1x2:V100+1x2:P100", "--throughputs", table)
    assert command("convert", f"gavel:{trace}", *where, "-o", kept).code == 0
    assert "a rate that was not measured" in command("run", kept, "--strict-throughputs", "-p", "fifo").mistake
    assert command("run", kept, "--throughputs", table, "-p", "fifo", "--json").code == 0


def test_an_instance_file_with_an_unknown_model_and_a_stage_profile(tmp_path: Path, table: Path, command: Any) -> None:
    stage = {"replicas": 1, "forward": 1, "backward": 1}
    document = {
        "format": "optsched-instance/1",
        "cluster": {"nodes": [{"gpus": 1, "gpu": "V100"}]},
        "profiles": {"staged": {"stages": [stage]}},
        "jobs": [{"id": "x", "iterations": 5, "profile": "staged"}, {"id": "y", "iterations": 5, "profile": "nett"}],
    }
    path = tmp_path / "i.json"
    path.write_text(json.dumps(document))
    done = command("run", path, "--throughputs", table, "-p", "fifo").refusal
    assert "row 2, profile = 'nett': unknown model" in done
    document["jobs"][1]["profile"] = "net"  # type: ignore[index]
    path.write_text(json.dumps(document))
    assert command("run", path, "--throughputs", table, "-p", "fifo", "--json").value == 10 + 10.5
