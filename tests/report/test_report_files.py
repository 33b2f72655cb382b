"""A folder of results is swapped: at every moment the old run or the new one is whole; files of others stay."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from optsched.errors import InputError
from optsched.evaluation.evaluate import evaluate
from optsched.evaluation.report import Report
from optsched.io.sources import load
from optsched.policies.simulate import specify
from optsched.report.report_files import WHOLE, prepare_folder, save_report

STEPS = ("mkdir", "replace", "rename", "unlink", "rmdir", "open")


class Dead(BaseException):
    """Nothing of this process runs any more."""


def report(*policies: str) -> Report:
    return evaluate(load("rigid-06-1"), [specify(each) for each in policies])


@contextmanager
def counted(at: int, die: Callable[[], None]) -> Iterator[list[int]]:
    """``die`` before the change of the file system number ``at``, and before every later one."""
    patch, steps = pytest.MonkeyPatch(), [0]

    def counting(real: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*arguments: Any, **options: Any) -> Any:
            steps[0] += 1
            if steps[0] >= at:
                die()
            return real(*arguments, **options)

        return changed

    with patch.context() as made:
        for name in STEPS:
            made.setattr(os, name, counting(getattr(os, name)))
        yield steps


def raise_dead() -> None:
    raise Dead


def whole_runs(folder: Path) -> list[list[str]]:
    """The policies of every whole run in it: each file that a result lists is there, and of that run."""
    found = []
    places = [folder / WHOLE, folder]
    for at in places:
        if not (at / "result.json").exists():
            continue
        document = json.loads((at / "result.json").read_bytes())
        held = [next((each / name for each in places if (each / name).exists()), None) for name in document["files"]]
        schedules = [json.loads(path.read_bytes()) for path in held if path and path.name.startswith("schedule")]
        values = [run["value"] for run in document["runs"]]
        if None not in held and [each["value"] for each in schedules] == values:
            found.append([run["policy"] for run in document["runs"]])
    return found


OLD, NEW = ("fifo", "srtf"), ("sjf",)
OTHER = {"certificate-of-birth.json": "{}", "notes.txt": "mine", "schedule-99-mine.json": "[]"}


def old_run(folder: Path) -> None:
    save_report(report(*OLD), folder)
    for name, text in OTHER.items():
        (folder / name).write_text(text)


def check(folder: Path, at: int) -> list[str]:
    """What is whole in the folder; the next run takes it and leaves no trace of the dead one."""
    whole = whole_runs(folder)
    assert whole, f"nothing is whole after step {at}: {sorted(map(str, folder.rglob('*')))}"
    prepare_folder(folder, force=True)
    (now,) = whole_runs(folder)
    assert now in whole
    assert not (folder / WHOLE).exists()
    for name, text in OTHER.items():
        assert (folder / name).read_text() == text
    listed = json.loads((folder / "result.json").read_bytes())["files"]
    assert {path.name for path in folder.iterdir() if not path.name.startswith(".")} == {*listed, *OTHER}
    return now


def dead_again(folder: Path) -> None:
    """The next run, which takes up what a dead one left, may die at every step as well."""
    step, died = 0, True
    while died:
        step += 1
        copy = folder.with_name(f"{folder.name}-{step}")
        shutil.copytree(folder, copy)
        with counted(step, raise_dead):
            try:
                prepare_folder(copy, force=True)
                died = False
            except Dead:
                pass
        assert check(copy, step) in whole_runs(folder)
        shutil.rmtree(copy)


@pytest.mark.release
def test_at_every_step_the_old_run_or_the_new_one_is_whole(tmp_path: Path) -> None:
    made, at, seen = report(*NEW), 0, []
    while True:
        at += 1
        folder = tmp_path / str(at)
        folder.mkdir()
        old_run(folder)
        with counted(at, raise_dead) as steps:
            try:
                save_report(made, folder)
            except Dead:
                pass
            else:
                break
        dead_again(folder)
        seen.append(check(folder, at))
        assert steps[0] >= at
    assert check(folder, at) == list(NEW)
    assert at > 15
    assert seen == sorted(seen, key=lambda run: run == list(NEW))  # once the new one is whole it stays
    assert {tuple(run) for run in seen} == {OLD, NEW}


KILLED = """
import os, signal, sys
from pathlib import Path
from report.test_report_files import NEW, counted, report
from optsched.report.report_files import save_report

made = report(*NEW)
with counted(int(sys.argv[2]), lambda: os.kill(os.getpid(), signal.SIGKILL)):
    save_report(made, Path(sys.argv[1]))
"""


@pytest.mark.study
def test_killed_at_every_step(tmp_path: Path) -> None:
    at, code = 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        at += 1
        folder = tmp_path / str(at)
        folder.mkdir()
        old_run(folder)
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        code = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(at)], env=env, check=False).returncode
        check(folder, at)
    assert code == 0
    assert at > 15


def test_on_a_full_disk_the_old_run_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old_run(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match="cannot write: No space left on device"):
        save_report(report(*NEW), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_files_that_no_run_lists_are_not_replaced_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "certificate.json").write_text("mine")
    with pytest.raises(InputError, match=r"another run \(certificate\.json\)"):
        prepare_folder(tmp_path, ["sjf"])
    prepare_folder(tmp_path, ["sjf"], force=True)
    assert (tmp_path / "certificate.json").read_text() == "mine"
