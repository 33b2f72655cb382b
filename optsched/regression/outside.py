"""Schedulers that are not ours: functions and command lines that turn an instance (file) into a schedule (file)."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from optsched.errors import InputError, SimulationError
from optsched.problem.files import read_bytes, write_atomic
from optsched.problem.instance import Instance
from optsched.problem.json_text import parse_json
from optsched.problem.schedule import Schedule
from optsched.problem.schedule_file import FORMAT

KEPT = 2000  # bytes of what a command that failed wrote last
LONGEST = 2**26  # bytes of an answer: of a file that a scheduler wrote, or of what it printed
LOOK = 0.05  # seconds between two looks at how much a command has printed


class OutsideScheduler(Protocol):
    """Anything that makes a schedule of an instance."""

    def schedule(self, instance: Instance) -> Schedule:
        """Its schedule, which nobody has checked."""

    def repeated(self, instance: Path) -> str:
        """The command that repeats it on an instance file; empty where there is none."""


@dataclass(frozen=True)
class Called:
    """A function of an `Instance`; it returns a `Schedule`, ``{job id: start}``, or the path of a schedule file."""

    function: Callable[[Instance], Any]

    def schedule(self, instance: Instance) -> Schedule:
        """What the function returns, as a schedule."""
        made = self.function(instance)
        if isinstance(made, Schedule):
            return made
        if isinstance(made, Mapping):
            return from_starts(instance, made)
        if isinstance(made, str | os.PathLike):
            return read_schedule(Path(made), instance)
        legal = "a Schedule, a mapping from job ids to starts, or the path of a schedule file"
        raise InputError("not a schedule", field="what the scheduler returns", value=type(made).__name__, legal=legal)

    def repeated(self, instance: Path) -> str:
        """None: a function has no command."""
        return ""


@dataclass(frozen=True)
class OnFiles:
    """A function ``(instance file, schedule file)`` that reads the first and writes the second."""

    function: Callable[[Path, Path], Any]

    def schedule(self, instance: Instance) -> Schedule:
        """What is in the file that it wrote."""
        with tempfile.TemporaryDirectory() as folder:
            given, made = Path(folder) / "instance.json", Path(folder) / "schedule.json"
            instance.save(given)
            self.function(given, made)
            return read_schedule(made, instance)

    def repeated(self, instance: Path) -> str:
        """None: a function has no command."""
        return ""


@dataclass(frozen=True)
class Command:
    """A command line: ``{instance}`` and ``{schedule}`` stand for files; without ``{schedule}`` it prints the schedule.

    Its exit code is 0 after at most ``timeout`` seconds and `LONGEST` bytes printed; else `SimulationError`, with what it
    wrote last. Whatever it started ends with it.
    """

    words: tuple[str, ...]
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if not any("{instance}" in word for word in self.words):
            legal = 'one of its words contains "{instance}", the place of the instance file'
            raise InputError("a command that reads no instance", field="scheduler", value=list(self.words), legal=legal)

    def schedule(self, instance: Instance) -> Schedule:
        """What it writes or prints."""
        with tempfile.TemporaryDirectory() as folder:
            given, made = Path(folder) / "instance.json", Path(folder) / "schedule.json"
            instance.save(given)
            printed = Path(folder) / "printed.json" if self._writes else made
            with printed.open("wb") as out, (Path(folder) / "said").open("w+b") as said:
                self._run(self._line(given, made), out, said)
            return read_schedule(made, instance)

    def repeated(self, instance: Path) -> str:
        """The command on that file, and the referee's on what it makes."""
        made = instance.with_name(f"{instance.stem}-schedule.json")
        line = shlex.join(self._line(instance, made))
        return line if self._writes else f"{line} > {shlex.quote(str(made))}"

    @property
    def _writes(self) -> bool:
        return any("{schedule}" in word for word in self.words)

    def _line(self, given: Path, made: Path) -> list[str]:
        return [word.replace("{instance}", str(given)).replace("{schedule}", str(made)) for word in self.words]

    def _run(self, line: list[str], out: IO[bytes], said: IO[bytes]) -> None:
        # What it prints goes into files: a pipe that something it started keeps open would be waited for.
        end = time.monotonic() + self.timeout
        try:
            process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=out, stderr=said, start_new_session=True)
        except OSError as error:
            raise InputError(f"cannot be started: {error.strerror}", field="command", value=line[0]) from None
        try:
            while not _ended(process, LOOK):
                if max(os.fstat(file.fileno()).st_size for file in (out, said)) > LONGEST:
                    raise SimulationError(f"{shlex.join(self.words)} printed more than {LONGEST} bytes")
                if time.monotonic() > end:
                    raise SimulationError(f"{shlex.join(self.words)} took more than {self.timeout:g} s")
        finally:
            _end(process)
        if process.returncode != 0:
            said.seek(max(0, said.seek(0, os.SEEK_END) - KEPT))
            last = said.read().decode(errors="replace").strip()
            raise SimulationError(f"{shlex.join(self.words)}: exit code {process.returncode}\n{last}")


