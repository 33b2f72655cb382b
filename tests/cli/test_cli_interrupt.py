"""Ctrl-C on a real terminal: the command stops soon, says what it knows and that it was interrupted, and exits with 130."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from optsched.cli.interrupt import interruptible
from optsched.io.traces.generate import generate
from optsched.solvers import sequence_paths
from optsched.solvers.local_search import improve_order

pty = pytest.importorskip("pty")
SOON = 10.0  # seconds; it is a fraction of one on a quiet machine
LONG = 240.0
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, *arguments: str, columns: int = 80) -> None:
        self._master, slave = pty.openpty()
        environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "optsched", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # in the background it would be ignored
        )
        os.close(slave)
        self._seen = b""

    @property
    def text(self) -> str:
        return CONTROL.sub("", self._seen.decode(errors="replace"))

    def wait_for(self, words: str) -> None:
        end = time.monotonic() + LONG
        while words not in self.text:
            assert time.monotonic() < end, f"no {words!r} in {self.text[-2000:]!r}"
            assert self._read(), f"ended without {words!r}: {self.text[-2000:]!r}"

    def interrupt(self) -> int:
        """Ctrl-C, as the terminal sends it: to all processes of the group."""
        os.killpg(self._process.pid, signal.SIGINT)
        end = time.monotonic() + SOON
        try:
            while self._read():
                assert time.monotonic() < end, "not interrupted"
            return self._process.wait(SOON)
        finally:
            if self._process.poll() is None:
                self._process.kill()

    def _read(self) -> bool:
        if not select.select([self._master], [], [], 0.2)[0]:
            return self._process.poll() is None
        try:
            block = os.read(self._master, 65536)
        except OSError:  # how a terminal says that nobody holds its other end
            return False
        self._seen += block
        return bool(block)


def test_solve_shows_a_line_and_tells_the_incumbent_and_the_interval(tmp_path: Path) -> None:
    generate("rigid", 1, jobs=80).save(tmp_path / "hard.json")
    terminal = Terminal("solve", str(tmp_path / "hard.json"), columns=60)
    terminal.wait_for(" %")
    assert re.search(r"incumbent [\d,.]+, bound [\d,.]+, gap [\d.]+ % +\d:\d\d:\d\d", terminal.text)
    assert terminal.interrupt() == 130
    *_, known, last = terminal.text.strip().splitlines()
    assert re.fullmatch(r"optsched: incumbent [\d,]+, bound [\d,.]+, gap [\d.]+ %, after [\d.]+ s", known)
    assert last == "optsched: interrupted"
    assert "Progress(" not in terminal.text
    assert "Traceback" not in terminal.text


def test_run_tells_of_the_policies_that_have_finished_and_leaves_no_folder(tmp_path: Path) -> None:
    generate("poisson", 1, jobs=6000, cluster="64x8").save(tmp_path / "long.json")
    folder = tmp_path / "new"
    terminal = Terminal("run", str(tmp_path / "long.json"), "-p", "fifo", "-p", "gavel", "-o", str(folder), columns=120)
    terminal.wait_for("gavel")
    assert terminal.interrupt() == 130
    table = [line for line in terminal.text.splitlines() if line.startswith("│")]
    assert [line.split("│")[1].strip() for line in table] == ["fifo"]
    assert terminal.text.strip().endswith("optsched: interrupted")
    assert "Traceback" not in terminal.text
    assert not folder.exists()


def test_reproduce_stops_with_its_processes() -> None:
    terminal = Terminal("reproduce", "a-srpt", "--small", "--workers", "2")
    terminal.wait_for("running the study")
    assert terminal.interrupt() == 130
    assert "of its workloads had been run" in terminal.text
    assert terminal.text.strip().endswith("optsched: interrupted")
    for word in ("Traceback", "leaked"):
        assert word not in terminal.text


def test_compiled_loops_of_many_seconds_let_other_threads_run() -> None:
    for loop in (improve_order, sequence_paths.ascend, sequence_paths.simple_ascend, sequence_paths.cheapest_paths):
        assert loop.targetoptions["nogil"], loop


def test_work_gives_its_result_or_its_error_and_ctrl_c_leaves_it_behind() -> None:
    assert interruptible(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0)
    release = threading.Event()
    # a shell that runs the tests in the background has them ignore Ctrl-C
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            interruptible(lambda: release.wait(60))
    finally:
        signal.signal(signal.SIGINT, before)
        release.set()
