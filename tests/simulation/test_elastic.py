"""The elastic engine: against a replay in fractions, round by round, of what a random policy allocated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import few

from optsched.check.referee import check_schedule
from optsched.errors import InputError, KnowledgeError, SimulationError
from optsched.policies.placements import PLACEMENTS
from optsched.problem.cluster import Places
from optsched.problem.instance import Instance, Job
from optsched.problem.scaling import Scaling
from optsched.simulation.engine import run_policy
from optsched.simulation.policy import Decision, Knowledge, Start, Stop, View, Wake
from optsched.simulation.run import Run
from simulation.elastic_instances import elastic_instance, every_place

LINEAR = Scaling(0.0, 1.0, iterations=((8, 10.0),))  # r GPUs are r times as fast, up to 8


class Resizing:
    """Gives every job the places that `allocate` says, and nobody else any."""

    uses = ("widths", "rounds")
    restart: float

    @property
    def first_start(self) -> float:
        return self.restart

    def decide(self, view: View) -> Iterator[list[Decision]]:
        given = self.allocate(view)
        yield [Stop(j) for j in view.running if view.held(j) != given.get(j)]
        yield [Start(j, on=on) for j, on in given.items() if not view.held(j)]

    def allocate(self, view: View) -> dict[int, Places]:
        raise NotImplementedError


def run_elastic(instance: Instance, policy: Any) -> Run:
    return run_policy(instance, policy, PLACEMENTS.get("count")())


@dataclass
class Fixed(Resizing):
    """Says what it is told at every decision, by number; then nothing."""

    plan: list[dict[int, Places]]
    round: float = 10.0
    restart: float = 0.0
    name: str = "fixed"
    knowledge: str = "non-clairvoyant"
    seen: list[tuple[float, list[int]]] = field(default_factory=list)

    def allocate(self, view: View) -> dict[int, Places]:
        self.seen.append((view.now, view.active.tolist()))
        now = self.plan[min(len(self.seen), len(self.plan)) - 1]
        return {j: on for j, on in now.items() if j in view.active.tolist()}


@dataclass
class Dice(Resizing):
    """Random legal places; keeps what it has more often than not. Writes down what it said."""

    seed: int
    round: float = 10.0
    restart: float = 3.0
    name: str = "dice"
    knowledge: Knowledge = Knowledge.CLAIRVOYANT
    said: list[tuple[float, dict[int, Places], dict[int, float]]] = field(default_factory=list)

    def allocate(self, view: View) -> dict[int, Places]:
        rng = np.random.default_rng([self.seed, len(self.said)])
        free, given = view.groups.node_gpus.copy(), dict[int, Places]()
        keep = 0.7 if self.restart < self.round else 0.97  # else nobody gets on
        kept = [j for j in view.active.tolist() if view.held(j) and rng.random() < keep]
        for j in kept:
            given[j] = view.held(j)
            for node, count in given[j]:
                free[node] -= count
        for j in rng.permutation([j for j in view.active.tolist() if j not in kept]).tolist():
            counts = rng.integers(0, np.where(view.eligible(j), free, 0) + 1)
            on = tuple((node, int(c)) for node, c in enumerate(counts.tolist()) if c)
            if on and view.goodputs.rate(j, on) > 0 and rng.random() < 0.8:
                given[j] = on
                free -= counts
        if not given:  # the engine would wait for the next arrival
            first = int(view.active[0])
            given[first] = next(
                on
                for on in every_place(view.groups.node_gpus.tolist())
                if sum(c for _, c in on) == view.gpus(first) and view.goodputs.rate(first, on) > 0
            )
        self.said.append((view.now, given, {j: view.goodputs.rate(j, on) for j, on in given.items()}))
        self.left = {j: float(view.left[j]) for j in view.active.tolist()}
        return given


def replayed(instance: Instance, policy: Dice) -> tuple[list[Fraction | None], int]:
    """(completions, changes of the GPUs of a job that had some) by what it said, in fractions, a round at a time."""
    left = [Fraction(work) for work in instance.work.tolist()]
    done: list[Fraction | None] = [None] * instance.n
    ready: dict[int, Fraction] = {}
    holds: dict[int, Places] = {}
    changes = 0
    for k, (now, given, rates) in enumerate(policy.said):
        start = Fraction(now)
        end = Fraction(policy.said[k + 1][0]) if k + 1 < len(policy.said) else None
        for j in list(holds):
            if given.get(j) != holds[j]:
                del holds[j]
                changes += 1
        for j, on in given.items():
            assert done[j] is None
            assert instance.arrival[j] <= now
            if holds.get(j) != on:
                holds[j], ready[j] = on, start + Fraction(policy.restart)
            begin = max(start, ready[j])
            finish = begin + left[j] / Fraction(rates[j])
            if end is None or finish <= end:
                done[j], left[j] = finish, Fraction(0)
                del holds[j]
            elif begin < end:
                left[j] -= (end - begin) * Fraction(rates[j])
    return done, changes


@pytest.mark.parametrize("seed", few(range(6), 3))
def test_against_a_replay_in_fractions(seed: int) -> None:
    instance = elastic_instance(seed, memory=seed % 3 == 1, measured=seed % 3 == 2)
    policy = Dice(seed, round=float([10, 7.3, 4][seed % 3]), restart=float([3, 0, 15][seed % 3]))
    run = run_elastic(instance, policy)
    assert run.unfinished == []
    expected, changes = replayed(instance, policy)
    assert run.schedule.completion.tolist() == pytest.approx([float(c or -1) for c in expected], rel=1e-11)
    assert run.preemptions == changes
    assert check_schedule(instance, run.schedule, schedule_class="elastic") == []
    hours = run.metrics["gpu_hours"]
    total = instance.cluster.gpus * (run.metrics["makespan"] - instance.arrival.min()) / 3600
    assert hours["busy"] + hours["overhead"] + hours["idle"] == pytest.approx(total, rel=1e-9)
    assert min(hours.values()) > -1e-9
    assert 0 < run.metrics["utilization"] <= 1


def linear(work: float = 100, arrival: float = 0, gang: int = 1) -> Job:
    return Job(f"j{arrival}", arrival, gang, iterations=work, profile="m", batch_size=8)


def two(second: float = 13) -> Instance:
    return Instance([linear(), replace(linear(arrival=second), id="second")], "2x4", scalings={"m": LINEAR})


def test_resizing_by_hand() -> None:
    # 8 s an iteration alone. j0: 8 GPUs until 20, then 4; the restart of 2 s is paid at 0 and at 20
    both = {0: ((0, 4),), 1: ((1, 4),)}
    policy = Fixed([{0: ((0, 4), (1, 4))}, {0: ((0, 4), (1, 4))}, both], restart=2)
    run = run_elastic(two(), policy)
    # 18 iterations until 20; then 82 at one every two seconds from 22 on
    assert run.schedule.completion.tolist() == [22 + 82 * 2, 22 + 100 * 2]
    rows = [(s.job, len(s.gpus), s.start, s.end, s.work) for s in run.schedule.segments()]
    assert rows == [(0, 8, 0.0, 20.0, 18.0), (0, 4, 20.0, 186.0, 82.0), (1, 4, 20.0, 222.0, 100.0)]
    assert (run.preemptions, run.schedule_class, run.preemptive) == (1, "elastic", True)
    assert run.metrics["gpu_hours"]["overhead"] == pytest.approx((8 * 2 + 4 * 2 + 4 * 2) / 3600)


def test_decisions_are_at_multiples_of_the_round_and_only_where_something_may_change() -> None:
    policy = Fixed([{0: ((0, 4),), 1: ((1, 4),)}])
    run_elastic(two(second=10_000.0), policy)  # alone, 100 iterations take 200 s; nothing to decide until 10,000
    assert [now for now, _ in policy.seen] == [*range(0, 200, 10), *range(10_000, 10_200, 10)]
    late = Fixed([{0: ((0, 4),), 1: ((1, 4),)}], round=60)
    run_elastic(two(second=61.0), late)
    assert [jobs for now, jobs in late.seen if now in (60, 120)] == [[0], [0, 1]]


def test_gpus_of_a_finished_job_are_idle_until_the_next_decision() -> None:
    first = {0: ((0, 4), (1, 4))}
    run = run_elastic(
        Instance([linear(5), linear(8, arrival=1)], "2x4", scalings={"m": LINEAR}),
        Fixed([first, {1: ((0, 4), (1, 4))}]),
    )
    assert run.schedule.completion.tolist() == [5, 18]


def test_rigid_instances_are_scheduled_as_gangs() -> None:
    instance = Instance([Job("a", gpus=2, duration=25), Job("b", gpus=2, duration=5)], "1x2")
    run = run_elastic(instance, Fixed([{0: ((0, 2),)}, {1: ((0, 2),)}, {0: ((0, 2),)}]))
    assert run.schedule.completion.tolist() == [35, 15]
    assert (run.schedule_class, run.preemptions) == ("gang", 1)
    assert check_schedule(instance, run.schedule) == []


def test_what_nobody_takes_is_unfinished_and_an_empty_instance_is_over() -> None:
    run = run_elastic(two(), Fixed([{0: ((0, 4),)}]))
    assert run.unfinished == ["second"]
    assert len(run_elastic(Instance([], "1x4"), Fixed([{}])).schedule) == 0


def test_illegal_allocations() -> None:
    class Twice(Fixed):
        def decide(self, view: View) -> Iterator[list[Decision]]:
            yield [Start(0, on=((0, 1),)), Start(0, on=((1, 1),))]

    with pytest.raises(SimulationError, match="is started but does not wait"):
        run_elastic(two(), Twice([]))

    class Awake(Fixed):
        def decide(self, view: View) -> Iterator[list[Decision]]:
            yield [Wake(view.now + 1)]

    with pytest.raises(SimulationError, match="is asked every round"):
        run_elastic(two(), Awake([]))
    with pytest.raises(SimulationError, match="every node once"):
        run_elastic(two(second=0), Fixed([{0: ((0, 1), (0, 1))}]))
    rigid = Instance([Job("a", gpus=2, duration=25)], "1x4")
    with pytest.raises(SimulationError, match="cannot run"):
        run_elastic(rigid, Fixed([{0: ((0, 3),)}]))


@pytest.mark.parametrize(("field_name", "value"), [("round", 0.0), ("round", float("nan")), ("restart", -1.0)])
def test_illegal_rounds(field_name: str, value: float) -> None:
    with pytest.raises(InputError, match=field_name):
        run_elastic(two(), Fixed([{}], **{field_name: value}))
    with pytest.raises(InputError, match="too short"):
        run_elastic(two(), Fixed([{}], round=1e-9))


def test_only_clairvoyant_policies_see_what_is_left() -> None:
    class Curious(Fixed):
        def allocate(self, view: View) -> dict[int, Places]:
            return {j: ((0, 1),) for j in view.active.tolist() if view.left[j]}

    with pytest.raises(KnowledgeError):
        run_elastic(two(), Curious([]))
    assert run_elastic(two(second=900), Curious([], knowledge="clairvoyant")).unfinished == []