def _ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    # with all that it started
    if sys.platform == "win32":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def read_schedule(path: Path, instance: Instance) -> Schedule:
    """The schedule in a file that somebody else's program wrote for ``instance``.

    A schedule file as ours, in which the digest of the instance, the format and ``work`` (where it is ``end - start``) may
    be left out, or ``{"starts": {"job id": seconds, ...}}``. Raises `InputError` when it is neither, is no file (a pipe may
    never end, a device never does), or is longer than `LONGEST` bytes.
    """
    if path.exists() and not path.is_file():
        raise InputError("not a file", file=path, legal="a file that holds a schedule")
    content = read_bytes(path, LONGEST)
    if path.suffix.lower() == ".parquet":
        return Schedule.load(path, instance)
    document = parse_json(content, path, f"format {FORMAT}")
    if isinstance(document, dict) and isinstance(document.get("starts"), dict):
        return from_starts(instance, document["starts"])
    if not isinstance(document, dict) or not isinstance(document.get("segments"), list):
        raise InputError("not a schedule", file=path, legal=f'"segments" as in {FORMAT}, or "starts" by job id')
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / path.name
        write_atomic(whole, json.dumps(_filled(document, instance)))
        return Schedule.load(whole, instance)


def _filled(document: dict[str, Any], instance: Instance) -> dict[str, Any]:
    # What a program that is not ours need not know; everything else is checked as in any schedule file.
    def segment(row: Any) -> Any:
        timed = isinstance(row, dict) and all(isinstance(row.get(key), int | float) for key in ("start", "end"))
        return {"work": float(row["end"]) - float(row["start"]), **row} if timed else row

    try:
        segments = [segment(row) for row in document["segments"]]
    except OverflowError as error:
        raise InputError(f"invalid: {error}", field="segments", legal="times in seconds") from None
    return {"format": FORMAT, "instance": instance.digest, **document, "segments": segments}


def from_starts(instance: Instance, starts: Mapping[str, Any]) -> Schedule:
    """The schedule that starts every job at its time and stops none; GPUs are named here.

    Raises `InputError` for a job without a start, an unknown job, and where there are not GPUs enough.
    """
    wrong = sorted(set(map(str, starts)) ^ set(instance.ids))
    if wrong:
        what = "no such job" if wrong[0] in map(str, starts) else "a job without a start"
        raise InputError(what, field="starts", value=wrong[0], legal="every job of the instance, once")
    by_id = {str(job): start for job, start in starts.items()}
    for job, start in by_id.items():
        if isinstance(start, bool | np.bool_ | str | bytes):  # float() would take them
            raise InputError("not a number", field=f"starts: {job}", value=start, legal="seconds")
    try:
        return Schedule.from_starts(instance, np.array([float(by_id[job]) for job in instance.ids]))
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"invalid: {error}", field="starts", legal="seconds, a number for each job") from None
