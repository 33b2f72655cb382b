"""The compiled choice of `sjf-bsbf` and `sjf-ffs`: idle GPUs if they suffice, else GPUs with one job, best partners first.

Numbers of the rule: test the benefit (else share wherever there is room), consolidated, joint, order partners by saving,
accumulate. Notation of section 3 of the sheet: A new, R running, ``e`` remaining seconds alone, ``xi`` slow-downs; F idle
GPUs, O GPUs with one job. Rules and their reasons stand in the docstring of `optsched.policies.sjf_bsbf`.

Small functions get the few arrays that they need: a call that hands on the whole state costs a second of compiling.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import njit
from optsched.heap import KERNEL
from optsched.simulation.sharing_rule import sharing_rule
from optsched.simulation.sharing_state import NOW, SharingState

TEST, CONSOLIDATED, JOINT, SAVING, ACCUMULATE = range(5)
CLOSED, IDLE, OPEN = range(3)  # what a GPU is to the job that is asked about
WHOLE_CLUSTER = -1


@njit(**KERNEL)
def pair_average(e_a: float, e_r: float, xi_a: float, xi_r: float) -> float:
    """t_con: average completion of A and R when both run together from now on."""
    hat_a, hat_r = xi_a * e_a, xi_r * e_r
    if hat_a >= hat_r:
        return e_a / 2 + (1 - 1 / (2 * xi_a)) * hat_r
    return e_r / 2 + (1 - 1 / (2 * xi_r)) * hat_a


@njit(**KERNEL)
def pair_gains(e_a: float, e_first: float, e_r: float, xi_a: float, xi_r: float) -> bool:
    """t_con < t_seq = e_R + e_first / 2, without quotients: at a threshold that floats hold, the answer is exact.

    ``e_first``: A alone with its first sub-batch, which it would run after waiting.
    """
    if xi_a * e_a >= xi_r * e_r:
        return ((2 * xi_a - 1) * xi_r - 2 * xi_a) * e_r + xi_a * (e_a - e_first) < 0.0
    return (2 * xi_r - 1) * xi_a * e_a < xi_r * (e_r + e_first)


@njit(**KERNEL)
def _seconds_left(clock: Any, left: Any, paid: Any, pace: Any, slow: Any, r: int) -> float:
    # e_R: seconds that the running job would still take alone, where it is
    return max(0.0, left[r] - (clock[NOW] - paid[r]) / (pace[r] * slow[r])) * pace[r]


@njit(**KERNEL)
def _alone(alone: Any, stretch: Any, spans: Any, j: int, option: int) -> float:
    # e_A: seconds alone of a waiting job with that sub-batch
    return alone[j] * stretch[j, option, spans[j]]


@njit(**KERNEL)
def _only(resident: Any, g: int) -> int:
    # the job on a GPU that has one
    return resident[g, 0] if resident[g, 0] >= 0 else resident[g, 1]


@njit(**KERNEL)
def _largest_batch(memory: Any, j: int, room: Any, out_gpu: Any, n: int) -> int:
    # The first option whose memory fits on all GPUs chosen; the caller knows that some option does.
    least, option = np.inf, 0
    for i in range(n):
        least = min(least, room[out_gpu[i]])
    while memory[j, option] > least:
        option += 1
    return option


@njit(**KERNEL)
def _before(idle: Any, jobs: Any, a: int, b: int, n: int, consolidated: bool) -> bool:
    # a strict order of all nodes
    if consolidated:
        over_a, over_b = idle[a] - n, idle[b] - n
        if (over_a >= 0) != (over_b >= 0):
            return bool(over_a >= 0)
        if over_a != over_b:
            return bool(over_a < over_b if over_a >= 0 else over_a > over_b)
    return bool(jobs[a] < jobs[b] or (jobs[a] == jobs[b] and a < b))


@njit(**KERNEL)
def _order_nodes(order: Any, idle: Any, jobs: Any, n: int, consolidated: bool) -> None:
    # Fewest jobs first; consolidated: the tightest fit first, nodes that do not fit last. Then the node's number. Shell's
    # sort of the order that was last asked for, which is often right still: then O(N).
    for gap in (701, 301, 132, 57, 23, 10, 4, 1):
        for i in range(gap, order.size):
            node, k = order[i], i
            while k >= gap and _before(idle, jobs, node, order[k - gap], n, consolidated):
                order[k] = order[k - gap]
                k -= gap
            order[k] = node


@njit(**KERNEL)
def _take(order: Any, node_gpu: Any, use: Any, wanted: int, out_gpu: Any, found: int, n: int, span: Any) -> int:
    # GPUs of one use on the nodes order[span[0]:span[1]], behind the `found` ones in out_gpu, up to n in all; the new count
    for i in range(span[0], span[1]):
        for g in range(node_gpu[order[i]], node_gpu[order[i] + 1]):
            if found < n and use[g] == wanted:
                out_gpu[found] = g
                found += 1
    return found


@njit(**KERNEL)
def _next_partner(found: Any, value: Any, count: int) -> int:
    # the one with the smallest value, ties by number; -1: none is left
    best = -1
    for k in range(count):
        if found[k] >= 0 and (best < 0 or (value[k], found[k]) < (value[best], found[best])):
            best = k
    return best


@njit(**KERNEL)
def _look(s: SharingState, j: int, last: int) -> bool:
    # What every GPU is to j; are there n that are idle or open?
    count = 0
    for g in range(s.jobs_on.size):
        s.use[g] = CLOSED
        if s.jobs_on[g] < 2 and s.eligible[s.suits[j], s.gpu_node[g]] and s.room[g] >= s.memory[j, last]:
            if s.jobs_on[g] == 0:
                s.use[g] = IDLE
            elif s.xi[s.kind[j], s.kind[_only(s.resident, g)]] < np.inf:
                s.use[g] = OPEN
            count += s.use[g] != CLOSED
    return bool(count >= s.gpus[j])


@njit(**KERNEL)
def _weigh(s: SharingState, j: int, r: int, node: int, last: int, at: int) -> bool:
    # The best sub-batch beside r: value[at] its t_con (or minus the saving), other[at] which; does sharing pay?
    room = np.inf
    for i in range(s.first[r], s.first[r + 1]):
        g = s.gang[i]
        if s.use[g] == OPEN and (node == WHOLE_CLUSTER or s.gpu_node[g] == node):
            room = min(room, s.room[g])
    xi_a, xi_r = s.xi[s.kind[j], s.kind[r]], s.xi[s.kind[r], s.kind[j]]
    e_r = _seconds_left(s.clock, s.left, s.paid, s.pace, s.slow, r)
    e_first, e_best = _alone(s.alone, s.stretch, s.spans, j, 0), 0.0
    best, chosen = np.inf, -1
    for option in range(last + 1):
        if s.memory[j, option] <= room:
            e_a = _alone(s.alone, s.stretch, s.spans, j, option)
            average = pair_average(e_a, e_r, xi_a, xi_r)
            if average < best:
                best, chosen, e_best = average, option, e_a
    s.value[at] = best - (e_r + e_first / 2) if s.numbers[SAVING] != 0.0 else best
    s.other[at] = chosen
    return chosen >= 0 and pair_gains(e_best, e_first, e_r, xi_a, xi_r)


@njit(**KERNEL)
def _best_partners(s: SharingState, j: int, node: int, idle: int, last: int, span: Any) -> int:
    # Step 3 on one node or the whole cluster; the option, -1: j waits.
    n, taken, option, count = s.gpus[j], idle, 0, 0
    open_gpus = _take(s.order, s.node_gpu, s.use, OPEN, s.listed, 0, s.listed.size, span)
    for i in range(open_gpus):
        r = _only(s.resident, s.listed[i])
        if s.mark[r] != j:
            s.mark[r] = j
            if _weigh(s, j, r, node, last, count):
                s.found[count] = r
                count += 1
    for i in range(open_gpus):
        s.mark[_only(s.resident, s.listed[i])] = -1
    while taken < n:
        k = _next_partner(s.found, s.value, count)
        if k < 0:
            return -1
        option = max(option, int(s.other[k]))
        for i in range(open_gpus):
            if taken < n and _only(s.resident, s.listed[i]) == s.found[k]:
                s.out_gpu[taken] = s.listed[i]
                taken += 1
        s.found[k] = -1
    return max(option, _largest_batch(s.memory, j, s.room, s.out_gpu, n))


@njit(**KERNEL)
def _list_partners(s: SharingState, j: int, idle: int) -> int:
    # Different jobs on out_gpu[idle:n] into found, their seconds alone into value, their slow-down without A into other.
    count = 0
    for i in range(idle, s.gpus[j]):
        r = _only(s.resident, s.out_gpu[i])
        if s.mark[r] != j:
            s.mark[r] = j
            s.found[count] = r
            s.value[count] = _seconds_left(s.clock, s.left, s.paid, s.pace, s.slow, r)
            s.other[count] = s.slow[r]
            count += 1
    for k in range(count):
        s.mark[s.found[k]] = -1
    return count


@njit(**KERNEL)
def _sum_together(found: Any, value: Any, other: Any, xi: Any, kind: Any, j: int, e_a: float, count: int) -> float:
    # Completions of A and its partners, added up, when A starts now.
    now, total = 0.0, 0.0
    while True:
        slow, ends = 1.0, -1
        for k in range(count):
            if found[k] >= 0:
                slow = max(slow, xi[kind[j], kind[found[k]]])
        step = e_a * slow
        for k in range(count):
            if found[k] >= 0:
                takes = value[k] * max(other[k], xi[kind[found[k]], kind[j]])
                if takes <= step:
                    step, ends = takes, k
        now += step
        for k in range(count):
            if found[k] >= 0:
                value[k] = max(0.0, value[k] - step / max(other[k], xi[kind[found[k]], kind[j]]))
        total += now
        if ends < 0:
            break
        e_a -= step / slow
        found[ends] = -1
    for k in range(count):  # A has ended, these have not
        if found[k] >= 0:
            total += now + value[k] * other[k]
    return total


@njit(**KERNEL)
def _select(value: Any, low: int, high: int, n: int) -> float:
    # What would be at position n if value[low : high + 1] was sorted: Hoare's FIND, O(high - low) on average.
    while low < high:
        pivot, i, j = value[(low + high) // 2], low, high
        while i <= j:
            while value[i] < pivot:
                i += 1
            while value[j] > pivot:
                j -= 1
            if i <= j:
                value[i], value[j] = value[j], value[i]
                i += 1
                j -= 1
        if n <= j:
            high = j
        elif n >= i:
            low = i
        else:
            break
    return float(value[n])


@njit(**KERNEL)
def _wait_for_gpus(s: SharingState, j: int) -> float:
    # Seconds until n GPUs that suit A are idle, when nobody else comes: the n-th smallest time at which one is.
    base, count = s.jobs_on.size, 0
    for g in range(base):
        if s.eligible[s.suits[j], s.gpu_node[g]]:
            idle_at = 0.0
            for k in range(2):
                if s.resident[g, k] >= 0:
                    idle_at = max(idle_at, s.finish[s.resident[g, k]] - s.clock[NOW])
            s.value[base + count] = idle_at
            count += 1
    return float(_select(s.value, base, base + count - 1, base + s.gpus[j] - 1))


@njit(**KERNEL)
def _joint_gains(s: SharingState, j: int, option: int, idle: int) -> bool:
    count = _list_partners(s, j, idle)
    waiting = _wait_for_gpus(s, j) + _alone(s.alone, s.stretch, s.spans, j, 0)
    for k in range(count):
        waiting += s.value[k] * s.other[k]
    e_a = _alone(s.alone, s.stretch, s.spans, j, option)
    return _sum_together(s.found, s.value, s.other, s.xi, s.kind, j, e_a, count) < waiting


@njit(**KERNEL)
def _on_nodes(s: SharingState, j: int, node: int, last: int, span: Any) -> int:
    # Steps 1 to 3 on the nodes order[span[0]:span[1]]
    n = s.gpus[j]
    idle = _take(s.order, s.node_gpu, s.use, IDLE, s.out_gpu, 0, n, span)
    if idle < n and s.numbers[TEST] != 0.0:
        option = _best_partners(s, j, node, idle, last, span)
        if option >= 0 and s.numbers[JOINT] != 0.0 and not _joint_gains(s, j, option, idle):
            return -1
        return option
    found = _take(s.order, s.node_gpu, s.use, OPEN, s.out_gpu, idle, n, span)
    return _largest_batch(s.memory, j, s.room, s.out_gpu, n) if found == n else -1


@sharing_rule
def best_sharing(s: Any, j: Any) -> int:
    """See the module; the rule that `optsched.simulation.sharing_rule` describes."""
    last = s.options[j] - 1 if s.numbers[ACCUMULATE] != 0.0 else 0
    if not _look(s, j, last):
        return -1
    if s.numbers[CONSOLIDATED] != 0.0:
        _order_nodes(s.order, s.node_idle, s.node_jobs, s.gpus[j], True)
        for i in range(s.order.size):
            option = _on_nodes(s, j, s.order[i], last, (i, i + 1))
            if option >= 0:
                return option
    _order_nodes(s.order, s.node_idle, s.node_jobs, s.gpus[j], False)
    return _on_nodes(s, j, WHOLE_CLUSTER, last, (0, s.order.size))
