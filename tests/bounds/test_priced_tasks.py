"""Prices over time of jobs that compute and send in turns: what a job says is so, and what they gain."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from verifier.certified_cases import random_prices_over_time

import optsched as osd
from optsched.bounds import BOUNDS
from optsched.bounds.priced_time_search import PricedTime, responses
from optsched.bounds.sum_costs import sum_costs
from optsched.classes.task_sharing.bounds.task_times import modes_of_tasks
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job
from optsched.verifier.priced_cells import LeastCost, PricedCells, RoundMinima, TaskRound

FLOW, KIND, CLASS = "total_flow_time", "priced-time", "task-sharing"
pytestmark = pytest.mark.usefixtures("prices_for_few_jobs")


def least_by_steps(rounds: TaskRound, count: int, release: int, at: PricedTime, step: float, horizon: int) -> float:
    """Cheapest way to do the rounds alone, step by step: wait, compute, or send (bytes once the latency is over)."""
    length = [round(float(x) / step) for x in (rounds.compute, rounds.latency, rounds.sent - rounds.latency)]
    a_step = [rounds.gpus * step, 0.0, float(rounds.links) / max(length[2], 1)]
    stages = [part for _ in range(count) for part in range(3) for _ in range(length[part])]
    cheapest = np.full(len(stages) + 1, np.inf)
    cheapest[0], best = 0.0, np.inf
    for k in range(release, horizon):
        cell = int(np.searchsorted(at.moments, k * step, side="right")) - 1
        price = at.price[cell] if cell < len(at.price) else np.zeros(2)
        pays = np.array([a_step[part] * price[min(part, 1)] for part in stages])
        cheapest[1:] = np.minimum(cheapest[1:], cheapest[:-1] + pays)
        best = min(best, cheapest[-1] + (k + 1 - release) * step)
    return float(best)


@pytest.mark.parametrize("seed", range(3))
def test_no_way_to_do_the_rounds_of_a_job_costs_less_than_it_says(seed: int) -> None:
    """Its own least cost in floats, as the verifier holds it, and that of all ways in steps of 1/4."""
    rng, near = np.random.default_rng(seed), 0
    for _ in range(30):
        compute, latency, bytes_ = (float(rng.integers(low, 6)) / 4 for low in (1, 0, 1))
        tasks = {"m": IterationTasks(0.0, compute, bytes_)}
        job = Job("j", float(rng.integers(0, 5)), 2, iterations=int(rng.integers(1, 5)), profile="m")
        link = Contention(1.0, 0.5, latency if rng.random() < 0.5 else 0.0)
        instance = Instance([job], "3x1", tasks=tasks, contention=link)
        at = random_prices_over_time(rng, 2)
        modes = modes_of_tasks(instance)
        least = float(responses(sum_costs(instance, FLOW, modes.alone), modes, at)[0][0])
        rounds = TaskRound(*map(Fraction, (compute, link.latency + bytes_, link.latency)), 2, Fraction(2 * bytes_))
        ways = least_by_steps(rounds, int(job.iterations or 0), int(job.arrival * 4), at, 0.25, 600)
        assert least <= ways + 1e-9
        near += least > 0.95 * ways
        rows = [dict(zip(("gpus", "links"), map(Fraction, row), strict=True)) for row in at.price.tolist()]
        exact = RoundMinima(PricedCells([Fraction(x) for x in at.moments.tolist()], rows))
        release, slightly = Fraction(job.arrival), Fraction(1, 10**9)
        says = LeastCost(release, Fraction(job.iterations or 0), Fraction(1), release, Fraction(least) - slightly)
        assert exact.hold(says, rounds)
        assert not exact.hold(says._replace(least=says.least + 2 * slightly), rounds)
    assert near >= 5


# --- what it is worth ----------------------------------------------------------------------------------------------------


def test_contention_cluster() -> None:
    found = BOUNDS.get(KIND).build(osd.load("contention-cluster").relative, FLOW, CLASS)
    found.verify(osd.load("contention-cluster").relative)
    assert found.value > 912


def test_a_gang_that_sends_leaves_its_gpus_to_others() -> None:
    # half of the time of each is compute: two at once keep GPUs and interfaces busy, and a third one has to wait
    tasks = {"m": IterationTasks(0.0, 1.0, 1.0)}
    jobs = [Job(f"j{k}", 0.0, 2, iterations=20, profile="m") for k in range(4)]
    instance = Instance(jobs, "2x1", tasks=tasks, contention=Contention(1.0, 0.25))
    certificate = BOUNDS.get(KIND).build(instance, FLOW, CLASS)
    assert 40 + 40 + 78 + 78 < certificate.value <= 41 + 40 + 82 + 81
