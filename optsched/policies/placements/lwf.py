"""``lwf``: least workload first, small gangs on the least loaded GPUs, large ones on such nodes; ``list``: all on GPUs."""

from __future__ import annotations

import math
from typing import Any

from optsched.errors import check_legal
from optsched.policies.placements import PLACEMENTS
from optsched.policies.placements.first_fit import _count
from optsched.problem.contention import LARGEST
from optsched.simulation.policy import Placement, SharedRule, compiled, compiled_shared


@compiled_shared
def least_workload_first(
    gpus: int, open: Any, load: Any, gpu_node: Any, node_first: Any, random: Any, numbers: Any, out_gpu: Any
) -> int:
    """The rule where GPUs are shared; ``numbers`` = (kappa,)."""
    total = 0
    for g in range(open.size):
        total += open[g]
    if total < gpus:
        return 0
    found = 0
    if gpus <= numbers[0]:
        while found < gpus:
            best = -1
            for g in range(open.size):
                if open[g] and (best < 0 or load[g] < load[best]):
                    best = g
            open[best] = False  # scratch of the engine
            out_gpu[found] = best
            found += 1
        return gpus
    last_mean, last = -1.0, -1  # nodes are taken in order of (mean load, number): the last one so far
    while found < gpus:
        node, least = -1, 0.0
        for m in range(node_first.size - 1):
            mean = 0.0
            for g in range(node_first[m], node_first[m + 1]):
                mean += load[g]
            mean /= node_first[m + 1] - node_first[m]
            if last >= 0 and (mean < last_mean or (mean == last_mean and m <= last)):
                continue
            if node < 0 or mean < least:
                node, least = m, mean
        last_mean, last = least, node
        while found < gpus:
            best = -1
            for g in range(node_first[node], node_first[node + 1]):
                if open[g] and (best < 0 or load[g] < load[best]):
                    best = g
            if best < 0:
                break
            open[best] = False
            out_gpu[found] = best
            found += 1
    return gpus


@compiled
def _fewest_held(
    job: int, gpus: int, free: Any, size: Any, eligible: Any, random: Any, tables: Any, out_node: Any, out_count: Any
) -> int:
    # Exclusive GPUs: a free one has no load, and the load of a node is the share of its GPUs that are held.
    total = 0
    for m in range(free.size):
        if eligible[m]:
            total += free[m]
    if total < gpus:
        return 0
    left, entries = gpus, 0
    last = -1.0
    while left > 0:  # one share after another: two looks at the nodes for all that are held equally
        least = 2.0
        for m in range(free.size):
            if eligible[m] and free[m] > 0:
                share = (size[m] - free[m]) / size[m]
                if last < share < least:
                    least = share
        for m in range(free.size):
            if left > 0 and eligible[m] and free[m] > 0 and (size[m] - free[m]) / size[m] == least:
                out_node[entries] = m
                out_count[entries] = min(left, free[m])
                left -= out_count[entries]
                entries += 1
        last = least
    return entries


@PLACEMENTS.register("lwf")
def lwf(kappa: int = 1, seconds_per_byte: float = 0.0) -> Placement:
    """Least workload first: gangs of at most kappa take the least loaded GPUs anywhere, larger ones the least loaded nodes.

    The load of a GPU is the work that its residents still have there: forwards, backwards, and b seconds a byte of the
    messages of those that span nodes (``seconds_per_byte`` > 0: that instead of the b of the instance's contention). A gang
    of more than ``kappa`` goes through the nodes by mean load of all their GPUs, and takes the open GPUs of each, least
    loaded first. Ties: lowest number. Where GPUs are exclusive a free GPU has no load, and the least loaded node is the one
    of which the smallest share is held. Guarantee: none known. Complexity O(g G) a placement.

    Reference: Wang, Shi, Wang, Chu, arXiv 2002.10105 (2020). The published simulator counts 7.8125e-9 seconds a byte, the
    constant of 1 GbE, also in its 10 GbE setting.
    """
    check_legal(kappa >= 1, "lwf: kappa", kappa, "an integer >= 1")
    legal = f"0 (that of the contention) .. {LARGEST:g}"
    check_legal(0 <= seconds_per_byte <= LARGEST, "lwf: seconds_per_byte", seconds_per_byte, legal)
    rule = SharedRule(least_workload_first, (float(kappa),), seconds_per_byte or None)
    return Placement("lwf", _fewest_held, any_free=True, shared=rule)


@PLACEMENTS.register("list")
def least_loaded() -> Placement:
    """The g least loaded GPUs anywhere, whatever their nodes: list scheduling, LWF with kappa = infinity.

    Loads as in ``lwf``. Where GPUs are exclusive a free one has no load, and this is ``first-fit``. Guarantee: none known
    for gangs; for one-GPU jobs without messages this is Graham's rule. Complexity O(g G) a placement. Reference: the
    baseline LS of Wang et al., arXiv 2002.10105 (2020).
    """
    return Placement("list", _count, any_free=True, shared=SharedRule(least_workload_first, (math.inf,)))
