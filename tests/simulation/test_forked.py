"""Rounds with copies: by hand, against a replay in fractions, and what a policy may not do."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings, strategies as st

from optsched.check.referee import check_schedule
from optsched.classes.forking.simulation.forked_run import ForkedRun
from optsched.errors import InputError, KnowledgeError, SimulationError
from optsched.io.sources import load
from optsched.policies.hadar_e import HadarE
from optsched.policies.placements import PLACEMENTS
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention
from optsched.problem.instance import Instance, Job
from optsched.problem.scaling import Scaling
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.simulation.engine import run_policy
from optsched.simulation.policy import Decision, Ended, Knowledge, Start, Stop, View, Wake
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import iteration_time
from optsched.speeds.type_speeds import group_rates
from simulation.forked_instances import forked, gang_instance, table_instance
from simulation.plain_policies import Asked

# -- HadarE with the rule ``work`` on one-GPU nodes once more, in fractions, one job and one node at a time ---------------


Number = Fraction


@dataclass
class Replayed:
    """Completion of every job, and of every round its begin and its copies (job, node)."""

    completion: list[Fraction]
    rounds: list[tuple[Fraction, list[tuple[int, int]]]] = field(default_factory=list)


def replay(
    arrival: Sequence[Number],
    work: Sequence[Number],
    rate: Sequence[Sequence[Number]],
    copies: int,
    length: Number,
    overhead: Number,
) -> Replayed:
    """HadarE's rounds, step by step; ``rate[j][h]`` > 0 everywhere."""
    n, nodes = len(work), len(rate[0]) if rate else 0
    left = [Fraction(w) for w in work]
    done = Replayed([Fraction(0)] * n)
    now = min(arrival, default=Fraction(0))
    while any(left):
        active = sorted((j for j in range(n) if left[j] and arrival[j] <= now), key=lambda j: (arrival[j], j))
        if not active:
            now = min(arrival[j] for j in range(n) if left[j])
            continue
        given = choose(active, left, rate, copies, length - overhead)
        done.rounds.append((now, given))
        last = now
        for j in active:
            mine = [rate[j][h] * (length - overhead) for k, h in given if k == j]
            if not mine:
                continue
            scale = min(Fraction(1), left[j] / sum(mine))
            left[j] -= scale * sum(mine)
            end = now + overhead + scale * (length - overhead)
            last = max(last, end)
            done.completion[j] = end
        now = last if not any(left[j] for j in active) else now + length
    assert nodes
    return done


def choose(
    active: list[int], left: list[Fraction], rate: Sequence[Sequence[Number]], copies: int, seconds: Number
) -> list[tuple[int, int]]:
    nodes = range(len(rate[0]))
    mean = {j: sum(rate[j]) / len(nodes) for j in active}
    speed = {h: sum(rate[j][h] / mean[j] for j in active) for h in nodes}
    plan, count, given = {j: left[j] for j in active}, dict.fromkeys(active, 0), []
    for h in sorted(nodes, key=lambda h: (-speed[h], h)):
        spare = [j for j in active if count[j] < copies]
        if not spare:
            break
        j = max(spare, key=lambda j: plan[j] / mean[j])  # the first of equals
        given.append((j, h))
        count[j] += 1
        plan[j] -= rate[j][h] * seconds
    return given


# -- by hand --------------------------------------------------------------------------------------------------------------


def test_two_copies_share_a_job_and_both_pay_the_overhead() -> None:
    run = forked(Instance([Job("a", duration=1000)], "2x1"))
    rows = [(s.start, s.end, s.work, s.gpus) for s in run.schedule.segments()]
    assert rows == [
        (0, 360, 350, ((0, 0),)),
        (0, 360, 350, ((1, 0),)),
        (360, 520, 150, ((0, 0),)),
        (360, 520, 150, ((1, 0),)),
    ]
    hours = {key: value * 3600 for key, value in run.metrics["gpu_hours"].items()}
    assert hours == pytest.approx({"busy": 1000, "overhead": 40, "idle": 0, "waiting": 0})
    assert run.schedule_class == "forking"
    assert [(r.start, r.end, r.active, len(r.segments)) for r in run.rounds] == [(0, 360, (0,), 2), (360, 720, (0,), 2)]


def test_rounds_begin_with_an_arrival_in_an_idle_cluster_and_then_tick() -> None:
    jobs = [
        Job("a", arrival=100, duration=400),
        Job("b", arrival=150, duration=30),
        Job("c", arrival=5000, duration=30),
    ]
    run = forked(Instance(jobs, "1x1"), "hadar-e:copies=1")
    # b waits for the tick at 460 although it is short; after 850 nothing is left until c comes
    assert [r.start for r in run.rounds] == [100, 460, 820, 5000]
    assert [r.active for r in run.rounds] == [(0,), (0, 1), (1,), (2,)]
    assert run.schedule.completion.tolist() == [520, 860, 5040]


