"""The places of gangs of `optsched.policies.goodput`, compiled: the first node of each number of free GPUs is known.

The same places as `optsched.policies.goodput_allocation.fewest_nodes` finds by a look at all nodes. A gang of k nodes takes
O(k F) steps with up to F GPUs on a node, and the steps over nodes that were passed and have changed since.
"""

from __future__ import annotations

from optsched.compiled import KERNEL, NESTED, njit, types
from optsched.problem.arrays import Bools, Ints

_I = types.int64

# Rows of the scratch array: by number of free GPUs, how many nodes have it and a node before which none has; by row of
# eligible nodes, the GPUs free there.
_NODES, _FROM, _TOTAL = range(3)


@njit(**NESTED)
def _first_node(level: int, free: Ints, may: Bools, scratch: Ints) -> int:
    # The first eligible node with some number of free GPUs, -1 if there is none.
    if scratch[_NODES, level] == 0:
        return -1
    m = scratch[_FROM, level]
    while free[m] != level:
        m += 1
    scratch[_FROM, level] = m
    while m < free.size and not (free[m] == level and may[m]):
        m += 1
    return int(m) if m < free.size else -1


@njit(**NESTED)
def _fewest_nodes(
    need: int, may: Bools, free: Ints, scratch: Ints, levels: int, node: Ints, count: Ints, at: int
) -> int:
    # Write the places of a gang from position ``at`` on, sorted by node; returns the position after them. So many GPUs are
    # free on the nodes that it may use.
    end = at
    while need > 0:
        m, level = -1, need
        while m < 0 and level < levels:  # the fewest that suffice
            m = _first_node(level, free, may, scratch)
            level += 1
        level = min(need, levels) - 1
        while m < 0:  # the most
            m = _first_node(level, free, may, scratch)
            level -= 1
        taken = min(need, free[m])
        need -= taken
        scratch[_NODES, free[m]] -= 1
        free[m] -= taken
        scratch[_NODES, free[m]] += 1
        scratch[_FROM, free[m]] = min(scratch[_FROM, free[m]], m)
        k = end
        while k > at and node[k - 1] > m:
            node[k], count[k] = node[k - 1], count[k - 1]
            k -= 1
        node[k], count[k] = m, taken
        end += 1
    return end


@njit(
    signature=types.void(
        _I[::1], _I[::1], _I[::1], types.boolean[:, ::1], _I[::1], _I[:, ::1], _I[::1], _I[::1], _I[::1]
    ),
    **KERNEL,
)
def place_gangs(
    jobs: Ints,
    counts: Ints,
    row: Ints,
    eligible: Bools,
    free: Ints,
    scratch: Ints,
    node: Ints,
    count: Ints,
    first: Ints,
) -> None:
    """Place gangs in order on the fewest nodes; one for which too few GPUs are free has no places.

    Parameters
    ----------
    jobs
        Positions of the gangs in the order in which they are placed, i64[k].
    counts
        GPUs of every job, i64[m].
    row
        Row of ``eligible`` of every job, i64[m].
    eligible
        Nodes that jobs may use, bool[rows, N].
    free
        Free GPUs of every node, i64[N]; it is changed.
    scratch
        Zeros, i64[3, S] for an S above the GPUs of a node and the rows of ``eligible``.
    node, count
        Output: places, i64[G].
    first
        Output: where the places of each gang begin, i64[k + 1].
    """
    levels = 1
    for m in range(free.size):
        scratch[_NODES, free[m]] += 1
        levels = max(levels, free[m] + 1)
        for k in range(eligible.shape[0]):
            scratch[_TOTAL, k] += free[m] if eligible[k, m] else 0
    first[0] = 0
    for i in range(jobs.size):
        j = jobs[i]
        at = end = first[i]
        if counts[j] <= scratch[_TOTAL, row[j]]:
            end = _fewest_nodes(counts[j], eligible[row[j]], free, scratch, levels, node, count, at)
        for k in range(at, end):
            for other in range(eligible.shape[0]):
                scratch[_TOTAL, other] -= count[k] if eligible[other, node[k]] else 0
        first[i + 1] = end
