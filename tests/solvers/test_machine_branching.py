"""P || sum w_j C_j by branch and price against dynamic programming over loads, and its bound at any prices."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings, strategies as st

from optsched.deadline import NEVER, Deadline
from optsched.errors import InputError
from optsched.problem.instance import Cluster, Instance, Job
from optsched.solvers.identical_machines import least_weighted_completion
from optsched.solvers.machine_schedules import FAR, improve, least_after, least_before
from optsched.solvers.methods.machine_schedules import MachineBranching, ParallelJobs
from optsched.solvers.solve import solve


@st.composite
def parallel_jobs(draw: st.DrawFn) -> ParallelJobs:
    n = draw(st.integers(1, 9))
    pairs = [(draw(st.integers(1, 12)), draw(st.integers(0, 9))) for _ in range(n)]
    pairs.sort(key=lambda pair: (Fraction(pair[0], pair[1]) if pair[1] else Fraction(1000), pair))
    length, weight = np.array(pairs, dtype=np.int64).T
    return ParallelJobs(length.copy(), weight.copy(), draw(st.integers(1, 4)))


def least(jobs: ParallelJobs) -> int:
    return least_weighted_completion(jobs.length.tolist(), jobs.weight.tolist(), jobs.machines)


@given(parallel_jobs())
@settings(max_examples=examples(60), deadline=None)
def test_the_optimum_is_that_of_dynamic_programming(jobs: ParallelJobs) -> None:
    search = MachineBranching(jobs, NEVER, lambda: None)
    search.run()
    assert search.lower == search.upper == jobs.cost(search.machine) == least(jobs)


@given(parallel_jobs(), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_any_prices_bound_the_optimum(jobs: ParallelJobs, data: st.DataObject) -> None:
    price = np.array(data.draw(st.lists(st.integers(-50, 400), min_size=jobs.n, max_size=jobs.n)), dtype=np.int64)
    before = np.zeros((jobs.n + 1, jobs.horizon + 1), dtype=np.int64)
    after = np.zeros_like(before)
    least_before(jobs.length, jobs.weight, price, jobs.open_starts(), before)
    least_after(jobs.length, jobs.weight, price, jobs.open_starts(), jobs.first_end, after)
    cheapest = int(before[-1, jobs.first_end :].min())
    assert cheapest == int(after[0, 0]) < FAR  # the same paths from both ends
    assert int(price.sum()) + jobs.machines * cheapest <= least(jobs)


@given(parallel_jobs(), st.integers(0, 1000))
@settings(max_examples=examples(30), deadline=None)
def test_local_search_splits_two_machines_in_the_best_way(jobs: ParallelJobs, seed: int) -> None:
    machine = jobs.in_turn(np.arange(jobs.n))
    cost = improve(jobs.length, jobs.weight, machine, jobs.machines, 3, 0, np.array([seed]))
    assert cost == jobs.cost(machine) >= least(jobs)
    if jobs.machines <= 2:
        assert cost == least(jobs)


def _instance(gpus: int, objective: str, **all_of: float) -> Instance:
    jobs = [
        Job(f"j{j}", arrival=7.0, gpus=gpus, duration=0.5 * (3 + 5 * j % 11), weight=1 + 3 * j % 7, **all_of)
        for j in range(9)
    ]
    return Instance(jobs, Cluster.parse("1x8"), objective=objective)


@pytest.mark.parametrize("objective", ["total_completion_time", "total_weighted_flow_time"])
def test_gangs_of_one_size_are_identical_machines(objective: str) -> None:
    instance = _instance(3, objective)  # two of three GPUs at a time
    other = solve(instance, objective, model="rigid-time-indexed")
    mine = solve(instance, objective, model="machine-schedules")
    assert mine.value_exact == mine.bound_exact == other.value_exact == other.bound_exact


@pytest.mark.parametrize(
    ("jobs", "why"),
    [
        ([Job("a", duration=2), Job("b", arrival=1, duration=2)], "different times"),
        ([Job("a", duration=2), Job("b", gpus=2, duration=2)], "different numbers"),
    ],
)
def test_what_it_is_not_for(jobs: list[Job], why: str) -> None:
    with pytest.raises(InputError, match=why):
        solve(Instance(jobs, Cluster.parse("1x4")), "total_completion_time", model="machine-schedules")


def test_the_interval_holds_when_the_time_is_up() -> None:
    jobs = ParallelJobs(np.arange(1, 10), np.arange(9, 0, -1), 3)
    search = MachineBranching(jobs, Deadline(0.0), lambda: None)
    search.run()
    assert search.lower <= least(jobs) <= search.upper == jobs.cost(search.machine)
