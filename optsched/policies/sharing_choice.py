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
from optsched.simulation.clocks import is_set
from optsched.simulation.sharing_rule import sharing_rule
from optsched.simulation.state import FREE, NUMBER, Neighbours, Site, State

TEST, CONSOLIDATED, JOINT, SAVING, ACCUMULATE = range(5)
CLOSED, IDLE, OPEN = range(3)  # what a GPU is to the job that is asked about
WHOLE_CLUSTER = -1
MANY = 1 << 30  # jobs on a node
UNSEEN = -1.0  # GPUs of a candidate
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
def _seconds_left(s: State, x: int) -> float:
    # e_R: seconds that a running job would still take alone, where it is
    run = s.executions[x]
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
def _fits_better(s: State, b: Neighbours, one: int, two: int, n: int) -> bool:
    # a strict order of all nodes: the tightest fit first, those that do not fit last; fewest jobs, then the number
    over_one, over_two = s.pools[FREE, one] - n, s.pools[FREE, two] - n
    if (over_one >= 0) != (over_two >= 0):
        return bool(over_one >= 0)
    if over_one != over_two:
        return bool(over_one < over_two if over_one >= 0 else over_one > over_two)
    jobs = b.nodes[one].jobs - b.nodes[two].jobs
    return bool(jobs < 0 or (jobs == 0 and one < two))


@njit(**KERNEL)
def _order_nodes(s: State, b: Neighbours, n: int) -> None:
    # Shell's sort of the order that was last asked for; where few nodes have moved its last pass, which then takes O(N).
    wrong = 0
    for i in range(1, b.nodes.size):
        wrong += _fits_better(s, b, b.nodes[i].order, b.nodes[i - 1].order, n)
    for gap in (701, 301, 132, 57, 23, 10, 4, 1):
        if (gap > 1 and wrong <= FEW) or wrong == 0:
            continue
        for i in range(gap, b.nodes.size):
            node, k = b.nodes[i].order, i
            while k >= gap and _fits_better(s, b, node, b.nodes[k - gap].order, n):
                b.nodes[k].order = b.nodes[k - gap].order
                k -= gap
            b.nodes[k].order = node


@njit(**KERNEL)
def _end(b: Neighbours, node: int) -> int:
    # one past its last GPU
    return b.nodes[node + 1].first if node + 1 < b.nodes.size else b.gpus.size


@njit(**KERNEL)
def _use(s: State, site: Site, b: Neighbours, j: int, g: int, need: float) -> int:
    # What a GPU is to j, which needs so many bytes there.
    gpu = b.gpus[g]
    if gpu.jobs >= 2 or gpu.room < need or not site.eligible[s.jobs[j].kind, gpu.node]:
        return CLOSED
    if gpu.jobs == 0:
        return IDLE
    return OPEN if _xi(b, j, _only(b, g)) < np.inf else CLOSED


@njit(**KERNEL)
def _take_idle(s: State, site: Site, b: Neighbours, j: int, need: float, only: int) -> int:
    # Idle GPUs on the node `only` or on all, fewest jobs on their node first, up to n; how many. Mostly n are soon found.
    n, level, found = s.jobs[j].gpus, 0, 0
    first, last = (0, b.nodes.size) if only == WHOLE_CLUSTER else (only, only + 1)
    while level < MANY and s.world[0].free > 0:
        more = MANY
        for node in range(first, last):
            if s.pools[FREE, node] == 0 or b.nodes[node].jobs < level:
                continue
            if b.nodes[node].jobs > level:
                more = min(more, b.nodes[node].jobs)
                continue
            for g in range(b.nodes[node].first, _end(b, node)):
                if found < n and _use(s, site, b, j, g, need) == IDLE:
                    s.out[NUMBER, found] = g
                    found += 1
            if found == n:
                return found
        level = more
    return found


@njit(**KERNEL)
def _take_open(s: State, site: Site, b: Neighbours, j: int, found: int, need: float, only: int) -> int:
    # The same of open GPUs, behind the `found` ones chosen.
    first, last = 0, b.gpus.size
    if only != WHOLE_CLUSTER:
        first, last = b.nodes[only].first, _end(b, only)
    end = found
    for g in range(first, last):
        if _use(s, site, b, j, g, need) == OPEN:
            end = _insert(s, b, g, found, end, s.jobs[j].gpus)
    return end


@njit(**KERNEL)
def _take_beside(s: State, site: Site, b: Neighbours, j: int, r: int, found: int, need: float, only: int) -> int:
    # The same of the open GPUs of a partner.
    end, x = found, s.jobs[r].execution
    for i in range(s.executions[x].entries):
        g = s.parts[x * s.world[0].width + i].pool
        if (only == WHOLE_CLUSTER or b.gpus[g].node == only) and _use(s, site, b, j, g, need) == OPEN:
            end = _insert(s, b, g, found, end, s.jobs[j].gpus)
    return end


@njit(**KERNEL)
def _insert(s: State, b: Neighbours, g: int, begin: int, end: int, n: int) -> int:
    # Into those chosen from `begin` to `end`, which are in order, where it is among the first up to n; their end
    if end < n:
        end += 1
    elif not _is_before(b, g, s.out[NUMBER, n - 1]):
        return end
    k = end - 1
    while k > begin and _is_before(b, g, s.out[NUMBER, k - 1]):
        s.out[NUMBER, k] = s.out[NUMBER, k - 1]
        k -= 1
    s.out[NUMBER, k] = g
    return end


