"""The state of a run in which jobs share GPUs, as arrays: what the compiled loop and compiled rules read and change.

n jobs, O sub-batch options at most, K kinds, G GPUs, N nodes. GPUs are numbered through all nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from optsched.compiled import njit  # noqa: F401  (the constants below are frozen into compiled code)
from optsched.problem.instance import Instance
from optsched.problem.schedule import node_first
from optsched.simulation.sharing_policy import SharingOrder
from optsched.speeds.gpu_sharing import SharingRates
from optsched.speeds.speed_tables import SpeedTables, speed_tables

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NOW, TICK, INTERVAL, FIRST_TICK = range(4)  # clock; intervals begin at the first arrival
NEXT, WAITING, RUNNING, FINISHED, EVENTS, STRICT, PYTHON = range(7)  # counters
FUTURE, WAITS, RUNS, DONE = range(4)  # status


class SharingState(NamedTuple):
    """See the module; seconds, bytes."""

    # jobs
    arrival: Floats
    gpus: Ints
    by_arrival: Ints
    suits: Ints  # i64[n] class of eligible nodes
    eligible: npt.NDArray[np.bool_]  # bool[classes, N]
    key: Floats
    kind: Ints
    options: Ints
    memory: Floats  # f64[n, O]
    stretch: Floats  # f64[n, O, 2]
    alone: Floats  # e_j with the first option, at best
    spans: Ints  # 1: the gang is wider than every node
    status: Ints
    option: Ints
    left: Floats  # work at the time `paid`
    paid: Floats
    pace: Floats  # seconds a unit of work, without partners
    slow: Floats  # the worst xi of the present partners
    finish: Floats
    begun: Floats
    ended: Floats
    first: Ints  # i64[n + 1] into `gang`
    gang: Ints  # GPUs of every job that runs or ran
    # GPUs and nodes
    resident: Ints  # i64[G, 2], -1: none
    jobs_on: Ints  # jobs on a GPU
    capacity: Floats  # bytes of a GPU
    room: Floats  # bytes that are free
    gpu_node: Ints
    node_gpu: Ints  # i64[N + 1] first GPU of a node
    node_jobs: Ints  # different jobs on a node
    node_idle: Ints  # GPUs of a node without a job
    waiting: Ints
    running: Ints
    xi: Floats
    tables: SpeedTables
    # scratch of the loop and of rules
    out_pool: Ints
    out_count: Ints
    out_gpu: Ints  # what a rule chose
    order: Ints  # i64[N] always some order of all nodes
    use: Ints  # i64[G]
    listed: Ints  # i64[G]
    mark: Ints  # i64[n]
    found: Ints  # i64[2 G]
    value: Floats  # f64[2 G]
    other: Floats  # f64[2 G]
    numbers: Floats
    clock: Floats
    counters: Ints


def new_sharing_state(
    instance: Instance, rates: SharingRates, order: SharingOrder, *, python: bool = False
) -> SharingState:
    """The state before the first event. ``python``: a policy in plain Python chooses."""
    n, cluster = instance.n, instance.cluster
    total, nodes = cluster.gpus, cluster.node_count
    first = np.concatenate([[0], np.cumsum(instance.gpus)]).astype(np.int64)
    counters = np.zeros(7, dtype=np.int64)
    counters[STRICT], counters[PYTHON] = order.strict, python

    def ints(k: int, value: int = 0) -> Ints:
        return np.full(k, value, dtype=np.int64)

    return SharingState(
        arrival=instance.arrival.copy(),
        gpus=instance.gpus.copy(),
        by_arrival=np.argsort(instance.arrival, kind="stable").astype(np.int64),
        suits=instance.job_class.copy(),
        eligible=np.ascontiguousarray(instance.class_eligible).copy(),
        key=np.array(order.key, dtype=np.float64),
        kind=rates.kind.copy(),
        options=rates.options.copy(),
        memory=np.ascontiguousarray(rates.memory),
        stretch=np.ascontiguousarray(rates.stretch),
        alone=np.array(rates.alone, dtype=np.float64),
        spans=rates.spans.copy(),
        status=ints(n),
        option=ints(n),
        left=instance.work.astype(np.float64),
        paid=np.zeros(n),
        pace=np.ones(n),
        slow=np.ones(n),
        finish=np.full(n, np.inf),
        begun=np.full(n, np.inf),
        ended=np.full(n, np.inf),
        first=first,
        gang=ints(int(first[-1]), -1),
        resident=np.full((total, 2), -1, dtype=np.int64),
        jobs_on=ints(total),
        capacity=np.repeat(cluster.node_memory, cluster.node_gpus).astype(np.float64),
        room=np.repeat(cluster.node_memory, cluster.node_gpus).astype(np.float64),
        gpu_node=np.repeat(np.arange(nodes, dtype=np.int64), cluster.node_gpus),
        node_gpu=node_first(instance),
        node_jobs=ints(nodes),
        node_idle=cluster.node_gpus.astype(np.int64).copy(),
        waiting=ints(max(n, 1)),
        running=ints(2 * total),
        xi=np.ascontiguousarray(rates.xi),
        tables=speed_tables(instance),
        out_pool=ints(total),
        out_count=ints(total),
        out_gpu=ints(total),
        order=np.arange(nodes, dtype=np.int64),
        use=ints(total),
        listed=ints(total),
        mark=ints(max(n, 1), -1),
        found=ints(2 * total),
        value=np.zeros(2 * total),
        other=np.zeros(2 * total),
        numbers=np.array([*order.numbers, np.nan], dtype=np.float64),
        clock=np.array([0.0, np.inf, order.interval, float(instance.arrival.min()) if n else 0.0]),
        counters=counters,
    )
