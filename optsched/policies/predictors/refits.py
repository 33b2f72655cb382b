"""The runs that a predictor of trees learns from, and when it does."""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

from optsched.problem.arrays import Floats

Row = npt.NDArray[np.float32]
FIRST_FIT = 100  # completions


class Refits:
    """The last ``window`` completed runs; a fit is due after the first 100 (``every``, if fewer), then after ``every``."""

    def __init__(self, every: int, window: int) -> None:
        self._every = every
        self._asked: dict[int, Row] = {}
        self._runs: deque[tuple[Row, float]] = deque(maxlen=window)
        self._fresh = 0  # completions since the last fit
        self._fitted = False

    def submit(self, job: int, row: Row) -> None:
        """What is known of a job when it is submitted."""
        self._asked[job] = row

    def asked(self, job: int) -> Row:
        """The same, until it completes."""
        return self._asked[job]

    def complete(self, job: int, target: float) -> None:
        """It has completed: from such a row this should be predicted."""
        self._runs.append((self._asked.pop(job), target))
        self._fresh += 1

    @property
    def due(self) -> bool:
        """Is it time to fit?"""
        return self._fresh >= (self._every if self._fitted else min(FIRST_FIT, self._every))

    def take(self) -> tuple[Floats, Floats]:
        """f32[runs, features] and targets f64[runs] for a fit, which is now done."""
        self._fitted, self._fresh = True, 0
        return np.stack([row for row, _ in self._runs]), np.array([target for _, target in self._runs])
