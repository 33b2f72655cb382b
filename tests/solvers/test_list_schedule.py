"""List schedules against a plain re-implementation, exhaustion and the referee; at speeds by placement; annealed orders."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from brute_force import optimum
from examples import examples
from hypothesis import given, settings, strategies as st

from optsched.bounds import bound
from optsched.bounds.regular import exact_cost, regular_cost
from optsched.check.referee import check_schedule, schedule_value
from optsched.compiled import without_interpreting
from optsched.deadline import NEVER, Deadline
from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.models.mapped_modes import MappedModes
from optsched.problem.instance import Cluster, Instance, Job
from optsched.problem.objectives import get_objective
from optsched.solvers.generation import Costs, objective_value
from optsched.solvers.list_schedule import ORDERS, ListProblem, anneal, best_list_schedule, list_schedule
from optsched.solvers.placed_list import best_placed_schedule
from optsched.solvers.solve import solve
from solvers.placed_instances import beside_two_others, placed_instances
from solvers.rigid_instances import OBJECTIVES, SUMS, one_machine, rigid_instances

# --- list schedules against a plain re-implementation, exhaustion and the referee ----------------------------------------


def plain_serial(instance: Instance, order: list[int]) -> list[Fraction]:
    """Each job at the earliest candidate (its release, or an end) at which the gangs beside it leave room."""
    placed: list[tuple[Fraction, Fraction, int]] = []
    starts = [Fraction(0)] * instance.n
    for j in order:
        release, length, gang = (Fraction(float(a[j])) for a in (instance.arrival, instance.duration, instance.gpus))
        for start in sorted({release, *(end for _, end, _ in placed if end > release)}):
            moments = {start, *(s for s, _, _ in placed if start < s < start + length)}
            busy = max(sum(g for s, e, g in placed if s <= t < e) for t in moments)
            if busy + gang <= instance.cluster.gpus:
                break
        starts[j] = start
        placed.append((start, start + length, int(gang)))
    return starts


def plain_parallel(instance: Instance, order: list[int]) -> list[Fraction]:
    """At every arrival and end, in time order, start in the list's order what fits."""
    starts: dict[int, Fraction] = {}
    events = {Fraction(float(r)) for r in instance.arrival}
    while len(starts) < instance.n:
        now = min(events)
        events.discard(now)
        for j in order:
            running = [k for k, s in starts.items() if s <= now < s + Fraction(float(instance.duration[k]))]
            free = instance.cluster.gpus - int(instance.gpus[running].sum())
            if j not in starts and instance.arrival[j] <= now and instance.gpus[j] <= free:
                starts[j] = now
                events.add(now + Fraction(float(instance.duration[j])))
    return [starts[j] for j in range(instance.n)]


@given(rigid_instances(most=7), st.randoms(use_true_random=False))
def test_both_generations_are_the_textbooks(instance: Instance, random: object) -> None:
    order = list(range(instance.n))
    random.shuffle(order)
    problem = ListProblem.of(instance)
    for parallel, plain in ((False, plain_serial), (True, plain_parallel)):
        start, taken = problem.generate(np.array(order), parallel)
        assert [Fraction(s) for s in start.tolist()] == plain(instance, order)
        assert taken[:, 0].tolist() == instance.gpus.tolist()


@given(rigid_instances(most=4), st.sampled_from(OBJECTIVES))
@settings(max_examples=25)
def test_the_best_of_all_orders_is_the_optimum(instance: Instance, objective: str) -> None:
    goal = get_objective(objective)
    values = []
    for order in permutations(range(instance.n)):
        schedule = list_schedule(instance, list(order))
        assert check_schedule(instance, schedule, preemptive=False) == []
        values.append(goal.exact_of(instance, schedule.completion.tolist()))
    assert min(values) == optimum(instance, objective)


@given(rigid_instances(most=6), st.sampled_from(OBJECTIVES))
@settings(max_examples=examples(40))
def test_best_list_schedule_is_no_worse_than_any_order_and_finds_tiny_optima(
    instance: Instance, objective: str
) -> None:
    goal = get_objective(objective)
    best = best_list_schedule(instance, objective, budget=200_000)
    value = goal.exact_of(instance, best.completion.tolist())
    for name in ORDERS.names():
        for parallel in (False, True):
            schedule = list_schedule(instance, name, objective, parallel=parallel)
            assert check_schedule(instance, schedule, preemptive=False) == []
            assert value <= goal.exact_of(instance, schedule.completion.tolist())
    assert value == optimum(instance, objective)


def mixed_cluster(seed: int, count: int = 40) -> Instance:
    rng = np.random.default_rng(seed)
    types = [None, ("V100",), ("K80", "V100"), ("P100", "K80")]
    jobs = [
        Job(
            f"j{j}",
            arrival=int(rng.integers(0, 40)),
            gpus=int(rng.choice([1, 1, 2, 3, 4])),
            duration=int(rng.integers(1, 20)),
            weight=int(rng.integers(1, 5)),
            gpu_types=types[int(rng.integers(0, 4))],
        )
        for j in range(count)
    ]
    return Instance(jobs, Cluster.parse("2x4:V100+3x2:K80+2x1:P100"))


@pytest.mark.parametrize("seed", range(4))
def test_gpu_types_are_respected(seed: int) -> None:
    instance = mixed_cluster(seed)
    assert not instance.unrestricted
    for order in ("arrival", "spt", "widest"):
        for parallel in (False, True):
            schedule = list_schedule(instance, order, parallel=parallel)
            assert check_schedule(instance, schedule, preemptive=False) == []
    best = best_list_schedule(instance, "total_flow_time", budget=500_000)
    assert check_schedule(instance, best, preemptive=False) == []


