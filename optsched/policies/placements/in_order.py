"""Rules that take nodes or GPUs in an order.

``count`` and ``first-fit`` order by index, ``most-free`` by free GPUs, ``lwf`` (least workload first) and ``list`` by
load.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optsched.compiled import NESTED, njit
from optsched.errors import check_legal
from optsched.policies.placements import PLACEMENTS, SetPlacement
from optsched.problem.contention import LARGEST
from optsched.simulation.placement import Placement, SharedRule, compiled, compiled_shared


@compiled
def _by_index(
    job: int, gpus: int, free: Any, size: Any, eligible: Any, random: Any, tables: Any, out_node: Any, out_count: Any
) -> int:
    left = gpus
    entries = 0
    for p in range(free.size):
        if eligible[p] and free[p] > 0:
            out_node[entries] = p
            out_count[entries] = min(left, free[p])
            left -= out_count[entries]
            entries += 1
            if left == 0:
                return entries
    return 0


@PLACEMENTS.register("count")
def count() -> Placement:
    """Any free GPUs whose type and memory suit the job; nodes are ignored.

    This is the assumption of the theorems on gang scheduling: a gang starts whenever enough GPUs are free. GPUs get
    their names after the run, lowest number first. Complexity O(1) in a homogeneous cluster.
    """
    return Placement("count", _by_index, pooled=True, any_free=True)


@compiled_shared
def _first_open(
    gpus: int, open: Any, load: Any, gpu_node: Any, node_first: Any, random: Any, numbers: Any, out_gpu: Any
) -> int:
    taken = 0
    for g in range(open.size):
        if open[g]:
            out_gpu[taken] = g
            taken += 1
            if taken == gpus:
                return gpus
    return 0


@PLACEMENTS.register("first-fit")
def first_fit() -> Placement:
    """The first g eligible free GPUs in order of (node, index), crossing nodes where needed.

    A gang starts whenever enough GPUs are free, as with ``count``, but its nodes are decided at the start. Where jobs
    share GPUs: the first g with enough free memory. Complexity O(nodes), O(GPUs) where they share. Reference: the
    baseline FF of Wang et al., arXiv 2002.10105.
    """
    return Placement("first-fit", _by_index, any_free=True, shared=SharedRule(_first_open))


FREE, HELD = 0, 1  # order of the nodes: most free GPUs first, or smallest share of held GPUs first
BY = 1  # position of the order, after the state of the random numbers


@njit(**NESTED)
def _level(by: int, free: int, size: int) -> float:
    return (size - free) / size if by == HELD else -1.0 * free


@compiled
def _by_level(
    job: int, gpus: int, free: Any, size: Any, eligible: Any, random: Any, tables: Any, out_node: Any, out_count: Any
) -> int:
    total, by = 0, np.int64(random[BY])
    for p in range(free.size):
        if eligible[p]:
            total += free[p]
    if total < gpus:
        return 0
    left, entries, last = gpus, 0, -np.inf
    while left > 0:  # one level after another: two passes over the nodes for each level
        least = np.inf
        for p in range(free.size):
            if eligible[p] and free[p] > 0 and _level(by, free[p], size[p]) > last:
                least = min(least, _level(by, free[p], size[p]))
        for p in range(free.size):
            if left > 0 and eligible[p] and free[p] > 0 and _level(by, free[p], size[p]) == least:
                out_node[entries] = p
                out_count[entries] = min(left, free[p])
                left -= out_count[entries]
                entries += 1
        last = least
    return entries


@PLACEMENTS.register("most-free")
def most_free() -> Placement:
    """A gang fills the eligible node with most free GPUs (ties: the first), then the next node in this order.

    Any gang fits whenever that number of eligible GPUs is free. Complexity O(nodes) for every number of free GPUs
    among the nodes that it takes. The simulator of the Pollux artifact gives GPUs to a new gang by this rule.
    """
    return SetPlacement("most-free", _by_level, any_free=True, settings=(FREE,))


@compiled_shared
def least_workload_first(
    gpus: int, open: Any, load: Any, gpu_node: Any, node_first: Any, random: Any, numbers: Any, out_gpu: Any
) -> int:
    """Choose the least loaded GPUs, or go through the nodes by mean load; the rule for shared GPUs.

    Parameters
    ----------
    gpus
        GPUs of the gang.
    open
        GPUs that may be chosen, bool[G]; changed in place.
    load
        Load of every GPU, f64[G].
    gpu_node
        Node of every GPU, i64[G].
    node_first
        First GPU of every node, i64[N + 1].
    random
        State of the random numbers.
    numbers
        (kappa,): gangs of at most kappa take GPUs from anywhere.
    out_gpu
        Output: GPUs chosen.

    Returns
    -------
    int
        Number of GPUs chosen; 0: the gang does not fit.
    """
    total = 0
    for g in range(open.size):
        total += open[g]
    if total < gpus:
        return 0
    taken = 0
    last_mean, last = -1.0, -1  # nodes are taken in order of (mean load, number): the last one so far
    while taken < gpus:
        begin, end = 0, open.size
        if gpus > numbers[0]:
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
            begin, end = node_first[node], node_first[node + 1]
        while taken < gpus:
            best = -1
            for g in range(begin, end):
                if open[g] and (best < 0 or load[g] < load[best]):
                    best = g
            if best < 0:
                break
            open[best] = False  # scratch of the engine
            out_gpu[taken] = best
            taken += 1
    return gpus


@PLACEMENTS.register("lwf")
def lwf(kappa: int = 1, seconds_per_byte: float = 0.0) -> Placement:
    """Least workload first: gangs of at most kappa take the least loaded GPUs, larger ones the least loaded nodes.

    The load of a GPU is the work that its residents still have there: forwards, backwards, and b seconds a byte of the
    messages of those that span nodes. A gang of more than ``kappa`` goes through the nodes by mean load of all their
    GPUs, and takes the open GPUs of each, least loaded first. Ties go to the lowest number. Where GPUs are exclusive a
    free GPU has no load, and the least loaded node is the one of which the smallest share is held. Guarantee: none
    known. Complexity O(g G) a placement.

    Reference: Wang, Shi, Wang, Chu, arXiv 2002.10105 (2020). The published simulator counts 7.8125e-9 seconds a byte,
    the constant of 1 GbE, also in its 10 GbE setting.

    Parameters
    ----------
    kappa
        Largest gang that takes GPUs from anywhere.
    seconds_per_byte
        b in seconds a byte; 0: that of the instance's contention.

    Raises
    ------
    InputError
        For an illegal value.
    """
    check_legal(kappa >= 1, "lwf: kappa", kappa, "an integer >= 1")
    legal = f"0 (that of the contention) .. {LARGEST:g}"
    check_legal(0 <= seconds_per_byte <= LARGEST, "lwf: seconds_per_byte", seconds_per_byte, legal)
    rule = SharedRule(least_workload_first, (float(kappa),), seconds_per_byte or None)
    return SetPlacement("lwf", _by_level, any_free=True, shared=rule, settings=(HELD,))


@PLACEMENTS.register("list")
def least_loaded() -> Placement:
    """The g least loaded GPUs anywhere, on any nodes: list scheduling, LWF with kappa = infinity.

    Loads are as in ``lwf``. Where GPUs are exclusive a free one has no load, and this is ``first-fit``. Guarantee:
    none known for gangs; for one-GPU jobs without messages this is Graham's rule. Complexity O(g G) a placement.
    Reference: the baseline LS of Wang et al., arXiv 2002.10105 (2020).
    """
    return Placement("list", _by_index, any_free=True, shared=SharedRule(least_workload_first, (math.inf,)))
