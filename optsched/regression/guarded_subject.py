"""Subjects of measurements: policies of the engine, or external schedulers, of which only the schedules are known."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from numbers import Real
from pathlib import Path
from typing import IO, Any

from optsched.classes import class_stated, usual_class
from optsched.errors import InputError, SimulationError, check_legal
from optsched.evaluation.accepted_run import accepted, refereed
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.guarantees.judge import Judgement, judgements
from optsched.policies.simulate import Specification, is_policy, serves, specify
from optsched.problem.atomic_files import file_name, read_bytes, write_atomic
from optsched.problem.documents import parse_json
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.problem.schedule_file import FORMAT, has_starts
from optsched.simulation.policy import Knowledge
from optsched.simulation.run import RUNS, Run

INSTANCE, MADE = "{instance}", "{schedule}"  # stand for files in a command line
NO_POLICY = re.compile(r"[\s/\\{]")  # in no name of a policy, but in command lines


@dataclass(frozen=True)
class GuardedSubject:
    """A scheduler: a policy in the engine, or an external one.

    ``text``: name in tables. ``serves(instance)``: whether it supports the instance. ``run(instance)``: a run accepted
    by the referee. ``judged(run, proven)``: the theorems that apply, none for an external scheduler. ``repeated(instance
    file, objective)``: the command that repeats the run, or empty.
    """

    text: str
    serves: Callable[[Instance], bool]
    run: Callable[[Instance], Run]
    judged: Callable[[Run, OptimumBounds], tuple[Judgement, ...]]
    repeated: Callable[[Path, str], str]


def guarded_subject(
    scheduler: Any, *, placement: str | None = None, name: str = "", files: bool = False, timeout: float = 60.0
) -> GuardedSubject:
    """Return the subject that a scheduler defines.

    Parameters
    ----------
    scheduler
        Text of a policy (``fifo:skip=true``, ``my_module:MyPolicy``); a policy object; a function from an `Instance` to
        a schedule, or with ``files`` from an instance file to a schedule file, ``scheduler(instance_path,
        schedule_path)``; or a command line, ``["python", "mine.py", "{instance}", "{schedule}"]``.
    placement
        Placement of a policy; default: its own.
    name
        Name in reports.
    files
        Whether a function takes two paths.
    timeout
        Seconds that a command may take for an instance.

    Raises
    ------
    InputError
        If the scheduler is none of these, or an external scheduler has a placement.
    """
    for field, text in {"name": name, "placement": placement or ""}.items():
        check_legal(isinstance(text, str), field, text, "text")
    check_legal(real(timeout) > 0, "timeout", timeout, "a finite number of seconds > 0")
    if isinstance(scheduler, str) and (
        INSTANCE in scheduler or NO_POLICY.search(re.split("[+:]", scheduler)[0].strip())
    ):
        raise InputError(
            "a command line is not one text", field="scheduler", value=scheduler, legal=_as_words(scheduler)
        )
    if isinstance(scheduler, str | Specification) or is_policy(scheduler):
        chosen = specify(scheduler, placement)
        named = Specification(name or chosen.text, chosen.policy, chosen.placement)

        def again(file: Path, objective: str) -> str:
            line = ["optsched", "ratio", str(file), "-p", chosen.text, "--objective", objective]
            return shlex.join(line) if isinstance(scheduler, str) else ""

        return GuardedSubject(
            named.text,
            partial(serves, chosen.policy),
            partial(refereed, specification=named),
            partial(judgements, named),
            again,
        )
    if placement is not None:
        raise InputError("only policies have one", field="placement", value=placement, legal="none")
    if isinstance(scheduler, list | tuple):
        command = Command(_words(scheduler), timeout)
        line = name or shlex.join(command.words)
        return _foreign(line, command.schedule, lambda file, objective: command.repeated(file))
    if not callable(scheduler) or isinstance(scheduler, type):
        legal = "a policy (text or an object), a function, or a command line as a list of words"
        raise InputError("not a scheduler", field="scheduler", value=scheduler, legal=legal)
    called_so = name or str(getattr(scheduler, "__name__", type(scheduler).__name__))
    return _foreign(called_so, partial(on_files if files else called, scheduler))


def real(value: Any) -> float:
    """Return a number as a float; nan if it is not a number (text, a truth value) or not finite.

    Parameters
    ----------
    value
        The value.
    """
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return math.nan
    try:
        number = float(value)
    except OverflowError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def _words(scheduler: Sequence[Any]) -> tuple[str, ...]:
    for word in scheduler:
        text = isinstance(word, str | os.PathLike) and isinstance(os.fspath(word), str)
        legal = "text and paths; a policy is given alone, not in a list"
        check_legal(text, "scheduler: a word of a command", word, legal)
    words = tuple(map(os.fspath, scheduler))
    if words and INSTANCE in words[0]:
        raise InputError("a command without a program", field="scheduler", value=list(words), legal=_as_words(words[0]))
    return words


def _as_words(line: str) -> str:
    """Return the list of words to write instead of a command line given as text."""
    try:
        words = shlex.split(line)
    except ValueError:  # an open quotation
        words = line.split()
    return f"a list of words, {[*words, *([] if INSTANCE in line else [INSTANCE, MADE])]}"


def _foreign(
    text: str, schedule: Callable[[Instance], Schedule], repeated: Callable[[Path, str], str] = lambda *_: ""
) -> GuardedSubject:
    """Return the subject of an external scheduler, which makes gang or sharing schedules of instances without tasks."""

    def run(instance: Instance) -> Run:
        made = schedule(instance)
        # Whoever stops no job is compared with the best of those that stop none.
        preempts = len(made) > len(set(made.job.tolist()))
        kind = RUNS.of(class_stated(instance, {made.stated}).name).run
        return accepted(kind(made, text, Knowledge.CLAIRVOYANT, preempts, 0, 0, 0.0))

    return GuardedSubject(text, lambda instance: usual_class(instance).whole, run, lambda *_: (), repeated)


@dataclass(frozen=True)
class Replay:
    """Replay of the runs of one subject in one test."""

    guarded_subject: GuardedSubject
    objective: str | None
    test: str
    folder: Path

    def run(self, name: str, instance: Instance, suite: str) -> Run:
        """Run the subject; an error is raised with a note on the instance and on how to repeat the run.

        Parameters
        ----------
        name
            Name of the instance.
        instance
            The instance.
        suite
            Name of its suite.
        """
        try:
            return self.guarded_subject.run(instance)
        except Exception as error:
            notes = [f"{self.guarded_subject.text} failed on an instance of {suite}", *self.written(name, instance)]
            error.add_note("\n".join(notes))
            raise

    def written(self, name: str, instance: Instance) -> list[str]:
        """Write an instance into the folder, and return lines with its place and the command that repeats the run.

        The same failure gives the same file; several processes may write it at once.

        Parameters
        ----------
        name
            Name of the instance.
        instance
            The instance.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        stem = file_name(f"{self.guarded_subject.text}-{Path(name).stem}")
        path = self.folder / f"{stem[:80]}-{instance.digest[:8]}.json"
        instance.save(path)
        lines = [f"instance {name}, {instance.n} jobs on {instance.cluster.gpus} GPUs, written to {path}"]
        if self.test:
            lines.append(f"replay: pytest {shlex.quote(self.test)} --ratio-instance={shlex.quote(name)}")
        goal = self.objective or instance.objective or "total_flow_time"
        again = self.guarded_subject.repeated(path, goal)
        return lines + ([f"or: {again}"] if again else [])


