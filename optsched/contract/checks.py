"""The checks of the policy contract.

A check is a function that yields a `Broken` for every violation, with the instances that show it.
"""

from __future__ import annotations

import dataclasses
import math
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from optsched.check.referee import check_schedule
from optsched.classes import usual_class
from optsched.contract.instances import real_instance
from optsched.contract.levels import FASTER, ROUNDED, SHIFT, Rows, Subject, changed, faster, later, renamed
from optsched.policies.simulate import Specification, simulate, specify
from optsched.problem.arrays import Ints
from optsched.problem.instance import Instance
from optsched.registry import Registry, parameters_of
from optsched.simulation.adopted import methods_of, plain
from optsched.simulation.policy import KnownJobs, OrderedPolicy, uses_of
from optsched.simulation.run import Run


@dataclass(frozen=True)
class Broken:
    """A violation of the contract.

    Parameters
    ----------
    message
        One line for people.
    instances
        The instances that show it: one, or two whose runs should agree.
    """

    message: str
    instances: tuple[Instance, ...] = ()


@dataclass(frozen=True)
class Check:
    """A check of the policy contract.

    Parameters
    ----------
    name
        Name of the check.
    summary
        The rule in one line.
    find
        Subject -> its violations.
    exempt
        Subject -> why the rule does not apply to the policy; empty if it applies.
    """

    name: str
    summary: str
    find: Callable[[Subject], Iterator[Broken]]
    exempt: Callable[[Subject], str] = lambda subject: ""


CHECKS: Registry[Check] = Registry("check")


def check(
    name: str, summary: str, exempt: Callable[[Subject], str] = lambda subject: ""
) -> Callable[[Callable[[Subject], Iterator[Broken]]], Callable[[Subject], Iterator[Broken]]]:
    """Return a decorator that registers a function as a check.

    Parameters
    ----------
    name
        Name of the check.
    summary
        The rule in one line.
    exempt
        Subject -> why the rule does not apply to the policy; empty if it applies.
    """

    def filed(find: Callable[[Subject], Iterator[Broken]]) -> Callable[[Subject], Iterator[Broken]]:
        CHECKS.register(name)(Check(name, summary, find, exempt))
        return find

    return filed


@check("feasible", "the engine accepts every decision, and the referee accepts every schedule and its value")
def feasible(subject: Subject) -> Iterator[Broken]:
    """Yield the violations that the referee finds in the runs on `Level.instances`.

    Jobs that do not finish are left to the check ``complete``.

    Parameters
    ----------
    subject
        The policy under examination.
    """
    for run in subject.base:
        value = None if run.unfinished else run.value()
        kind, preemptive = run.schedule_class, run.preemptive
        violations = check_schedule(run.instance, run.schedule, schedule_class=kind, preemptive=preemptive, value=value)
        for violation in violations:
            if not (run.unfinished and violation.rule in ("completeness", "work")):
                yield Broken(f"{violation.rule}: {violation.message}", (run.instance,))


@check("complete", "every job finishes")
def complete(subject: Subject) -> Iterator[Broken]:
    """Yield the runs in which a job never finishes.

    Every job of `Level.instances` fits on GPUs of one type, so a policy has no reason to leave a job waiting.

    Parameters
    ----------
    subject
        The policy under examination.
    """
    for run in subject.base:
        if run.unfinished:
            first, *others = run.unfinished
            yield Broken(f"job {first!r} and {len(others)} others never finish", (run.instance,))


