"""Recipe ``ada-srsf``: the workload of Ada-SRSF's experiment, 160 jobs on 16 nodes of four GPUs and 10 Gbit/s.

As in the public code of the authors (see below); their job files and seeds are not public.

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

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from optsched.errors import InputError
from optsched.io.traces.generate import (
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
from optsched.io.traces.laws import ADADUAL_GPUS
from optsched.problem.arrays import Ints
from optsched.problem.cluster import Cluster
from optsched.problem.contention import ETHERNET_1G, ETHERNET_10G, Contention, IterationTasks

# Networks as tasks: forward, backward and message of one iteration, as the authors of Ada-SRSF measured them.
#
# Source: the public code HKBU-HPML/dl-scheduling of Q. Wang, S. Shi, C. Wang, X. Chu, "Communication Contention Aware
# Scheduling of Multiple Deep Learning Training Jobs", arXiv 2002.10105 (facts only; the code bears no licence): its state
# of January 2020 for 10 Gbit/s, and an older one for 1 Gbit/s, which says nothing of memory. There whole milliseconds and
# megabytes of 10^6 bytes; here seconds and bytes.

MEGABYTE = 1e6
GPU_MEMORY = 32768 * MEGABYTE  # of a GPU of the published cluster


class TaskModel(NamedTuple):
    """The ``tasks`` of an iteration and ``memory``, bytes a worker takes on its GPU; None: not stated."""

    tasks: IterationTasks
    memory: float | None


class TaskModels(NamedTuple):
    """Networks by name, and the cost of their messages on the network of the same measurements."""

    models: Mapping[str, TaskModel]
    contention: Contention


def _model(message: float, forward: int, backward: int, memory: float | None) -> TaskModel:
    # megabytes and milliseconds, divided so that every number is the double nearest to the decimal
    held = None if memory is None else memory * MEGABYTE
    return TaskModel(IterationTasks(forward / 1000, backward / 1000, round(message * MEGABYTE)), held)


TASK_MODELS: Mapping[str, TaskModels] = {
    "10g": TaskModels(
        {
            "VGG-16": _model(526.4, 36, 54, 4527),
            "ResNet-50": _model(99.2, 25, 37, 3213),
            "Inception-V3": _model(103.0, 35, 52, 3291),
            "LSTM-PTB": _model(251.8, 32, 47, 2751),
        },
        ETHERNET_10G,
    ),
    "1g": TaskModels(
        {
            "ResNet-50": _model(97.7, 38, 67, None),
            "GoogLeNet": _model(26.7, 60, 92, None),
            "AlexNet": _model(235, 45, 85, None),
        },
        ETHERNET_1G,
    ),
}


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
    """Ada-SRSF's workload: training jobs as tasks whose all-reduces contend, on GPUs that jobs share.

    Parameters
    ----------
    rng
        Random generator.
    values
        Values of the recipe's parameters, by name.
    """
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
    """Return the gang sizes of a number of jobs, ascending, i64[jobs].

    Parameters
    ----------
    jobs
        Number of jobs.
    """
    return np.array(in_proportion(jobs, ADADUAL_GPUS), dtype=np.int64)
