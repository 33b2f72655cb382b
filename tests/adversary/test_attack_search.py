"""The attack finds what theorems say is there, proves it, and makes it small; the same for the same seed."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

import optsched as osd
from optsched.adversary.attack_method import Budget
from optsched.adversary.attack_search import Attack, resemblance, shrunk
from optsched.adversary.evaluation import Evaluation
from optsched.adversary.methods.search import MOVES, coarsen, crossed, moved, search
from optsched.adversary.space import SPACES, Candidate, SearchSpace, space_of
from optsched.adversary.spaces.whole_jobs import WholeJobs
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


# -- against random instances ----------------------------------------------------------------------------------------------


TIMES = 1.3


@pytest.mark.study
@pytest.mark.parametrize("policy", ["a-srpt", "makespan-rounds", "tiresias:threshold=8", "sjf-bsbf", "leader-first"])
def test_a_search_beats_as_many_random_instances(policy: str) -> None:
    chosen = specify(policy)
    evaluation = Evaluation(space_of(chosen.policy, weights=False), chosen, None, "total_flow_time")
    found, rng = search(evaluation.fresh(), Budget(tries=1200)), random.Random(0)
    assert found.tries == 1200
    drawn = max(evaluation.ratio(evaluation.space.drawn(rng)) for _ in range(found.tries))
    assert found.elites[0][0] >= TIMES * drawn


@pytest.mark.study
def test_overtaking_without_a_budget_grows_with_the_number_of_jobs() -> None:
    ratios = [
        osd.attack("a-srpt:overtake=inf", space="whole-jobs:latest=40", jobs=n, tries=2400, workers=1).ratio
        for n in (4, 7, 10)
    ]
    assert ratios[0] * 1.1 < ratios[1] < ratios[2] / 1.1


# -- moves: candidates stay legal, and random numbers are those of the seed ------------------------------------------------


@pytest.fixture(params=SPACES.names())
def space(request: pytest.FixtureRequest) -> SearchSpace:
    return SPACES.get(request.param)()


def test_neighbours_and_children_are_legal(space: SearchSpace) -> None:
    rng = random.Random(1)
    here = space.drawn(rng)
    for _ in range(300):
        before = here
        here = moved(before, space, rng)
        assert here != before
        assert space.legal(here)
        assert space.legal(crossed(before, here, space, rng))


def test_every_move_leaves_as_many_columns(space: SearchSpace) -> None:
    rng = random.Random(2)
    for move in MOVES:
        for _ in range(20):
            there = move(space.drawn(rng), space, rng)
            assert {len(row) for row in there.jobs} == {len(space.quantities)}
            assert len(there.shared) == len(space.shared)


def test_the_same_seed_walks_the_same_way(space: SearchSpace) -> None:
    def walk() -> list[object]:
        rng = random.Random(3)
        here = space.drawn(rng)
        return [here := moved(here, space, rng) for _ in range(50)]

    assert walk() == walk()


def test_every_candidate_makes_an_instance(space: SearchSpace) -> None:
    rng = random.Random(4)
    for _ in range(10):
        candidate = space.drawn(rng)
        assert space.instance(candidate).n == len(candidate.jobs)


def test_coarsening_makes_what_is_nearly_regular_regular() -> None:
    """Numbers near multiples of 4.4: the family on which LPT is worst on three machines."""
    near = Candidate(tuple((length, 1, 0, 1) for length in (13, 13, 21, 13, 22, 17, 18)))
    rng = random.Random(1)
    found = [coarsen(near, WholeJobs(gpus=3), rng) for _ in range(40)]
    assert [3, 3, 5, 3, 5, 4, 4] in [[job[0] for job in each.jobs] for each in found]
