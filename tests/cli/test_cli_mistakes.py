"""What a new user types: mistakes are one line that says what to type, and what is clear anyway is taken."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optsched import __version__
from optsched.deadline import seconds_in
from optsched.errors import InputError
from optsched.policies.simulate import specify
from optsched.sweeps.grid import Grid

LOG = "submit_time,num_gpus,run_seconds,state\n0,2,3,finished\n1,1,3,failed\n"

TOLD = {
    "bound rigid-06-1 --class preemptive": "did you mean gang? its schedules may preempt",
    "solve rigid-06-1 --time-limit 10x": "--time-limit = '10x': not a time (expected: seconds, or a time such as 10s, 90min",
    "solve rigid-06-1 --time-limit 0": "--time-limit = '0': invalid (expected: a time > 0",
    "attack fifo --budget soon": "--budget = 'soon': not a time",
    "run rigid-06-1 -p fifo,sjf": "several policies in one text (expected: one text each: -p fifo -p sjf;",
    "run rigid-06-1 -p fifo:skip=true,srtf+lwf": "one text each: -p fifo:skip=true -p srtf+lwf;",
    "run rigid-06-1 fifo": "'fifo': one argument too many (expected: -p fifo)",
    "run rigid-06-1 2x4": "'2x4': one argument too many (expected: --cluster 2x4)",
    "run rigid-06-1 rigid-06-2": "'rigid-06-2': one argument too many (expected: optsched run SOURCE)",
    "attack fifo SRTF": "'SRTF': one argument too many (expected: --against SRTF)",
    "generate poisson jobs=3 -o made.json": "'jobs=3': one argument too many (expected: --set jobs=3)",
    "warm-up now": "'now': one argument too many (expected: optsched warm-up)",
    "run rigid-06-1 -p first-fit": "there is no policy named 'first-fit'; did you mean fifo:skip=true?",
    "run rigid-06-1 -p SRPT": "did you mean srtf? it is SRPT for gangs",
    "run rigid-06-1 --objective mean_jct": "did you mean total_flow_time? it is the mean JCT times the number of jobs",
    "run rigid-06-1 --objective p99_jct": "did you mean max_flow_time, the largest JCT? that is a metric",
    "run rigid-06-1 -p setf:quantum=fast": "setf: quantum = 'fast': not a time (expected: a number of seconds, or a time",
    "run rigid-06-1 --limit five": "Invalid value for '--limit': a valid integer is expected (see optsched run --help)",
    "verify x.json": "Missing option '--instance'. (see optsched verify --help)",
    "ratio poisson -p fifo": "a recipe, not a suite (expected: poisson --seeds N)",
    "check-policy math:Mine": "there is no 'Mine' in math (expected: there are no classes)",
    "run log.csv": "csv:log.csv --columns arrival=submit_time,gpus=num_gpus,duration=run_seconds --cluster NODESxGPUS",
    "run csv:log.csv --cluster 1x4": "--columns arrival=submit_time,gpus=num_gpus,duration=run_seconds with columns of the",
    "run csv:log.csv --cluster 1x4 --columns submit_time=arrival,num_gpus=gpus,run_seconds=duration": (
        "columns = 'submit_time=arrival': the other way round (expected: FIELD=COLUMN: arrival=submit_time)"
    ),
    "run csv:log.csv --cluster 1x4 --columns arrival=submit_time,gpus=num_gpus,duration=state": (
        "columns = 'duration=state': the column holds no number, but words such as 'finished' (expected: a column of "
        "numbers: submit_time, num_gpus, run_seconds)"
    ),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(LOG)
    return tmp_path


@pytest.mark.parametrize("typed", TOLD)
def test_a_mistake_is_one_line_that_says_what_to_type(command: Callable[..., Any], here: Path, typed: str) -> None:
    assert TOLD[typed] in command(*typed.split()).mistake


def test_what_is_clear_is_taken(command: Callable[..., Any], here: Path) -> None:
    assert command("version").shown == command("--version").shown == f"optsched {__version__}\n"
    assert command("help", "solve").shown == command("solve", "--help").shown
    ask = "solve", "SINGLE-06-1", "--time-limit", "10min", "--model", "LP-Order", "--objective"
    assert command(*ask, "Total_Weighted_Completion_Time", "--json").document["model"] == "lp-order"
    typed = command("run", "rigid-06-1", "-p", "FIFO+Consolidated", "--objective", "Makespan", "--json").document
    assert (typed["objective"], typed["runs"][0]["policy"]) == ("makespan", "fifo+consolidated")
    assert command("list", "Policies", "SRTF").shown == command("list", "policies", "srtf").shown
    assert command("list", "policy", "srtf").shown == command("list", "policies", "srtf").shown
    assert command("list", "bounds", "SRPT").shown == command("list", "bounds", "srpt").shown
    columns = "arrival=submit_time,gpus=num_gpus,duration=run_seconds"
    assert command("convert", "CSV:log.csv", "--columns", columns, "--cluster", "1x4", "-o", "log.json").code == 0
    assert command("generate", "Rigid", "--set", "jobs=3", "-o", "made.json").code == 0
    assert json.loads((here / "made.json").read_text())["name"] == "rigid-0"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *[("90", 90), ("10s", 10), ("90m", 5400), ("90 min", 5400), ("2h", 7200), ("1.5 Hours", 5400), ("1d", 86400)],
        *[
            ("1h30m", 5400),
            ("1h 30min 5s", 5405),
            ("01:30:00", 5400),
            ("2-00:00:01", 172801),
            ("35us", 35e-6),
            ("-2h", -7200),
        ],
    ],
)
def test_durations_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert seconds_in(text, "limit") == pytest.approx(seconds, rel=1e-15)


@pytest.mark.parametrize("text", ["", "h", "1:30", "10q", "nan", "inf", "5 5", "1h1", "ten", "1e999", "--", "2 weeks"])
def test_what_is_no_duration_is_told(text: str) -> None:
    with pytest.raises(InputError, match=r"^limit = .*: not a time \(expected: seconds, or a time such as 10s, 90min"):
        seconds_in(text, "limit")


def test_parameters_that_are_times_are_read_so_in_texts_and_tables_of_policies() -> None:
    policy: Any = specify("Tiresias:threshold=1h,round=6min,restart=1e1").policy
    assert "threshold=1h" in specify("Tiresias:threshold=1h").text
    assert policy == specify("tiresias:threshold=3600,round=360,restart=10").policy
    assert specify("makespan-rounds:round=2m").policy == specify("makespan-rounds:round=120").policy


def test_a_duration_in_the_table_of_a_sweep(here: Path) -> None:
    grid = 'policies = ["setf:quantum=1min"]\n[[policy]]\nname = "makespan-rounds"\nround = ["30s", 60]\n'
    (here / "grid.toml").write_text(f'{grid}[[instances]]\nsource = "rigid-06-1"\n')
    found = [cell.policy for cell in Grid.read(here / "grid.toml").cells]
    assert found == ["setf:quantum=1min", "makespan-rounds:round=30s", "makespan-rounds:round=60"]
    (here / "grid.toml").write_text(f'{grid.replace("30s", "30q")}[[instances]]\nsource = "rigid-06-1"\n')
    with pytest.raises(InputError, match="makespan-rounds: round = '30q': not a time"):
        Grid.read(here / "grid.toml")


def test_all_that_is_wrong_in_a_row_is_told_and_jobs_of_json_are_named(
    command: Callable[..., Any], written: Callable[..., Path]
) -> None:
    log = written("arrival,gpus,duration\n0,1,3\n-1,x,0\n5,99,zzz\n", "bad.csv")
    summary, first, second = command("run", f"csv:{log}", "--cluster", "1x8").refusal.splitlines()
    assert "2 of 3 rows invalid" in summary
    assert re.search(r"row 3, arrival = '-1': .*; gpus = 'x': .*; duration = '0': ", first)
    assert re.search(r"row 4, duration = 'zzz': .*; gpus = '99': the gang is larger than the cluster", second)
    jobs = '{"id": "a", "duration": 1},\n  {"id": "b", "gpus": 0, "duration": -1, "weigth": 2},\n  {"duration": "long"}'
    head = '{"format": "optsched-instance/1",\n "cluster": {"nodes": [{"gpus": 2}]},\n "jobs": [\n  '
    file = written(f"{head}{jobs}]}}", "bad.json")
    summary, first, second = command("run", file).refusal.splitlines()
    assert summary.endswith("bad.json: 2 of 3 jobs invalid")
    assert "job 2 ('b', line 5), gpus = 0: invalid (expected: greater than or equal to 1); duration = -1: " in first
    assert "weigth = 2: there is no such field; did you mean weight?" in first
    assert "job 3 (line 6), duration = 'long': invalid (expected: a valid number)" in second
    wide = written(f'{head}{{"id": "a", "duration": 1}},\n\n  {{"id": "a", "gpus": 9, "duration": 1}}]}}', "wide.json")
    assert (
        "job 2 ('a', line 6), id = 'a': duplicate id (expected: unique ids); gpus = 9: " in command("run", wide).refusal
    )


def test_a_schedule_of_another_instance_is_told_in_one_line(command: Callable[..., Any], here: Path) -> None:
    assert command("run", "rigid-06-1", "-p", "fifo", "-o", "run").code == 0
    file = "run/schedule-01-fifo.json"
    found = command("verify", file, "--instance", "rigid-12-1")
    assert (found.code, found.err.count("\n")) == (1, 1)
    assert found.err.startswith(f"{file}: instance: made for the instance ")
    rules = command("verify", file, "--instance", "rigid-12-1", "--json").json["violations"]
    assert [each["rule"] for each in rules] == ["instance"]


@pytest.mark.parametrize("arguments", [[], ["--show-completion", "bash"]], ids=["a word", "the script"])
def test_completion_says_nothing_else(arguments: list[str]) -> None:
    asked = {"_OPTSCHED_COMPLETE": "complete_bash", "COMP_WORDS": "optsched run rigid-06", "COMP_CWORD": "2"}
    script = f"import sys; from optsched.cli import main; sys.argv = ['optsched', *{arguments}]; main()"
    environment = {**os.environ, "SHELL": "/bin/bash", "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    environment |= {} if arguments else asked
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert (done.returncode if not arguments else 0, done.stderr.count("SystemExit")) == (0, 0), done.stderr
    assert "ended the program" not in done.stderr
    if not arguments:
        assert done.stdout.split() == ["rigid-06-1", "rigid-06-2"]


def test_who_ends_the_program_is_told(command: Callable[..., Any], here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "ends_the_program.py").write_text("raise SystemExit(0)\n")
    monkeypatch.syspath_prepend(here)
    found = command("run", "rigid-06-1", "-p", "ends_the_program:Mine")
    assert (found.code, found.err) == (1, "optsched: the code of a policy ended the program (SystemExit)\n")
