"""Every registered family keeps what it says; a new one is picked up by itself."""

from __future__ import annotations

import inspect
from fractions import Fraction
from typing import Any

import pytest

from optsched.check.referee import schedule_value
from optsched.errors import InputError
from optsched.guarantees import GUARANTEES
from optsched.guarantees.family import FAMILIES, family_instance, family_member
from optsched.guarantees.optimum import exact_optimum, is_proved
from optsched.guarantees.optimum_bounds import OptimumBounds
from optsched.guarantees.suites import suite
from optsched.policies.simulate import serves, simulate, specify
from optsched.problem.objectives import OBJECTIVES, get_objective

SIZED = [(name, size) for name, family in FAMILIES.items() for size in family.sizes]


@pytest.mark.parametrize("name", FAMILIES.names())
def test_it_says_what_it_is(name: str) -> None:
    family = FAMILIES.get(name)
    assert family.name == name
    assert family.summary
    assert family.limit
    assert family.objective in OBJECTIVES
    assert inspect.getdoc(family.make)
    assert list(family.parameters) == list(inspect.signature(family.make).parameters)  # all of them can be written
    assert family.sizes
    if family.theorem:
        theorem = GUARANTEES.get(family.theorem)
        assert specify(family.policy).policy.name in theorem.policies
        assert theorem.objective == family.objective
    member = family.member()
    assert serves(specify(family.policy).policy, member.instance)
    assert family_instance(name).digest == member.instance.digest


@pytest.mark.parametrize(("name", "size"), SIZED)
def test_its_formula_is_what_the_policy_loses(name: str, size: int) -> None:
    member = FAMILIES.get(name).of_size(size)
    instance, family = member.instance, member.family
    run = simulate(instance, family.policy)
    value = schedule_value(instance, run.schedule, family.objective)
    optimum = exact_optimum(instance, family.objective)
    if member.ratio is not None:
        assert isinstance(member.ratio, Fraction)
        assert optimum is not None
        assert is_proved(instance)
        gain = get_objective(family.objective).gain
        assert (optimum[0] == member.ratio * value) if gain else (value == member.ratio * optimum[0])
    if member.reference is not None:
        assert optimum is None
        lower = OptimumBounds(instance, [run]).lower(family.objective)
        assert lower is None or lower <= member.reference
    if family.theorem:
        theorem, chosen = GUARANTEES.get(family.theorem), specify(family.policy)
        assert theorem.applies(chosen.policy, chosen.placement, instance)
        if member.ratio is not None:
            assert member.ratio <= theorem.ratio(chosen.policy, run)


def test_a_guarantee_and_its_family_name_each_other() -> None:
    for name, theorem in GUARANTEES.items():
        if theorem.tight.family is not None:
            assert theorem.tight.family.theorem == name
            assert FAMILIES.get(theorem.tight.family.name) is theorem.tight.family


def test_a_member_is_a_suite_of_one_instance(command: Any) -> None:
    found = suite("blocked-long-job:m=3")
    assert found.members == ("blocked-long-job:m=3",)
    ((_, instance),) = found.instances()
    assert instance.digest == family_member("blocked-long-job:m=3").instance.digest
    code, out, _ = command("ratio", "blocked-long-job:m=3", "-p", "list")
    assert code == 0
    assert "1.6667" in out


def test_families_are_listed(command: Any) -> None:
    code, out, _ = command("list", "families")
    assert code == 0
    assert all(name in out for name in FAMILIES.names())
    assert "optsched ratio kappa:gpus=4 -p a-srpt" in " ".join(command("list", "families", "kappa")[1].split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bloked-long-job:m=3", "blocked-long-job"),
        ("blocked-long-job:n=3", "parameters: m"),
        ("blocked-long-job:m=x", "an integer"),
        ("blocked-long-job:m=0", "m = 0"),
        ("kappa:gpus=1", "gpus"),
    ],
)
def test_what_is_no_member(text: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        family_instance(text)
    with pytest.raises(InputError, match=expected):
        suite(text).instances()
