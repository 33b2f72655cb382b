"""`run_policy`: an instance, a policy and a placement go in, a `Run` comes out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from optsched.compiled import Stopwatch, slice_of
from optsched.errors import InputError, SimulationError
from optsched.problem.instance import Instance
from optsched.simulation.decision_rule import DecisionRule
from optsched.simulation.decisions import Decisions
from optsched.simulation.entry_points import EntryPoints
from optsched.simulation.instant import last_of_instant
from optsched.simulation.neighbourhood import Neighbourhood
from optsched.simulation.ordered import NEEDS_ROOM, PAUSED, THRASHES, ordered_loop
from optsched.simulation.placing import Placement
from optsched.simulation.policy import Knowledge, KnownJobs, Order, OrderedPolicy, Policy
from optsched.simulation.policy_hooks import PolicyHooks
from optsched.simulation.run import Run, result
from optsched.simulation.shared_run import rates_of, shared_result
from optsched.simulation.state import THRASHING, Sharing, Site, State, grown, log_room, new_state
from optsched.simulation.view import EngineView
from optsched.speeds.duration import seconds_alone

Advance = Callable[[int, int], None]
SLICE = 200_000  # events between two reports of progress


def run_policy(
    instance: Instance,
    policy: Policy | OrderedPolicy,
    placement: Placement,
    *,
    name: str | None = None,
    progress: Advance | None = None,
) -> Run:
    """Replay an instance under a policy and a placement rule.

    Problem P | r_j, size_j, online-r_j (, pmtn) | any objective: continuous time, deterministic. Events are applied in
    order of (time, kind, job): completions, changes of level and promotions, then arrivals, then the policy's own wakes.
    All those of one instant (times that differ by rounding alone: `optsched.simulation.instant`) are applied, each at its
    own time, before the policy is asked once, at the last of them; its decisions are carried out one after the other. A
    job that it stops and starts again at that instant on the same GPUs goes on as if nothing had been said: no restart is
    charged (`optsched.simulation.kernel`).

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
    instance.require_whole_jobs(name)
    knowledge = Knowledge(policy.knowledge)
    clock, alone = Stopwatch(), seconds_alone(instance)  # says what is wrong with speeds
    hooks, jobs = PolicyHooks(policy, instance), KnownJobs(instance, knowledge, alone)
    shares = bool(getattr(policy, "shares", False))
    rates = rates_of(instance, name) if shares else None
    pooled = placement.pooled and not getattr(policy, "names_nodes", False)
    rule: DecisionRule | None = None
    given: Any = hooks.accelerator(jobs)
    if callable(getattr(policy, "order", None)):
        given = cast("OrderedPolicy", policy).order(jobs)
    if given is not None and not isinstance(given, DecisionRule):
        order = _legal(given, name, instance.n)
        state, site = new_state(instance, order, placement)
        state = _run_order(state, site, placement, name, progress)
        preemptive = order.preemptive
    else:
        order = _legal(Order(key=instance.arrival, restart=getattr(policy, "restart", 0.0)), name, instance.n)
        sharing = None if rates is None else Sharing(rates, listed=False)
        state, site = new_state(instance, order, placement, pooled=pooled, sharing=sharing)
        if given is None:
            state = _run_python(state, site, placement, hooks, knowledge, progress)
        else:
            state, rule = _run_rule(state, site, placement, given, name, progress)
        preemptive = False
    told = hooks.told(rule)
    if rates is not None:
        return shared_result(state, site, instance, rates, name, knowledge, clock.seconds, **told)
    return result(state, instance, pooled, name, knowledge, preemptive, clock.seconds, **told)


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


def _run_order(state: State, site: Site, placement: Placement, name: str, progress: Advance | None) -> State:
    loop = ordered_loop(site)
    while True:
        status = loop(placement.place, state, site, slice_of(loop, SLICE))
        if progress is not None:
            progress(int(state.world[0].finished), state.jobs.size)
        if status == NEEDS_ROOM:
            state = grown(state)
        elif status == THRASHES:
            raise _thrashes(state, name)
        elif status != PAUSED:
            return state


def _run_rule(
    state: State, site: Site, placement: Placement, rule: DecisionRule, name: str, progress: Advance | None
) -> tuple[State, DecisionRule]:
    while True:
        status = rule.run(placement.place, state, site, rule.memory, slice_of(rule.run, SLICE))
        if progress is not None:
            progress(int(state.world[0].finished), state.jobs.size)
        if status == NEEDS_ROOM:
            state, rule = grown(state), rule.grown()
        elif status == THRASHES:
            raise _thrashes(state, name)
        elif status != PAUSED:
            return state, rule


def _thrashes(state: State, name: str) -> SimulationError:
    return SimulationError(
        f"policy {name} at {state.world[0].now:g} s after the first arrival: {THRASHING} segments in a row did no work, "
        "jobs are stopped before their restart is over"
    )


def _run_python(
    state: State,
    site: Site,
    placement: Placement,
    hooks: PolicyHooks,
    knowledge: Knowledge,
    progress: Advance | None,
) -> State:
    policy, instance = hooks.policy, hooks.instance
    names_nodes = bool(getattr(policy, "names_nodes", False))
    beside = None if site.neighbours is None else Neighbourhood(state, site.neighbours, instance)
    engine = EntryPoints(state, site)
    decisions = Decisions(engine, placement, instance, policy.name, beside, names_nodes=names_nodes)
    view = EngineView(engine, placement, instance, knowledge, hooks.predicted, beside)
    hooks.begin(view)
    room, n, w, reported = log_room(instance.cluster.gpus), instance.n, state.world, 0
    arrivals, segment_job = state.jobs["nth"], state.segments["job"]
    # the world's fields, to be read at every event
    now, tick, came, ended, logged = (w[name] for name in ("now", "tick", "next", "segments", "logged"))
    starts, stops, finished, fruitless, events = (
        w[name] for name in ("starts", "stops", "finished", "fruitless", "events")
    )
    while True:
        if segment_job.size - ended[0] < room or engine.state.parts.size - logged[0] < room:
            engine.grow()
            segment_job = engine.state.segments["job"]
        t = engine.next_time()
        if t == math.inf or finished[0] == n:
            return engine.state
        if fruitless[0] >= THRASHING:
            raise _thrashes(state, policy.name)
        first, last, moves = int(came[0]), int(ended[0]), int(starts[0] + stops[0])
        tick[0] = decisions.wakes.of_instant(last_of_instant(t))
        engine.apply_events(t)
        arrived = arrivals[first : came[0]].tolist()
        done = segment_job[last : ended[0]].tolist()  # only completions end a segment at an event
        present = float(now[0])
        hooks.hear(present, arrived, done)
        view.refresh(arrived, done)
        decisions.apply(policy.decide(view))
        quiet, acted = not (arrived or done), int(starts[0] + stops[0]) != moves
        tick[0] = math.inf
        event = engine.next_time() if quiet else math.inf
        tick[0] = decisions.wakes.due(present, event, quiet=quiet, acted=acted)
        if progress is not None and events[0] - reported > 1000:
            reported = int(events[0])
            progress(int(finished[0]), n)
