"""The simulator in ticks of `optsched.studies.published_ticks`, compiled: its records, and what happens in a tick."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from optsched.compiled import njit
from optsched.problem.arrays import Floats, Ints

Records = npt.NDArray[np.void]

FIRST_FIT, LEAST_LOADED, RANDOM = 0, 1, 2
ALL_BUT = 1 - 1e-9  # of the bytes: the sum over the ticks is rounded
ADADUAL = 0  # in place of the k of SRSF(k)
READY_FORWARD, FORWARD, READY_BACKWARD, BACKWARD, WAITING = 0, 1, 2, 3, 4
IDLE, NEVER = -1, 2**62


def _record(whole: str, real: str = "") -> np.dtype[np.void]:
    return np.dtype([(name, np.int64) for name in whole.split()] + [(name, np.float64) for name in real.split()])


# ``cost``: of a message, as LWF expects it, in milliseconds; ``moved``, ``pace``: bytes, and bytes a tick, of the transfer
# that runs; ``service``: compute left, all workers together; ``barrier``: workers that wait for the others; ``spans``: nodes
JOB = _record(
    "arrival size forward backward worker0 iterations service barrier placed spans end", "message need cost moved pace"
)
WORKER = _record("job gpu phase")
GPU = _record("node count working until", "free load")  # residents; the worker whose task runs, and until when; L_g
NODE = _record("first last carried")  # its GPUs are first .. last - 1; transfers that run over it


class World(NamedTuple):
    """All there is, in milliseconds and bytes. n jobs, G GPUs, H nodes, W workers: those of job j from ``worker0`` on.

    Lists in rows have their lengths elsewhere (``count``, ``carried``, ``spans``); ``active`` and ``waiting`` begin with it.
    """

    jobs: Records  # [n]
    workers: Records  # [W]
    gpus: Records  # [G]
    hosts: Records  # [H]
    costs: Floats  # b and eta in milliseconds a byte, theta
    queue: Ints  # jobs in the order of the queue, [n]
    arrivals: Ints  # ascending, [n]
    given: Ints  # GPUs in the order in which a job takes them, unless by load, [n, G]
    nodes: Ints  # of a gang, ascending, [n, H]
    residents: Ints  # workers on a GPU, [G, n]
    running: Ints  # jobs whose transfers run over a node, [H, n]
    active: Ints  # jobs whose transfers run, [n + 1]
    waiting: Ints  # jobs whose transfers wait, in their order, [n + 1]


@njit(interpreted=False)
def simulate_ticks(w: World, kind: int, kappa: int, rule: int, published: bool) -> int:
    """Run to the end; the number of transfers that started beside another one."""
    contended, t, left, came = 0, 0, w.jobs.size, 0
    while left > 0:
        arrived, due, ended = False, False, 0
        while came < w.arrivals.size and w.arrivals[came] == t:
            arrived = True
            came += 1
        for gpu in w.gpus:
            due = due or gpu.until <= t
        if due:
            ended += _end_tasks(w, t)
        moved = _any_moved(w)
        if moved:
            ended += _end_transfers(w, t)
        left -= ended
        if arrived or ended > 0:
            for j in w.queue:
                if w.jobs[j].placed == 0 and w.jobs[j].arrival <= t:
                    _place(w, j, kind, kappa)
        changed = arrived or due or moved  # else no answer can be another one: what is left of a transfer only falls
        if changed or published:
            contended += _start_transfers(w, rule, published)
        if changed:
            _start_tasks(w, t)
        asked = published and rule == ADADUAL and w.waiting[0] > 0
        ticks = 1 if asked else _quiet_ticks(w, t, came)
        for i in range(1, w.active[0] + 1):
            w.jobs[w.active[i]].moved += ticks * w.jobs[w.active[i]].pace
        t += ticks
    return contended


@njit(interpreted=False)
def _quiet_ticks(w: World, t: int, came: int) -> int:
    """How many ticks until something ends or arrives, when nobody asks meanwhile; at least one."""
    quiet = NEVER
    if came < w.arrivals.size:
        quiet = w.arrivals[came] - t
    for gpu in w.gpus:
        quiet = min(quiet, gpu.until - t)
    for i in range(1, w.active[0] + 1):
        job = w.jobs[w.active[i]]
        quiet = min(quiet, int(np.ceil((job.message * ALL_BUT - job.moved) / job.pace)))
    return max(quiet, 1)


@njit(interpreted=False)
def _place(w: World, j: int, kind: int, kappa: int) -> None:
    room = 0
    for gpu in w.gpus:
        room += gpu.free >= w.jobs[j].need
    if room < w.jobs[j].size:
        return
    order = w.given[j]
    if kind == LEAST_LOADED:
        order = _by_load(w, w.jobs[j].size > kappa)
    worker = w.jobs[j].worker0
    for g in order:
        if w.gpus[g].free >= w.jobs[j].need and worker < w.jobs[j].worker0 + w.jobs[j].size:
            w.workers[worker].gpu = g
            w.residents[g, w.gpus[g].count] = worker
            w.gpus[g].count += 1
            w.gpus[g].free -= w.jobs[j].need
            worker += 1
    _find_nodes(w, j)
    _add_load(w, j, w.jobs[j].iterations * (w.jobs[j].forward + w.jobs[j].backward + _message_cost(w, j)))
    w.jobs[j].placed = 1


@njit(interpreted=False)
def _find_nodes(w: World, j: int) -> None:
    for h in range(w.hosts.size):
        for worker in range(w.jobs[j].worker0, w.jobs[j].worker0 + w.jobs[j].size):
            if w.gpus[w.workers[worker].gpu].node == h:
                w.nodes[j, w.jobs[j].spans] = h
                w.jobs[j].spans += 1
                break


@njit(interpreted=False)
def _by_load(w: World, by_node: bool) -> Ints:
    """The GPUs by their load; ``by_node``: by the mean load of their nodes, then by their own. Ties by number."""
    mean = np.zeros(w.gpus.size)
    if by_node:
        for g in range(w.gpus.size):
            host = w.hosts[w.gpus[g].node]
            for other in range(host.first, host.last):
                mean[g] += w.gpus[other].load / (host.last - host.first)
    order = np.zeros(w.gpus.size, dtype=np.int64)
    for g in range(w.gpus.size):
        i = g
        while i > 0 and _before(w, mean, g, order[i - 1]):
            order[i] = order[i - 1]
            i -= 1
        order[i] = g
    return order


@njit(interpreted=False)
def _before(w: World, mean: Floats, g: int, other: int) -> bool:
    # g > other: at a tie the other one stays in front
    if mean[g] != mean[other]:
        return bool(mean[g] < mean[other])
    if mean[g] > 0 and w.gpus[g].node != w.gpus[other].node:
        return False
    return bool(w.gpus[g].load < w.gpus[other].load)


@njit(interpreted=False)
def _message_cost(w: World, j: int) -> float:
    return w.jobs[j].cost if w.jobs[j].spans > 1 else 0.0


@njit(interpreted=False)
def _add_load(w: World, j: int, amount: float) -> None:
    for worker in range(w.jobs[j].worker0, w.jobs[j].worker0 + w.jobs[j].size):
        w.gpus[w.workers[worker].gpu].load += amount


@njit(interpreted=False)
def _end_tasks(w: World, t: int) -> int:
    """End the GPU tasks that are due; the number of jobs that end with them."""
    ended = 0
    for g in range(w.gpus.size):
        worker = w.gpus[g].working
        if w.gpus[g].until > t:
            continue
        w.gpus[g].working, w.gpus[g].until = IDLE, NEVER
        j = w.workers[worker].job
        seconds = w.jobs[j].forward if w.workers[worker].phase == FORWARD else w.jobs[j].backward
        w.jobs[j].service -= seconds
        w.gpus[g].load -= seconds
        if w.workers[worker].phase == FORWARD:
            w.workers[worker].phase = READY_BACKWARD
            continue
        w.workers[worker].phase = WAITING
        w.jobs[j].barrier += 1
        if w.jobs[j].barrier == w.jobs[j].size:
            ended += _pass_barrier(w, j, t)
    return ended


@njit(interpreted=False)
def _first(w: World, j: int, other: int) -> bool:
    return w.jobs[j].service < w.jobs[other].service or (w.jobs[j].service == w.jobs[other].service and j < other)


@njit(interpreted=False)
def _pass_barrier(w: World, j: int, t: int) -> int:
    if w.jobs[j].spans == 1 or w.jobs[j].message == 0:
        return int(_end_iteration(w, j, t))
    # the transfers that wait stand in the order of what their jobs have left to compute, which does not change meanwhile
    i = w.waiting[0] + 1
    while i > 1 and _first(w, j, w.waiting[i - 1]):
        w.waiting[i] = w.waiting[i - 1]
        i -= 1
    w.waiting[i] = j
    w.waiting[0] += 1
    return 0


@njit(interpreted=False)
def _has_moved(w: World, j: int) -> bool:
    return bool(w.jobs[j].moved >= w.jobs[j].message * ALL_BUT)


@njit(interpreted=False)
def _any_moved(w: World) -> bool:
    """Has any transfer moved all of its bytes?"""
    for i in range(1, w.active[0] + 1):
        if _has_moved(w, w.active[i]):
            return True
    return False


@njit(interpreted=False)
def _end_transfers(w: World, t: int) -> int:
    """End the transfers whose bytes have moved; the number of jobs that end with them."""
    ended, kept, count = 0, 0, w.active[0]
    for i in range(1, count + 1):
        j = w.active[i]
        if not _has_moved(w, j):
            kept += 1
            w.active[kept] = j
            continue
        for h in w.nodes[j, : w.jobs[j].spans]:
            w.hosts[h].carried -= 1
            place = 0
            while w.running[h, place] != j:
                place += 1
            for other in range(place, w.hosts[h].carried):
                w.running[h, other] = w.running[h, other + 1]
        _add_load(w, j, -_message_cost(w, j))
        ended += _end_iteration(w, j, t)
    w.active[0] = kept
    _set_paces(w)
    return ended


@njit(interpreted=False)
def _end_iteration(w: World, j: int, t: int) -> int:
    w.jobs[j].barrier = 0
    w.jobs[j].iterations -= 1
    for worker in range(w.jobs[j].worker0, w.jobs[j].worker0 + w.jobs[j].size):
        w.workers[worker].phase = READY_FORWARD
    if w.jobs[j].iterations > 0:
        return 0
    w.jobs[j].end = t
    for worker in range(w.jobs[j].worker0, w.jobs[j].worker0 + w.jobs[j].size):
        g, place = w.workers[worker].gpu, 0
        while w.residents[g, place] != worker:
            place += 1
        w.gpus[g].count -= 1
        w.residents[g, place] = w.residents[g, w.gpus[g].count]
        w.gpus[g].free += w.jobs[j].need
    return 1


@njit(interpreted=False)
def _start_transfers(w: World, rule: int, published: bool) -> int:
    contended, kept, count = 0, 0, w.waiting[0]
    for i in range(1, count + 1):
        j = w.waiting[i]
        if not _admitted(w, j, rule, published):
            kept += 1
            w.waiting[kept] = j
            continue
        contended += _most(w, j) > 0
        w.jobs[j].moved = 0.0
        for h in w.nodes[j, : w.jobs[j].spans]:
            w.running[h, w.hosts[h].carried] = j
            w.hosts[h].carried += 1
        w.active[0] += 1
        w.active[w.active[0]] = j
        _set_paces(w)
    w.waiting[0] = kept
    return contended


@njit(interpreted=False)
def _admitted(w: World, j: int, rule: int, published: bool) -> bool:
    """May the transfer start? With the published accounting AdaDUAL's question itself moves another transfer on."""
    most = _most(w, j)
    if rule != ADADUAL or most != 1:
        return bool(most < max(rule, 1))
    for h in w.nodes[j, : w.jobs[j].spans]:
        if w.hosts[h].carried == 0:
            continue
        old = w.running[h, 0]
        if published:
            w.jobs[old].moved += w.jobs[old].pace
        if w.jobs[j].message >= w.costs[2] * (w.jobs[old].message - w.jobs[old].moved):
            return False
        if published:
            return True
    return True