# Schedulers that are not ours: functions and command lines that turn an instance (file) into a schedule (file).

KEPT = 2000  # bytes of what a command that failed wrote last
LONGEST = 2**26  # bytes of an answer: of a file that a scheduler wrote, or of what it printed
LOOK = 0.05  # seconds between two looks at how much a command has printed


def called(function: Callable[[Instance], Any], instance: Instance) -> Schedule:
    """Return the schedule that a function makes: a `Schedule`, ``{job id: start}``, or the path of a schedule file.

    Parameters
    ----------
    function
        Function of an instance.
    instance
        The instance.
    """
    made = function(instance)
    if isinstance(made, Schedule):
        return made
    if isinstance(made, Mapping):
        return Schedule.from_starts(instance, made)
    if isinstance(made, str | os.PathLike):
        return read_schedule(Path(made), instance)
    legal = "a Schedule, a mapping from job ids to starts, or the path of a schedule file"
    raise InputError("not a schedule", field="what the scheduler returns", value=type(made).__name__, legal=legal)


def on_files(function: Callable[[Path, Path], Any], instance: Instance) -> Schedule:
    """Return the schedule that a function writes.

    Parameters
    ----------
    function
        Function of an instance file and a schedule file.
    instance
        The instance.
    """
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "instance.json", Path(folder) / "schedule.json"
        instance.save(given)
        function(given, made)
        return read_schedule(made, instance)


