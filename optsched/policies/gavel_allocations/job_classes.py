"""Jobs that an allocation rule may treat alike, counted together: some sixty classes stand for any number of jobs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from optsched.policies.gavel_allocations import ActiveJobs
from optsched.problem.arrays import Floats, Ints


@dataclass(frozen=True)
class JobClasses:
    """``keys`` of k classes; ``of`` i64[m] the class of every job; ``first`` i64[k] a job of each; ``copies`` f64[k]."""

    keys: list[Hashable]
    of: Ints
    first: Ints
    copies: Floats

    @classmethod
    def alike(cls, jobs: ActiveJobs) -> JobClasses:
        """Same rates, gang and weight; in the order of these. As `numpy.unique` by rows, in a fifth of the time."""
        rows = np.column_stack([jobs.rate, jobs.gang, jobs.weight])
        order = np.lexsort(rows.T[::-1])
        new = np.ones(order.size, dtype=np.bool_)
        new[1:] = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
        of = np.empty_like(order)
        of[order] = np.cumsum(new) - 1
        first = order[new]
        return cls([rows[i].tobytes() for i in first], of, first, np.bincount(of).astype(np.float64))

    @classmethod
    def single(cls, jobs: ActiveJobs) -> JobClasses:
        """Every job a class of its own."""
        every = np.arange(jobs.ids.size)
        return cls(jobs.ids.tolist(), every, every, np.ones(jobs.ids.size))
