"""The compiled loop of the task level: forward, backward, barrier, all-reduce, at exact times.

One step: all events of the next instant (`optsched.simulation.next_event`: tasks that end, transfers that begin to
move or end, arrivals, in order of (time, kind, index)); at the last of their times, jobs that wait for memory are placed in
the order of their queue; transfers that are ready are asked about in order and start at once; idle GPUs take the ready task
of the job with the smallest key. Nobody is stopped, so that waiting costs no restart. Keys, loads and memory are
computed from whole numbers of tasks, so nothing drifts. Complexity per task: O(log G + residents of the GPU); per transfer
O(log n + nodes x transfers there).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from optsched.classes.task_sharing.simulation.links import (
    LATENT,
    NOW,
    begin_moving,
    begin_sending,
    end_transfer,
    is_asked,
    join,
    join_waiting,
    leave_waiting,
    set_key,
    start_transfer,
)
from optsched.classes.task_sharing.simulation.task_policy import ADMIT_SIGNATURE, Countdown, TaskOrder
from optsched.classes.task_sharing.simulation.task_state import (
    ASK,
    BACKWARD,
    BARRIER,
    FINISHED,
    FORWARD,
    FORWARD_RUNS,
    KEEP_LOG,
    LOGGED,
    NEXT,
    PLACE,
    PLACED,
    PYTHON,
    QUEUED,
    READY,
    TASKS,
    UNDECIDED,
    TaskState,
    new_task_state,
)
from optsched.compiled import INLINED, KERNEL, NESTED, njit, types
from optsched.problem.cluster import Cluster
from optsched.problem.contention import IterationTasks
from optsched.problem.instance import Instance, Job
from optsched.simulation.next_event import end_of_instant, ringing, set_time
from optsched.simulation.placement import SHARED_SIGNATURE, Placement, SharedRule

FINISHED_RUN, LOG_FULL, PAUSED, ASKED, STUCK = 0, 1, 2, 3, 4
TRANSFER = -1  # in place of a worker in the log, see `task_log`


def _state_type() -> Any:
    # The type of a state, taken from a real one.
    jobs = [Job("a", iterations=1, profile="p")]
    instance = Instance(jobs, Cluster.machines(1), tasks={"p": IterationTasks(1, 1)})
    rule = Placement("none", lambda *_: 0, shared=SharedRule(lambda *_: 0))
    order = TaskOrder(instance.arrival, Countdown(), Countdown())
    return numba.typeof(new_task_state(instance, order, rule, record=True))


PLACE_TYPE = types.FunctionType(SHARED_SIGNATURE)
ADMIT_TYPE = types.FunctionType(ADMIT_SIGNATURE)
STATE_TYPE = _state_type()


@njit(**INLINED)
def _mark_undecided(s: Any, g: int) -> None:
    # The GPU may be able to start a task.
    if s.is_undecided[g] == 0 and s.runs[g] < 0:
        s.is_undecided[g] = 1
        s.undecided[s.counters[UNDECIDED]] = g
        s.counters[UNDECIDED] += 1


@njit(**INLINED)
def _log(s: Any, job: int, worker: int, start: float, end: float) -> None:
    if s.counters[KEEP_LOG] != 0:
        row = s.counters[LOGGED]
        s.log_job[row], s.log_worker[row] = job, worker
        s.log_start[row], s.log_end[row] = start, end
        s.counters[LOGGED] += 1


@njit(**INLINED)
def _key(rule: Any, s: Any, j: int) -> float:
    return (
        rule[j, 0]
        + rule[j, 1] * s.forward_left[j]
        + rule[j, 2] * s.backward_left[j]
        + rule[j, 3] * s.links.transfers_left[j]
    )


@njit(**NESTED)
def _begin_iteration(s: Any, j: int) -> None:
    s.at_barrier[j] = 0
    for w in range(s.first[j], s.first[j + 1]):
        s.workers[w].phase = FORWARD
        _mark_undecided(s, s.workers[w].gpu)


@njit(**NESTED)
def _end_iteration(s: Any, j: int) -> None:
    s.iteration[j] += 1
    if s.iteration[j] < s.iterations[j]:
        _begin_iteration(s, j)
        return
    s.done[j] = s.links.clock[NOW]
    s.counters[FINISHED] += 1
    s.counters[PLACE] = 1
    s.hopeless[:] = np.inf
    for w in range(s.first[j], s.first[j + 1]):  # its workers leave their GPUs
        worker = s.workers[w]
        if worker.before >= 0:
            s.workers[worker.before].after = worker.after
        else:
            s.head[worker.gpu] = worker.after
        if worker.after >= 0:
            s.workers[worker.after].before = worker.before


@njit(**NESTED)
def _end_task(s: Any, g: int) -> None:
    worker = s.workers[s.runs[g]]
    j = worker.job
    s.runs[g] = -1
    set_time(s.tree, g, np.inf)
    _mark_undecided(s, g)
    s.counters[TASKS] += 1
    if worker.phase == FORWARD_RUNS:
        s.forward_left[j] -= 1
        worker.phase = BACKWARD
        s.gpu_busy[g] += s.forward[j]
        s.gpu_key[j] = _key(s.gpu_rule, s, j)
        return
    s.backward_left[j] -= 1
    worker.phase = BARRIER
    s.gpu_busy[g] += s.backward[j]
    s.gpu_key[j] = _key(s.gpu_rule, s, j)
    s.at_barrier[j] += 1
    if s.at_barrier[j] < s.gpus[j]:
        return
    if s.links.transfers_left[j] > 0:
        set_key(s.links, j, _key(s.link_rule, s, j))
        s.counters[READY] = join_waiting(s.links, j, s.counters[READY])
        s.counters[ASK] = 1
    else:
        _end_iteration(s, j)


@njit(**NESTED)
def _ring_link(s: Any, j: int) -> None:
    if s.links.state[j] == LATENT:
        begin_moving(s.links, j)
        return
    end_transfer(s.links, j)
    s.counters[TASKS] += 1
    s.counters[ASK] = 1
    _log(s, j, TRANSFER, s.links.began[j], s.links.clock[NOW])
    s.gpu_key[j] = _key(s.gpu_rule, s, j)
    set_key(s.links, j, _key(s.link_rule, s, j))
    _end_iteration(s, j)


@njit(**NESTED)
def _weigh(s: Any) -> None:
    """Fill ``load``: seconds of work that the residents of every GPU still have, from whole numbers of tasks."""
    for g in range(s.head.size):
        total = 0.0
        w = s.head[g]
        while w >= 0:
            worker = s.workers[w]
            j = worker.job
            left = s.iterations[j] - s.iteration[j]
            forwards = left - (1 if worker.phase >= BACKWARD else 0)
            backwards = left - (1 if worker.phase == BARRIER else 0)
            total += forwards * s.forward[j] + backwards * s.backward[j]
            if s.links.transfers_left[j] > 0:
                total += s.links.transfers_left[j] * (s.links.message[j] * s.byte_load[0])
            w = worker.after
        s.load[g] = total


@njit(**NESTED)
def _open_gpus(s: Any, j: int) -> int:
    """Fill ``open`` for job j; how many GPUs are."""
    found = 0
    for g in range(s.head.size):
        s.open[g] = False
        if not s.eligible[s.kind[j], s.gpu_node[g]]:
            continue
        taken = s.memory[j]
        w = s.head[g]
        while w >= 0:
            taken += s.memory[s.workers[w].job]
            w = s.workers[w].after
        if taken <= s.capacity[g]:
            s.open[g] = True
            found += 1
    return found


@njit(**NESTED)
def _settle(s: Any, j: int) -> None:
    """Job j becomes resident on ``out_gpu``, and its first iteration begins."""
    links, base = s.links, s.first[j]
    span = 0
    for i in range(s.gpus[j]):
        g, w = s.out_gpu[i], base + i
        worker = s.workers[w]
        worker.gpu, worker.before, worker.after = g, -1, s.head[g]
        if s.head[g] >= 0:
            s.workers[s.head[g]].before = w
        s.head[g] = w
        known = False
        for e in range(base, base + span):
            known = known or links.job_node[e] == s.gpu_node[g]
        if not known:
            links.job_node[base + span] = s.gpu_node[g]
            span += 1
    links.span[j] = span
    links.transfers_left[j] = s.iterations[j] if span > 1 and links.message[j] > 0.0 else 0
    if links.transfers_left[j] > 0:
        links.key[j] = _key(s.link_rule, s, j)
        begin_sending(links, j)
    s.placed[j] = links.clock[NOW]
    s.counters[PLACED] += 1
    s.gpu_key[j] = _key(s.gpu_rule, s, j)
    _begin_iteration(s, j)


@njit(**NESTED)
def _place_queue(place: Any, s: Any) -> None:
    s.counters[PLACE] = 0
    kept = 0
    weighed = False
    for i in range(s.counters[QUEUED]):
        j = s.queue[i]
        gpus = 0
        # Until a job leaves, free memory only shrinks: who needs as much as one that did not fit, does not fit either.
        if s.memory[j] < s.hopeless[s.kind[j]] and _open_gpus(s, j) >= s.gpus[j]:
            if not weighed:
                _weigh(s)
            gpus = place(s.gpus[j], s.open, s.load, s.gpu_node, s.node_first, s.random, s.numbers, s.out_gpu)
        if gpus == s.gpus[j]:
            _settle(s, j)
            weighed = False
        else:
            s.hopeless[s.kind[j]] = min(s.hopeless[s.kind[j]], s.memory[j])
            s.queue[kept] = j
            kept += 1
    s.counters[QUEUED] = kept


@njit(**NESTED)
def _admit(admit: Any, s: Any) -> None:
    i = 0
    while i < s.counters[READY]:
        j = s.links.waiting[i]
        if is_asked(s.links, j) and admit(j, s.links, s.rule_numbers):
            s.counters[READY] = leave_waiting(s.links, i, s.counters[READY])
            start_transfer(s.links, j)
        else:
            i += 1


@njit(**NESTED)
def _start_tasks(s: Any) -> None:
    now = s.links.clock[NOW]
    for i in range(s.counters[UNDECIDED]):
        g = s.undecided[i]
        s.is_undecided[g] = 0
        best, chosen = -1, -1
        w = s.head[g]
        while w >= 0:
            worker = s.workers[w]
            if worker.phase == FORWARD or worker.phase == BACKWARD:
                j = worker.job
                if best < 0 or s.gpu_key[j] < s.gpu_key[best] or (s.gpu_key[j] == s.gpu_key[best] and j < best):
                    best, chosen = j, w
            w = worker.after
        if chosen >= 0:
            ends = now + (s.forward[best] if s.workers[chosen].phase == FORWARD else s.backward[best])
            s.workers[chosen].phase += 1
            s.runs[g] = chosen
            set_time(s.tree, g, ends)
            _log(s, best, chosen - s.first[best], now, ends)
    s.counters[UNDECIDED] = 0


@njit(**INLINED)
def _next_time(s: Any) -> float:
    t = min(s.tree[1], s.links.tree[1])
    if s.counters[NEXT] < s.arrival.size:
        t = min(t, s.arrival[s.by_arrival[s.counters[NEXT]]])
    return t


@njit(signature=types.void(STATE_TYPE, types.int64), **KERNEL)
def start_waiting(s: Any, j: int) -> None:
    """Start the transfer of a job that waits, on the decision of a policy in plain Python.

    Parameters
    ----------
    s
        State of the run.
    j
        Index of the job.
    """
    i = 0
    while s.links.waiting[i] != j:
        i += 1
    s.counters[READY] = leave_waiting(s.links, i, s.counters[READY])
    start_transfer(s.links, j)


@njit(signature=types.int64(PLACE_TYPE, ADMIT_TYPE, STATE_TYPE, types.int64), **KERNEL)
def run_tasks(place: Any, admit: Any, s: TaskState, tasks: int) -> int:
    """Run for about a number of tasks.

    Parameters
    ----------
    place
        Compiled placement rule for shared GPUs.
    admit
        Compiled admission rule.
    s
        State of the run.
    tasks
        Number of tasks after which the loop pauses.

    Returns
    -------
    int
        `FINISHED_RUN`; `LOG_FULL`: the log is nearly full; `PAUSED`; `ASKED`, for policies in plain Python: transfers are
        ready, start some, clear ``ASK`` and call again; or `STUCK`: a transfer waits, and nothing will happen any more.
    """
    # one event time may add a task a GPU and a transfer a job
    log_limit = s.log_job.size - s.head.size - s.arrival.size - 2
    pause = s.counters[TASKS] + tasks
    links = s.links
    while True:
        if s.counters[ASK] != 0:
            if s.counters[READY] > 0:
                if s.counters[PYTHON] != 0:
                    return ASKED
                _admit(admit, s)
            s.counters[ASK] = 0
        _start_tasks(s)
        if s.counters[KEEP_LOG] != 0 and s.counters[LOGGED] > log_limit:
            return LOG_FULL
        if s.counters[TASKS] >= pause:
            return PAUSED
        t = _next_time(s)
        if t == np.inf:
            return STUCK if s.counters[READY] > 0 else FINISHED_RUN
        last = end_of_instant(t)
        while t <= last:  # all events of one instant, each at its own time
            links.clock[NOW] = t
            while s.tree[1] == t:
                _end_task(s, ringing(s.tree))
            while links.tree[1] == t:
                _ring_link(s, ringing(links.tree))
            while s.counters[NEXT] < s.arrival.size and s.arrival[s.by_arrival[s.counters[NEXT]]] == t:
                j = s.by_arrival[s.counters[NEXT]]
                s.counters[NEXT] += 1
                s.counters[QUEUED] = join(s.queue, s.counters[QUEUED], s.queue_key, j)
                s.counters[PLACE] = 1
            t = _next_time(s)
        if s.counters[PLACE] != 0:
            _place_queue(place, s)