@dataclass(frozen=True)
class Command:
    """A command line, in which ``{instance}`` and ``{schedule}`` are files; without ``{schedule}`` it prints the schedule.

    It must exit with 0 within ``timeout`` seconds and `LONGEST` printed bytes; otherwise it raises `SimulationError`
    with the end of its output. All processes that it started end with it.
    """

    words: tuple[str, ...]
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if not any(INSTANCE in word for word in self.words):
            legal = f"one of its words contains {INSTANCE}, the instance file; a policy is given alone, not in a list"
            raise InputError("a command that reads no instance", field="scheduler", value=list(self.words), legal=legal)

    def schedule(self, instance: Instance) -> Schedule:
        """Run the command, and return its schedule.

        Parameters
        ----------
        instance
            The instance.
        """
        with tempfile.TemporaryDirectory() as folder:
            given, made = Path(folder) / "instance.json", Path(folder) / "schedule.json"
            instance.save(given)
            printed = Path(folder) / "printed.json" if self._writes else made
            with printed.open("wb") as out, (Path(folder) / "said").open("w+b") as said:
                self._run(self._line(given, made), out, said)
            return read_schedule(made, instance)

    def repeated(self, instance: Path) -> str:
        """Return the shell command that repeats a run and writes its schedule next to the instance file.

        Parameters
        ----------
        instance
            Instance file.
        """
        made = instance.with_name(f"{instance.stem}-schedule.json")
        line = shlex.join(self._line(instance, made))
        return line if self._writes else f"{line} > {shlex.quote(str(made))}"

    @property
    def _writes(self) -> bool:
        return any(MADE in word for word in self.words)

    def _line(self, given: Path, made: Path) -> list[str]:
        return [word.replace(INSTANCE, str(given)).replace(MADE, str(made)) for word in self.words]

    def _run(self, line: list[str], out: IO[bytes], said: IO[bytes]) -> None:
        # What it prints goes into files: a pipe that something it started keeps open would be waited for.
        end = time.monotonic() + self.timeout
        try:
            process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=out, stderr=said, start_new_session=True)
        except OSError as error:
            raise InputError(f"cannot be started: {error.strerror}", field="command", value=line[0]) from None
        try:
            while process.poll() is None:
                if max(os.fstat(file.fileno()).st_size for file in (out, said)) > LONGEST:
                    raise SimulationError(f"{shlex.join(self.words)} printed more than {LONGEST} bytes")
                if time.monotonic() > end:
                    raise SimulationError(f"{shlex.join(self.words)} took more than {self.timeout:g} s")
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(LOOK)
        finally:
            if sys.platform == "win32":  # with all that it started
                process.kill()
            else:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.returncode != 0:
            said.seek(max(0, said.seek(0, os.SEEK_END) - KEPT))
            last = said.read().decode(errors="replace").strip()
            raise SimulationError(f"{shlex.join(self.words)}: exit code {process.returncode}\n{last}")


def read_schedule(path: Path, instance: Instance) -> Schedule:
    """Read the schedule that an external program wrote.

    The file is a schedule file, which may omit the digest of the instance, the format, and ``work`` (if it is ``end -
    start``); or it is ``{"starts": {"job id": seconds, ...}}``, or has a list in the order of the jobs.

    Parameters
    ----------
    path
        The file.
    instance
        The instance of the schedule.

    Raises
    ------
    InputError
        If the document is neither, the path is not a regular file (a pipe or a device may never end), or it is longer than
        `LONGEST` bytes.
    """
    if path.exists() and not path.is_file():
        raise InputError("not a file", file=path, legal="a file that holds a schedule")
    content = read_bytes(path, LONGEST)
    if path.suffix.lower() == ".parquet":
        return Schedule.load(path, instance)
    document = parse_json(content, path, f"format {FORMAT}")
    if has_starts(document):
        return Schedule.from_starts(instance, document["starts"])
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
