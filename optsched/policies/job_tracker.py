"""The job tracker of HadarE: names the copies of every parent job, splits its work over them, adds up what they did.

Copy i = 1..x of parent j has the id M i + j, M the largest number of jobs (so the parent itself is i = 0): every id tells
its parent. Source: the HadarE text (arXiv 2503.10918) as far as its structure is known; splitting and aggregation as in 3.6
of the sheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from optsched.problem.arrays import Floats


@dataclass
class JobTracker:
    """Parents and their copies. ``max_jobs`` M: parents are numbered 0..M-1.

    ``steps``: work of every copy so far, by copy id. ``weights``: of every parent, those of its last aggregation, by copy
    id. ``aggregations``: how often the copies of a parent were aggregated, where there were several. ``most``: of every
    parent, most copies at once.
    """

    max_jobs: int
    steps: dict[int, float] = field(default_factory=dict)
    weights: dict[int, dict[int, float]] = field(default_factory=dict)
    aggregations: dict[int, int] = field(default_factory=dict)
    most: dict[int, int] = field(default_factory=dict)

    def copy_id(self, parent: int, i: int) -> int:
        """The id of copy i >= 1 of a parent. Raises `ValueError` outside these ranges."""
        if not (0 <= parent < self.max_jobs and i >= 1):
            raise ValueError(f"no copy {i} of parent {parent}: parents are 0..{self.max_jobs - 1}, copies 1, 2, ...")
        return self.max_jobs * i + parent

    def parent_of(self, copy_id: int) -> int:
        """The parent of a copy."""
        return copy_id % self.max_jobs

    def number_of(self, copy_id: int) -> int:
        """Which copy of its parent it is: 1, 2, ..."""
        return copy_id // self.max_jobs

    @staticmethod
    def split(left: float, rates: Sequence[float] | Floats, seconds: float) -> Floats:
        """Targets of copies with these rates for ``seconds`` of work: d_h = X_h s, f64[copies], at most ``left`` in all.

        Where the whole round would do more than is left, all targets shrink by one factor: all copies end together.
        """
        targets = np.asarray(rates, dtype=np.float64) * seconds
        total = float(targets.sum())
        return targets * (left / total) if total > left else targets

    def aggregate(self, parent: int, done: Sequence[float]) -> None:
        """Copies 1, 2, ... of a parent did this much in a round: add it up, and keep the weights of their parameters."""
        ids = [self.copy_id(parent, i) for i in range(1, len(done) + 1)]
        total = float(sum(done))
        for copy_id, work in zip(ids, done, strict=True):
            self.steps[copy_id] = self.steps.get(copy_id, 0.0) + work
        self.weights[parent] = {copy_id: work / total for copy_id, work in zip(ids, done, strict=True)}
        self.most[parent] = max(self.most.get(parent, 0), len(done))
        if len(done) > 1:
            self.aggregations[parent] = self.aggregations.get(parent, 0) + 1

    def total(self, parent: int) -> float:
        """Work of all copies of a parent; it ends when that is all it asked for."""
        return sum(work for copy_id, work in self.steps.items() if self.parent_of(copy_id) == parent)
