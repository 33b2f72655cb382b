"""Fits of scaling profiles: known parameters come back, public measurements give the published digits, gaps are said."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import linregress

from optsched.errors import InputError
from optsched.problem.scaling import MeasuredSteps, Scaling
from optsched.speeds.iteration_times import iteration_seconds
from optsched.speeds.least_squares import Fitted
from optsched.speeds.scaling_files import built_in_scalings, read_scalings
from optsched.speeds.scaling_fit import NAMES, JointFit, fit_scaling, joint_fit, step_rows

TRUE = [
    Scaling(0.2, 0.05, 0.3, 0.01, 1.4, 0.02, 1.9),
    Scaling(0.02, 0.0007, 0.03, 0.002, 0.1, 0.003, 3.0),
    Scaling(0.007, 6e-7, 0.004, 0.001, 0.015, 0.0005, 1.2),
]
PLACEMENTS = (1, 2, 3, 4, 11, 12, 22, 44, 111, 234, 444, 1111, 3434, 4444)


def steps_of(true: Scaling, locals_: tuple[int, ...]) -> MeasuredSteps:
    rows = []
    for name in PLACEMENTS:
        gang, spans = sum(map(int, str(name))), name > 9
        for m in locals_:
            step = iteration_seconds(true, m, 1, gang, spans)
            rows.append((name, float(m), step, step - (true.compute + true.per_sample * m)))
    return MeasuredSteps(tuple(rows))


@pytest.mark.parametrize("true", TRUE)
def test_known_parameters_come_back(true: Scaling) -> None:
    measured = steps_of(true, (32, 1024, 32768) if true.per_sample < 1e-6 else (4, 8, 16, 64))
    found = joint_fit(measured, prior=0.0)
    for name in NAMES:
        assert getattr(found, name) == pytest.approx(getattr(true, name), rel=1e-5), name


def test_the_loss_is_what_it_says_and_its_derivatives_are_those_of_differences() -> None:
    true = TRUE[0]
    rows = step_rows(steps_of(true, (4, 8, 16)))
    fit = JointFit(rows)
    x = np.array([*np.log([0.3, 0.04, 1.0, 0.03, 0.2, 0.02]), 1.7])
    guess = Scaling(0.3, 0.04, 0.2, 0.02, 1.0, 0.03, 1.7)
    steps = [
        iteration_seconds(guess, int(m), 1, int(r), n > 1)
        for n, r, m in zip(rows.nodes, rows.replicas, rows.local, strict=True)
    ]
    in_step = np.log(steps) - np.log(rows.step)
    in_computing = np.log(0.3 + 0.04 * rows.local) - np.log(rows.computing)
    prior = 1e-3 * 0.7**2 + 1e-2 * (0.03**2 + 0.1**2)
    expected = np.sqrt(np.mean(in_step**2)) + np.sqrt(np.mean(in_computing**2)) + prior
    assert fit.loss(x) == pytest.approx(float(expected), rel=1e-12)
    gradient = fit._expanded(x)[1]
    for k, way in enumerate(np.eye(7) * 1e-6):
        assert gradient[k] == pytest.approx((fit.loss(x + way) - fit.loss(x - way)) / 2e-6, rel=1e-5, abs=1e-9)


def test_what_cannot_be_fitted_is_said() -> None:
    with pytest.raises(InputError, match="nothing to fit"):
        joint_fit(MeasuredSteps())
    with pytest.raises(InputError, match="sync_time < step_time"):
        joint_fit(MeasuredSteps(((1, 4.0, 0.5, 0.5),)))


# application: 1-GPU line (alpha, beta, R^2), the parameters of the joint fit that the published ones agree with
LINES = {
    "bert": (0.2130, 0.05784, 0.998),
    "cifar10": (0.01723, 0.000664, 1.000),
    "deepspeech2": (0.0913, 0.02905, 0.984),
    "imagenet": (0.0784, 0.004208, 0.999),
    "ncf": (0.00735, 4.32e-7, 0.987),
    "yolov3": (0.2164, 0.02430, 0.667),
}
AGREE = {
    "bert": NAMES,
    "deepspeech2": NAMES,
    "yolov3": NAMES,
    "imagenet": [name for name in NAMES if not name.startswith("within")],
}


def test_on_the_public_measurements(data_dir: Path) -> None:
    for name, scaling in read_scalings(data_dir / "pollux").items():
        assert scaling.measured is not None
        rows, published = step_rows(scaling.measured), built_in_scalings()[name]
        line = linregress(rows.local[rows.replicas == 1], rows.computing[rows.replicas == 1])
        alpha, beta, r_squared = LINES[name]
        assert (line.intercept, line.slope) == pytest.approx((alpha, beta), rel=1e-3)
        assert line.rvalue**2 == pytest.approx(r_squared, abs=6e-4)
        x = [np.log(max(getattr(published, field), 1e-8)) for field in NAMES[:6]]
        least, theirs = JointFit(rows).minimum()[1], JointFit(rows).loss(np.array([*x, published.overlap]))
        if name in AGREE:
            for field in AGREE[name]:
                assert getattr(scaling, field) == pytest.approx(getattr(published, field), rel=6e-3), (name, field)
            assert least <= theirs <= least * 1.001
        else:  # the published fits of cifar10 and ncf are not at the least loss
            assert theirs > least * (1.1 if name == "cifar10" else 1.005)


# -- from seconds alone ---------------------------------------------------------------------------------------------------


SCALINGS = [
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


@pytest.mark.parametrize("true", [*SCALINGS, *(built_in_scalings()[name] for name in ("bert", "yolov3"))])
def test_known_parameters_come_back_from_seconds_alone(true: Scaling) -> None:
    found = fitted(ROWS, seconds_of(true, ROWS))
    for name in NAMES:
        assert getattr(found.model, name) == pytest.approx(getattr(true, name), rel=1e-4, abs=1e-9), name
    assert found.largest_error < 1e-7
    assert found.notes == ()


@pytest.mark.parametrize("true", SCALINGS[1:3])
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
    rng, exact = np.random.default_rng(4), seconds_of(SCALINGS[0], ROWS)
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
