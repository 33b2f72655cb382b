"""Schedules of jobs in rounds: all that matter are enumerated, gangs are whole, the slowest type rules."""

from __future__ import annotations

import math
from contextlib import nullcontext

import pytest
from examples import examples
from hypothesis import given, settings
from packing_value import packing_value
from round_brute_force import every_schedule, tiny_problems

from optsched.errors import InputError
from optsched.models import hadar_rounds
from optsched.models.hadar_rounds import RoundProblem, round_problem
from optsched.problem.instance import Cluster, Instance, Job, NodeGroup

FOUR_ON_TWO_AND_TWO = RoundProblem(
    work=[100.0], tasks=[4], speed=[[3.0, 2.0]], arrival=[0], devices=[[2, 2]], seconds=10.0, utility=[[5.0, 4.0, 1.0]]
)


def plain(**changes: object) -> RoundProblem:
    """One job of one device on one machine, with changes."""
    fields: dict[str, object] = {
        "work": [10.0],
        "tasks": [1],
        "speed": [[1.0]],
        "arrival": [0],
        "devices": [[1]],
        "seconds": 10.0,
        "utility": [[2.0, 1.0]],
    }
    return RoundProblem(**(fields | changes))  # type: ignore[arg-type]


@settings(max_examples=examples(80))
@given(problem=tiny_problems())
def test_enumeration_is_every_schedule_without_a_superfluous_round(problem: RoundProblem) -> None:
    for j in range(problem.n):
        expected = set()
        for used in every_schedule(problem, j):
            done = [iterations for _, iterations in used.values()]
            if all(sum(done) - one < problem.work[j] for one in done):
                cells = [(problem.resource(t, h, r), k) for t, (way, _) in used.items() for h, r, k in way]
                expected.add((float(problem.utility[j, max(used)]), tuple(sorted(cells))))
        found = [(one.utility, one.demand) for one in problem.job_schedules(j)]
        assert len(found) == len(set(found))
        assert set(found) == expected


def test_the_slowest_type_rules() -> None:
    # 4 tasks at 2 each, 10 s: 80 of the 100 iterations, so two rounds; all at 3 would have done it in one
    (one,) = FOUR_ON_TWO_AND_TWO.allocations(0)
    assert one.iterations == 80
    faster = RoundProblem([100.0], [4], [[3.0, 3.0]], [0], [[2, 2]], 10.0, [[5.0, 4.0, 1.0]])
    assert packing_value(FOUR_ON_TWO_AND_TWO.packing(), integer=True) == 4
    assert packing_value(faster.packing(), integer=True) == 5


def test_four_tasks_on_two_and_two_devices() -> None:
    assert len(FOUR_ON_TWO_AND_TWO.packing().flat) == 3  # two of three rounds


def test_a_gang_on_one_machine_may_be_faster_or_slower() -> None:
    devices, alone = [[2], [1]], [[5.0]]
    problem = plain(tasks=[2], speed=[[1.0]], devices=devices, together=alone)
    assert {one.cells: one.iterations for one in problem.allocations(0)} == {
        ((0, 0, 2),): 100.0,
        ((0, 0, 1), (1, 0, 1)): 20.0,
    }
    nowhere = plain(tasks=[2], speed=[[1.0]], devices=devices, together=[[0.0]])
    assert [one.cells for one in nowhere.allocations(0)] == [((0, 0, 1), (1, 0, 1))]


def test_rounding_does_not_cost_a_round() -> None:
    # 0.1 in floats three times is more than 0.3, 0.7 three times is less than 2.1
    for speed, work in ((0.1, 0.3), (0.7, 2.1)):
        problem = plain(work=[work], speed=[[speed]], seconds=1.0, utility=[[1.0, 1.0, 1.0, 1.0]])
        assert min(one.demand[-1][0] for one in problem.packing().flat) == 2  # the last of three rounds


def test_many_schedules_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hadar_rounds, "MOST_SCHEDULES", 1000)
    many = plain(work=[80.0], tasks=[4], devices=[[4] * 3] * 2, speed=[[1.0] * 3], utility=[[1.0] * 8])
    with pytest.raises(InputError, match="too many schedules"):
        many.packing()
    for most, refused in ((2, False), (1, True)):
        monkeypatch.setattr(hadar_rounds, "MOST_SCHEDULES", most)
        with pytest.raises(InputError, match="at most 1") if refused else nullcontext():
            assert len(plain().packing().flat) == 2


@pytest.mark.parametrize("utility", [[[1.0, 2.0]], [[1.0, -2.0]], [[math.inf, 1.0]]])
def test_utilities_that_are_none(utility: list[list[float]]) -> None:
    with pytest.raises(InputError, match=r"utility.*not increasing"):
        plain(utility=utility)


def test_memory_is_refused_on_an_instance() -> None:
    cluster = Cluster((NodeGroup(2, gpu_memory=1e9), NodeGroup(2)))
    with pytest.raises(InputError, match="gpu_memory"):
        round_problem(Instance([Job("a", duration=5, gpu_memory=2e9)], cluster), 10.0, 2)
