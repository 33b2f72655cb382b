"""The data of Hadar's schedule-indexed packing LP: capacities of resources, and every job's schedules with their utility.

A resource q is what is sold: one type of device of one machine in one round (or of the whole cluster in one round). Job
j takes at most one of its schedules s in S_j, which is worth u_js and holds w_q^js devices of q. Nothing here knows
where the schedules come from; `RoundProblem.packing` enumerates those of small clusters. The LP over these data is
`hadar_primal`, its dual `hadar_dual`.

Reference: Sultana et al., Hadar, IPDPS 2024, arXiv 2503.10918; Bao, Peng, Wu and Li, Online job scheduling in distributed
machine learning clusters (OASiS), INFOCOM 2018, arXiv 1801.00936, for the construction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from optsched.errors import InputError, check_legal
from optsched.problem.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class JobSchedule:
    """One way to run a job: ``utility`` u_js, and ``demand`` = ((q, devices w_q^js), ...) with increasing q, devices >= 1.

    ``finish`` is the round after the last one used, counted from the beginning (None where rounds mean nothing).
    """

    utility: float
    demand: tuple[tuple[int, int], ...]
    finish: int | None = None


@dataclass(frozen=True, eq=False)
class Packing:
    """``capacity`` c_q devices of each of Q resources; ``schedules[j]`` = S_j, which may be empty.

    Raises `InputError` for a utility that is negative or not finite, and for a demand that no resource can meet.
    """

    capacity: tuple[int, ...]
    schedules: tuple[tuple[JobSchedule, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "capacity", tuple(int(c) for c in self.capacity))
        object.__setattr__(self, "schedules", tuple(tuple(of_job) for of_job in self.schedules))
        if any(c < 0 for c in self.capacity):
            raise InputError("invalid", field="capacity", value=min(self.capacity), legal="integers >= 0")
        for j, of_job in enumerate(self.schedules):
            for one in of_job:
                check_legal(0 <= one.utility < math.inf, "utility", one.utility, "finite and >= 0", row=j)
                _check_demand(j, one.demand, self.capacity)

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

    def value(self, chosen: Sequence[int | None]) -> float:
        """Total utility when job j runs by schedule ``chosen[j]`` of S_j (None: not at all).

        Raises `InputError` when a resource is held beyond its capacity.
        """
        held = [0] * self.resources
        total = 0.0
        for of_job, s in zip(self.schedules, chosen, strict=True):
            if s is None:
                continue
            total += of_job[s].utility
            for q, w in of_job[s].demand:
                held[q] += w
                if held[q] > self.capacity[q]:
                    raise InputError("held beyond its capacity", field="resource", value=q)
        return total


def _check_demand(job: int, demand: tuple[tuple[int, int], ...], capacity: tuple[int, ...]) -> None:
    before = -1
    for q, w in demand:
        legal = f"increasing numbers of resources below {len(capacity)}"
        check_legal(before < q < len(capacity), "demand", demand, legal, row=job)
        check_legal(1 <= w <= capacity[q], "demand", w, f"1 to the capacity {capacity[q]} of resource {q}", row=job)
        before = q
