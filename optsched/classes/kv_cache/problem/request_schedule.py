"""`RequestSchedule`: executions of requests; one that was thrown out has no work, since its tokens are lost."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import numpy as np

from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule


class RequestSchedule(Schedule):
    """Executions as segments on the one GPU, which may overlap: their cells count, not their number.

    The ``work`` of a segment is the o_i tokens of a request that was completed, or 0 of one that was thrown out.
    """

    stated: ClassVar[str] = "requests"

    def save(self, path: str | os.PathLike[str], **stated: Any) -> None:
        """Write a schedule file with ``"requests": true``.

        Parameters
        ----------
        path
            File to write, ``.json`` or ``.parquet``.
        stated
            Facts that the referee checks, as for `Schedule.save`.
        """
        super().save(path, **{"requests": True, **stated})


def request_schedule(instance: Instance, starts: Floats | Ints, policy: str = "") -> RequestSchedule:
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
    start, job = np.asarray(starts, dtype=np.float64), np.arange(instance.n)
    return executions(instance, job, start, start + instance.iterations, instance.iterations.copy(), policy)


def executions(instance: Instance, job: Ints, start: Floats, end: Floats, work: Floats, policy: str) -> RequestSchedule:
    """Return the schedule of executions on the one GPU.

    Parameters
    ----------
    instance
        An instance of the class ``kv-cache``.
    job
        Request of every execution, i64[S].
    start
        Starts, f64[S].
    end
        Ends, f64[S].
    work
        Tokens that counted, f64[S].
    policy
        Name of the policy.
    """
    where = np.zeros(job.size, dtype=np.int64)
    return RequestSchedule(instance, job, start, end, work, np.arange(job.size + 1), where, where, policy)
