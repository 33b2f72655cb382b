"""Many stops and starts of one instant in one compiled call: what a round of a policy that names nodes asks for.

A call from Python hands over some sixty arrays, which takes longer than a stop or a start; a round has hundreds.
"""

from __future__ import annotations

from typing import Any

from optsched.compiled import njit
from optsched.simulation.kernel import start, stop
from optsched.simulation.state import RUNNING, WAITING, State


@njit(cache=True)
def apply_moves(s: State, jobs: Any, first: Any, node: Any, count: Any) -> int:
    """Move i stops ``jobs[i]`` where it names no GPUs, else starts it on ``count[k]`` GPUs of ``node[k]``.

    Its entries are k = first[i] .. first[i + 1] - 1. In order, until one is not possible. Returns how many were done;
    nothing of the next one is done.
    """
    for i in range(jobs.size):
        j = jobs[i]
        if j < 0 or j >= s.status.size:
            return i
        if first[i] == first[i + 1]:
            if s.status[j] != RUNNING:
                return i
            stop(s, j)
            continue
        if s.status[j] != WAITING or first[i + 1] - first[i] > s.out_pool.size:
            return i
        total, entries = 0, 0
        for k in range(first[i], first[i + 1]):
            p = node[k]
            if p < 0 or p >= s.free.size or count[k] < 1 or not s.eligible[s.kind[j], p]:
                return i
            given = count[k]
            for other in range(first[i], k):
                if node[other] == p:
                    given += count[other]
            if given > s.free[p]:
                return i
            s.out_pool[entries], s.out_count[entries] = p, count[k]
            entries += 1
            total += count[k]
        if total != s.gpus[j]:
            return i
        start(s, j, entries)
    return int(jobs.size)
