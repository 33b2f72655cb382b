"""SRPT as a bound: exact on one machine, never above an optimum elsewhere, and worth its parts."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from brute_force import preemptive_optimum
from examples import examples
from hypothesis import given, settings
from srpt import srpt

from bounds.cases import instance_of, instances, proved, random_gangs
from optsched.bounds.one_machine import levels_of
from optsched.problem.instance import Instance

KIND = "srpt"
build = partial(proved, KIND)


def value(instance: Instance, objective: str) -> Fraction:
    return build(instance, objective).value


@settings(max_examples=examples(120))
@given(instances(most=4, kind="short", gpus=1))
def test_on_one_machine_it_is_the_preemptive_optimum(instance: Instance) -> None:
    for objective in ("total_completion_time", "total_flow_time"):
        assert value(instance, objective) == preemptive_optimum(instance, objective)


def test_row_6_by_hand() -> None:
    # (r, p) = (0, 3), (1, 1): C = 4 and 2
    instance = instance_of([(0.0, 1, 3.0), (1.0, 1, 1.0)], 1)
    assert value(instance, "total_completion_time") == 6
    assert value(instance, "total_flow_time") == 5


def test_ties_and_idle_time() -> None:
    rows = [(0.0, 1, 2.0)] * 3 + [(100.0, 2, 1.0)] * 2
    # one machine of two GPUs: 1, 2, 3, then 101, 102
    assert value(instance_of(rows, 2), "total_completion_time") == 209


def test_wide_gangs_run_one_by_one() -> None:
    # 5 of 8 GPUs each: GPU-seconds alone would let three of them end at 5/8, 10/8, 15/8
    instance = instance_of([(0.0, 5, 1.0)] * 3 + [(0.0, 1, 4.0)], 8)
    assert value(instance, "total_completion_time") == 1 + 2 + 3 + 4


def test_gangs_that_cannot_fill_the_cluster() -> None:
    # at most two gangs of 3 at once on 8 GPUs: the machine has 6 GPUs, not 8
    instance = instance_of([(0.0, 3, 4.0)] * 4, 8)
    assert value(instance, "total_completion_time") == 2 + 4 + 6 + 8


def test_weights_in_layers() -> None:
    # theta = 1 for both jobs, 2 more for the second: SRPT of both + 2 x SRPT of the second alone
    instance = instance_of([(0.0, 1, 1.0, 1.0), (0.0, 1, 5.0, 3.0)], 1)
    assert value(instance, "total_weighted_completion_time") == (1 + 6) + 2 * 5
    assert value(instance, "total_completion_time") == 7


def test_weights_above_the_levels_still_count() -> None:
    weights = [float(w) for w in range(1, 21)]
    instance = instance_of([(0.0, 1, 1.0, w) for w in weights], 20)
    assert len(levels_of(instance.weight)) == 4
    assert value(instance, "total_weighted_completion_time") >= sum(weights) / 20
    assert value(instance, "total_weighted_completion_time") <= sum(weights)


@settings(max_examples=examples(60))
@given(instances(most=6))
def test_against_fractions_without_a_grid(instance: Instance) -> None:
    total = instance.cluster.gpus
    jobs = [
        (Fraction(r), g * Fraction(d) / total)
        for r, g, d in zip(instance.arrival.tolist(), instance.gpus.tolist(), instance.duration.tolist(), strict=True)
    ]
    plain = sum(srpt(jobs), Fraction(0))
    best = value(instance, "total_completion_time")
    # capacity and thresholds may only improve on G GPUs; the grid may lose its last place
    assert best >= plain * (1 - Fraction(1, 10**9))


def test_rounding_goes_down_and_loses_little() -> None:
    rng = np.random.default_rng(3)
    rows = [(1e9 + 0.3 + 0.1 * k, int(rng.integers(1, 3)), 0.1 + 1e-9 * k) for k in range(200)]
    instance = instance_of(rows, 2)
    jobs = [(Fraction(r), g * Fraction(d) / 2) for r, g, d in rows]
    exact = sum(srpt(jobs), Fraction(0))
    certificate = build(instance, "total_completion_time")
    assert certificate.data["grid_exponent"] < 60
    assert exact - Fraction(1, 10**3) < certificate.value < exact


@pytest.mark.parametrize("seed", range(5))
def test_flow_is_completion_minus_releases(seed: int) -> None:
    instance = random_gangs(np.random.default_rng(seed))
    for plain, flow, constant in (
        ("total_completion_time", "total_flow_time", instance.arrival.sum()),
        ("total_weighted_completion_time", "total_weighted_flow_time", instance.weight @ instance.arrival),
    ):
        certificate = build(instance, flow)
        assert certificate.data["flow_constant"] == f"{int(constant)}/1"
        assert value(instance, plain) - int(constant) == certificate.value
