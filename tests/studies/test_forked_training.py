"""Averaging the copies of a small network does not hurt its accuracy."""

from __future__ import annotations

import numpy as np
import pytest

from optsched.studies.fork_nodes import NODE_SPEEDS
from optsched.studies.forked_training import Training, shared_steps, train

SEEDS = range(3)
# Three test sets of 449 images at 97 %: one standard error of the mean accuracy is 0.5 points; both trainings see the same
# images, and over 8 seeds the difference was -0.2 points with a standard deviation of 0.5.
MARGIN = 0.015


def accuracies(*speeds: float) -> list[Training]:
    return [train(speeds, rounds=20, steps=80, seed=seed) for seed in SEEDS]


@pytest.fixture(scope="module")
def alone() -> list[Training]:
    return accuracies(1.0)


def test_five_unequal_copies_learn_as_much_as_one_with_all_the_steps(alone: list[Training]) -> None:
    forked = accuracies(*NODE_SPEEDS)
    assert {each.steps for each in (*alone, *forked)} == {1600}
    one, five = (float(np.mean([each.final for each in runs])) for runs in (alone, forked))
    assert one > 0.94
    assert five > one - MARGIN
    assert all(each.spread.min() > 0 for each in forked)  # the copies were apart, or there was nothing to average
    # what the slowest node would have learnt by itself is much less
    slowest = [train(rounds=20, steps=int(shared_steps(NODE_SPEEDS, 80)[-1]), seed=seed).final for seed in SEEDS]
    assert five > float(np.mean(slowest)) + 3 * MARGIN


def test_one_copy_is_plain_training(alone: list[Training]) -> None:
    again = train((0.4,), rounds=20, steps=80, seed=0)
    assert again.final == alone[0].final
    assert all(np.array_equal(a, b) for a, b in zip(again.parameters, alone[0].parameters, strict=True))
    assert alone[0].spread.max() == 0
    longer = train(rounds=10, steps=160, seed=0)  # consolidating one copy more or less often changes nothing
    assert all(np.array_equal(a, b) for a, b in zip(longer.parameters, alone[0].parameters, strict=True))


@pytest.mark.parametrize(("speeds", "steps"), [((1, 1, 1), 100), (NODE_SPEEDS, 100), ((0.3, 0.7), 1), ((5,), 7)])
def test_steps_are_shared_out_in_whole_numbers(speeds: tuple[float, ...], steps: int) -> None:
    shared = shared_steps(speeds, steps)
    assert shared.sum() == steps
    assert np.abs(shared - np.array(speeds) * steps / sum(speeds)).max() < 1