@check("knowledge", "it uses no more knowledge than it declares: what it cannot know yet changes nothing")
def knowledge(subject: Subject) -> Iterator[Broken]:
    """Yield pairs of instances that differ only in secrets, on which the policy decides differently too early.

    Until the first secret can be known, the two runs must agree. Secrets of a whole job are its duration, until
    it completes; if the policy knows durations at arrival, they are all data of jobs that have yet to arrive. On
    the other levels they are all data of jobs that have yet to arrive. (A policy that asks for more raises
    `KnowledgeError`.)

    Parameters
    ----------
    subject
        The policy under examination.
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
            message = f"with other data that it cannot know before {until:.9g} s, it decides differently before that"
            yield Broken(message, (made.instance, other))


def unknown_jobs(subject: Subject, made: Run) -> tuple[list[int], float]:
    """Return the jobs whose numbers cannot be known when a third of all jobs is complete, and that time.

    Parameters
    ----------
    subject
        The policy under examination.
    made
        Its run.

    Returns
    -------
    tuple
        Job indices, and the time in seconds.
    """
    now = float(np.sort(made.schedule.completion)[made.instance.n // 3])
    since = made.instance.arrival if subject.knows_durations_at_arrival else made.schedule.completion
    return np.flatnonzero(since > now).tolist(), now


def _with_other_secrets(subject: Subject, made: Run, jobs: list[int]) -> Instance:
    # Other durations; if a policy knows durations at arrival, other data, too.
    changes: dict[str, Any] = {"weight": 7, "gpus": 1, "due": 3} if subject.knows_durations_at_arrival else {}
    others = [
        dataclasses.replace(job, duration=(job.duration or 0) + 7 + j % 3, **changes) if j in jobs else job
        for j, job in enumerate(made.instance.jobs)
    ]
    return Instance(others, made.instance.cluster, f"{made.instance.name}-other")


def _prefix(made: Run, time: float) -> Rows:
    # Jobs with their nodes and starts, and their ends if these came before. The GPUs of a node are named after the run;
    # knowledge plays no part there.
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
    # The duration of what has begun may depend on later events. Rows are rounded: a start at exactly this time, when the
    # policy is asked again, may be rounded to a time before it.
    first = time - ROUNDED
    if not usual_class(made.instance).whole:
        return [row[:3] for row in subject.level.rows(made) if row[2] < first]
    return [(row[0], row[1], row[3]) for row in subject.level.rows(made) if row[1] < first]


COLUMNS = ("job", "start", "end", "work", "gpu_offset", "gpu_node", "gpu_index")


@check("deterministic", "two runs are the same bit for bit; random numbers come from a seed")
def deterministic(subject: Subject) -> Iterator[Broken]:
    """Yield the instances on which a second run differs in its schedule, its events or its preemptions.

    Parameters
    ----------
    subject
        The policy under examination.
    """
    for run in subject.base:
        again = subject.run(run.instance)
        differ = [
            name for name in COLUMNS if not np.array_equal(getattr(run.schedule, name), getattr(again.schedule, name))
        ]
        differ += [] if run.events == again.events else ["events"]
        differ += [] if run.preemptions == again.preemptions else ["preemptions"]
        if differ:
            yield Broken(f"a second run differs in {', '.join(differ)}", (run.instance,))


@check("memory", "one object serves several runs and remembers nothing from one to the next")
def memory(subject: Subject) -> Iterator[Broken]:
    """Yield the instances on which a policy object decides differently in a further run.

    The object runs on the first instance, on another one, and on the first again; each run must equal that of a
    new object.

    Parameters
    ----------
    subject
        The policy under examination.
    """
    chosen, runs = specify(subject.text), subject.base
    for k in (0, min(2, len(runs) - 1), 0):
        subject.asked = runs[k].instance
        if subject.level.rows(simulate(runs[k].instance, chosen)) != subject.base_rows[k]:
            yield Broken("in a further run of the same object it decides differently", (runs[k].instance,))


@check("clock", f"if all times are {SHIFT:g} s later, the schedule is {SHIFT:g} s later and otherwise the same")
def clock(subject: Subject) -> Iterator[Broken]:
    """Yield the instances on which a later clock changes more than the times.

    The comparison is exact if the times of an instance are integers.

    Parameters
    ----------
    subject
        The policy under examination.
    """
    for instance in subject.level.shifted():
        moved = later(instance)
        shifted = subject.level.rows(subject.known_run(instance), lambda time: time + SHIFT)
        if subject.level.rows(subject.run(moved)) != shifted:
            yield Broken(f"with all times {SHIFT:g} s later it decides differently", (instance, moved))


@check(
    "unit",
    f"if all times are {FASTER} times as long, it decides the same",
    exempt=lambda subject: subject.own_seconds,
)
def unit(subject: Subject) -> Iterator[Broken]:
    """Yield the instances on which another unit of time changes the decisions.

    The factor is a power of two, so nothing is rounded differently. Policies with seconds of their own are
    exempt.

    Parameters
    ----------
    subject
        The policy under examination.
    """
    for instance in subject.level.scaled():
        made, scaled = subject.known_run(instance), faster(instance)
        other = subject.run(scaled)
        if subject.level.gangs:
            later, sooner = other.schedule.completion, made.schedule.completion
            same = np.array_equal(later / FASTER, sooner, equal_nan=True)
        else:
            same = subject.level.rows(other, lambda time: time / FASTER) == subject.level.rows(made)
        if not same:
            yield Broken(f"with all times {FASTER} times as long it decides differently", (instance, scaled))


@check("names", "names of jobs, users and groups do not change its decisions")
def names(subject: Subject) -> Iterator[Broken]:
    """Yield the instances on which other names change the decisions.

    Names are those of jobs, users and groups, and those of models if no speed depends on them.

    Parameters
    ----------
    subject
        The policy under examination.
    """
    for run, before in zip(subject.base, subject.base_rows, strict=True):
        other = renamed(run.instance)
        if subject.level.rows(subject.run(other)) != before:
            yield Broken("with other names of jobs and users it decides differently", (run.instance, other))


def _exempt(subject: Subject) -> str:
    if not subject.level.gangs:
        return "checked only for policies for whole jobs"
    if subject.chosen.placement.name == "random":
        return "random draws depend on the order of starts"
    return "a round turns different arrivals into ties" if subject.rounds else ""


@check("order", "the order of jobs in the file changes only ties", exempt=_exempt)
def order(subject: Subject) -> Iterator[Broken]:
    """Yield the instances on which another order of the jobs in the file changes the decisions.

    No two jobs of the instance are alike.

    Parameters
    ----------
    subject
        The policy under examination.
    """
    alike = real_instance(836, "2x2", jobs=14)
    weighted = [dataclasses.replace(job, weight=1 + k / 16) for k, job in enumerate(alike.jobs)]
    instance = Instance(weighted, alike.cluster, alike.name)
    place = _without_ties(subject, instance, np.random.default_rng(5).permutation(instance.n))
    jobs = instance.jobs
    mixed = Instance([jobs[j] for j in place], instance.cluster, f"{instance.name}-mixed")
    made, other = subject.run(instance).schedule.completion, subject.run(mixed).schedule.completion
    if not np.array_equal(other, made[place], equal_nan=True):
        yield Broken("with the same jobs in another order in the file it decides differently", (instance, mixed))


def _without_ties(subject: Subject, instance: Instance, place: Ints) -> Ints:
    # Jobs with equal keys of a queue order stay in the order of the file, which decides between them.
    if not isinstance(subject.policy, OrderedPolicy):
        return place
    keys = subject.policy.order(KnownJobs(instance, subject.policy.knowledge)).key
    for key in np.unique(keys):
        at = np.flatnonzero(keys[place] == key)
        place[at] = np.sort(place[at])
    return place


SECONDS = ("restart", "first_start", "round", "interval")


@check("parameters", "it has one decision method, legal numbers of seconds, and keeps its parameters as given")
def parameters(subject: Subject) -> Iterator[Broken]:
    """Yield parameters that are illegal or are not kept as given.

    Name, knowledge and uses of the policy have been checked before.

    Parameters
    ----------
    subject
        The policy under examination.
    """
    policy = subject.policy
    uses_of(policy)
    methods = methods_of(policy)
    if len(methods) != 1:
        yield Broken(f"it has {' and '.join(methods)}: it must have exactly one decision method")
    for name in SECONDS:
        seconds = getattr(plain(policy), name, 0)
        if not (isinstance(seconds, int | float) and math.isfinite(seconds) and seconds >= 0):
            yield Broken(f"{name} = {seconds!r} is not a finite number of seconds >= 0")
    kind = type(plain(policy))
    defaults = parameters_of(kind)
    for name, value in defaults.items():
        try:
            kept = getattr(kind(**{name: value}), name, ...)
        except Exception as error:  # any exception of a user's constructor
            yield Broken(f"its own default {name} = {value!r} is refused: {type(error).__name__}: {error}")
            continue
        if kept is not ... and kept != defaults[name]:
            yield Broken(f"{name} = {value!r} becomes {kept!r}")


@check("pickles", "it can be pickled, and the copy decides the same")
def pickles(subject: Subject) -> Iterator[Broken]:
    """Yield a violation if the policy cannot be pickled, or decides differently afterwards.

    Sweeps and searches run policies in several processes.

    Parameters
    ----------
    subject
        The policy under examination.
    """
    chosen, first = specify(subject.text), subject.base[0]
    try:
        back = pickle.loads(pickle.dumps(chosen.policy))
    except Exception as error:  # any exception of a user's object
        yield Broken(f"it cannot be pickled: {type(error).__name__}: {error}")
        return
    subject.asked = first.instance
    run = simulate(first.instance, Specification(subject.text, back, chosen.placement))
    if subject.level.rows(run) != subject.base_rows[0]:
        yield Broken("the unpickled policy decides differently", (first.instance,))
