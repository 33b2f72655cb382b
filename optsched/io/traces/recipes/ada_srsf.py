"""Recipe ``ada-srsf``: the workload of Ada-SRSF's experiment, 160 jobs on 16 nodes of four GPUs and 10 Gbit/s.

As in the public code of the authors (see `optsched.speeds.task_models`); their job files and seeds are not public.

* Gang sizes: of 160 jobs 80, 14, 26, 30, 8, 2 take 1, 2, 4, 8, 16, 32 GPUs, in random order. Of n jobs, in the order of
  size, job k = 0 .. n-1 takes the size at the place (k + 1/2) / n of these shares. A gang larger than the cluster is cut to
  it.
* Every model of the network's set is equally likely; so is every whole number of iterations from ``scale`` to 6 ``scale``.
* Arrivals: uniform over [0, 1.2 ``scale``) seconds, rounded down to milliseconds; jobs are numbered by arrival. ``window``
  is the 1.2. Work and window grow together with ``scale``: 10 is a cheap version, 1000 (generally attributed to the
  paper, not confirmed) is the full one. The window does not depend on the number of jobs.
* GPUs of ``memory`` bytes; a worker takes what its model needs, so that several jobs share a GPU. Nothing is known of the
  memory of the older set ``network=1g``: there any number of jobs shares a GPU.
* Contention: that of the network, unless ``seconds_per_byte`` or ``penalty`` is given; ``latency`` as given.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from optsched.errors import InputError
from optsched.io.traces.laws import ADADUAL_GPUS
from optsched.io.traces.recipe import (
    Draw,
    Values,
    choice,
    cluster,
    in_proportion,
    integer,
    non_negative,
    number,
    recipe,
)
from optsched.problem.arrays import Ints
from optsched.problem.cluster import Cluster
from optsched.speeds.task_models import GPU_MEMORY, TASK_MODELS

CLUSTER = "16x4"
MOST = 6  # iterations of the longest job over those of the shortest


@recipe(
    "ada-srsf",
    jobs=integer(160, "number of jobs"),
    scale=integer(10, "least iterations of a job; the most are six times as many", most=10**6),
    window=number(1.2, "seconds in which the jobs arrive, over scale"),
    cluster=cluster(CLUSTER),
    memory=number(GPU_MEMORY, "bytes of a GPU"),
    network=choice("10g", tuple(TASK_MODELS), "models and contention: 10 Gbit/s, or the older set of 1 Gbit/s"),
    seconds_per_byte=number(None, "b: seconds a byte of one message alone; not given: the network's"),
    penalty=replace(
        non_negative(0, "eta: more seconds a byte for every other message; not given: the network's"), default=None
    ),
    latency=non_negative(0, "a: seconds before the bytes of a message move"),
)
def draw(rng: np.random.Generator, values: Values) -> Draw:
    """Ada-SRSF's workload: training jobs as tasks whose all-reduces contend, on GPUs that jobs share."""
    jobs, scale, chosen = int(values["jobs"]), values["scale"], TASK_MODELS[values["network"]]
    where = Cluster(tuple(replace(group, gpu_memory=values["memory"]) for group in values["cluster"].nodes))
    names = list(chosen.models)
    needs = {name: chosen.models[name].memory or 0.0 for name in names}
    largest = max(names, key=needs.__getitem__)
    if values["memory"] < needs[largest]:
        legal = f"at least {needs[largest]:g} bytes, what {largest} needs"
        raise InputError("too small", field="ada-srsf: memory", value=values["memory"], legal=legal)
    gpus = rng.permutation(np.minimum(gangs(jobs), where.gpus))
    model = [names[m] for m in rng.integers(0, len(names), jobs)]
    iterations = rng.integers(scale, MOST * scale, jobs, endpoint=True)
    milliseconds = np.floor(rng.random(jobs) * (1000.0 * values["window"] * scale))
    table = pl.DataFrame(
        {
            "arrival": np.sort(milliseconds) / 1000.0,
            "gpus": gpus,
            "iterations": iterations.astype(np.float64),
            "profile": model,
            "model": model,
            "gpu_memory": [chosen.models[name].memory for name in model],
        },
        schema_overrides={"gpu_memory": pl.Float64},
    )
    tasks = {name: chosen.models[name].tasks for name in sorted(set(model))}
    given = {name: values[name] for name in ("seconds_per_byte", "penalty") if values[name] is not None}
    contention = replace(chosen.contention, **given, latency=values["latency"])
    return Draw(table, where, "total_flow_time", tasks=tasks, contention=contention)


def gangs(jobs: int) -> Ints:
    """The gang sizes of so many jobs, ascending, i64[jobs]."""
    return np.array(in_proportion(jobs, ADADUAL_GPUS), dtype=np.int64)
