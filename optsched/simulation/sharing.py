"""`run_sharing_policy`: jobs that share GPUs. An instance with interference and a policy go in, a `SharedRun` comes out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numba
import numpy as np
import numpy.typing as npt

from optsched.compiled import Function, Stopwatch, slice_of
from optsched.errors import InputError, KnowledgeError, SimulationError
from optsched.problem.instance import Instance
from optsched.problem.schedule import SharedSchedule, node_first
from optsched.simulation import sharing_state as at
from optsched.simulation.metrics import sharing_metrics
from optsched.simulation.policy import Knowledge
from optsched.simulation.run import Run
from optsched.simulation.sharing_kernel import ASKED, OVER, forget_started, run_sharing, start
from optsched.simulation.sharing_policy import Choosing, Share, SharingJobs, SharingOrder, SharingPolicy
from optsched.simulation.sharing_rule import SIGNATURE, nobody
from optsched.simulation.sharing_state import RUNS, WAITS, SharingState, new_sharing_state
from optsched.speeds.gpu_sharing import SharingRates, sharing_rates
from optsched.speeds.interference_sources import unmeasured_note

SLICE = 20_000  # events between two reports of progress

Gpu = tuple[int, int]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class SharedRun(Run):
    """A `Run` in which two jobs may be on a GPU, without preemption; its schedule is a `SharedSchedule`."""

    @property
    def schedule_class(self) -> str:
        """``gpu-sharing``."""
        return "gpu-sharing"

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """See `optsched.simulation.metrics.sharing_metrics`."""
        return sharing_metrics(cast(SharedSchedule, self.schedule))


def run_sharing_policy(
    instance: Instance,
    policy: SharingPolicy,
    *,
    name: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SharedRun:
    """Replay an instance whose jobs may share GPUs. Continuous time, deterministic.

    Jobs of kinds that the table of interference does not have run beside others at its ``ratio``; a warning says so, once.

    Raises
    ------
    InputError
        The instance has no interference, or the order has illegal values.
    SimulationError
        The policy chose GPUs that are not possible, or lets a job wait for ever.

    Complexity: see `optsched.simulation.sharing_kernel`.
    """
    name = name or policy.name
    instance.require_whole_jobs(name)
    if instance.interference is None:
        legal = "Instance(interference=...), or --interference XI|TABLE"
        raise InputError(f"{name} shares GPUs, and nothing says what that costs", field="interference", legal=legal)
    _say_unmeasured(instance)
    knowledge = Knowledge(policy.knowledge)
    clock = Stopwatch()
    rates = sharing_rates(instance)
    order = _legal(policy.sharing(SharingJobs(instance, knowledge, rates.alone)), name, instance.n, policy)
    state = new_sharing_state(instance, rates, order, python=order.rule is None)
    view = _View(state, instance, knowledge, name)
    rule = nobody if order.rule is None else order.rule
    while True:
        status = run_sharing(rule, state, slice_of(run_sharing, SLICE))
        if status == OVER:
            break
        if status == ASKED:
            view.ask(cast(Choosing, policy), order.strict)
        elif progress is not None:
            progress(int(state.counters[at.FINISHED]), instance.n)
    return _result(state, instance, rates, name, knowledge, clock.seconds)


def _say_unmeasured(instance: Instance) -> None:
    note = unmeasured_note(instance)
    if note:
        warnings.warn(note, UserWarning, stacklevel=4)


def _legal(order: SharingOrder, name: str, n: int, policy: SharingPolicy) -> SharingOrder:
    # The compiled loop trusts shapes and values: what is wrong must be found here.
    if not isinstance(order, SharingOrder):
        raise InputError("sharing(jobs) gives no order", field=name, value=order, legal="optsched.SharingOrder(...)")
    key = np.asarray(order.key, dtype=np.float64)
    if key.shape != (n,) or np.isnan(key).any():
        raise InputError("not legal", field=f"{name}: key", legal=f"one number for each of {n} jobs")
    if not (math.isfinite(order.interval) and order.interval >= 0):
        legal = "a finite number of seconds >= 0"
        raise InputError("not legal", field=f"{name}: interval", value=order.interval, legal=legal)
    if order.rule is None and not callable(getattr(policy, "choose", None)):
        raise InputError("nobody chooses GPUs", field=name, legal="a rule, or choose(view, job)")
    declared = order.rule.declared if isinstance(order.rule, Function) else ()
    if order.rule is not None and not (numba.config.DISABLE_JIT or declared == (SIGNATURE,)):
        legal = "a function under @optsched.simulation.sharing_rule.sharing_rule, or none and choose(view, job)"
        raise InputError("not compiled", field=f"{name}: rule", value=order.rule, legal=legal)
    return order


class _View:
    """See `optsched.simulation.sharing_policy.SharingView`."""

    def __init__(self, state: SharingState, instance: Instance, knowledge: Knowledge, name: str) -> None:
        self.state, self._instance, self._name = state, instance, name
        self._clairvoyant = knowledge is Knowledge.CLAIRVOYANT

    @property
    def now(self) -> float:
        return float(self.state.clock[at.NOW])

    @property
    def epoch(self) -> float:
        """What the log's clock says at time 0."""
        return self._instance.zero

    @property
    def waiting(self) -> tuple[int, ...]:
        listed = self.state.waiting[: self.state.counters[at.WAITING]].tolist()
        return tuple(j for j in listed if self.state.status[j] == WAITS)

    @property
    def running(self) -> tuple[int, ...]:
        return tuple(sorted(self.state.running[: self.state.counters[at.RUNNING]].tolist()))

    def residents(self, gpu: Gpu) -> tuple[int, ...]:
        return tuple(sorted(j for j in self.state.resident[self._number(gpu)].tolist() if j >= 0))

    def held(self, job: int) -> tuple[Gpu, ...]:
        s = self.state
        if s.status[job] != RUNS:
            return ()
        return tuple(self._name_of(g) for g in s.gang[s.first[job] : s.first[job + 1]].tolist())

    def free(self, job: int) -> list[Gpu]:
        return self._with(job, 0, 0)

    def open(self, job: int, option: int = 0) -> list[Gpu]:
        return self._with(job, option, 1)

    def _with(self, job: int, option: int, jobs: int) -> list[Gpu]:
        s = self.state
        suits = s.eligible[s.suits[job]][s.gpu_node]
        rows = np.flatnonzero(suits & (s.jobs_on == jobs) & (s.room >= s.memory[job, option]))
        return [self._name_of(g) for g in rows.tolist() if self._stands(job, g)]

    def _stands(self, job: int, g: int) -> bool:
        # beside whoever is there
        others = [j for j in self.state.resident[g].tolist() if j >= 0]
        return all(np.isfinite(self.slowdown(job, other)) for other in others)

    def options(self, job: int) -> int:
        return int(self.state.options[job])

    def alone(self, job: int, option: int = 0) -> float:
        if not self._clairvoyant:
            raise KnowledgeError(f"policy {self._name} is not clairvoyant and asked how long a job takes alone")
        s = self.state
        if s.status[job] == RUNS:
            done = (s.clock[at.NOW] - s.paid[job]) / (s.pace[job] * s.slow[job])
            return float(max(s.left[job] - done, 0.0) * s.pace[job])
        return float(s.alone[job] * s.stretch[job, option, s.spans[job]])

    def slowdown(self, job: int, other: int) -> float:
        return float(self.state.xi[self.state.kind[job], self.state.kind[other]])

    def _number(self, gpu: Gpu) -> int:
        node, index = gpu
        first = self.state.node_gpu
        if not (0 <= node < first.size - 1 and 0 <= index < first[node + 1] - first[node]):
            raise self._wrong(f"names GPU {gpu}", f"GPUs of {self._instance.cluster.spec}")
        return int(first[node] + index)

    def _name_of(self, g: int) -> Gpu:
        node = int(self.state.gpu_node[g])
        return node, int(g - self.state.node_gpu[node])

    def _wrong(self, message: str, legal: str) -> SimulationError:
        return SimulationError(f"policy {self._name} at {self.now + self.epoch:.12g} s: {message} (legal: {legal})")

    def ask(self, policy: Choosing, strict: bool) -> None:
        """Ask about every waiting job in order, and start what the policy says."""
        for job in self.waiting:
            share = policy.choose(cast(Any, self), job)
            if share is not None:
                self._start(job, share)
            elif strict:
                break
        forget_started(self.state)

    def _start(self, job: int, share: Share) -> None:
        s, named = self.state, f"job {self._instance.ids[job]!r}"
        if not isinstance(share, Share):
            raise self._wrong(f"chooses {share!r} for {named}", "optsched.Share(gpus, option), or None")
        if not 0 <= share.option < s.options[job]:
            raise self._wrong(f"chooses sub-batch {share.option} for {named}", f"0..{s.options[job] - 1}")
        numbers = [self._number(gpu) for gpu in share.gpus]
        if len(set(numbers)) != len(numbers) or len(numbers) != s.gpus[job]:
            raise self._wrong(f"chooses {len(set(numbers))} GPUs for {named}", f"{s.gpus[job]} different ones")
        for g in numbers:
            suits = s.eligible[s.suits[job], s.gpu_node[g]] and s.jobs_on[g] <= 1 and self._stands(job, g)
            if not suits or s.room[g] < s.memory[job, share.option]:
                legal = "GPUs that suit it, with at most one job that it may run beside, and room for it"
                raise self._wrong(f"puts {named} on GPU {self._name_of(g)}", legal)
        s.out_gpu[: len(numbers)] = numbers
        start(s, job, share.option)


