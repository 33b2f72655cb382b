"""Number and places of the GPUs of every job: the two steps of `optsched.policies.goodput`.

**Numbers** (`best_counts`): n jobs and G GPUs, a value for every job and number of GPUs; choose one number each,

    max sum_j value_j(r_j)    subject to    sum_j r_j <= G,    r_j in 0..G,

a multiple-choice knapsack, by dynamic programming: F_j(g) = max over r of F_{j-1}(g - r) + value_j(r). Exact up to the
rounding of n additions. O(n k G) time in numpy for k numbers a job, O((n + k) G) memory. (`goodput_numbers` chooses the same
with few of these states, `goodput_places` finds the same places without a look at all nodes.)

**Places** (`place`): jobs whose number does not change keep their GPUs. The others, the largest first, go to the node
with the fewest free GPUs that suffice; if no node suffices, to as few nodes as possible, those with most free GPUs.
This is a heuristic: it may spread a gang over more nodes than it needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.cluster import Places


def best_counts(values: Sequence[Floats], gpus: int) -> list[int]:
    """Return the number of GPUs r_j of every job.

    If several solutions are optimal, a later job takes fewer GPUs first.

    Parameters
    ----------
    values
        ``values[j][r]``, f64[<= G + 1]: value of r GPUs for job j; -inf if r is not possible. r = 0 always is.
    gpus
        GPUs of the cluster, G.
    """
    best = np.zeros(gpus + 1)  # F: of the jobs so far, on at most g GPUs
    chosen = np.zeros((len(values), gpus + 1), dtype=np.int64)
    every = np.arange(gpus + 1)
    for j, value in enumerate(values):
        possible = np.flatnonzero(np.isfinite(value[: gpus + 1]))
        others = every[:, None] - possible[None, :]  # [g, r]
        total = np.where(others >= 0, best[np.maximum(others, 0)], -np.inf) + value[possible]
        pick = np.argmax(total, axis=1)
        chosen[j] = possible[pick]
        best = total[every, pick]
    counts, room = [0] * len(values), gpus
    for j in range(len(values) - 1, -1, -1):
        counts[j] = int(chosen[j, room])
        room -= counts[j]
    return counts


def place(
    counts: Mapping[int, int], held: Mapping[int, Places], free: Ints, eligible: Mapping[int, Bools]
) -> dict[int, Places]:
    """Return the places of every job with GPUs; a job for which its nodes do not have enough left is absent.

    Parameters
    ----------
    counts
        GPUs of every job; ties go by their order.
    held
        Places that a job keeps if its number does not change.
    free
        GPUs of every node, i64[N].
    eligible
        Nodes that each job may use, bool[N].
    """
    free = free.copy()
    plan: dict[int, Places] = {}
    for j, on in held.items():
        if on and sum(count for _, count in on) == counts.get(j, 0):
            plan[j] = on
            for node, count in on:
                free[node] -= count
    for j in sorted((j for j, r in counts.items() if r and j not in plan), key=lambda j: -counts[j]):
        on = fewest_nodes(counts[j], np.where(eligible[j], free, 0))
        if on:
            plan[j] = on
            for node, count in on:
                free[node] -= count
    return plan


def fewest_nodes(replicas: int, free: Ints) -> Places:
    """Return (node, GPUs) of a gang on the fewest nodes; () if too few GPUs are free.

    Parameters
    ----------
    replicas
        GPUs of the gang.
    free
        Free GPUs of every node, i64[N].
    """
    enough = np.flatnonzero(free >= replicas)
    if enough.size:  # most often
        return ((int(enough[free[enough].argmin()]), replicas),)
    if replicas > int(free.sum()):
        return ()
    on, free = [], free.copy()
    for node in np.argsort(-free, kind="stable").tolist():
        enough = np.flatnonzero(free >= replicas)
        if enough.size:  # the whole gang, or its last part: the node with the least left over
            on.append((int(enough[np.argmin(free[enough])]), replicas))
            break
        on.append((node, int(free[node])))
        replicas -= int(free[node])
        free[node] = 0
    return tuple(sorted(on))
