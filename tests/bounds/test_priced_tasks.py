"""Prices over time of jobs that compute and send in turns: below every schedule, whatever the prices, and what they gain."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from examples import studied

import optsched as osd
from bounds.cases import SUMS
from bounds.task_cases import TaskRun, random_choices, task_instance
from bounds.task_optimum import TaskOptimum
from bounds.typed_cases import objective_value
from optsched.bounds import BOUNDS, Certificate, priced_time
from optsched.bounds.priced_time import priced_certificate
from optsched.bounds.priced_time_search import PricedTime, responses
from optsched.bounds.sum_costs import costs_with
from optsched.bounds.task_times import modes_of_tasks
from optsched.check.verify_time_prices import LeastCost, PricedCells, RoundMinima, TaskRound
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job

FLOW, KIND, CLASS = "total_flow_time", "priced-time", "task-sharing"
OBJECTIVES = (*SUMS, "total_utility")


@pytest.fixture(autouse=True)
def no_instance_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(priced_time, "FEWEST_JOBS", 1)


def random_prices(instance: Instance, rng: np.random.Generator) -> PricedTime:
    """Of cells as short as a task, and up to several times what would be reasonable; they rise and fall."""
    cells, length = int(rng.integers(1, 40)), float(rng.choice([0.25, 0.5, 1.0, 2.0]))
    price = rng.integers(0, 5, (cells, 2)) * rng.choice([0.0, 0.0625, 0.25], (1, 2)) * rng.integers(0, 2, (cells, 1))
    return PricedTime(np.arange(cells + 1) * length, price.astype(np.float64))


def claims(instance: Instance, objective: str, rng: np.random.Generator) -> list[Certificate]:
    """What the search finds, and what random prices prove; verified."""
    found = [BOUNDS.get(KIND).build(instance, objective, CLASS)]
    for _ in range(6):
        at = random_prices(instance, rng)
        found.append(priced_certificate(instance, objective, CLASS, at.moments, at.price))
    proved = [certificate for certificate in found if certificate is not None]
    for certificate in proved:
        certificate.verify(instance)
    return proved


def assert_below(instance: Instance, objective: str, values: list[Fraction], rng: np.random.Generator) -> float:
    """The best schedule, of these values, over the best bound."""
    gain = objective == "total_utility"
    best = max(values) if gain else min(values)
    found = [certificate.value for certificate in claims(instance, objective, rng)]
    if not found:
        return 0.0
    bound = min(found) if gain else max(found)
    assert best <= bound if gain else bound <= best, instance.to_json()
    return float(best / bound) if bound else 1.0


# --- below every schedule ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "count"), [(0, 12), studied(1, 400)])
@pytest.mark.parametrize("measured", [False, True])
def test_never_above_random_schedules(measured: bool, seed: int, count: int) -> None:
    rng = np.random.default_rng([seed, measured])
    for k in range(count):
        instance, objective = task_instance(rng, measured=measured).relative, OBJECTIVES[k % len(OBJECTIVES)]
        if any(each.forward + each.backward == 0 for each in instance.tasks.values()):
            objective = FLOW  # who takes no time has no utility
        runs = [TaskRun(instance, random_choices(rng, eager)) for eager in (1.0, 0.9, 0.9, 0.5)]
        values = [objective_value(instance, objective, run.completions()) for run in runs]
        assert_below(instance, objective, values, rng)


@pytest.mark.parametrize(("seed", "count"), [(2, 6), studied(3, 150)])
def test_never_above_the_best_schedule(seed: int, count: int) -> None:
    rng, tight, done = np.random.default_rng(seed), 0, 0
    while done < count:
        instance = task_instance(rng, most=3, iterations=2).relative
        if instance.n > 1 and instance.cluster.gpus + instance.n <= 5:
            tight += assert_below(instance, FLOW, [TaskOptimum(instance, FLOW).value], rng) < 1.05
            done += 1
    assert tight >= count / 6


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
        at = random_prices(instance, rng)
        modes = modes_of_tasks(instance)
        least = float(responses(costs_with(instance, FLOW, modes.alone), modes, at)[0][0])
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
