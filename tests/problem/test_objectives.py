"""Objectives against their definitions, in floats and in fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from optsched.errors import InputError
from optsched.problem.instance import Instance, Job
from optsched.problem.objectives import OBJECTIVES, get_objective, objective_of

DEFINITION = {
    "total_completion_time": lambda rows: sum(c for c, r, w, d in rows),
    "total_weighted_completion_time": lambda rows: sum(w * c for c, r, w, d in rows),
    "total_flow_time": lambda rows: sum(c - r for c, r, w, d in rows),
    "total_weighted_flow_time": lambda rows: sum(w * (c - r) for c, r, w, d in rows),
    "makespan": lambda rows: max((c for c, r, w, d in rows), default=0),
    "max_flow_time": lambda rows: max((c - r for c, r, w, d in rows), default=0),
    "total_weighted_tardiness": lambda rows: sum(w * max(c - d, 0) for c, r, w, d in rows if d is not None),
}
Rows = list[tuple[int, int, int, int | None]]
rows_of_integers = st.lists(
    st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 9), st.none() | st.integers(-9, 99)), max_size=8
)


def columns(rows: Rows) -> tuple[Any, ...]:
    c, r, w = (np.array([row[i] for row in rows], dtype=np.float64) for i in range(3))
    return c, r, w, np.array([math.inf if row[3] is None else row[3] for row in rows], dtype=np.float64)


def test_the_suite_knows_every_objective() -> None:
    # a gain, and a quotient: test_total_utility.py, test_fair_slowdown.py
    assert {*DEFINITION, "total_utility", "max_fair_slowdown"} == set(OBJECTIVES.names())


@pytest.mark.parametrize("name", DEFINITION)
@given(rows=rows_of_integers)
def test_value_and_exact_are_the_definition(name: str, rows: Rows) -> None:
    objective = get_objective(name)
    completion, *rest = columns(rows)
    expected = DEFINITION[name](rows)
    assert objective.value(completion, *rest) == expected
    exact = objective.exact(completion.tolist(), *rest)
    assert isinstance(exact, Fraction)
    assert exact == expected


@given(rows=rows_of_integers)
def test_exact_takes_fractions_and_floats_as_they_are(rows: Rows) -> None:
    _, *rest = columns(rows)
    thirds = [Fraction(row[0], 3) for row in rows]
    assert get_objective("total_completion_time").exact(thirds, *rest) == sum(thirds, Fraction(0))
    tenths = [row[0] / 10 for row in rows]
    assert get_objective("total_completion_time").exact(tenths, *rest) == sum(map(Fraction, tenths), Fraction(0))


@pytest.mark.parametrize("name", DEFINITION)
def test_a_job_without_a_completion_time_makes_the_value_nan(name: str) -> None:
    completion, *rest = columns([(3, 0, 1, 5), (4, 0, 1, None)])
    completion[0] = math.nan
    assert math.isnan(get_objective(name).value(completion, *rest))


def test_only_flow_objectives_have_a_completion_form_and_three_are_maxima() -> None:
    forms = {name: objective.completion_form for name, objective in OBJECTIVES.items() if objective.completion_form}
    assert forms == {
        "total_flow_time": "total_completion_time",
        "total_weighted_flow_time": "total_weighted_completion_time",
    }
    maxima = [name for name, objective in OBJECTIVES.items() if objective.maximum]
    assert sorted(maxima) == ["makespan", "max_fair_slowdown", "max_flow_time"]


def test_names_may_be_written_with_hyphens_and_unknown_ones_are_one_line() -> None:
    assert get_objective("total-flow-time") is get_objective("total_flow_time")
    with pytest.raises(InputError, match=r"no objective named 'makespam'; did you mean makespan"):
        get_objective("makespam")


def test_the_objective_meant_is_the_named_one_else_the_instances_own_else_flow_time() -> None:
    job = Job("a", duration=1)
    assert objective_of(Instance([job], "1x1")).name == "total_flow_time"
    own = Instance([job], "1x1", objective="makespan")
    assert objective_of(own).name == "makespan"
    assert objective_of(own, "total_completion_time").name == "total_completion_time"


def test_of_reads_the_instances_columns() -> None:
    instance = Instance([Job("a", duration=2, weight=3, due=1), Job("b", arrival=1, duration=1)], "1x1")
    completion = np.array([2.0, 3.0])
    assert get_objective("total_weighted_tardiness").of(instance, completion) == 3
    assert get_objective("total_weighted_flow_time").exact_of(instance, [Fraction(2), Fraction(3)]) == 8
