"""Random tiny instances for the formulations, as `TinyJob`s (for enumeration) and as an `Instance` (for the models)."""

from __future__ import annotations

from collections.abc import Sequence

from enumeration import TinyJob
from hypothesis import strategies as st

from optsched.problem.instance import Cluster, Instance, Job

DURATIONS = (1, 2, 3, 5, 8)


def instance_of(jobs: Sequence[TinyJob], cluster: Cluster | str) -> Instance:
    """The instance of jobs that are given as plain numbers."""
    return Instance(
        [
            Job(f"j{j}", float(job.release), job.gpus, float(job.duration), weight=float(job.weight), due=due(job))
            for j, job in enumerate(jobs)
        ],
        cluster,
    )


def due(job: TinyJob) -> float | None:
    """The due date as an instance takes it."""
    return None if job.due is None else float(job.due)


@st.composite
def tiny_jobs(draw: st.DrawFn, *, most: int = 5, gpus: int = 1, latest: int = 12) -> list[TinyJob]:
    """1 to ``most`` jobs with gangs of at most ``gpus``; weights include 0, due dates may be missing or long past."""
    one = st.builds(
        TinyJob,
        release=st.integers(0, latest),
        duration=st.sampled_from(DURATIONS),
        gpus=st.integers(1, gpus),
        weight=st.integers(0, 5),
        due=st.none() | st.integers(-3, 20),
    )
    return draw(st.lists(one, min_size=1, max_size=most))
