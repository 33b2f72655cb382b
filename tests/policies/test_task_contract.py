"""What every registered policy of the task level keeps with every placement that knows shared GPUs."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from simulation.task_instances import random_task_instance

from optsched.check.referee import check_schedule, schedule_value
from optsched.errors import KnowledgeError
from optsched.policies import POLICIES
from optsched.policies.placements import PLACEMENTS
from optsched.policies.simulate import simulate
from optsched.policies.specification import (
    at_task_level,
    default_placement,
    resizes,
    shares_gpus,
    specify,
    task_policies,
    whole_job_policies,
)
from optsched.problem.contention import Contention
from optsched.problem.instance import Instance, Job
from optsched.simulation.iterations import TaskRun
from optsched.simulation.policy import Knowledge
from optsched.simulation.task_policy import TaskJobs

# Parameters that show more of a policy than its defaults do.
TELLING = {"leader-first": ":width=1,caution=0.5", "srsf": ":k=2,service_includes_comm=true", "k-way": ":by_size=true"}
SPECS = [spec for name in task_policies() for spec in dict.fromkeys([name, name + TELLING.get(name, "")])]
SHARED = [name for name in PLACEMENTS.names() if PLACEMENTS.get(name)().shared is not None]
PAIRS = [f"{policy}+{placement}" for policy in SPECS for placement in [*SHARED, "lwf:kappa=2"]]


@cache
def instances() -> tuple[Instance, ...]:
    """Every kind of cluster and of cost with eta >= 0, with and without latency."""
    return tuple(random_task_instance(seed) for seed in (0, 1, 2, 6, 9, 10))


def ran(instance: Instance, spec: str) -> TaskRun:
    made = simulate(instance, spec)
    assert isinstance(made, TaskRun)
    return made


def rows(made: TaskRun, change: Callable[[float], float] = lambda time: time) -> list[tuple[Any, ...]]:
    log = made.schedule.tasks
    assert log is not None
    found = zip(log.job.tolist(), log.worker.tolist(), log.start.tolist(), log.end.tolist(), strict=True)
    return sorted((j, w, round(change(s), 9), round(change(e), 9)) for j, w, s, e in found)


def changed(instance: Instance, change: Callable[[Job], Job], **parts: Any) -> Instance:
    return instance.replace(
        jobs=Instance(
            [change(job) for job in instance.jobs],
            instance.cluster,
            tasks=instance.tasks,
            contention=instance.contention,
        ).table,
        **parts,
    )


def test_policies_are_of_one_level() -> None:
    others = {name for name, each in POLICIES.items() if shares_gpus(each) or resizes(each)}
    levels = [set(task_policies()), set(whole_job_policies()), others]
    assert sum(map(len, levels)) == len(set.union(*levels)) == len(POLICIES.names())
    assert {"sjf-bsbf", "sjf-ffs", "goodput"} <= others
    assert {"ada-srsf", "adadual", "k-way", "srsf"} <= set(task_policies())
    assert {"first-fit", "list", "lwf", "random"} <= set(SHARED)
    for name in task_policies():
        assert PLACEMENTS.get(default_placement(POLICIES.get(name)()).partition(":")[0])().shared is not None
        assert at_task_level(POLICIES.get(name))


@pytest.mark.parametrize("spec", PAIRS)
def test_all_jobs_finish_and_the_referee_agrees(spec: str) -> None:
    for instance in instances():
        made = ran(instance, spec)
        assert not made.unfinished
        assert made.schedule_class == "task-sharing"
        assert check_schedule(instance, made.schedule, value=made.value()) == []
        assert float(schedule_value(instance, made.schedule)) == pytest.approx(made.value(), rel=1e-12)
        assert rows(ran(instance, spec)) == rows(made)


@pytest.mark.parametrize("spec", SPECS)
def test_what_happens_does_not_depend_on_what_will_arrive(spec: str) -> None:
    for instance in instances():
        cut = float(np.median(instance.arrival))
        later = changed(
            instance,
            lambda job, cut=cut: job if job.arrival <= cut else dataclasses.replace(job, iterations=9, profile="odd"),  # type: ignore[misc]
        )
        until = min((a for a in instance.arrival.tolist() if a > cut), default=np.inf)
        # how long a transfer takes that has begun may depend on what comes
        before = [[row[:3] for row in rows(ran(each, spec)) if row[2] < until] for each in (instance, later)]
        assert before[0] == before[1]


@pytest.mark.parametrize("spec", SPECS)
def test_the_unit_and_the_origin_of_time_do_not_matter(spec: str) -> None:
    for instance in instances():
        made = ran(instance, spec)
        shifted = changed(instance, lambda job: dataclasses.replace(job, arrival=job.arrival + 1024))
        assert rows(ran(shifted, spec), lambda time: time - 1024) == rows(made)
        cost = instance.contention
        assert cost is not None
        slow = Contention(cost.seconds_per_byte * 8, cost.penalty * 8, cost.latency * 8)
        tasks = {
            name: dataclasses.replace(each, forward=each.forward * 8, backward=each.backward * 8)
            for name, each in instance.tasks.items()
        }
        scaled = Instance(
            [dataclasses.replace(job, arrival=job.arrival * 8) for job in instance.jobs],
            instance.cluster,
            tasks=tasks,
            contention=slow,
        )
        assert rows(ran(scaled, spec), lambda time: time / 8) == rows(made)


@pytest.mark.parametrize("name", task_policies())
def test_it_asks_for_no_more_than_the_knowledge_it_names(name: str) -> None:
    policy: Any = POLICIES.get(name)()
    instance = instances()[0]
    policy.tasks(TaskJobs(instance, policy.knowledge))
    if Knowledge(policy.knowledge) is Knowledge.CLAIRVOYANT:
        with pytest.raises(KnowledgeError, match="asked for iterations"):
            policy.tasks(TaskJobs(instance, Knowledge.NON_CLAIRVOYANT))


@pytest.mark.parametrize("name", task_policies())
def test_it_cites_its_reference(name: str) -> None:
    assert "**Reference**" in (inspect.getdoc(POLICIES.get(name)) or "")


def test_text_names_policy_and_placement() -> None:
    assert specify("ada-srsf").placement.name == "lwf"
    assert specify("ada-srsf").text == "ada-srsf"
    assert specify("srsf:k=2+lwf:kappa=4").placement.shared.numbers == (4.0,)  # type: ignore[union-attr]
