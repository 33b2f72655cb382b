"""Annealing over orders of starts: incremental values against decoding the whole order, schedules by the referee."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import optimum
from examples import examples
from hypothesis import given, settings, strategies as st

from optsched.bounds.regular import regular_cost
from optsched.check.referee import check_schedule
from optsched.deadline import NEVER, Deadline
from optsched.io.traces.generate import generate
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.solvers.generation import Costs, objective_value
from optsched.solvers.list_schedule import ListProblem, anneal, best_list_schedule
from solvers.rigid_instances import SUMS, rigid_instances


def decoded(problem: ListProblem, order: list[int]) -> list[float]:
    """Start of every job: no earlier than the one ahead of it, at the first moment at which enough GPUs are free."""
    jobs, start, begun = problem.jobs, [0.0] * len(order), -np.inf
    for k, j in enumerate(order):
        ends = [start[i] + jobs.duration[i] for i in order[:k]]
        for moment in sorted(
            {max(begun, jobs.release[j]), *(end for end in ends if end > max(begun, jobs.release[j]))}
        ):
            held = sum(jobs.gpus[i] for i, end in zip(order[:k], ends, strict=True) if end > moment)
            if held + jobs.gpus[j] <= jobs.pool_gpus[0]:
                start[j] = begun = moment
                break
    return start


@pytest.mark.compiled
@given(rigid_instances(most=8), st.sampled_from(SUMS), st.integers(0, 99), st.sampled_from([0.0, 3.0, 50.0]))
@settings(max_examples=examples(60), deadline=None)
def test_the_value_is_that_of_the_order_decoded_anew(
    instance: Instance, objective: str, seed: int, temperature: float
) -> None:
    problem, cost = ListProblem.of(instance), regular_cost(get_objective(objective), instance)
    costs = Costs(cost.slope, cost.kink, cost.base, cost.maximum)
    order, best, draws = np.arange(instance.n), np.arange(instance.n), np.array([seed])
    value = np.inf
    for _ in range(3):
        before, value = value, anneal(order, best, value, problem.jobs, costs, 40, temperature, draws)
        start = decoded(problem, best.tolist())
        assert value <= before
        assert value == objective_value(np.array(start), problem.jobs.duration, costs)
    assert sorted(order.tolist()) == sorted(best.tolist()) == list(range(instance.n))


@pytest.mark.compiled
@given(rigid_instances(most=5), st.sampled_from(SUMS))
@settings(max_examples=examples(25), deadline=None)
def test_few_jobs_are_annealed_to_the_optimum(instance: Instance, objective: str) -> None:
    schedule = best_list_schedule(instance, objective, budget=1_000_000)
    assert check_schedule(instance, schedule, preemptive=False) == []
    assert get_objective(objective).exact_of(instance, schedule.completion.tolist()) == optimum(instance, objective)


@pytest.mark.compiled
def test_a_larger_budget_and_a_deadline_that_has_passed() -> None:
    instance = generate("rigid", seed=7, jobs=60)
    sums = []
    for budget, deadline in ((10**9, Deadline(0.0)), (500_000, NEVER), (20_000_000, NEVER)):
        schedule = best_list_schedule(instance, "total_completion_time", budget=budget, deadline=deadline)
        assert check_schedule(instance, schedule, preemptive=False) == []
        sums.append(schedule.completion.sum())
    assert sums[0] >= sums[1]
    assert sums[0] > sums[2]
