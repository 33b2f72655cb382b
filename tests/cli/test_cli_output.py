"""stdout that cannot be written, and what libraries say: one line or none, never a traceback, the right exit code."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import optsched.cli

PROGRAM = f"{sys.executable} -m optsched"
FULL = Path("/dev/full")


def shell(command: str) -> tuple[str, str, int]:
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True)
    return done.stdout, done.stderr, done.returncode


MORE = pytest.mark.study  # every one is a process or two of its own: the default run has one of each way to write


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "arguments",
    [
        "run {small} -p fifo",
        "--help",
        *(pytest.param(words, marks=MORE) for words in ("run {small} -p fifo --json", "list models")),
    ],
)
def test_a_full_disk_is_one_line_and_exit_2(arguments: str, small: Path) -> None:
    _, err, code = shell(f"{PROGRAM} {arguments.format(small=small)} > /dev/full")
    assert err == "optsched: cannot write to stdout: No space left on device\n"
    assert code == 2


@pytest.mark.release
@pytest.mark.parametrize("arguments", ["list instances", pytest.param("bound {small}", marks=MORE)])
def test_a_reader_that_has_seen_enough_is_no_error(arguments: str, small: Path) -> None:
    # true reads nothing: whatever is written then has no reader
    _, err, code = shell(f"{PROGRAM} {arguments.format(small=small)} | true")
    assert (err, code) == ("", 0)
    out, err, code = shell(f"{PROGRAM} {arguments.format(small=small)} | head -1")
    assert (len(out.splitlines()), err, code) == (1, "", 0)


@pytest.mark.release
def test_a_solver_adds_nothing_to_what_a_process_writes() -> None:
    # HiGHS writes past Python's stdout, so only a process of its own shows it; 1.16 logs a banner when it is made
    out, err, code = shell(f"{PROGRAM} solve rigid-06-1 --model rigid-time-indexed --json")
    assert (json.loads(out)["status"], err, code) == ("optimal", "", 0)


def test_a_closed_stdout_is_one_line_and_exit_2() -> None:
    assert shell(f"{PROGRAM} list models >&-") == ("", "optsched: cannot write to stdout: it is closed\n", 2)


@pytest.mark.release
def test_what_stdout_cannot_encode_does_not_stop_a_table(small: Path) -> None:
    out, err, code = shell(f"PYTHONIOENCODING=ascii {PROGRAM} bound {small}")
    assert code == 0, err
    assert "total_completion_time" in out


def test_warnings_and_logs_of_libraries_are_one_line_each(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def noisy(*_: object, **__: object) -> int:
        warnings.warn("a column\n   is old", stacklevel=1)
        logging.getLogger("somebody").warning("a font\nis missing")
        return 0

    monkeypatch.setattr(optsched.cli, "app", noisy)
    monkeypatch.setattr(logging.root, "handlers", [])  # pytest's own
    with pytest.raises(SystemExit) as stopped:
        optsched.cli.main([])
    assert stopped.value.code == 0
    assert capsys.readouterr().err == "optsched: note: a column is old\noptsched: note: a font is missing\n"


def test_a_program_shows_its_bound_and_gap(command: Callable[..., Any]) -> None:
    found = command("solve", "rigid-06-1", "--model", "hadar-primal:rounds=6")
    head, row = found.out.splitlines()[1], found.out.splitlines()[3]
    cells = dict(zip(head.strip("┃").split("┃"), row.strip("│").split("│"), strict=True))
    told = {name.strip(): cell.strip() for name, cell in cells.items()}
    assert told["bound"] == told["value"]
    assert told["gap"] == "0.00 %"
