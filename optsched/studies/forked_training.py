"""Does averaging the parameters of copies hurt a model? A small network, trained in one copy and forked, with as many steps.

A perceptron with one hidden layer learns the 8 x 8 digits that come with scikit-learn by stochastic gradient descent with
momentum. In every round the copies begin with the same parameters, do numbers of steps in proportion to the speeds of
their nodes, each on batches of its own, and are consolidated (`optsched.policies.parameter_averaging`), momentum included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from sklearn.datasets import load_digits

from optsched.policies.parameter_averaging import consolidated
from optsched.problem.arrays import Floats, Ints

HIDDEN, CLASSES, BATCH = 32, 10, 32
RATE, MOMENTUM = 0.1, 0.8
HELD_BACK = 449  # of 1797 images: a quarter, for the test


@dataclass(frozen=True)
class Training:
    """``accuracy`` f64[rounds]: of the consolidated model on the images held back; ``steps`` of all copies together.

    ``spread`` f64[rounds]: how far the copies were apart before they were averaged: the greatest distance of a copy from the
    average, relative to the norm of the average.
    """

    accuracy: Floats
    spread: Floats
    steps: int
    parameters: list[Floats]

    @property
    def final(self) -> float:
        """Accuracy after the last round."""
        return float(self.accuracy[-1])


@cache
def _digits() -> tuple[Floats, Ints]:
    digits = load_digits()
    return np.asarray(digits.data, dtype=np.float64) / 16.0, np.asarray(digits.target, dtype=np.int64)


def shared_steps(speeds: Sequence[float], steps: int) -> Ints:
    """``steps`` divided in proportion to ``speeds``, whole numbers that add up to it (largest remainders first)."""
    exact = np.asarray(speeds, dtype=np.float64) * steps / float(np.sum(speeds))
    whole = np.floor(exact).astype(np.int64)
    whole[np.argsort(whole - exact, kind="stable")[: steps - int(whole.sum())]] += 1
    return whole


def train(speeds: Sequence[float] = (1.0,), *, rounds: int = 30, steps: int = 100, seed: int = 0) -> Training:
    """Train in ``len(speeds)`` copies: ``rounds`` rounds of ``steps`` steps in all copies together.

    The split of the images and the first parameters depend on ``seed`` alone, so that runs with other speeds can be
    compared. About 0.1 ms a step.
    """
    images, labels = _digits()
    order = np.random.default_rng([seed, 0]).permutation(labels.size)
    test, learn = order[:HELD_BACK], order[HELD_BACK:]
    parameters = _initial(np.random.default_rng([seed, 1]), images.shape[1])
    state = [*parameters, *(np.zeros_like(theta) for theta in parameters)]  # and the momentum of each
    draws = [np.random.default_rng([seed, 2, h]) for h in range(len(speeds))]
    done = shared_steps(speeds, steps)
    accuracy, spread = np.zeros(rounds), np.zeros(rounds)
    for k in range(rounds):
        copies = [
            _descend(state, images[learn], labels[learn], count, draw)
            for count, draw in zip(done.tolist(), draws, strict=True)
        ]
        state = consolidated(copies, done.tolist())
        accuracy[k] = float(np.mean(_scores(state, images[test]).argmax(axis=1) == labels[test]))
        spread[k] = max(_distance(copy, state) for copy in copies) / _distance(state, None)
    return Training(accuracy, spread, rounds * steps, state[:4])


def _initial(rng: np.random.Generator, inputs: int) -> list[Floats]:
    first = rng.standard_normal((inputs, HIDDEN)) * np.sqrt(2 / inputs)
    second = rng.standard_normal((HIDDEN, CLASSES)) * np.sqrt(2 / HIDDEN)
    return [first, np.zeros(HIDDEN), second, np.zeros(CLASSES)]


def _scores(state: Sequence[Floats], images: Floats) -> Floats:
    return np.maximum(images @ state[0] + state[1], 0.0) @ state[2] + state[3]


def _descend(
    state: Sequence[Floats], images: Floats, labels: Ints, steps: int, draw: np.random.Generator
) -> list[Floats]:
    """``steps`` local steps of one copy from ``state`` (four arrays of parameters, then their momentum)."""
    mine = [array.copy() for array in state]
    for batch in draw.integers(0, labels.size, (steps, BATCH)):
        x = images[batch]
        hidden = np.maximum(x @ mine[0] + mine[1], 0.0)
        scores = hidden @ mine[2] + mine[3]
        error = np.exp(scores - scores.max(axis=1, keepdims=True))
        error /= error.sum(axis=1, keepdims=True)
        error[np.arange(BATCH), labels[batch]] -= 1.0
        error /= BATCH
        back = (error @ mine[2].T) * (hidden > 0)
        for k, gradient in enumerate((x.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0))):
            mine[4 + k] = MOMENTUM * mine[4 + k] + gradient
            mine[k] -= RATE * mine[4 + k]
    return mine


def _distance(state: Sequence[Floats], other: Sequence[Floats] | None) -> float:
    apart = [state[k] if other is None else state[k] - other[k] for k in range(4)]
    return float(np.sqrt(sum(float(np.sum(each**2)) for each in apart)))
