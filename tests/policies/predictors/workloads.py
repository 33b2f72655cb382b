"""Small workloads with groups and users, for predictors; what these say of them, and how wrong they are."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from hypothesis import strategies as st

from optsched.policies.predictors import predictor
from optsched.problem.instance import Instance, Job
from optsched.simulation.predictor import JobFacts, Predictor
from optsched.speeds.duration import seconds_alone

Floats = npt.NDArray[np.float64]


def workload(*jobs: tuple[float, float, str | None, str | None]) -> Instance:
    """Jobs (arrival, seconds, group, user) on a cluster that is never asked."""
    named = [
        Job(id=str(j), arrival=arrival, duration=seconds, group=group, user=user)
        for j, (arrival, seconds, group, user) in enumerate(jobs)
    ]
    return Instance(named, "8x8")


def with_length(instance: Instance, job: int, seconds: float) -> Instance:
    """The same workload with another length of one job."""
    durations = instance.duration.copy()
    durations[job] = seconds
    return instance.replace(jobs=instance.table.with_columns(pl.Series("duration", durations)))


def workloads() -> st.SearchStrategy[Instance]:
    """Few groups and users, ties in time, lengths over many magnitudes."""
    job = st.tuples(
        st.integers(0, 40).map(float),
        st.sampled_from([1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 100.0, 1e6]),
        st.sampled_from(["a", "b", None]),
        st.sampled_from(["x", "y", None]),
    )
    return st.lists(job, min_size=1, max_size=12).map(lambda jobs: workload(*jobs))


def timeline(instance: Instance, wait: float | npt.ArrayLike = 0.0) -> Iterator[tuple[float, int, bool]]:
    """(time, job, completed?) of every arrival and completion, in order of time.

    A job completes ``wait`` (a number or f64[n]) plus its seconds alone after its arrival. At equal times completions come
    before arrivals, as in the engine; then by index.
    """
    ends = (instance.arrival + np.asarray(wait) + seconds_alone(instance)).tolist()
    running: list[tuple[float, int]] = []
    for job in np.argsort(instance.arrival, kind="stable").tolist():
        while running and running[0][0] <= instance.arrival[job]:
            yield (*heapq.heappop(running), True)
        yield float(instance.arrival[job]), job, False
        heapq.heappush(running, (ends[job], job))
    while running:
        yield (*heapq.heappop(running), True)


def replay(instance: Instance, which: Predictor | str, wait: float | npt.ArrayLike = 0.0) -> Floats:
    """Predicted lengths f64[n] on the history of `timeline`: iterations of jobs with a profile, else seconds."""
    asked, predicted = predictor(which), np.full(instance.n, np.nan)
    asked.begin(JobFacts(instance, revealed=getattr(asked, "oracle", False)))
    for now, job, completed in timeline(instance, wait):
        if completed:
            asked.observe(job, now, float(instance.work[job]))
        else:
            predicted[job] = asked.predict(job, now)
    return predicted


class Errors(NamedTuple):
    """Of the larger of n^ / n and n / n^: median, 95th percentile; the largest of each; R^2 of log(1 + n)."""

    p50: float
    p95: float
    over: float
    under: float
    r2: float


def errors(true: Floats, predicted: Floats) -> Errors:
    """How wrong predictions are."""
    over, under, y = predicted / true, true / predicted, np.log1p(true)
    p50, p95 = np.quantile(np.maximum(over, under), [0.5, 0.95]).tolist()
    missed, spread = ((y - np.log1p(predicted)) ** 2).sum(), ((y - y.mean()) ** 2).sum()
    explained = 1 - missed / spread if spread else math.nan  # lengths that are all the same leave nothing to explain
    return Errors(p50, p95, float(over.max()), float(under.max()), float(explained))
