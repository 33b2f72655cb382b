"""Random tiny instances of whole numbers for the formulations."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from optsched.problem.arrays import Ints
from optsched.problem.instance import Cluster, Instance, Job


@st.composite
def tiny_instances(
    draw: st.DrawFn,
    cluster: Cluster | str = "1x1",
    *,
    most: int = 5,
    widest: int = 1,
    latest: int = 12,
    longest: int = 8,
    lightest: int = 0,
) -> Instance:
    """1 to ``most`` jobs; due dates may be missing or long past."""
    fields = {
        "arrival": st.integers(0, latest),
        "gpus": st.integers(1, widest),
        "duration": st.sampled_from([seconds for seconds in (1, 2, 3, 5, 8) if seconds <= longest]),
        "weight": st.integers(lightest, 5),
        "due": st.none() | st.integers(-3, 20),
    }
    rows = draw(st.lists(st.fixed_dictionaries(fields), min_size=1, max_size=most))
    return Instance([Job(f"j{j}", **row) for j, row in enumerate(rows)], cluster)


def columns(instance: Instance) -> tuple[Ints, Ints, Ints]:
    """Releases, durations and gangs, i64."""
    return instance.arrival.astype(np.int64), instance.duration.astype(np.int64), instance.gpus
