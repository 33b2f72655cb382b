"""The worst instance of a range by mixed-integer programs is the worst of all its instances, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product
from typing import Any, ClassVar

import numpy as np
import pytest

import optsched as osd
from optsched.adversary.methods.milp import RatioProgram, queue_ranks
from optsched.adversary.space import space_of
from optsched.adversary.spaces.whole_jobs import WholeJobs
from optsched.models.worst_for_an_order import QueueOrder
from optsched.policies.simulate import specify
from optsched.problem.objectives import get_objective
from optsched.simulation.policy import Knowledge, KnownJobs, Order

Job = tuple[int, int, int]  # duration, weight, arrival
Key = Callable[[Job], Any]


@dataclass(frozen=True)
class Uneven:
    """Nobody's order: it depends on everything that a job has, and has ties."""

    name: ClassVar[str] = "uneven"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT

    def order(self, jobs: KnownJobs) -> Order:
        return Order(key=(3 * jobs.duration + 2 * jobs.weight + 5 * jobs.arrival) % 7)


def served(jobs: tuple[Job, ...], key: Key) -> list[int]:
    """The order in which a queue order serves jobs: the smallest key of those who have arrived, ties by row."""
    left, now, order = list(range(len(jobs))), 0, []
    while left:
        now = max(now, min(jobs[j][2] for j in left))
        order.append(min((j for j in left if jobs[j][2] <= now), key=lambda j: (key(jobs[j]), j)))
        left.remove(order[-1])
        now += jobs[order[-1]][0]
    return order


def cost(jobs: tuple[Job, ...], objective: str, order: Iterable[int]) -> int:
    """Of jobs one after the other, each as early as it can."""
    goal = get_objective(objective)
    now, total = 0, 0
    for length, weight, arrival in (jobs[j] for j in order):
        now = max(now, arrival) + length
        total += (weight if goal.weighted else 1) * (now - (arrival if goal.completion_form else 0))
    return total


def worst(key: Key, objective: str, most: Job, n: int) -> Fraction:
    """The largest ratio of all instances of n jobs, rows in every order."""
    kinds = list(product(range(1, most[0] + 1), range(1, most[1] + 1), range(most[2] + 1)))
    largest = Fraction(0)
    for jobs in product(kinds, repeat=n):
        if min(job[2] for job in jobs) == 0:
            best = min(cost(jobs, objective, order) for order in permutations(range(n)))
            largest = max(largest, Fraction(cost(jobs, objective, served(jobs, key)), best))
    return largest


@pytest.mark.parametrize(
    ("policy", "key", "objective", "most", "n"),
    [
        ("sjf", lambda job: job[0], "total_completion_time", (4, 1, 2), 3),
        ("fifo", lambda job: job[2], "total_flow_time", (4, 1, 2), 3),
        ("list:by=longest", lambda job: -job[0], "total_flow_time", (3, 1, 3), 3),
        ("wspt", lambda job: Fraction(job[0], job[1]), "total_weighted_completion_time", (2, 3, 1), 3),
        ("wspt", lambda job: Fraction(job[0], job[1]), "total_weighted_flow_time", (3, 3, 3), 2),
        (Uneven(), lambda job: (3 * job[0] + 2 * job[1] + 5 * job[2]) % 7, "total_weighted_flow_time", (3, 2, 2), 2),
    ],
)
def test_the_worst_of_all_instances(policy: Any, key: Key, objective: str, most: Job, n: int) -> None:
    text = f"whole-jobs:longest={max(most[:2])},latest={most[2]}"
    chosen = specify(policy)
    space = space_of(chosen.policy, text, jobs=n, gpus=1, weights=get_objective(objective).weighted)
    assert isinstance(space, WholeJobs)
    ranks = queue_ranks(chosen, space)[: most[0], : most[1]]  # the range of durations need not be that of weights
    goal = get_objective(objective)
    program = RatioProgram(QueueOrder(n, ranks, goal.weighted, goal.completion_form is not None))
    largest = worst(key, objective, most, n)
    just_below = largest - Fraction(1, 10**4)
    found = program.above(just_below, 60.0)
    assert found.ratio == largest
    assert program.above(largest, 60.0) == (True, None, 0, ())


@pytest.mark.compiled
def test_the_attack_is_proved_and_small() -> None:
    found = osd.attack(
        "sjf", objective="total_completion_time", space="whole-jobs:longest=6,latest=6", jobs=3, method="milp"
    )
    assert found.proved == found.space.jobs == 3
    # a job of length 6 and, as it has started, two of length 1: 6 + 7 + 8 against 2 + 3 + 9
    assert found.confirmed.exact == Fraction(21, 14)
    assert found.searched == 1.5
    assert found.confirmed.ratio_to == "optimum"
    assert sorted(found.instance.duration.tolist()) == [1, 1, 6]


@pytest.mark.study
@pytest.mark.parametrize(("n", "longest"), [(3, 12), (4, 24), (5, 24)])
def test_greedy_spt_is_worst_where_unit_jobs_come_just_after_a_long_one(n: int, longest: int) -> None:
    """n - 1 unit jobs arrive as one of the largest length p has started: no instance of the range is worse."""
    found = osd.attack(
        "sjf",
        objective="total_completion_time",
        jobs=n,
        method="milp",
        space=f"whole-jobs:longest={longest}",
        seconds=600,
    )
    value = n * longest + n * (n - 1) // 2
    best = n * (n + 1) // 2 - 1 + n + longest
    assert (found.confirmed.exact, found.proved) == (Fraction(value, best), n)


def test_a_policy_without_bad_instances() -> None:
    objective, space = "total_weighted_completion_time", "whole-jobs:longest=3,arrivals=false"
    found = osd.attack("wspt", objective=objective, space=space, jobs=3, method="milp")
    assert (found.confirmed.exact, found.proved) == (1, 3)


def test_a_budget_ends_before_the_proof() -> None:
    found = osd.attack("sjf", method="milp", seconds=1e-3)
    assert found.proved < found.space.jobs
    assert found.ratio >= 1


def test_ranks_are_dense_and_ties_stay_ties() -> None:
    space = space_of(specify("wspt").policy, "whole-jobs:longest=4,latest=1", gpus=1)
    assert isinstance(space, WholeJobs)
    ranks = queue_ranks(specify("wspt"), space)
    assert ranks.shape == (4, 4, 2)
    assert np.array_equal(np.unique(ranks), np.arange(ranks.max() + 1))
    assert ranks[0, 1, 0] == ranks[1, 3, 1]  # 1/2 and 2/4


@pytest.mark.parametrize(
    ("policy", "wrong", "said"),
    [
        ("list", {}, "queue orders"),
        ("srtf", {}, "queue orders"),
        ("delayed-spt", {}, "queue orders"),
        ("sjf", {"gpus": 2}, "one machine"),
        ("sjf", {"objective": "makespan"}, "objective"),
        ("sjf", {"against": "fifo"}, "against"),
        ("sjf", {"tries": 5}, "tries"),
        ("sjf", {"space": "whole-jobs:longest=999,latest=999"}, "too large"),
        ("sjf", {"method": "milpp"}, "did you mean milp"),
    ],
)
def test_what_the_method_is_not_for_is_told(policy: str, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(osd.InputError, match=said):
        osd.attack(policy, **{"method": "milp", **wrong})
