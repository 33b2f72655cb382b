"""Scaling profiles from seconds alone: known ones come back, noise stays within its intervals, what is not told is said."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.problem.scaling import Scaling
from optsched.speeds.least_squares import Fitted
from optsched.speeds.scaling import iteration_seconds
from optsched.speeds.scaling_files import built_in_scalings
from optsched.speeds.scaling_fit import NAMES, fit_scaling

TRUE = [
    Scaling(0.2, 0.05, 0.3, 0.01, 1.4, 0.02),
    Scaling(0.2, 0.05, 0.3, 0.01, 1.4, 0.02, 1.9),
    Scaling(0.02, 0.0007, 0.03, 0.002, 0.1, 0.003, 3.0),
    Scaling(0.1, 0.01, 0.05, 0.0, 0.2, 0.0),
]
PLACES = [(1, 1), (2, 1), (4, 1), (8, 1), (2, 2), (4, 2), (8, 2), (16, 2)]  # GPUs, nodes
ROWS = [(gpus, nodes, gpus * local) for gpus, nodes in PLACES for local in (8, 32, 128)]


def seconds_of(true: Scaling, rows: list[tuple[int, int, int]]) -> np.ndarray:
    return np.array([iteration_seconds(true, -(-batch // gpus), 1, gpus, nodes > 1) for gpus, nodes, batch in rows])


def fitted(rows: list[tuple[int, int, int]], seconds: np.ndarray) -> Fitted[Scaling]:
    gpus, nodes, batches = (list(column) for column in zip(*rows, strict=True))
    return fit_scaling(gpus, batches, seconds.tolist(), nodes=nodes)


@pytest.mark.parametrize("true", [*TRUE, *(built_in_scalings()[name] for name in ("bert", "yolov3"))])
def test_known_parameters_come_back(true: Scaling) -> None:
    found = fitted(ROWS, seconds_of(true, ROWS))
    for name in NAMES:
        assert getattr(found.model, name) == pytest.approx(getattr(true, name), rel=1e-4, abs=1e-9), name
    assert found.largest_error < 1e-7
    assert found.notes == ()


@pytest.mark.parametrize("true", TRUE[1:3])
def test_noise_stays_within_its_intervals(true: Scaling) -> None:
    rng, held = np.random.default_rng(3), dict.fromkeys(NAMES, 0)
    exact = seconds_of(true, ROWS)
    for _ in range(40):
        found = fitted(ROWS, exact * (1 + 0.01 * rng.standard_normal(len(ROWS))))
        for name in NAMES:
            low, high = found.interval(name)
            held[name] += low <= getattr(true, name) <= high
    assert min(held.values()) >= 33, held  # 38 of 40 on average; fewer than 33 once in thousands
    assert sum(held.values()) < 280


def test_overlap_is_not_taken_for_noise() -> None:
    """Of 30 experiments without overlap and 5 % noise, few are read as overlap."""
    rng, exact = np.random.default_rng(4), seconds_of(TRUE[0], ROWS)
    noisy = (fitted(ROWS, exact * (1 + 0.05 * rng.standard_normal(len(ROWS)))) for _ in range(30))
    assert sum(found.model.overlap > 1.3 for found in noisy) <= 5


def test_by_hand() -> None:
    """C = 0.03 + 0.005 m, and 0.05 s for any gang: the formula without overlap, a row a number but one."""
    found = fit_scaling([1, 1, 2, 4], [32, 64, 64, 128], [0.19, 0.35, 0.24, 0.24])
    values = {each.name: each.value for each in found.constants}
    assert values == pytest.approx(
        {"compute": 0.03, "per_sample": 0.005, "within": 0.05, "across": 0.05, "overlap": 1}
        | {"within_growth": 0, "across_growth": 0},
        abs=1e-12,
    )
    assert found.freedom == 0
    assert found.notes == (
        "nothing was measured over several nodes: communication is taken to cost there what it does on one",
    )


def test_what_the_measurements_do_not_tell_is_said() -> None:
    """One local batch: all computing is put on the samples. Only over nodes: the same on one."""
    found = fit_scaling([1, 2, 4], [32, 64, 128], [0.16, 0.26, 0.28], nodes=[1, 2, 2])
    assert (found.model.compute, found.model.per_sample) == (0, pytest.approx(0.005))
    assert found.model.across == found.model.within == pytest.approx(0.1)
    assert found.model.across_growth == found.model.within_growth == pytest.approx(0.01)
    assert [note.partition(":")[0] for note in found.notes] == [
        "nothing was measured on one node",
        "not identified by the measurements, taken to be 0",
    ]
    assert found.notes[1].endswith(": compute")
    alone = fit_scaling([1, 1], [8, 16], [0.1, 0.2])
    assert alone.model.within == alone.model.across == 0
    assert alone.notes == ("no gang was measured: communication is taken to cost nothing",)
    assert math.isnan(alone.interval("per_sample")[0])


@pytest.mark.parametrize(
    ("call", "told"),
    [
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
