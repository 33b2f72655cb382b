"""The k-way myopic rule: start an all-reduce beside any number of others iff that beats waiting for the next completion."""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import njit
from optsched.policies.decorators import task_order
from optsched.policies.task_orders import shortest_service
from optsched.simulation.links import PENALTY, SECONDS_PER_BYTE, bytes_left
from optsched.simulation.policy import Knowledge
from optsched.simulation.task_policy import Countdown, TaskJobs, TaskOrder, admission


@njit
def drain(sizes: Any, b: float, eta: float) -> float:
    """Summed completion times of transfers of these ``sizes``, sorted upwards, that all run together on one link."""
    now, total, before = 0.0, 0.0, 0.0
    for i in range(sizes.size):
        k = sizes.size - i
        now += (sizes[i] - before) * (k * b + (k - 1) * eta)
        total += now
        before = sizes[i]
    return total


@njit
def insert_sorted(sizes: Any, count: int, new: float) -> None:
    """Put ``new`` among the first ``count`` of ``sizes``, sorted upwards, which is long enough."""
    while count > 0 and sizes[count - 1] > new:
        sizes[count] = sizes[count - 1]
        count -= 1
    sizes[count] = new


@njit
def gain_of_waiting(running: Any, new: float, b: float, eta: float) -> float:
    """Summed completions if ``new`` starts beside ``running`` (sorted upwards) now, less those if it waits for the first."""
    k = running.size
    beside, after = np.empty(k + 1), np.empty(k)
    for i in range(k):
        beside[i] = running[i]
        if i > 0:
            after[i - 1] = running[i] - running[0]
    insert_sorted(beside, k, new)
    insert_sorted(after, k - 1, new)
    first = running[0] * (k * b + (k - 1) * eta)
    return drain(beside, b, eta) - ((k + 1) * first + drain(after, b, eta))


@admission
def pays_now(job: Any, links: Any, numbers: Any) -> bool:
    """On every node where something runs: is now strictly better than after its next completion?"""
    b, eta = links.cost[SECONDS_PER_BYTE], links.cost[PENALTY]
    for e in range(links.first[job], links.first[job] + links.span[job]):
        node = links.job_node[e]
        if links.running[node] == 0:
            continue
        sizes = np.empty(links.running[node])
        other = links.head[node]
        for i in range(sizes.size):
            insert_sorted(sizes, i, bytes_left(links, links.sending[other].job))
            other = links.after[other]
        if not gain_of_waiting(sizes, links.message[job], b, eta) < 0.0:
            return False
    return True


@task_order("k-way", Knowledge.CLAIRVOYANT, default_placement="lwf")
def k_way(jobs: TaskJobs, by_size: bool = False) -> TaskOrder:
    """The k-way myopic rule in place of AdaDUAL's, which is its case k = 1.

    **Problem** and **Knowledge** (clairvoyant) as ``ada-srsf``.
    With k transfers of x_1 <= x_2 <= ... bytes left on a node, one of M bytes starts iff the summed completion times are
    smaller than when it starts at the next completion, all else drained without further starts; for M <= x_1 and M <=
    x_2 - x_1 that is M / x_1 < (k b + (k - 1) eta) / (2 (b + eta)). It must pay on each of its nodes; it is asked when
    it becomes ready, and again when another one has ended on one of its nodes. ``by_size``: transfers are asked about in
    order of their sizes, not of the service of their jobs.

    **Guarantee** none known. **Complexity** O(k log k) a node and test. **Reference** this project's extension of the
    two-task theorem of Wang, Shi, Wang, Chu, arXiv 2002.10105 (2020).
    """
    if jobs.contention is not None:
        jobs.contention.require_penalty("k-way")
    return shortest_service(jobs, pays_now, link=Countdown(constant=jobs.message) if by_size else None)
