"""Contention at the job level beside the task level, where every all-reduce is an event: on the workload of Ada-SRSF.

The same jobs both times, alone on their GPUs (a GPU has the memory of one), placed first fit, shortest service first, and
no all-reduce ever waits. Two measures: how long jobs stay **where and when the task level ran them** (the formula and
nothing else), and the mean JCT of a run of its own (a change of a thousandth of all forwards, which moves the task level
itself, is the noise of that comparison: other jobs find other nodes).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from examples import few

import optsched as osd
from optsched.policies.simulate import simulate
from optsched.problem.contention import IterationTasks
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.simulation.iterations import TaskRun
from optsched.simulation.policy import Order
from optsched.speeds.interface_sharing import CommunicationShares, others_met


def alone_on_their_gpus(seed: int) -> Instance:
    made = osd.generate("ada-srsf", seed)
    room = float(made.cluster.node_memory[0])
    return made.replace(jobs=made.table.with_columns(gpu_memory=pl.lit(room)))


@dataclass(frozen=True)
class ShortestService:
    """The queue of the task level for whole jobs."""

    made: Instance
    name: str = "shortest-service"
    knowledge: str = "clairvoyant"

    def order(self, jobs: Any) -> Order:
        made = self.made
        return Order(key=made.gpus * made.iterations * (made.forward + made.backward), skip=True)


@cache
def task_level(seed: int) -> TaskRun:
    run = simulate(alone_on_their_gpus(seed), "srsf:k=1000000+first-fit")
    assert isinstance(run, TaskRun)
    return run


def mean_jct(schedule: Schedule) -> float:
    return float((schedule.completion - schedule.instance.arrival).mean())


def stays(seed: int, *, contention: bool = True) -> list[float]:
    """Of every job over several nodes: seconds that the formula says it stays, over those that it stayed."""
    run, made = task_level(seed), osd.at_job_level(alone_on_their_gpus(seed))
    shares = CommunicationShares(made)
    rows = [row for row in run.schedule.segments() if len({node for node, _ in row.gpus}) > 1]
    nodes = [[node for node, _ in row.gpus] for row in rows]
    scalings, names = made.scalings, made.table["profile"].to_list()
    pace = [scalings[names[row.job]].compute + scalings[names[row.job]].across for row in rows]
    share = [shares.share(row.job, nodes[k], pace[k], 1) for k, row in enumerate(rows)]
    done = np.zeros(len(rows))
    times = sorted({row.start for row in rows} | {row.end for row in rows})
    for begin, end in itertools.pairwise(times):
        here = [k for k, row in enumerate(rows) if row.start <= begin and row.end >= end]
        met = dict.fromkeys(here, 0.0)
        for m in range(made.cluster.node_count):
            there = [k for k in here if m in nodes[k]]
            for k, others in zip(there, others_met([share[k] for k in there], shares.step), strict=True):
                met[k] = max(met[k], others)
        for k in here:
            slow = 1 + share[k] * shares.step * met[k] if contention else 1.0
            done[k] += (end - begin) / (pace[k] * slow)
    return [float(made.iterations[row.job] / work) for row, work in zip(rows, done, strict=True)]


def jct_error(seed: int) -> float:
    """Mean JCT of the job level over that of the task level, less 1."""
    made = alone_on_their_gpus(seed)
    run = simulate(osd.at_job_level(made), ShortestService(made), "first-fit")  # type: ignore[arg-type]
    return mean_jct(run.schedule) / mean_jct(task_level(seed).schedule) - 1


def noise(seed: int) -> float:
    """The same of the task level itself, where forwards take up to a thousandth more or less."""
    made, rng = alone_on_their_gpus(seed), np.random.default_rng(seed)
    other = {
        name: IterationTasks(each.forward * (1 + 1e-3 * rng.uniform(-1, 1)), each.backward, each.message)
        for name, each in made.tasks.items()
    }
    run = simulate(made.replace(tasks=other), "srsf:k=1000000+first-fit")
    return mean_jct(run.schedule) / mean_jct(task_level(seed).schedule) - 1


def test_jobs_stay_about_as_long_as_at_the_task_level() -> None:
    for seed in few(range(2), 1):
        assert abs(np.mean(stays(seed)) - 1) < 0.01
        assert np.abs(np.array(stays(seed)) - 1).mean() < 0.025
        assert np.mean(stays(seed, contention=False)) < 0.45  # what is left without the formula


@pytest.mark.study
def test_errors_over_twenty_seeds_are_those_that_the_documentation_states() -> None:
    """Of stays: mean, worst seed, mean over single jobs. Of the mean JCT: mean, mean of the sizes, worst. Its noise."""
    stay = [np.array(stays(seed)) - 1 for seed in range(20)]
    assert np.mean([each.mean() for each in stay]) == pytest.approx(-0.007, abs=5e-4)
    assert max(abs(each.mean()) for each in stay) == pytest.approx(0.017, abs=5e-4)
    assert np.mean([np.abs(each).mean() for each in stay]) == pytest.approx(0.020, abs=5e-4)
    jct = np.array([jct_error(seed) for seed in range(20)])
    assert jct.mean() == pytest.approx(0.019, abs=5e-4)
    assert np.abs(jct).mean() == pytest.approx(0.101, abs=5e-4)
    assert np.abs(jct).max() == pytest.approx(0.299, abs=5e-4)
    itself = np.array([noise(seed) for seed in range(20)])
    assert np.abs(itself).mean() == pytest.approx(0.025, abs=5e-4)
    assert np.abs(itself).max() == pytest.approx(0.165, abs=5e-4)
