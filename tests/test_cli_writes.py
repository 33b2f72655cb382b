"""``-o``: what is written where, what is never replaced, and folders that hold another run."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from optsched.cli import main
from optsched.instance import Instance, Job


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return int(stopped.value.code or 0), captured.out, captured.err

    return call


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    jobs = [Job("a", gpus=2, duration=4), Job("b", duration=3), Job("c", duration=5)]
    Instance(jobs, "1x2", name="small", objective="total_completion_time").save(path)
    return path


WRITING = [("bound", "a certificate"), ("solve", "a schedule"), ("convert", "an instance")]


@pytest.mark.parametrize(("name", "what"), WRITING)
def test_a_link_stays_a_link_and_its_file_keeps_its_mode(
    command: Any, small: Path, tmp_path: Path, name: str, what: str
) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "target.json", tmp_path / "link.json"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    assert command(name, small, "-o", link)[0] == 0
    assert link.is_symlink()
    assert "format" in json.loads(target.read_text()), what
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["target.json"]


@pytest.mark.parametrize(("name", "what"), WRITING)
def test_a_pipe_is_written_into_not_over(command: Any, small: Path, tmp_path: Path, name: str, what: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    code, _, err = command(name, small, "-o", pipe)
    reader.join(30)
    assert code == 0, err
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert "format" in json.loads(read[0]), what


def test_a_device_stays_a_device(command: Any, small: Path) -> None:
    # as root the device itself was once replaced: this one is looked at before and after
    before = os.stat(os.devnull)
    assert command("bound", small, "--output", os.devnull)[0] == 0
    after = os.stat(os.devnull)
    assert (after.st_mode, after.st_rdev, after.st_ino) == (before.st_mode, before.st_rdev, before.st_ino)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_behind_o_is_one_line(command: Any, small: Path) -> None:
    code, out, err = command("bound", small, "-o", "/dev/full")
    assert (code, out, err) == (2, "", "optsched: /dev/full: cannot write: No space left on device\n")


def test_a_folder_says_what_was_written_and_holds_one_run(command: Any, small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    code, out, _ = command("run", small, "-p", "fifo", "-p", "srtf", "-o", folder)
    assert code == 0
    written = ["schedule-01-fifo.json", "schedule-02-srtf.json", "certificate.json", "result.json"]
    assert out.splitlines()[-1] == f"wrote {folder}: {', '.join(written)}"
    (folder / "notes.txt").write_text("mine")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    code, out, err = command("run", small, "-p", "sjf", "-o", folder)
    assert (code, out) == (2, "")
    assert "another run (fifo, srtf on small)" in err
    assert "--force" in err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

    assert command("run", small, "-p", "sjf", "-o", folder, "--force")[0] == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["certificate.json", "notes.txt", "result.json", "schedule-01-sjf.json"]


def test_a_run_of_the_same_policies_is_replaced_whole(command: Any, small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert command("run", small, "-p", "fifo+random", "-o", folder)[0] == 0
    (folder / "certificate-forking.json").write_text("of some other run")
    code, _, err = command("run", small, "-p", "fifo+random", "-p", "srtf", "--objective", "makespan", "-o", folder)
    assert (code, err) == (0, "")
    names = sorted(path.name for path in folder.iterdir())
    assert names[0::3] == ["certificate.json", "schedule-02-srtf.json"]
    assert len(names) == 4
    assert json.loads((folder / "result.json").read_text())["objective"] == "makespan"


def test_every_bound_of_the_table_has_its_certificate(command: Any, tmp_path: Path) -> None:
    mixed, folder = tmp_path / "mixed.json", tmp_path / "run"
    where = "cluster=2x1:V100+2x1:P100+2x1:K80"
    command("generate", "gavel-continuous", "--set", "jobs=8", "--set", where, "--seed", 1, "-o", mixed)
    chosen = ("-p", "hadar-e", "-p", "yarn-cs", "--objective", "makespan")
    code, _, err = command("run", mixed, *chosen, "-o", folder)
    assert code == 0, err
    result = json.loads((folder / "result.json").read_text())
    quoted = {(run["bound"]["kind"], run["bound"]["class"]) for run in result["runs"]}
    assert len(quoted) == 2
    proofs = [json.loads(path.read_text()) for path in folder.glob("certificate*.json")]
    assert {(proof["kind"], proof["class"]) for proof in proofs} == quoted
    for path in folder.glob("certificate*.json"):
        assert command("verify", path, "--instance", mixed)[0] == 0
