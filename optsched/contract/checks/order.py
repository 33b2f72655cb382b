"""The order of the jobs in the file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from optsched.contract.check import Broken, check
from optsched.contract.instances import real_instance
from optsched.contract.subject import Subject
from optsched.problem.arrays import Ints
from optsched.problem.instance import Instance
from optsched.simulation.policy import KnownJobs


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
    if not callable(getattr(subject.policy, "order", None)) or hasattr(subject.policy, "make_predictor"):
        return place
    keys = subject.policy.order(KnownJobs(instance, subject.policy.knowledge)).key
    for key in np.unique(keys):
        at = np.flatnonzero(keys[place] == key)
        place[at] = np.sort(place[at])
    return place
