"""The choice of GPUs and partners of `sjf-bsbf` and `sjf-ffs`, written plainly: every answer is from the state alone.

Nothing is kept between two questions, no node and no partner is left out because it cannot serve, and every test is made
in full. `optsched.classes.gpu_sharing.policies.sharing_choice` must choose the same GPUs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.classes.gpu_sharing.policies.sharing_choice import seconds_chosen
from optsched.classes.gpu_sharing.policies.sharing_gpus import (
    WHOLE_CLUSTER,
    end_of_node,
    holds_alone,
    joint_gains,
    largest_batch,
    only_job,
    pair_average,
    pair_gains,
    pair_loss,
    seconds_left,
    seconds_with,
    take_idle,
    take_open,
    take_open_of,
)
from optsched.classes.gpu_sharing.policies.sharing_outlook import MISSES, SAMPLE, TURNS
from optsched.classes.gpu_sharing.policies.sharing_partners import (
    ACCUMULATE,
    BY,
    CONSOLIDATED,
    COST,
    JOINT,
    OUTLOOK,
    SAVING,
    TEST,
    UNSEEN,
)
from optsched.compiled import NESTED, njit
from optsched.policies.ties import TIE, leading_of
from optsched.simulation.colocation import Neighbours, xi_beside
from optsched.simulation.next_event import is_set
from optsched.simulation.ordered import sharing_rule
from optsched.simulation.records import FREE, NUMBER
from optsched.simulation.state import RunContext, State
from optsched.speeds.speed_tables import is_timed


@njit(**NESTED)
def _fits_better(s: State, b: Neighbours, one: int, two: int, n: int) -> bool:
    # a strict order of all nodes: the tightest fit first, those that do not fit last; fewest jobs, then the number
    over_one, over_two = s.pools[FREE, one] - n, s.pools[FREE, two] - n
    if (over_one >= 0) != (over_two >= 0):
        return bool(over_one >= 0)
    if over_one != over_two:
        return bool(over_one < over_two if over_one >= 0 else over_one > over_two)
    jobs = b.nodes[one].jobs - b.nodes[two].jobs
    return bool(jobs < 0 or (jobs == 0 and one < two))


@njit(**NESTED)
def _next_node(s: State, b: Neighbours, last: int, n: int) -> int:
    # the node after `last` in this order, -1: the first one
    best = -1
    for node in range(b.nodes.size):
        later = last < 0 or _fits_better(s, b, last, node, n)
        if node != last and later and (best < 0 or _fits_better(s, b, node, best, n)):
            best = node
    return best


@njit(**NESTED)
def _fastest(b: Neighbours, j: int, last: int, room: float) -> int:
    # The sub-batch that fits and takes A least time; -1: none fits.
    chosen = -1
    for option in range(last + 1):
        if b.memory[j, option] <= room and (chosen < 0 or seconds_with(b, j, option) < seconds_with(b, j, chosen)):
            chosen = option
    return chosen


@njit(**NESTED)
def _weigh(s: State, b: Neighbours, j: int, x: int, e_a: float, at: int) -> bool:
    # True if A gains with the sub-batch that takes it e_a next to the execution x. Then x is a candidate, with the value
    # t_con (or t_con - t_seq, or the loss of both for a GPU that it gives).
    r = s.executions[x].job
    xi_a = xi_beside(b, j, r)
    if xi_a == np.inf:
        return False
    xi_r, e_r, e_first = xi_beside(b, r, j), seconds_left(s, x), seconds_with(b, j, 0)
    if not pair_gains(e_a, e_first, e_r, xi_a, xi_r):
        return False
    candidate = b.candidates[at]
    candidate.job, candidate.other = r, UNSEEN
    candidate.value = pair_average(e_a, e_r, xi_a, xi_r)
    if s.numbers[BY] == SAVING:
        candidate.value -= e_r + e_first / 2
    elif s.numbers[BY] == COST:
        candidate.value = pair_loss(e_a, e_first, e_r, xi_a, xi_r) / min(s.jobs[j].gpus, s.jobs[r].alone)
    candidate.value = leading_of(candidate.value)
    return True


@njit(**NESTED)
def _weigh_all(s: State, b: Neighbours, j: int, only: int, option: int) -> int:
    # Candidates: jobs on the node `only`, or anywhere, that gain with this sub-batch; returns their number.
    e_a, count, seen, x = seconds_with(b, j, option), 0, 0, 0
    if only == WHOLE_CLUSTER:
        while seen < s.engine[0].active and 2 * x < s.clocks.size:
            if is_set(s.clocks, x):
                seen += 1
                if s.jobs[s.executions[x].job].alone > 0:
                    count += _weigh(s, b, j, x, e_a, count)
            x += 1
        return count
    for g in range(b.nodes[only].first, end_of_node(b, only)):
        r = only_job(b, g)
        if b.gpus[g].jobs == 1 and b.sharers[r].mark != j:
            b.sharers[r].mark = j
            count += _weigh(s, b, j, s.jobs[r].execution, e_a, count)
    for g in range(b.nodes[only].first, end_of_node(b, only)):
        if b.gpus[g].jobs == 1:
            b.sharers[only_job(b, g)].mark = -1
    return count


@njit(**NESTED)
def _best_partners(s: State, context: RunContext, b: Neighbours, j: int, only: int, idle: int, last: int) -> int:
    # Step 3 on one node or the whole cluster; returns the option, -1: j waits. Candidates are ordered by their values with
    # the fastest sub-batch, which are lower bounds on the true ones, so only the GPUs of the first candidates are examined.
    if idle + s.engine[0].alone < s.jobs[j].gpus:
        return -1
    count, taken, option = _weigh_all(s, b, j, only, _fastest(b, j, last, np.inf)), idle, 0
    have = idle  # and the GPUs that candidates hold alone: at least the number of open ones
    for k in range(count):
        have += s.jobs[b.candidates[k].job].alone
    if have < s.jobs[j].gpus:
        return -1
    while taken < s.jobs[j].gpus:
        best, least = -1, np.inf  # the candidate with the smallest value, ties by number
        for k in range(count):
            c = b.candidates[k]
            if c.job >= 0 and (best < 0 or c.value < least or (c.value == least and c.job < b.candidates[best].job)):
                best, least = k, c.value
        if best < 0:
            return -1
        c = b.candidates[best]
        if c.other == UNSEEN:  # now by its open GPUs: its sub-batch and value, or it is no candidate
            room, is_open, r, x = np.inf, False, c.job, s.jobs[c.job].execution
            for i in range(s.executions[x].entries):
                g = s.parts[x * s.engine[0].width + i].pool
                if holds_alone(s, context, b, j, g, b.memory[j, last], only):
                    room, is_open = min(room, b.gpus[g].free_memory), True
            fastest, c.job = _fastest(b, j, last, room) if is_open else -1, -1
            if fastest >= 0 and _weigh(s, b, j, x, seconds_with(b, j, fastest), best):
                c.job, c.other = r, fastest
            continue
        option = max(option, int(c.other))
        taken = take_open_of(s, context, b, j, c.job, taken, b.memory[j, last], only)
        c.job = -1
    return max(option, largest_batch(s, b, j))


@njit(**NESTED)
def _on_nodes(s: State, context: RunContext, b: Neighbours, j: int, only: int, last: int, wait: float) -> int:
    # Steps 1 to 3 on the node `only`, or the whole cluster; in `wait` seconds A could run alone
    n, need, joint = s.jobs[j].gpus, b.memory[j, last], s.numbers[JOINT] != 0.0
    chosen = idle = take_idle(s, context, b, j, need, only)
    if idle < n and s.numbers[TEST] != 0.0:
        option = _best_partners(s, context, b, j, only, idle, last)
        if option < 0 or not joint:
            return option
        # Test whether A and all its partners gain more than jobs to come lose.
        e_a = seconds_chosen(s, context, b, j, option)
        loss = s.numbers[OUTLOOK] * closing_loss(s, b, j, e_a, idle) if s.numbers[OUTLOOK] > 0.0 else 0.0
        return option if joint_gains(s, b, j, e_a, idle, wait, loss) else -1
    if idle < n:
        chosen = take_open(s, context, b, j, idle, need, only)
    if chosen < n:
        return -1
    option = largest_batch(s, b, j)
    if not joint or s.numbers[CONSOLIDATED] == 0.0 or only != WHOLE_CLUSTER or wait == 0.0:
        return option
    # Test whether A completes sooner on the idle GPUs chosen than later on one node.
    later = (wait + seconds_with(b, j, 0)) * (1 + TIE)
    return option if seconds_chosen(s, context, b, j, option) <= later else -1


@sharing_rule
def plain_sharing(s: Any, context: Any, j: Any) -> int:
    b = context.colocation.neighbours
    if s.engine[0].free + s.engine[0].alone < s.jobs[j].gpus:
        return -1
    last = b.sharers[j].options - 1 if s.numbers[ACCUMULATE] != 0.0 else 0
    wait = wait_for_idle(s, context, b, j) if s.numbers[JOINT] != 0.0 else 0.0
    nodes, option, node = 0, -1, -1
    if s.numbers[CONSOLIDATED] != 0.0 and b.sharers[j].spans == 0:  # single nodes are tried first
        nodes = b.nodes.size
    for i in range(nodes + 1):
        node = _next_node(s, b, node, s.jobs[j].gpus) if i < nodes else WHOLE_CLUSTER
        option = _on_nodes(s, context, b, j, node, last, wait)
        if option >= 0:
            break
    if option >= 0 and s.numbers[OUTLOOK] > 0.0 and holds_back(s, b, j, s.numbers[OUTLOOK]):
        return -1
    return option


# The loss of jobs yet to come, compiled: as if they were like the latest arrivals, and came at the same rate.
#
# The jobs of the next t seconds are estimated from the last t seconds, from the first arrival on (whose job only begins
# the count) and from at most `SAMPLE` jobs. The job that is tested does not count.


@njit(**NESTED)
def _first_of_sample(s: State, seconds: float) -> int:
    # position in the order of arrivals
    i, least = s.engine[0].next, max(1, s.engine[0].next - SAMPLE)
    since = max(s.engine[0].now - seconds, s.jobs[s.jobs[0].nth].arrival)
    while i > least and s.jobs[s.jobs[i - 1].nth].arrival > since:
        i -= 1
    return i


@njit(**NESTED)
def _times(s: State, seconds: float, i: int) -> float:
    # Factor by which arrivals from the i-th on are scaled to the next `seconds`; 0: all arrived just now.
    now, since = s.engine[0].now, s.jobs[s.jobs[0].nth].arrival
    if i > 1 and s.engine[0].next - i == SAMPLE:
        since = max(since, s.jobs[s.jobs[i - 1].nth].arrival)
    return seconds / min(seconds, now - since) if now > since else 0.0


@njit(**NESTED)
def to_come(s: State, j: int, seconds: float) -> float:
    """Return the expected number of jobs that arrive in the next seconds."""
    first, count = _first_of_sample(s, seconds), 0
    for i in range(first, s.engine[0].next):
        count += s.jobs[i].nth != j
    return count * _times(s, seconds, first)


@njit(**NESTED)
def closing_loss(s: State, b: Neighbours, j: int, e_a: float, idle: int) -> float:
    """Return the total waiting time that A causes jobs to come, by closing the GPUs that it shares.

    A GPU is closed for t seconds, while both jobs run. Of the jobs that arrive meanwhile, the share of the GPUs that
    are closed, times `MISSES`, waits for t / 2 on average.
    """
    xi, loss, last, seconds = 1.0, 0.0, -1, 0.0
    for i in range(idle, s.jobs[j].gpus):
        xi = max(xi, xi_beside(b, j, only_job(b, s.out[NUMBER, i])))
    for i in range(idle, s.jobs[j].gpus):
        r = only_job(b, s.out[NUMBER, i])
        if r != last:
            closed = min(xi * e_a, xi_beside(b, r, j) * seconds_left(s, s.jobs[r].execution))
            last, seconds = r, closed / 2 * to_come(s, j, closed) if closed > 0 else 0.0
        loss += seconds
    return MISSES * loss / b.gpus.size


@njit(**NESTED)
def holds_back(s: State, b: Neighbours, j: int, weight: float) -> bool:
    """Return True if jobs to come would lose more next to A, while it runs, than A has waited and takes.

    False if no job runs. The jobs to come that share GPUs with A lose (xi - 1) times their own seconds, but at most
    those of A.
    """
    if s.engine[0].active == 0:
        return False
    e_a, loss = seconds_with(b, j, 0), 0.0
    first = _first_of_sample(s, e_a)
    for i in range(first, s.engine[0].next):
        k = s.jobs[i].nth
        if k != j:
            loss += min(e_a, seconds_with(b, k, 0)) * (min(TURNS, xi_beside(b, k, j)) - 1)
    loss *= _times(s, e_a, first) * s.jobs[j].gpus / b.gpus.size
    return bool(weight * loss > (e_a + s.engine[0].now - s.jobs[j].arrival) * (1 + TIE))


@njit(**NESTED)
def _wait_on(s: State, context: RunContext, b: Neighbours, j: int, first: int, end: int) -> float:
    # Seconds until n of the GPUs from `first` to `end` that suit A are idle, if no other job arrives: the n-th smallest
    # of the times at which they are; inf: there are fewer.
    count, now, n = 0, s.engine[0].now, s.jobs[j].gpus
    for g in range(first, end):
        gpu = b.gpus[g]
        if context.eligible[s.jobs[j].kind, gpu.node]:
            idle_at = 0.0
            if gpu.one >= 0:
                idle_at = max(idle_at, s.executions[s.jobs[gpu.one].execution].finish - now)
            if gpu.other >= 0:
                idle_at = max(idle_at, s.executions[s.jobs[gpu.other].execution].finish - now)
            k = count
            while k > 0 and b.ends[1, k - 1] > idle_at:
                b.ends[1, k] = b.ends[1, k - 1]
                k -= 1
            b.ends[1, k] = idle_at
            count += 1
    return float(b.ends[1, n - 1]) if count >= n else np.inf


@njit(**NESTED)
def wait_for_idle(s: State, context: RunContext, b: Neighbours, j: int) -> float:
    """Return the seconds until the GPUs that a job needs are idle, if no other job arrives; inf: never.

    The GPUs must be on one node if one node can hold the gang and its speed may depend on the number of nodes.
    """
    if b.sharers[j].spans != 0 or is_timed(context.tables, j):
        return _wait_on(s, context, b, j, np.int64(0), b.gpus.size)
    least = np.inf
    for node in range(b.nodes.size):
        least = min(least, _wait_on(s, context, b, j, b.nodes[node].first, end_of_node(b, node)))
    return float(least)
