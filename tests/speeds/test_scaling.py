"""The formula of iteration times by hand, at its ends, and against exact powers."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from optsched.problem.scaling import Scaling
from optsched.speeds.scaling import iteration_seconds
from optsched.speeds.scaling_files import APPLICATIONS, built_in_scalings

PARTS = Scaling(0.5, 0.25, 1.0, 0.125, 2.0, 0.5)


def network_seconds(gang: int, spans: bool) -> float:
    """N of `PARTS`: without overlap what an iteration takes beyond the computing of 2 samples."""
    return iteration_seconds(PARTS, 2, 1, gang, spans) - 1.0


def test_growth_counts_replicas_beyond_two() -> None:
    assert [network_seconds(r, False) for r in (1, 2, 3, 4)] == [0.0, 1.0, 1.125, 1.25]
    assert [network_seconds(r, True) for r in (1, 2, 3, 4)] == [0.0, 2.0, 2.5, 3.0]


def test_gamma_1_is_the_sum_and_gamma_10_nearly_the_larger() -> None:
    for size, spans in ((1, False), (4, True), (16, True)):
        computing, network = 0.5 + 0.25 * size, network_seconds(4, spans)
        assert iteration_seconds(PARTS, size, 1, 4, spans) == pytest.approx(computing + network)
        assert iteration_seconds(PARTS, size, 3, 4, spans) == pytest.approx(3 * computing + network)
        ten = iteration_seconds(dataclasses.replace(PARTS, overlap=10.0), size, 1, 4, spans)
        assert max(computing, network) <= ten <= max(computing, network) * 2**0.1


@given(st.integers(1, 40), st.integers(1, 6), st.integers(1, 9), st.booleans(), st.integers(1, 4))
def test_for_whole_gammas_it_is_the_root_of_an_exact_sum(
    m: int, steps: int, gang: int, spans: bool, gamma: int
) -> None:
    computing = Fraction(1, 2) + Fraction(m, 4)
    network = Fraction(network_seconds(gang, spans))
    last = iteration_seconds(dataclasses.replace(PARTS, overlap=float(gamma)), m, steps, gang, spans) - (
        steps - 1
    ) * float(computing)
    assert last**gamma == pytest.approx(float(computing**gamma + network**gamma), rel=1e-9)


def test_without_a_constant_and_a_network_sub_steps_cost_nothing() -> None:
    free = Scaling(0.0, 0.25)
    whole = free.sub_batches(48, 2)
    assert [each.size for each in whole] == [24, 12, 6, 3, 1]
    assert {iteration_seconds(free, each.size, each.steps, 2, True) for each in whole} == {6.0}
    dear = [iteration_seconds(PARTS, each.size, each.steps, 2, True) for each in whole]
    assert dear == sorted(dear)


def test_what_comes_with_the_package() -> None:
    scalings = built_in_scalings()
    assert sorted(scalings) == sorted(APPLICATIONS) == ["bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"]
    assert [batch for batch, _ in scalings["imagenet"].iterations] == [200 * 2**k for k in range(7)]
    for name, each in APPLICATIONS.items():
        rows = dict(scalings[name].iterations)
        assert list(rows) == [each.initial * 2**k for k in range(len(rows))]
        assert list(rows)[-1] == each.largest
        samples = {batch * count for batch, count in rows.items()}
        assert samples == {each.epochs * each.iterations * each.initial}
    # BERT on one T4: 0.1719 + 0.05861 x 12, and over two nodes of four with 1.386 + 6 x 0.00943
    assert iteration_seconds(scalings["bert"], 12, 1, 1, False) == pytest.approx(0.87522)
    both = (0.87522**1.9 + 1.44258**1.9) ** (1 / 1.9)
    assert iteration_seconds(scalings["bert"], 12, 1, 8, True) == pytest.approx(both, rel=1e-9)
