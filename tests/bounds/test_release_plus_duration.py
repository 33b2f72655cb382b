"""Release plus duration against the objectives' own exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from bounds.cases import SUMS, instance_of, instances, proved
from optsched.bounds.sum_costs import ends_after, two_sum
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective

build = partial(proved, "release-plus-duration")


@given(instances(most=6), st.sampled_from(SUMS))
@example(instance_of([], 3), "total_flow_time")
def test_it_is_the_value_of_never_waiting(instance: Instance, objective: str) -> None:
    certificate = build(instance, objective)
    alone = [Fraction(r) + Fraction(d) for r, d in zip(instance.arrival, instance.duration, strict=True)]
    assert certificate.value == get_objective(objective).exact_of(instance, alone)


finite = st.floats(-1e300, 1e300) | st.sampled_from([1e16, 1.0, 1.5, 2.0, -1e16, 0.1])


@given(finite, finite)
@example(1e16, 1.0)
def test_two_sum_is_exact(a: float, b: float) -> None:
    total, error = two_sum(np.array([a]), np.array([b]))
    assert Fraction(float(total[0])) + Fraction(float(error[0])) == Fraction(a) + Fraction(b)


@given(finite, finite, finite)
@example(1e16, 1.0, 1e16)
@example(1e16, 1.0, 1e16 + 2)
def test_ends_after_decides_without_rounding(release: float, duration: float, moment: float) -> None:
    late = ends_after(np.array([release]), np.array([duration]), np.array([moment]))
    assert bool(late[0]) == (Fraction(release) + Fraction(duration) > Fraction(moment))


@pytest.mark.parametrize(("due", "value"), [(1e16, Fraction(1)), (1e16 + 2, Fraction(0)), (-5.0, Fraction(10**16 + 6))])
def test_tardiness_below_the_last_bit_of_a_float(due: float, value: Fraction) -> None:
    instance = instance_of([(1e16, 1, 1.0, 1.0, due)], 1)
    assert build(instance, "total_weighted_tardiness").value == value
