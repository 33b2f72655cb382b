"""Run every cell of a study once: each workload and seed is one task, shared by the experiments that ask for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from joblib import Parallel, delayed

from optsched.errors import InputError
from optsched.guarantees.proven import Proven
from optsched.studies.experiment import Experiment, Numbers, Workload
from optsched.studies.measures import Measurement

Task = tuple[Workload, int, tuple[str, ...], Measurement]
Advance = Callable[[int, int], None]


def tasks(experiments: Iterable[Experiment], seeds: Iterable[int]) -> list[Task]:
    """Workload, seed, the policies that any experiment runs on it and what is measured, the largest first."""
    asked: dict[tuple[Workload, int, Measurement], dict[str, None]] = {}
    usual = tuple(seeds)
    for experiment in experiments:
        for column, workload in experiment.columns.items():
            policies = dict.fromkeys(experiment.policy(row, column) for row in experiment.rows)
            for seed in experiment.seeds_of(usual):
                asked.setdefault((workload, seed, experiment.measurement), {}).update(policies)
    found = [(workload, seed, tuple(policies), measured) for (workload, seed, measured), policies in asked.items()]
    return sorted(found, key=lambda task: -len(task[2]) * _size(task[0]))


def _size(workload: Workload) -> int:
    parameters = dict(workload.parameters)
    return int(parameters.get("jobs", 1)) * int(parameters.get("scale", 1))


def run_task(task: Task) -> list[tuple[tuple[Workload, int, str], dict[str, float]]]:
    """The numbers of one workload and seed: one instance, one certified bound, every policy."""
    workload, seed, policies, measurement = task
    proven = Proven(workload.make(seed))
    return [((workload, seed, policy), measurement.take(policy, proven)) for policy in policies]


def run_all(
    experiments: Iterable[Experiment],
    seeds: Iterable[int],
    *,
    workers: int | None = None,
    progress: Advance | None = None,
    heard: Callable[[Numbers], None] | None = None,
) -> Numbers:
    """All numbers of a study, over ``seeds`` where an experiment has no number of its own.

    They are the same whatever the number of ``workers`` (processes; default: one a processor). ``progress`` is called with
    (finished tasks, all tasks), ``heard`` with the numbers so far. Raises `InputError` for fewer than one worker.
    """
    if workers is not None and workers < 1:
        raise InputError("invalid", field="workers", value=workers, legal="an integer >= 1")
    todo = tasks(experiments, seeds)
    processes = min(workers or _processors(), len(todo))
    numbers: dict[tuple[Workload, int, str], dict[str, float]] = {}
    running = Parallel(n_jobs=processes, return_as="generator_unordered")(delayed(run_task)(task) for task in todo)
    for done, found in enumerate(running, start=1):
        for cell, measured in found:
            numbers.setdefault(cell, {}).update(measured)  # another experiment may measure something else of it
        if progress is not None:
            progress(done, len(todo))
        if heard is not None:
            heard(numbers)
    return numbers


def _processors() -> int:
    # those that this process may use, where the system tells
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
