"""Ctrl-C on a real terminal: the command stops soon, says what it knows and that it was interrupted, and exits with 130."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from benchmarks.limits import finish

import optsched as osd
from optsched.check.referee import check_schedule
from optsched.cli import interrupt
from optsched.cli.interrupt import interruptible
from optsched.compiled.function import FUNCTIONS
from optsched.evaluation import suite_ratios as evaluate
from optsched.io.traces.generate import generate
from optsched.problem.schedule import Schedule
from optsched.registry import import_modules
from optsched.solvers.generation import improve_order
from optsched.solvers.sequence_search import improve_gapless, improve_sequence

pty = pytest.importorskip("pty")
SOON = 120.0  # seconds: a fraction of one on a quiet machine, and never where it is not interrupted
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

    def interrupt(self) -> None:
        """Ctrl-C, as the terminal sends it: to all processes of the group. It ends soon, as one that was interrupted."""
        os.killpg(self._process.pid, signal.SIGINT)
        end = time.monotonic() + SOON
        try:
            while self._read():
                assert time.monotonic() < end, "not interrupted"
            assert self._process.wait(SOON) == 130
        finally:
            if self._process.poll() is None:
                self._process.kill()
        assert self.text.strip().splitlines()[-1] == "optsched: interrupted"
        for word in ("Progress(", "Traceback", "leaked"):
            assert word not in self.text

    def processes(self) -> list[str]:
        """Those of its session."""
        command = ["pgrep", "--session", str(self._process.pid)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()

    def _read(self) -> bool:
        if not select.select([self._master], [], [], 0.2)[0]:
            return self._process.poll() is None
        try:
            block = os.read(self._master, 65536)
        except OSError:  # how a terminal says that nobody holds its other end
            return False
        self._seen += block
        return bool(block)


@pytest.mark.release
def test_solve_shows_a_line_tells_the_incumbent_and_the_interval_and_writes_the_schedule(tmp_path: Path) -> None:
    generate("rigid", 1, jobs=80).save(tmp_path / "hard.json")
    terminal = Terminal("solve", str(tmp_path / "hard.json"), "-o", str(tmp_path / "best.json"), columns=60)
    terminal.wait_for(" %")
    assert re.search(r"incumbent [\d,.]+, bound [\d,.]+, gap [\d.]+ % +\d:\d\d:\d\d", terminal.text)
    terminal.interrupt()
    known = re.compile(r"^optsched: incumbent [\d,]+, bound [\d,.]+, gap [\d.]+ %, after [\d.]+ s$", re.MULTILINE)
    assert len(known.findall(terminal.text)) == 1
    assert f"wrote{tmp_path / 'best.json'}" in "".join(terminal.text.split())
    hard = osd.load(tmp_path / "hard.json")
    assert check_schedule(hard, Schedule.load(tmp_path / "best.json", hard), preemptive=False) == []


@pytest.mark.release
def test_run_tells_of_the_policies_that_have_finished_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asleep = "import time\n\n\nclass Asleep:\n    name, knowledge = 'asleep', 'clairvoyant'\n\n"
    (tmp_path / "resting.py").write_text(f"{asleep}    def decide(self, view):\n        time.sleep(600)\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    folder = tmp_path / "new"
    asked = ("-p", "fifo", "-p", "resting:Asleep", "-o", str(folder))
    terminal = Terminal("run", "rigid-12-1", *asked, columns=120)
    terminal.wait_for("resting")
    terminal.interrupt()
    table = [line for line in terminal.text.splitlines() if line.startswith("│")]
    assert [line.split("│")[1].strip() for line in table] == ["fifo"]
    assert not folder.exists()


@pytest.mark.release
def test_a_sweep_tells_what_is_kept_and_ends_its_processes(tmp_path: Path) -> None:
    grid = 'policies = ["fifo", "srtf"]\nseeds = "1-1000"\n[[instances]]\nrecipe = "rigid"\njobs = 8\n'
    (tmp_path / "grid.toml").write_text(grid)
    terminal = Terminal("sweep", str(tmp_path / "grid.toml"), "--workers", "2", columns=100)
    terminal.wait_for(" 1%")
    assert len(terminal.processes()) >= 3
    terminal.interrupt()
    kept = terminal.text.strip().splitlines()[-2]
    assert re.fullmatch(r"optsched: [\d,]+ of 2,000 cells are kept; the same command resumes from there", kept)
    end = time.monotonic() + SOON
    while left := terminal.processes():
        assert time.monotonic() < end, left
        time.sleep(0.1)


@pytest.mark.release
def test_attack_tells_the_largest_ratio_and_writes_its_instance(tmp_path: Path) -> None:
    file = tmp_path / "worst.json"
    terminal = Terminal("attack", "sjf", "--budget", "200", "--workers", "1", "-o", str(file), columns=200)
    terminal.wait_for(", ratio ")
    terminal.interrupt()
    assert re.search(r"sjf: [\d.]+ times the value of another schedule, on \d+ jobs?; not shrunk", terminal.text)
    assert 1 <= osd.load(file).n <= 12


def patched(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, in which something was put into the place of something else."""
    command = [sys.executable, "-c", f"import time\n{code}\nfrom optsched.cli import main\nmain()\n", *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=LONG)


