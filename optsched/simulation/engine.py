"""`run_policy`: an instance, a policy and a placement go in, a `Run` comes out."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np

from optsched.errors import InputError, SimulationError
from optsched.instance import Instance
from optsched.policy import Knowledge, KnownJobs, Order, OrderedPolicy, Policy, Start, Stop, Wake
from optsched.rates.duration import seconds_alone
from optsched.simulation.asked import Asked
from optsched.simulation.entry_points import apply_events, next_time, place, start, stop
from optsched.simulation.ordered import NEEDS_ROOM, PAUSED, THRASHES, run_ordered
from optsched.simulation.placing import Placement
from optsched.simulation.run import Run, result
from optsched.simulation.state import (
    EVENTS,
    FINISHED,
    FREE,
    FRUITLESS,
    LOGGED,
    NEXT,
    NOW,
    RUNNING,
    SEGMENTS,
    THRASHING,
    TICK,
    WAITING,
    State,
    grown,
    log_room,
    new_state,
)
from optsched.simulation.view import EngineView

Progress = Callable[[int, int], None]
SLICE = 200_000  # events between two reports of progress


def run_policy(
    instance: Instance,
    policy: Policy | OrderedPolicy,
    placement: Placement,
    *,
    name: str | None = None,
    progress: Progress | None = None,
) -> Run:
    """Replay an instance under a policy and a placement rule.

    Problem P | r_j, size_j, online-r_j (, pmtn) | any objective: continuous time, all events of one instant are applied
    before the policy is asked once, deterministic.

    Parameters
    ----------
    policy : an `OrderedPolicy` (compiled) or a `Policy` in plain Python.
    name : how the run is called in reports (default: the policy's name and, unless `count`, the placement's).
    progress : called with (finished jobs, all jobs) now and then.

    Raises
    ------
    InputError
        A job has no duration, or a queue order has illegal values.
    SimulationError
        A policy took a decision that is not possible, jobs stop each other for ever before their restart is over, or
        work was not conserved.

    Complexity: O((kinds + log n) per start and event) for queue orders, plus O(running jobs) per decision when
    preemptive; see `optsched.simulation.ordered`.
    """
    name = name or policy.name
    knowledge = Knowledge(policy.knowledge)
    begun = time.process_time()
    told: dict[str, Any] = {}
    pooled = placement.pooled and not getattr(policy, "names_nodes", False)
    if callable(getattr(policy, "order", None)):
        jobs = KnownJobs(instance, knowledge, seconds_alone(instance))
        order = _legal(cast("OrderedPolicy", policy).order(jobs), name, instance.n)
        state = _run_order(new_state(instance, order, placement), placement, name, progress)
        preemptive = order.preemptive
    else:
        order = _legal(Order(key=instance.arrival, restart=getattr(policy, "restart", 0.0)), name, instance.n)
        asked = Asked(policy, instance)
        state = new_state(instance, order, placement, pooled=pooled)
        state = _run_python(state, placement, asked, knowledge, progress)
        preemptive = False
        told = asked.told()
    seconds = time.process_time() - begun
    return result(state, instance, pooled, name, knowledge, preemptive, seconds, **told)


def _legal(order: Order, name: str, n: int) -> Order:
    # The compiled loop trusts shapes and values: what is wrong must be found here.
    for field, values in (("key", order.key), ("slope", order.slope)):
        if values is None:
            continue
        array = np.asarray(values, dtype=np.float64)
        if array.shape != (n,) or np.isnan(array).any():
            raise InputError("not legal", field=f"{name}: {field}", legal=f"one number for each of {n} jobs")
    for field in ("starvation", "round", "restart"):
        value = getattr(order, field)
        if not (math.isfinite(value) and value >= 0):
            raise InputError(
                "not legal", field=f"{name}: {field}", value=value, legal="a finite number of seconds >= 0"
            )
    below = (0.0, *order.thresholds)
    if any(not value > least for least, value in zip(below, order.thresholds, strict=False)):
        legal = "GPU-seconds > 0, increasing"
        raise InputError("not legal", field=f"{name}: threshold", value=order.thresholds, legal=legal)
    return order


def _run_order(state: State, placement: Placement, name: str, progress: Progress | None) -> State:
    while True:
        status = run_ordered(placement.place, state, SLICE)
        if progress is not None:
            progress(int(state.tally[FINISHED]), state.arrival.size)
        if status == NEEDS_ROOM:
            state = grown(state)
        elif status == THRASHES:
            raise _thrashes(state, name)
        elif status != PAUSED:
            return state


def _thrashes(state: State, name: str) -> SimulationError:
    return SimulationError(
        f"policy {name} at {state.clock[NOW]:g} s: {THRASHING} segments in a row did no work, "
        "jobs are stopped before their restart is over"
    )


def _run_python(
    state: State,
    placement: Placement,
    asked: Asked,
    knowledge: Knowledge,
    progress: Progress | None,
) -> State:
    policy, instance = asked.policy, asked.instance
    reported = 0
    wakes: list[float] = []  # a heap: every time at which the policy wants to be asked
    view = EngineView(state, placement, instance, knowledge, asked.predicted)
    asked.begin(view)
    room, n = log_room(instance.cluster.gpus), instance.n
    while True:
        if state.seg_job.size - state.tally[SEGMENTS] < room or state.log_pool.size - state.tally[LOGGED] < room:
            state = grown(state)
        t = next_time(state)
        if t == math.inf or state.tally[FINISHED] == n:
            return state
        if state.tally[FRUITLESS] >= THRASHING:
            raise _thrashes(state, policy.name)
        came, ended = int(state.tally[NEXT]), int(state.tally[SEGMENTS])
        apply_events(state, t)
        arrived = state.by_arrival[came : state.tally[NEXT]].tolist()
        finished = state.seg_job[ended : state.tally[SEGMENTS]].tolist()  # only completions end a segment at an event
        asked.hear(t, arrived, finished)
        view.refresh(state, arrived, finished)
        decisions = policy.decide(view)
        if not isinstance(decisions, Iterable):
            raise SimulationError(
                f"policy {policy.name} at {t:g} s: decide returned {decisions!r} (legal: an iterable of decisions)"
            )
        for decision in decisions:
            _apply(decision, state, placement, instance, policy.name, wakes)
        while wakes and wakes[0] <= t:
            heapq.heappop(wakes)
        state.clock[TICK] = wakes[0] if wakes else math.inf
        if progress is not None and state.tally[EVENTS] - reported > 1000:
            reported = int(state.tally[EVENTS])
            progress(int(state.tally[FINISHED]), state.arrival.size)


def _apply(
    decision: Any, state: State, placement: Placement, instance: Instance, name: str, wakes: list[float]
) -> None:
    now = float(state.clock[NOW])

    def wrong(what: str) -> SimulationError:
        return SimulationError(f"policy {name} at {now:g} s: {what}")

    if isinstance(decision, Wake):
        if not (_is_real(decision.time) and decision.time > now):
            raise wrong(f"{decision!r} is not later than now")
        heapq.heappush(wakes, float(decision.time))
        return
    if not isinstance(decision, Start | Stop):
        raise wrong(f"{decision!r} is not a decision (legal: Start, Stop, Wake)")
    j = decision.job
    if not isinstance(j, int | np.integer) or not 0 <= j < instance.n:
        raise wrong(f"there is no job {j!r}")
    job = instance.ids[j]
    if isinstance(decision, Stop):
        if state.status[j] != RUNNING:
            raise wrong(f"job {job!r} is stopped but does not run")
        stop(state, j)
        return
    if state.status[j] != WAITING:
        raise wrong(f"job {job!r} is started but does not wait")
    if decision.on is not None:
        entries = _named(decision.on, state, j, wrong)
    else:
        entries = place(placement.place, state, j, state.free) if state.gpus[j] <= state.tally[FREE] else 0
    if entries == 0:
        raise wrong(f"job {job!r} is started but its {state.gpus[j]} GPUs do not fit (ask view.fits first)")
    start(state, j, entries)


def _named(on: Any, state: State, j: int, wrong: Callable[[str], SimulationError]) -> int:
    # The GPUs that a policy names, as a placement would have written them down; every one must be free and eligible.
    eligible, free, size = state.eligible[state.kind[j]], state.free, state.free.size
    gang, total = int(state.gpus[j]), 0
    if not getattr(on, "__len__", None) or len(on) > state.out_pool.size:
        raise wrong(f"{on!r} names no GPUs for job {j} (legal: (node, GPUs) for at most {state.out_pool.size} nodes)")
    for k, (node, count) in enumerate(on):
        if not (0 <= node < size and count >= 1):
            raise wrong(f"job {j} is started on {count} GPUs of node {node}: there is no such node, or no GPU is meant")
        if not eligible[node]:
            raise wrong(f"job {j} is started on node {node}, whose GPUs it may not use")
        given = sum(other for name, other in on[:k] if name == node)
        if count + given > free[node]:
            raise wrong(f"job {j} is started on {count + given} GPUs of node {node}: {free[node]} are free")
        state.out_pool[k], state.out_count[k] = node, count
        total += count
    if total != gang:
        raise wrong(f"job {j} is started on {total} GPUs; its gang has {gang}")
    return len(on)


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float | np.number)
