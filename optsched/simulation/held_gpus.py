"""Which GPUs an execution holds, compiled: as many of each pool, or each by its name where two jobs may be on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import INNER, NESTED, njit
from optsched.simulation.state import COUNT, FREE, NUMBER, POOL, State


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
def take_named(s: State, neighbours: Any, j: int, x: int) -> int:
    """The first g_j GPUs of ``out[NUMBER]``; their nodes, in the order of the replicas, in ``out``. 1: on several nodes."""
    w, at, gang = s.engine[0], x * s.engine[0].width, s.jobs[j].gpus
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
        _count_alone(s, gpu, j, np.int64(1))
        gpu.jobs += 1
        gpu.free_memory = _free_memory(s, neighbours, g)
        if entries > 0 and s.out[POOL, entries - 1] == gpu.node:
            s.out[COUNT, entries - 1] += 1
        else:
            s.out[POOL, entries], s.out[COUNT, entries] = gpu.node, 1
            entries += 1
        if gpu.node != s.out[POOL, 0]:
            apart = 1
    _count_on_nodes(s, neighbours, x, np.int64(1))
    return apart


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
