"""What every registered guarantee keeps; a new one is picked up by itself."""

from __future__ import annotations

from fractions import Fraction

import pytest

from optsched.bounds.certificate import SCHEDULE_CLASSES
from optsched.check.referee import check_schedule, schedule_value
from optsched.guarantees import GUARANTEES
from optsched.guarantees.guarantee import KNOWLEDGE, STATUSES
from optsched.guarantees.judge import judge
from optsched.guarantees.optimum_bounds import OptimumBounds
from optsched.policies.simulate import simulate, specify
from optsched.problem.objectives import OBJECTIVES

REACHED = [
    (name, size)
    for name, theorem in GUARANTEES.items()
    if theorem.tight.family is not None and theorem.tight.exact
    for size in theorem.tight.family.sizes
]


@pytest.mark.parametrize("name", GUARANTEES.names())
def test_it_says_what_it_is(name: str) -> None:
    theorem = GUARANTEES.get(name)
    assert theorem.id == name
    assert theorem.statement
    assert theorem.source
    assert theorem.notation.count("|") == 2
    assert theorem.knowledge in KNOWLEDGE
    assert theorem.status in STATUSES
    assert theorem.proof
    assert theorem.tight.text
    assert theorem.policies
    assert theorem.objective in OBJECTIVES
    assert theorem.schedule_class in SCHEDULE_CLASSES


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
