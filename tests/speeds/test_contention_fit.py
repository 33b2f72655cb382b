"""The estimators of a, b and eta: synthetic measurements with known answers, and the published table."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.problem.contention import Contention
from optsched.speeds.contention_fit import ContentionFit, fit, fit_alone, fit_anchored, fit_by_slope
from optsched.speeds.contention_measurements import (
    MIB_100,
    OSU_100_MIB,
    OSU_100_MIB_OTHER_STATE,
    PUBLISHED_FITS,
    TRANSFERS,
)
from optsched.speeds.link_contention import transfer_seconds

TRUE = Contention(0.9e-9, 0.3e-9, 5e-3)
K, M = (column.ravel().tolist() for column in np.meshgrid(range(1, 6), [1e6, 2e7, 1e8]))
EXACT = [float(transfer_seconds(TRUE, k, size)) for k, size in zip(K, M, strict=True)]


def numbers(found: ContentionFit) -> tuple[float, float, float]:
    return found.latency, found.seconds_per_byte, found.penalty


# --- synthetic --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"bounded": True}, {"relative": True}, {"latency": 5e-3}])
def test_exact_measurements_give_exact_numbers(options: dict[str, object]) -> None:
    found = fit(K, M, EXACT, **options)
    assert numbers(found) == pytest.approx((5e-3, 0.9e-9, 0.3e-9), rel=1e-9)
    assert np.abs(found.residuals).max() < 1e-12
    assert found.sound
    assert found.contention().theta == pytest.approx(TRUE.theta)
    assert found.growth == pytest.approx(1.2e-9)
    assert found.freedom == len(K) - (2 if "latency" in options else 3)
    assert math.isnan(found.errors[0]) == ("latency" in options)


def test_the_other_two_on_exact_measurements() -> None:
    alone = fit_alone([1e6, 2e7, 1e8], [5e-3 + 0.9e-9 * size for size in (1e6, 2e7, 1e8)])
    assert numbers(alone) == pytest.approx((5e-3, 0.9e-9, 0.0))
    seconds = [float(transfer_seconds(TRUE, k, 1e8)) for k in range(1, 9)]
    slope = fit_by_slope(range(1, 9), seconds, 1e8, seconds_per_byte=alone.seconds_per_byte, latency=alone.latency)
    assert numbers(slope) == pytest.approx((5e-3, 0.9e-9, 0.3e-9))
    assert np.abs(slope.residuals).max() < 1e-12
    # Anchored at T(1), the latency counts as bytes: b is 5e-3 / 1e8 too large, eta as much too small.
    anchored = fit_anchored(range(1, 9), seconds, 1e8)
    assert numbers(anchored) == pytest.approx((0, 0.95e-9, 0.25e-9))
    assert np.abs(anchored.residuals).max() < 1e-12


def test_noise_stays_within_its_own_confidence() -> None:
    """Of 300 noisy experiments 95 % of the intervals should hold the truth: binomial, standard deviation 1.3 points."""
    rng = np.random.default_rng(5)
    held = np.zeros(3)
    for _ in range(300):
        found = fit(K, M, EXACT + rng.normal(0, 1e-3, len(EXACT)))
        for position, (name, true) in enumerate(
            zip(("latency", "seconds_per_byte", "penalty"), (5e-3, 0.9e-9, 0.3e-9), strict=True)
        ):
            low, high = found.interval(name)
            held[position] += low <= true <= high
    assert (held / 300 > 0.91).all(), held / 300
    assert (held / 300 < 0.985).all(), held / 300


def test_standard_errors_are_those_of_the_normal_equations() -> None:
    seconds = np.array(EXACT) * np.linspace(0.9, 1.1, len(EXACT))
    found = fit(K, M, seconds)
    k, size = np.array(K), np.array(M)
    X = np.column_stack([np.ones(len(k)), k * size, (k - 1) * size])  # a, b, eta as they stand in the model
    inverse = np.linalg.pinv(X.T @ X, rcond=1e-30)
    assert numbers(found) == pytest.approx(inverse @ X.T @ seconds, rel=1e-4)
    variance = np.sum(found.residuals**2) / (len(k) - 3)
    assert found.errors == pytest.approx(np.sqrt(variance * np.diag(inverse)), rel=1e-4)
    assert found.residuals == pytest.approx(seconds - X @ numbers(found))


def test_bounds_hold_where_the_free_fit_breaks_them() -> None:
    low = [max(1e-9 * k * size - 3e-4, 1e-9) for k, size in zip(K, M, strict=True)]
    free, bounded = fit(K, M, low), fit(K, M, low, bounded=True)
    assert free.latency < 0
    assert not free.sound
    with pytest.raises(InputError, match=r"contention\.latency"):
        free.contention()
    assert bounded.latency == 0
    assert math.isnan(bounded.errors[0])
    assert all(math.isnan(end) for end in bounded.interval("latency"))
    assert bounded.errors[1] > 0
    assert bounded.contention().seconds_per_byte == pytest.approx(1e-9, rel=0.01)
    assert np.sum(free.residuals**2) < np.sum(bounded.residuals**2)


def test_eta_below_zero_is_told_not_repaired() -> None:
    seconds = [float(transfer_seconds(Contention(2e-9, -0.7e-9, 1e-3), k, size)) for k, size in zip(K, M, strict=True)]
    for bounded in (False, True):
        found = fit(K, M, seconds, bounded=bounded)
        assert found.penalty == pytest.approx(-0.7e-9)
        assert not found.sound
        with pytest.raises(InputError, match="eta >= 0"):
            found.contention().require_penalty("a theorem")


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
    assert by_slope.growth * 1e9 == pytest.approx(
        slope, abs=0.0005 + HALF_MS * 16 / 42
    )  # sum |k - 4.5| / sum (k - 4.5)^2
    anchored = fit_anchored(TRANSFERS, OSU_100_MIB[nodes], MIB_100)
    assert anchored.seconds_per_byte * 1e9 == pytest.approx(b, abs=0.005 + HALF_MS)
    digit = 0.05 if nodes == 8 else 0.005
    assert anchored.penalty * 1e9 == pytest.approx(eta, abs=digit + HALF_MS * (0.2 + 1.2))  # 28 / 140, and T(1)
    assert not anchored.sound
    assert anchored.contention().penalty < 0  # a legal model, but not for the theorems


@pytest.mark.parametrize(("nodes", "eta"), [(2, 9.1e-11), (4, -9.5e-10), (8, -1.84e-9)])
def test_the_authors_estimate_with_their_own_b(nodes: int, eta: float) -> None:
    (b, a) = next(
        (f.seconds_per_byte, f.latency) for f in PUBLISHED_FITS if (f.measured_with[:3], f.nodes) == ("OSU", nodes)
    )
    found = fit_by_slope(TRANSFERS, OSU_100_MIB[nodes], MIB_100, seconds_per_byte=b, latency=a)
    assert found.penalty == pytest.approx(eta, abs=0.006e-9)
    assert found.sound == (nodes == 2)


@pytest.mark.parametrize(("table", "positive"), [(OSU_100_MIB, [2]), (OSU_100_MIB_OTHER_STATE, [])])
def test_the_public_data_do_not_bear_out_a_positive_eta(
    table: dict[int, tuple[float, ...]], positive: list[int]
) -> None:
    """Anchored, eta < 0 in all 14 rows; through the origin in all but one, whose interval holds eta = 0, too."""
    assert sorted(table) == list(range(2, 9))
    found = {nodes: fit(TRANSFERS, [MIB_100] * 8, row, latency=0.0) for nodes, row in table.items()}
    for nodes, seconds in table.items():
        assert list(seconds) == sorted(seconds)
        assert len(seconds) == 8
        assert 1.27 < seconds[1] / seconds[0] < 1.57
        assert fit_anchored(TRANSFERS, seconds, MIB_100).penalty < 0
        assert fit(TRANSFERS, [MIB_100] * 8, seconds, latency=0.0, relative=True).penalty < 0
        assert found[nodes].interval("penalty")[0] < 0
    assert [nodes for nodes, each in found.items() if each.sound] == positive


# --- what is invalid ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: fit([1, 2], [1.0], [1.0, 2.0]), "lists of equal length"),
        (lambda: fit([1, 2, 3], [1e8] * 3, [1.0, 2.0, 3.0]), "do not determine 3 numbers.*several message sizes"),
        (lambda: fit([1, 1, 1], [1e6, 1e7, 1e8], [1.0, 2.0, 3.0]), "several numbers of transfers"),
        (lambda: fit([], [], []), "0 measurements"),
        (lambda: fit([1, 2], [1e6, 0], [1.0, 2.0]), r"sizes\[1\] = 0.0: a transfer of 0 bytes"),
        (lambda: fit([1, 1.5], [1e6, 1e7], [1.0, 2.0]), r"transfers\[1\] = 1.5"),
        (lambda: fit([1, 0], [1e6, 1e7], [1.0, 2.0]), r"transfers\[1\] = 0"),
        (lambda: fit([1, 2], [1e6, 1e7], [1.0, float("inf")]), r"seconds\[1\] = inf"),
        (lambda: fit([1, 2], [1e6, 1e7], [1.0, -1.0]), r"seconds\[1\] = -1"),
        (lambda: fit(K, M, EXACT, latency=-1.0), "latency = -1.0"),
        (lambda: fit_alone([1e6], [1.0]), "do not determine 2 numbers"),
        (lambda: fit_anchored([2, 3], [1.0, 2.0], 1e8), "measured alone"),
        (lambda: fit_anchored([1, 1], [1.0, 2.0], 1e8), "do not determine 1 number"),
        (lambda: fit_by_slope([1, 2], [1.0, 2.0], 1e8, seconds_per_byte=0.0), "seconds_per_byte = 0.0"),
        (lambda: fit(K, M, EXACT).interval("eta"), "name = 'eta'"),
        (lambda: fit(K, M, EXACT).interval("penalty", 95), "level = 95"),
    ],
)
def test_what_is_not_legal(call, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_no_degree_of_freedom_no_error() -> None:
    found = fit(K[:2] + K[-1:], [1e6, 2e7, 1e8], [1.0, 2.0, 3.0], latency=None)
    assert found.freedom == 0
    assert all(math.isnan(end) for end in found.interval("penalty"))