@pytest.mark.release
def test_work_that_does_not_listen_to_its_deadline_is_ended_with_its_answer(tmp_path: Path) -> None:
    code = "from optsched.solvers.solve_state import SolveState\nSolveState.search = lambda *_, **__: time.sleep(600)"
    file = tmp_path / "best.json"
    done = patched(code, "solve", "rigid-12-1", "--time-limit", 1, "-o", file)
    told = [line for line in done.stderr.splitlines() if not line.startswith("optsched: compil")]  # on a cold cache
    assert (done.returncode, told) == (0, [])
    assert "the time limit came first" in done.stdout
    assert check_schedule(osd.load("rigid-12-1"), Schedule.load(file, "rigid-12-1"), preemptive=False) == []


@pytest.mark.release
def test_a_search_that_is_ended_late_still_answers_in_json() -> None:
    code = (
        "import optsched.adversary.attack_search as module, optsched as osd\n"
        "known = osd.load('rigid-10-1')\ndef search(*_, best, **__):\n    best(1.5, known)\n    time.sleep(600)\n"
        "module.attack = search"
    )
    done = patched(code, "attack", "sjf", "--budget", 5, "--json")  # start-up included
    assert done.returncode == 0
    assert "sjf: 1.5 times the value of another schedule" in done.stderr
    found = json.loads(done.stdout)
    assert (found["policy"], found["ratio"], found["ratio_to"]) == ("sjf", 1.5, None)
    assert len(found["instance"]["jobs"]) == 10


def test_a_search_that_tried_nothing_within_its_budget_has_failed(tmp_path: Path) -> None:
    code = "import optsched.adversary.attack_search as module\nmodule.attack = lambda *_, **__: time.sleep(600)"
    done = patched(code, "attack", "sjf", "--budget", 1, "--report", tmp_path / "page.html")
    assert done.returncode == 1, done.stderr
    assert f"{tmp_path / 'page.html'}: not written, because there is no proof yet" in done.stderr
    assert not list(tmp_path.iterdir())
    assert "no instance had been tried" in done.stderr
    assert "give a larger budget, or run optsched warm-up" in done.stderr


def test_what_is_known_is_told_though_a_library_raises_the_same_ctrl_c_again(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []

    def tell() -> None:
        told.append(len(told))
        if len(told) < 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(interrupt, "PAUSE", 0.0)
    assert [interrupt._completed(tell, []) for _ in range(3)] == [False, False, True]
    assert interrupt.ATTEMPTS > 3


def test_ratio_tells_what_is_done(monkeypatch: pytest.MonkeyPatch, command: Any) -> None:
    measure, calls = evaluate.measure, []

    def second_is_interrupted(*given: object, **more: object) -> object:
        if calls:
            leave()
        calls.append(given)
        return measure(*given, **more)

    def leave() -> None:
        for tell, _, _ in interrupt._speakers[-1:]:
            tell()

    monkeypatch.setattr(evaluate, "measure", second_is_interrupted)
    monkeypatch.setenv("COLUMNS", "200")  # a narrower table stands in blocks
    done = command("ratio", "rigid", "--set", "jobs=4", "--seeds", "2", "-p", "fifo")
    assert "1 of 2 instances had been measured" in done.err
    assert done.shown.count("fifo") == 2


@pytest.mark.release
@pytest.mark.parametrize(
    ("command", "limit"),
    [
        ("bound many.parquet --strong", None),
        ("solve many.parquet", None),
        ("solve many.parquet --time-limit 3", 3.0),
        ("attack sjf --budget 3 --workers 2", 3.0),
    ],
)
def test_commands_on_many_jobs_end_after_ctrl_c_and_limits(command: str, limit: float | None, tmp_path: Path) -> None:
    generate("philly-like", 1, jobs=20_000, cluster="64x8").save(tmp_path / "many.parquet")
    ended = finish(shlex.split(command), tmp_path, 6.0 if limit is None else None, limit or 0.0, SOON)
    assert (ended.late < SOON, ended.left) == (True, [])
    assert ended.status in (0, 1, 130)  # 1: nothing was tried within the limit


@pytest.mark.release
def test_reproduce_stops_with_its_processes() -> None:
    terminal = Terminal("reproduce", "a-srpt", "--small", "--workers", "2")
    terminal.wait_for("running the study")
    terminal.interrupt()
    assert "runs are done" in terminal.text


def test_compiled_loops_of_many_seconds_let_other_threads_run() -> None:
    import_modules("optsched.bounds")
    for loop in (improve_order, improve_sequence, improve_gapless, *FUNCTIONS):
        assert loop._made().targetoptions["nogil"], loop  # made as `dispatcher` makes it, and not compiled


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
