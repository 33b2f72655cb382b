"""Numbers of jobs in fixed proportions, without chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optsched.problem.arrays import Ints


def in_proportion(jobs: int, counts: Sequence[int]) -> Ints:
    """Positions in ``counts``, ascending, i64[jobs]: job k = 0 .. jobs-1 stands at the place (k + 1/2) / jobs of them.

    So that of sum(counts) jobs exactly counts[i] get i, and of any other number at most one more or less than their share.
    Whole numbers throughout; O(jobs log len(counts)).
    """
    upper = np.cumsum(np.asarray(counts, dtype=np.int64))
    place = (2 * np.arange(jobs, dtype=np.int64) + 1) * upper[-1]  # (k + 1/2) / jobs, times 2 jobs and all counts
    found: Ints = np.searchsorted(2 * jobs * upper, place, side="right").astype(np.int64)
    return found
