"""Who is measured: a policy of the engine, or a scheduler that is not ours, of which only the schedules are known."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from optsched.errors import InputError
from optsched.guarantees.judge import Judgement, judgements
from optsched.guarantees.optimum_bounds import OptimumBounds, accepted, refereed
from optsched.policies.specification import Specification, is_policy, serves, specify
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule, SharedSchedule
from optsched.regression.outside import Called, Command, OnFiles, OutsideScheduler
from optsched.simulation.policy import Knowledge
from optsched.simulation.run import Run, SharedRun


class GuardedSubject(Protocol):
    """Whoever makes a schedule of an instance."""

    @property
    def text(self) -> str:
        """Shown in reports."""

    def serves(self, instance: Instance) -> bool:
        """Is it for jobs such as these?"""

    def run(self, instance: Instance) -> Run:
        """A run that the referee accepts; `SimulationError` otherwise, and whatever the scheduler raises."""

    def judged(self, run: Run, proven: OptimumBounds) -> tuple[Judgement, ...]:
        """What the theorems say that are about it."""

    def repeated(self, instance: Path, objective: str) -> str:
        """The command that repeats a run on an instance file; empty where there is none."""


@dataclass(frozen=True)
class GuardedPolicy:
    """A policy in the engine; ``written`` is the text that names it, if it was given as text."""

    specification: Specification
    written: str = ""

    @property
    def text(self) -> str:
        """As in every table."""
        return self.specification.text

    def serves(self, instance: Instance) -> bool:
        """See `optsched.policies.specification.serves`."""
        return serves(self.specification.policy, instance)

    def run(self, instance: Instance) -> Run:
        """Simulated."""
        return refereed(instance, self.specification)

    def judged(self, run: Run, proven: OptimumBounds) -> tuple[Judgement, ...]:
        """Every theorem that applies."""
        return judgements(self.specification, run, proven)

    def repeated(self, instance: Path, objective: str) -> str:
        """``optsched ratio``, for a policy that has a name."""
        words = ["optsched", "ratio", str(instance), "-p", self.written, "--objective", objective]
        return shlex.join(words) if self.written else ""


@dataclass(frozen=True)
class GuardedScheduler:
    """A scheduler that is not ours. It sees the whole instance; gang schedules, and sharing ones, are taken from it."""

    text: str
    scheduler: OutsideScheduler

    def serves(self, instance: Instance) -> bool:
        """Whole jobs: a schedule file says nothing of tasks."""
        return not instance.at_task_level

    def run(self, instance: Instance) -> Run:
        """What its schedule is worth, once the referee accepts it."""
        return accepted(_run_of(self.scheduler.schedule(instance), self.text))

    def judged(self, run: Run, proven: OptimumBounds) -> tuple[Judgement, ...]:
        """No theorem is about a scheduler that nobody here knows."""
        return ()

    def repeated(self, instance: Path, objective: str) -> str:
        """The command line itself, and the referee's."""
        return self.scheduler.repeated(instance)


def guarded_subject(
    scheduler: Any, *, placement: str | None = None, name: str = "", files: bool = False, timeout: float = 60.0
) -> GuardedSubject:
    """Who ``scheduler`` is.

    Parameters
    ----------
    scheduler : text that names a policy (``fifo:skip=true``, ``my_module:MyPolicy``); a policy object; a function that turns
        an `Instance` into a schedule, or with ``files`` an instance file into a schedule file, ``scheduler(instance_path,
        schedule_path)``; a command line, ``["python", "mine.py", "{instance}", "{schedule}"]``.
    placement : of a policy; default: its own.
    name : what it is called in reports.
    timeout : seconds that a command may take for an instance.

    Raises `InputError` for anything else, and for a placement of a scheduler that is not ours.
    """
    if isinstance(scheduler, str | Specification) or is_policy(scheduler):
        chosen = specify(scheduler, placement)
        written = chosen.text if isinstance(scheduler, str) else ""
        return GuardedPolicy(Specification(name or chosen.text, chosen.policy, chosen.placement), written)
    if placement is not None:
        raise InputError("only policies have one", field="placement", value=placement, legal="none")
    if isinstance(scheduler, list | tuple):
        words = tuple(map(os.fspath, scheduler))
        return GuardedScheduler(name or shlex.join(words), Command(words, timeout))
    if not callable(scheduler) or isinstance(scheduler, type):
        legal = "a policy (text or an object), a function, or a command line as a list of words"
        raise InputError("not a scheduler", field="scheduler", value=scheduler, legal=legal)
    called_so = name or str(getattr(scheduler, "__name__", type(scheduler).__name__))
    return GuardedScheduler(called_so, OnFiles(scheduler) if files else Called(scheduler))


def _run_of(schedule: Schedule, name: str) -> Run:
    # Whoever stops no job is compared with the best of those that stop none.
    preempts = len(schedule) > len(set(schedule.job.tolist()))
    kind: Callable[..., Run] = SharedRun if isinstance(schedule, SharedSchedule) else Run
    return kind(schedule, name, Knowledge.CLAIRVOYANT, preempts, 0, 0, 0.0)


@dataclass(frozen=True)
class Replay:
    """Of the runs of one subject in one test."""

    guarded_subject: GuardedSubject
    objective: str | None
    test: str
    folder: Path

    def written(self, name: str, instance: Instance) -> list[str]:
        """Write the instance into the folder; lines that say where it is and how to repeat the run.

        The same failure gives the same file; several processes may write it at once.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        stem = re.sub(r"[^A-Za-z0-9._=-]+", "-", f"{self.guarded_subject.text}-{Path(name).stem}").strip("-")
        path = self.folder / f"{stem[:80]}-{instance.digest[:8]}.json"
        instance.save(path)
        lines = [f"instance {name}, {instance.n} jobs on {instance.cluster.gpus} GPUs, written to {path}"]
        if self.test:
            lines.append(f"replay: pytest {shlex.quote(self.test)} --ratio-instance={shlex.quote(name)}")
        goal = self.objective or instance.objective or "total_flow_time"
        again = self.guarded_subject.repeated(path, goal)
        return lines + ([f"or: {again}"] if again else [])
