"""HadarE: no idle node that could be busy, never below the LPs, estimates correct themselves, one copy is no forking."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from examples import few, studied
from hypothesis import given, strategies as st
from interpreted import interpreted
from simulation.fork_lp import makespan_lp
from simulation.forked_instances import forked, gang_instance, table_instance

from optsched.check.referee import check_schedule
from optsched.compiled import without_interpreting
from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.io.traces.recipes.hadar_recipes import AWS, LAB
from optsched.policies import hadar_e
from optsched.policies.fork_assignment import by_payoff, deal
from optsched.policies.fork_books import ENTRIES, NOBODY, STARTS, books, numpy_sum
from optsched.policies.fork_plan import ForkPlan, MakespanProgram
from optsched.policies.hadar_e import HadarE
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.simulation.metrics import cluster_utilization
from optsched.speeds.type_speeds import GroupRates, group_rates
from policies.fork_plan_plain import PlainPlanHadarE
from policies.hadar_e_plain import Assignment, PlainHadarE, by_work as plainly_by_work


def random_table(seed: int, jobs: int) -> tuple[list[list[float]], list[float]]:
    rng = np.random.default_rng([seed, 31])
    rate = rng.uniform(1, 20, (jobs, 5))
    return rate.tolist(), rng.uniform(2_000, 50_000, jobs).tolist()


def dealt(
    rate: Any, gang: Any, group: Any, size: Any, copies: int, left: Any, rule: str = "work", seconds: float = 100.0
) -> tuple[list[list[int]], list[list[float]], np.ndarray]:
    """The nodes of every job's copies, their work, and the GPUs that are free."""
    rate, gang, size, left = np.array(rate, dtype=float), np.array(gang), np.array(size), np.array(left, dtype=float)
    groups = SimpleNamespace(gang=gang, node_gpus=size, node_group=np.array(group), hosts=rate > 0)
    b, payoff = books(groups, rate), rule == "payoff"  # type: ignore[arg-type]
    b.row[:] = NOBODY
    pairs = by_payoff(rate, left, np.ones(gang.size)) if payoff else np.zeros(0, dtype=np.int64)
    deal(b, np.arange(gang.size), left, copies, seconds, pairs, payoff)
    starts = b.counts[STARTS]
    assert b.counts[ENTRIES] == starts
    assert (b.gpus[:starts] == gang[b.start[:starts]]).all()
    of = [np.flatnonzero(b.start[:starts] == j) for j in range(gang.size)]
    return [b.node[k].tolist() for k in of], [b.work[k].tolist() for k in of], b.free


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
    left, size, gangs = rng.uniform(1, 9, len(may)) * 100, np.array(slots) * gang + (gang - 1), np.full(len(may), gang)
    on, _, free = dealt(rate, gangs, np.arange(len(slots)), size, copies, left, order)
    greedy = Assignment(rate, gangs, np.arange(len(slots)), size.copy(), copies)
    if order == "work":
        plainly_by_work(greedy, left, 100.0)
    flow = nx.DiGraph()
    flow.add_nodes_from(["s", "t"])
    for j, row in enumerate(may):
        flow.add_edge("s", ("j", j), capacity=copies)
        flow.add_edges_from([(("j", j), ("h", h), {"capacity": 1}) for h, yes in enumerate(row) if yes])
    flow.add_edges_from([(("h", h), "t", {"capacity": count}) for h, count in enumerate(slots)])
    assert sum(map(len, on)) == nx.maximum_flow_value(flow, "s", "t")
    used = np.zeros(len(slots), dtype=int)
    for j, nodes in enumerate(on):
        assert len(set(nodes)) == len(nodes) <= copies
        assert all(may[j][h] for h in nodes)
        assert len(nodes) >= len(greedy.on[j])  # filling takes copies from nobody
        used[nodes] += 1
    assert (used <= slots).all()
    assert (free == size - gang * used).all()


