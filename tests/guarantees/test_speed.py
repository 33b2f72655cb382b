"""SRPT on faster machines, against exhaustive optima and on the family on which it is bad at speed 1."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import pytest
from brute_force import preemptive_optimum
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.check.referee import schedule_value
from optsched.errors import InputError
from optsched.guarantees.family import family_member
from optsched.guarantees.speed import SPEED_THEOREMS, SRPT_FASTER, faster
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job


def slower_clock(instance: Instance, times: int) -> Instance:
    """All times that many times as long: they stay integers on faster machines."""
    jobs = [
        dataclasses.replace(job, arrival=job.arrival * times, duration=(job.duration or 0) * times)
        for job in instance.jobs
    ]
    return Instance(jobs, instance.cluster, instance.name, instance.objective)


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=4))
def test_it_holds_against_the_optimum(rows: list[tuple[int, int]]) -> None:
    first = min(r for r, _ in rows)
    instance = Instance([Job(f"{j}", arrival=r - first, duration=p) for j, (r, p) in enumerate(rows)], "1x2")
    best = preemptive_optimum(instance, "total_flow_time")
    thrice = slower_clock(instance, 3)
    found = SRPT_FASTER.judge("srtf", thrice)
    assert found.holds is not False
    run = simulate(faster(thrice, Fraction(3, 2)), "srtf")
    assert schedule_value(run.instance, run.schedule, "total_flow_time") * Fraction(3, 2) <= 3 * best


@pytest.mark.parametrize("phases", [3, 5])
def test_on_its_worst_family_speed_is_all_it_needs(phases: int) -> None:
    member = family_member(f"halving:phases={phases}")
    assert member.reference is not None
    slow = simulate(member.instance, "srtf").value("total_flow_time") / float(member.reference)
    thrice = slower_clock(member.instance, 3)
    fast = simulate(faster(thrice, Fraction(3, 2)), "srtf").value("total_flow_time") / (3 * float(member.reference))
    assert slow > 2
    assert fast <= Fraction(2, 3)
    assert SRPT_FASTER.judge("srtf", thrice).holds is not False


def test_what_it_is_not_about() -> None:
    two = Instance([Job("a", duration=3)], "1x2", objective="total_flow_time")
    with pytest.raises(InputError, match="at least 3/2"):
        SRPT_FASTER.judge("srtf", two, Fraction(5, 4))
    with pytest.raises(InputError, match="about srtf"):
        SRPT_FASTER.judge("sjf", two)
    with pytest.raises(InputError, match="restart"):
        SRPT_FASTER.judge("srtf:restart=1", two)
    with pytest.raises(InputError, match="speed"):
        faster(two, Fraction(0))


def test_a_theorem_that_is_too_good_is_found_out() -> None:
    two = Instance([Job("a", duration=3)], "1x2", objective="total_flow_time")
    assert SRPT_FASTER.judge("srtf", two).holds is True
    wrong = dataclasses.replace(SRPT_FASTER, ratio=lambda speed: 1 / (2 * speed))
    found = wrong.judge("srtf", two)
    assert found.holds is False
    assert found.findings


def test_they_say_what_they_are() -> None:
    for name, theorem in SPEED_THEOREMS.items():
        assert theorem.id == name
        assert theorem.notation.count("|") == 2
        assert theorem.statement
        assert theorem.source
        assert theorem.proof
