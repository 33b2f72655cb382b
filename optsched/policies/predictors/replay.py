"""`replay`: what a predictor would have said, without a scheduler in between; `timeline`: the events that it hears of."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from optsched.errors import InputError
from optsched.policies.predictors import predictor as predictor_of
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.simulation.policy import JobFacts, Predictor
from optsched.speeds.duration import seconds_alone

Event = tuple[float, int, bool]


def timeline(instance: Instance, wait: float | npt.ArrayLike = 0.0) -> Iterator[Event]:
    """(time, job, completed?) of every arrival and completion, in order of time.

    A job completes ``wait`` (a number or f64[n], seconds >= 0) plus its seconds alone after its arrival. At equal times
    completions come before arrivals, as in the engine; then by index. O(n log n).

    Raises
    ------
    InputError
        A wait that is negative or not finite, or jobs whose speed is not known.
    """
    waits = np.asarray(wait, dtype=np.float64)
    if not (np.isfinite(waits).all() and (waits >= 0).all()) or waits.shape not in ((), (instance.n,)):
        legal = f"a finite number of seconds >= 0, or {instance.n} of them"
        raise InputError("invalid", field="wait", value=wait, legal=legal)
    ends = (instance.arrival + waits + seconds_alone(instance)).tolist()
    arrival = instance.arrival.tolist()
    running: list[tuple[float, int]] = []
    for job in np.argsort(instance.arrival, kind="stable").tolist():
        while running and running[0][0] <= arrival[job]:
            end, done = heapq.heappop(running)
            yield end, done, True
        yield arrival[job], job, False
        heapq.heappush(running, (ends[job], job))
    while running:
        end, done = heapq.heappop(running)
        yield end, done, True


def replay(instance: Instance, predictor: Predictor | str, wait: float | npt.ArrayLike = 0.0) -> Floats:
    """Predicted lengths f64[n]: iterations of jobs with a profile, else seconds.

    Feeds every arrival and every completion in order of time (`timeline`): a job completes ``wait`` plus its seconds alone
    after it arrives, so that predictors can be compared on the same history, whatever a policy would make of them.

    Raises
    ------
    InputError
        An unknown predictor or parameter, or what `timeline` raises.
    """
    asked = predictor_of(predictor)
    asked.begin(JobFacts(instance, revealed=getattr(asked, "oracle", False)))
    work = instance.work.tolist()
    predicted = np.full(instance.n, np.nan)
    for now, job, completed in timeline(instance, wait):
        if completed:
            asked.observe(job, now, work[job])
        else:
            predicted[job] = asked.predict(job, now)
    return predicted
