"""The levels at which policies decide: whole jobs, jobs that share GPUs, tasks; the instances of each, and how they change.

Everything that a check does to an instance (another clock, another unit, other names) is said here once for every level.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any

from optsched.contract.instances import (
    MIXED,
    random_instance,
    random_sharing_instance,
    random_task_instance,
    real_instance,
)
from optsched.errors import InputError
from optsched.policies.simulate import at_task_level, resizes, shares_gpus
from optsched.problem.contention import Contention
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import Run

Rows = list[tuple[Any, ...]]
SHIFT = 1024.0  # seconds, a multiple of every round that the tests know
FASTER = 8  # a power of two: exact
ROUNDED = 1e-8  # seconds, of rows


def whole_rows(run: Run, time: Callable[[float], float] = float) -> Rows:
    """Every segment with its GPUs, sorted; exact."""
    every = run.schedule.segments()
    return sorted((s.job, time(s.start), time(s.end), s.work, tuple(sorted(s.gpus))) for s in every)


def shared_rows(run: Run, time: Callable[[float], float] = float) -> Rows:
    """Every segment, sorted, to 1e-8 s: slow-downs are no powers of two."""
    return sorted((s.job, round(time(s.start), 8), round(time(s.end), 8), s.gpus) for s in run.schedule.segments())


def task_rows(run: Run, time: Callable[[float], float] = float) -> Rows:
    """Every task, sorted, to 1e-9 s."""
    log: Any = getattr(run.schedule, "tasks")  # noqa: B009 - a schedule of the task level has one
    found = zip(log.job.tolist(), log.worker.tolist(), log.start.tolist(), log.end.tolist(), strict=True)
    return sorted((j, w, round(time(s), 9), round(time(e), 9)) for j, w, s, e in found)


def changed(instance: Instance, change: Callable[[Job], Job]) -> Instance:
    """The same instance with other jobs."""
    jobs = Instance(
        [change(job) for job in instance.jobs], instance.cluster, tasks=instance.tasks, contention=instance.contention
    )
    return instance.replace(jobs=jobs.table)


def later(instance: Instance) -> Instance:
    """Everything happens `SHIFT` seconds later."""
    return changed(
        instance,
        lambda job: dataclasses.replace(
            job, arrival=job.arrival + SHIFT, due=None if job.due is None else job.due + SHIFT
        ),
    )


def faster(instance: Instance) -> Instance:
    """A clock that ticks `FASTER` times as fast: every time is so many times as large."""

    def scaled(job: Job) -> Job:
        lasts = None if job.duration is None else job.duration * FASTER
        due = None if job.due is None else job.due * FASTER
        return dataclasses.replace(job, arrival=job.arrival * FASTER, duration=lasts, due=due)

    if not instance.at_task_level:
        return changed(instance, scaled)
    cost = instance.contention
    assert cost is not None
    slow = Contention(cost.seconds_per_byte * FASTER, cost.penalty * FASTER, cost.latency * FASTER)
    tasks = {
        name: dataclasses.replace(each, forward=each.forward * FASTER, backward=each.backward * FASTER)
        for name, each in instance.tasks.items()
    }
    jobs = [dataclasses.replace(job, arrival=job.arrival * FASTER) for job in instance.jobs]
    return Instance(jobs, instance.cluster, tasks=tasks, contention=slow)


def renamed(instance: Instance) -> Instance:
    """Other ids, users and groups; other models where nothing depends on them."""
    free: dict[str, Any] = {} if instance.at_task_level or instance.interference is not None else {"model": "m"}
    names = {job.id: f"{97 * j % 101}-{j}" for j, job in enumerate(instance.jobs)}
    return changed(
        instance, lambda job: dataclasses.replace(job, id=names[job.id], user=f"u-{job.id}", group="g", **free)
    )


@dataclasses.dataclass(frozen=True)
class Level:
    """``instances`` of most checks, ``shifted`` and ``scaled`` those of another clock and unit, ``secretive(seed)`` those on
    which much is unknown for long, ``late(job)`` another job that has yet to arrive. ``rows``: what happened in a run.

    ``orders_by_jobs``: its orders ask `KnownJobs`. ``learns``: a policy may know durations at completions only.
    """

    name: str
    instances: Callable[[], tuple[Instance, ...]]
    shifted: Callable[[], tuple[Instance, ...]]
    scaled: Callable[[], tuple[Instance, ...]]
    secretive: Callable[[int], Instance]
    seeds: tuple[int, ...]
    rows: Callable[..., Rows]
    late: Callable[[Job], Job]
    orders_by_jobs: bool = False
    gangs: bool = False


@cache
def _whole() -> tuple[Instance, ...]:
    # Small ones with ties, larger ones without, homogeneous and mixed.
    mixed = random_instance(800, MIXED, jobs=30)
    return random_instance(16, "2x4", jobs=14), mixed, real_instance(820, "2x2", jobs=14), real_instance(803, MIXED)


@cache
def _sharing() -> tuple[Instance, ...]:
    return tuple(map(random_sharing_instance, range(3)))


@cache
def _tasks() -> tuple[Instance, ...]:
    # Every kind of cluster and of cost with eta >= 0, with and without latency.
    return tuple(map(random_task_instance, (0, 1, 2, 6, 9, 10)))


WHOLE = Level(
    "whole jobs",
    _whole,
    lambda: _whole()[:2],  # integers: exact
    cache(lambda: (real_instance(839, "2x2", jobs=14),)),
    lambda seed: random_instance(seed, "2x4", jobs=25),
    (821, 887, 888, 891),  # where many jobs arrive late, so that clairvoyants do not know them either
    whole_rows,
    lambda job: job,
    orders_by_jobs=True,
    gangs=True,
)
SHARING = Level(
    "jobs that may share GPUs",
    _sharing,
    cache(lambda: (random_sharing_instance(5),)),
    cache(lambda: (random_sharing_instance(5),)),
    random_sharing_instance,
    (4,),
    shared_rows,
    lambda job: dataclasses.replace(job, gpus=1, duration=0.5),
)
TASKS = Level(
    "jobs with tasks",
    _tasks,
    _tasks,
    _tasks,
    random_task_instance,
    (0, 1, 2, 6, 9, 10),
    task_rows,
    lambda job: dataclasses.replace(job, iterations=9, profile="odd"),
)


def level_of(policy: object) -> Level:
    """The level at which a policy decides; `InputError` for one that gives jobs other numbers of GPUs."""
    if hasattr(policy, "form"):  # it is examined where it shares GPUs
        policy = policy.form(SHARING.instances()[0])
    if at_task_level(policy):
        return TASKS
    if shares_gpus(policy):
        return SHARING
    if resizes(policy):
        legal = "a policy for whole jobs, for jobs that share GPUs, or for tasks"
        raise InputError("nothing is checked of policies that resize jobs", field="policy", value=policy, legal=legal)
    return WHOLE
