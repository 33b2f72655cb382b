"""When a job could start on idle GPUs, and how fast it would be on those chosen, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import njit
from optsched.compiled.heap import KERNEL, NESTED
from optsched.policies.sharing_gain import seconds_with
from optsched.policies.sharing_gpus import end_of_node
from optsched.simulation.state import COUNT, NUMBER, POOL, Neighbours, RunContext, State
from optsched.speeds.speed_tables import is_timed, pace


@njit(**KERNEL)
def select(candidates: Any, low: int, high: int, n: int) -> float:
    """What would be at position ``n`` if the values of ``candidates[low : high + 1]`` were sorted.

    Hoare's FIND, O(high - low) on average; the values change places.
    """
    while low < high:
        pivot, i, j = candidates[(low + high) // 2].value, low, high
        while i <= j:
            while candidates[i].value < pivot:
                i += 1
            while candidates[j].value > pivot:
                j -= 1
            if i <= j:
                one, two = candidates[i].value, candidates[j].value
                candidates[i].value, candidates[j].value = two, one
                i += 1
                j -= 1
        if n <= j:
            high = j
        elif n >= i:
            low = i
        else:
            break
    return float(candidates[n].value)


@njit(**NESTED)
def _wait_on(s: State, context: RunContext, b: Neighbours, j: int, first: int, end: int) -> float:
    # Seconds until n of the GPUs from `first` to `end` that suit A are idle, when nobody else comes: the n-th smallest time
    # at which one is; inf: they are fewer.
    base, count, now, n = b.gpus.size, 0, s.engine[0].now, s.jobs[j].gpus
    for g in range(first, end):
        gpu = b.gpus[g]
        if context.eligible[s.jobs[j].kind, gpu.node]:
            idle_at = 0.0
            if gpu.one >= 0:
                idle_at = max(idle_at, s.executions[s.jobs[gpu.one].execution].finish - now)
            if gpu.other >= 0:
                idle_at = max(idle_at, s.executions[s.jobs[gpu.other].execution].finish - now)
            b.candidates[base + count].value = idle_at
            count += 1
    return float(select(b.candidates, base, base + count - 1, base + n - 1)) if count >= n else np.inf


@njit(**NESTED)
def wait_for_idle(s: State, context: RunContext, b: Neighbours, j: int) -> float:
    """Seconds until as many GPUs as ``j`` needs are idle: on one node, where its gang fits one and its speed may differ."""
    if b.sharers[j].spans != 0 or is_timed(context.tables, j):
        return _wait_on(s, context, b, j, np.int64(0), b.gpus.size)
    least = np.inf
    for node in range(b.nodes.size):
        least = min(least, _wait_on(s, context, b, j, b.nodes[node].first, end_of_node(b, node)))
    return float(least)


@njit(**NESTED)
def seconds_chosen(s: State, context: RunContext, b: Neighbours, j: int, option: int) -> float:
    """e_A: seconds alone of a waiting job with that sub-batch on the GPUs chosen; their nodes are left in ``out``."""
    if is_timed(context.tables, j):
        return seconds_with(b, j, option)
    entries, apart = 0, 0
    for i in range(s.jobs[j].gpus):
        node = b.gpus[s.out[NUMBER, i]].node
        if entries > 0 and s.out[POOL, entries - 1] == node:
            s.out[COUNT, entries - 1] += 1
        else:
            s.out[POOL, entries], s.out[COUNT, entries] = node, 1
            entries += 1
        if node != s.out[POOL, 0]:
            apart = 1
    unit = pace(context.tables, j, s.jobs[j].gpus, s.out[POOL], s.out[COUNT])
    return float(s.jobs[j].left * unit * b.stretch[j, option, apart])
