"""The estimators of a, b and eta: synthetic measurements with known answers, and the published table."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.problem.contention import Contention
from optsched.speeds.contention_fit import fit_anchored, fit_by_slope, fit_contention
from optsched.speeds.contention_measurements import (
    MIB_100,
    OSU_100_MIB,
    OSU_100_MIB_OTHER_STATE,
    PUBLISHED_FITS,
    TRANSFERS,
)
from optsched.speeds.least_squares import Fitted
from optsched.speeds.link_contention import transfer_seconds

TRUE = Contention(0.9e-9, 0.3e-9, 5e-3)
K, M = (column.ravel().tolist() for column in np.meshgrid(range(1, 6), [1e6, 2e7, 1e8]))
EXACT = [float(transfer_seconds(TRUE, k, size)) for k, size in zip(K, M, strict=True)]


def numbers(found: Fitted[Contention]) -> tuple[float, float, float]:
    return found.model.latency, found.model.seconds_per_byte, found.model.penalty


def errors(found: Fitted[Contention]) -> list[float]:
    return [each.error for each in found.constants]


# --- synthetic --------------------------------------------------------------------------------------------------------


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


# NCCL on 10 GbE, two nodes, with the printed latency (`contention_measurements`); and the older 1 GbE
@pytest.mark.parametrize(
    "published",
    [Contention(0.856e-9, 0.235e-9), Contention(0.856e-9, 0.235e-9, 5.663e-4), Contention(7.8125e-9, 0.7e-9)],
)
def test_the_published_constants_come_back(published: Contention) -> None:
    """Exactly without noise; of 200 experiments with 3 % noise the intervals hold them as often as they say."""
    exact = np.array([float(transfer_seconds(published, k, size)) for k, size in zip(K, M, strict=True)])
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
    seconds = [float(transfer_seconds(Contention(2e-9, -0.7e-9, 1e-3), k, size)) for k, size in zip(K, M, strict=True)]
    found = fit_contention(M, K, seconds)
    assert found.model.penalty == pytest.approx(-0.7e-9)
    assert found.notes[0].startswith("eta < 0")
    with pytest.raises(InputError, match="eta >= 0"):
        found.model.require_penalty("a theorem")


def test_the_other_two_on_exact_measurements() -> None:
    seconds = [float(transfer_seconds(TRUE, k, 1e8)) for k in range(1, 9)]
    slope = fit_by_slope(range(1, 9), seconds, 1e8, seconds_per_byte=0.9e-9, latency=5e-3)
    assert numbers(slope) == pytest.approx((5e-3, 0.9e-9, 0.3e-9))
    assert np.abs(slope.residuals).max() < 1e-12
    # Anchored at T(1), the latency counts as bytes: b is 5e-3 / 1e8 too large, eta as much too small.
    anchored = fit_anchored(range(1, 9), seconds, 1e8)
    assert numbers(anchored) == pytest.approx((0, 0.95e-9, 0.25e-9))
    assert np.abs(anchored.residuals).max() < 1e-12


# --- published --------------------------------------------------------------------------------------------------------

# nodes: slope of T over k / M as printed (1e-9 s/B, 3 decimals); b (2 decimals) and eta (2 digits) anchored at k = 1
PRINTED = {
    2: (1.150, 1.70, -0.72),
    3: (1.205, 1.87, -0.74),
    4: (1.457, 2.08, -0.74),
    5: (1.499, 2.33, -0.95),
    6: (1.504, 2.33, -0.93),
    7: (1.643, 2.40, -0.88),
    8: (1.620, 2.81, -1.4),
}
HALF_MS = 0.5e-3 / MIB_100 * 1e9  # what rounding the table to 1 ms moves one T / M by, 1e-9 s/B


@pytest.mark.parametrize("nodes", OSU_100_MIB)
def test_the_printed_columns(nodes: int) -> None:
    """The table is printed to 1 ms, the columns come from unrounded data: equal up to both roundings, no further."""
    slope, b, eta = PRINTED[nodes]
    by_slope = fit_by_slope(TRANSFERS, OSU_100_MIB[nodes], MIB_100, seconds_per_byte=1e-9)
    assert (by_slope.model.seconds_per_byte + by_slope.model.penalty) * 1e9 == pytest.approx(
        slope, abs=0.0005 + HALF_MS * 16 / 42
    )  # sum |k - 4.5| / sum (k - 4.5)^2
    anchored = fit_anchored(TRANSFERS, OSU_100_MIB[nodes], MIB_100)
    assert anchored.model.seconds_per_byte * 1e9 == pytest.approx(b, abs=0.005 + HALF_MS)
    digit = 0.05 if nodes == 8 else 0.005
    assert anchored.model.penalty * 1e9 == pytest.approx(eta, abs=digit + HALF_MS * (0.2 + 1.2))  # 28 / 140, and T(1)
    assert anchored.notes[0].startswith("eta < 0")  # a legal model, but not for the theorems


@pytest.mark.parametrize(("nodes", "eta"), [(2, 9.1e-11), (4, -9.5e-10), (8, -1.84e-9)])
def test_the_authors_estimate_with_their_own_b(nodes: int, eta: float) -> None:
    (b, a) = next(
        (f.seconds_per_byte, f.latency) for f in PUBLISHED_FITS if (f.measured_with[:3], f.nodes) == ("OSU", nodes)
    )
    found = fit_by_slope(TRANSFERS, OSU_100_MIB[nodes], MIB_100, seconds_per_byte=b, latency=a)
    assert found.model.penalty == pytest.approx(eta, abs=0.006e-9)


@pytest.mark.parametrize("table", [OSU_100_MIB, OSU_100_MIB_OTHER_STATE])
def test_the_public_data_do_not_bear_out_a_positive_eta(table: dict[int, tuple[float, ...]]) -> None:
    """Anchored, and through the origin: eta < 0 in all 14 rows."""
    assert sorted(table) == list(range(2, 9))
    for seconds in table.values():
        assert list(seconds) == sorted(seconds)
        assert len(seconds) == 8
        assert 1.27 < seconds[1] / seconds[0] < 1.57
        assert fit_anchored(TRANSFERS, seconds, MIB_100).model.penalty < 0
        assert fit_contention([MIB_100] * 8, TRANSFERS, seconds, latency=0.0).model.penalty < 0


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
        (lambda: fit_anchored([2, 3], [1.0, 2.0], 1e8), "measured alone"),
        (lambda: fit_anchored([1, 1], [1.0, 2.0], 1e8), "do not determine 1 number"),
        (lambda: fit_by_slope([1, 2], [1.0, 2.0], 1e8, seconds_per_byte=0.0), "seconds_per_byte = 0.0"),
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
