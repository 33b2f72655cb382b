"""Greedy for restricted assignment: least work left, decisions for good, and the logarithm of its theorem."""

from __future__ import annotations

from fractions import Fraction

import pytest
from examples import examples
from hypothesis import given, settings, strategies as st

from optsched.check.referee import check_schedule, schedule_value
from optsched.guarantees.judge import judge
from optsched.guarantees.list_scheduling import RESTRICTED_GREEDY, factor, tournament
from optsched.guarantees.optimum_bounds import OptimumBounds
from optsched.policies.simulate import simulate, specify
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from policies.unrelated import shortest


def machines(m: int) -> Cluster:
    return Cluster(tuple(NodeGroup(1, gpu=f"m{i}") for i in range(m)))


@pytest.mark.parametrize(("rounds", "printed"), [(2, 3), (3, 4), (4, 5), (6, 7), (8, 9)])
def test_the_tournament_is_lost_by_a_logarithm(rounds: int, printed: int) -> None:
    instance = tournament(rounds)
    assert instance.cluster.gpus == instance.n == 2**rounds
    run = simulate(instance, "restricted-greedy")
    assert schedule_value(instance, run.schedule, "makespan") == printed == factor(2**rounds)


def test_the_factor_is_rounded_up() -> None:
    assert [factor(m) for m in range(1, 10)] == [1, 2, 3, 3, 4, 4, 4, 4, 5]


@st.composite
def restricted(draw: st.DrawFn) -> Instance:
    m = draw(st.integers(1, 4))
    names = [f"m{i}" for i in range(m)]
    jobs = [
        Job(
            f"{j}",
            duration=draw(st.integers(1, 6)),
            gpu_types=tuple(draw(st.lists(st.sampled_from(names), min_size=1, unique=True))),
        )
        for j in range(draw(st.integers(1, 6)))
    ]
    return Instance(jobs, machines(m), objective="makespan")


def assignments(instance: Instance) -> list[list[int]]:
    """Who may go where."""
    return [[int(name[1:]) for name in job.gpu_types or ()] for job in instance.jobs]


@settings(max_examples=examples(30))
@given(restricted())
def test_against_a_plain_greedy_and_every_assignment(instance: Instance) -> None:
    run, spec = simulate(instance, "restricted-greedy"), specify("restricted-greedy")
    load = [0] * instance.cluster.gpus
    for legal, job in zip(assignments(instance), instance.jobs, strict=True):
        load[min(legal, key=lambda i: (load[i], i))] += int(job.duration or 0)
    rows = zip(assignments(instance), instance.jobs, strict=True)
    seconds = [tuple(int(job.duration or 0) * (i in legal) for i in range(len(load))) for legal, job in rows]
    value = schedule_value(instance, run.schedule, "makespan")
    assert value == max(load)
    assert check_schedule(instance, run.schedule) == []
    assert value <= Fraction(factor(instance.cluster.gpus)) * shortest(seconds)
    assert RESTRICTED_GREEDY.applies(spec.policy, spec.placement, instance)
    assert judge(RESTRICTED_GREEDY, spec.policy, run, OptimumBounds(instance, [run])).holds is not False


def test_gangs_start_together_and_nobody_overtakes_on_his_gpus() -> None:
    # b waits for both GPUs, c behind it although one of them is free
    jobs = [Job("a", duration=4), Job("b", arrival=1, gpus=2, duration=1), Job("c", arrival=2, duration=1)]
    run = simulate(Instance(jobs, "1x2"), "restricted-greedy")
    assert run.schedule.completion.tolist() == [4, 5, 6]
