"""The time at which a job could start on idle GPUs, and what the rules for sharing keep between two questions, compiled.

A rule is asked about every waiting job at every event. Two answers of one event mostly depend on the same state, so the
state is looked at once. `generation` counts the different states: the run has started a job, or finished one, or the
clock has moved on. Times at which GPUs become idle change only with starts and completions (`version_of`).
"""

from __future__ import annotations

import numpy as np

from optsched.classes.gpu_sharing.policies.roomy_nodes import version_of
from optsched.classes.gpu_sharing.policies.sharing_gpus import end_of_node, seconds_left
from optsched.compiled import KERNEL, NESTED, njit
from optsched.problem.arrays import Floats
from optsched.simulation.colocation import Neighbours
from optsched.simulation.next_event import is_set
from optsched.simulation.state import RunContext, State
from optsched.speeds.speed_tables import is_timed

GAPS = (701, 301, 132, 57, 23, 10, 4, 1)  # of Shell's sort


@njit(**NESTED)
def generation(s: State, b: Neighbours) -> int:
    """Return the number of the present state of the run, >= 0; two states have different numbers. O(1).

    Parameters
    ----------
    s
        State of the run.
    b
        Jobs on every GPU.
    """
    kept, version = b.kept[0], version_of(s)
    if kept.version != version or kept.now != s.engine[0].now:
        kept.version, kept.now = version, s.engine[0].now
        kept.generation += 1
    return int(kept.generation)


@njit(**NESTED)
def list_partners(s: State, b: Neighbours) -> int:
    """Write the running jobs that have GPUs alone, and their seconds left, to ``partners``; return their number.

    O(running jobs) after a start or completion, O(1) if nothing has changed since the last call.

    Parameters
    ----------
    s
        State of the run.
    b
        Jobs on every GPU.
    """
    kept, version, now = b.kept[0], version_of(s), generation(s, b)
    if kept.listed != version:
        seen, x, count = 0, 0, 0
        while seen < s.engine[0].active and 2 * x < s.clocks.size:
            if is_set(s.clocks, x):
                seen += 1
                if s.jobs[s.executions[x].job].alone > 0:
                    b.partners[count].job, b.partners[count].execution = s.executions[x].job, x
                    count += 1
            x += 1
        kept.listed, kept.partners = version, count
        kept.timed = -1
    if kept.timed != now:
        kept.timed = now
        for k in range(kept.partners):
            b.partners[k].left = seconds_left(s, b.partners[k].execution)
    return int(kept.partners)


@njit(**NESTED)
def _sort(values: Floats, first: int, end: int) -> None:
    # Shell's sort.
    for gap in GAPS:
        for i in range(first + gap, end):
            value, k = values[i], i
            while k >= first + gap and values[k - gap] > value:
                values[k] = values[k - gap]
                k -= gap
            values[k] = value


@njit(**NESTED)
def _sort_ends(s: State, b: Neighbours) -> None:
    # ``ends[0]`` of every node: the times at which its GPUs are idle, ascending; -inf for one that is idle now.
    for v in range(b.nodes.size):
        node = b.nodes[v]
        if node.changed == 0:
            continue
        node.changed = 0
        for g in range(node.first, end_of_node(b, v)):
            gpu, end = b.gpus[g], -np.inf
            if gpu.one >= 0:
                end = max(end, s.executions[s.jobs[gpu.one].execution].finish)
            if gpu.other >= 0:
                end = max(end, s.executions[s.jobs[gpu.other].execution].finish)
            b.ends[0, g] = end
        _sort(b.ends[0], node.first, end_of_node(b, v))


@njit(**KERNEL)
def push_below(heap: Floats, n: int, size: int, value: float) -> int:
    """Add a value to the n smallest so far, a heap with the largest first; return the size. O(log n).

    Parameters
    ----------
    heap
        The smallest values so far, f64[>= n].
    n
        Most values that are kept; if there are as many, the value must be below the first, which it replaces.
    size
        Number of values in the heap.
    value
        The new value.
    """
    i = size
    if size < n:
        while i > 0 and heap[(i - 1) // 2] < value:
            heap[i] = heap[(i - 1) // 2]
            i = (i - 1) // 2
        heap[i] = value
        return size + 1
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= value:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = value
    return size


@njit(**NESTED)
def _end(s: State, context: RunContext, b: Neighbours, j: int, whole: bool) -> float:
    # The time at which the GPUs that a job needs are idle: the n-th of the cluster, or of the node where it is soonest.
    n, kind, size, least = s.jobs[j].gpus, s.jobs[j].kind, 0, np.inf
    for v in range(b.nodes.size):
        if not context.eligible[kind, v]:
            continue
        first, end = b.nodes[v].first, end_of_node(b, v)
        if whole:
            for g in range(first, end):
                if size == n and b.ends[0, g] >= b.ends[1, 0]:
                    break  # nor are the others of the node, which are idle later
                size = push_below(b.ends[1], n, size, b.ends[0, g])
        elif first + n <= end:
            least = min(least, b.ends[0, first + n - 1])
    return float(b.ends[1, 0] if whole and size == n else least)


@njit(**NESTED)
def any_node(context: RunContext, b: Neighbours, j: int) -> bool:
    """Return True if a job may wait for idle GPUs of any nodes, false if it waits for those of one node.

    Parameters
    ----------
    context
        Constants of the run.
    b
        Jobs on every GPU.
    j
        The waiting job.
    """
    return bool(b.sharers[j].spans != 0 or is_timed(context.tables, j))


@njit(**NESTED)
def wait_for_idle(s: State, context: RunContext, b: Neighbours, j: int) -> float:
    """Return the seconds until the GPUs that a job needs are idle, if no other job arrives; inf: never.

    The GPUs must be on one node if one node can hold the gang and its speed may depend on the number of nodes.
    O(GPUs) for the first job of a kind after a start or completion, then O(1).

    Parameters
    ----------
    s
        State of the run.
    context
        Constants of the run.
    b
        Jobs on every GPU.
    j
        The waiting job.
    """
    whole = any_node(context, b, j)
    wait, version = b.waits[2 * s.jobs[j].kind + whole], version_of(s)
    if wait.version != version:
        _sort_ends(s, b)
        wait.version, wait.end = version, _end(s, context, b, j, whole)
    return float(max(0.0, wait.end - s.engine[0].now))
