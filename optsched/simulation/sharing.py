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
from optsched.simulation.entry_points import forget_started, start
from optsched.simulation.metrics import sharing_metrics
from optsched.simulation.ordered import ASKED, NEEDS_ROOM, PAUSED, run_rule, run_until_asked
from optsched.simulation.placing import Placement
from optsched.simulation.policy import Knowledge, Order
from optsched.simulation.records import RUNNING, WAITING
from optsched.simulation.run import Run
from optsched.simulation.sharing_policy import Choosing, Share, SharingJobs, SharingOrder, SharingPolicy
from optsched.simulation.sharing_rule import SIGNATURE
from optsched.simulation.state import NUMBER, Neighbours, Sharing, Site, State, grown, new_state
from optsched.speeds.gpu_sharing import SharingRates, sharing_rates
from optsched.speeds.interference_sources import unmeasured_note

SLICE = 20_000  # events between two reports of progress
_NAMED = Placement("named", lambda *_: 0)  # who shares names its GPUs: no placement is asked

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

    Complexity: see `optsched.simulation.executions`; plus the rule for every waiting job and event.
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
    sharing = Sharing(rates, order.numbers)
    state, site = new_state(instance, Order(order.key, round=order.interval), _NAMED, sharing=sharing)
    view = _View(state, site, instance, knowledge, name)
    while True:
        if order.rule is None:
            status = run_until_asked(state, site, slice_of(run_until_asked, SLICE))
        else:
            status = run_rule(order.rule, state, site, slice_of(run_rule, SLICE), order.strict)
        if status == ASKED:
            view.ask(cast(Choosing, policy), order.strict)
        elif status == NEEDS_ROOM:
            state = view.state = grown(state)
        elif status != PAUSED:
            return _result(state, site, instance, rates, name, knowledge, clock.seconds)
        if progress is not None and status == PAUSED:
            progress(int(state.world[0].finished), instance.n)


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

    def __init__(self, state: State, site: Site, instance: Instance, knowledge: Knowledge, name: str) -> None:
        self.state, self._site, self._instance, self._name = state, site, instance, name
        self._beside = cast(Neighbours, site.neighbours)
        self._clairvoyant = knowledge is Knowledge.CLAIRVOYANT

    @property
    def now(self) -> float:
        return float(self.state.world[0].now)

    @property
    def epoch(self) -> float:
        """What the log's clock says at time 0."""
        return self._instance.zero

    @property
    def waiting(self) -> tuple[int, ...]:
        listed = self.state.heap["number"][: self.state.world[0].queued].tolist()
        return tuple(j for j in listed if self.state.jobs[j].status == WAITING)

    @property
    def running(self) -> tuple[int, ...]:
        return tuple(np.flatnonzero(self.state.jobs["status"] == RUNNING).tolist())

    def residents(self, gpu: Gpu) -> tuple[int, ...]:
        return self._on(self._number(gpu))

    def held(self, job: int) -> tuple[Gpu, ...]:
        s, x = self.state, int(self.state.jobs[job].execution)
        if x < 0:
            return ()
        at = x * int(s.world[0].width)
        return tuple(self._name_of(g) for g in s.parts["pool"][at : at + s.executions[x].entries].tolist())

    def free(self, job: int) -> list[Gpu]:
        return self._with(job, 0, 0)

    def open(self, job: int, option: int = 0) -> list[Gpu]:
        return self._with(job, option, 1)

    def _with(self, job: int, option: int, jobs: int) -> list[Gpu]:
        gpus = self._beside.gpus
        suits = self._instance.eligible(job)[gpus["node"]]
        rows = np.flatnonzero(suits & (gpus["jobs"] == jobs) & (gpus["room"] >= self._beside.memory[job, option]))
        return [self._name_of(g) for g in rows.tolist() if self._stands(job, g)]

    def _stands(self, job: int, g: int) -> bool:
        # beside whoever is there
        return all(np.isfinite(self.slowdown(job, other)) for other in self._on(g))

    def _on(self, g: int) -> tuple[int, ...]:
        gpu = self._beside.gpus[g]
        return tuple(sorted(int(j) for j in (gpu.one, gpu.other) if j >= 0))

    def options(self, job: int) -> int:
        return int(self._beside.sharers[job].options)

    def alone(self, job: int, option: int = 0) -> float:
        if not self._clairvoyant:
            raise KnowledgeError(f"policy {self._name} is not clairvoyant and asked how long a job takes alone")
        x = int(self.state.jobs[job].execution)
        if x >= 0:
            run = self.state.executions[x]
            done = max(0.0, self.now - run.paid) / (run.pace * run.slow)
            return float(max(run.left - done, 0.0) * run.pace)
        sharer = self._beside.sharers[job]
        return float(sharer.alone * self._beside.stretch[job, option, sharer.spans])

    def slowdown(self, job: int, other: int) -> float:
        sharers = self._beside.sharers
        return float(self._beside.slowdown[sharers[job].model, sharers[other].model])

    def _number(self, gpu: Gpu) -> int:
        node, index = gpu
        size = self._instance.cluster.node_gpus
        if not (0 <= node < size.size and 0 <= index < size[node]):
            raise self._wrong(f"names GPU {gpu}", f"GPUs of {self._instance.cluster.spec}")
        return int(self._beside.nodes[node].first + index)

    def _name_of(self, g: int) -> Gpu:
        node = int(self._beside.gpus[g].node)
        return node, int(g - self._beside.nodes[node].first)

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
        s, beside, named = self.state, self._beside, f"job {self._instance.ids[job]!r}"
        if not isinstance(share, Share):
            raise self._wrong(f"chooses {share!r} for {named}", "optsched.Share(gpus, option), or None")
        if not 0 <= share.option < self.options(job):
            raise self._wrong(f"chooses sub-batch {share.option} for {named}", f"0..{self.options(job) - 1}")
        numbers = [self._number(gpu) for gpu in share.gpus]
        if len(set(numbers)) != len(numbers) or len(numbers) != self._instance.gpus[job]:
            legal = f"{self._instance.gpus[job]} different ones"
            raise self._wrong(f"chooses {len(set(numbers))} GPUs for {named}", legal)
        for g in numbers:
            gpu = beside.gpus[g]
            suits = self._instance.eligible(job)[gpu.node] and gpu.jobs <= 1 and self._stands(job, g)
            if not suits or gpu.room < beside.memory[job, share.option]:
                legal = "GPUs that suit it, with at most one job that it may run beside, and room for it"
                raise self._wrong(f"puts {named} on GPU {self._name_of(g)}", legal)
        s.out[NUMBER, : len(numbers)] = numbers
        start(s, self._site, job, 0, share.option)


