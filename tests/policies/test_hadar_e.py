"""HadarE: no idle node that could be busy, never below the LPs, estimates correct themselves, one copy is no forking."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from examples import few
from hypothesis import given, strategies as st
from simulation.fork_lp import makespan_lp
from simulation.forked_instances import forked, gang_instance, table_instance

from optsched.check.referee import check_schedule
from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.io.traces.recipes.hadar_recipes import AWS, LAB
from optsched.policies.fork_assignment import Assignment, by_payoff, by_work, fill
from optsched.policies.fork_plan import ForkPlan
from optsched.policies.hadar_e import HadarE, split
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.simulation.metrics import cluster_utilization
from optsched.speeds.type_speeds import GroupRates, group_rates


def random_table(seed: int, jobs: int) -> tuple[list[list[float]], list[float]]:
    rng = np.random.default_rng([seed, 31])
    rate = rng.uniform(1, 20, (jobs, 5))
    return rate.tolist(), rng.uniform(2_000, 50_000, jobs).tolist()


# -- busy nodes -----------------------------------------------------------------------------------------------------------


@st.composite
def restricted(draw: st.DrawFn) -> tuple[list[list[bool]], list[int], int]:
    """Who runs where, slots of the nodes, copies of a job."""
    jobs, nodes = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    row = st.lists(st.booleans(), min_size=nodes, max_size=nodes)
    may = draw(st.lists(row, min_size=jobs, max_size=jobs))
    return may, draw(st.lists(st.integers(1, 3), min_size=nodes, max_size=nodes)), draw(st.integers(1, nodes))


@given(restricted(), st.sampled_from(["work", "payoff"]), st.integers(0, 2**32), st.integers(1, 2))
def test_under_restrictions_the_copies_are_a_maximum_flow(case: Any, order: str, seed: int, gang: int) -> None:
    may, slots, copies = case
    rng = np.random.default_rng(seed)
    rate = np.where(may, rng.uniform(1, 9, np.shape(may)), 0.0)
    left, free = rng.uniform(1, 9, len(may)) * 100, np.array(slots) * gang + (gang - 1)
    round_ = Assignment(rate, np.full(len(may), gang), np.arange(len(slots)), free.copy(), copies)
    if order == "work":
        by_work(round_, left, 100.0)
    else:
        by_payoff(round_, left, np.ones(len(may)))
    greedy = [list(nodes) for nodes in round_.on]
    fill(round_)
    flow = nx.DiGraph()
    flow.add_nodes_from(["s", "t"])
    for j, row in enumerate(may):
        flow.add_edge("s", ("j", j), capacity=copies)
        flow.add_edges_from([(("j", j), ("h", h), {"capacity": 1}) for h, yes in enumerate(row) if yes])
    flow.add_edges_from([(("h", h), "t", {"capacity": count}) for h, count in enumerate(slots)])
    assert sum(map(len, round_.on)) == nx.maximum_flow_value(flow, "s", "t")
    used = np.zeros(len(slots), dtype=int)
    for j, nodes in enumerate(round_.on):
        assert len(set(nodes)) == len(nodes) <= copies
        assert all(may[j][h] for h in nodes)
        assert len(nodes) >= len(greedy[j])  # filling takes copies from nobody
        used[nodes] += 1
    assert (used <= slots).all()
    assert (round_.free == free - gang * used).all()


def test_the_greedy_rule_alone_may_leave_a_node_idle() -> None:
    # The longer job takes the fast node although it could use the other one, and the shorter one cannot.
    rate = np.array([[2.0, 1.0], [2.0, 0.0]])
    round_ = Assignment(rate, np.ones(2, dtype=np.int64), np.arange(2), np.ones(2, dtype=np.int64), 1)
    by_work(round_, np.array([900.0, 500.0]), 100.0)
    assert round_.on == [[0], []]
    fill(round_)
    assert round_.on == [[1], [0]]


def test_gangs_of_several_sizes_are_left_as_they_are() -> None:
    round_ = Assignment(np.ones((2, 1)), np.array([1, 2]), np.zeros(2, dtype=np.int64), np.array([2, 2]), 1)
    fill(round_)
    assert round_.on == [[], []]


@pytest.mark.parametrize("seed", range(4))
def test_payoff_is_the_best_assignment_where_copies_are_unlimited(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rate, left, weight = rng.uniform(1, 9, (5, 4)), rng.uniform(100, 900, 5), rng.uniform(1, 3, 5)
    round_ = Assignment(rate, np.ones(5, dtype=np.int64), np.arange(4), np.ones(4, dtype=np.int64), 4)
    by_payoff(round_, left, weight)
    slope = weight[:, None] * rate / left[:, None]
    assert sum(slope[j, h] for j, nodes in enumerate(round_.on) for h in nodes) == pytest.approx(
        slope.max(axis=0).sum()
    )


# -- the LPs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("jobs", "seed"), few([(n, seed) for n in (1, 2, 4, 7) for seed in range(3)], 4))
def test_total_time_is_never_below_the_lp(jobs: int, seed: int) -> None:
    rate, steps = random_table(seed, jobs)
    instance = table_instance(rate, steps)
    fork, no_fork = (makespan_lp(rate, steps, fork=yes) for yes in (True, False))
    assert fork <= no_fork * (1 + 1e-9)
    for spec in ("hadar-e", "hadar-e:copies=2", "hadar-e:estimate=noisy", "hadar-e:rule=payoff"):
        assert forked(instance, spec).metrics["makespan"] >= fork
    assert forked(instance, "hadar-e:copies=1").metrics["makespan"] >= no_fork
    # hardly any loss to rounds and overhead: the LP is no bound that holds by a wide margin only
    ideal = forked(instance, "hadar-e:overhead=0,round=10").metrics["makespan"]
    assert ideal >= fork * (1 - 1e-9)
    if jobs == 1:
        assert ideal == pytest.approx(fork, rel=1e-9)


# -- one copy -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_one_copy_is_a_schedule_without_forking(seed: int) -> None:
    instance = gang_instance(seed)
    run = forked(instance, "hadar-e:copies=1")
    assert run.schedule_class == "gang"
    assert check_schedule(instance, run.schedule) == []  # as a gang schedule
    assert run.notes["copies"].max() == 1
    assert run.notes["aggregations"].max() == 0
    for each in run.rounds:
        jobs = run.schedule.job[list(each.segments)].tolist()
        assert len(set(jobs)) == len(jobs)


def test_a_forked_schedule_is_none_of_gangs() -> None:
    run = forked(Instance([Job("a", duration=1000)], "2x1"))
    assert {v.rule for v in check_schedule(run.instance, run.schedule)} == {"gang"}


def test_on_one_node_nothing_is_forked() -> None:
    run = forked(Instance([Job("a", gpus=2, duration=1000)], "1x8"))
    assert run.schedule_class == "gang"
    assert check_schedule(run.instance, run.schedule) == []


# -- the plan of rule lp ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", few(range(8), 3))
def test_a_plan_is_an_optimum_of_the_fork_program(seed: int) -> None:
    rate, steps = random_table(seed, 4)
    plan = ForkPlan(np.arange(5), overhead=0.0)
    plan.solve(0.0, range(4), np.array(steps), np.array(rate))
    starts = {j: plan.begin(j, list(range(5)), 0.0, np.inf, steps[j], np.array(rate[j])) for j in range(4)}
    seconds = np.zeros(5)
    for j, copies in starts.items():
        assert sum(work for _, work in copies) == pytest.approx(steps[j])
        for node, work in copies:
            seconds[node] += work / rate[j][node]
    best = makespan_lp(rate, steps, fork=True)
    assert seconds == pytest.approx(best)  # every node is busy to the end: nothing is left to gain
    plan.solve(0.0, range(4), np.array(steps), np.array(rate))
    assert plan.next(0.0, np.inf, [0, 1, 2, 3, 4]) == ([], {})  # what has begun is not planned again


def test_one_job_shares_its_nodes_in_rounds_and_a_second_one_has_its_own() -> None:
    # Alone: 700 units on nodes of 3 and 1 a second are 175 s. Rounds of 60 s, of which 10 are lost: 200 units each.
    run = forked(table_instance([[3.0, 1.0]], [700.0]), "hadar-e:round=60,overhead=10")
    assert [(r.start, len(r.segments)) for r in run.rounds] == [(0, 2), (60, 2), (120, 2), (180, 2)]
    assert run.schedule.completion.tolist() == [pytest.approx(180 + 10 + 100 / 4)]
    # Two that are alike, T = 1200 / 4 = 300: who is alone on a node stays there without overhead from round to round.
    run = forked(table_instance([[3.0, 1.0], [3.0, 1.0]], [600.0, 600.0]), "hadar-e:round=60,overhead=10")
    assert run.preemptions <= 1
    assert len(run.schedule) <= 6
    assert 300 < run.schedule.completion.max() <= 360


@pytest.mark.parametrize("cluster", [LAB, AWS])
@pytest.mark.parametrize("jobs", [1, 3, 5, 8, 12])
def test_its_total_time_is_close_to_the_program_and_below_that_of_gavel(cluster: str, jobs: int) -> None:
    for seed in few((201, 202, 203), 1):  # the rule was made on seeds 1 to 10
        instance = generate("hadar-mix", seed, jobs=jobs, cluster=cluster)
        run, gavel = forked(instance), simulate(instance, "gavel:policy=min_total_duration_perf,restart=10")
        assert check_schedule(instance, run.schedule, schedule_class="forking") == []
        least = makespan_lp(group_rates(instance)[:, instance.cluster.node_group], instance.work, fork=True)
        assert least <= run.schedule.end.max() * (1 + 1e-9) <= 1.05 * least
        assert run.schedule.end.max() < gavel.schedule.end.max()


def test_jobs_that_come_later_and_speeds_that_are_not_known_lose_no_work() -> None:
    for seed in few(range(6), 2):
        rate, steps = random_table(seed, 5)
        whole = table_instance(rate, steps)
        jobs = [dataclasses.replace(job, arrival=500.0 * k) for k, job in enumerate(whole.jobs)]
        instance = whole.replace(jobs=jobs)
        for estimate in ("true", "noisy"):
            run = forked(instance, f"hadar-e:estimate={estimate}")
            assert check_schedule(instance, run.schedule, schedule_class="forking") == []
            assert run.unfinished == []
            assert run.schedule.received == pytest.approx(steps)


# -- estimates ------------------------------------------------------------------------------------------------------------


def test_a_measurement_counts_half() -> None:
    instance = Instance(
        [Job("a", iterations=40_000, profile="m")],
        Cluster((NodeGroup(gpus=1, gpu="V100"), NodeGroup(gpus=1, gpu="K80"))),
        throughputs=Throughputs({("m", "V100", 1): Throughput(10.0), ("m", "K80", 1): Throughput(4.0)}),
    )
    policy = HadarE(estimate="device", rule="work")
    policy.begin(ViewOf(instance))
    believed = 10.0 * 4.1 / 15.7  # FP32 of one K80 and a V100
    assert policy.believed.tolist() == [[10.0, pytest.approx(believed)]]
    run = forked(instance, policy)
    first = dict(zip(run.schedule.gpu_node[:2].tolist(), run.schedule.work[:2].tolist(), strict=True))
    assert [first[0], first[1]] == [3500, pytest.approx(believed * 350)]  # the target: the node is faster, and waits
    for _ in run.rounds:
        believed = 0.5 * 4.0 + 0.5 * believed
    assert policy.believed.tolist() == [pytest.approx([10.0, believed])]
    assert len(run.rounds) > 5
    assert abs(believed - 4.0) < 0.05
    assert run.schedule.received.tolist() == pytest.approx([40_000])


class ViewOf:
    """What a policy sees at the begin of a run."""

    def __init__(self, instance: Instance) -> None:
        self.groups, self.left = GroupRates(instance), instance.work


@pytest.mark.parametrize("error", [0.1, 0.5, 1.0])
def test_wrong_estimates_lose_no_work_and_correct_themselves(error: float) -> None:
    rate, steps = random_table(1, 3)
    instance = table_instance(rate, steps)
    policy = HadarE(estimate="noisy", error=error, seed=4)
    run = forked(instance, policy)
    assert run.unfinished == []
    assert check_schedule(instance, run.schedule, schedule_class="forking") == []
    assert run.schedule.received == pytest.approx(instance.work, rel=1e-12)
    wrong = np.exp(error * np.random.default_rng(4).standard_normal((3, 5)))
    ran = np.zeros((3, 5), dtype=int)
    np.add.at(ran, (run.schedule.job, run.schedule.gpu_node), 1)
    expected = np.array(rate) * (1 + (wrong - 1) * 0.5**ran)  # X <- 0.5 measured + 0.5 X, once a round
    assert policy.believed == pytest.approx(expected)


def test_estimates_of_devices_need_devices_that_are_known() -> None:
    rate, steps = random_table(1, 2)
    with pytest.raises(InputError, match="the performance of this GPU type is not known"):
        forked(table_instance(rate, steps), "hadar-e:estimate=device")
    assert forked(Instance([Job("a", duration=400)], "3x2"), "hadar-e:estimate=device").unfinished == []  # one type


# -- copies, metrics, parameters --------------------------------------------------------------------------------------------


@given(st.floats(1, 1e6), st.lists(st.floats(0.1, 100), min_size=1, max_size=8), st.floats(1, 1000))
def test_targets_fill_the_round_or_do_what_is_left_and_end_together(left: float, rates: list[float], s: float) -> None:
    targets = split(left, rates, s)
    exact = [Fraction(x) * Fraction(s) for x in rates]
    factor = min(Fraction(1), Fraction(left) / sum(exact))
    assert targets.tolist() == pytest.approx([float(factor * x) for x in exact], rel=1e-12)
    seconds = targets / np.array(rates)
    assert seconds.max() <= s * (1 + 1e-12)
    assert seconds.max() == pytest.approx(seconds.min(), rel=1e-12)  # all copies of a job end together
    assert targets.sum() <= left * (1 + 1e-12)


@pytest.mark.parametrize("spec", ["hadar-e", "hadar-e:copies=2,estimate=noisy"])
def test_the_notes_count_copies_and_rounds_with_several(spec: str) -> None:
    rate, steps = random_table(2, 4)
    run = forked(table_instance(rate, steps), spec)
    for j in range(len(steps)):
        at_once = [run.schedule.job[list(r.segments)].tolist().count(j) for r in run.rounds]
        assert run.notes["copies"][j] == max(at_once) <= run.copies
        assert run.notes["aggregations"][j] == sum(count > 1 for count in at_once)


@pytest.mark.parametrize("spec", ["hadar-e", "hadar-e:copies=2,overhead=40", "hadar-e:overhead=0", "hadar-e:copies=1"])
def test_metrics_are_those_of_the_event_log(spec: str) -> None:
    rate, steps = random_table(3, 3)
    run = forked(table_instance(rate, steps, [50.0, 400.0, 60.0]), spec)
    rows = list(run.schedule.segments())
    offered = 5 * (max(s.end for s in rows) - 50.0)
    held = sum(s.end - s.start for s in rows)
    worked = sum(s.work / rate[s.job][s.gpus[0][0]] for s in rows)
    occupied, productive = cluster_utilization(run.schedule)
    assert (occupied, productive) == pytest.approx((held / offered, worked / offered))
    assert productive <= (1 - run.overhead / run.round) * occupied * (1 + 1e-12)
    assert held - worked == pytest.approx(run.overhead * len(rows), abs=1e-6)  # every copy pays it once a round
    assert run.metrics["gpu_hours"]["overhead"] * 3600 == pytest.approx(run.overhead * len(rows), abs=1e-6)
    assert run.metrics["utilization"] == pytest.approx(worked / offered)
