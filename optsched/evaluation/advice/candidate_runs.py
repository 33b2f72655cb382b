"""Runs of many candidates, in several processes where that saves time; the runs do not depend on their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from optsched.evaluation.accepted_run import refereed
from optsched.policies.simulate import Specification, specify
from optsched.problem.instance import Instance
from optsched.simulation.run import Run

WORTH = 100_000  # job runs, below which another process costs more than it saves


def runs_of(
    tasks: Sequence[tuple[Instance, Specification]],
    workers: int | None = None,
    finished: Callable[[Run], None] | None = None,
) -> list[Run]:
    """Return the run of every task, in their order; the referee has accepted each.

    Parameters
    ----------
    tasks
        Instances with the policy that runs on each.
    workers
        Number of processes; 1: this process. Default: one a processor, if the tasks are worth it.
    finished
        Called with each run, in order.

    Raises
    ------
    SimulationError
        The referee rejects a schedule: a defect of optsched, or of a policy of one's own.
    """
    runs = []
    for run in _done(tasks, workers):
        runs.append(run)
        if finished is not None:
            finished(run)
    return runs


def _done(tasks: Sequence[tuple[Instance, Specification]], workers: int | None) -> Iterator[Run]:
    from joblib import Parallel, cpu_count, delayed

    # a policy object of the user's own stays in this process, and so does a short run
    texts = [specification.text for _, specification in tasks if _is_text(specification)]
    if workers is None:
        workers = cpu_count() if sum(instance.n for instance, _ in tasks) >= WORTH else 1
    if min(workers, len(texts)) < 2:
        yield from (refereed(instance, specification) for instance, specification in tasks)
        return
    elsewhere = Parallel(n_jobs=min(workers, len(texts)), return_as="generator", batch_size=1, pre_dispatch="all")(
        delayed(_bare)(instance, specification.text) for instance, specification in tasks if _is_text(specification)
    )
    for instance, specification in tasks:
        if _is_text(specification):
            yield _dressed(next(elsewhere), instance)
        else:
            yield refereed(instance, specification)


def _is_text(specification: Specification) -> bool:
    try:
        return type(specify(specification.text).policy) is type(specification.policy)
    except ValueError:  # the name of an object
        return False


def _bare(instance: Instance, text: str) -> Run:
    """Return a run without its instance and without what can be computed from the rest, which costs time to send."""
    run = refereed(instance, specify(text)).relative
    return replace(run, schedule=replace(run.schedule, instance=cast("Any", None)))


def _dressed(bare: Run, instance: Instance) -> Run:
    return replace(bare, schedule=replace(bare.schedule, instance=instance.relative)).on_clock(instance)
