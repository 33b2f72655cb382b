"""Schedules of requests: executions on the one GPU, which may overlap; those that were thrown out have no work."""

from __future__ import annotations

import numpy as np

from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule


def request_schedule(instance: Instance, starts: Floats | Ints, policy: str = "") -> Schedule:
    """Return the schedule in which every request starts once, in rounds of length 1; the referee checks it.

    Parameters
    ----------
    instance
        An instance of the class ``kv-cache``.
    starts
        Boundary at which every request starts, [n].
    policy
        Name of the method that chose the starts.
    """
    start, tokens = np.asarray(starts, dtype=np.float64), instance.iterations.copy()
    return executions(instance, np.arange(instance.n), start, start + tokens, tokens, policy)


def executions(instance: Instance, job: Ints, start: Floats, end: Floats, work: Floats, policy: str) -> Schedule:
    """Return the schedule of some executions.

    Parameters
    ----------
    instance
        An instance of the class ``kv-cache``.
    job
        Request of every execution, i64[S].
    start, end
        Times, f64[S].
    work
        Tokens that count, f64[S].
    policy
        Name of the policy.
    """
    where = np.zeros(job.size, dtype=np.int64)
    return Schedule(instance, job, start, end, work, np.arange(job.size + 1), where, where, policy)