def test_a_gang_larger_than_a_node_runs_in_one_copy_over_several() -> None:
    jobs = [Job("wide", gpus=5, duration=500), Job("small", gpus=1, duration=500)]
    run = forked(Instance(jobs, "2x4"))
    assert run.unfinished == []
    assert run.notes["copies"].tolist() == [1, 1]  # the wide one leaves room on one node only
    assert check_schedule(run.instance, run.schedule, schedule_class="forking") == []


def test_a_gang_over_several_nodes_takes_one_fast_type() -> None:
    table = {("m", gpu, 4): Throughput(2 * rate, rate) for gpu, rate in (("K80", 1.0), ("P100", 3.0), ("V100", 9.0))}
    nodes = (
        NodeGroup(count=3, gpus=2, gpu="K80"),
        NodeGroup(count=1, gpus=2, gpu="V100"),
        NodeGroup(count=2, gpus=2, gpu="P100"),
    )
    jobs = [Job("wide", gpus=4, iterations=700, profile="m")]
    run = forked(Instance(jobs, Cluster(nodes), throughputs=Throughputs(table)))
    # two V100 are not enough: with two P100 it runs as fast as with four
    assert [sorted({v for v, _ in s.gpus}) for s in run.schedule.segments()] == [[3, 4]]
    assert run.schedule.end.tolist() == [pytest.approx(10 + 700 / 3)]
    slow = forked(run.instance, "hadar-e:estimate=device")  # it does not know
    assert [sorted({v for v, _ in s.gpus}) for s in slow.schedule.segments()] == [[0, 1]] * len(slow.schedule)


def test_preemptions_are_jobs_that_lose_a_node() -> None:
    run = forked(Instance([Job("a", duration=1000), Job("b", arrival=100, duration=1000)], "2x1"))
    # both nodes to a, then both to b, which has more left, then one to each: a loses two, b one
    assert [run.schedule.job[list(r.segments)].tolist() for r in run.rounds] == [[0, 0], [1, 1], [0, 1]]
    assert run.preemptions == 2


# -- a second replay ------------------------------------------------------------------------------------------------------


@st.composite
def workloads(draw: st.DrawFn) -> tuple[list[int], list[int], list[list[int]], int, int, int]:
    nodes = draw(st.integers(1, 5))
    jobs = draw(st.integers(1, 6))
    whole = st.integers
    arrival = draw(st.lists(whole(0, 500), min_size=jobs, max_size=jobs))
    work = draw(st.lists(whole(1, 4000), min_size=jobs, max_size=jobs))
    rate = draw(st.lists(st.lists(whole(1, 9), min_size=nodes, max_size=nodes), min_size=jobs, max_size=jobs))
    length = draw(whole(40, 200))
    return arrival, work, rate, draw(whole(1, nodes)), length, draw(whole(0, length - 20))


@settings(max_examples=examples(25))
@given(workloads())
def test_the_replay_in_fractions_agrees(case: Any) -> None:
    arrival, work, rate, copies, length, overhead = case
    instance = table_instance(rate, work, arrival)
    run = forked(instance, f"hadar-e:rule=work,copies={copies},round={length},overhead={overhead}")
    exact = replay(
        *(list(map(Fraction, x)) for x in (arrival, work)), rate, copies, Fraction(length), Fraction(overhead)
    )
    assert run.unfinished == []
    given_ = [[(int(run.schedule.job[s]), int(run.schedule.gpu_node[s])) for s in r.segments] for r in run.rounds]
    assert [sorted(copies) for copies in given_] == [sorted(copies) for _, copies in exact.rounds]
    assert run.schedule.completion.tolist() == pytest.approx([float(c) for c in exact.completion], rel=1e-9)
    forking = run.schedule_class == "forking"
    assert forking == (min(copies, len(rate[0])) > 1)
    assert check_schedule(instance, run.schedule, schedule_class=run.schedule_class) == []
    assert run.metrics["gpu_hours"]["busy"] * 3600 + run.metrics["gpu_hours"]["overhead"] * 3600 == pytest.approx(
        float((run.schedule.end - run.schedule.start).sum())
    )


