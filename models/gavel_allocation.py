"""Gavel's allocation problem: the share of its time that each job spends on each GPU type.

This file has the data and the constraints that the programs of Gavel's policies share.

Sets: jobs m = 1..n; GPU types r = 1..R.
Data: T_mr >= 0 units of work (steps) a second of the whole gang of m on r (0: may not run there); gang_m GPUs of m; c_r
GPUs of type r; w_m weights. Some policies need more data: see `ActiveJobs` and `AllocationProblem`.
Variables: X_mr, share of time that m runs on r; thr_m(X) = sum_r T_mr X_mr is its **effective throughput**.
Base constraints, of every policy (`base_constraints`):

    X_mr >= 0                                 every job m, type r    (1)
    sum_r X_mr <= 1                           every job m            (2)  time
    sum_m gang_m X_mr <= c_r                  every type r           (3)  capacity, with prices as duals

Each program is one file, which you can read and solve on its own. `optsched.policies.gavel_allocations` solves the linear
programs again at every arrival and completion, in one live program with the coefficients given here. Their answer is a
target for the rounds of an online algorithm, not a schedule.
Source: Narayanan, Santhanam, Kazhamiaka, Phanishayee and Zaharia, Heterogeneity-aware cluster scheduling policies for
deep learning workloads (Gavel), OSDI 2020, 481-498; details as in its public simulator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optsched.problem.arrays import Floats, Ints

CAPACITY = "capacity"


@dataclass(frozen=True)
class ActiveJobs:
    """The jobs among which a rule divides the cluster, in order of (arrival, index): m jobs, T types.

    ``ids`` i64[m] identifies them over time; ``rate`` f64[m, T] units of work a second of the whole gang, 0 where it may not
    run; ``gang`` i64[m] GPUs; ``weight`` f64[m]; ``elapsed`` f64[m] seconds since arrival; ``left`` f64[m] units of work
    (for clairvoyant rules, else nan).
    """

    ids: Ints
    rate: Floats
    gang: Ints
    weight: Floats
    elapsed: Floats
    left: Floats

    def agnostic(self, reference: Ints | None = None) -> ActiveJobs:
        """Return the same jobs as a rule sees them that knows no differences between types.

        Every type is as fast as the first type of ``reference`` on which the job may run; the rate is 1 if there is no
        reference. As in Gavel, this includes types on which a job may not run: it may get time there that it cannot use.

        Parameters
        ----------
        reference
            Positions of types, i64[T], the preferred one first; None: every rate is 1.
        """
        if reference is None:
            return replace(self, rate=np.ones_like(self.rate))
        ordered = self.rate[:, reference]
        first = ordered[np.arange(len(ordered)), (ordered > 0).argmax(axis=1)]
        return replace(self, rate=np.repeat(first[:, None], self.rate.shape[1], axis=1))

    def some(self, rows: Ints) -> ActiveJobs:
        """Return a part of the jobs.

        Parameters
        ----------
        rows
            Positions of the jobs, i64[k].
        """
        return ActiveJobs(
            self.ids[rows],
            self.rate[rows],
            self.gang[rows],
            self.weight[rows],
            self.elapsed[rows],
            self.left[rows],
        )


@dataclass(frozen=True, eq=False)
class AllocationProblem:
    """Data of a program: jobs, each with a type that has its gang's GPUs and on which it has a rate > 0.

    ``capacity`` f64[T] GPUs of each type; ``isolated_so_far`` f64[m] seconds that the work done would have taken on an
    isolated share of the cluster, None: no work is done yet.
    """

    jobs: ActiveJobs
    capacity: Floats
    isolated_so_far: Floats | None = None

    def shares(self) -> Any:
        """Return the variables X_mr >= 0 of a `cvxpy.Problem`, named ``X``."""
        import cvxpy as cp

        return cp.Variable(self.jobs.rate.shape, nonneg=True, name="X")


def equal_share(capacity: Floats) -> Floats:
    """Return X^equal_r = c_r / sum c, f64[T]: the same row for every job; it sums to 1.

    Parameters
    ----------
    capacity
        GPUs of each type, f64[T].
    """
    share: Floats = capacity / capacity.sum()
    return share


def isolated_share(gang: Ints, capacity: Floats) -> Floats:
    """Return X^iso_mr = (c_r / m) / gang_m, f64[m, T]: a 1/m-th of the cluster for each job.

    Rows are scaled down to a sum of at most 1.

    Parameters
    ----------
    gang
        GPUs of each job, i64[m].
    capacity
        GPUs of each type, f64[T].
    """
    share: Floats = capacity[None, :] / (gang.size * gang[:, None])
    scaled: Floats = share / np.maximum(1.0, share.sum(axis=1, keepdims=True))
    return scaled


def isolated_rate(jobs: ActiveJobs, capacity: Floats) -> Floats:
    """Return thr_m(X^iso) in units of work a second, f64[m].

    Parameters
    ----------
    jobs
        The jobs.
    capacity
        GPUs of each type, f64[T].
    """
    rate: Floats = (jobs.rate * isolated_share(jobs.gang, capacity)).sum(axis=1)
    return rate


def level_rates(jobs: ActiveJobs, capacity: Floats) -> Floats:
    """Return (gang_m / w_m) T_mr / thr_m(X^equal), f64[m, T]: a job's level on each type.

    A weight of 0 counts as 1.

    Parameters
    ----------
    jobs
        The jobs.
    capacity
        GPUs of each type, f64[T].
    """
    equal = jobs.rate @ equal_share(capacity)
    scale = jobs.gang / (np.where(jobs.weight > 0, jobs.weight, 1.0) * equal)
    return jobs.rate * scale[:, None]


def base_constraints(problem: AllocationProblem, X: Any) -> list[Any]:
    """Return the constraints (2) and (3); the sign of the variable itself is (1).

    Parameters
    ----------
    problem
        The jobs and capacities.
    X
        Variable of shape (m, T).
    """
    return [
        (X.sum(axis=1) <= 1).set_label("time"),  # (2)
        (problem.jobs.gang @ X <= problem.capacity).set_label(CAPACITY),  # (3)
    ]


def prices(program: Any) -> Floats:
    """Return d optimum / d c_r of a solved program, f64[T], with all other data fixed.

    The other data stay fixed even where they depend on the capacities. The prices are >= 0 where the program maximises and
    <= 0 where it minimises, whatever the solver's sign of duals (CVXPY's are >= 0 in both senses). At a kink the price is
    one of the possible slopes.

    Parameters
    ----------
    program
        The solved `cvxpy.Problem`.
    """
    import cvxpy as cp

    (capacity,) = (constraint for constraint in program.constraints if constraint.label == CAPACITY)
    sign = 1.0 if isinstance(program.objective, cp.Maximize) else -1.0
    slopes: Floats = sign * np.asarray(capacity.dual_value, dtype=np.float64)
    return slopes
