"""Bounds of jobs with tasks against the exact optimum of tiny instances with computation: none is above it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from examples import studied

from bounds.cases import OBJECTIVES
from bounds.task_cases import TaskRun, random_choices
from bounds.task_optimum import TaskOptimum
from bounds.test_task_bounds import certificates
from bounds.typed_cases import objective_value
from optsched.bounds import bound
from optsched.problem.cluster import Cluster
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job

CLUSTERS = ("1x1", "1x2", "2x1", "2x1", "1x1+1x2")


def tiny(seed: int) -> Instance:
    """2 or 3 jobs of 1 to 3 iterations on one or two nodes; all of them compute, and gangs over both nodes send."""
    rng = np.random.default_rng([7, seed])
    cluster = Cluster.parse(str(rng.choice(CLUSTERS)))
    n = int(rng.integers(2, 4))
    tasks = {
        f"t{k}": IterationTasks(
            float(rng.choice([0.25, 0.5, 1, 2])),
            float(rng.choice([0.25, 1, 1.5, 3])),
            [None, 1.0, 2.0, 3.0, 4.0][rng.integers(5)],
        )
        for k in range(n)
    }
    b = float(rng.choice([0.25, 0.5, 1]))
    link = Contention(b, b * float(rng.choice([0, 0.25, 1, -0.5])), float(rng.choice([0, 0, 0.5])))
    spans = int(rng.integers(0, n))  # one job may send, so that no two all-reduces meet; sometimes all may
    many = rng.random() < 0.3
    jobs = []
    for k in range(n):
        wide = cluster.node_count > 1 and (k == spans or many)
        size = int(rng.integers(1, cluster.gpus + 1)) if wide or cluster.node_count == 1 else 1
        iterations = int(rng.integers(1, 4 if n == 2 else 3))
        row = {"weight": float(rng.integers(0, 4)), "due": [None, float(rng.integers(1, 12))][rng.integers(2)]}
        jobs.append(
            Job(f"j{k}", float(rng.choice([0, 0, 0.5, 1, 3])), size, iterations=iterations, profile=f"t{k}", **row)
        )
    return Instance(jobs, cluster, tasks=tasks, contention=link)


def below_the_optimum(first: int, count: int) -> tuple[int, float]:
    """(how many bounds are tight, the largest optimum over bound) of so many instances, an objective each."""
    tight, worst = 0, 1.0
    for seed in range(first, first + count):
        instance, objective = tiny(seed), OBJECTIVES[seed % len(OBJECTIVES)]
        best = TaskOptimum(instance, objective).value
        found = certificates(instance, objective)
        for certificate in found:
            certificate.verify(instance)
            assert certificate.value <= best, (seed, objective, certificate.kind, float(certificate.value), float(best))
        highest = max(certificate.value for certificate in found)
        tight += highest == best
        worst = max(worst, float(best / highest)) if highest > 0 else worst
    return tight, worst


@pytest.mark.parametrize(("first", "count"), [(0, 5), studied(0, 30), studied(1000, 600)])
def test_no_bound_is_above_the_optimum(first: int, count: int) -> None:
    tight, worst = below_the_optimum(first, count)
    assert tight >= count // 6  # and they are not below it for no reason
    assert worst < 4 or count > 30


def test_the_optimum_by_hand() -> None:
    """One GPU: the iterations of two jobs are one machine. Two nodes: the second job computes while the first one sends."""
    tasks = {"m": IterationTasks(1, 1, 2)}
    link = Contention(1.0, 0.5)
    machine = Instance(
        [Job("a", iterations=1, profile="m"), Job("b", iterations=2, profile="m")], "1x1", tasks=tasks, contention=link
    )
    assert TaskOptimum(machine, "total_completion_time").value == 2 + 6
    pair = Instance(
        [Job(name, gpus=2, iterations=1, profile="m") for name in "ab"], "2x1", tasks=tasks, contention=link
    )
    # compute 0-2, 2-4; messages 2-4, 4-6
    assert TaskOptimum(pair, "total_completion_time").value == 4 + 6
    assert TaskOptimum(pair, "makespan").value == 6


@pytest.mark.parametrize("count", [9, pytest.param(24, marks=pytest.mark.study)])
def test_no_random_schedule_is_better_where_the_search_is_exact(count: int) -> None:
    """Schedules made by other code, with idle GPUs and messages that wait."""
    rng = np.random.default_rng(3)
    looked = 0
    for seed in range(count):
        instance = tiny(seed)
        if instance.contention is None or int((instance.gpus > 1).sum()) > 1:
            continue
        looked += 1
        best = TaskOptimum(instance, "total_flow_time").value
        for eager in (1.0, 0.9, 0.5):
            ends = TaskRun(instance, random_choices(rng, eager)).completions()
            assert objective_value(instance, "total_flow_time", ends) >= best
    assert looked > count // 3


def test_the_best_bound_is_one_of_them() -> None:
    instance = tiny(4)
    assert bound(instance, "total_flow_time").value <= TaskOptimum(instance, "total_flow_time").value
    assert isinstance(TaskOptimum(instance, "makespan").value, Fraction)