def test_pools_leave_scarce_gpus_to_those_who_need_them() -> None:
    # the flexible job would block the only V100 if pools were taken in the cluster's order
    jobs = [Job("any", gpus=1, duration=5), Job("only", gpus=1, duration=5, gpu_types=("V100",))]
    instance = Instance(jobs, Cluster.parse("1x1:V100+1x1:K80"))
    assert list_schedule(instance, [0, 1]).completion.tolist() == [5, 5]


def test_a_window_is_found_although_a_pool_after_another_is_full() -> None:
    # a gang over two pools: its window must have the same GPUs free from start to end
    jobs = [
        Job("a", gpus=1, duration=4, gpu_types=("A",)),
        Job("b", arrival=4, gpus=1, duration=4, gpu_types=("B",)),
        Job("wide", gpus=1, duration=6),
    ]
    instance = Instance(jobs, Cluster.parse("1x1:A+1x1:B"))
    schedule = list_schedule(instance, [0, 1, 2])
    assert check_schedule(instance, schedule, preemptive=False) == []
    # A is free from 4 on, B until 4: no GPU is free over [0, 6)
    assert schedule.completion[2] == 10


def test_the_result_is_the_same_every_time() -> None:
    instance = mixed_cluster(9)
    one, two = (best_list_schedule(instance, budget=300_000) for _ in range(2))
    assert one.start.tolist() == two.start.tolist()


def test_the_search_stops_at_a_proven_bound() -> None:
    instance = one_machine((0, 3, 1), (0, 1, 1), (0, 2, 1))
    schedule = best_list_schedule(instance, "total_completion_time", budget=10**12, target=10.0)
    assert schedule.completion.sum() == 10


def test_further_orders_are_tried() -> None:
    instance = one_machine((0, 9, 1), (1, 1, 1), (2, 1, 1), (3, 1, 1))
    assert best_list_schedule(instance, "total_completion_time", budget=0, orders=[np.array([1, 2, 3, 0])]).completion[
        0
    ] == pytest.approx(13)


def test_what_is_no_order_is_refused() -> None:
    instance = one_machine((0, 1, 1), (0, 2, 1))
    with pytest.raises(InputError, match=r"permutation of 0\.\.1"):
        list_schedule(instance, [0, 0])
    with pytest.raises(InputError, match="did you mean wspt"):
        list_schedule(instance, "wsptt")
    with pytest.raises(InputError, match="no duration"):
        list_schedule(Instance([Job("a", iterations=3, profile="x")], Cluster.machines(1)), "spt")


def test_no_jobs_make_an_empty_schedule() -> None:
    assert len(best_list_schedule(Instance([], Cluster.machines(2)))) == 0


def test_due_dates_orders_do_their_work() -> None:
    instance = one_machine((0, 4, 1), (0, 4, 1), (0, 4, 1), due=(12, 4, 8))
    for order in ("edd", "slack", "atc"):
        schedule = list_schedule(instance, order, "total_weighted_tardiness")
        assert schedule.completion.tolist() == [12, 4, 8]


@given(rigid_instances(most=4), st.sampled_from(OBJECTIVES), st.integers(0, 200))
def test_regular_costs_are_the_objectives_terms(instance: Instance, objective: str, late: int) -> None:
    goal = get_objective(objective)
    completion = instance.arrival + instance.duration + late / 4
    assert regular_cost(goal, instance).value(completion) == pytest.approx(goal.of(instance, completion))
    data = (instance.arrival, instance.weight, instance.due)
    jobs = (instance.arrival, instance.weight, goal.dates(instance))
    for j in range(instance.n):
        term = goal.exact([completion[j]], *(a[j : j + 1] for a in data))
        assert exact_cost(goal, *(float(a[j]) for a in jobs)).at(Fraction(float(completion[j]))) == term


# --- list schedules where speed depends on the placement: feasible at any scale, never below the optimum -----------------


@given(placed_instances())
@settings(max_examples=15)
def test_feasible_with_and_without_a_list_of_placements(instance: Instance) -> None:
    optimum = solve(instance, "total_weighted_completion_time", model="mode-branching")
    assert optimum.status == "optimal"
    assert optimum.value_exact is not None
    for modes in (None, MappedModes.of(instance)):
        best = best_placed_schedule(instance, "total_weighted_completion_time", modes=modes)
        assert check_schedule(instance, best, preemptive=False) == []
        assert schedule_value(instance, best, "total_weighted_completion_time") >= optimum.value_exact


def test_patient_and_eager() -> None:
    # eager: [3, 3, 9], patient: [3, 3, 7]
    assert best_placed_schedule(beside_two_others(3)).completion.tolist() == [3, 3, 7]
    assert best_placed_schedule(beside_two_others(10)).completion.tolist() == [10, 10, 9]


@pytest.mark.release
def test_an_instance_that_nobody_can_solve_has_an_interval() -> None:
    instance = generate("ddl-cluster", 1, jobs=15, nodes=3)
    with without_interpreting():
        solution = solve(instance, time_limit=60)  # it stops by itself long before
    assert (solution.status, solution.model) == ("limit", "list")
    assert solution.schedule is not None
    assert check_schedule(instance, solution.schedule, preemptive=False) == []
    assert solution.bound_exact is not None
    assert solution.value_exact is not None
    assert bound(instance).value <= solution.bound_exact <= solution.value_exact


@pytest.mark.parametrize("jobs", [0, 1])
def test_hardly_any_jobs(jobs: int) -> None:
    instance = generate("ddl-small", 5, jobs=1).head(1)
    if jobs == 0:
        instance = instance.replace(jobs=instance.table.head(0))
    assert best_placed_schedule(instance).completion.size == jobs


# --- annealing over orders of starts: incremental values against decoding the whole order, schedules by the referee ------


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
