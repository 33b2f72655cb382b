"""Chu's bound: SRPT completions against sorted due dates."""

from __future__ import annotations

from functools import partial

import pytest
from brute_force import preemptive_optimum
from examples import examples
from hypothesis import given, settings

from bounds.cases import instance_of, instances, proved
from optsched.problem.instance import Instance

OBJECTIVE = "total_weighted_tardiness"
build = partial(proved, "srpt-due-dates")


def test_names_are_matched_in_order() -> None:
    # SRPT ends at 1, 3, 6; due dates in order 1, 2, 3
    instance = instance_of([(0.0, 1, 1.0, 1.0, 3.0), (0.0, 1, 2.0, 1.0, 1.0), (0.0, 1, 3.0, 1.0, 2.0)], 1)
    certificate = build(instance, OBJECTIVE)
    assert certificate.value == 0 + 1 + 3


def test_jobs_without_a_due_date_neither_cost_nor_match() -> None:
    instance = instance_of([(0.0, 1, 1.0, 1.0, None), (0.0, 1, 2.0, 1.0, 1.0)], 1)
    certificate = build(instance, OBJECTIVE)
    assert certificate.value == 1


def test_weights_in_layers() -> None:
    # both jobs at weight 1, the second alone at 2 more
    instance = instance_of([(0.0, 1, 2.0, 1.0, 0.0), (0.0, 1, 2.0, 3.0, 1.0)], 1)
    certificate = build(instance, OBJECTIVE)
    assert certificate.data["levels"] == ["1/1", "3/1"]
    assert certificate.value == (2 + 3) + 2 * 1


@settings(max_examples=examples(80))
@given(instances(most=4, kind="short", gpus=1))
def test_never_above_the_preemptive_optimum(instance: Instance) -> None:
    certificate = build(instance, OBJECTIVE)
    assert certificate.value <= preemptive_optimum(instance, OBJECTIVE)


@pytest.mark.parametrize("due", [-1e12, 0.3, 1e18])
def test_due_dates_far_away(due: float) -> None:
    instance = instance_of([(0.1, 1, 1.5, 1.0, due), (0.2, 2, 0.5, 1.0, 1.0)], 2)
    build(instance, OBJECTIVE)
