"""Small instances of every kind, with whole-second arrivals and ties; which policies and placements serve which."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import pytest
from simulation.elastic_instances import elastic_instance
from simulation.forked_instances import gang_instance
from simulation.instances import MIXED, random_instance
from simulation.shared_world import random_shared_instance
from simulation.task_instances import random_task_instance

from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.policies import POLICIES
from optsched.policies.placements import PLACEMENTS
from optsched.policies.predictors import PREDICTORS
from optsched.policies.simulate import names_nodes, serves, simulate, specify
from optsched.problem.instance import Instance


def _whole(instance: Instance, first: int) -> Instance:
    """Arrivals in whole seconds, the first one at ``first``."""
    early = int(instance.arrival.min())
    jobs = [
        dataclasses.replace(
            job, arrival=int(job.arrival) - early + first, due=None if job.due is None else int(job.due) + first
        )
        for job in instance.jobs
    ]
    names = ("profiles", "throughputs", "tasks", "contention", "scalings", "interference")
    models = {name: getattr(instance, name) for name in names}
    return Instance(jobs, instance.cluster, instance.name, instance.objective, **models)


@cache
def examples(seed: int = 0) -> dict[str, Instance]:
    """Jobs with durations on alike nodes and on mixed ones, at table rates, at stage profiles, elastic, sharing, tasks."""
    return {
        "alike": _whole(random_instance(43 + seed, "2x4", jobs=14), 0),
        "mixed": _whole(random_instance(60 + seed, MIXED, jobs=12), 7),
        "table": _whole(gang_instance(seed, jobs=8), 3),
        "staged": _whole(generate("ddl-small", 3 + seed, jobs=5, nodes=2, gpus=3), 5),
        "elastic": _whole(elastic_instance(seed, jobs=6), 2),
        "sharing": _whole(random_shared_instance(seed, jobs=8), 4),
        "tasks": _whole(random_task_instance(seed + 4, jobs=8), 6),
    }


def specifications() -> list[str]:
    """Every policy with its own placement, one with every placement, and one with every predictor."""
    found = list(POLICIES.names())
    for policy in ("srtf:restart=1", "srsf:k=2"):
        found += [f"{policy}+{name}" for name in PLACEMENTS.names()]
    return found + [f"spjf:predictor={name}" for name in PREDICTORS.names()]


def refuses(spec: str, instance: Instance) -> bool:
    """Is a policy without theory for how transfers contend here, measured, or on a link that contention speeds up?"""
    contention = instance.contention
    if contention is None or not (contention.measured or contention.penalty < 0):
        return False
    try:
        simulate(instance, spec)
    except InputError:
        return True
    return False


def cases(seed: int = 0) -> list[tuple[str, str]]:
    """(policy, example) of all that serve each other."""
    found = []
    for spec in specifications():
        chosen = specify(spec)
        for name, instance in examples(seed).items():
            if not serves(chosen.policy, instance):
                continue
            if instance.at_task_level and chosen.placement.shared is None and not names_nodes(chosen.policy):
                continue
            if instance.contention is not None and refuses(spec, instance):
                continue
            found.append((spec, name))
    return found


@cache
def some_or_studied(turn: int) -> list[Any]:
    """`cases`: of all specifications one of the examples that each serves, in ``turn``; the others are studied."""
    served: dict[str, list[str]] = {}
    for spec, name in cases():
        served.setdefault(spec, []).append(name)
    found = []
    for k, (spec, names) in enumerate(served.items()):
        chosen = names[(k + turn) % len(names)]
        found += [pytest.param(spec, name, marks=() if name == chosen else pytest.mark.study) for name in names]
    return found