@njit(**KERNEL)
def _is_before(b: Neighbours, one: int, two: int) -> bool:
    # of GPUs: fewest jobs on the node, then the number
    more = b.nodes[b.gpus[one].node].jobs - b.nodes[b.gpus[two].node].jobs
    return bool(more < 0 or (more == 0 and one < two))


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
def _fastest(b: Neighbours, j: int, last: int, room: float) -> int:
    # The sub-batch that fits and takes A least, so that all complete first; -1: none fits.
    chosen = -1
    for option in range(last + 1):
        if b.memory[j, option] <= room and (chosen < 0 or _alone(b, j, option) < _alone(b, j, chosen)):
            chosen = option
    return chosen


@njit(**KERNEL)
def _weigh(s: State, b: Neighbours, j: int, x: int, option: int, at: int) -> bool:
    # Does A gain with that sub-batch beside the execution x? Then a candidate: its value t_con (or minus the saving).
    r = s.executions[x].job
    xi_a, xi_r = _xi(b, j, r), _xi(b, r, j)
    e_a, e_r, e_first = _alone(b, j, option), _seconds_left(s, x), _alone(b, j, 0)
    if xi_a == np.inf or not pair_gains(e_a, e_first, e_r, xi_a, xi_r):
        return False
    candidate = b.candidates[at]
    candidate.job, candidate.other = r, UNSEEN
    candidate.value = pair_average(e_a, e_r, xi_a, xi_r)
    if s.numbers[SAVING] != 0.0:
        candidate.value -= e_r + e_first / 2
    return True


@njit(**KERNEL)
def _is_alone_somewhere(s: State, b: Neighbours, x: int) -> bool:
    # Is it alone on a GPU?
    for i in range(s.executions[x].entries):
        if b.gpus[s.parts[x * s.world[0].width + i].pool].jobs == 1:
            return True
    return False


@njit(**KERNEL)
def _weigh_all(s: State, b: Neighbours, j: int, only: int, option: int) -> int:
    # Candidates: who runs on the node `only`, or anywhere, and gains with that sub-batch; how many
    count = seen = x = 0
    if only == WHOLE_CLUSTER:
        while seen < s.world[0].active and x < s.executions.size:
            if is_set(s.clocks, x):
                seen += 1
                if _is_alone_somewhere(s, b, x):
                    count += _weigh(s, b, j, x, option, count)
            x += 1
        return count
    for g in range(b.nodes[only].first, _end(b, only)):
        r = _only(b, g)
        if b.gpus[g].jobs == 1 and b.sharers[r].mark != j:
            b.sharers[r].mark = j
            count += _weigh(s, b, j, s.jobs[r].execution, option, count)
    for g in range(b.nodes[only].first, _end(b, only)):
        if b.gpus[g].jobs == 1:
            b.sharers[_only(b, g)].mark = -1
    return count


@njit(**KERNEL)
def _look(s: State, site: Site, b: Neighbours, j: int, at: int, only: int, last: int) -> None:
    # At the open GPUs of a candidate: its sub-batch and value, or it is none.
    c, room, is_open = b.candidates[at], np.inf, False
    x = s.jobs[c.job].execution
    for i in range(s.executions[x].entries):
        g = s.parts[x * s.world[0].width + i].pool
        if (only == WHOLE_CLUSTER or b.gpus[g].node == only) and _use(s, site, b, j, g, b.memory[j, last]) == OPEN:
            room, is_open = min(room, b.gpus[g].room), True
    option, r = _fastest(b, j, last, room) if is_open else -1, c.job
    c.job = -1
    if option >= 0 and _weigh(s, b, j, x, option, at):
        c.job, c.other = r, option


@njit(**KERNEL)
def _best_partners(s: State, site: Site, b: Neighbours, j: int, only: int, idle: int, last: int) -> int:
    # Step 3 on one node or the whole cluster; the option, -1: j waits. Values as if the fastest sub-batch had room come
    # first: they are at most the true ones, so that only the GPUs of those who come first by them are looked at.
    count, taken, option = _weigh_all(s, b, j, only, _fastest(b, j, last, np.inf)), idle, 0
    while taken < s.jobs[j].gpus:
        k = _next_partner(b, count)
        if k < 0:
            return -1
        c = b.candidates[k]
        if c.other == UNSEEN:
            _look(s, site, b, j, k, only, last)
            continue
        option = max(option, int(c.other))
        taken = _take_beside(s, site, b, j, c.job, taken, b.memory[j, last], only)
        c.job = -1
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
            x = s.jobs[r].execution
            c.job, c.value, c.other = r, _seconds_left(s, x), s.executions[x].slow
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
def _on_nodes(s: State, site: Site, b: Neighbours, j: int, only: int, last: int) -> int:
    # Steps 1 to 3 on the node `only`, or the whole cluster
    n, need = s.jobs[j].gpus, b.memory[j, last]
    found = idle = _take_idle(s, site, b, j, need, only)
    if idle < n and s.numbers[TEST] != 0.0:
        option = _best_partners(s, site, b, j, only, idle, last)
        if option >= 0 and s.numbers[JOINT] != 0.0 and not _joint_gains(s, site, b, j, option, idle):
            return -1
        return option
    if idle < n:
        found = _take_open(s, site, b, j, idle, need, only)
    return _largest_batch(s, b, j) if found == n else -1


@sharing_rule
def best_sharing(s: Any, site: Any, j: Any) -> int:
    """See the module; the rule that `optsched.simulation.sharing_rule` describes."""
    b = site.company.neighbours
    last = b.sharers[j].options - 1 if s.numbers[ACCUMULATE] != 0.0 else 0
    if s.numbers[CONSOLIDATED] != 0.0:
        _order_nodes(s, b, s.jobs[j].gpus)
        for i in range(b.nodes.size):
            option = _on_nodes(s, site, b, j, b.nodes[i].order, last)
            if option >= 0:
                return option
    return _on_nodes(s, site, b, j, WHOLE_CLUSTER, last)
