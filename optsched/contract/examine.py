"""Examine a policy: every check, and what became of it.

What every policy keeps: a check is a function that yields what is `Broken`, with the instances that show it.
"""

from __future__ import annotations

import dataclasses
import math
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from optsched.check.referee import check_schedule
from optsched.classes import usual_class
from optsched.contract.instances import real_instance
from optsched.contract.levels import FASTER, ROUNDED, SHIFT, Rows, Subject, changed, faster, later, renamed
from optsched.errors import KnowledgeError
from optsched.policies.simulate import Specification, simulate, specify
from optsched.problem.arrays import Ints
from optsched.problem.files import file_name
from optsched.problem.instance import Instance
from optsched.registry import Registry, parameters_of
from optsched.simulation.adopted import methods_of, plain
from optsched.simulation.policy import KnownJobs, OrderedPolicy, uses_of
from optsched.simulation.run import Run


@dataclass(frozen=True)
class Broken:
    """What is wrong, in a line, and the instances that show it: one, or two whose runs should agree."""

    message: str
    instances: tuple[Instance, ...] = ()


@dataclass(frozen=True)
class Check:
    """``find(subject)`` yields what is broken; ``exempt(subject)`` says why nothing is asked of a policy, or nothing."""

    name: str
    summary: str
    find: Callable[[Subject], Iterator[Broken]]
    exempt: Callable[[Subject], str] = lambda subject: ""


CHECKS: Registry[Check] = Registry("check")


def check(
    name: str, summary: str, exempt: Callable[[Subject], str] = lambda subject: ""
) -> Callable[[Callable[[Subject], Iterator[Broken]]], Callable[[Subject], Iterator[Broken]]]:
    """Files a function as the check of that name."""

    def filed(find: Callable[[Subject], Iterator[Broken]]) -> Callable[[Subject], Iterator[Broken]]:
        CHECKS.register(name)(Check(name, summary, find, exempt))
        return find

    return filed


@check("feasible", "the engine carries out every decision, and the referee accepts every schedule and its value")
def feasible(subject: Subject) -> Iterator[Broken]:
    """Of `Level.instances`; jobs that are missing are the business of the check ``complete``."""
    for run in subject.base:
        value = None if run.unfinished else run.value()
        kind, preemptive = run.schedule_class, run.preemptive
        violations = check_schedule(run.instance, run.schedule, schedule_class=kind, preemptive=preemptive, value=value)
        for each in violations:
            if not (run.unfinished and each.rule in ("completeness", "work")):
                yield Broken(f"{each.rule}: {each.message}", (run.instance,))


@check("complete", "every job finishes")
def complete(subject: Subject) -> Iterator[Broken]:
    """Every job of `Level.instances` fits on GPUs of one type, so that nothing excuses a policy that leaves one waiting."""
    for run in subject.base:
        if run.unfinished:
            first, *others = run.unfinished
            yield Broken(f"job {first!r} never finishes, nor do {len(others)} others", (run.instance,))


@check("knowledge", "it asks for no more than the knowledge it names, and what it cannot know yet changes nothing")
def knowledge(subject: Subject) -> Iterator[Broken]:
    """The same jobs with other secrets: until the first of them can be known, the same happens.

    Secrets of a whole job are its duration, until it completes, or where durations are known at arrival everything about it
    until then; on the other levels everything about jobs that have yet to arrive. (Asking for more raises `KnowledgeError`.)
    """
    for seed in subject.level.seeds:
        made = subject.secret_run(seed)
        if subject.level.gangs:
            jobs, until = unknown_jobs(subject, made)
            other = _with_other_secrets(subject, made, jobs)
            same = _prefix(made, until) == _prefix(subject.run(other), until)
        else:
            other, until = _with_other_arrivals(subject, made.instance)
            same = _begun(subject, made, until) == _begun(subject, subject.run(other), until)
        if not same:
            said = f"with what it cannot know before {until:.9g} s changed, it decides otherwise before"
            yield Broken(said, (made.instance, other))


