"""Estimates of contention and interference from measurements: known answers, noise within its intervals, slips are told."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.problem.contention import Contention
from optsched.speeds.least_squares import Fitted, fit_contention, fit_interference
from optsched.speeds.scaling_fit import fit_scaling

# -- slow-downs -----------------------------------------------------------------------------------------------------------


ALONE = {"vgg": 0.09, "resnet": 0.062, "lstm": 0.079}
XI = {pair: 1.1 + 0.07 * k for k, pair in enumerate(itertools.product(ALONE, ALONE))}  # not symmetric
CELLS = [*((name, None) for name in ALONE), *XI]
SECONDS = [ALONE[one] * (1 if other is None else XI[one, other]) for one, other in CELLS]


def measured(repeats: int, noise: float = 0.0, seed: int = 1) -> tuple[list[str], list[str | None], list[float]]:
    rng = np.random.default_rng(seed)
    seconds = np.repeat(SECONDS, repeats)
    models, beside = ([cell[side] for cell in CELLS for _ in range(repeats)] for side in (0, 1))
    return models, beside, (seconds * np.exp(noise * rng.standard_normal(len(seconds)))).tolist()


def test_known_slowdowns_come_back_exactly() -> None:
    found = fit_interference(*measured(2))
    for pair, xi in XI.items():
        assert found.model.slowdown(*pair) == pytest.approx(xi, rel=1e-12)
    assert {each.name for each in found.constants} == {f"{one} beside {other}" for one, other in XI}
    assert found.freedom == len(CELLS)
    assert found.r_squared == pytest.approx(1)
    assert found.largest_error < 1e-12
    assert found.notes[0].startswith("6 of 6 pairs do more work together than in turns")


def test_noise_stays_within_its_intervals() -> None:
    """95 % of 9 x 40 intervals should hold the truth; those of one experiment share what was measured alone."""
    held = 0
    for seed in range(40):
        found = fit_interference(*measured(4, 0.03, seed))
        for (one, other), xi in XI.items():
            low, high = found.interval(f"{one} beside {other}")
            held += low <= xi <= high
    assert 0.90 < held / 360 < 0.99


def test_one_pair_by_hand() -> None:
    """t = geometric mean alone, xi = geometric mean beside over it; the error of ln xi is s sqrt(1/2 + 1/2)."""
    models, beside = ["a", "a", "b", "a", "a"], ["", "", "", "b", "b"]
    found = fit_interference(models, beside, [1.0, 4.0, 3.0, 5.0, 20.0], ratio=3)
    (pair,) = found.constants
    assert pair.value == pytest.approx(10 / 2)
    s = math.sqrt(4 * math.log(2) ** 2 / 2)  # four residuals of ln 2, five rows less three numbers
    assert pair.error == pytest.approx(5 * s)
    assert found.freedom == 2
    assert found.residuals.tolist() == pytest.approx([-1, 2, 0, -5, 10])
    assert found.largest_error == pytest.approx(1)
    assert found.model.slowdown("b", "a") == found.model.slowdown("b", "b") == found.model.ratio == 3
    assert found.notes == ("3 of 4 pairs were not measured: 3 for these",)


def test_faster_together_than_alone_is_one_and_tells_of_the_time_alone() -> None:
    """xi = 1 makes the row beside a second row alone: t = sqrt(4 x 1) = 2."""
    found = fit_interference(["a", "a", "b"], [None, "b", None], [4.0, 1.0, 1.0])
    (pair,) = found.constants
    assert pair.value == 1
    assert math.isnan(pair.error)
    assert found.residuals.tolist() == pytest.approx([2, -1, 0])


# -- a, b and eta, and what no fit takes ----------------------------------------------------------------------------------


def transfer_seconds(link: Contention, k: int, size: float) -> float:
    """T(k) = a + k b M + (k - 1) eta M."""
    return link.latency + (k * link.seconds_per_byte + (k - 1) * link.penalty) * size


CONTENTION = Contention(0.9e-9, 0.3e-9, 5e-3)
K, M = (column.ravel().tolist() for column in np.meshgrid(range(1, 6), [1e6, 2e7, 1e8]))
EXACT = [transfer_seconds(CONTENTION, k, size) for k, size in zip(K, M, strict=True)]


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
    assert found.model.theta == pytest.approx(CONTENTION.theta)
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
        (lambda: fit_interference(["a"], [None, "a"], [1.0, 2.0]), "lists of equal length"),
        (lambda: fit_interference(["a"], [None], [1.0]), "beside: no two models"),
        (lambda: fit_interference([], [], []), "beside: no two models"),
        (lambda: fit_interference(["a", "a"], [None, "b"], [1.0, 2.0]), "model = 'b': it was not measured alone"),
        (lambda: fit_interference(["a", "a"], [None, "a"], [1.0, -2.0]), r"seconds\[1\] = -2.0"),
        (lambda: fit_interference(["a", "a"], [None, "a"], [1.0, 2.0], ratio=0.5), "interference.ratio = 0.5"),
        (lambda: fit_scaling([1], [1, 2], [1.0, 2.0]), "lists of equal length"),
        (lambda: fit_scaling([], [], []), "invalid measurements"),
        (lambda: fit_scaling([1], [1], [1.0], nodes=[2]), "at most as many nodes as GPUs"),
        (lambda: fit_scaling([1.5], [1], [1.0]), r"gpus\[0\] = 1.5.*an integer from 1"),
        (lambda: fit_scaling([1], [1], [0.0]), r"seconds\[0\] = 0.0"),
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
