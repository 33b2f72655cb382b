"""The initial state of a run of whole jobs: arrays of records that compiled loops change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from optsched.classes import class_of_means
from optsched.problem.arrays import Ints
from optsched.problem.instance import Instance
from optsched.simulation.colocation import ColocationContext, new_colocation
from optsched.simulation.next_event import ENTRY, new_clocks, shortened_keys
from optsched.simulation.placement import Placement
from optsched.simulation.policy import PLACES, Order
from optsched.simulation.records import ENGINE, EXECUTION, JOB, PART, QUEUE, SEGMENT, State as State
from optsched.speeds.duration import communicating, seconds_alone
from optsched.speeds.partner_rates import SharingRates
from optsched.speeds.speed_tables import SpeedTables, speed_tables

SAME = 1e-12  # relative: work that is left by the rounding of a few products is done
LIVELOCK_LIMIT = 1000  # segments in a row that do no work, for every job that may run at once
FINITE = np.finfo(np.float64).max
BLOCK = 4096  # jobs whose records are filled at a time


class RunContext(NamedTuple):
    """The constants of a run: where jobs may run, and how fast."""

    eligible: npt.NDArray[np.bool_]  # bool[kinds of jobs, P]
    random: npt.NDArray[np.uint64]  # of the placement
    tables: SpeedTables
    colocation: ColocationContext | None  # None: every job has its GPUs and the network alone


@dataclass(frozen=True)
class Residents:
    """The number of jobs that may be on a GPU: one, or two at given costs.

    Attributes
    ----------
    rates
        Slow-downs of jobs that share a GPU; None if every job holds its GPUs alone.
    numbers
        Parameters of a rule that chooses GPUs, if a rule does.
    listed
        Whether all waiting jobs are asked about, in order, as under a rule.
    """

    rates: SharingRates | None = None
    numbers: tuple[float, ...] | None = None
    listed: bool = False

    @property
    def alone(self) -> bool:
        """True if every job holds its GPUs alone."""
        return self.rates is None


def pools(instance: Instance, pooled: bool) -> tuple[Ints, Ints]:
    """Return the pools of GPUs that the engine counts.

    A pool is a node. For a placement that never looks at nodes it is a run of consecutive nodes that every job treats
    alike, unless the speed of a job depends on its nodes. (One-GPU nodes of one type are alike.)

    Parameters
    ----------
    instance
        Jobs and a cluster.
    pooled
        Whether the placement never looks at nodes.

    Returns
    -------
    tuple
        The first GPU of every pool and, last, G: i64[P + 1]; the first node of every pool: i64[P].
    """
    node_gpus = instance.cluster.node_gpus
    by_node = any(speeds.sees_nodes for speeds in instance.speeds)
    by_type = any(speeds.sees_types for speeds in instance.speeds)
    if pooled and not (by_node or by_type) and instance.unrestricted:  # all jobs treat all nodes alike
        return np.array([0, instance.cluster.gpus], dtype=np.int64), np.zeros(1, dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(node_gpus)]).astype(np.int64)
    one_gpu_nodes = bool((node_gpus == 1).all())
    if not pooled or by_node or (by_type and not one_gpu_nodes):
        return first, np.arange(node_gpus.size, dtype=np.int64)
    eligible = instance.class_eligible
    new = np.ones(node_gpus.size, dtype=bool)
    if eligible.shape[0]:
        new[1:] = (eligible[:, 1:] != eligible[:, :-1]).any(axis=0)
    if by_type:
        new[1:] |= np.diff(instance.cluster.node_type) != 0
    node = np.flatnonzero(new).astype(np.int64)
    return np.append(first[node], first[-1]).astype(np.int64), node


def new_state(
    instance: Instance,
    order: Order,
    placement: Placement,
    residents: Residents = Residents(),
    *,
    uses: frozenset[str] = frozenset(),
) -> tuple[State, RunContext]:
    """Return the state and the context of a run before the first event.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    order
        Keys and rules of the queue.
    placement
        The rule that chooses GPUs.
    residents
        How many jobs may be on a GPU.
    uses
        The means that the policy declares; for one that names nodes, every node is a pool.
    """
    n, total, kind = instance.n, instance.cluster.gpus, class_of_means(uses)
    first, node = pools(instance, residents.alone and placement.pooled and not uses & PLACES)
    size = np.diff(first)
    widest = int(instance.gpus.max(initial=1))
    # an entry holds replicas of one stage, or one GPU
    is_ordered = any(speeds.is_ordered for speeds in instance.speeds)
    width = min(widest, size.size) if residents.alone and not is_ordered else widest
    if kind.widths:
        width = max(width, size.size)
    at_once = total if kind.copies else min(n, total if residents.alone else 2 * total)
    capacity = log_reserve(total) + (2 * n if order.preemptive else n)  # what nobody writes to takes no memory
    jobs, engine = _jobs(instance, order), _engine_record(instance, order)
    w = engine[0]
    w.listed = residents.listed
    if kind.copies:
        w.copies, jobs["least"] = 1, SAME * instance.work
    w.width, w.promotion_queue, w.livelock_limit = width, n, LIVELOCK_LIMIT * max(at_once, 1)
    w.runner = n + (n if order.starvation > 0 else 0)
    kinds = instance.class_gpus.size if (order.skip or order.preemptive) and not w.listed else 1
    queues = np.zeros(max(kinds, 1), dtype=QUEUE)
    if kinds > 1:
        queues["first"][1:] = np.cumsum(np.bincount(instance.job_class, minlength=kinds))[:-1]
    executions = np.zeros(2 * at_once, dtype=EXECUTION)
    executions["vacant"] = np.arange(executions.size)
    w.logged = at_once * width
    eligible = instance.class_eligible[:, node] if n else np.zeros((1, size.size), dtype=bool)
    tables, colocation, rates = speed_tables(instance, node), None, residents.rates
    contended = instance.contention is not None and bool(communicating(instance, elastic=kind.widths).any())
    if contended or rates is not None:
        colocation = new_colocation(instance, tables, rates, contended, at_once, width)
    state = State(
        engine=engine,
        jobs=jobs,
        executions=executions,
        parts=np.zeros(int(w.logged) + capacity, dtype=PART),
        segments=np.zeros(capacity, dtype=SEGMENT),
        queues=queues,
        heap=np.zeros(int(w.runner) + (at_once if order.preemptive else 0), dtype=ENTRY),
        clocks=new_clocks(at_once),
        pools=np.array([size, size, size], dtype=np.int64),
        out=np.zeros((3, width), dtype=np.int64),
        numbers=np.array(order.thresholds if residents.numbers is None else residents.numbers, dtype=np.float64),
    )
    return state, RunContext(np.ascontiguousarray(eligible), placement.random_state(), tables, colocation)


def _jobs(instance: Instance, order: Order) -> Any:
    key = np.array(order.key, dtype=np.float64)
    fields: dict[str, npt.NDArray[Any]] = {
        "arrival": instance.arrival,
        "gpus": instance.gpus,
        "left": instance.work,
        "kind": instance.job_class,
        "origin": key,
        "key": shortened_keys(key) if _fading(order) else key,
        "nth": np.argsort(instance.arrival, kind="stable"),
        "restart": np.where(np.isnan(instance.restart), -1.0, np.minimum(instance.restart, FINITE)),
    }
    if order.slope is not None:  # given per second alone
        fields["slope"] = np.asarray(order.slope) * seconds_alone(instance) / instance.work
    jobs = np.zeros(instance.n, dtype=JOB)
    for first in range(0, instance.n, BLOCK):  # field by field, but never the whole array, which no cache holds
        block = jobs[first : first + BLOCK]
        for name, values in fields.items():
            block[name] = values[first : first + BLOCK]
        for name in ("execution", "stop_record", "place", "rises"):
            block[name] = -1
    return jobs


def _fading(order: Order) -> bool:
    return order.slope is not None and bool(np.any(order.slope))


def _engine_record(instance: Instance, order: Order) -> Any:
    engine = np.zeros(1, dtype=ENGINE)
    w = engine[0]
    w.tick, w.last = np.inf, -np.inf
    w.restart, w.first_start = order.restart, order.restart if order.first else 0.0
    w.period, w.first_round = order.round, float(instance.arrival.min()) if instance.n else 0.0
    w.starvation, w.levels = order.starvation, len(order.thresholds)
    w.skip, w.preemptive, w.by_time, w.requeue = order.skip, order.preemptive, order.by_time, order.requeue
    w.fading = _fading(order)
    w.growing = order.slope is not None and bool(np.any(np.asarray(order.slope) > 0))
    w.gpus = w.free = instance.cluster.gpus
    return engine


def log_reserve(gpus: int) -> int:
    """Return the entries that one event time may add to the log: every running job ends, at most two a GPU.

    Parameters
    ----------
    gpus
        GPUs of the cluster.
    """
    return 4 * gpus + 16


def grown(state: State) -> State:
    """Return the same state with a log twice as long.

    Parameters
    ----------
    state
        State of a run whose log is nearly full.
    """
    return state._replace(segments=twice(state.segments), parts=twice(state.parts))


def twice(log: Any) -> Any:
    """Return an array of twice the length that begins with the entries of ``log`` and ends with zeros.

    Parameters
    ----------
    log
        An array of records.
    """
    larger = np.zeros(2 * log.size, dtype=log.dtype)
    larger[: log.size] = log
    return larger
