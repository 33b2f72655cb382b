"""`run_requests`: requests and a policy go in, a `RequestRun` comes out; the loop is `optsched.classes.kv_cache.simulation.rounds`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from optsched.classes.kv_cache.problem.request_schedule import executions
from optsched.classes.kv_cache.problem.requests import TICK, Requests, requests_of
from optsched.classes.kv_cache.simulation.request_policy import KnownRequests, RequestPolicy
from optsched.classes.kv_cache.simulation.rounds import (
    ASKED,
    EVENTS,
    KNOWN,
    LOG_FULL,
    LOGGED,
    NOW,
    PAUSED,
    THROWN,
    RoundState,
    grown,
    new_state,
    run_rounds,
)
from optsched.compiled import Stopwatch, slice_of, worked
from optsched.errors import InputError
from optsched.problem.arrays import Ints
from optsched.problem.instance import Instance
from optsched.simulation.adopted import adopt
from optsched.simulation.engine import PolicyHooks
from optsched.simulation.metrics import HOUR, mean_of, without_overhead
from optsched.simulation.placement import Placement
from optsched.simulation.policy import Knowledge
from optsched.simulation.run import RUNS, Run, RunKind

SLICE = 2_000_000  # tokens between two reports of progress


@dataclass(frozen=True, eq=False, repr=False)
class RequestRun(Run):
    """A `Run` of requests; ``preemptions`` counts requests that were thrown out and lost their tokens.

    The note ``first_token`` has the moments at which requests got the first token of the start that completed them.
    """

    @property
    def schedule_class(self) -> str:
        """``kv-cache``."""
        return "kv-cache"

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """Metrics of `Run`, and the mean and 95th percentile of the time to first token.

        The worker is busy in the share of its cells that completed executions hold: ``utilization``, and GPU-hours.
        """
        schedule, requests = self.relative.schedule, requests_of(self.relative.instance)
        found = super().metrics
        counts, job = schedule.work > 0, schedule.job
        cells = requests.prompt[job] + (requests.output[job] + 1) / 2  # mean of an execution
        used = float((cells * (schedule.end - schedule.start))[counts].sum()) / (requests.cells * HOUR)
        waited = (self.relative.notes["first_token"] - requests.arrival)[schedule.finished]
        return {
            **found,
            **without_overhead(schedule, used, found["gpu_hours"]["waiting"]),
            "mean_ttft": mean_of(waited) if waited.size else None,
            "p95_ttft": float(np.percentile(waited, 95)) if waited.size else None,
        }


def run_requests(
    instance: Instance,
    policy: RequestPolicy,
    placement: Placement,
    *,
    name: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> RequestRun:
    """Replay an instance of requests, round by round; deterministic.

    Parameters
    ----------
    instance
        Requests and one worker.
    policy
        A policy for requests.
    placement
        Not used: there is one worker.
    name
        Name of the run in reports; None: that of the policy.
    progress
        Called with (finished requests, all requests) from time to time.

    Raises
    ------
    InputError
        The jobs are no requests.
    """
    adopted = adopt(policy)
    assert isinstance(adopted, RequestPolicy)
    policy, name = adopted, name or adopted.name
    requests, clock, hooks = requests_of(instance), Stopwatch(), PolicyHooks(policy, instance)
    state = _serve(requests, policy, hooks, progress)
    count, c = int(state.counters[LOGGED]), state.counters
    scale = TICK if requests.affine else 1
    start, end, first = (times / scale for times in (state.start[:count], state.end[:count], state.first))
    schedule = executions(instance, state.job[:count].copy(), start, end, state.tokens[:count].astype(np.float64), name)
    return RequestRun(
        schedule,
        name,
        Knowledge(policy.knowledge),
        preemptive=False,
        events=int(c[EVENTS]),
        preemptions=int(c[THROWN]),
        seconds=clock.seconds,
        predicted=hooks.predicted,
        notes={"first_token": np.where(schedule.finished, first, np.nan)},
        noted_times=("first_token",),
    )


def _serve(
    requests: Requests, policy: RequestPolicy, hooks: PolicyHooks, progress: Callable[[int, int], None] | None
) -> RoundState:
    n, predicted = requests.n, hooks.predicted
    believed, rank = np.ones(n, dtype=np.int64), np.zeros(n)
    learns = predicted is not None and getattr(policy.make_predictor(), "learns", True)
    if learns and policy.rules.batches:
        raise InputError(
            "batches need lengths that are known at the beginning", field="predictor", legal="perfect, noisy"
        )

    def arrive(jobs: Ints, ended: Ints, now: float) -> None:
        # what ended is learnt before what arrives is predicted
        lengths = None
        if predicted is not None:
            hooks.hear(now, jobs.tolist(), ended.tolist())
            most = requests.cells - requests.prompt[jobs]
            lengths = np.clip(np.ceil(policy.believed(predicted[jobs])), 1, most).astype(np.int64)
            believed[jobs] = lengths
        facts = requests.arrival[jobs], requests.prompt[jobs], requests.weight[jobs]
        rank[jobs] = policy.ranks(KnownRequests(*facts, lengths))

    order, ended = np.lexsort((np.arange(n), requests.arrival)), 0
    if not learns:
        arrive(order, order[:0], 0.0)
    state = new_state(requests, policy.rules, believed, rank)
    c = state.counters
    c[KNOWN] = 0 if learns else n
    while True:
        before = int(c[EVENTS])
        status = run_rounds(state, slice_of(run_rounds, SLICE))
        worked(run_rounds, int(c[EVENTS]) - before)
        if status == LOG_FULL:
            state = grown(state)
        elif status == ASKED:
            come = int(np.searchsorted(state.arrival[state.nth], c[NOW], side="right"))
            rows = np.arange(ended, c[LOGGED])
            ended = int(c[LOGGED])
            jobs = state.job[rows[state.tokens[rows] > 0]]
            arrive(state.nth[c[KNOWN] : come], jobs, float(c[NOW]) / (TICK if requests.affine else 1))
            c[KNOWN] = come
        elif progress is not None:
            progress(int((state.tokens[: c[LOGGED]] > 0).sum()), n)
        if status not in (LOG_FULL, ASKED, PAUSED):
            return state


RUNS.register("kv-cache", RunKind(run=RequestRun, engine=run_requests))
