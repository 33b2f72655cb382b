"""Numbers and columns that the verifier reads: exact, the same from a file and from an instance, or refused by name."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from optsched.bounds.proof import GivenSpeeds
from optsched.verifier.class_table import CLASSES
from optsched.verifier.exact_numbers import floors, integers, quotient_below
from optsched.verifier.refusal import UNJUDGED, Refused
from optsched.verifier.stated_instance import epoch_of, read_jobs
from verifier.certified_cases import FAMILIES, drawn, written

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(finite, max_size=8))
@example([5e-324, 1.7976931348623157e308])
@example([-0.0, 0.5, 3.0])
def test_integers_are_the_floats(values: list[float]) -> None:
    numbers, unit = integers(values)
    assert [Fraction(x, unit) for x in numbers] == list(map(Fraction, values))
    assert unit == max((x.as_integer_ratio()[1] for x in values), default=1)


@given(st.lists(st.integers(-(10**30), 10**30), max_size=5), st.integers(0, 90), st.integers(-90, 90))
def test_floors_are_those_of_fractions(values: list[int], bits: int, exponent: int) -> None:
    exact = [math.floor(Fraction(x, 1 << bits) * Fraction(2) ** exponent) for x in values]
    assert floors(values, 1 << bits, exponent) == exact


@given(st.integers(-(10**40), 10**40), st.integers(1, 10**40))
def test_quotients_are_the_next_floats_below(numerator: int, denominator: int) -> None:
    below = quotient_below(numerator, denominator)
    assert Fraction(below) <= Fraction(numerator, denominator) < Fraction(math.nextafter(below, math.inf))


@pytest.mark.parametrize("family", FAMILIES)
def test_columns_of_an_instance_are_those_of_its_file(family: str) -> None:
    rng = np.random.default_rng(7)
    for _ in range(5):
        instance = drawn(family, rng)
        source, document = GivenSpeeds(instance), written(instance.to_json())
        assert not source.given
        stated, given = read_jobs(document["jobs"], instance.cluster.gpus, 0.0), source.stated_jobs()
        assert (stated.ids, stated.gpus, stated.labels) == (given.ids, given.gpus, given.labels)
        for name, column in stated.numbers.items():
            other = given.numbers[name]
            assert (column is None) == (other is None)
            assert column is None or other is None or np.array_equal(column, other, equal_nan=True)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("arrival", "0", "arrival: '0' is no legal number of a job"),
        ("weight", -1, "weight: -1 is no legal number of a job"),
        ("weight", True, "weight: True is no legal number of a job"),
        ("duration", math.nan, "duration: nan is no legal number of a job"),
        ("due", 10**400, "due: 'a huge number' is no legal number of a job"),
        ("gpus", 3, "gpus: 3 is no legal int"),
        ("gpus", 1.0, "gpus: 1.0 is no legal int"),
    ],
)
def test_the_first_illegal_number_is_named(field: str, value: Any, text: str) -> None:
    rows = [{"duration": 1.0}, {"duration": 2, field: value}, {"duration": 1.0, field: []}]
    with pytest.raises(Refused) as refused:
        read_jobs(rows, 2, 0.0)
    assert (str(refused.value), refused.value.rule) == (text, UNJUDGED)


def test_what_jobs_do_not_state_has_its_default() -> None:
    jobs = read_jobs([{"duration": 1}, {"iterations": 2.5, "profile": "p", "id": "b", "gpus": 2, "weight": 0}], 2, 0.0)
    assert (jobs.ids, jobs.gpus, jobs.labels["profile"]) == (["1", "b"], [1, 2], [None, "p"])
    assert (jobs.numbers["arrival"], jobs.numbers["weight"]) == ([0.0, 0.0], [1.0, 0.0])
    assert math.isnan(jobs.numbers["duration"][1])


@pytest.mark.parametrize(
    ("arrivals", "dues", "epoch"),
    [([], [], 0.0), ([3.5, 4.0], [9.0], 3.5), ([1e9 + 0.25, 1e9 + 7], [], 1e9 + 0.25), ([0.1, 1e17], [], 0.0)],
)
def test_the_epoch_costs_no_digit(arrivals: list[float], dues: list[float], epoch: float) -> None:
    assert epoch_of(arrivals, dues) == epoch


def test_rules_of_a_class_are_fields_of_its_case() -> None:
    assert {name: rules.case.schedule_class for name, rules in CLASSES.items()} == {name: name for name in CLASSES}
    assert [name for name, rules in CLASSES.items() if not rules.case.preemptive] == ["gang-nonpreemptive"]
    assert [name for name, rules in CLASSES.items() if rules.case.copies] == ["forking"]
    assert [name for name, rules in CLASSES.items() if rules.case.any_width] == ["elastic"]
    assert [name for name, rules in CLASSES.items() if rules.case.takes_turns] == ["task-sharing"]
