"""Plain jobs: the instance that is read from the `Job` objects is the one that is read from their table."""

from __future__ import annotations

import copy
import math
import pickle
import random
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from optsched.errors import OptschedError
from optsched.problem.instance import Instance, Job
from optsched.problem.job_table import table_of
from optsched.problem.plain_jobs import plain_of

CLUSTER = "1x2+1x4:V100"


def some_jobs(rng: random.Random) -> list[Job]:
    """Return plain jobs whose numbers have both types, and zeros of both signs."""
    times = [0, -0.0, 0.0, 1, 2.5, 1e18, 10**18, 3e9 + 0.125]
    lengths, weights = [1, 2.5, 1e-12, 1e18, 7], [1, 0, -0.0, 0.1, 1e-18, 3]
    return [
        Job(
            f"{k}" if rng.random() < 0.8 else f'"ä{k}\n',
            arrival=rng.choice(times),
            gpus=rng.randint(1, 6),
            duration=rng.choice(lengths),
            weight=rng.choice(weights),
            due=rng.choice([None, -5, -0.0, 0, 4.5, -1e18]),
        )
        for k in range(rng.randint(1, 6))
    ]


def assert_same(plain: Instance, tabled: Instance) -> None:
    """Assert that two instances have the same arrays, bit for bit, table, digest and document."""
    assert plain._arrays.keys() == tabled._arrays.keys()
    for name, array in plain._arrays.items():
        other = tabled._arrays[name]
        assert (array.dtype, array.shape) == (other.dtype, other.shape), name
        assert array.tobytes() == other.tobytes(), name
        assert not array.flags.writeable
    assert plain.digest == tabled.digest
    assert (plain.epoch, plain.ids, plain.n, plain.kinds) == (tabled.epoch, tabled.ids, tabled.n, tabled.kinds)
    assert plain.walltime.tobytes() == tabled.walltime.tobytes()
    for column in ("arrival", "duration", "iterations", "weight", "due", "gpu_memory", "restart", "checkpoint"):
        for missing in (math.nan, -1.0):
            assert plain.floats(column, missing).tobytes() == tabled.floats(column, missing).tobytes(), column
    assert plain.table.equals(tabled.table)
    assert plain.table.schema == tabled.table.schema
    assert plain._needs.equals(tabled._needs)
    assert plain.to_json() == tabled.to_json()
    assert plain == tabled


@pytest.mark.parametrize("seed", range(60))
def test_instance_is_that_of_the_table(seed: int) -> None:
    rng = random.Random(seed)
    jobs = some_jobs(rng)
    plain, tabled = Instance(jobs, CLUSTER, "a"), Instance(table_of(jobs), CLUSTER, "a")
    assert plain._plain is not None
    assert tabled._plain is None
    assert_same(copy.copy(plain), tabled)
    assert_same(pickle.loads(pickle.dumps(plain)), tabled)
    assert_same(plain.relative, tabled.relative)
    weight = np.array([rng.random() for _ in jobs])
    due = np.array([rng.choice([3.0, math.inf]) for _ in jobs])
    for dates in (None, due):
        assert plain.weighted_by(weight, dates).digest == tabled.weighted_by(weight, dates).digest
    for changes in ({"name": "b"}, {"cluster": "1x8"}, {"interference": 1.5}):
        changed = plain.replace(**changes)
        assert changed._plain is not None
        assert_same(changed, tabled.replace(**changes))


def test_only_valid_plain_jobs_are_read_directly() -> None:
    from optsched.problem.cluster import Cluster

    cluster, job = Cluster.parse(CLUSTER), Job("a", duration=1)
    assert plain_of([job], cluster) is not None
    wrong: dict[str, list[Any]] = {
        "id": ["", None, 1],
        "arrival": [-1, math.nan, math.inf, 2e18, None, True, "1", np.float64(1)],
        "gpus": [0, 7, 1.0, True, None],
        "duration": [0, None, math.nan, 1e-13, 2e18, False],
        "weight": [-1, 1e-19, 2e18, math.nan, None],
        "due": [math.nan, math.inf, 2e18],
        "profile": ["net"],
        "iterations": [2],
        "user": ["u"],
        "gpu_memory": [1.0],
        "ran": [((0, 1),)],
    }
    for field, values in wrong.items():
        for value in values:
            jobs = [replace(job, **{field: value})]
            assert plain_of(jobs, cluster) is None, (field, value)
            assert message_of(jobs) == message_of(jobs[0] for _ in range(1)), (field, value)
    assert plain_of([job, job], cluster) is None
    assert plain_of([], cluster) is None
    assert plain_of(pl.DataFrame({"duration": [1.0]}), cluster) is None


def message_of(jobs: Any) -> str:
    """Return the error of an instance of these jobs; "" if there is none."""
    try:
        Instance(jobs, CLUSTER)
    except OptschedError as error:
        return str(error)
    return ""


def test_a_smaller_cluster_is_an_error() -> None:
    instance = Instance([Job("a", gpus=4, duration=1)], CLUSTER)
    with pytest.raises(OptschedError, match="larger than the cluster"):
        instance.with_cluster("1x2")
