"""``-o`` and stdout: what is written where, what is never replaced, and what cannot be written."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import optsched.cli

# -- ``-o``: what is written where, what is never replaced, and folders that hold another run -----------------------------


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


def device(folder: Path, name: str, minor: int) -> Path:
    """A memory device of one's own where that may be made: who may make one could also lose that of the machine."""
    own, machines = folder / name, Path("/dev") / name
    try:
        os.mknod(own, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        own.open("wb").close()
    except PermissionError:  # no such right, or a file system without devices
        if os.geteuid() == 0 or not machines.exists():
            pytest.skip("no device can be made here")
        return machines  # in whose folder this user can write nothing
    return own


@pytest.mark.parametrize("name", ["bound", "solve", "convert"])
@pytest.mark.parametrize("option", ["-o", "--output"])
def test_a_device_stays_a_device(command: Any, small: Path, tmp_path: Path, name: str, option: str) -> None:
    null = device(tmp_path, "null", 3)
    before = null.lstat()
    done = command(name, small, option, null)
    after = null.lstat()
    assert (after.st_mode, after.st_rdev, after.st_ino) == (before.st_mode, before.st_rdev, before.st_ino)
    assert done.code == 0, done.err


def test_a_full_disk_behind_o_is_one_line(command: Any, small: Path, tmp_path: Path) -> None:
    full = device(tmp_path, "full", 7)
    done = command("bound", small, "-o", full)
    assert done == (2, "", f"optsched: {full}: cannot write: No space left on device\n")
    assert stat.S_ISCHR(full.lstat().st_mode)


@pytest.mark.parametrize("name", ["bound", "solve", "convert"])
def test_a_folder_is_not_a_file(command: Any, small: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "made.json"
    folder.mkdir()
    assert command(name, small, "-o", folder).mistake.startswith(f"optsched: {folder}: cannot write")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "asked",
    [
        ("solve", "{}"),
        ("bound", "{}"),
        ("bound", "cluster-week", "--throughputs", "{}"),
        ("convert", "csv:{}", "--cluster", "1x2"),
        ("plot", "{}"),
        ("fit", "contention", "{}"),
        ("sweep", "{}"),
    ],
)
def test_no_command_writes_over_what_it_reads(
    command: Any, small: Path, tmp_path: Path, asked: tuple[str, ...]
) -> None:
    before, link = small.read_bytes(), tmp_path / "link.json"
    link.symlink_to(small)
    for source, target in ((small, small), (small, link), (link, small)):
        line = command(*(each.format(source) for each in asked), "-o", target).mistake
        assert line.startswith(f"optsched: -o = '{target}': would replace its own source")
        assert small.read_bytes() == before


GRID = 'policies = ["fifo"]\n[[instances]]\nsource = "{}"\n'


def test_a_sweep_writes_over_no_source_of_its_grid(
    command: Any, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    log, link = Path("logs/log.csv"), Path("link.csv")
    log.write_text("arrival,gpus,duration\n0,1,5\n")
    link.symlink_to(log)
    grid = tmp_path / "grid.toml"
    before = log.read_bytes()
    for source in (log, tmp_path / log, link):
        grid.write_text(GRID.format(f"csv:{source}") + 'cluster = "1x2"\n')
        for target in (log, link):
            line = command("sweep", grid, "--workers", 1, "-o", target).mistake
            assert line.startswith(f"optsched: -o = '{target}': would replace its own source")
            assert log.read_bytes() == before
            assert link.is_symlink()
    grid.write_text(GRID.format(small))
    assert "would replace its own source" in command("sweep", grid, "--workers", 1, "--store", small).mistake
    assert small.read_text().startswith("{")
    failed = tmp_path / "grid.sqlite.failed"
    failed.mkdir()
    small.rename(failed / "1.json")
    grid.write_text(GRID.format(failed / "1.json"))
    line = command("sweep", grid, "--workers", 1).mistake
    assert "instances of cells that fail would replace a source in grid.sqlite.failed" in line
    assert not (tmp_path / "grid.sqlite").exists()


def test_a_file_beside_a_trace_is_one_that_is_read(command: Any, written: Any, tmp_path: Path) -> None:
    trace = written("name,time,application,num_replicas,batch_size\nbert-0,259,bert,1,384\n", "w.csv")
    iterations = written("application,batch_size,iterations\nbert,384,600\n", "iterations.csv")
    line = command("bound", f"pollux:{trace}", "--cluster", "1x4", "-o", iterations).refusal.splitlines()[-1]
    assert line.startswith(f"optsched: -o = '{iterations}': would replace its own source")
    assert iterations.read_text().startswith("application")


RUN_FILES = ("result.json", "schedule-01-fifo.json", "certificate.json", "RESULT.json")


@pytest.mark.parametrize("name", RUN_FILES)
@pytest.mark.parametrize("how", ["as it stands", "relative", "through a link"])
def test_a_run_replaces_no_source_in_its_folder(
    command: Any, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, how: str
) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    source = folder / name
    source.write_bytes(small.read_bytes())
    target = folder
    if how == "relative":
        monkeypatch.chdir(folder)
        source, target = Path(name), Path()
    elif how == "through a link":
        source, target = tmp_path / "log.json", tmp_path / "link"
        source.symlink_to(folder / name)
        target.symlink_to(folder)
    line = command("run", source, "-p", "fifo", "-o", target, "--force").mistake
    assert line == (
        f"optsched: {target}: would replace its own source, {name} in this folder (expected: another folder)\n"
    )
    assert [path.name for path in folder.iterdir()] == [name]
    assert (folder / name).read_bytes() == small.read_bytes()


def test_a_source_in_the_folder_of_a_run_under_a_name_of_its_own_stays(command: Any, small: Path) -> None:
    before = small.read_bytes()
    assert command("run", small, "-p", "fifo", "-o", small.parent).code == 0
    assert small.read_bytes() == before
    assert (small.parent / "result.json").exists()


def test_ratios_replace_no_instance_of_their_suite(command: Any, small: Path, tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    worst = suite / "worst-fifo.json"
    worst.write_bytes(small.read_bytes())
    for source in (suite, worst):
        line = command("ratio", source, "-p", "sjf", "-o", suite).mistake
        assert "would replace its own source, worst-fifo.json in this folder" in line
        assert [path.name for path in suite.iterdir()] == [worst.name]


def test_stdout_is_not_redirected_into_what_is_read(small: Path) -> None:
    before = small.read_bytes()
    _, err, code = shell(f"{PROGRAM} run {small} -p fifo --json >> {small}")
    said = "stdout is redirected to this file, which is read; the shell may have emptied it already (expected: another file)"
    assert (err, code) == (f"optsched: {small}: {said}\n", 2)
    assert small.read_bytes() == before


@pytest.mark.parametrize("name", ["report.html", "out.csv", "Result.JSON"])
@pytest.mark.parametrize(
    "asked",
    [("run", "rigid-06-1", "-p", "fifo"), ("ratio", "rigid-06-1", "-p", "fifo"), ("reproduce", "hadar", "--dry-run")],
)
def test_a_folder_does_not_get_the_name_of_a_file(
    command: Any, tmp_path: Path, asked: tuple[str, ...], name: str
) -> None:
    line = command(*asked, "-o", tmp_path / name).mistake
    assert f"{name}: -o takes a folder here, and this is the name of a {Path(name).suffix} file" in line
    assert not (tmp_path / name).exists()
    (tmp_path / name).write_text("mine")
    assert command(*asked, "-o", tmp_path / name).mistake == line
    assert (tmp_path / name).read_text() == "mine"


def test_a_folder_may_have_a_dot_in_its_name(command: Any, tmp_path: Path) -> None:
    for name in ("run.v1.2", "there.csv"):
        (tmp_path / "there.csv").mkdir(exist_ok=True)
        assert command("run", "rigid-06-1", "-p", "fifo", "-o", tmp_path / name).code == 0


def test_a_file_that_only_has_the_name_of_an_objective_is_replaced(
    command: Any, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert command("bound", small, "--objective", "makespan", "-o", "makespan").code == 0


def test_names_and_formats_of_files_follow_from_the_command(command: Any, small: Path, tmp_path: Path) -> None:
    # from the policies in their order and the size of the instance; not from what was found or what lay there
    folder = tmp_path / "run"
    chosen = ("-p", "tiresias:threshold=24,round=4+random:seed=7", "-p", "fifo", "-p", "fifo")
    names = []
    for objective in ("total_completion_time", "makespan"):
        assert command("run", small, *chosen, "--objective", objective, "-o", folder).code == 0
        names.append(sorted(path.name for path in folder.iterdir()))
    schedules = ["01-tiresias-threshold=24-round=4-random-seed=7", "02-fifo", "03-fifo"]
    assert names[0] == names[1] == ["certificate.json", "result.json", *(f"schedule-{name}.json" for name in schedules)]


def test_a_folder_says_what_was_written_and_holds_one_run(command: Any, small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    out = command("run", small, "-p", "fifo", "-p", "srtf", "-o", folder).shown
    written = ["schedule-01-fifo.json", "schedule-02-srtf.json", "certificate.json", "result.json"]
    assert out.splitlines()[-1] == f"wrote {folder}: {', '.join(written)}"
    (folder / "notes.txt").write_text("mine")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    line = command("run", small, "-p", "sjf", "-o", folder).mistake
    assert "another run (fifo, srtf on small)" in line
    assert "--force" in line
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

    assert command("run", small, "-p", "sjf", "-o", folder, "--force")[0] == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["certificate.json", "notes.txt", "result.json", "schedule-01-sjf.json"]


def test_a_run_on_another_instance_is_kept(command: Any, small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert command("run", small, "-p", "fifo", "-o", folder).code == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for other in (("rigid-06-1",), (small, "--limit", 2)):
        assert "another run (fifo on small)" in command("run", *other, "-p", "fifo", "-o", folder).mistake
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert command("run", "rigid-06-1", "-p", "fifo", "-o", folder, "--force").code == 0
    assert json.loads((folder / "result.json").read_text())["instance"]["name"] == "rigid-06-1"


def test_a_run_of_the_same_policies_is_replaced_whole(command: Any, small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert command("run", small, "-p", "fifo+random", "-o", folder)[0] == 0
    again = ("run", small, "-p", "fifo+random", "-p", "srtf", "--objective", "makespan", "-o", folder)
    assert command(*again)[0] == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names[0::3] == ["certificate.json", "schedule-02-srtf.json"]
    assert len(names) == 4
    (folder / "certificate-forking.json").write_text("of some other run")
    assert "another run" in command(*again).refusal
    assert command(*again, "--force")[0] == 0
    assert (folder / "certificate-forking.json").read_text() == "of some other run"
    assert json.loads((folder / "result.json").read_text())["objective"] == "makespan"


def test_every_bound_of_the_table_has_its_certificate(command: Any, tmp_path: Path) -> None:
    mixed, folder = tmp_path / "mixed.json", tmp_path / "run"
    where = "cluster=2x1:V100+2x1:P100+2x1:K80"
    command("generate", "gavel-continuous", "--set", "jobs=8", "--set", where, "--seed", 1, "-o", mixed)
    chosen = ("-p", "hadar-e", "-p", "yarn-cs", "--objective", "makespan")
    assert command("run", mixed, *chosen, "-o", folder).shown
    result = json.loads((folder / "result.json").read_text())
    quoted = {(run["bound"]["kind"], run["bound"]["class"]) for run in result["runs"]}
    assert len(quoted) == 2
    proofs = [json.loads(path.read_text()) for path in folder.glob("certificate*.json")]
    assert {(proof["kind"], proof["class"]) for proof in proofs} == quoted
    for path in folder.glob("certificate*.json"):
        assert command("verify", path, "--instance", mixed)[0] == 0


# -- stdout that cannot be written, and what libraries say: one line or none, never a traceback, the right exit code ------


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
