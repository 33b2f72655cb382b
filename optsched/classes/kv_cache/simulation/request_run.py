"""`run_requests`: requests and a policy go in, a `RequestRun` comes out. The loop itself: `rounds`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from optsched.classes.kv_cache.problem.request_schedule import executions
from optsched.classes.kv_cache.problem.requests import TICK, Requests, requests_of
from optsched.classes.kv_cache.simulation import rounds
from optsched.classes.kv_cache.simulation.best_batches import batch_ranks
from optsched.classes.kv_cache.simulation.request_policy import KnownRequests, RequestPolicy
from optsched.compiled import Stopwatch, slice_of, worked
from optsched.errors import InputError
from optsched.problem.arrays import Ints
from optsched.problem.instance import Instance
from optsched.simulation.engine import PolicyHooks
from optsched.simulation.metrics import HOUR, mean_of, without_overhead
from optsched.simulation.placement import Placement
from optsched.simulation.policy import Knowledge
from optsched.simulation.run import RUNS, Run, RunKind

SLICE = 2_000_000  # tokens between two reports of progress
Progress = Callable[[int, int], None]


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
        schedule, requests, found = self.relative.schedule, requests_of(self.relative.instance), super().metrics
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
    progress: Progress | None = None,
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
        The jobs are no requests, or batches are served with predictions that are not known at the beginning.
    """
    requests, clock, hooks = requests_of(instance), Stopwatch(), PolicyHooks(policy, instance)
    s, name = _serve(requests, policy, hooks, progress), name or policy.name
    c, scale = s.counters, TICK if requests.affine else 1
    count = int(c[rounds.LOGGED])
    times = (s.start[:count] / scale, s.end[:count] / scale, s.tokens[:count].astype(np.float64))
    schedule = executions(instance, s.job[:count].copy(), *times, name)
    numbers = Knowledge(policy.knowledge), False, int(c[rounds.EVENTS]), int(c[rounds.THROWN]), clock.seconds
    notes = {"first_token": np.where(schedule.finished, s.first / scale, np.nan)}
    return RequestRun(schedule, name, *numbers, hooks.predicted, notes, ("first_token",))


def _serve(
    requests: Requests, policy: RequestPolicy, hooks: PolicyHooks, progress: Progress | None
) -> rounds.RoundState:
    n, predicted, scale = requests.n, hooks.predicted, TICK if requests.affine else 1
    believed, rank = np.ones(n, dtype=np.int64), np.zeros(n)
    learns = predicted is not None and getattr(policy.make_predictor(), "learns", True)
    if learns and policy.batches:
        raise InputError("batches need lengths that are known at first", field="predictor", legal="perfect, noisy")

    def arrive(jobs: Ints, ended: Ints, now: float) -> None:
        # what ended is learnt before what arrives is predicted
        if predicted is not None:
            hooks.hear(now, jobs.tolist(), ended.tolist())
            length = np.ceil(policy.share * predicted[jobs])
            believed[jobs] = np.clip(length, 1, requests.cells - requests.prompt[jobs])
        times = requests.arrival[jobs], requests.weight[jobs]
        if policy.exact:
            rank[jobs] = batch_ranks(requests.arrival[jobs], requests.prompt[jobs], believed[jobs], requests.cells)
        else:
            rank[jobs] = policy.ranks(KnownRequests(*times, requests.prompt[jobs], believed[jobs]))

    if not learns:
        arrive(np.lexsort((np.arange(n), requests.arrival)), np.zeros(0, dtype=np.int64), 0.0)
    s, heard = rounds.new_state(requests, policy, believed, rank), 0
    c = s.counters
    c[rounds.KNOWN] = 0 if learns else n
    while True:
        before = int(c[rounds.EVENTS])
        status = rounds.run_rounds(s, slice_of(rounds.run_rounds, SLICE))
        worked(rounds.run_rounds, int(c[rounds.EVENTS]) - before)
        logged = int(c[rounds.LOGGED])
        if status == rounds.LOG_FULL:
            s = rounds.grown(s)
        elif status == rounds.ASKED:
            come = int(np.searchsorted(s.arrival[s.nth], c[rounds.NOW], side="right"))
            ended = s.job[heard:logged][s.tokens[heard:logged] > 0]
            arrive(s.nth[c[rounds.KNOWN] : come], ended, float(c[rounds.NOW]) / scale)
            c[rounds.KNOWN], heard = come, logged
        elif progress is not None:
            progress(int((s.tokens[:logged] > 0).sum()), n)
        if status == rounds.FINISHED:
            return s


RUNS.register("kv-cache", RunKind(run=RequestRun, engine=run_requests))
