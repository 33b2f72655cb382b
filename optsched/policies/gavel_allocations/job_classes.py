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
        """Same rates, gang and weight."""
        rows = np.ascontiguousarray(np.column_stack([jobs.rate, jobs.gang, jobs.weight]))
        _, first, of, copies = np.unique(rows, axis=0, return_index=True, return_inverse=True, return_counts=True)
        return cls([rows[i].tobytes() for i in first], of.reshape(-1), first, copies.astype(np.float64))

    @classmethod
    def single(cls, jobs: ActiveJobs) -> JobClasses:
        """Every job a class of its own."""
        every = np.arange(jobs.ids.size)
        return cls(jobs.ids.tolist(), every, every, np.ones(jobs.ids.size))
