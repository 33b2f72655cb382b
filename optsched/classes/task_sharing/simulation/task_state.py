"""The state of a run at the task level: one array a field, as in `optsched.simulation.state`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from optsched.classes.task_sharing.simulation.links import Links, filled, new_links
from optsched.classes.task_sharing.simulation.task_policy import TaskOrder
from optsched.compiled import record
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.gpu_names import node_first
from optsched.problem.instance import Instance
from optsched.simulation.next_event import new_tree
from optsched.simulation.placement import Placement
from optsched.simulation.state import twice

Int32s = npt.NDArray[np.int32]

# These numbers are frozen into compiled code (see `optsched.compiled`).
FORWARD, FORWARD_RUNS, BACKWARD, BACKWARD_RUNS, BARRIER = 0, 1, 2, 3, 4  # Worker.phase
# TaskState.counters
NEXT, QUEUED, READY, LOGGED, TASKS, FINISHED, ASK, PLACE, UNDECIDED, PLACED, PYTHON, KEEP_LOG = range(12)


# ``after``, ``before``: the residents of a GPU as a list.
WORKER = record(job="int", gpu="int", phase="int", after="int", before="int")


class TaskState(NamedTuple):
    """n jobs, W workers of all gangs, N nodes, G GPUs."""

    # jobs, what they ask for
    arrival: Floats
    gpus: Ints
    first: Ints  # i64[n + 1]: the workers of job j are first[j] .. first[j + 1] - 1
    iterations: Ints
    forward: Floats
    backward: Floats
    memory: Floats
    kind: Ints  # row of `eligible`
    by_arrival: Ints
    # jobs, how far they are
    placed: Floats
    done: Floats  # inf: not yet
    iteration: Ints  # finished iterations
    at_barrier: Ints
    forward_left: Ints  # tasks that are not finished, of all workers
    backward_left: Ints
    # who goes first
    queue_key: Floats
    gpu_rule: Floats  # f64[n, 4], see `Countdown`
    link_rule: Floats
    gpu_key: Floats
    queue: Ints
    workers: Any  # WORKER[W]
    # GPUs
    gpu_node: Ints
    node_first: Ints
    capacity: Floats  # bytes
    eligible: Bools  # bool[K, N]
    head: Ints
    runs: Ints  # worker whose task runs, -1: idle
    gpu_busy: Floats
    tree: Floats
    undecided: Ints
    is_undecided: Ints
    # placement
    open: Bools
    hopeless: Floats  # f64[K]: the least memory of a job of a kind that did not fit since a job left
    load: Floats
    random: npt.NDArray[np.uint64]
    numbers: Floats
    out_gpu: Ints
    byte_load: Floats  # f64[1]: seconds that a byte counts in `load`
    links: Links
    rule_numbers: Floats
    # the log, grown between calls
    log_job: Int32s
    log_worker: Int32s
    log_start: Floats
    log_end: Floats
    counters: Ints


LATE = 2.0**20  # seconds: arrivals from there on are counted from the first of them


def clock_zero(instance: Instance) -> float:
    """Return the time at which the clock of a run begins: a whole number of seconds, 0 unless all jobs arrive late.

    A task ends at a rounded time, and the next one begins there: late clocks, such as that of Unix, would lose a part of
    every task.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    """
    first = float(instance.arrival.min(initial=np.inf))
    return float(np.floor(first)) if LATE <= first < np.inf else 0.0


def new_task_state(
    instance: Instance, order: TaskOrder, placement: Placement, *, record: bool, python: bool = False
) -> TaskState:
    """Return the state before the first event, with its clock at `clock_zero`.

    Parameters
    ----------
    instance
        Jobs with tasks, and a cluster.
    order
        Orders of the policy.
    placement
        A rule for shared GPUs.
    record
        Keep a log of all tasks.
    python
        A policy in plain Python decides on transfers.
    """
    n, cluster = instance.n, instance.cluster
    gpus, total = instance.gpus.copy(), cluster.gpus
    first = np.concatenate([[0], np.cumsum(gpus)]).astype(np.int64)
    workers = np.zeros(int(first[-1]), dtype=WORKER)
    workers["job"] = np.repeat(np.arange(n), gpus)
    workers["gpu"] = workers["after"] = workers["before"] = -1
    iterations = instance.iterations.astype(np.int64)
    shared = placement.shared
    assert shared is not None  # the caller has looked
    links = _links(instance, first)
    per_byte = shared.seconds_per_byte if shared.seconds_per_byte is not None else float(links.cost[0])
    room = (1 << 16) + 2 * (total + n) if record else 0
    counters = np.zeros(12, dtype=np.int64)
    counters[PYTHON], counters[KEEP_LOG] = python, record
    return TaskState(
        arrival=instance.arrival - clock_zero(instance),
        gpus=gpus,
        first=first,
        iterations=iterations,
        forward=instance.forward.copy(),
        backward=instance.backward.copy(),
        memory=instance.gpu_memory.copy(),
        kind=instance.job_class.copy(),
        by_arrival=np.argsort(instance.arrival, kind="stable").astype(np.int64),
        forward_left=gpus * iterations,
        backward_left=gpus * iterations,
        queue_key=np.array(order.queue, dtype=np.float64),
        gpu_rule=order.gpu.columns(n),
        link_rule=order.link.columns(n),
        workers=workers,
        gpu_node=np.repeat(np.arange(cluster.node_count, dtype=np.int64), cluster.node_gpus),
        node_first=node_first(instance),
        capacity=np.repeat(cluster.node_memory, cluster.node_gpus),
        eligible=np.ascontiguousarray(instance.class_eligible),
        tree=new_tree(total),
        hopeless=np.full(instance.class_eligible.shape[0], np.inf),
        random=placement.random_state(),
        numbers=np.array(shared.numbers, dtype=np.float64),
        out_gpu=np.zeros(int(gpus.max(initial=1)), dtype=np.int64),
        byte_load=np.array([per_byte]),
        links=links,
        # a few nan follow, so that a rule given too few compares with nan
        rule_numbers=np.array([*order.numbers, *(np.nan,) * 4], dtype=np.float64),
        counters=counters,
        **filled(np.inf, n, "placed done"),
        **filled(0, n, "iteration at_barrier queue"),
        **filled(0.0, n, "gpu_key"),
        **filled(-1, total, "head runs"),
        **filled(0, total, "undecided is_undecided"),
        **filled(0.0, total, "gpu_busy load"),
        **filled(False, total, "open"),
        **filled(np.int32(0), room, "log_job log_worker"),
        **filled(0.0, room, "log_start log_end"),
    )


def _links(instance: Instance, first: Ints) -> Links:
    n, contention = instance.n, instance.contention
    cost, ratio, kind = np.zeros(3), np.zeros((0, 0)), np.zeros(n, dtype=np.int64)
    if contention is not None:
        cost[:] = contention.seconds_per_byte, contention.penalty, contention.latency
        if contention.measured:
            ratio = np.array(contention.ratios, dtype=np.float64)
            row = {name: k for k, name in enumerate(contention.kinds)}
            kind[:] = [row.get(name, 0) for name in instance.table["profile"].to_list()]  # others send nothing
    span, job_node = np.zeros(n, dtype=np.int64), np.zeros(first[-1], dtype=np.int64)
    nodes = instance.cluster.node_count
    return new_links(instance.message.copy(), first.copy(), span, job_node, nodes, cost, kind, ratio)


def grown(state: TaskState) -> TaskState:
    """Return the same state with a log that is twice as long.

    Parameters
    ----------
    state
        State of a run.
    """
    logs = ("log_job", "log_worker", "log_start", "log_end")
    return state._replace(**{name: twice(getattr(state, name)) for name in logs})
