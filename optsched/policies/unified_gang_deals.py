"""Compiled steps of `optsched.policies.unified_gangs`: ranks, prices, and the knapsack that deals the GPUs.

Every function runs on arrays of the caller and takes the decisions of its readable form in `optsched.policies.unified`,
with the same floating-point operations in the same order.
"""

from __future__ import annotations

import math
from typing import Any

from optsched.compiled import KERNEL, NESTED, njit, record
from optsched.policies.ties import leading_of
from optsched.policies.unified_places import SHORTEST
from optsched.problem.arrays import Floats, Ints

# An active job. ``row``: of the nodes that it may use and of its rates. ``length``: predicted.
# ``at``: first of the ``parts`` (nodes) that it holds, no parts: it waits. ``seconds``: GPU-seconds of a unit of work.
# The rest is computed at every event: ``unit``, the value of a unit of work; ``kept``, the factor for staying; ``worth``,
# the value of a second on its GPUs; ``dealt``, 1 if it is dealt GPUs; ``here``, the type that it holds; ``type``, the one
# that it gets (-1: none, or several).
GANG = record(
    job="int",
    gpus="int",
    row="int",
    starts="int",
    at="int",
    parts="int",
    dealt="int",
    here="int",
    type="int",
    rate="real",
    seconds="real",
    length="real",
    arrival="real",
    restart="real",
    unit="real",
    kept="real",
    worth="real",
)
RANK, DENSITY, PLAN, SCRATCH = 0, 1, 2, 3  # rows of orders of the jobs


@njit(**NESTED)
def sort_stably(key: Floats, order: Ints, first: int, last: int, scratch: Ints) -> None:
    """Sort ``order[first:last]`` by ascending ``key[order[i]]``; equal keys keep their order. O(n log n).

    Parameters
    ----------
    key
        Keys, f64[m].
    order
        Positions in ``key``, changed in place, i64[m].
    first, last
        Slice that is sorted.
    scratch
        Room for a copy, i64[m].
    """
    width = 1
    while width < last - first:
        for low in range(first, last - width, 2 * width):
            middle, high = low + width, min(low + 2 * width, last)
            if key[order[middle - 1]] <= key[order[middle]]:
                continue
            for i in range(low, middle):
                scratch[i] = order[i]
            left, right, to = low, middle, low
            while left < middle:
                if right < high and key[order[right]] < key[scratch[left]]:
                    order[to] = order[right]
                    right += 1
                else:
                    order[to] = scratch[left]
                    left += 1
                to += 1
        width *= 2


@njit(**KERNEL)
def rank_and_price(
    gangs: Any, done: Floats, weight: Floats, total: float, now: float, cluster: int, order: Ints, key: Floats
) -> int:
    """Rank the jobs by W_j / w_j and compute the value of their GPUs; return the number of GPUs that they want. O(m log m).

    Parameters
    ----------
    gangs
        Active jobs by (arrival, index), GANG[m].
    done
        Units of work that they have done, f64[m].
    weight
        Their weights, f64[m].
    total
        Sum of the weights.
    now
        The present, in seconds.
    cluster
        GPUs of the cluster, G.
    order
        Row `RANK` is set to the ranks, i64[4, >= m].
    key
        Scratch, f64[>= m].
    """
    m, wanted = gangs.size, 0
    for i in range(m):
        gang = gangs[i]
        ratio = max(leading_of(done[i] / gang.length), 0.5)
        times = 1.0 if ratio < 1.0 else math.ldexp(1.0, math.frexp(ratio)[1])
        gang.unit = max(gang.length * times - done[i], 1e-9 * gang.length)  # work left, until it has a value
        key[i] = leading_of(gang.unit * gang.seconds / weight[i])
        order[RANK, i] = i
    sort_stably(key, order[RANK], 0, m, order[SCRATCH])
    before = 0.0
    for k in range(m):
        i = order[RANK, k]
        gang = gangs[i]
        before += weight[i]
        price, left = max(total - before, 0.0) / cluster, gang.unit
        gang.unit = (weight[i] + price * gang.gpus) / gang.rate
        gang.kept = 1.0
        if gang.starts > 0 and gang.restart > 0.0:
            age = max(now - gang.arrival, gang.restart)
            stay = max(min(left / gang.rate, age / gang.starts), SHORTEST * gang.restart)
            gang.kept = 1.0 + gang.restart / stay
        gang.worth = gang.unit * gang.rate * (gang.kept if gang.parts > 0 else 1.0 / gang.kept)
        gang.dealt = 1 if gang.worth > 0.0 else 0
        wanted += gang.gpus
    return int(wanted)


@njit(**KERNEL)
def fill_knapsack(value: Floats, gpus: Ints, cluster: int, order: Ints, best: Floats, taken: Any, chosen: Ints) -> None:
    """Choose jobs of the largest total value, as `optsched.policies.goodput_allocation.best_counts` does.

    If several choices are optimal, a later job is left out first. A job is fixed before the dynamic program if every
    optimal choice has it, or none: if the other state costs more, by the price of a GPU in the linear relaxation, than
    the relaxation is above a feasible choice. O(m + c G) for c other jobs.

    Parameters
    ----------
    value
        Values of the jobs, whole numbers, f64[m].
    gpus
        GPUs of the jobs, i64[m], more than G in all.
    cluster
        GPUs of the cluster, G.
    order
        Jobs by falling value of a GPU, i64[m].
    best
        Scratch, f64[G + 1].
    taken
        Scratch, bool[m, G + 1].
    chosen
        Set to 1 for the jobs that are chosen, i64[m]; else 0.
    """
    room, price, bound, feasible, slack = cluster, -1.0, 0.0, 0.0, cluster
    for i in order:
        if price < 0.0:
            if gpus[i] <= room:
                room -= gpus[i]
                bound += value[i]
            else:
                price = value[i] / gpus[i]
                bound += price * room
        if gpus[i] <= slack:
            slack -= gpus[i]
            feasible += value[i]
    gap = bound - feasible + 1.0 + 1e-9 * bound
    room = cluster
    for i in range(value.size):
        loss = value[i] - price * gpus[i]
        chosen[i] = 1 if loss > gap else 0 if -loss > gap else -1
        if chosen[i] == 1:
            room -= gpus[i]
    for g in range(room + 1):
        best[g] = 0.0
    for i in range(value.size):
        if chosen[i] < 0:
            for g in range(room, -1, -1):
                taken[i, g] = g >= gpus[i] and best[g - gpus[i]] + value[i] > best[g]
                if taken[i, g]:
                    best[g] = best[g - gpus[i]] + value[i]
    for i in range(value.size - 1, -1, -1):
        if chosen[i] < 0:
            chosen[i] = 1 if taken[i, room] else 0
            room -= chosen[i] * gpus[i]
