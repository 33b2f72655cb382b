"""Slow-downs from measurements: known ones come back, noise stays within its intervals, bounds hold, slips are told."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.speeds.least_squares import fit_interference

ALONE = {"vgg": 0.09, "resnet": 0.062, "lstm": 0.079}
XI = {pair: 1.1 + 0.07 * k for k, pair in enumerate(itertools.product(ALONE, ALONE))}  # not symmetric
CELLS = [*((name, None) for name in ALONE), *XI]
TRUE = [ALONE[one] * (1 if other is None else XI[one, other]) for one, other in CELLS]


def measured(repeats: int, noise: float = 0.0, seed: int = 1) -> tuple[list[str], list[str | None], list[float]]:
    rng = np.random.default_rng(seed)
    seconds = np.repeat(TRUE, repeats)
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
    assert found.notes == ()


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


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: fit_interference(["a"], [None, "a"], [1.0, 2.0]), "lists of equal length"),
        (lambda: fit_interference(["a"], [None], [1.0]), "beside: no two models"),
        (lambda: fit_interference([], [], []), "beside: no two models"),
        (lambda: fit_interference(["a", "a"], [None, "b"], [1.0, 2.0]), "model = 'b': it was not measured alone"),
        (lambda: fit_interference(["a", "a"], [None, "a"], [1.0, -2.0]), r"seconds\[1\] = -2.0"),
        (lambda: fit_interference(["a", "a"], [None, "a"], [1.0, 2.0], ratio=0.5), "interference.ratio = 0.5"),
    ],
)
def test_what_is_not_legal(call, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        call()
    assert "\n" not in str(caught.value)
