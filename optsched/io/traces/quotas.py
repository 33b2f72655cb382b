"""Values of jobs in fixed proportions, without chance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def in_proportion(jobs: int, counts: Mapping[T, int]) -> list[T]:
    """Keys of ``counts``, in its order: job k = 0 .. jobs-1 has the one at the place (k + 1/2) / jobs of the counts.

    So that of sum(counts) jobs exactly counts[key] get a key, and of any other number at most one more or less than their
    share. Whole numbers throughout; O(jobs log len(counts)).
    """
    upper, keys = np.cumsum(np.array(list(counts.values()), dtype=np.int64)), list(counts)
    place = (2 * np.arange(jobs, dtype=np.int64) + 1) * upper[-1]  # (k + 1/2) / jobs, times 2 jobs and all counts
    return [keys[i] for i in np.searchsorted(2 * jobs * upper, place, side="right").tolist()]
