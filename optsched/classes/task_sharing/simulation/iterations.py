"""`run_iterations`: the task level. Jobs that have tasks, a policy and a placement go in, a `TaskRun` comes out.

Every forward, backward and all-reduce is an event at its exact time, there are no ticks. Jobs are placed once, share GPUs as
far as memory goes, and a GPU runs one whole task at a time; transfers share network interfaces at rates that change with
every start and end. The loop itself: `task_kernel`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numba
import numpy as np
from numba.extending import is_jitted

from optsched.classes.task_sharing.problem.task_log import TaskLog, TaskSchedule
from optsched.classes.task_sharing.simulation import links as network
from optsched.classes.task_sharing.simulation.task_kernel import (
    ASKED,
    LOG_FULL,
    PAUSED,
    STUCK,
    run_tasks,
    start_waiting,
)
from optsched.classes.task_sharing.simulation.task_metrics import task_metrics
from optsched.classes.task_sharing.simulation.task_policy import LinkView, TaskJobs, TaskOrder, TaskPolicy, always
from optsched.classes.task_sharing.simulation.task_state import (
    ASK,
    FINISHED,
    LOGGED,
    PLACED,
    READY,
    TASKS,
    TaskState,
    clock_zero,
    grown,
    new_task_state,
)
from optsched.compiled import Function, Stopwatch, slice_of, worked
from optsched.errors import InputError, SimulationError, check_legal
from optsched.problem.arrays import Floats
from optsched.problem.gpu_names import node_first
from optsched.problem.instance import Instance
from optsched.simulation.adopted import adopt
from optsched.simulation.metrics import offered_seconds
from optsched.simulation.placement import Placement
from optsched.simulation.policy import Knowledge
from optsched.simulation.run import CONSERVED, RUNS, Run, RunKind
from optsched.speeds.duration import seconds_alone

SLICE = 500_000  # tasks between two reports of progress
MOST_LOGGED = 20_000_000  # tasks that are written down unless more are asked for: some 40 bytes each, 240 to judge them


@dataclass(frozen=True, eq=False, repr=False)
class TaskRun(Run):
    """A `Run` at the task level; ``events`` counts forwards, backwards and all-reduces that ended.

    ``transfers`` all-reduces, of which ``contended`` found another one on one of their nodes; ``gpu_busy`` f64[G] and
    ``nic_busy`` f64[N] seconds in which a GPU computed and an interface moved bytes; ``spanning`` jobs ran on several nodes.
    """

    transfers: int = 0
    contended: int = 0
    spanning: int = 0
    gpu_busy: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    nic_busy: Floats = field(default_factory=lambda: np.zeros(0), repr=False)

    @property
    def schedule_class(self) -> str:
        """``task-sharing``: GPUs are shared, task by task."""
        return "task-sharing"

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """See `task_metrics`."""
        return task_metrics(self.schedule, self.gpu_busy)

    @property
    def nic_share(self) -> float:
        """Share of the time from first arrival to last completion in which a network interface is busy, mean over nodes."""
        offered = offered_seconds(self.schedule)
        return float(self.nic_busy.mean() / offered) if offered > 0 else 0.0


def run_iterations(
    instance: Instance,
    policy: TaskPolicy,
    placement: Placement,
    *,
    name: str | None = None,
    record: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> TaskRun:
    """Replay an instance whose jobs have tasks. Continuous time, deterministic.

    Parameters
    ----------
    instance
        Jobs with tasks, and a cluster.
    policy
        A task policy, or a plain object with ``tasks(jobs)``.
    placement
        A rule that also knows shared GPUs (``lwf``, ``list``, ``first-fit``, ``random``, ``buddy``).
    name
        Name of the run in reports; None: that of the policy.
    record
        Keep a log of all tasks. The referee needs the log to judge more than the residence of jobs. None: keep it unless
        there are more than `MOST_LOGGED` tasks.
    progress
        Called with (finished jobs, all jobs) from time to time.

    Raises
    ------
    InputError
        The jobs have no tasks, or take no time; the placement knows whole GPUs only; an order has illegal values.
    SimulationError
        The policy lets a transfer wait for ever, or a transfer did not move its message exactly.

    Notes
    -----
    Complexity: see `task_kernel`.
    """
    adopted = adopt(policy)
    assert isinstance(adopted, TaskPolicy)
    policy, name = adopted, name or adopted.name
    knowledge = Knowledge(policy.knowledge)
    if not instance.at_task_level:
        legal = "a policy for whole jobs, or an instance with tasks (e.g. contention-cluster)"
        whose = "some of these jobs" if instance.tasks else "these jobs"
        raise InputError(f"it schedules tasks, {whose} have none", field="policy", value=name, legal=legal)
    if placement.shared is None:
        legal = "a rule for shared GPUs: lwf, list, first-fit, random"
        raise InputError("it knows whole GPUs only", field="placement", value=placement.name, legal=legal)
    seconds_alone(instance)  # says which job takes no time
    if record is None:
        record = float((instance.iterations * (2 * instance.gpus + 1)).sum()) <= MOST_LOGGED
    clock = Stopwatch()
    order = _legal(policy.tasks(TaskJobs(instance, knowledge, clock_zero(instance))), name, instance.n, policy)
    state = new_task_state(instance, order, placement, record=record, python=order.admit is None)
    state = _run(state, order, placement, policy, instance, name, progress)
    return _result(state, instance, name, knowledge, clock.seconds, record)


def _legal(order: TaskOrder, name: str, n: int, policy: TaskPolicy) -> TaskOrder:
    # The compiled loop trusts shapes and values: what is wrong must be found here.
    if not isinstance(order, TaskOrder):
        raise InputError("tasks(jobs) gives no order", field=name, value=order, legal="optsched.TaskOrder(...)")
    # by us or by numba's own njit; where numba is switched off, what it would compile is a plain function
    compiled = isinstance(order.admit, Function) or is_jitted(order.admit) or bool(numba.config.DISABLE_JIT)
    if order.admit is not None and not (compiled and callable(order.admit)):
        home = "optsched.classes.task_sharing.simulation.task_policy"
        legal = f"a function under @admission of {home}, or none and communicate(view)"
        raise InputError("not compiled", field=f"{name}: admit", value=order.admit, legal=legal)
    numbers = all(isinstance(number, int | float | np.number) for number in order.numbers)
    check_legal(numbers, f"{name}: numbers", order.numbers, "numbers")
    queue = np.asarray(order.queue, dtype=np.float64)
    if queue.shape != (n,) or np.isnan(queue).any():
        raise InputError("invalid", field=f"{name}: queue", legal=f"one number for each of {n} jobs")
    for which in ("gpu", "link"):
        try:
            getattr(order, which).columns(n)
        except (AttributeError, TypeError, ValueError) as error:
            raise InputError(f"invalid: {error}", field=f"{name}: {which}", legal=f"keys of {n} jobs") from None
    if order.admit is None and "communicate" not in vars(policy) and type(policy).communicate is TaskPolicy.communicate:
        raise InputError("nobody decides on transfers", field=name, legal="a rule to admit, or communicate(view)")
    return order


def _run(
    state: TaskState,
    order: TaskOrder,
    placement: Placement,
    policy: TaskPolicy,
    instance: Instance,
    name: str,
    progress: Callable[[int, int], None] | None,
) -> TaskState:
    assert placement.shared is not None
    links, counters = state.links, state.counters
    view = LinkView(
        links,
        instance,
        name,
        Knowledge(policy.knowledge),
        clock_zero(instance),
        waiting=lambda: links.waiting[: counters[READY]],
        begin=lambda job: start_waiting(state, job),
    )
    admit = always if order.admit is None else order.admit
    while True:
        before = int(counters[TASKS])
        status = run_tasks(placement.shared.place, admit, state, slice_of(run_tasks, SLICE))
        worked(run_tasks, int(counters[TASKS]) - before)
        if status == LOG_FULL:
            state = grown(state)
        elif status == ASKED:
            chosen: Any = policy.communicate(view)  # of somebody's own class, perhaps
            if not (chosen is None or isinstance(chosen, Iterable)):
                legal = "jobs to start, or None"
                raise SimulationError(f"policy {name}: communicate gives {chosen!r} (expected: {legal})")
            for job in () if chosen is None else chosen:
                view.start(job)
            counters[ASK] = 0
        elif status == STUCK:
            waits = instance.ids[int(links.waiting[0])]
            raise SimulationError(
                f"policy {name} at {view.now + view.epoch:.12g} s: the all-reduce of job {waits!r} waits for ever"
            )
        elif progress is not None:
            progress(int(counters[FINISHED]), instance.n)
        if status not in (LOG_FULL, ASKED, PAUSED):
            return state


def _result(
    state: TaskState, instance: Instance, name: str, knowledge: Knowledge, seconds: float, record: bool
) -> TaskRun:
    schedule = _schedule(state, instance, name, record)
    _check_conservation(state, name)
    links = state.links
    return TaskRun(
        schedule,
        name,
        knowledge,
        preemptive=False,
        events=int(state.counters[TASKS]),
        preemptions=0,
        seconds=seconds,
        transfers=int(links.counters[network.STARTED]),
        contended=int(links.counters[network.CONTENDED]),
        spanning=int((links.span > 1).sum()),
        gpu_busy=state.gpu_busy,
        nic_busy=links.busy,
    )


def _schedule(state: TaskState, instance: Instance, name: str, record: bool) -> TaskSchedule:
    placed = np.flatnonzero(np.isfinite(state.placed))
    job = placed[np.lexsort((placed, state.placed[placed]))].astype(np.int64)
    gangs = state.gpus[job]
    workers = np.concatenate(
        [np.arange(state.first[j], state.first[j + 1]) for j in job.tolist()] or [np.zeros(0, np.int64)]
    )
    gpu = state.workers["gpu"][workers].astype(np.int64)
    node, zero = state.gpu_node[gpu], clock_zero(instance)
    rows = int(state.counters[LOGGED])
    log = TaskLog(
        state.log_job[:rows], state.log_worker[:rows], zero + state.log_start[:rows], zero + state.log_end[:rows]
    )
    return TaskSchedule(
        instance,
        job,
        zero + state.placed[job],
        zero + state.done[job],
        state.iteration[job].astype(np.float64),
        np.concatenate([[0], np.cumsum(gangs)]).astype(np.int64),
        node,
        gpu - node_first(instance)[node],
        name,
        log if record else None,
    )


def _check_conservation(state: TaskState, name: str) -> None:
    """Every transfer moved its message, every job did its tasks, every GPU and interface came back."""
    links = state.links
    sent = links.message[links.message > 0]
    shortest = float(sent.min(initial=np.inf)) * float(links.cost[network.SECONDS_PER_BYTE])  # seconds
    rounding = 16 * float(np.spacing(links.clock[network.NOW])) / shortest if shortest > 0 else 0.0
    if links.clock[network.WORST] > CONSERVED + rounding:
        raise SimulationError(
            f"{name}: a transfer moved {links.clock[network.WORST]:g} of its bytes too many or too few"
        )
    finished = np.isfinite(state.done)
    if finished.sum() != state.counters[PLACED] or (state.iteration[finished] != state.iterations[finished]).any():
        raise SimulationError(f"{name}: a job was placed and did not do its iterations")
    if (state.head >= 0).any() or (state.runs >= 0).any() or (links.head >= 0).any():
        raise SimulationError(f"{name}: GPUs or interfaces are still held after the last event")


RUNS.register("task-sharing", RunKind(run=TaskRun, engine=run_iterations))
