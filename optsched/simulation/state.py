"""The engine's state: one array a field, so that compiled loops touch no Python object and memory is dense."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from optsched.problem.instance import Instance
from optsched.simulation.instant import shortened_keys
from optsched.simulation.placing import Placement
from optsched.simulation.policy import Order
from optsched.speeds.duration import seconds_alone
from optsched.speeds.speed_tables import SpeedTables, speed_tables

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# These numbers are frozen into compiled code (see `optsched.compiled`).
FUTURE, WAITING, RUNNING, DONE = 0, 1, 2, 3
# State.counters
NEXT, WAKES, ACTIVE, FREE, FINISHED, SEGMENTS, LOGGED, EVENTS, STARTS, STOPS, ORDERED, QUEUED, FRUITLESS = range(13)
NOBODY = -1  # State.seg_job of a segment that was taken back
# FRUITLESS counts segments in a row that did no work, only overhead; so many mean that jobs stop each other for ever.
THRASHING = 1_000_000
# State.clock
NOW, TICK, BEGAN = 0, 1, 2  # BEGAN: the first event of the present instant
# State.rule
SKIP, PREEMPTIVE, BY_TIME, REQUEUE, FADING = range(5)  # FADING: keys grow or fall with work
# State.cost
RESTART, ROUND, STARVATION, FIRST_START, FIRST_ROUND = range(5)  # FIRST_ROUND: when rounds begin, the first arrival
# State.stood: the running segment of a job as it was before its last stop
STOOD_BEGUN, STOOD_PAID, STOOD_FINISH, STOOD_REMAINING, STOOD_BASE = range(5)


class State(NamedTuple):
    """n jobs, Q queues, P pools of GPUs, K kinds of jobs, R jobs that can run at once, W pools a gang may span."""

    # jobs, what they ask for
    arrival: Floats
    gpus: Ints
    kind: Ints  # what a placement may see of a job: its gang size and its eligible nodes
    queue: Ints
    by_arrival: Ints
    # jobs, how far they are
    status: Ints
    remaining: Floats  # units of work: seconds at full speed, or iterations
    pace: Floats  # seconds that a unit of work takes on the GPUs held
    attained: Floats  # GPU-seconds held, or seconds where service is time alone, up to `mark`
    mark: Floats
    begun: Floats  # start of the running segment
    paid: Floats  # when its overhead is over
    finish: Floats
    ran: Ints  # segments begun so far
    ceased: Floats  # when it last stopped
    stood: Floats  # f64[n, 5]: what it goes on with if it starts again at that instant where it was
    log_row: Ints  # the segment that its last stop logged, -1: none
    # jobs, in which order they are served
    level: Ints
    key: Floats
    base: Floats  # the key when the segment began
    slope: Floats
    thresholds: Floats
    # waiting: an indexed heap a queue
    queue_first: Ints
    queue_size: Ints
    blocked: Ints
    waiting: Ints
    waiting_slot: Ints
    # running jobs in no order, and in the order in which they are served
    active: Ints
    active_slot: Ints
    order: Ints
    in_order: Ints
    victim: Ints
    # what every running job holds, by slot
    holding: Ints
    vacant: Ints
    span: Ints
    held_pool: Ints
    held_count: Ints
    # pools of GPUs
    free: Ints
    trial: Ints
    size: Ints
    eligible: npt.NDArray[np.bool_]
    random: npt.NDArray[np.uint64]
    out_pool: Ints
    out_count: Ints
    # when a job's state changes next: an indexed heap
    wake: Floats
    waker: Ints
    waker_slot: Ints
    no_level: Ints
    # the log, grown between calls
    seg_job: Ints
    seg_start: Floats
    seg_end: Floats
    seg_work: Floats
    seg_offset: Ints
    log_pool: Ints
    log_count: Ints
    # speeds
    tables: SpeedTables
    # scalars
    counters: Ints
    clock: Floats
    rule: Ints
    cost: Floats


def pools(instance: Instance, pooled: bool) -> tuple[Ints, Ints]:
    """(first GPU of every pool and G: i64[P + 1], first node of every pool: i64[P]).

    A pool is a node; for a placement that never looks at nodes, a run of nodes that every job treats alike, unless the
    speed of a job depends on its nodes. (One-GPU nodes of one type are alike.)
    """
    node_gpus = instance.cluster.node_gpus
    first = np.concatenate([[0], np.cumsum(node_gpus)]).astype(np.int64)
    one_gpu_nodes = bool((node_gpus == 1).all())
    by_node = instance.staged.any() or instance.scaled.any()
    if not pooled or by_node or (instance.tabled.any() and not one_gpu_nodes):
        return first, np.arange(node_gpus.size, dtype=np.int64)
    eligible = instance.class_eligible
    new = np.ones(node_gpus.size, dtype=bool)
    if eligible.shape[0]:
        new[1:] = (eligible[:, 1:] != eligible[:, :-1]).any(axis=0)
    if instance.tabled.any():
        new[1:] |= np.diff(instance.cluster.node_type) != 0
    node = np.flatnonzero(new).astype(np.int64)
    return np.append(first[node], first[-1]).astype(np.int64), node


def new_state(instance: Instance, order: Order, placement: Placement, *, pooled: bool | None = None) -> State:
    """The state before the first event. ``pooled``: may alike nodes be one pool? Default: as the placement says."""
    n = instance.n
    alone = seconds_alone(instance)
    first, node = pools(instance, placement.pooled if pooled is None else pooled)
    size = np.diff(first)
    queue = instance.job_class if order.skip or order.preemptive else np.zeros(n, dtype=np.int64)
    queues = int(queue.max()) + 1 if n else 1
    queue_size = np.bincount(queue, minlength=queues)
    widest = int(instance.gpus.max(initial=1))
    width = widest if instance.staged.any() else min(widest, size.size)  # an entry holds replicas of one stage
    at_once = min(n, instance.cluster.gpus)
    eligible = instance.class_eligible[:, node] if n else np.zeros((1, size.size), dtype=bool)

    def ints(k: int, value: int = 0) -> Ints:
        return np.full(k, value, dtype=np.int64) if value else np.zeros(k, dtype=np.int64)

    def floats(k: int, value: float = 0.0) -> Floats:
        return np.full(k, value, dtype=np.float64) if value else np.zeros(k, dtype=np.float64)

    capacity = log_room(instance.cluster.gpus) + n
    key = np.array(order.key, dtype=np.float64)
    first_arrival = float(instance.arrival.min()) if n else 0.0
    fading = order.slope is not None and bool(np.any(order.slope))
    counters = ints(13)
    counters[FREE] = instance.cluster.gpus
    fields: dict[str, Any] = {
        "arrival": instance.arrival.copy(),
        "gpus": instance.gpus.copy(),
        "kind": instance.job_class.copy(),
        "queue": queue.copy(),
        "by_arrival": np.argsort(instance.arrival, kind="stable").astype(np.int64),
        "status": ints(n),
        "remaining": instance.work.copy(),
        "pace": np.ones(n),
        "tables": speed_tables(instance, node),
        "key": shortened_keys(key) if fading else key,
        "base": key.copy(),
        # a slope is given per second alone
        "slope": floats(n) if order.slope is None else np.array(order.slope * alone / instance.work, dtype=np.float64),
        "thresholds": np.array(order.thresholds, dtype=np.float64),
        "queue_first": np.concatenate([[0], np.cumsum(queue_size)]).astype(np.int64),
        "queue_size": ints(queues),
        "blocked": ints(queues),
        "waiting": ints(n),
        "active": ints(at_once),
        "order": ints(at_once),
        "victim": ints(at_once),
        "vacant": np.arange(at_once, dtype=np.int64),
        "span": ints(at_once),
        "held_pool": ints(at_once * width),
        "held_count": ints(at_once * width),
        "free": size.copy(),
        "trial": size.copy(),
        "size": size.copy(),
        "eligible": np.ascontiguousarray(eligible),
        "random": placement.random_state(),
        "out_pool": ints(width),
        "out_count": ints(width),
        "waker": ints(n),
        "seg_job": ints(capacity),
        "seg_start": floats(capacity),
        "seg_end": floats(capacity),
        "seg_work": floats(capacity),
        "seg_offset": ints(capacity + 1),
        "log_pool": ints(capacity),
        "log_count": ints(capacity),
        "counters": counters,
        "clock": np.array([0.0, np.inf, 0.0]),
        "rule": np.array([order.skip, order.preemptive, order.by_time, order.requeue, fading], dtype=np.int64),
        "cost": np.array(
            [order.restart, order.round, order.starvation, order.restart if order.first else 0.0, first_arrival]
        ),
    }
    for name in ("attained", "mark", "begun", "paid", "ceased"):
        fields[name] = floats(n)
    for name in ("finish", "wake"):
        fields[name] = floats(n, np.inf)
    for name in ("ran", "level", "in_order", "no_level"):
        fields[name] = ints(n)
    for name in ("waiting_slot", "active_slot", "waker_slot", "holding", "log_row"):
        fields[name] = ints(n, -1)
    fields["stood"] = np.zeros((n, 5))
    return State(**fields)


def log_room(gpus: int) -> int:
    """Entries that one event time may add to the log: every running job ends and has at most one entry a GPU."""
    return 2 * gpus + 16


def grown(state: State) -> State:
    """The same state with twice the room in the log."""
    changes: dict[str, Any] = {}
    for name in ("seg_job", "seg_start", "seg_end", "seg_work", "seg_offset", "log_pool", "log_count"):
        old = getattr(state, name)
        new = np.zeros(2 * old.size, dtype=old.dtype)
        new[: old.size] = old
        changes[name] = new
    return state._replace(**changes)
