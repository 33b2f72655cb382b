"""The compiled choice of `sjf-bsbf` and `sjf-ffs`: idle GPUs if they suffice, else GPUs with one job, best partners first.

Numbers of the rule: test the benefit (else share wherever there is room), consolidated, joint, order partners by saving,
accumulate. Notation of section 3 of the sheet: A new, R running, ``e`` remaining seconds alone, ``xi`` slow-downs; F idle
GPUs, O GPUs with one job. Rules and their reasons stand in the docstring of `optsched.policies.sjf_bsbf`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import njit
from optsched.heap import KERNEL
from optsched.simulation.sharing_rule import sharing_rule
from optsched.simulation.state import FREE, NUMBER, Neighbours, Site, State

TEST, CONSOLIDATED, JOINT, SAVING, ACCUMULATE = range(5)
CLOSED, IDLE, OPEN = range(3)  # what a GPU is to the job that is asked about
WHOLE_CLUSTER = -1
FEW = 8  # nodes out of order


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
def _seconds_left(s: State, r: int) -> float:
    # e_R: seconds that the running job would still take alone, where it is
    run = s.executions[s.jobs[r].execution]
    return max(0.0, run.left - (s.world[0].now - run.paid) / (run.pace * run.slow)) * run.pace


@njit(**KERNEL)
def _alone(b: Neighbours, j: int, option: int) -> float:
    # e_A: seconds alone of a waiting job with that sub-batch
    return b.sharers[j].alone * b.stretch[j, option, b.sharers[j].spans]


@njit(**KERNEL)
def _xi(b: Neighbours, j: int, other: int) -> float:
    # of j beside the other
    return b.slowdown[b.sharers[j].model, b.sharers[other].model]


@njit(**KERNEL)
def _only(b: Neighbours, g: int) -> int:
    # the job on a GPU that has one
    return max(b.gpus[g].one, b.gpus[g].other)


@njit(**KERNEL)
def _largest_batch(s: State, b: Neighbours, j: int) -> int:
    # The first option whose memory fits on all GPUs chosen; the caller knows that some option does.
    least, option = np.inf, 0
    for i in range(s.jobs[j].gpus):
        least = min(least, b.gpus[s.out[NUMBER, i]].room)
    while b.memory[j, option] > least:
        option += 1
    return option


@njit(**KERNEL)
def _before(s: State, b: Neighbours, one: int, two: int, n: int, consolidated: bool) -> bool:
    # a strict order of all nodes
    if consolidated:
        over_one, over_two = s.pools[FREE, one] - n, s.pools[FREE, two] - n
        if (over_one >= 0) != (over_two >= 0):
            return bool(over_one >= 0)
        if over_one != over_two:
            return bool(over_one < over_two if over_one >= 0 else over_one > over_two)
    jobs = b.nodes[one].jobs - b.nodes[two].jobs
    return bool(jobs < 0 or (jobs == 0 and one < two))


@njit(**KERNEL)
def _order_nodes(s: State, b: Neighbours, n: int, consolidated: bool) -> None:
    # Fewest jobs first; consolidated: the tightest fit first, nodes that do not fit last. Then the node's number. Shell's
    # sort of the order that was last asked for; where few nodes have moved its last pass, which then takes O(N).
    wrong = 0
    for i in range(1, b.nodes.size):
        wrong += _before(s, b, b.nodes[i].order, b.nodes[i - 1].order, n, consolidated)
    for gap in (701, 301, 132, 57, 23, 10, 4, 1):
        if (gap > 1 and wrong <= FEW) or wrong == 0:
            continue
        for i in range(gap, b.nodes.size):
            node, k = b.nodes[i].order, i
            while k >= gap and _before(s, b, node, b.nodes[k - gap].order, n, consolidated):
                b.nodes[k].order = b.nodes[k - gap].order
                k -= gap
            b.nodes[k].order = node


@njit(**KERNEL)
def _end(b: Neighbours, node: int) -> int:
    # one past its last GPU
    return b.nodes[node + 1].first if node + 1 < b.nodes.size else b.gpus.size


@njit(**KERNEL)
def _take(s: State, b: Neighbours, wanted: int, found: int, n: int, span: Any) -> int:
    # GPUs of one use on the nodes [span[0]:span[1]] of the order, behind the `found` ones chosen, up to n in all; how many
    for i in range(span[0], span[1]):
        node = b.nodes[i].order
        for g in range(b.nodes[node].first, _end(b, node)):
            if found < n and b.gpus[g].use == wanted:
                s.out[NUMBER, found] = g
                found += 1
    return found


@njit(**KERNEL)
def _list_open(b: Neighbours, span: Any) -> int:
    # All open GPUs of these nodes into ``listed``; how many.
    found = 0
    for i in range(span[0], span[1]):
        node = b.nodes[i].order
        for g in range(b.nodes[node].first, _end(b, node)):
            if b.gpus[g].use == OPEN:
                b.gpus[found].listed = g
                found += 1
    return found


@njit(**KERNEL)
def _next_partner(b: Neighbours, count: int) -> int:
    # the one with the smallest value, ties by number; -1: none is left
    best = -1
    for k in range(count):
        c = b.candidates[k]
        if c.job >= 0 and (best < 0 or (c.value, c.job) < (b.candidates[best].value, b.candidates[best].job)):
            best = k
    return best


@njit(**KERNEL)
def _look(s: State, site: Site, b: Neighbours, j: int, last: int) -> bool:
    # What every GPU is to j; are there n that are idle or open?
    count, kind, need = 0, s.jobs[j].kind, b.memory[j, last]
    for g in range(b.gpus.size):
        gpu = b.gpus[g]
        gpu.use = CLOSED
        if gpu.jobs < 2 and site.eligible[kind, gpu.node] and gpu.room >= need:
            if gpu.jobs == 0:
                gpu.use = IDLE
            elif _xi(b, j, _only(b, g)) < np.inf:
                gpu.use = OPEN
            count += gpu.use != CLOSED
    return bool(count >= s.jobs[j].gpus)


@njit(**KERNEL)
def _weigh(s: State, b: Neighbours, j: int, r: int, node: int, last: int, at: int) -> bool:
    # The best sub-batch beside r: the candidate's value its t_con (or minus the saving), other which; does sharing pay?
    room, first = np.inf, s.jobs[r].execution * s.world[0].width
    for i in range(s.jobs[r].gpus):
        gpu = b.gpus[s.parts[first + i].pool]
        if gpu.use == OPEN and (node == WHOLE_CLUSTER or gpu.node == node):
            room = min(room, gpu.room)
    xi_a, xi_r = _xi(b, j, r), _xi(b, r, j)
    e_r = _seconds_left(s, r)
    e_first, e_best = _alone(b, j, 0), 0.0
    best, chosen = np.inf, -1
    for option in range(last + 1):
        if b.memory[j, option] <= room:
            e_a = _alone(b, j, option)
            average = pair_average(e_a, e_r, xi_a, xi_r)
            if average < best:
                best, chosen, e_best = average, option, e_a
    b.candidates[at].value = best - (e_r + e_first / 2) if s.numbers[SAVING] != 0.0 else best
    b.candidates[at].other = chosen
    return chosen >= 0 and pair_gains(e_best, e_first, e_r, xi_a, xi_r)


@njit(**KERNEL)
def _best_partners(s: State, b: Neighbours, j: int, node: int, idle: int, last: int, span: Any) -> int:
    # Step 3 on one node or the whole cluster; the option, -1: j waits.
    n, taken, option, count = s.jobs[j].gpus, idle, 0, 0
    open_gpus = _list_open(b, span)
    for i in range(open_gpus):
        r = _only(b, b.gpus[i].listed)
        if b.sharers[r].mark != j:
            b.sharers[r].mark = j
            if _weigh(s, b, j, r, node, last, count):
                b.candidates[count].job = r
                count += 1
    for i in range(open_gpus):
        b.sharers[_only(b, b.gpus[i].listed)].mark = -1
    while taken < n:
        k = _next_partner(b, count)
        if k < 0:
            return -1
        option = max(option, int(b.candidates[k].other))
        for i in range(open_gpus):
            if taken < n and _only(b, b.gpus[i].listed) == b.candidates[k].job:
                s.out[NUMBER, taken] = b.gpus[i].listed
                taken += 1
        b.candidates[k].job = -1
    return max(option, _largest_batch(s, b, j))


@njit(**KERNEL)
def _list_partners(s: State, b: Neighbours, j: int, idle: int) -> int:
    # Different jobs on the GPUs chosen, from `idle` on: candidates with seconds alone, and the slow-down without A.
    count = 0
    for i in range(idle, s.jobs[j].gpus):
        r = _only(b, s.out[NUMBER, i])
        if b.sharers[r].mark != j:
            b.sharers[r].mark = j
            c = b.candidates[count]
            c.job, c.value, c.other = r, _seconds_left(s, r), s.executions[s.jobs[r].execution].slow
            count += 1
    for k in range(count):
        b.sharers[b.candidates[k].job].mark = -1
    return count


@njit(**KERNEL)
def _sum_together(b: Neighbours, j: int, e_a: float, count: int) -> float:
    # Completions of A and its partners, added up, when A starts now.
    now, total = 0.0, 0.0
    while True:
        slow, ends = 1.0, -1
        for k in range(count):
            if b.candidates[k].job >= 0:
                slow = max(slow, _xi(b, j, b.candidates[k].job))
        step = e_a * slow
        for k in range(count):
            c = b.candidates[k]
            if c.job >= 0:
                takes = c.value * max(c.other, _xi(b, c.job, j))
                if takes <= step:
                    step, ends = takes, k
        now += step
        for k in range(count):
            c = b.candidates[k]
            if c.job >= 0:
                c.value = max(0.0, c.value - step / max(c.other, _xi(b, c.job, j)))
        total += now
        if ends < 0:
            break
        e_a -= step / slow
        b.candidates[ends].job = -1
    for k in range(count):  # A has ended, these have not
        c = b.candidates[k]
        if c.job >= 0:
            total += now + c.value * c.other
    return total


@njit(**KERNEL)
def _select(candidates: Any, low: int, high: int, n: int) -> float:
    # What would be at position n if the values of candidates[low : high + 1] were sorted: Hoare's FIND, O(high - low) on
    # average.
    while low < high:
        pivot, i, j = candidates[(low + high) // 2].value, low, high
        while i <= j:
            while candidates[i].value < pivot:
                i += 1
            while candidates[j].value > pivot:
                j -= 1
            if i <= j:
                one, two = candidates[i].value, candidates[j].value
                candidates[i].value, candidates[j].value = two, one
                i += 1
                j -= 1
        if n <= j:
            high = j
        elif n >= i:
            low = i
        else:
            break
    return float(candidates[n].value)


@njit(**KERNEL)
def _wait_for_gpus(s: State, site: Site, b: Neighbours, j: int) -> float:
    # Seconds until n GPUs that suit A are idle, when nobody else comes: the n-th smallest time at which one is.
    base, count, now = b.gpus.size, 0, s.world[0].now
    for g in range(base):
        gpu = b.gpus[g]
        if site.eligible[s.jobs[j].kind, gpu.node]:
            idle_at = 0.0
            if gpu.one >= 0:
                idle_at = max(idle_at, s.executions[s.jobs[gpu.one].execution].finish - now)
            if gpu.other >= 0:
                idle_at = max(idle_at, s.executions[s.jobs[gpu.other].execution].finish - now)
            b.candidates[base + count].value = idle_at
            count += 1
    return float(_select(b.candidates, base, base + count - 1, base + s.jobs[j].gpus - 1))


@njit(**KERNEL)
def _joint_gains(s: State, site: Site, b: Neighbours, j: int, option: int, idle: int) -> bool:
    count = _list_partners(s, b, j, idle)
    waiting = _wait_for_gpus(s, site, b, j) + _alone(b, j, 0)
    for k in range(count):
        waiting += b.candidates[k].value * b.candidates[k].other
    return _sum_together(b, j, _alone(b, j, option), count) < waiting


@njit(**KERNEL)
def _on_nodes(s: State, site: Site, b: Neighbours, j: int, node: int, last: int, span: Any) -> int:
    # Steps 1 to 3 on the nodes [span[0]:span[1]] of the order
    n = s.jobs[j].gpus
    idle = _take(s, b, IDLE, 0, n, span)
    if idle < n and s.numbers[TEST] != 0.0:
        option = _best_partners(s, b, j, node, idle, last, span)
        if option >= 0 and s.numbers[JOINT] != 0.0 and not _joint_gains(s, site, b, j, option, idle):
            return -1
        return option
    found = _take(s, b, OPEN, idle, n, span)
    return _largest_batch(s, b, j) if found == n else -1


@njit(**KERNEL)
def _takes_idle(s: State, site: Site, b: Neighbours, j: int) -> bool:
    # Step 1 alone: n idle GPUs that suit j, on the nodes in their order. An idle GPU that suits it has room for its batch.
    n, kind, found = s.jobs[j].gpus, s.jobs[j].kind, 0
    for i in range(b.nodes.size):
        node = b.nodes[i].order
        if s.pools[FREE, node] > 0 and site.eligible[kind, node]:
            for g in range(b.nodes[node].first, _end(b, node)):
                if found < n and b.gpus[g].jobs == 0:
                    s.out[NUMBER, found] = g
                    found += 1
            if found == n:
                return True
    return False


@sharing_rule
def best_sharing(s: Any, site: Any, j: Any) -> int:
    """See the module; the rule that `optsched.simulation.sharing_rule` describes."""
    b, n = site.company.neighbours, s.jobs[j].gpus
    last = b.sharers[j].options - 1 if s.numbers[ACCUMULATE] != 0.0 else 0
    if s.numbers[CONSOLIDATED] != 0.0:
        if not _look(s, site, b, j, last):
            return -1
        _order_nodes(s, b, n, True)
        for i in range(b.nodes.size):
            option = _on_nodes(s, site, b, j, b.nodes[i].order, last, (i, i + 1))
            if option >= 0:
                return option
        _order_nodes(s, b, n, False)
        return _on_nodes(s, site, b, j, WHOLE_CLUSTER, last, (0, b.nodes.size))
    if s.world[0].free >= n:
        _order_nodes(s, b, n, False)
        if _takes_idle(s, site, b, j):
            return 0
    if not _look(s, site, b, j, last):
        return -1
    _order_nodes(s, b, n, False)
    return _on_nodes(s, site, b, j, WHOLE_CLUSTER, last, (0, b.nodes.size))