def unknown_jobs(subject: Subject, made: Run) -> tuple[list[int], float]:
    """Jobs whose numbers could not be known when a third is complete, and that time."""
    now = float(np.sort(made.schedule.completion)[made.instance.n // 3])
    since = made.instance.arrival if subject.knows_durations_at_arrival else made.schedule.completion
    return np.flatnonzero(since > now).tolist(), now


def _with_other_secrets(subject: Subject, made: Run, jobs: list[int]) -> Instance:
    # Other durations; where a policy knows durations at arrival, everything else is other too.
    changes: dict[str, Any] = {"weight": 7, "gpus": 1, "due": 3} if subject.knows_durations_at_arrival else {}
    others = [
        dataclasses.replace(job, duration=(job.duration or 0) + 7 + j % 3, **changes) if j in jobs else job
        for j, job in enumerate(made.instance.jobs)
    ]
    return Instance(others, made.instance.cluster, f"{made.instance.name}-other")


def _prefix(made: Run, time: float) -> Rows:
    # Who ran on which nodes from when, and until when if it ended before. GPUs of a node get their names after the run, in
    # which knowledge plays no part.
    return sorted(
        (s.job, s.start, float(min(s.end, time)), sorted(node for node, _ in s.gpus))
        for s in made.schedule.segments()
        if s.start < time
    )


def _with_other_arrivals(subject: Subject, instance: Instance) -> tuple[Instance, float]:
    cut = float(np.median(instance.arrival))
    other = changed(instance, lambda job: job if job.arrival <= cut else subject.level.late(job))
    return other, min((a for a in instance.arrival.tolist() if a > cut), default=np.inf)


def _begun(subject: Subject, made: Run, time: float) -> Rows:
    # How long something takes that has begun may depend on what comes. Rows are rounded: a start at that very time, when
    # the policy is asked again, may lie before it by as much.
    first = time - ROUNDED
    if not usual_class(made.instance).whole:
        return [row[:3] for row in subject.level.rows(made) if row[2] < first]
    return [(row[0], row[1], row[3]) for row in subject.level.rows(made) if row[1] < first]


COLUMNS = ("job", "start", "end", "work", "gpu_offset", "gpu_node", "gpu_index")


@check("deterministic", "two runs are the same bit for bit; what is random is drawn from a seed")
def deterministic(subject: Subject) -> Iterator[Broken]:
    """Schedule, number of events and of preemptions."""
    for run in subject.base:
        again = subject.run(run.instance)
        differ = [
            name for name in COLUMNS if not np.array_equal(getattr(run.schedule, name), getattr(again.schedule, name))
        ]
        differ += [] if run.events == again.events else ["events"]
        differ += [] if run.preemptions == again.preemptions else ["preemptions"]
        if differ:
            yield Broken(f"a second run differs in {', '.join(differ)}", (run.instance,))


@check("memory", "one object serves several runs, and remembers nothing of one in the next")
def memory(subject: Subject) -> Iterator[Broken]:
    """The first instance, another one, and the first again; each as in a run of a new policy."""
    chosen, runs = specify(subject.text), subject.base
    for k in (0, min(2, len(runs) - 1), 0):
        subject.asked = runs[k].instance
        if subject.level.rows(simulate(runs[k].instance, chosen)) != subject.base_rows[k]:
            yield Broken("in a further run of the same object it decides otherwise", (runs[k].instance,))


@check("clock", f"when everything happens {SHIFT:g} s later, so does the schedule, and nothing else changes")
def clock(subject: Subject) -> Iterator[Broken]:
    """Exact where the times of an instance are integers."""
    for instance in subject.level.shifted():
        moved = later(instance)
        shifted = subject.level.rows(subject.known_run(instance), lambda time: time + SHIFT)
        if subject.level.rows(subject.run(moved)) != shifted:
            yield Broken(f"on a clock that is {SHIFT:g} s later it decides otherwise", (instance, moved))


@check(
    "unit",
    f"on a clock that ticks {FASTER} times as fast it decides the same",
    exempt=lambda subject: subject.own_seconds,
)
def unit(subject: Subject) -> Iterator[Broken]:
    """A power of two, so that nothing is rounded otherwise. Asked of policies without seconds of their own."""
    for instance in subject.level.scaled():
        made, scaled = subject.known_run(instance), faster(instance)
        other = subject.run(scaled)
        if subject.level.gangs:
            later, sooner = other.schedule.completion, made.schedule.completion
            same = np.array_equal(later / FASTER, sooner, equal_nan=True)
        else:
            same = subject.level.rows(other, lambda time: time / FASTER) == subject.level.rows(made)
        if not same:
            yield Broken(f"with every time {FASTER} times as long it decides otherwise", (instance, scaled))


@check("names", "names of jobs, users and groups do not matter")
def names(subject: Subject) -> Iterator[Broken]:
    """Nor those of models, where no speed depends on them."""
    for run, before in zip(subject.base, subject.base_rows, strict=True):
        other = renamed(run.instance)
        if subject.level.rows(subject.run(other)) != before:
            yield Broken("with other names of jobs and users it decides otherwise", (run.instance, other))


def _exempt(subject: Subject) -> str:
    if not subject.level.gangs:
        return "asked of policies for whole jobs only"
    if subject.chosen.placement.name == "random":
        return "random draws depend on the order of starts"
    return "a round makes ties of arrivals that are none" if subject.rounds else ""


@check("order", "the order of jobs in the file matters only for ties", exempt=_exempt)
def order(subject: Subject) -> Iterator[Broken]:
    """On an instance in which no two jobs are alike."""
    alike = real_instance(836, "2x2", jobs=14)
    weighted = [dataclasses.replace(job, weight=1 + k / 16) for k, job in enumerate(alike.jobs)]
    instance = Instance(weighted, alike.cluster, alike.name)
    place = _without_ties(subject, instance, np.random.default_rng(5).permutation(instance.n))
    jobs = instance.jobs
    mixed = Instance([jobs[j] for j in place], instance.cluster, f"{instance.name}-mixed")
    made, other = subject.run(instance).schedule.completion, subject.run(mixed).schedule.completion
    if not np.array_equal(other, made[place], equal_nan=True):
        yield Broken("with the same jobs in another order in the file it decides otherwise", (instance, mixed))


def _without_ties(subject: Subject, instance: Instance, place: Ints) -> Ints:
    # Jobs to which a queue order gives equal keys stay in the order of the file: that is what decides between them.
    if not isinstance(subject.policy, OrderedPolicy):
        return place
    keys = subject.policy.order(KnownJobs(instance, subject.policy.knowledge)).key
    for key in np.unique(keys):
        at = np.flatnonzero(keys[place] == key)
        place[at] = np.sort(place[at])
    return place


SECONDS = ("restart", "first_start", "round", "interval")


@check("parameters", "it decides in one way, its numbers of seconds are legal, its parameters are kept as given")
def parameters(subject: Subject) -> Iterator[Broken]:
    """Name, knowledge and what it uses were legal, or there would be no subject."""
    policy = subject.policy
    uses_of(policy)
    found = methods_of(policy)
    if len(found) != 1:
        yield Broken(f"it has {' and '.join(found)}: nobody knows which of them decides")
    for name in SECONDS:
        seconds = getattr(plain(policy), name, 0)
        if not (isinstance(seconds, int | float) and math.isfinite(seconds) and seconds >= 0):
            yield Broken(f"{name} = {seconds!r} is no finite number of seconds >= 0")
    kind = type(plain(policy))
    defaults = parameters_of(kind)
    for name, value in defaults.items():
        try:
            kept = getattr(kind(**{name: value}), name, ...)
        except Exception as error:  # whatever somebody's constructor raises
            yield Broken(f"its own default {name} = {value!r} is refused: {type(error).__name__}: {error}")
            continue
        if kept is not ... and kept != defaults[name]:
            yield Broken(f"{name} = {value!r} becomes {kept!r}")


@check("pickles", "it can be pickled, and what comes back decides the same")
def pickles(subject: Subject) -> Iterator[Broken]:
    """Several processes run it, as in sweeps and searches."""
    chosen, first = specify(subject.text), subject.base[0]
    try:
        back = pickle.loads(pickle.dumps(chosen.policy))
    except Exception as error:  # whatever somebody's object raises
        yield Broken(f"it cannot be pickled: {type(error).__name__}: {error}")
        return
    subject.asked = first.instance
    run = simulate(first.instance, Specification(subject.text, back, chosen.placement))
    if subject.level.rows(run) != subject.base_rows[0]:
        yield Broken("what comes out of the pickle decides otherwise", (first.instance,))


SHOWN = 3  # of what one check finds


@dataclass(frozen=True)
class Finding:
    """What a check found: ``verdict`` is holds, broken, exempt (``said``: why nothing is asked) or not run."""

    check: str
    summary: str
    verdict: str
    said: str = ""
    broken: tuple[Broken, ...] = ()


@dataclass(frozen=True)
class Examination:
    """Every check of a policy."""

    subject: Subject
    findings: tuple[Finding, ...]

    @property
    def broken(self) -> list[Finding]:
        """Those that do not hold."""
        return [each for each in self.findings if each.verdict == "broken"]

    def save(self, folder: Path) -> dict[str, list[str]]:
        """Write the instances that show what is broken into ``folder``; their files by check."""
        policy = file_name(self.subject.text)
        files: dict[str, list[str]] = {}
        for finding in self.broken:
            for instance in finding.broken[0].instances:
                path = folder / f"broken-{finding.check}-{policy}-{instance.digest[:8]}.json"
                instance.save(path)
                files.setdefault(finding.check, []).append(str(path))
        return files

    def to_json(self, files: dict[str, list[str]]) -> dict[str, Any]:
        """The document of ``check-policy --json``."""
        rows = [
            {
                "name": each.check,
                "summary": each.summary,
                "verdict": each.verdict,
                "said": each.said,
                "files": files.get(each.check, []),
            }
            for each in self.findings
        ]
        return {
            "policy": self.subject.text,
            "name": self.subject.policy.name,
            "knowledge": self.subject.knowledge,
            "level": self.subject.level.name,
            "holds": not self.broken,
            "checks": rows,
        }


def examine(text: str, *, progress: Callable[[int, int], None] | None = None) -> Examination:
    """Run every check on the policy that ``text`` names, a registered one or ``MODULE:CLASS``.

    Where a run raises, what is wrong is the knowledge (`KnowledgeError`) or the feasibility of the policy; checks that could
    not run for it are named as such.

    Raises `InputError` when there is no such policy, or it does not say what a policy says.
    """
    subject = Subject(text)
    subject.level  # noqa: B018 - an `InputError` comes before the first check
    checks = [each for _, each in CHECKS.items()]
    findings = []
    for done, each in enumerate(checks, 1):
        findings.append(_finding(each, subject))
        if progress is not None:
            progress(done, len(checks))
    return Examination(subject, tuple(findings))


def _finding(each: Check, subject: Subject) -> Finding:
    found = partial(Finding, each.name, each.summary)
    try:
        exempt = each.exempt(subject)
        if exempt:
            return found("exempt", exempt)
        broken = tuple(islice(each.find(subject), SHOWN))
    except Exception as error:  # whatever somebody's policy raises
        blamed = "knowledge" if isinstance(error, KnowledgeError) else "feasible"
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
        if each.name != blamed:
            return found("not run", f"see {blamed}")
        shown = () if subject.asked is None else (subject.asked,)
        return found("broken", said, (Broken(said, shown),))
    return found("broken" if broken else "holds", "; ".join(b.message for b in broken), broken)
