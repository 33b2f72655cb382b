"""Properties of conservative backfilling: a promise to every job on its submission, and starts that keep it.

The promises are those of Mu'alem and Feitelson's conservative backfilling, computed along the schedule that is judged: on
its submission a job gets the earliest start at which it fits into the profile of the running jobs (until start + limit)
and the reservations of the jobs that wait. When a job ends before its limit, each waiting job in order of submission is
taken out of the profile and put at the earliest start that is not later than its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from optsched.check.properties import Breach, schedule_property
from optsched.check.properties.executions import OVERDUE, Executions, Instant, instants

SOURCE = "Mu'alem and Feitelson 2001: conservative backfilling"
Busy = tuple[float, float, int]  # (begin, end, GPUs)


@schedule_property(
    "promise-kept",
    statement="conservative: every job starts, and so ends, no later than it was promised on its submission",
    source=SOURCE,
)
def promise_kept(jobs: Executions) -> list[Breach]:
    """Return the jobs that start later than promised.

    Complexity O(n w (w + r)) for w waiting and r running jobs, w times as much after an early end.

    Parameters
    ----------
    jobs
        The executions.
    """
    return _against(jobs, promises(jobs), late_only=True)


@schedule_property(
    "starts-as-promised",
    statement="conservative, exact limits: every job starts exactly when it was promised on its submission",
    source=SOURCE,
    exact=True,
)
def starts_as_promised(jobs: Executions) -> list[Breach]:
    """Return the jobs that do not start when promised.

    Parameters
    ----------
    jobs
        The executions.
    """
    return _against(jobs, promises(jobs), late_only=False)


def _against(jobs: Executions, promised: list[float], late_only: bool) -> list[Breach]:
    found = []
    for job, (start, promise) in enumerate(zip(jobs.start.tolist(), promised, strict=True)):
        if start > promise + jobs.slack or (not late_only and start < promise - jobs.slack):
            submitted = float(jobs.arrival[job])
            text = (
                f"{jobs.named(job)} starts at {jobs.at(start)}; it was promised {jobs.at(promise)} on its submission at "
                f"{jobs.at(submitted)}"
            )
            numbers = {"promise": jobs.on_clock(promise), "start": jobs.on_clock(start)}
            found.append(Breach(text, jobs.on_clock(min(start, promise)), (jobs.ids[job],), numbers))
    return sorted(found, key=lambda broken: broken.instant)


def promises(jobs: Executions) -> list[float]:
    """Return the start that every job was promised on its submission, in seconds since the epoch of the executions.

    Parameters
    ----------
    jobs
        The executions.
    """
    promised, reserved = np.full(jobs.arrival.size, np.inf), dict[int, float]()
    gpus, limit = jobs.gpus.tolist(), jobs.limit.tolist()
    for instant in instants(jobs):
        now = instant.now

        def earliest(job: int, instant: Instant = instant) -> float:
            held = [(max(begin, instant.now), k) for k, begin in reserved.items() if k != job]
            busy = [(begin, begin + limit[k], gpus[k]) for begin, k in held]
            busy += [
                (instant.now, end if end > instant.now else instant.now + OVERDUE, gpus[k])
                for end, k in instant.running
            ]
            return earliest_fit(instant.now, gpus[job], limit[job], busy, jobs.capacity)

        if any(jobs.end[job] < jobs.start[job] + limit[job] - jobs.slack for job in instant.ended):
            for job in reserved:  # in order of submission
                reserved[job] = min(reserved[job], earliest(job))
        for job in instant.arrived:
            if jobs.start[job] < now:
                continue
            promised[job] = reserved[job] = earliest(job)
        for job in instant.started:
            reserved.pop(job, None)
    return promised.tolist()


def earliest_fit(now: float, gpus: int, seconds: float, busy: Iterable[Busy], capacity: int) -> float:
    """Return the earliest time, from now on, at which a number of GPUs is free for a number of seconds.

    Parameters
    ----------
    now
        The present, in seconds.
    gpus
        Number of GPUs.
    seconds
        For how long.
    busy
        (begin, end, GPUs) of whatever holds GPUs from now on.
    capacity
        GPUs of the cluster.
    """
    changes = defaultdict[float, int](int)
    for begin, end, held in busy:
        changes[begin] += held
        changes[end] -= held
    fits_from, used = now, 0
    for time in sorted(changes):
        if fits_from + seconds <= time:
            break
        used += changes[time]
        if used + gpus > capacity:
            fits_from = float("inf")
        elif fits_from == float("inf"):
            fits_from = time
    return fits_from
