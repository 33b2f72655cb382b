"""Savings of queued GPU-hours, job by job, and their intervals by a bootstrap over weeks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optsched.problem.arrays import Floats
from optsched.problem.schedule import Schedule
from optsched.simulation.metrics import HOUR, seconds_running
from optsched.speeds.duration import segment_paces

WEEK = 7 * 86400.0
DRAWS = 200
FEWEST = 3  # weeks that an interval is made of
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Saving:
    """Queued GPU-hours that a candidate avoids, compared with the first row.

    Parameters
    ----------
    gpu_hours
        The GPU-hours; negative if more are queued.
    low, high
        Ends of the interval in which the saving of such weeks lies in 95 % of the draws; None for fewer than three weeks.
    """

    gpu_hours: float
    low: float | None
    high: float | None


def queued_by_job(schedule: Schedule) -> Floats:
    """Return the GPU-hours in which every job waited or restarted, f64[n]; nan for an unfinished job.

    Parameters
    ----------
    schedule
        The schedule that a policy made, or that ran.
    """
    local = schedule.relative
    instance, n = local.instance, local.instance.n
    held = local.end - local.start
    pace = segment_paces(instance, local.job, local.gpu_offset, local.gpu_node)
    idle = np.bincount(local.job, weights=local.gangs * (held - np.fmin(held, local.work * pace)), minlength=n)
    waited = np.maximum(local.completion - instance.arrival - seconds_running(local), 0.0)
    return np.where(local.finished, (instance.gpus * waited + idle) / HOUR, np.nan)


def savings(base: Floats, others: list[Floats], arrival: Floats, draws: int = DRAWS, seed: int = 0) -> list[Saving]:
    """Return the saving of every candidate over the first row.

    Parameters
    ----------
    base
        Queued GPU-hours of every job in the first row, f64[n].
    others
        The same for every candidate.
    arrival
        Release dates in seconds from the first one, f64[n].
    draws
        Number of draws.
    seed
        Seed of the draws.

    Notes
    -----
    A draw takes W of the W weeks of the log, with replacement, and adds up what the jobs that were submitted in them
    queued less. All candidates have the same draws. Nothing is simulated again: the interval says how much the saving
    depends on the weeks that the log happens to have, and not what a different load would do. A week is a block, so that
    a day's queue is not torn from its cause. The first and the last week may be short.
    """
    week = (arrival // WEEK).astype(np.int64)
    _, week = np.unique(week, return_inverse=True)
    weeks = int(week.max(initial=-1)) + 1
    drawn = np.random.default_rng(seed).integers(0, max(weeks, 1), size=(draws, weeks))
    found = []
    for other in others:
        saved = np.nan_to_num(base - other)
        low = high = None
        if weeks >= FEWEST and draws > 0:
            totals = np.bincount(week, weights=saved, minlength=weeks)[drawn].sum(axis=1)
            tail = (1 - CONFIDENCE) / 2
            low, high = np.quantile(totals, [tail, 1 - tail]).tolist()
        found.append(Saving(float(saved.sum()), low, high))
    return found