@njit(interpreted=False)
def _most(w: World, j: int) -> int:
    most = 0
    for h in w.nodes[j, : w.jobs[j].spans]:
        most = max(most, w.hosts[h].carried)
    return most


@njit(interpreted=False)
def _set_paces(w: World) -> None:
    for i in range(1, w.active[0] + 1):
        j = w.active[i]
        k = _most(w, j)
        w.jobs[j].pace = 1.0 / (k * w.costs[0] + (k - 1) * w.costs[1])


@njit(interpreted=False)
def _start_tasks(w: World, t: int) -> None:
    for g in range(w.gpus.size):
        if w.gpus[g].working != IDLE:
            continue
        best = IDLE
        for worker in w.residents[g, : w.gpus[g].count]:
            if w.workers[worker].phase == READY_FORWARD or w.workers[worker].phase == READY_BACKWARD:
                j, other = w.workers[worker].job, w.workers[best].job
                if best == IDLE or _first(w, j, other):
                    best = worker
        if best != IDLE:
            ready = w.workers[best].phase == READY_FORWARD
            seconds = w.jobs[w.workers[best].job].forward if ready else w.jobs[w.workers[best].job].backward
            w.workers[best].phase = FORWARD if ready else BACKWARD
            w.gpus[g].working = best
            w.gpus[g].until = t + seconds
