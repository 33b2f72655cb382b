"""The fitter: known parameters come back; on the public measurements it agrees with the published digits, or not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import linregress

from optsched.errors import InputError
from optsched.problem.scaling import MeasuredSteps, Scaling
from optsched.speeds.scaling import iteration_seconds
from optsched.speeds.scaling_files import built_in_scalings, read_scalings
from optsched.speeds.scaling_fit import NAMES, JointFit, joint_fit, step_rows

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