def test_a_node_that_the_greedy_rule_leaves_idle_gets_a_copy() -> None:
    # The longer job takes the fast node although it could use the other one, and the shorter one cannot.
    on, _, _ = dealt([[2.0, 1.0], [2.0, 0.0]], [1, 1], [0, 1], [1, 1], 1, [900.0, 500.0])
    assert on == [[1], [0]]


def test_gangs_of_several_sizes_are_not_moved() -> None:
    assert dealt([[2.0, 1.0], [2.0, 0.0]], [1, 2], [0, 1], [2, 2], 1, [900.0, 500.0])[0] == [[0], []]


@pytest.mark.parametrize("seed", range(4))
def test_payoff_is_the_best_assignment_where_copies_are_unlimited(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rate, left = rng.uniform(1, 9, (5, 4)), rng.uniform(100, 900, 5)
    on, _, _ = dealt(rate, np.ones(5, dtype=np.int64), np.arange(4), np.ones(4, dtype=np.int64), 4, left, "payoff")
    slope = rate / left[:, None]
    assert sum(slope[j, h] for j, nodes in enumerate(on) for h in nodes) == pytest.approx(slope.max(axis=0).sum())


# -- the plain form -------------------------------------------------------------------------------------------------------


def random_case(seed: int) -> tuple[Instance, dict[str, Any]]:
    """Gangs of all sizes on unlike nodes, one-GPU jobs at table speeds, or gangs alike on alike nodes; and parameters."""
    rng = np.random.default_rng([seed, 54])
    made = [
        gang_instance(seed, int(rng.integers(1, 15))),
        table_instance(np.where(rng.random((6, 5)) < 0.7, rng.uniform(1, 20, (6, 5)), 1.0).tolist(), [9e3] * 6),
        generate("philly-like", seed, jobs=15, cluster="3x4+2x2+1x8"),
        Instance([Job(f"j{k}", 400.0 * (k % 3), 2, duration=900.0 * (1 + k % 4)) for k in range(7)], "2x4+2x2"),
    ]
    instance = made[seed % 4]
    round_ = float(rng.choice([360.0, 900.0])) * (60.0 if seed % 4 == 2 else 1.0)
    return instance, {
        "copies": int(rng.choice([0, 0, 1, 2, 3])),
        "round": round_,
        "overhead": float(rng.choice([0.0, 10.0, 0.3 * round_])),
        "rule": str(rng.choice(["work", "payoff"])),
        "estimate": str(rng.choice(["true", "noisy"])),
    }


def fingerprint(run: Any) -> list[Any]:
    s = run.schedule
    arrays = (s.job, s.start, s.end, s.work, s.gpu_offset, s.gpu_node, s.gpu_index, *run.notes.values())
    return [run.events, run.preemptions, *(np.asarray(array).tobytes() for array in arrays)]


def require_the_same(seed: int, *, compiled: bool) -> None:
    instance, given = random_case(seed)
    with without_interpreting() if compiled else interpreted(hadar_e):
        run = forked(instance, HadarE(**given))
    assert fingerprint(run) == fingerprint(forked(instance, PlainHadarE(**given))), (seed, given)


@pytest.mark.parametrize("seed", range(16))
def test_every_decision_is_that_of_the_plain_form(seed: int) -> None:
    require_the_same(seed, compiled=False)


def planned_case(seed: int) -> tuple[Instance, dict[str, Any]]:
    """Jobs that arrive over time on unlike nodes, several of a kind or one of each; and parameters of rule lp."""
    rng = np.random.default_rng([seed, 61])
    clusters = (LAB, AWS, "4x1:V100+3x1:T4+5x1:K80", "9x1:V100+2x1:K80")
    drawn = generate("hadar-mix", seed, jobs=int(rng.integers(1, 13)), cluster=str(rng.choice(clusters)))
    arrival = rng.integers(0, 4, drawn.n) * float(rng.choice([0.0, 500.0, 720.0]))
    jobs = [dataclasses.replace(job, arrival=float(at)) for job, at in zip(drawn.jobs, arrival, strict=True)]
    round_ = float(rng.choice([100.0, 360.0, 900.0]))
    return drawn.replace(jobs=jobs), {
        "round": round_,
        "overhead": float(rng.choice([0.0, 10.0, 0.4 * round_])),
        "estimate": str(rng.choice(["true", "noisy"])),
    }


@pytest.mark.parametrize(
    ("first", "count"), [(0, 3), (279, 1), *(studied(first, 100) for first in range(3, 2000, 100))]
)
def test_every_decision_by_the_program_is_that_of_the_plain_plan(first: int, count: int) -> None:
    for seed in range(first, first + count):
        instance, given = planned_case(seed)
        plain = forked(instance, PlainPlanHadarE(**given))
        assert fingerprint(forked(instance, HadarE(**given))) == fingerprint(plain), (seed, given)


@pytest.mark.parametrize("first", [pytest.param(0, marks=pytest.mark.compiled), *map(studied, range(60, 2000, 60))])
def test_compiled_decisions_are_those_of_the_plain_form(first: int) -> None:
    for seed in range(first, first + 60):
        require_the_same(seed, compiled=True)
        if first:
            require_the_same(seed, compiled=False)


def test_sums_are_rounded_as_numpys() -> None:
    rng = np.random.default_rng(0)
    for n in [*range(1, 40), 127, 128, 129, 136, 250, 257, 1000, 2049]:
        values = np.exp(rng.normal(size=n) * 3)
        groups = SimpleNamespace(
            gang=np.ones(1, int), node_gpus=np.ones(n, int), node_group=np.zeros(n, int), hosts=np.ones((1, 1), bool)
        )
        b = books(groups, np.ones((1, 1)))._replace(part=values)  # type: ignore[arg-type]
        assert numpy_sum(b, n) == values.sum()


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
    table, work = random_table(seed, 4)
    rates, steps = np.array(table), np.array(work)
    program = MakespanProgram(np.ones(5))
    for kept in ([0, 1, 2, 3], [0, 2, 3], [0, 1, 2, 3]):  # later, the matrix is that of the first time
        left = np.where(np.isin(range(4), kept), steps, 0.0)
        best = makespan_lp([table[k] for k in kept], [work[k] for k in kept], fork=True)
        seconds, horizon = program.least(range(4), left, rates, np.zeros(5))
        assert (rates * seconds).sum(axis=1) == pytest.approx(left)
        assert seconds.sum(axis=0) == pytest.approx(best)  # every node is busy to the end: nothing is left to gain
        assert horizon == pytest.approx(best)


def test_what_has_begun_is_not_planned_again() -> None:
    table, work = random_table(1, 1)
    plan, nodes, rates, steps = ForkPlan(np.arange(5), overhead=0.0), [0, 1, 2, 3, 4], np.array(table), np.array(work)
    plan.solve(0.0, [0], steps, rates)
    assert plan.next(0.0, np.inf, nodes) == ([], {0: nodes})
    assert sum(part for _, part in plan.begin(0, nodes, 0.0, np.inf, work[0], rates[0])) == pytest.approx(work[0])
    plan.solve(0.0, [0], steps, rates)
    assert plan.next(0.0, np.inf, nodes) == ([], {})


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


@pytest.mark.parametrize("seed", [1, 3])
def test_blocks_that_differ_by_rounding_alone_are_all_kept(seed: int) -> None:
    run = forked(generate("hadar-mix", seed, jobs=1))  # its last blocks last less than two overheads
    assert run.metrics["makespan"] < 3_000
    assert run.metrics["utilization"] > 0.95


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
    count = len(rates)
    on, work, _ = dealt([rates], [1], np.arange(count), np.ones(count, dtype=np.int64), count, [left], seconds=s)
    targets, rates = np.array(work[0]), [rates[node] for node in on[0]]
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
