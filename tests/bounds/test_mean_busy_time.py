"""Mean busy times: known values, a second formulation (assignment of slots), Eastman-Even-Isaacs, rounding."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings, strategies as st
from scipy.optimize import linear_sum_assignment

from bounds.cases import instance_of, instances, many, proved
from optsched.bounds.mean_busy_time import weights_on_grid
from optsched.problem.instance import Instance

build, build_srpt = (partial(proved, kind) for kind in ("mean-busy-time", "srpt"))


def value(instance: Instance, objective: str) -> Fraction:
    return build(instance, objective).value


@settings(max_examples=examples(60))
@given(instances(most=5, kind="integer", gpus=1))
def test_least_mean_busy_times_as_an_assignment_problem(instance: Instance) -> None:
    # units of work to unit slots; the cost of a unit is weight / p_j x the middle of the slot
    horizon = int(instance.arrival.max(initial=0.0) + instance.duration.sum())
    rows = []
    for r, p, w in zip(instance.arrival, instance.duration, instance.weight, strict=True):
        slots = np.arange(horizon)
        rows += [np.where(slots >= r, w / p * (slots + 0.5), 1e6)] * int(p)
    expected = float(instance.weight @ instance.duration) / 2
    if rows:
        cost = np.array(rows)
        expected += cost[linear_sum_assignment(cost)].sum()
    assert float(value(instance, "total_weighted_completion_time")) == pytest.approx(expected, rel=1e-12)


@given(
    st.lists(st.tuples(st.just(0.0), st.just(1), st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=9),
    st.integers(1, 4),
)
def test_eastman_even_isaacs(rows: list[tuple[float, int, int, int]], machines: int) -> None:
    machines = min(machines, len(rows))  # of fewer jobs than machines only as many can be filled
    instance = instance_of([(r, g, float(p), float(w)) for r, g, p, w in rows], machines)
    order = sorted(((p, w) for _, _, p, w in rows), key=lambda job: Fraction(-job[1], job[0]))
    one_machine, now = 0, 0
    for p, w in order:
        now += p
        one_machine += w * now
    sum_wp = sum(w * p for p, w in order)
    bound = Fraction(one_machine, machines) + Fraction(machines - 1, 2 * machines) * sum_wp
    threshold_one = value(instance, "total_weighted_completion_time")
    assert threshold_one >= bound
    if machines <= 2:
        # no other threshold exists
        assert threshold_one == bound


@pytest.mark.parametrize("kind", ["integer", "tenths"])
@pytest.mark.parametrize("bound", ["mean-busy-time", "split-busy-time"])
def test_hundreds_of_interruptions_are_rounded_alike_on_both_roads(kind: str, bound: str) -> None:
    instance = many(500, 7, kind)
    certificate = proved(bound, instance, "total_weighted_flow_time")
    assert certificate.value > 0
    assert certificate.data["held_up_bits"] == 32


def test_ties_are_broken_alike_on_both_roads() -> None:
    # Three jobs of equal density at every release, denser than all before: one of them starts and is interrupted by the
    # next three. Which one it is does not change the sum but its roundings.
    rng = np.random.default_rng(5)
    rows = [(2.0 * k, 1, float(p), float(p * (k + 1))) for k in range(200) for p in rng.integers(3, 40, 3)]
    values = set()
    for order in (range(600), range(599, -1, -1), rng.permutation(600)):
        instance = instance_of([rows[j] for j in order], 1)
        certificate = build(instance, "total_weighted_completion_time")
        assert certificate.data["held_up_bits"] == 32
        values.add(certificate.value)
    assert len(values) > 1
    assert max(values) - min(values) < Fraction(600 * 40 * 200, 2**32)


@given(st.lists(st.sampled_from([0.0, 0.1, 1.0, 3.0, 1e9 + 0.3, 1e-300, 1e300]), max_size=6), st.integers(0, 6))
def test_weights_are_rounded_down_to_52_bits(weights: list[float], extra: int) -> None:
    integers, exponent = weights_on_grid(np.array(weights), extra)
    for k, w in zip(integers.tolist(), weights, strict=True):
        assert 0 <= k < 2**52
        assert 0 <= Fraction(w) - k / Fraction(2) ** exponent < 1 / Fraction(2) ** exponent


def test_integer_weights_stay_integers() -> None:
    assert weights_on_grid(np.array([3.0, 7.0]))[1] == 0
    assert weights_on_grid(np.array([3.0, 7.0]), 6)[1] == 6
