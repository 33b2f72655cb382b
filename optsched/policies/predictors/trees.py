"""A fitted forest as flat arrays, to ask for one row at a time.

scikit-learn's ``predict`` costs milliseconds a call, whatever the number of rows: checks, threads, one call a tree. A
predictor is asked for one job at a time; walking the trees costs microseconds and gives the same bits.
"""

from __future__ import annotations

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