def _result(
    state: SharingState, instance: Instance, rates: SharingRates, name: str, knowledge: Knowledge, seconds: float
) -> SharedRun:
    waits = np.flatnonzero(state.status == WAITS)
    if waits.size:
        raise SimulationError(f"policy {name}: job {instance.ids[int(waits[0])]!r} waits for ever")
    if (state.jobs_on != 0).any() or (state.resident >= 0).any():
        raise SimulationError("GPUs are still held after the last event")
    order = np.lexsort((np.arange(instance.n), state.begun)).astype(np.int64)
    schedule = _schedule(state, instance, rates, order, name)
    return SharedRun(schedule, name, knowledge, False, int(state.counters[at.EVENTS]), 0, seconds)


def _schedule(state: SharingState, instance: Instance, rates: SharingRates, order: Ints, name: str) -> SharedSchedule:
    gangs = [state.gang[state.first[j] : state.first[j + 1]] for j in order.tolist()]
    gpu = np.concatenate(gangs) if gangs else np.zeros(0, dtype=np.int64)
    node = state.gpu_node[gpu]
    return SharedSchedule(
        instance,
        order,
        state.begun[order],
        state.ended[order],
        instance.work[order].astype(np.float64),
        np.concatenate([[0], np.cumsum(instance.gpus[order])]).astype(np.int64),
        node,
        gpu - node_first(instance)[node],
        name,
        rates.steps[order, state.option[order]],
    )
