"""`Study`: a paper's experiments, declared as tables, that can be run again: name, summary, tables, what they say.

`run_all` runs every cell once: each workload and seed is one task, shared by the experiments that ask for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from joblib import Parallel, delayed

from optsched.errors import InputError, check_legal
from optsched.guarantees.optimum_bounds import OptimumBounds
from optsched.registry import Registry
from optsched.studies.estimate import CONFIDENCE
from optsched.studies.experiment import Experiment, Numbers, RunOutcome, Workload
from optsched.studies.findings import findings
from optsched.studies.measures import OBJECTIVE, Measure, Measurement

METHOD = (
    "each seed is one workload, shared by all rows of a column; intervals: 95 % of Student's t over the seeds; rows are "
    "compared on the same workloads, by the geometric mean of their ratios of mean JCT (sum C moves in the same direction) "
    "and its interval, not corrected for the number of comparisons; every schedule was accepted by the referee, every bound "
    "was proved again"
)


Task = tuple[Workload, int, tuple[str, ...], Measurement]
Advance = Callable[[int, int], None]


@dataclass(frozen=True)
class Study:
    """Experiments that belong together. ``declare(small)`` gives their tables, the default size or one for a quick look.

    ``method`` says how the numbers come about, ``seeds`` how many workloads of every kind are usual.
    """

    name: str
    summary: str
    declare: Callable[[bool], tuple[Experiment, ...]]
    method: str = METHOD
    seeds: int = 5

    def run(
        self,
        seeds: int | None = None,
        *,
        small: bool = False,
        workers: int | None = None,
        progress: Advance | None = None,
        so_far: Callable[[Reproduction], None] | None = None,
    ) -> Reproduction:
        """Run all experiments on the seeds 1..``seeds`` (default: the usual number, or that of the experiment).

        The same numbers whenever and on however many ``workers``. ``so_far`` is called with the experiments that are
        finished, whenever there are more of them.

        Raises `InputError` unless ``seeds`` and ``workers`` are at least 1.
        """
        experiments = self.declare(small)
        if seeds is not None:
            check_legal(seeds >= 1, "seeds", seeds, "an integer >= 1")
            experiments = tuple(replace(each, seeds=None) for each in experiments)
        named = tuple(range(1, (self.seeds if seeds is None else seeds) + 1))
        finished = 0

        def outcomes(numbers: Numbers) -> tuple[RunOutcome, ...]:
            return tuple(RunOutcome(each, each.seeds_of(named), numbers) for each in experiments)

        def heard(numbers: Numbers) -> None:
            nonlocal finished
            complete = tuple(each for each in outcomes(numbers) if each.complete)
            if so_far is not None and len(complete) > finished:
                finished = len(complete)
                so_far(Reproduction(self, small, named, complete))

        numbers = run_all(experiments, named, workers=workers, progress=progress, heard=heard)
        return Reproduction(self, small, named, outcomes(numbers))


@dataclass(frozen=True)
class Reproduction:
    """The outcomes of a study, with the settings that gave them."""

    study: Study
    small: bool
    seeds: tuple[int, ...]
    outcomes: tuple[RunOutcome, ...]

    @property
    def settings(self) -> dict[str, Any]:
        """What a reader needs to get the same numbers."""
        return {
            "size": "small" if self.small else "default",
            "seeds": list(self.seeds),
            "objective": OBJECTIVE,
            "confidence": CONFIDENCE,
            "method": self.study.method,
        }

    @property
    def measures(self) -> dict[str, Measure]:
        """All measures of the experiments by name."""
        return {name: m for each in self.outcomes for name, m in each.experiment.measurement.measures.items()}

    def to_json(self) -> dict[str, Any]:
        """The document of ``reproduce --json``."""
        return {
            "study": self.study.name,
            "summary": self.study.summary,
            "settings": self.settings,
            "measures": {name: {"unit": m.unit, "meaning": m.meaning} for name, m in self.measures.items()},
            "experiments": [{**each.to_json(), "findings": findings(each)} for each in self.outcomes],
        }


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
    proven = OptimumBounds(workload.make(seed))
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


STUDIES: Registry[Study] = Registry("study", package="optsched.studies")
study = STUDIES.maker(Study, lambda made: made.name)
