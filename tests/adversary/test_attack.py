"""The attack finds what theorems say is there, proves it, and makes it small; the same for the same seed."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

import optsched as osd
from optsched.adversary.attack import Attack, resemblance, shrunk
from optsched.adversary.evaluation import Evaluation
from optsched.adversary.method import Budget
from optsched.adversary.methods.search import search
from optsched.adversary.space import Candidate, space_of
from optsched.guarantees.family import family_instance
from optsched.policies.simulate import specify

MACHINES = "whole-jobs:arrivals=false,gangs=false"


def on(policy: str, objective: str, space: str = MACHINES, against: str | None = None, **sizes: int) -> Evaluation:
    chosen = specify(policy)
    kind = space_of(chosen.policy, space, **sizes)
    return Evaluation(kind, chosen, None if against is None else specify(against), objective)


def attacked(policy: str, objective: str, space: str = MACHINES, **more: object) -> Attack:
    return osd.attack(policy, objective=objective, space=space, workers=1, **more)  # type: ignore[arg-type]


def test_list_scheduling_on_two_machines() -> None:
    found = attacked("list", "makespan", tries=150)
    assert found.confirmed.exact == Fraction(3, 2)
    assert found.confirmed.ratio_to == "optimum"
    assert sorted(found.instance.duration.tolist()) == [1, 1, 2]
    assert found.resembles is not None
    assert found.resembles.member == "blocked-long-job:m=2"
    assert found.tries == 150
    assert osd.simulate(found.instance, "list").value("makespan") / found.ratio == osd.solve(found.instance).value


@pytest.mark.study
def test_greedy_spt_on_one_machine() -> None:
    found = attacked("sjf", "total_completion_time", "", gpus=1, tries=150)
    assert found.ratio >= 1.9
    assert found.confirmed.ratio_to == "optimum"
    assert found.instance.n <= 8


@pytest.mark.study
def test_smith_s_rule_on_two_machines() -> None:
    found = attacked("wspt", "total_weighted_completion_time", tries=300)
    assert found.ratio >= 1.15
    assert found.confirmed.ratio_to == "optimum"
    assert found.ratio <= (1 + 2**0.5) / 2


def test_one_policy_against_another() -> None:
    found = attacked("fifo", "total_flow_time", "", against="sjf", gpus=1, jobs=4, tries=50)
    assert found.confirmed.ratio_to == "sjf"
    assert found.confirmed.most is None
    values = [osd.simulate(found.instance, policy).value("total_flow_time") for policy in ("fifo", "sjf")]
    assert found.ratio == values[0] / values[1] > 1


def test_the_same_seed_finds_the_same() -> None:
    evaluation = on("list:by=longest", "makespan")
    first, second = (search(evaluation.fresh(), Budget(tries=25, seed=5)).elites for _ in range(2))
    assert first == second
    assert search(evaluation.fresh(), Budget(tries=25, seed=6)).elites != first


def test_nothing_is_run_twice() -> None:
    evaluation = on("list", "makespan")
    candidate = evaluation.space.drawn(random.Random(1))
    assert evaluation.ratio(candidate) == evaluation.ratio(candidate)
    assert evaluation.runs == 1


def test_a_budget_in_seconds_ends() -> None:
    found = attacked("list", "makespan", seconds=0.2)
    assert found.tries >= 1


def test_shrinking_keeps_the_ratio_within_the_tolerance() -> None:
    evaluation = on("list", "makespan", gpus=3)
    large = Candidate(tuple((length, 1, 0, 1) for length in (5, 4, 3, 9)))
    small = shrunk(evaluation, large, tolerance=0.05)
    assert small.total < large.total
    assert evaluation.ratio(small) >= 0.95 * evaluation.ratio(large)
    assert shrunk(evaluation, small, tolerance=0.0) == small or evaluation.ratio(small) > 0


def test_a_family_resembles_itself_in_any_order_and_unit() -> None:
    instance = family_instance("three-last:m=3")
    table = instance.table.with_columns(osd_duration := instance.table["duration"] * 7)[::-1]
    assert osd_duration.name == "duration"
    near = resemblance(instance.replace(jobs=table), "makespan")
    assert near is not None
    assert near.member == "three-last:m=3"
    assert near.distance < 1e-9
    assert resemblance(instance.replace(jobs=table.with_columns(arrival=table["duration"] * 2)), "makespan") is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"tries": 0}, "tries"),
        ({"seconds": 0}, "budget"),
        ({"workers": 0}, "workers"),
        ({"tolerance": 1.0}, "tolerance"),
        ({"objective": "make-span"}, "makespan"),
    ],
)
def test_what_is_not_legal_is_told(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(osd.InputError, match=said):
        osd.attack("list", **wrong)  # type: ignore[arg-type]


@pytest.mark.study
@pytest.mark.parametrize(
    ("policy", "gpus", "tries", "ratio"),
    [
        ("list", 2, 3200, Fraction(3, 2)),
        ("list", 3, 8000, Fraction(5, 3)),
        ("list:by=longest", 2, 8000, Fraction(7, 6)),
        ("list:by=longest", 3, 3600, Fraction(11, 9)),
    ],
)
def test_graham_s_ratios_are_reached(policy: str, gpus: int, tries: int, ratio: Fraction) -> None:
    found = attacked(policy, "makespan", gpus=gpus, tries=tries)
    assert found.confirmed.exact == ratio
    assert found.instance.n <= 8


@pytest.mark.study
def test_processes_change_nothing() -> None:
    evaluation = on("list:by=longest", "makespan")
    together, alone = (search(evaluation, Budget(tries=900, seed=1, workers=n)) for n in (2, 1))
    assert together.elites == alone.elites
