"""The data of Hadar's schedule-indexed packing LP: capacities of resources, and every job's schedules with their utility.

A resource q is what is sold: one type of device of one machine in one round (or of the whole cluster in one round). Job
j takes at most one of its schedules s in S_j, which is worth u_js and holds w_q^js devices of q. Nothing here knows
where the schedules come from; `RoundProblem.packing` enumerates those of small clusters. The LP over these data is
`hadar_primal`, its dual `hadar_dual`.

Reference: Sultana et al., Hadar, IPDPS 2024, arXiv 2503.10918; Bao, Peng, Wu and Li, Online job scheduling in distributed
machine learning clusters (OASiS), INFOCOM 2018, arXiv 1801.00936, for the construction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from optsched.errors import InputError
from optsched.problem.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class JobSchedule:
    """One way to run a job: ``utility`` u_js, ``demand`` = ((q, devices w_q^js), ...) with increasing q, devices >= 1."""

    utility: float
    demand: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Packing:
    """``capacity`` c_q devices of each of Q resources; ``schedules[j]`` = S_j, which may be empty."""

    capacity: tuple[int, ...]
    schedules: tuple[tuple[JobSchedule, ...], ...]

    @property
    def jobs(self) -> int:
        """Number of jobs n."""
        return len(self.schedules)

    @property
    def resources(self) -> int:
        """Number of resources Q."""
        return len(self.capacity)

    @cached_property
    def flat(self) -> tuple[JobSchedule, ...]:
        """All S schedules, the jobs in order."""
        return tuple(one for of_job in self.schedules for one in of_job)

    @cached_property
    def job(self) -> Ints:
        """Job of every schedule, i64[S]."""
        return np.repeat(np.arange(self.jobs), [len(of_job) for of_job in self.schedules])

    @cached_property
    def utility(self) -> Floats:
        """u of every schedule, f64[S]."""
        return np.array([one.utility for one in self.flat], dtype=np.float64)

    @cached_property
    def demand(self) -> sp.csc_array:
        """w as a sparse matrix, f64[Q, S] csc."""
        rows = [q for one in self.flat for q, _ in one.demand]
        held = [float(w) for one in self.flat for _, w in one.demand]
        start = np.cumsum([0, *(len(one.demand) for one in self.flat)])
        return sp.csc_array((held, rows, start), shape=(self.resources, len(self.flat)))

    @cached_property
    def of_job(self) -> sp.csr_array:
        """1 where a schedule is of a job, f64[n, S] csr."""
        columns = np.arange(self.job.size)
        return sp.csr_array((np.ones(columns.size), (self.job, columns)), shape=(self.jobs, columns.size))

    def require_schedules(self) -> None:
        """`InputError` when no job has a schedule: there is nothing to choose, and the optimum is 0."""
        if not self.flat:
            legal = "more or longer rounds, or a device on which a job runs"
            raise InputError("no job has a schedule: nothing can be packed", field="schedules", legal=legal)