@pytest.mark.parametrize(
    "spec", ["hadar-e", "hadar-e:rule=payoff", "hadar-e:copies=2,estimate=noisy", "hadar-e:copies=1"]
)
@pytest.mark.parametrize("seed", range(3))
def test_gangs_on_nodes_of_several_sizes_and_types(spec: str, seed: int) -> None:
    instance = gang_instance(seed)
    run, again = forked(instance, spec), forked(instance, spec)
    assert run.unfinished == []
    assert check_schedule(instance, run.schedule, schedule_class=run.schedule_class) == []
    assert (run.schedule.start >= instance.arrival[run.schedule.job]).all()
    for name in ("job", "start", "end", "work", "gpu_offset", "gpu_node", "gpu_index"):
        assert np.array_equal(getattr(run.schedule, name), getattr(again.schedule, name)), name
    assert run.schedule.received == pytest.approx(instance.work, rel=1e-12)
    for each in run.rounds:  # copies of one job are on different nodes
        seen = [(int(run.schedule.job[s]), v) for s in each.segments for v in set(nodes_of_copies(run)[s])]
        assert len(seen) == len(set(seen))


def nodes_of_copies(run: ForkedRun) -> list[list[int]]:
    offset = run.schedule.gpu_offset
    return [run.schedule.gpu_node[a:b].tolist() for a, b in pairwise(offset.tolist())]


def test_jobs_with_stage_profiles_run_at_the_speed_of_one_node() -> None:
    instance = load("ddl-cluster").head(12)
    run = forked(instance)
    assert run.unfinished == []
    assert check_schedule(instance, run.schedule, schedule_class="forking") == []
    rates, network = group_rates(instance), Network.of(instance.cluster)
    for j, job in enumerate(instance.jobs):
        profile = instance.profiles[str(job.profile)]
        fits = job.gpus <= int(instance.cluster.node_gpus[0])
        alone = 1 / iteration_time(profile, network, [0] * job.gpus) if fits else 0
        assert rates[j, 0] == pytest.approx(alone)


@pytest.mark.compiled
def test_gangs_that_span_nodes_contend_for_the_network() -> None:
    jobs = [Job(name, gpus=3, iterations=100, profile="m", batch_size=3) for name in "ab"]
    quiet = Instance(jobs, "3x2", scalings={"m": Scaling(0.5, 0.1, across=1.0)})
    busy = quiet.replace(contention=Contention(1e-9, 2e-10))  # both are on the interface of the second node
    alone, beside = forked(quiet), forked(busy)
    assert [sorted({v for v, _ in s.gpus}) for s in beside.schedule.segments()] == [[0, 1], [1, 2]]
    assert beside.value() > 1.1 * alone.value()
    assert check_schedule(busy, beside.schedule, schedule_class="forking") == []
    forged = dataclasses.replace(alone.schedule, instance=busy)
    assert {each.rule for each in check_schedule(busy, forged, schedule_class="forking")} == {"rate"}


# -- what a policy may not do ---------------------------------------------------------------------------------------------


def copy(job: int, on: Any, work: Any) -> Start:
    return Start(job, on=on, work=work)


class Says:
    """A policy that says what it was made with, every 100 s, of jobs that are not finished."""

    name = "says"
    knowledge = Knowledge.CLAIRVOYANT
    uses = ("copies",)
    knows_rates = True
    round = 100.0
    overhead = restart = first_start = 10.0
    copies = 2

    def __init__(self, *copies: Any) -> None:
        self.said = copies

    def begin(self, view: View) -> None:
        self.heard: list[Ended] = []

    def decide(self, view: View) -> Iterable[Decision | list[Decision]]:
        self.heard += view.ended
        if not view.running and view.active.size:
            yield from self.assign(view)
            yield Wake(view.now + self.round)

    def assign(self, view: View) -> Iterable[Decision]:
        return self.said


TWO = Instance([Job("a", gpus=2, duration=50), Job("b", arrival=500, duration=50, gpu_types=("B",))], "2x2:A+1x4:B")


@pytest.mark.parametrize(
    ("copies", "words"),
    [
        ([copy(1, ((2, 1),), 1.0)], "a copy of job 'b' is started, which is not active"),
        ([copy(0, ((0, 2),), 0.0)], "has the work 0.0"),
        ([copy(0, ((0, 2),), float("nan"))], "has the work nan"),
        ([copy(0, ((0, 2),), 51.0)], "are to do more than is left, 50"),
        ([copy(0, ((0, 2),), 20.0), copy(0, ((0, 2),), 20.0)], "2 GPUs of node 0, 2 in all: 0 are free"),
        ([copy(0, ((2, 2),), 20.0), copy(0, ((2, 2),), 20.0)], "has 2 copies .expected: at most 2, on different nodes"),
        ([copy(0, ((v, 2),), 5.0) for v in range(3)], "has 3 copies .expected: at most 2"),
    ],
)
def test_impossible_copies_are_refused(copies: list[Any], words: str) -> None:
    with pytest.raises(SimulationError, match=words):
        forked(TWO, Says(*copies))


