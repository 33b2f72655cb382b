"""The elastic goodput policy: its two steps against other methods, and what its rounds decide."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from examples import few
from scipy.optimize import Bounds, LinearConstraint, milp
from simulation.elastic_instances import elastic_instance

from optsched.check.referee import check_schedule
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.policies.goodput_allocation import best_counts, place
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.scaling import Scaling
from optsched.speeds.goodput_rates import Goodputs

Floats = np.ndarray


def values_of(rng: np.random.Generator, jobs: int, gpus: int) -> list[Floats]:
    """Neither concave nor monotone, some numbers not possible."""
    found = []
    for _ in range(jobs):
        value = rng.normal(size=gpus + 1).cumsum()
        value[rng.random(gpus + 1) < 0.3] = -np.inf
        value[0] = 0.0
        found.append(value)
    return found


def total(values: list[Floats], counts: list[int]) -> float:
    return sum(float(value[r]) for value, r in zip(values, counts, strict=True))


def by_milp(values: list[Floats], gpus: int) -> float:
    """The knapsack as an integer program, x_jr = 1 where job j has r GPUs."""
    pairs = [(j, r) for j, value in enumerate(values) for r in np.flatnonzero(np.isfinite(value)).tolist()]
    once = np.array([[float(j == k) for j, _ in pairs] for k in range(len(values))])
    room = np.array([[float(r) for _, r in pairs]])
    answer = milp(
        [-values[j][r] for j, r in pairs],
        integrality=np.ones(len(pairs)),
        bounds=Bounds(0, 1),
        constraints=[LinearConstraint(once, 1, 1), LinearConstraint(room, 0, gpus)],
    )
    return -float(answer.fun)


@pytest.mark.parametrize("seed", few(range(20), 6))
def test_numbers_against_every_choice_and_an_integer_program(seed: int) -> None:
    rng = np.random.default_rng([seed, 3])
    jobs, gpus = int(rng.integers(1, 5)), int(rng.integers(1, 7))
    values = values_of(rng, jobs, gpus)
    counts = best_counts(values, gpus)
    assert sum(counts) <= gpus
    every = (list(c) for c in itertools.product(range(gpus + 1), repeat=jobs) if sum(c) <= gpus)
    best = max(total(values, c) for c in every)
    assert total(values, counts) == pytest.approx(best, abs=1e-12)
    assert by_milp(values, gpus) == pytest.approx(best, abs=1e-6)


def test_numbers_of_many_jobs_against_an_integer_program() -> None:
    values = values_of(np.random.default_rng(8), 25, 64)
    assert total(values, best_counts(values, 64)) == pytest.approx(by_milp(values, 64), abs=1e-6)


def test_places() -> None:
    free, every = np.array([4, 4, 2]), np.ones(3, dtype=np.bool_)
    suits = dict.fromkeys(range(5), every)
    # 0 keeps its two; 2, the largest, has the rest of the widest node, and its last piece where it just fits; then 1
    held = {0: ((0, 1), (1, 1)), 1: (), 2: ((2, 1),)}
    assert place({0: 2, 1: 2, 2: 5}, held, free, suits) == {0: ((0, 1), (1, 1)), 2: ((0, 3), (2, 2)), 1: ((1, 2),)}
    assert place({0: 2, 1: 0, 2: 0}, held, free, suits) == {0: ((0, 1), (1, 1))}
    # a job that may use the last node alone
    suits[1] = np.array([False, False, True])
    assert place({1: 2, 2: 8}, {}, free, suits) == {2: ((0, 4), (1, 4)), 1: ((2, 2),)}
    assert place({1: 3}, {}, free, suits) == {}
    # of the nodes that could take the last piece, the fullest
    assert place({2: 5}, {}, free, dict.fromkeys(range(5), every)) == {2: ((0, 4), (2, 1))}


def job(name: str, arrival: float = 0, work: float = 100, **more: object) -> Job:
    return Job(name, arrival, 1, iterations=work, profile="m", batch_size=8, **more)  # type: ignore[arg-type]


def cluster(scaling: Scaling, *jobs: Job, spec: str = "2x4") -> Instance:
    return Instance(jobs, spec, scalings={"m": scaling})


def test_one_job_has_the_gpus_on_which_it_is_fastest() -> None:
    # across nodes communication costs more than the fifth GPU gives
    run = simulate(cluster(Scaling(0.1, 0.1, across=1.0), job("a")), "goodput")
    rates = Goodputs(run.instance).table(0)
    assert int(rates.max(axis=1).argmax()) == 4
    assert [s.gpus for s in run.schedule.segments()] == [tuple((0, k) for k in range(4))]
    assert run.schedule.completion[0] == 30 + 100 / rates[4, 0]


def test_alike_jobs_have_alike_shares() -> None:
    run = simulate(cluster(Scaling(0.01, 0.1), *(job(f"j{k}") for k in range(4))), "goodput:restart=0")
    assert sorted(run.schedule.gangs[:4].tolist()) == [2, 2, 2, 2]


def test_jobs_are_resized_for_others_and_not_for_nothing() -> None:
    both = cluster(Scaling(0.01, 0.1), job("a", work=3000), job("b", arrival=10, work=10))
    run = simulate(both, "goodput:round=20,restart=1")
    assert run.preemptions >= 1
    alone = simulate(cluster(Scaling(0.01, 0.1), job("a", work=3000)), "goodput:round=20,restart=1")
    assert alone.preemptions == 0


def test_gpus_go_where_they_help() -> None:
    # one job that does not scale at all, and one that does
    scalings = {"flat": Scaling(10.0, 0.0), "good": Scaling(0.0, 0.1)}
    jobs = [Job(name, 0, 1, iterations=50, profile=name, batch_size=64) for name in scalings]
    instance = Instance(jobs, "1x8", scalings=scalings)
    for p in (1, 0, -1):
        run = simulate(instance, f"goodput:p={p},restart=0")
        assert {s.job: len(s.gpus) for s in run.schedule.segments() if s.start == 0} == {0: 1, 1: 7}
    # of two that scale perfectly, the harmonic mean leaves nobody out
    pair = cluster(Scaling(0.0, 0.1), *(job(f"j{k}", work=5) for k in range(2)), spec="1x2")
    fair = simulate(pair, "goodput:p=-1")
    assert [len(s.gpus) for s in fair.schedule.segments() if s.start == 0] == [1, 1]


@pytest.mark.parametrize("spec", ["goodput:round={},restart={},p={}", "unified:restart={1}"])
@pytest.mark.parametrize("seed", range(3))
def test_runs_are_legal_complete_and_above_the_bound(spec: str, seed: int) -> None:
    instance = elastic_instance(seed, jobs=10, memory=seed % 3 == 1, measured=seed % 3 == 2)
    run = simulate(instance, spec.format(5 + seed, seed % 4, 1 - seed % 3))
    assert run.unfinished == []
    assert run.schedule_class == "elastic"
    assert check_schedule(instance, run.schedule, schedule_class="elastic") == []
    proven = OptimumBounds(instance, [run])
    for objective in ("total_flow_time", "total_weighted_completion_time", "makespan", "total_weighted_tardiness"):
        shown = proven.bound_for(proven.runs[0], objective)
        assert shown is not None
        assert shown.schedule_class == "elastic"
        assert run.value(objective) >= shown.value * (1 - 1e-9)
    again = simulate(instance, run.policy)
    assert np.array_equal(run.schedule.end, again.schedule.end)
