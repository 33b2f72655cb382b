"""Promises: the start that a policy announces to a waiting job, and how often it is kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optsched.simulation.metrics import first_starts
from optsched.simulation.promised_starts import promised_starts
from optsched.simulation.run import Run

KEPT = 1e-6  # seconds after the promise at which a job still starts in time


@dataclass(frozen=True)
class Promises:
    """How the starts of jobs differ from the first start that the policy announced to them.

    Parameters
    ----------
    jobs
        Jobs that had to wait and were promised a start.
    waited
        All jobs that had to wait.
    kept
        Share of the promised jobs that start by the promise, from 0 to 1; 1 if there are none.
    p50, p90, p99
        Percentiles of start - promise in seconds; negative if the job starts earlier.
    latest
        Largest start - promise in seconds.
    """

    jobs: int
    waited: int
    kept: float
    p50: float
    p90: float
    p99: float
    latest: float


def promises(run: Run) -> Promises | None:
    """Return how a run keeps its promises; None if its policy makes none.

    Parameters
    ----------
    run
        The run.
    """
    starts = promised_starts(run)
    if starts is None:
        return None
    local = run.relative
    waited = first_starts(local.schedule) > local.instance.arrival
    late = starts.late[waited & np.isfinite(starts.late)]
    if not late.size:
        return Promises(0, int(waited.sum()), 1.0, 0.0, 0.0, 0.0, 0.0)
    p50, p90, p99, latest = np.percentile(late, [50, 90, 99, 100]).tolist()
    return Promises(int(late.size), int(waited.sum()), float((late <= KEPT).mean()), p50, p90, p99, latest)