def _result(
    state: State, site: Site, instance: Instance, rates: SharingRates, name: str, knowledge: Knowledge, seconds: float
) -> SharedRun:
    waits = np.flatnonzero(state.jobs["status"] == WAITING)
    if waits.size:
        raise SimulationError(f"policy {name}: job {instance.ids[int(waits[0])]!r} waits for ever")
    gpus = cast(Neighbours, site.neighbours).gpus
    if state.world[0].active != 0 or gpus["jobs"].any() or (gpus["one"] >= 0).any() or (gpus["other"] >= 0).any():
        raise SimulationError("GPUs are still held after the last event")
    schedule = _schedule(state, instance, rates, name)
    return SharedRun(schedule, name, knowledge, False, int(state.world[0].events), 0, seconds)


def _schedule(state: State, instance: Instance, rates: SharingRates, name: str) -> SharedSchedule:
    log = state.segments[: state.world[0].segments]
    log = log[np.lexsort((log["job"], log["start"]))]
    job = np.ascontiguousarray(log["job"])
    offset = np.concatenate([[0], np.cumsum(log["entries"])]).astype(np.int64)
    gpu = state.parts["pool"][np.repeat(log["first"] - offset[:-1], log["entries"]) + np.arange(offset[-1])]
    first = node_first(instance)
    node = np.searchsorted(first, gpu, side="right") - 1
    start, end, work = (np.ascontiguousarray(log[field]) for field in ("start", "end", "work"))
    steps = rates.steps[job, log["option"]]
    return SharedSchedule(instance, job, start, end, work, offset, node, gpu - first[node], name, steps)