def test_a_type_that_a_job_may_not_use() -> None:
    class Later(Says):
        def assign(self, view: View) -> Iterable[Decision]:
            return [copy(j, ((0, view.gpus(j)),), 10.0) for j in view.active.tolist()]

    with pytest.raises(SimulationError, match="job 'b' is started on 1 GPUs of node 0, whose GPUs it may not use"):
        forked(TWO, Later())


def test_a_part_of_a_job_is_for_policies_that_fork() -> None:
    class Plain(Says):
        uses = ("nodes",)

    with pytest.raises(SimulationError, match="says so"):
        run_policy(TWO, Plain(copy(0, ((0, 2),), 1.0)), PLACEMENTS.get("count")())


def test_a_policy_hears_what_its_copies_did() -> None:
    policy = Says(copy(0, ((0, 2),), 30.0), copy(0, ((1, 2),), 20.0))
    run = forked(TWO.replace(jobs=TWO.jobs[:1]), policy)
    assert [(e.job, e.on, e.work, e.seconds) for e in policy.heard] == [(0, ((1, 2),), 20, 20), (0, ((0, 2),), 30, 30)]
    assert run.schedule.end.tolist() == [30, 40]


def test_a_copy_that_has_done_its_part_leaves_the_job_waiting() -> None:
    class Halves(Says):
        def assign(self, view: View) -> Iterable[Decision]:
            assert view.waiting == [0]
            left = view.remaining(0)
            yield copy(0, ((0, 2),), min(left, max(left / 2, 10.0)))
            assert view.remaining(0) == left
            assert (view.running, view.waiting, view.held(0)) == ([0], [], ((0, 2),))

    run = forked(TWO.replace(jobs=TWO.jobs[:1]), Halves())
    assert run.schedule.work.tolist() == [25, 12.5, 10, 2.5]
    assert run.unfinished == []


def test_a_stop_ends_all_copies_and_keeps_their_work() -> None:
    class Interrupts(Says):
        def decide(self, view: View) -> Iterable[Decision | list[Decision]]:
            if view.now == 20:
                assert view.remaining(0) == 30 == view.left[0]
                assert view.held(0) == ((0, 2), (1, 2))
                assert view.attained(0) == 80
                yield Stop(0)
                assert (view.waiting, view.remaining(0)) == ([0], 30)
                yield copy(0, ((0, 2),), 30.0)  # begins anew, where it stood
            elif view.waiting:
                yield from self.said
                yield Wake(20)

    run = forked(TWO.replace(jobs=TWO.jobs[:1]), Interrupts(copy(0, ((0, 2),), 25.0), copy(0, ((1, 2),), 25.0)))
    rows = [(s.start, s.end, s.work, len(s.gpus)) for s in run.schedule.segments()]
    assert rows == [(0, 20, 10, 2), (0, 20, 10, 2), (20, 60, 30, 2)]


def test_jobs_that_nobody_assigns_stay_unfinished() -> None:
    run = forked(TWO, Asked(lambda view: (), uses=("copies",)))
    assert run.unfinished == ["a", "b"]
    assert len(run.schedule) == 0
    assert run.rounds == ()


def test_rounds_must_not_be_too_short() -> None:
    with pytest.raises(InputError, match="too short for these jobs"):
        simulate(TWO, "hadar-e:round=1e-6,overhead=0")


def test_the_number_of_copies_must_be_legal() -> None:
    policy = Says()
    policy.copies = -1
    with pytest.raises(InputError, match="says: copies = -1"):
        forked(TWO, policy)


def test_the_view_keeps_secrets() -> None:
    seen: list[type[Exception]] = []

    class Curious(Says):
        knowledge = Knowledge.NON_CLAIRVOYANT
        knows_rates = False

        def decide(self, view: View) -> Iterable[Decision | list[Decision]]:
            groups = view.groups
            for ask in (lambda: view.left, lambda: groups.rates, lambda: groups.spread_rates, lambda: view.speeds):
                try:
                    ask()
                except KnowledgeError as error:
                    seen.append(type(error))
            assert groups.reference(0) == (0, 1.0)
            return ()

    forked(TWO, Curious())
    assert seen == [KnowledgeError] * 8
    rates = HadarE()
    forked(TWO, rates)
    rates.believed[:] = 0  # a copy: nobody changes what the policy believes
    assert rates.believed.max() == 1
