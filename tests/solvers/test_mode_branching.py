"""Branch and bound over orders and modes, and over schedules of identical machines: against exhaustion, and at limits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from brute_force import placed_optimum
from examples import examples
from hypothesis import given, settings, strategies as st

from optsched.check.referee import check_schedule
from optsched.deadline import NEVER, Deadline
from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.policies.simulate import simulate
from optsched.problem.arrays import Floats, Ints
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.objectives import get_objective
from optsched.problem.profile import Profile, Stage
from optsched.problem.scaling import Scaling
from optsched.solvers.identical_machines import least_weighted_completion
from optsched.solvers.machine_groups import Effort, machines_of, regroup
from optsched.solvers.machine_loads import search_loads
from optsched.solvers.machine_prices import fluid_prices, solve_flow, start_prices
from optsched.solvers.method import METHODS
from optsched.solvers.methods import machine_schedules, mode_branching
from optsched.solvers.methods.machine_schedules import MachineBranching
from optsched.solvers.smith_order import FAR, ParallelJobs, Potentials
from optsched.solvers.solve import solve
from optsched.solvers.solve_state import SolveState
from solvers.placed_instances import beside_two_others, placed_instances

# --- branching over orders and modes: against exhaustion, against the program, and what it says at its limits ------------


OBJECTIVES = (
    "total_completion_time",
    "total_weighted_completion_time",
    "total_flow_time",
    "total_weighted_tardiness",
    "makespan",
    "max_flow_time",
)


@given(placed_instances(most=3, widest=4), st.sampled_from((*OBJECTIVES, "max_fair_slowdown")))
@settings(max_examples=20)
def test_against_exhaustion_without_pruning(instance: Instance, objective: str) -> None:
    solution = solve(instance, objective, model="mode-branching")
    assert (solution.status, solution.value_exact) == ("optimal", placed_optimum(instance, objective))
    assert solution.schedule is not None
    assert check_schedule(instance, solution.schedule, preemptive=False, objective=objective) == []


@pytest.mark.study
@given(placed_instances(least=3, most=5), st.sampled_from(OBJECTIVES))
@settings(max_examples=examples(200))
def test_two_methods_agree_on_many(instance: Instance, objective: str) -> None:
    values = {solve(instance, objective, model=model).value_exact for model in ("mode-branching", "gang-modes")}
    assert len(values) == 1


@pytest.mark.parametrize("model", [None, "mode-branching", "gang-modes"])
def test_a_slow_placement_at_once_or_a_fast_one_later(model: str | None) -> None:
    # others of 10 s: across at once ends at 9, on one node not before 14
    at_once = solve(beside_two_others(10), model=model)
    assert (at_once.status, at_once.value) == ("optimal", 10 + 10 + 9)
    # others of 3 s: across ends at 9, waiting for a node at 7
    waits = solve(beside_two_others(3), model=model)
    assert (waits.status, waits.value) == ("optimal", 3 + 3 + 7)
    for solution, nodes in ((at_once, 2), (waits, 1)):
        assert solution.schedule is not None
        assert check_schedule(solution.schedule.instance, solution.schedule, preemptive=False) == []
        pair = next(segment for segment in solution.schedule.segments() if segment.job == 2)
        assert len({node for node, _ in pair.gpus}) == nodes


def test_replicas_are_put_where_the_traffic_wants_them() -> None:
    # two rings of two on two nodes that have two GPUs each: a ring a node, and the GPUs in the order of the replicas
    rings = Profile.of_stages([Stage(2, 0.5, 0.5, 8.0, 1.0), Stage(2, 0.5, 0.5, 8.0)])
    cluster = Cluster((NodeGroup(2, 2, nic_bandwidth=2.0, intra_bandwidth=8.0),))
    instance = Instance([Job("a", gpus=4, iterations=1, profile="r")], cluster, profiles={"r": rings})
    solution = solve(instance, "makespan")
    assert solution.schedule is not None
    nodes = [node for node, _ in next(iter(solution.schedule.segments())).gpus]
    assert nodes[0] == nodes[1] != nodes[2] == nodes[3]
    assert solution.value == 1.0 + 2 * (0.5 / 1.0) + 8.0 / 8.0


def test_times_on_no_grid() -> None:
    odd = {name: Profile.of_stages([Stage(2, 0.1, seconds, 0.7e9)]) for name, seconds in (("p", 0.23), ("q", 0.37))}
    cluster = generate("ddl-small", 1, jobs=1, nodes=2, gpus=2).cluster
    jobs = [
        Job("a", 0.3, 2, iterations=7, profile="p"),
        Job("b", 0.1, 2, iterations=5, profile="q"),
        Job("c", 0.2, 1, 1.7),
    ]
    instance = Instance(jobs, cluster, profiles=odd)
    for objective in OBJECTIVES:
        solution = solve(instance, objective)
        assert (solution.model, solution.status) in {("mode-branching", "optimal"), ("list", "optimal")}
        assert solution.value == pytest.approx(float(placed_optimum(instance, objective)), rel=1e-9)
    with pytest.raises(InputError, match="longest common unit"):
        solve(instance, model="gang-modes")


def test_what_it_refuses_and_what_it_says_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="depends on its placement: other models are stronger"):
        solve(Instance([Job("a", gpus=2, duration=1), Job("b", duration=3)], "1x2"), model="mode-branching")
    small = generate("ddl-small", 3, jobs=5)
    with pytest.raises(InputError, match="it does not support a horizon"):
        solve(small, model="mode-branching", horizon=1e6)
    with pytest.raises(InputError, match="at most 12 jobs, not for 13"):
        solve(generate("ddl-small", 1, jobs=13), model="mode-branching")
    monkeypatch.setattr(mode_branching, "NODES", 1)
    # looks at the clock after every node: the time is up at once, and nothing is called optimal
    instance = generate("ddl-small", 2, jobs=9, nodes=3)
    limited = SolveState(instance, get_objective("total_completion_time"), deadline=Deadline(0.0))
    limited.search(0)
    limited.combinatorial()
    assert "the time limit came after" in METHODS.get("mode-branching").run(limited).note
    assert not limited.closed
    assert limited.bound is not None
    assert limited.value is not None
    assert limited.bound < limited.value
    # and resumed node by node it comes to the same end
    whole = solve(small, model="mode-branching")
    assert (whole.status, whole.value) == ("optimal", float(Fraction(whole.bound_exact or 0)))


# --- P || sum w_j C_j by prices and loads against dynamic programming over all loads, and its bound at any prices --------


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
    assert search.lower == search.upper == jobs.cost(search.start) == least(jobs)


def test_branching_without_a_solver_and_with_few_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_schedules, "WIDTHS", (1, 2))
    monkeypatch.setattr(machine_schedules, "GROUPS", (Effort(2, 2, width=1, patience=2),) * 2)
    monkeypatch.setattr(machine_schedules, "solve_flow", lambda *_: None)  # it does not converge: fluid prices stay
    rng, nodes = np.random.default_rng(1), 0
    for _ in range(10):
        length, weight = rng.integers(5, 30, 9), rng.integers(1, 20, 9)
        order = np.argsort(length / weight, kind="stable")
        jobs = ParallelJobs(length[order], weight[order], 3)
        search = MachineBranching(jobs, NEVER, lambda: None)
        search.run()
        assert search.lower == search.upper == jobs.cost(search.start) == least(jobs)
        nodes = max(nodes, search.nodes)
    assert nodes > 1


@given(parallel_jobs(), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_any_prices_bound_the_optimum(jobs: ParallelJobs, data: st.DataObject) -> None:
    price = np.array(data.draw(st.lists(st.floats(-50, 400), min_size=jobs.n, max_size=jobs.n)))
    open_start = jobs.open_starts()
    potentials = Potentials.at(jobs, price, open_start)
    assert int(potentials.before[-1, jobs.first_end :].min()) == int(potentials.after[0, 0]) < FAR  # from both ends
    best = least(jobs)
    assert potentials.bound <= best * potentials.scale
    # what is closed is in no schedule that is as good as allowed
    limit = best + data.draw(st.integers(-2, 9))
    left = potentials.close(limit, open_start)
    assert left == open_start.sum()
    potentials.look_back()
    result = search_loads(jobs, potentials, limit, 10_000, NEVER)
    assert result.complete
    assert (result.start is not None) == (limit >= best)
    if result.start is not None:
        assert result.cost == jobs.cost(result.start) == best
        assert feasible(jobs, result.start)


@given(parallel_jobs(), st.integers(1, 3))
@settings(max_examples=examples(30), deadline=None)
def test_a_narrow_search_returns_schedules_and_claims_nothing(jobs: ParallelJobs, width: int) -> None:
    potentials = Potentials.at(jobs, near_prices(jobs), jobs.open_starts())
    worst = jobs.cost(jobs.list_starts())
    result = search_loads(jobs, potentials, worst, width, NEVER)
    best = least(jobs)
    if result.start is not None:
        assert best <= result.cost == jobs.cost(result.start) <= worst
        assert feasible(jobs, result.start)
    if result.complete:
        assert result.cost == best
    assert not search_loads(jobs, potentials, worst, width, Deadline(0.0)).complete


@given(parallel_jobs(), st.integers(0, 99))
@settings(max_examples=examples(30), deadline=None)
def test_rescheduled_groups_of_machines_are_schedules_that_cost_no_more(jobs: ParallelJobs, seed: int) -> None:
    potentials = Potentials.at(jobs, near_prices(jobs), jobs.open_starts())
    first, best, effort = jobs.list_starts(), least(jobs), Effort(2, 3, width=100, patience=20)
    start = regroup(jobs, first, potentials, best, effort, seed, NEVER)
    assert best <= jobs.cost(start) <= jobs.cost(first)
    assert feasible(jobs, start)
    machine = machines_of(jobs, start)
    for i in range(jobs.machines):  # no machine waits
        assert start[machine == i].tolist() == [0, *np.cumsum(jobs.length[machine == i])][: np.sum(machine == i)]
    assert regroup(jobs, first, potentials, best, effort, seed, NEVER).tolist() == start.tolist()
    assert regroup(jobs, first, potentials, best, effort, seed, Deadline(0.0)).tolist() == first.tolist()


def test_groups_of_three_of_six_machines_improve_a_list_schedule() -> None:
    rng = np.random.default_rng(2)
    length, weight = rng.integers(1, 100, 60), rng.integers(1, 100, 60)
    order = np.argsort(length / weight, kind="stable")
    jobs = ParallelJobs(length[order], weight[order], 6)
    potentials = Potentials.at(jobs, near_prices(jobs), jobs.open_starts())
    before = jobs.list_starts()
    start = regroup(jobs, before, potentials, 0, Effort(2, 3, width=100, patience=10), 1, NEVER)
    assert feasible(jobs, start)
    assert jobs.cost(start) < jobs.cost(before) - 300


@given(parallel_jobs())
@settings(max_examples=examples(30), deadline=None)
def test_the_flow_program_bounds_the_optimum_by_its_prices(jobs: ParallelJobs) -> None:
    open_start, near = jobs.open_starts(), near_prices(jobs)
    best = least(jobs)
    flow = solve_flow(jobs, open_start, near, 100.0 * best, NEVER)
    assert flow is not None
    assert flow.value <= best * (1 + 1e-6) + 1e-6
    bound = Potentials.at(jobs, flow.job, open_start).bound / jobs.scale
    assert flow.value - 1e-3 * max(1.0, flow.value) <= bound <= best


def near_prices(jobs: ParallelJobs) -> Floats:
    """Prices of the jobs from the fluid schedule."""
    return start_prices(jobs, fluid_prices(jobs)).min(axis=1)


def feasible(jobs: ParallelJobs, start: Ints) -> bool:
    """Return whether at most as many jobs run at a time as there are machines."""
    end = start + jobs.length
    return all(int(np.sum((start <= t) & (t < end))) <= jobs.machines for t in start.tolist())


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
    assert mine.certificate is not None
    assert 0.99 * mine.value <= float(mine.certificate.value) <= mine.value  # the prices of the flow program, verified


def test_fifty_jobs_are_proved_and_most_of_it_by_prices_alone() -> None:
    instance = generate("machines", 3, jobs=50, machines=5, heaviest=100, longest=30, span=0)
    solution = solve(instance, "total_weighted_completion_time")
    assert (solution.status, solution.model) == ("optimal", "machine-schedules")
    assert solution.certificate is not None
    assert solution.value - 5 <= float(solution.certificate.value) <= solution.value


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
    assert search.lower <= least(jobs) <= search.upper == jobs.cost(search.start)


# --- exact optima of jobs at scaling profiles: a gang is priced by its placement, as the engine and the referee do -------


SLOW_APART = Scaling(compute=1.0, per_sample=0.5, within=1.0, across=5.0)


def test_a_gang_waits_for_a_node_where_that_is_faster() -> None:
    # 4 iterations of C(2) = 2 s: 3 s on one node, 7 s apart. "a" holds one GPU of each node until 2 s.
    jobs = [
        Job("a", gpus=1, duration=2),
        Job("b", gpus=1, duration=2),
        Job("c", gpus=2, iterations=4, profile="model", batch_size=4),
    ]
    problem = Instance(jobs, "2x2", "total_completion_time", scalings={"model": SLOW_APART})
    best = solve(problem, "total_completion_time")
    assert best.status == "optimal"
    assert best.value == pytest.approx(2 + 2 + 12)  # a and b on one node, c on the other one at once
    apart = simulate(problem, "fifo+count")
    assert apart.value("total_completion_time") >= best.value


def test_apart_where_no_node_is_wide_enough() -> None:
    problem = Instance(
        [Job("c", gpus=2, iterations=4, profile="model", batch_size=4)], "2x1", scalings={"model": SLOW_APART}
    )
    assert solve(problem, "makespan").value == pytest.approx(28)
    assert simulate(problem, "fifo").metrics["makespan"] == pytest.approx(28)
