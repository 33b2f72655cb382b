"""Properties of the head of the queue: backfilling does not delay it, and it does not wait while its gang is free."""

from __future__ import annotations

import math
from collections.abc import Iterator

from optsched.check.properties import Breach, schedule_property
from optsched.check.properties.executions import OVERDUE, Ends, Executions, Instant, instants


@schedule_property(
    "head-not-delayed",
    statement="EASY: no job that starts before the head of the queue makes the shadow time of the head later",
    source="Lifka 1995; Mu'alem and Feitelson 2001",
)
def head_not_delayed(jobs: Executions) -> list[Breach]:
    """Return the instants at which a backfilled job delays the head.

    The head is the first waiting job by (submission, position) that does not start at the instant. Its shadow time is the
    first time at which its gang is free if every running job ends at its limit; a job beyond its limit is expected to end
    in a second. At every instant with backfilling it must not be later after the starts than before. Conservative
    backfilling may violate this property where jobs end before their limits.

    Parameters
    ----------
    jobs
        The executions.
    """
    found, gpus = list[Breach](), jobs.gpus.tolist()
    for instant, head, running, behind in backfillings(jobs):
        now, need = instant.now, gpus[head]
        free = instant.free - sum(gpus[job] for job in instant.started) + sum(gpus[job] for _, job in behind)
        shadow, _ = _shadow(now, free, running, need, gpus)
        limits = shadow + jobs.slack
        if _shadow(now, free - sum(gpus[job] for _, job in behind), running + behind, need, gpus)[0] <= limits:
            continue
        for pair in behind:
            running.append(pair)
            free -= gpus[pair[1]]
            later, _ = _shadow(now, free, running, need, gpus)
            if later > limits:
                found.append(_delayed(jobs, now, head, pair[1], shadow, later))
                break
    return found


def backfillings(jobs: Executions) -> Iterator[tuple[Instant, int, Ends, Ends]]:
    """Yield the instants at which jobs start before the head of the queue.

    With each come the head, the running jobs with those that start before the head in the queue, and the backfilled jobs, as
    (expected end, job).

    Parameters
    ----------
    jobs
        The executions.
    """
    places, limit = {job: place for place, job in enumerate(jobs.queue)}, jobs.limit.tolist()
    for instant in instants(jobs):
        if instant.started and instant.waiting:
            now, place = instant.now, instant.waiting[0]
            starting = [(now + limit[job], job) for job in instant.started]
            before = [pair for pair in starting if places[pair[1]] < place]
            if len(before) < len(starting):
                yield instant, jobs.queue[place], _expected(instant) + before, starting[len(before) :]


def _expected(instant: Instant) -> Ends:
    return [(end if end > instant.now else instant.now + OVERDUE, job) for end, job in instant.running]


def _shadow(now: float, free: int, running: Ends, need: int, gpus: list[int]) -> tuple[float, int]:
    """Return the first expected end by which a gang is free (inf if there is none), and the GPUs left over then."""
    if free >= need:
        return now, free - need
    ends = sorted(running)
    for k, (end, job) in enumerate(ends):
        free += gpus[job]
        if free >= need:
            return end, free - need + sum(gpus[job] for other, job in ends[k + 1 :] if other == end)
    return math.inf, 0


def _delayed(jobs: Executions, now: float, head: int, job: int, shadow: float, later: float) -> Breach:
    numbers = {"shadow before": jobs.on_clock(shadow), "shadow after": jobs.on_clock(later)}
    text = (
        f"at {jobs.at(now)} {jobs.named(job)} starts with a limit of {jobs.limit[job]:.15g} s and moves the shadow time of "
        f"the head, {jobs.named(head)}, from {jobs.at(shadow)} to {jobs.at(later)}"
    )
    return Breach(text, jobs.on_clock(now), (jobs.ids[head], jobs.ids[job]), numbers)


@schedule_property(
    "no-backfill-missed",
    statement="EASY: no job waits that could start now without making the shadow time of the head later",
    source="Lifka 1995; Mu'alem and Feitelson 2001",
)
def no_backfill_missed(jobs: Executions) -> list[Breach]:
    """Return every job that waits although EASY starts it, at the first instant of that.

    At every instant, EASY starts a job behind the head if its gang is free and it either ends by the shadow time at its
    limit, or takes only GPUs that the head leaves over at that time.

    Parameters
    ----------
    jobs
        The executions.
    """
    found, gpus, limit = dict[int, Breach](), jobs.gpus.tolist(), jobs.limit.tolist()
    for instant in instants(jobs):
        now, free = instant.now, instant.free - sum(gpus[job] for job in instant.started)
        if free <= 0 or len(instant.waiting) < 2 or gpus[jobs.queue[instant.waiting[0]]] <= free:
            continue
        head = jobs.queue[instant.waiting[0]]
        running = _expected(instant) + [(now + limit[job], job) for job in instant.started]
        shadow, extra = _shadow(now, free, running, gpus[head], gpus)
        for job in (jobs.queue[place] for place in instant.waiting[1:]):
            in_time = now + limit[job] <= shadow
            if gpus[job] <= free and (in_time or gpus[job] <= extra) and job not in found:
                why = "would end by" if in_time else f"would take {gpus[job]} of {extra} GPUs left over at"
                text = f"at {jobs.at(now)} {jobs.named(job)} waits although {free} GPUs are free; it {why} "
                text += f"{jobs.at(shadow)}, the shadow time of the head, {jobs.named(head)}"
                numbers = {"free": free, "shadow": jobs.on_clock(shadow), "extra": extra}
                found[job] = Breach(text, jobs.on_clock(now), (jobs.ids[head], jobs.ids[job]), numbers)
    return list(found.values())


@schedule_property(
    "work-conserved",
    statement="the head of the queue never waits while its gang is free",
    source="FCFS, EASY and first fit; conservative backfilling only with exact limits",
)
def work_conserved(jobs: Executions) -> list[Breach]:
    """Return every head that waits although enough GPUs are free, at the first instant of that.

    Parameters
    ----------
    jobs
        The executions.
    """
    return _waits(jobs, head_only=True)


@schedule_property(
    "no-fitting-job-waits",
    statement="no job waits while its gang is free, wherever it is in the queue",
    source="first fit, a list schedule: Garey and Graham 1975",
)
def no_fitting_job_waits(jobs: Executions) -> list[Breach]:
    """Return every job that waits although enough GPUs are free, at the first instant at which it is the first such job.

    Parameters
    ----------
    jobs
        The executions.
    """
    return _waits(jobs, head_only=False)


def _waits(jobs: Executions, head_only: bool) -> list[Breach]:
    found, gpus = dict[int, Breach](), jobs.gpus.tolist()
    for instant in instants(jobs):
        free = instant.free - sum(gpus[job] for job in instant.started)
        candidates = instant.waiting[:1] if head_only else instant.waiting
        job = next((jobs.queue[k] for k in candidates if gpus[jobs.queue[k]] <= free), None) if free > 0 else None
        if job is None or job in found:
            continue
        role = "the head of the queue, " if head_only else ""
        text = f"at {jobs.at(instant.now)} {role}{jobs.named(job)}, waits although {free} GPUs are free"
        found[job] = Breach(text, jobs.on_clock(instant.now), (jobs.ids[job],), {"free": free, "gang": gpus[job]})
    return list(found.values())
