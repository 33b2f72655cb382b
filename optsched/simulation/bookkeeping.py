"""What a start, a stop or a change of a job touches, compiled: queues, GPUs, speeds, and when it changes next by itself.

An execution whose rate changes as another comes or goes is *settled*: its work is brought up to date at the old speed, and
its completion set anew. The others stay as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import INNER, NESTED, njit
from optsched.simulation.interfaces import slowed_by_network
from optsched.simulation.next_event import insert, next_tick, remove, set_clock
from optsched.simulation.records import WAITING
from optsched.simulation.state import COUNT, FREE, NUMBER, POOL, State

# --- who waits, and who runs ------------------------------------------------------------------------------------------


@njit(**INNER)
def queue_of(s: State, j: int) -> Any:
    """Where ``j`` waits: one queue a kind of jobs, or one for all."""
    return s.queues[min(s.jobs[j].kind, s.queues.size - 1)]


@njit(**INNER)
def enqueue(s: State, j: int) -> None:
    """Job ``j`` waits from now on."""
    job, queue = s.jobs[j], queue_of(s, j)
    job.status = WAITING
    s.engine[0].queued += 1
    if s.engine[0].listed != 0:
        _list(s, j)
    else:
        queue.jobs = insert(s.heap, queue.first, queue.jobs, job.level, job.key, j, s.jobs["place"])


@njit(**INNER)
def _list(s: State, j: int) -> None:
    # Into the one sorted list of a run in which everybody is asked about.
    key, k = s.jobs[j].key, s.engine[0].queued - 1
    while k > 0 and (s.heap[k - 1].key, s.heap[k - 1].number) > (key, j):
        s.heap[k].key, s.heap[k].number = s.heap[k - 1].key, s.heap[k - 1].number
        k -= 1
    s.heap[k].key, s.heap[k].number = key, j


@njit(**INNER)
def dequeue(s: State, j: int) -> None:
    """Job ``j`` waits no longer; from a sorted list it is taken when all have been asked about (`forget_started`)."""
    if s.engine[0].listed != 0:
        return
    queue = queue_of(s, j)
    s.engine[0].queued -= 1
    queue.jobs = remove(s.heap, queue.first, queue.jobs, j, s.jobs["place"])


@njit(**INNER)
def forget_started(s: State) -> None:
    """Take jobs that have started off the sorted list of those that wait."""
    w, kept = s.engine[0], 0
    for i in range(w.queued):
        j = s.heap[i].number
        if s.jobs[j].status == WAITING:
            s.heap[kept].key, s.heap[kept].number = s.heap[i].key, j
            kept += 1
    w.queued = kept


@njit(**INNER)
def begin_running(s: State, j: int) -> None:
    """Job ``j`` is among those that run: where jobs are preempted a heap, the least important first."""
    w, job = s.engine[0], s.jobs[j]
    if w.preemptive != 0:
        w.ranked = insert(s.heap, w.runner, w.ranked, -job.level, -job.key, ~j, s.jobs["place"])


@njit(**INNER)
def end_running(s: State, j: int) -> None:
    """It is no longer."""
    w = s.engine[0]
    if w.preemptive != 0:
        w.ranked = remove(s.heap, w.runner, w.ranked, ~j, s.jobs["place"])


@njit(**INNER)
def service(s: State, j: int) -> int:
    """What a second of a running job counts for as service."""
    return 1 if s.engine[0].by_time != 0 else s.jobs[j].gpus * max(s.jobs[j].copies, 1)


@njit(**INNER)
def to_the_end(s: State, j: int) -> None:
    """Behind the others of the level that ``j`` enters: those that came before the round, or the instant, that ends now."""
    w, job = s.engine[0], s.jobs[j]
    if w.requeue != 0:
        job.origin = next_tick(w.began, w.first_round, w.period) if w.period > 0.0 else w.began
        job.key = job.origin


# --- when it changes next by itself -----------------------------------------------------------------------------------


@njit(**INNER)
def first_finish(s: State, j: int) -> float:
    """When the running job, or the first of its copies, has done its work."""
    t, x = s.executions[s.jobs[j].execution].finish, s.executions[s.jobs[j].execution].other
    while x >= 0:
        t = min(t, s.executions[x].finish)
        x = s.executions[x].other
    return float(t)


@njit(**INNER)
def set_change(s: State, j: int) -> None:
    """The next change of a running job: it finishes, or its service reaches the next threshold."""
    job = s.jobs[j]
    t = first_finish(s, j)
    if job.level < s.engine[0].levels:
        t = min(t, job.mark + (s.numbers[job.level] - job.attained) / service(s, j))
    set_clock(s.clocks, job.execution, max(t, s.engine[0].now), j)  # rounding must not turn time back


@njit(**INNER)
def rise_later(s: State, j: int) -> None:
    """Starvation: a job that waits is back on level 0 after ``starvation`` times as long as it ran."""
    w, job = s.engine[0], s.jobs[j]
    if w.starvation > 0.0 and job.level > 0:
        t = job.mark + w.starvation * job.attained / service(s, j)
        w.rising = insert(s.heap, w.promotion_queue, w.rising, np.int64(0), t, j, s.jobs["rises"])


@njit(**INNER)
def rise_never(s: State, j: int) -> None:
    """It waits no longer, or is on level 0."""
    w = s.engine[0]
    if s.jobs[j].rises >= 0:
        w.rising = remove(s.heap, w.promotion_queue, w.rising, j, s.jobs["rises"])


# --- which GPUs it holds ----------------------------------------------------------------------------------------------
# As many of each pool, or each by its name where two jobs may be on a GPU.


@njit(**INNER)
def take_counted(s: State, j: int, x: int, entries: int) -> None:
    """Execution ``x`` of ``j`` takes ``out[COUNT, k]`` GPUs of pool ``out[POOL, k]``, k < ``entries``."""
    w, at = s.engine[0], x * s.engine[0].width
    s.executions[x].entries = entries
    for k in range(entries):
        part = s.parts[at + k]
        part.pool, part.count = s.out[POOL, k], s.out[COUNT, k]
        s.pools[FREE, part.pool] -= part.count
    w.free -= s.jobs[j].gpus


@njit(**INNER)
def give_counted(s: State, j: int, x: int) -> None:
    """It gives them back."""
    w, at = s.engine[0], x * s.engine[0].width
    for k in range(s.executions[x].entries):
        s.pools[FREE, s.parts[at + k].pool] += s.parts[at + k].count
    w.free += s.jobs[j].gpus


@njit(**NESTED)
def list_nodes(s: State, neighbours: Any, gang: int) -> int:
    """The nodes of the first ``gang`` GPUs of ``out[NUMBER]``, in the order of the replicas, in ``out``. 1: several."""
    entries, apart = 0, 0
    for i in range(gang):
        node = neighbours.gpus[s.out[NUMBER, i]].node
        if entries > 0 and s.out[POOL, entries - 1] == node:
            s.out[COUNT, entries - 1] += 1
        else:
            s.out[POOL, entries], s.out[COUNT, entries] = node, 1
            entries += 1
        if node != s.out[POOL, 0]:
            apart = 1
    return apart


@njit(**NESTED)
def take_named(s: State, neighbours: Any, j: int, x: int) -> int:
    """The first g_j GPUs of ``out[NUMBER]``; see `list_nodes`."""
    w, at, gang = s.engine[0], x * s.engine[0].width, s.jobs[j].gpus
    s.executions[x].entries = gang
    for i in range(gang):
        g = s.out[NUMBER, i]
        s.parts[at + i].pool, s.parts[at + i].count = g, 1
        gpu = neighbours.gpus[g]
        if gpu.one < 0:
            gpu.one = j
        else:
            gpu.other = j
        if gpu.jobs == 0:
            s.pools[FREE, gpu.node] -= 1
            w.free -= 1
        _count_alone(s, gpu, j, np.int64(1))
        gpu.jobs += 1
        gpu.free_memory = _free_memory(s, neighbours, g)
    _count_on_nodes(s, neighbours, x, np.int64(1))
    return list_nodes(s, neighbours, gang)


@njit(**NESTED)
def give_named(s: State, neighbours: Any, j: int, x: int) -> None:
    """It gives them back."""
    w, at = s.engine[0], x * s.engine[0].width
    for i in range(s.executions[x].entries):
        g = s.parts[at + i].pool
        gpu = neighbours.gpus[g]
        if gpu.one == j:
            gpu.one = -1
        else:
            gpu.other = -1
        gpu.jobs -= 1
        _count_alone(s, gpu, j, np.int64(-1))
        gpu.free_memory = _free_memory(s, neighbours, g)
        if gpu.jobs == 0:
            s.pools[FREE, gpu.node] += 1
            w.free += 1
    _count_on_nodes(s, neighbours, x, np.int64(-1))


@njit(**INNER)
def _count_alone(s: State, gpu: Any, j: int, sign: int) -> None:
    # Has j come to a GPU, or left it, that is idle but for j, or beside whom?
    if gpu.jobs == 0:
        s.jobs[j].alone += sign
        s.engine[0].alone += sign
    else:
        s.engine[0].alone -= sign
        s.jobs[gpu.other if gpu.one == j or gpu.one < 0 else gpu.one].alone -= sign


@njit(**NESTED)
def _free_memory(s: State, neighbours: Any, g: int) -> float:
    # Anew from who is there: a running sum would drift, and a job that needs all memory would wait for ever.
    gpu = neighbours.gpus[g]
    free = gpu.capacity
    if gpu.one >= 0:
        free -= neighbours.memory[gpu.one, s.executions[s.jobs[gpu.one].execution].option]
    if gpu.other >= 0:
        free -= neighbours.memory[gpu.other, s.executions[s.jobs[gpu.other].execution].option]
    return float(free)


@njit(**NESTED)
def _count_on_nodes(s: State, neighbours: Any, x: int, sign: int) -> None:
    # Different jobs on every node of the gang.
    at, last = x * s.engine[0].width, -1
    for i in range(s.executions[x].entries):
        node = neighbours.gpus[s.parts[at + i].pool].node
        if node == last:
            continue
        last, k = node, 0
        while neighbours.gpus[s.parts[at + k].pool].node != node:
            k += 1
        if k == i:
            neighbours.nodes[node].jobs += sign


# --- how fast it is beside others -------------------------------------------------------------------------------------


@njit(**INNER)
def set_finish(s: State, x: int) -> None:
    """When execution ``x`` will have done what is left, at its present speed."""
    run = s.executions[x]
    least = np.nextafter(s.engine[0].now, np.inf)  # work that is shorter than the rounding of time still takes time
    run.finish = max(run.paid + run.left * (run.pace * run.slow), least)


@njit(**INNER)
def slowdown(s: State, colocation: Any, x: int) -> float:
    """How many times as long a unit of work takes execution ``x`` beside all others as alone."""
    slow = 1.0
    if colocation is not None and colocation.neighbours.gpus.size > 0:
        slow = _slowest(s, colocation.neighbours, x)
    if colocation is not None and colocation.interfaces.senders.size > 0:
        slow *= slowed_by_network(colocation.interfaces, x)
    return slow


@njit(**NESTED)
def _slowest(s: State, neighbours: Any, x: int) -> float:
    # The slowest neighbour rules.
    j, at, worst = s.executions[x].job, x * s.engine[0].width, 1.0
    for i in range(s.executions[x].entries):
        gpu = neighbours.gpus[s.parts[at + i].pool]
        other = gpu.other if gpu.one == j else gpu.one
        if other >= 0:
            worst = max(worst, xi_beside(neighbours, j, other))
    return worst


@njit(**INNER)
def xi_beside(neighbours: Any, j: int, other: int) -> float:
    """How many times as long ``j`` takes beside the other job; inf: never together."""
    return float(neighbours.slowdown[neighbours.sharers[j].model, neighbours.sharers[other].model])


@njit(**INNER)
def settle_others(s: State, colocation: Any, x: int) -> None:
    """Whoever feels that execution ``x`` has come, or gone."""
    if colocation is not None and colocation.neighbours.gpus.size > 0:
        _settle_neighbours(s, colocation, x)
    if colocation is not None and colocation.interfaces.senders.size > 0:
        _settle_on_interfaces(s, colocation, x)


@njit(**NESTED)
def _settle_neighbours(s: State, colocation: Any, x: int) -> None:
    j, at, settled = s.executions[x].job, x * s.engine[0].width, -1
    for i in range(s.executions[x].entries):
        gpu = colocation.neighbours.gpus[s.parts[at + i].pool]
        other = gpu.one if gpu.one != j and gpu.one >= 0 else gpu.other  # j may have left it already
        if other >= 0 and other != j and other != settled:  # mostly the same as on the GPU before
            settled, y = other, s.jobs[other].execution
            if (gpu.one == j or gpu.other == j) and colocation.interfaces.senders.size == 0:
                # One more neighbour: no need to ask who all of them are.
                _settle(s, y, max(s.executions[y].slow, xi_beside(colocation.neighbours, other, j)))
            else:
                _settle(s, y, slowdown(s, colocation, y))


@njit(**NESTED)
def _settle_on_interfaces(s: State, colocation: Any, x: int) -> None:
    interfaces = colocation.interfaces
    if interfaces.senders[x].share == 0.0:
        return
    for k in range(interfaces.senders[x].nodes):
        here = interfaces.interfaces[interfaces.nodes[x, k]]
        for i in range(here.first, here.first + here.senders):
            if interfaces.seats[i].execution != x:
                y = interfaces.seats[i].execution
                _settle(s, y, slowdown(s, colocation, y))


@njit(**NESTED)
def _settle(s: State, y: int, slow: float) -> None:
    # Work up to date at the old speed, completion at the new one.
    w, run = s.engine[0], s.executions[y]
    if run.finish <= w.last:
        return  # it ends at this instant
    if slow != run.slow:
        if w.now > run.paid:
            run.left = max(0.0, run.left - (w.now - run.paid) / (run.pace * run.slow))
            run.paid = w.now
        run.slow = slow
        set_finish(s, y)
        set_change(s, run.job)
