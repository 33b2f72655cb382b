"""Decisions depend on nothing that cannot be known."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from optsched.contract.check import Broken, check
from optsched.contract.levels import ROUNDED, Rows, changed
from optsched.contract.subject import Subject
from optsched.problem.instance import Instance
from optsched.simulation.run import Run


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
    # the policy is asked again, may stand before it by as much.
    first = time - ROUNDED
    if made.instance.at_task_level:
        return [row[:3] for row in subject.level.rows(made) if row[2] < first]
    return [(row[0], row[1], row[3]) for row in subject.level.rows(made) if row[1] < first]
