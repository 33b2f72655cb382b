"""Every adversary beats every policy of its kind; a new one of either is picked up by itself."""

from __future__ import annotations

from fractions import Fraction

import pytest
from policies.levels import whole_job_policies

from optsched.errors import InputError
from optsched.guarantees.guarantee import KNOWLEDGE, LOWER_BOUNDS, STATUSES
from optsched.policies.simulate import specify

ONE_MACHINE = [
    name for name in whole_job_policies() if name not in ("gavel", "hadar", "hadar-commit", "hadar-e", "yarn-cs")
]
PREEMPTIVE = ("srtf", "srtf-gpu", "preemptive-wspt", "setf", "tiresias", "immediate-dispatch")
SIZE = {"online-completion": 12, "online-flow": 12, "unknown-lengths": 5}


@pytest.mark.parametrize("name", LOWER_BOUNDS.names())
def test_it_says_what_it_is(name: str) -> None:
    bound = LOWER_BOUNDS.get(name)
    assert bound.id == name
    assert bound.statement
    assert bound.notation.count("|") == 2
    assert bound.knowledge in KNOWLEDGE
    assert bound.status in STATUSES
    assert bound.source
    assert bound.proof
    assert bound.limit
    assert bound.ratio(10) < bound.ratio(100)


@pytest.mark.parametrize("name", LOWER_BOUNDS.names())
def test_no_policy_of_its_kind_is_better(name: str) -> None:
    bound, found = LOWER_BOUNDS.get(name), dict[str, Fraction]()
    for policy in ONE_MACHINE:
        try:
            _, found[policy] = bound.against(policy, SIZE[name])
        except InputError:
            chosen = specify(policy).policy
            knows = chosen.knowledge != bound.knowledge and bound.knowledge == "non-clairvoyant"
            assert knows or policy in PREEMPTIVE
    assert {"fifo"} <= set(found)
    assert min(found.values()) >= bound.ratio(SIZE[name]), found


def test_the_best_possible_policies_are_just_there() -> None:
    _, delayed = LOWER_BOUNDS.get("online-completion").against("delayed-spt", 30)
    assert 1.9 < delayed <= 2
    _, in_turn = LOWER_BOUNDS.get("unknown-lengths").against("setf", 9)
    assert 1.79 < in_turn <= 2 - Fraction(2, 10)


def test_preemption_and_knowledge_are_excuses() -> None:
    with pytest.raises(InputError, match="preempt"):
        LOWER_BOUNDS.get("online-flow").against("srtf", 3)
    with pytest.raises(InputError, match="knows more"):
        LOWER_BOUNDS.get("unknown-lengths").against("sjf", 3)
