"""Least time in which divisible jobs with several modes are done: the LP behind Hadar's and HadarE's makespan bounds.

Sets: jobs j; modes m of a job (GPU types, allocations, nodes); resources r (GPUs of a type, nodes).
Data: v_j work (iterations); rate_m iterations/s of a mode; use_mr units of resource r held in it; c_r units of resource r.
Variables: time[m] >= 0 seconds spent in a mode; T the total time.

    min  T                                                                                        (0)
    s.t. sum_{m of j} rate_m time[m] >= v_j                       every job j                     (1)  done
         sum_m use_mr time[m] <= c_r T                            every resource r                (2)  capacity
         sum_{m of j} time[m] <= T                                every job j (``one_mode``)      (3)  alone

With ``one_mode`` a job is in one mode at a time; without it its modes may overlap (copies of a forked job).

Optimum: a lower bound on the makespan of every schedule, preempted or not, whose allocations are among the modes
(add up the time each job spends in each mode). Attained when all resources are single nodes (`hadar_e_forking`).
Dual: max sum_j v_j p_j with p_j rate_m <= q_j + sum_r use_mr k_r for all modes, sum_j q_j + sum_r c_r k_r <= 1, q = 0
without ``one_mode``.
Size: columns M + 1, rows 2 n + R, nonzeros those of the uses and 2 M.
Reference: Lawler and Labetoulle, J. ACM 25 (1978), 612-619 (unrelated machines).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp
from pyomo.core.expr import LinearExpression, MonomialTermExpression

from optsched.errors import InfeasibleError, InputError
from optsched.models.fast_building import collector_paused, terms
from optsched.problem.arrays import Floats

NAME = "makespan-modes"


@dataclass(frozen=True, slots=True)
class WorkMode:
    """A way to run: ``rate`` iterations/s > 0 while ``use`` = ((resource, units), ...) is held."""

    rate: float
    use: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class ModeJobs:
    """Divisible jobs with modes.

    ``work`` v_j > 0 iterations; ``modes[j]``; ``capacity`` c_r units; ``one_mode``: whether a job is in one mode at a time.
    Raises `InputError` without jobs, `InfeasibleError` for a job without modes.
    """

    work: tuple[float, ...]
    modes: tuple[tuple[WorkMode, ...], ...]
    capacity: tuple[int, ...]
    one_mode: bool = True

    def __post_init__(self) -> None:
        if not self.work:
            legal = "one or more jobs, and the modes of each"
            raise InputError("invalid", field="work", value=f"{len(self.work)} numbers", legal=legal)
        for j, modes in enumerate(self.modes):
            if not modes:
                raise InfeasibleError(f"job {j} runs in no mode: no makespan is long enough")

    @property
    def n(self) -> int:
        """Number of jobs."""
        return len(self.work)

    @cached_property
    def flat(self) -> tuple[WorkMode, ...]:
        """All M modes, grouped by job in order."""
        return tuple(mode for modes in self.modes for mode in modes)

    @cached_property
    def offset(self) -> tuple[int, ...]:
        """First mode of every job, and the number of modes: n + 1 integers."""
        return tuple(np.cumsum([0, *(len(modes) for modes in self.modes)]).tolist())

    @cached_property
    def use(self) -> sp.csr_array:
        """Units held, f64[R, M] csr."""
        rows = [r for mode in self.flat for r, _ in mode.use]
        held = [float(u) for mode in self.flat for _, u in mode.use]
        start = np.cumsum([0, *(len(mode.use) for mode in self.flat)])
        return sp.csc_array((held, rows, start), shape=(len(self.capacity), len(self.flat))).tocsr()


@collector_paused
def build(jobs: ModeJobs) -> pyo.ConcreteModel:
    """Build the Pyomo model with ``time[m]``, ``T``, ``done[j]``, ``capacity[r]`` and ``alone[j]``.

    Parameters
    ----------
    jobs
        Jobs, modes and capacities.
    """
    model = pyo.ConcreteModel(NAME)
    model.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    model.time = pyo.Var(range(len(jobs.flat)), domain=pyo.NonNegativeReals)
    model.T = pyo.Var(domain=pyo.NonNegativeReals)
    time, own = list(model.time.values()), jobs.offset
    # part of its job that a mode does in a second; it scales the rows of (1) alike
    part = np.array([mode.rate for mode in jobs.flat]) / np.repeat(jobs.work, np.diff(own))
    rated, use = terms(part, time), jobs.use

    # (0)
    model.objective = pyo.Objective(expr=model.T)
    # (1), divided by v_j
    every = range(jobs.n)
    model.done = pyo.Constraint(every, expr={j: LinearExpression(rated[own[j] : own[j + 1]]) >= 1 for j in every})
    # (2)
    used = np.flatnonzero(np.diff(use.indptr)).tolist()
    rows = {}
    for r in used:
        used_in = slice(use.indptr[r], use.indptr[r + 1])
        held = terms(use.data[used_in], [time[m] for m in use.indices[used_in]])
        rows[r] = LinearExpression([*held, MonomialTermExpression((-float(jobs.capacity[r]), model.T))]) <= 0
    model.capacity = pyo.Constraint(used, expr=rows)
    # (3)
    if jobs.one_mode:
        stay = MonomialTermExpression((-1.0, model.T))
        model.alone = pyo.Constraint(
            every, expr={j: LinearExpression([*time[own[j] : own[j + 1]], stay]) <= 0 for j in every}
        )
    return model


def prices(model: pyo.ConcreteModel, jobs: ModeJobs) -> tuple[Floats, Floats]:
    """Return the prices in a solved Pyomo model, from its suffix ``dual``.

    Parameters
    ----------
    model
        The solved model.
    jobs
        The jobs from which it was built.

    Returns
    -------
    k
        f64[R], the price of a unit of each resource.
    q
        f64[n], the price of each job's time; 0 without ``one_mode``.
    """
    resource, job = np.zeros(len(jobs.capacity)), np.zeros(jobs.n)
    for r, row in model.capacity.items():
        resource[r] = -model.dual[row]
    if jobs.one_mode:
        for j, row in model.alone.items():
            job[j] = -model.dual[row]
    return resource, job
