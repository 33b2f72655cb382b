"""Many stops and starts of one instant in one compiled call: what a round of a policy that names nodes asks for."""

from __future__ import annotations

from typing import Any

from optsched.compiled import njit
from optsched.heap import KERNEL
from optsched.simulation.executions import start, stop
from optsched.simulation.records import RUNNING, WAITING
from optsched.simulation.state import COUNT, FREE, POOL, Site, State


@njit(**KERNEL)
def apply_moves(s: State, site: Site, jobs: Any, first: Any, node: Any, count: Any) -> int:
    """Move i stops ``jobs[i]`` where it names no GPUs, else starts it on ``count[k]`` GPUs of ``node[k]``.

    Its entries are k = first[i] .. first[i + 1] - 1. In order, until one is not possible. Returns how many were done;
    nothing of the next one is done.
    """
    for i in range(jobs.size):
        j = jobs[i]
        if j < 0 or j >= s.jobs.size:
            return i
        if first[i] == first[i + 1]:
            if s.jobs[j].status != RUNNING:
                return i
            stop(s, site, j)
            continue
        entries = _named(s, site, j, node[first[i] : first[i + 1]], count[first[i] : first[i + 1]])
        if entries == 0:
            return i
        start(s, site, j, entries, 0)
    return int(jobs.size)


@njit(**KERNEL)
def _named(s: State, site: Site, j: int, node: Any, count: Any) -> int:
    # The entries of these GPUs in ``out``; 0 where j may not start there.
    job, total = s.jobs[j], 0
    if job.status != WAITING or node.size > s.world[0].width:
        return 0
    for k in range(node.size):
        p, given = node[k], count[k]
        if p < 0 or p >= s.pools.shape[1] or given < 1 or not site.eligible[job.kind, p]:
            return 0
        total += given
        for other in range(k):
            if node[other] == p:
                given += count[other]
        if given > s.pools[FREE, p]:
            return 0
        s.out[POOL, k], s.out[COUNT, k] = p, count[k]
    return int(node.size) if total == job.gpus else 0
