"""Small workloads with groups and users, for predictors."""

from __future__ import annotations

import polars as pl
from hypothesis import strategies as st

from optsched.problem.instance import Instance, Job


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


def workloads(most: int = 12) -> st.SearchStrategy[Instance]:
    """Few groups and users, ties in time, lengths over many magnitudes."""
    job = st.tuples(
        st.integers(0, 40).map(float),
        st.sampled_from([1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 100.0, 1e6]),
        st.sampled_from(["a", "b", None]),
        st.sampled_from(["x", "y", None]),
    )
    return st.lists(job, min_size=1, max_size=most).map(lambda jobs: workload(*jobs))
