"""Schedulers that are not ours: functions and command lines that turn an instance (file) into a schedule (file)."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from optsched.errors import InputError, SimulationError
from optsched.problem.files import read_bytes, write_atomic
from optsched.problem.instance import Instance
from optsched.problem.json_text import parse_json
from optsched.problem.schedule import Schedule
from optsched.problem.schedule_file import FORMAT

TOLD = 2000  # characters of what a command that failed wrote last


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

    Its exit code is 0 after at most ``timeout`` seconds; else `SimulationError`, with what it wrote last.
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
            printed = self._done(self._line(given, made))
            if not self._writes:
                made.write_bytes(printed)
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

    def _done(self, line: list[str]) -> bytes:
        try:
            done = subprocess.run(line, capture_output=True, timeout=self.timeout, check=False)
        except OSError as error:
            raise InputError(f"cannot be started: {error.strerror}", field="command", value=line[0]) from None
        except subprocess.TimeoutExpired:
            raise SimulationError(f"{shlex.join(self.words)} took more than {self.timeout:g} s") from None
        if done.returncode != 0:
            last = done.stderr.decode(errors="replace")[-TOLD:].strip()
            raise SimulationError(f"{shlex.join(self.words)}: exit code {done.returncode}\n{last}")
        return done.stdout


def read_schedule(path: Path, instance: Instance) -> Schedule:
    """The schedule in a file that somebody else's program wrote for ``instance``.

    A schedule file as ours, in which the digest of the instance, the format and ``work`` (where it is ``end - start``) may
    be left out, or ``{"starts": {"job id": seconds, ...}}``. Raises `InputError` when it is neither.
    """
    if path.suffix.lower() == ".parquet":
        return Schedule.load(path, instance)
    document = parse_json(read_bytes(path), path, f"format {FORMAT}")
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
        return {"work": row["end"] - row["start"], **row} if timed else row

    return {
        "format": FORMAT,
        "instance": instance.digest,
        **document,
        "segments": [segment(row) for row in document["segments"]],
    }


def from_starts(instance: Instance, starts: Mapping[str, Any]) -> Schedule:
    """The schedule that starts every job at its time and stops none; GPUs are named here.

    Raises `InputError` for a job without a start, an unknown job, and where there are not GPUs enough.
    """
    wrong = sorted(set(map(str, starts)) ^ set(instance.ids))
    if wrong:
        what = "no such job" if wrong[0] in map(str, starts) else "a job without a start"
        raise InputError(what, field="starts", value=wrong[0], legal="every job of the instance, once")
    by_id = {str(job): start for job, start in starts.items()}
    try:
        return Schedule.from_starts(instance, np.array([float(by_id[job]) for job in instance.ids]))
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"not legal: {error}", field="starts", legal="seconds, a number for each job") from None
