"""The estimate of a, b and eta: synthetic measurements with known answers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.problem.contention import Contention
from optsched.speeds.least_squares import Fitted, fit_contention


def transfer_seconds(link: Contention, k: int, size: float) -> float:
    """T(k) = a + k b M + (k - 1) eta M."""
    return link.latency + (k * link.seconds_per_byte + (k - 1) * link.penalty) * size


TRUE = Contention(0.9e-9, 0.3e-9, 5e-3)
K, M = (column.ravel().tolist() for column in np.meshgrid(range(1, 6), [1e6, 2e7, 1e8]))
EXACT = [transfer_seconds(TRUE, k, size) for k, size in zip(K, M, strict=True)]


def numbers(found: Fitted[Contention]) -> tuple[float, float, float]:
    return found.model.latency, found.model.seconds_per_byte, found.model.penalty


def errors(found: Fitted[Contention]) -> list[float]:
    return [each.error for each in found.constants]


@pytest.mark.parametrize("latency", [None, 5e-3])
def test_exact_measurements_give_exact_numbers(latency: float | None) -> None:
    found = fit_contention(M, K, EXACT, latency=latency)
    assert numbers(found) == pytest.approx((5e-3, 0.9e-9, 0.3e-9), rel=1e-9)
    assert [each.value for each in found.constants] == list(numbers(found))
    assert np.abs(found.residuals).max() < 1e-12
    assert found.model.theta == pytest.approx(TRUE.theta)
    assert math.isnan(errors(found)[0]) == (latency is not None)
    assert found.freedom == len(K) - (3 if latency is None else 2)
    assert found.r_squared == pytest.approx(1)
    assert found.largest_error < 1e-12
    assert "theta = b / (2 (b + eta)) = 0.375" in found.notes[0]


# NCCL on 10 GbE, two nodes, with the printed latency; and the older 1 GbE
@pytest.mark.parametrize(
    "published",
    [Contention(0.856e-9, 0.235e-9), Contention(0.856e-9, 0.235e-9, 5.663e-4), Contention(7.8125e-9, 0.7e-9)],
)
def test_the_published_constants_come_back(published: Contention) -> None:
    """Exactly without noise; of 200 experiments with 3 % noise the intervals hold them as often as they say."""
    exact = np.array([transfer_seconds(published, k, size) for k, size in zip(K, M, strict=True)])
    found = fit_contention(M, K, exact.tolist())
    assert numbers(found) == pytest.approx(
        (published.latency, published.seconds_per_byte, published.penalty), rel=1e-9, abs=1e-15
    )
    rng, held = np.random.default_rng(11), np.zeros(2)
    for _ in range(200):
        noisy = fit_contention(M, K, (exact * (1 + 0.03 * rng.standard_normal(len(exact)))).tolist())
        for position, name in enumerate(("seconds_per_byte", "penalty")):
            low, high = noisy.interval(name)
            held[position] += low <= getattr(published, name) <= high
    assert (held / 200 > 0.89).all(), held / 200  # 95 % +- 4 standard deviations of 1.5 points
    assert (held < 200).all()


def test_small_messages_count_as_much_as_large_ones() -> None:
    """A tenth more seconds of every 1 MB message moves b of 100 MB messages little, but the latency much."""
    slow = [t * 1.1 if size == 1e6 else t for t, size in zip(EXACT, M, strict=True)]
    found = fit_contention(M, K, slow)
    assert found.model.latency > 5.7e-3  # unweighted least squares say 5.5e-3
    assert found.model.seconds_per_byte == pytest.approx(0.9e-9, rel=0.04)


def test_standard_errors_are_those_of_the_normal_equations() -> None:
    seconds = np.array(EXACT) * np.linspace(0.9, 1.1, len(EXACT))
    found = fit_contention(M, K, seconds.tolist())
    k, size = np.array(K), np.array(M)
    X = np.column_stack([np.ones(len(k)), k * size, (k - 1) * size])  # a, b, eta as they stand in the model
    W = X / seconds[:, None]
    inverse = np.linalg.pinv(W.T @ W, rcond=1e-30)
    assert numbers(found) == pytest.approx(inverse @ W.T @ np.ones(len(k)), rel=1e-4)
    assert found.residuals == pytest.approx(seconds - X @ numbers(found))
    variance = np.sum((found.residuals / seconds) ** 2) / (len(k) - 3)
    assert errors(found) == pytest.approx(np.sqrt(variance * np.diag(inverse)), rel=1e-4)
    assert found.r_squared == pytest.approx(1 - np.sum(found.residuals**2) / np.sum((seconds - seconds.mean()) ** 2))


def test_a_latency_below_zero_is_held_at_zero() -> None:
    low = [1e-9 * k * size * (0.8 if size == 1e6 else 1) for k, size in zip(K, M, strict=True)]
    found = fit_contention(M, K, low)
    assert found.model.latency == 0
    assert math.isnan(errors(found)[0])
    assert all(math.isnan(end) for end in found.interval("latency"))
    assert errors(found)[1] > 0


def test_eta_below_zero_is_told_not_repaired() -> None:
    seconds = [transfer_seconds(Contention(2e-9, -0.7e-9, 1e-3), k, size) for k, size in zip(K, M, strict=True)]
    found = fit_contention(M, K, seconds)
    assert found.model.penalty == pytest.approx(-0.7e-9)
    assert found.notes[0].startswith("eta < 0")
    with pytest.raises(InputError, match="eta >= 0"):
        found.model.require_penalty("a theorem")


# --- what is invalid ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: fit_contention([1.0], [1, 2], [1.0, 2.0]), "lists of equal length"),
        (
            lambda: fit_contention([1e8] * 3, [1, 2, 3], [1.0, 2.0, 3.0]),
            "not determine 3 numbers.*several message sizes",
        ),
        (lambda: fit_contention([1e6, 1e7, 1e8], [1, 1, 1], [1.0, 2.0, 3.0]), "several numbers of transfers"),
        (lambda: fit_contention([], [], []), "0 measurements"),
        (lambda: fit_contention([1e6, 0], [1, 2], [1.0, 2.0]), r"sizes\[1\] = 0.0.*a number from 1e-18"),
        (lambda: fit_contention([1e6, 1e7], [1, 1.5], [1.0, 2.0]), r"counts\[1\] = 1.5.*an integer"),
        (lambda: fit_contention([1e6, 1e7], [1, 0], [1.0, 2.0]), r"counts\[1\] = 0"),
        (lambda: fit_contention([1e6, 1e7], [1, 2], [1.0, float("inf")]), r"seconds\[1\] = inf"),
        (lambda: fit_contention([1e6, 1e7], [1, 2], [1.0, float("nan")]), r"seconds\[1\] = nan"),
        (lambda: fit_contention(M, K, EXACT, latency=-1.0), "latency = -1.0"),
        (lambda: fit_contention(M, K, [2 - 1e-8 * size for size in M]), r"contention.seconds_per_byte = 0.0"),
        (lambda: fit_contention(M, K, EXACT).interval("eta"), "name = 'eta'.*latency, seconds_per_byte, penalty"),
        (lambda: fit_contention(M, K, EXACT).interval("penalty", 95), "level = 95"),
    ],
)
def test_what_is_not_legal(call, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_no_degree_of_freedom_no_error() -> None:
    found = fit_contention([1e6, 2e7, 1e8], [1, 1, 5], [1.0, 2.0, 9.0])
    assert found.freedom == 0
    assert all(math.isnan(end) for end in found.interval("penalty"))
    assert found.to_json()["constants"][2]["low"] is None
