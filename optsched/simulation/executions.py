"""What runs, compiled: start, stop, settle, complete. The same functions serve compiled orders, rules and plain Python.

An execution is a gang at work. Alone on its GPUs a unit of work takes it ``pace`` seconds; beside others ``slow`` times as
long, as its slowest neighbour and its slowest network interface make it. When a neighbour, or one on its interfaces, comes
or goes it is *settled*: its work is brought up to date at the old speed, and its completion set anew. Nobody else is
touched.

Work is integrated: a job's segments add up to the work it asks for, because every segment but the last takes away exactly
what it logs and the last one logs what is left.

Standing still costs nothing: a job that is stopped and started again at one instant on the GPUs that it had (as many of
each pool, where the engine counts them) was never stopped. It goes on with its segment, pays no restart, and is not counted
as preempted.

A job may run in several *copies* at once, executions that each do a part of its work (`start_part`); what they do adds up.
It ends when nothing is left; who stops it stops them all. A copy that starts anew begins anew, wherever it stood.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import njit
from optsched.heap import INNER, KERNEL
from optsched.simulation.clocks import clear_clock
from optsched.simulation.instant import shortened
from optsched.simulation.interfaces import enter, leave, slowed_by_network
from optsched.simulation.queues import (
    begin_running,
    dequeue,
    end_running,
    enqueue,
    rise_later,
    rise_never,
    service,
    set_change,
)
from optsched.simulation.records import DONE, NOBODY, RUNNING
from optsched.simulation.state import COUNT, FREE, NUMBER, POOL, Site, State
from optsched.speeds.speed_tables import is_timed, pace


@njit(**INNER)
def start(s: State, site: Site, j: int, entries: int, option: int) -> None:
    """Start the waiting job ``j`` on ``out[COUNT, k]`` GPUs of pool ``out[POOL, k]``, k < ``entries``; or let it go on.

    Where jobs share GPUs: on the first g_j of ``out[NUMBER]``, with sub-batch ``option``.
    """
    w, job = s.world[0], s.jobs[j]
    dequeue(s, j)
    rise_never(s, j)
    job.status = RUNNING
    x = s.executions[w.active].vacant
    job.execution = x
    job.copies = 1
    begin_running(s, j)
    _begin(s, site, j, x, entries, option, job.left, 0.0)
    if w.stood > 0 and _stands_still(s, j, x):
        _go_on(s, j, x)
    set_change(s, j)


@njit(**KERNEL)
def start_part(s: State, site: Site, j: int, entries: int, work: float, given: float) -> None:
    """Start a copy of ``j``, which waits or runs, for at most ``work`` units; ``given`` seconds a unit, 0: as tables say."""
    w, job = s.world[0], s.jobs[j]
    x = s.executions[w.active].vacant
    if job.status == RUNNING:
        job.attained += service(s, j) * (w.now - job.mark)
        last = job.execution
        while s.executions[last].other >= 0:
            last = s.executions[last].other
        s.executions[last].other = x
        job.copies += 1
    else:
        dequeue(s, j)
        job.status = RUNNING
        job.execution = x
        job.copies = 1
        begin_running(s, j)
    _begin(s, site, j, x, entries, 0, min(work, job.left), given)
    set_change(s, j)


@njit(**INNER)
def _begin(s: State, site: Site, j: int, x: int, entries: int, option: int, work: float, given: float) -> None:
    w, job, run = s.world[0], s.jobs[j], s.executions[x]
    w.active += 1
    w.starts += 1
    run.job, run.begun, run.option, run.slow = j, w.now, option, 1.0
    run.target = run.left = work
    run.other = -1
    run.paid = w.now + (w.restart if job.ran > 0 else w.first_start)
    job.mark = w.now
    job.ran += 1
    _take(s, site, site.neighbours, site.interfaces, j, x, entries, given)


@njit(**INNER)
def _take(s: State, site: Site, neighbours: Any, interfaces: Any, j: int, x: int, entries: int, given: float) -> None:
    # The GPUs chosen, and how fast it runs there.
    run = s.executions[x]
    # Asked here and not in `pace`: most jobs have a duration, and a call would cost as much as the rest of a start.
    timed = is_timed(site.tables, j)
    if neighbours is None:
        _take_counted(s, j, x, entries)
        apart = 0
    else:
        apart = _take_named(s, neighbours, j, x)
    if given > 0.0:
        run.pace = given
    else:
        run.pace = 1.0 if timed else pace(site.tables, j, s.jobs[j].gpus, s.out[POOL], s.out[COUNT])
    if neighbours is not None:
        run.pace *= neighbours.stretch[j, run.option, apart]
    if interfaces is not None:
        gang = s.jobs[j].gpus
        enter(interfaces, site.communication, x, j, gang, run.option, run.pace, s.out[POOL], s.out[COUNT])
    run.slow = _slow(s, neighbours, interfaces, x)
    _settle_others(s, neighbours, interfaces, x)
    _set_finish(s, x)


@njit(**INNER)
def _set_finish(s: State, x: int) -> None:
    run = s.executions[x]
    least = np.nextafter(s.world[0].now, np.inf)  # work that is shorter than the rounding of time still takes time
    run.finish = max(run.paid + run.left * (run.pace * run.slow), least)


@njit(**INNER)
def _take_counted(s: State, j: int, x: int, entries: int) -> None:
    w, at = s.world[0], x * s.world[0].width
    s.executions[x].entries = entries
    for k in range(entries):
        part = s.parts[at + k]
        part.pool, part.count = s.out[POOL, k], s.out[COUNT, k]
        s.pools[FREE, part.pool] -= part.count
    w.free -= s.jobs[j].gpus


@njit(**INNER)
def _give_counted(s: State, j: int, x: int) -> None:
    w, at = s.world[0], x * s.world[0].width
    for k in range(s.executions[x].entries):
        s.pools[FREE, s.parts[at + k].pool] += s.parts[at + k].count
    w.free += s.jobs[j].gpus


@njit(**KERNEL)
def _take_named(s: State, neighbours: Any, j: int, x: int) -> int:
    # GPUs by their numbers, and their nodes in the order of the replicas; 1 where they are on several nodes.
    w, at, gang = s.world[0], x * s.world[0].width, s.jobs[j].gpus
    s.executions[x].entries = gang
    entries, apart = 0, 0
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
        gpu.jobs += 1
        gpu.room = _room(s, neighbours, g)
        if entries > 0 and s.out[POOL, entries - 1] == gpu.node:
            s.out[COUNT, entries - 1] += 1
        else:
            s.out[POOL, entries], s.out[COUNT, entries] = gpu.node, 1
            entries += 1
        if gpu.node != s.out[POOL, 0]:
            apart = 1
    _count_on_nodes(s, neighbours, x, 1)
    return apart


@njit(**KERNEL)
def _give_named(s: State, neighbours: Any, j: int, x: int) -> None:
    w, at = s.world[0], x * s.world[0].width
    for i in range(s.executions[x].entries):
        g = s.parts[at + i].pool
        gpu = neighbours.gpus[g]
        if gpu.one == j:
            gpu.one = -1
        else:
            gpu.other = -1
        gpu.jobs -= 1
        gpu.room = _room(s, neighbours, g)
        if gpu.jobs == 0:
            s.pools[FREE, gpu.node] += 1
            w.free += 1
    _count_on_nodes(s, neighbours, x, -1)


@njit(**KERNEL)
def _room(s: State, neighbours: Any, g: int) -> float:
    # Anew from who is there: a running sum would drift, and a job that needs all memory would wait for ever.
    gpu = neighbours.gpus[g]
    room = gpu.capacity
    if gpu.one >= 0:
        room -= neighbours.memory[gpu.one, s.executions[s.jobs[gpu.one].execution].option]
    if gpu.other >= 0:
        room -= neighbours.memory[gpu.other, s.executions[s.jobs[gpu.other].execution].option]
    return float(room)


@njit(**KERNEL)
def _count_on_nodes(s: State, neighbours: Any, x: int, sign: int) -> None:
    # Different jobs on every node of the gang.
    at = x * s.world[0].width
    for i in range(s.executions[x].entries):
        node, seen = neighbours.gpus[s.parts[at + i].pool].node, False
        for k in range(i):
            seen = seen or neighbours.gpus[s.parts[at + k].pool].node == node
        if not seen:
            neighbours.nodes[node].jobs += sign


@njit(**KERNEL)
def _slowest(s: State, neighbours: Any, x: int) -> float:
    # The slowest neighbour rules.
    j, at, worst = s.executions[x].job, x * s.world[0].width, 1.0
    for i in range(s.executions[x].entries):
        gpu = neighbours.gpus[s.parts[at + i].pool]
        other = gpu.other if gpu.one == j else gpu.one
        if other >= 0:
            worst = max(worst, neighbours.slowdown[neighbours.sharers[j].model, neighbours.sharers[other].model])
    return worst


@njit(**INNER)
def _slow(s: State, neighbours: Any, interfaces: Any, x: int) -> float:
    # How many times as long a unit of work takes it beside all others as alone.
    slow = 1.0
    if neighbours is not None:
        slow = _slowest(s, neighbours, x)
    if interfaces is not None:
        slow *= slowed_by_network(interfaces, x)
    return slow


@njit(**INNER)
def _settle_others(s: State, neighbours: Any, interfaces: Any, x: int) -> None:
    # Whoever feels that x has come, or gone.
    if neighbours is not None:
        _settle_neighbours(s, neighbours, interfaces, x)
    if interfaces is not None:
        _settle_on_interfaces(s, neighbours, interfaces, x)


@njit(**KERNEL)
def _settle_neighbours(s: State, neighbours: Any, interfaces: Any, x: int) -> None:
    j, at = s.executions[x].job, x * s.world[0].width
    for i in range(s.executions[x].entries):
        gpu = neighbours.gpus[s.parts[at + i].pool]
        other = gpu.one if gpu.one != j and gpu.one >= 0 else gpu.other  # j may have left it already
        if other >= 0 and other != j:
            _settle(s, neighbours, interfaces, s.jobs[other].execution)


@njit(**KERNEL)
def _settle_on_interfaces(s: State, neighbours: Any, interfaces: Any, x: int) -> None:
    if interfaces.senders[x].share == 0.0:
        return
    for k in range(interfaces.senders[x].nodes):
        here = interfaces.interfaces[interfaces.nodes[x, k]]
        for i in range(here.first, here.first + here.senders):
            if interfaces.seats[i].execution != x:
                _settle(s, neighbours, interfaces, interfaces.seats[i].execution)


@njit(**KERNEL)
def _settle(s: State, neighbours: Any, interfaces: Any, y: int) -> None:
    # Work up to date at the old speed, completion at the new one.
    w, run = s.world[0], s.executions[y]
    if run.finish <= w.last:
        return  # it ends at this instant
    slow = _slow(s, neighbours, interfaces, y)
    if slow != run.slow:
        if w.now > run.paid:
            run.left = max(0.0, run.left - (w.now - run.paid) / (run.pace * run.slow))
            run.paid = w.now
        run.slow = slow
        _set_finish(s, y)
        set_change(s, run.job)


@njit(**INNER)
def _stopped_now(s: State, j: int) -> bool:
    # Is the stop that it remembers one of this instant?
    k, first = s.jobs[j].stood, s.executions.size // 2
    return bool(first <= k < first + s.world[0].stood and s.executions[k].job == j)


@njit(**INNER)
def _stands_still(s: State, j: int, x: int) -> bool:
    # Was it stopped at this instant, where it starts now?
    if not _stopped_now(s, j):
        return False
    run, stood = s.executions[x], s.executions[s.jobs[j].stood]
    if stood.segment < 0:
        return False
    segment, at = s.segments[stood.segment], x * s.world[0].width
    if segment.entries != run.entries or stood.option != run.option:
        return False
    for i in range(run.entries):
        was, part = s.parts[segment.first + i], s.parts[at + i]
        if was.pool != part.pool or was.count != part.count:
            return False
    return True


@njit(**KERNEL)
def _go_on(s: State, j: int, x: int) -> None:
    # Take the stop back: the segment that it logged, its count, and what it changed of the job.
    w, job, run, stood = s.world[0], s.jobs[j], s.executions[x], s.executions[s.jobs[j].stood]
    e = stood.segment
    stood.segment = -1
    if w.fruitless > 0 and s.segments[e].work == 0.0:
        w.fruitless -= 1
    if e == w.segments - 1:
        w.segments = e
        w.logged = s.segments[e].first
    else:
        s.segments[e].job = NOBODY  # left out of the schedule
    w.stops -= 1
    w.starts -= 1
    job.ran -= 1
    job.left, job.origin = stood.left_then, stood.origin
    run.target, run.begun = stood.left_then, stood.begun
    run.left, run.paid, run.finish = stood.left, stood.paid, stood.finish
    if run.slow != stood.slow:  # the neighbours are others
        if w.now > run.paid:
            run.left = max(0.0, run.left - (w.now - run.paid) / (run.pace * stood.slow))
            run.paid = w.now
        _set_finish(s, x)


@njit(**INNER)
def _release(s: State, neighbours: Any, interfaces: Any, x: int, work: float) -> None:
    # End a segment: log it, and give its GPUs back.
    w, run, at = s.world[0], s.executions[x], x * s.world[0].width
    j, job = run.job, s.jobs[run.job]
    if w.now > run.begun:
        segment = s.segments[w.segments]
        segment.job, segment.start, segment.end, segment.work = j, run.begun, w.now, work
        segment.first, segment.entries, segment.option = w.logged, run.entries, run.option
        for k in range(run.entries):
            part = s.parts[w.logged + k]
            part.pool, part.count = s.parts[at + k].pool, s.parts[at + k].count
        w.logged += run.entries
        w.segments += 1
        w.fruitless = 0 if work > 0.0 else w.fruitless + 1
    if neighbours is None:
        _give_counted(s, j, x)
    else:
        _give_named(s, neighbours, j, x)
    if interfaces is not None:
        leave(interfaces, x)
    _settle_others(s, neighbours, interfaces, x)
    job.attained += service(s, j) * (w.now - job.mark)
    job.mark = w.now
    if job.copies == 1:
        end_running(s, j)
    else:
        _unlink(s, j, x)
    job.copies -= 1
    job.execution = run.other if job.execution == x else job.execution
    w.active -= 1
    s.executions[w.active].vacant = x
    clear_clock(s.clocks, x)


@njit(**KERNEL)
def _unlink(s: State, j: int, x: int) -> None:
    # It is no longer among the copies of its job.
    before = s.jobs[j].execution
    if before == x:
        return
    while s.executions[before].other != x:
        before = s.executions[before].other
    s.executions[before].other = s.executions[x].other


@njit(**INNER)
def complete(s: State, site: Site, j: int) -> None:
    """The running job ``j`` has done its work, or some of its copies theirs."""
    w, job = s.world[0], s.jobs[j]
    if w.copies != 0:
        _complete_copies(s, site, j)
        return
    w.now = max(w.now, s.executions[job.execution].finish)
    _release(s, site.neighbours, site.interfaces, job.execution, job.left)
    _finish(s, j)


@njit(**INNER)
def _finish(s: State, j: int) -> None:
    w, job = s.world[0], s.jobs[j]
    for q in range(s.queues.size):
        s.queues[q].blocked = 0
    job.left = 0.0
    job.status = DONE
    w.finished += 1


@njit(**KERNEL)
def _complete_copies(s: State, site: Site, j: int) -> None:
    w, job, x = s.world[0], s.jobs[j], s.jobs[j].execution
    while x >= 0:
        run = s.executions[x]
        x, this = run.other, x
        if run.finish <= w.last:
            w.now = max(w.now, run.finish)
            _release(s, site.neighbours, site.interfaces, this, run.target)
            job.left -= run.target
    if job.copies > 0:
        set_change(s, j)
    elif job.left <= job.least:
        _finish(s, j)
    else:
        _wait(s, j)


@njit(**KERNEL)
def stop(s: State, site: Site, j: int) -> None:
    """Preempt the running job ``j``, all its copies: it waits again with the work that is left."""
    w, job = s.world[0], s.jobs[j]
    while job.execution >= 0:
        x = job.execution
        run = s.executions[x]
        done = max(0.0, w.now - run.paid) / (run.pace * run.slow)
        # what it did before it was last settled, too
        work = done if run.left == run.target else run.target - max(0.0, run.left - done)
        if w.now <= run.begun:
            job.ran -= 1  # started and stopped at one instant: nothing happened
            w.starts -= 1
        else:
            w.stops += 1
            if w.copies == 0:
                _remember(s, j, x)
        _release(s, site.neighbours, site.interfaces, x, work)
        job.left -= work
        job.origin += job.slope * work
    job.key = shortened(job.origin) if w.fading != 0 else job.origin
    if job.left <= job.least and w.copies != 0:
        _finish(s, j)
    else:
        _wait(s, j)


@njit(**INNER)
def _remember(s: State, j: int, x: int) -> None:
    # Where it stood, until the instant is over.
    w, job, run = s.world[0], s.jobs[j], s.executions[x]
    if not _stopped_now(s, j):
        job.stood = s.executions.size // 2 + w.stood
        w.stood += 1
    stood = s.executions[job.stood]
    stood.job, stood.segment, stood.option = j, w.segments, run.option
    stood.begun, stood.paid, stood.finish, stood.left = run.begun, run.paid, run.finish, run.left
    stood.slow, stood.left_then, stood.origin = run.slow, job.left, job.origin


@njit(**INNER)
def _wait(s: State, j: int) -> None:
    enqueue(s, j)
    rise_later(s, j)
