"""A fitted forest as flat arrays, to ask for one row at a time, and the runs that it learns from.

scikit-learn's ``predict`` costs milliseconds a call, whatever the number of rows: checks, threads, one call a tree. A
predictor is asked for one job at a time; walking the trees costs microseconds and gives the same bits.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.compiled import njit
from optsched.compiled.heap import KERNEL
from optsched.problem.arrays import Floats, Ints

Row = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Trees:
    """Nodes of all trees in one array; ``left`` and ``right`` are node numbers, -1 at a leaf; ``root`` i64[trees]."""

    root: Ints
    left: Ints
    right: Ints
    feature: Ints
    threshold: Floats
    value: Floats

    @classmethod
    def of(cls, forest: Any) -> Trees:
        """The trees of a fitted scikit-learn forest for regression with one target, fitted without missing values."""
        trees = [each.tree_ for each in forest.estimators_]
        root = np.cumsum([0, *(tree.node_count for tree in trees)])[:-1].astype(np.int64)

        def joined(name: str, dtype: Any) -> npt.NDArray[Any]:
            return np.concatenate([getattr(tree, name) for tree in trees]).astype(dtype)

        def children(name: str) -> Ints:
            found = [getattr(tree, name) for tree in trees]
            parts = [np.where(child < 0, -1, child + first) for child, first in zip(found, root, strict=True)]
            return np.concatenate(parts).astype(np.int64)

        return cls(
            root=root,
            left=children("children_left"),
            right=children("children_right"),
            feature=joined("feature", np.int64),
            threshold=joined("threshold", np.float64),
            value=np.concatenate([tree.value[:, 0, 0] for tree in trees]),
        )

    def predict(self, row: Row) -> float:
        """Mean over the trees of the leaf that ``row`` f32[features] falls into; equal to ``forest.predict``.

        Complexity: O(trees x depth).
        """
        return float(_mean(row, self.root, self.left, self.right, self.feature, self.threshold, self.value))


def _walk(row: Row, root: Ints, left: Ints, right: Ints, feature: Ints, threshold: Floats, value: Floats) -> float:
    # Sums in the order of the trees, as scikit-learn does: the same rounding.
    total = 0.0
    for tree in range(root.size):
        node = root[tree]
        while left[node] >= 0:
            node = left[node] if row[feature[node]] <= threshold[node] else right[node]
        total += value[node]
    return total / root.size


_mean = njit(**KERNEL)(_walk)


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
