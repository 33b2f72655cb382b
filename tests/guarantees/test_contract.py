"""What every registered guarantee and lower bound keeps; a new one is picked up by itself."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from policies.levels import whole_job_policies

from optsched.check.referee import check_schedule, schedule_value
from optsched.classes import class_names
from optsched.errors import InputError
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.evaluation.theorem_runs import challenge
from optsched.guarantees import GUARANTEES
from optsched.guarantees.guarantee import KNOWLEDGE, LOWER_BOUNDS, STATUSES
from optsched.guarantees.judge import judge
from optsched.guarantees.speed import SPEED_THEOREMS
from optsched.policies.simulate import simulate, specify
from optsched.problem.objectives import OBJECTIVES

REACHED = [
    (name, size)
    for name, theorem in GUARANTEES.items()
    if theorem.tight.family is not None and theorem.tight.exact
    for size in theorem.tight.family.sizes
]


EVERY = [each for kind in (GUARANTEES, LOWER_BOUNDS, SPEED_THEOREMS) for each in kind.items()]


@pytest.mark.parametrize(("name", "theorem"), EVERY, ids=[name for name, _ in EVERY])
def test_it_says_what_it_is(name: str, theorem: Any) -> None:
    assert theorem.id == name
    assert theorem.statement
    assert theorem.source
    assert theorem.proof
    assert theorem.notation.count("|") == 2
    if theorem in [each for _, each in SPEED_THEOREMS.items()]:
        return
    assert theorem.knowledge in KNOWLEDGE
    assert theorem.status in STATUSES
    if name in LOWER_BOUNDS.names():
        assert theorem.limit
        assert theorem.ratio(10) < theorem.ratio(100)
        return
    assert theorem.tight.text
    assert theorem.policies
    assert theorem.objective in OBJECTIVES
    assert theorem.schedule_class in class_names()


@pytest.mark.parametrize(("name", "k"), REACHED)
def test_its_tight_family_reaches_the_ratio_exactly(name: str, k: int) -> None:
    theorem = GUARANTEES.get(name)
    family = theorem.tight.family
    assert family is not None
    instance = family.of_size(k).instance
    chosen = specify(family.policy)
    assert theorem.applies(chosen.policy, chosen.placement, instance)
    run = simulate(instance, chosen)
    assert check_schedule(instance, run.schedule, preemptive=run.preemptive) == []
    ratio = theorem.ratio(chosen.policy, run)
    assert isinstance(ratio, Fraction)
    assert instance.optimum is not None
    value, optimum = schedule_value(instance, run.schedule, theorem.objective), Fraction(instance.optimum["value"])
    assert value == ratio * optimum
    proven = OptimumBounds(instance, [run])
    assert proven.lower(theorem.objective) == optimum  # the certificate proves what the family says
    assert judge(theorem, chosen.policy, run, proven).holds is True


def test_a_name_alone_proves_nothing() -> None:
    class Impostor:
        name = "list"
        knowledge = "clairvoyant"
        by = "given"

    theorem = GUARANTEES.get("graham-list")
    assert theorem.is_about(specify("list").policy)
    assert not theorem.is_about(Impostor())


# -- adversaries, each of which beats every policy of its kind ------------------------------------------------------------


ONE_MACHINE = [
    name
    for name in whole_job_policies()
    if name not in ("auction-rounds", "gavel", "makespan-rounds", "hadar", "hadar-e", "yarn-cs")
]
PREEMPTIVE = ("srtf", "srtf-gpu", "preemptive-wspt", "setf", "tiresias", "immediate-dispatch")
SIZE = {"online-completion": 12, "online-flow": 12, "unknown-lengths": 5}


@pytest.mark.parametrize("name", LOWER_BOUNDS.names())
def test_no_policy_of_its_kind_is_better(name: str) -> None:
    bound, found = LOWER_BOUNDS.get(name), dict[str, Fraction]()
    for policy in ONE_MACHINE:
        try:
            _, found[policy] = challenge(bound, policy, SIZE[name])
        except InputError:
            chosen = specify(policy).policy
            knows = chosen.knowledge != bound.knowledge and bound.knowledge == "non-clairvoyant"
            assert knows or policy in PREEMPTIVE
    assert {"fifo"} <= set(found)
    assert min(found.values()) >= bound.ratio(SIZE[name]), found


def test_the_best_possible_policies_are_just_there() -> None:
    _, delayed = challenge(LOWER_BOUNDS.get("online-completion"), "delayed-spt", 30)
    assert 1.9 < delayed <= 2
    _, in_turn = challenge(LOWER_BOUNDS.get("unknown-lengths"), "setf", 9)
    assert 1.79 < in_turn <= 2 - Fraction(2, 10)


def test_preemption_and_knowledge_are_excuses() -> None:
    with pytest.raises(InputError, match="preempt"):
        challenge(LOWER_BOUNDS.get("online-flow"), "srtf", 3)
    with pytest.raises(InputError, match="knows more"):
        challenge(LOWER_BOUNDS.get("unknown-lengths"), "sjf", 3)
