"""`run_sharing_policy`: jobs that share GPUs. An instance with interference and a policy go in, a `SharedRun` comes out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numba
import numpy as np

from optsched.compiled import Function, Stopwatch, slice_of
from optsched.errors import InputError, KnowledgeError, SimulationError
from optsched.problem.instance import Instance
from optsched.simulation.entry_points import EntryPoints
from optsched.simulation.neighbourhood import Gpu, Neighbourhood
from optsched.simulation.ordered import ASKED, NEEDS_ROOM, PAUSED, asking_loop, rule_loop
from optsched.simulation.placing import Placement
from optsched.simulation.policy import Knowledge, Order
from optsched.simulation.records import RUNNING, WAITING
from optsched.simulation.shared_run import SharedRun, rates_of, shared_result
from optsched.simulation.sharing_policy import Choosing, Share, SharingJobs, SharingOrder, SharingPolicy
from optsched.simulation.sharing_rule import SIGNATURE
from optsched.simulation.state import Neighbours, Sharing, Site, State, new_state

SLICE = 20_000  # events between two reports of progress
_NAMED = Placement("named", lambda *_: 0)  # who shares names its GPUs: no placement is asked


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
    rates = rates_of(instance, name)
    knowledge = Knowledge(policy.knowledge)
    clock = Stopwatch()
    order = _legal(policy.sharing(SharingJobs(instance, knowledge, rates.alone)), name, instance.n, policy)
    sharing = Sharing(rates, order.numbers)
    state, site = new_state(instance, Order(order.key, round=order.interval), _NAMED, sharing=sharing)
    view = _View(state, site, instance, knowledge, name)
    loop = asking_loop(site) if order.rule is None else rule_loop(site)
    while True:
        if order.rule is None:
            status = loop(state, site, slice_of(loop, SLICE))
        else:
            status = loop(order.rule, state, site, slice_of(loop, SLICE), order.strict)
        if status == ASKED:
            view.ask(cast(Choosing, policy), order.strict)
        elif status == NEEDS_ROOM:
            state = view.grow()
        elif status != PAUSED:
            waits = np.flatnonzero(state.jobs["status"] == WAITING)
            if waits.size:
                raise SimulationError(f"policy {name}: job {instance.ids[int(waits[0])]!r} waits for ever")
            return shared_result(state, site, instance, rates, name, knowledge, clock.seconds)
        if progress is not None and status == PAUSED:
            progress(int(state.world[0].finished), instance.n)


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
        self.state, self._engine, self._instance, self._name = state, EntryPoints(state, site), instance, name
        self._beside = Neighbourhood(state, cast(Neighbours, site.neighbours), instance)
        self._clairvoyant = knowledge is Knowledge.CLAIRVOYANT
        self.open, self.options, self.slowdown = self._beside.open, self._beside.options, self._beside.slowdown
        self.free = self._beside.idle

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

    def grow(self) -> State:
        """Twice the room in the log."""
        self._engine.grow()
        self.state = self._engine.state
        return self.state

    def residents(self, gpu: Gpu) -> tuple[int, ...]:
        try:
            return self._beside.residents(gpu)
        except ValueError as error:
            raise self._wrong(str(error)) from None

    def held(self, job: int) -> tuple[Gpu, ...]:
        return self._beside.held(self.state, job)

    def alone(self, job: int, option: int = 0) -> float:
        if not self._clairvoyant:
            raise KnowledgeError(f"policy {self._name} is not clairvoyant and asked how long a job takes alone")
        return self._beside.alone(job, option, self.now)

    def _wrong(self, message: str) -> SimulationError:
        return SimulationError(f"policy {self._name} at {self.now + self.epoch:.12g} s: {message}")

    def ask(self, policy: Choosing, strict: bool) -> None:
        """Ask about every waiting job in order, and start what the policy says."""
        for job in self.waiting:
            share = policy.choose(cast(Any, self), job)
            if share is not None:
                self._start(job, share)
            elif strict:
                break
        self._engine.forget_started()

    def _start(self, job: int, share: Any) -> None:
        named = f"job {self._instance.ids[job]!r}"
        if not isinstance(share, Share):
            legal = "optsched.Share(gpus, option), or None"
            raise self._wrong(f"chooses {share!r} for {named} (legal: {legal})")
        try:
            self._beside.choose(job, share.gpus, share.option)
        except ValueError as error:
            raise self._wrong(str(error).replace("%s", named)) from None
        self._engine.start(job, 0, share.option)
