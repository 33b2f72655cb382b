"""The policies under which two jobs share GPUs: shortest job first, and a compiled choice of GPUs and partners.

A job takes idle GPUs if they suffice, otherwise also GPUs with one job, best partners first. Numbers of the rule: test
the benefit (else share wherever memory allows), consolidated, joint, order of the partners, accumulate, weight of the
jobs to come. Notation as in `sharing_gpus`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optsched.classes.gpu_sharing.policies.sharing_gpus import (
    WHOLE_CLUSTER,
    end_of_node,
    holds_alone,
    joint_gains,
    largest_batch,
    only_job,
    order_nodes,
    pair_average,
    pair_gains,
    pair_loss,
    seconds_left,
    seconds_with,
    take_idle,
    take_open,
    take_open_of,
)
from optsched.compiled import KERNEL, NESTED, njit
from optsched.errors import check_legal
from optsched.policies.queue_orders import queue_order
from optsched.policies.ties import TIE, leading_of
from optsched.registry import Seconds
from optsched.simulation.colocation import Neighbours, list_nodes, xi_beside
from optsched.simulation.next_event import is_set
from optsched.simulation.ordered import sharing_rule
from optsched.simulation.policy import Knowledge, KnownJobs, Order
from optsched.simulation.records import COUNT, NUMBER, POOL
from optsched.simulation.state import RunContext, State
from optsched.speeds.speed_tables import is_timed, pace

TEST, CONSOLIDATED, JOINT, BY, ACCUMULATE, OUTLOOK = range(6)
PAIR, SAVING, COST = range(3)  # orders of the partners
UNSEEN = -1.0  # GPUs of a candidate


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
def best_sharing(s: Any, context: Any, j: Any) -> int:
    """Choose the GPUs and partners of a job; the rule that `optsched.simulation.ordered.sharing_rule` describes.

    Parameters
    ----------
    s
        State of the run; the GPUs chosen are written to it.
    context
        Constants of the run.
    j
        The waiting job.

    Returns
    -------
    int
        Number of the sub-batch; -1: the job waits.
    """
    b = context.colocation.neighbours
    if s.engine[0].free + s.engine[0].alone < s.jobs[j].gpus:
        return -1
    last = b.sharers[j].options - 1 if s.numbers[ACCUMULATE] != 0.0 else 0
    wait = wait_for_idle(s, context, b, j) if s.numbers[JOINT] != 0.0 else 0.0
    nodes, option = 0, -1
    if s.numbers[CONSOLIDATED] != 0.0 and b.sharers[j].spans == 0:  # single nodes are tried first
        order_nodes(s, b, s.jobs[j].gpus)
        nodes = b.nodes.size
    for i in range(nodes + 1):
        option = _on_nodes(s, context, b, j, b.nodes[i].order if i < nodes else WHOLE_CLUSTER, last, wait)
        if option >= 0:
            break
    if option >= 0 and s.numbers[OUTLOOK] > 0.0 and holds_back(s, b, j, s.numbers[OUTLOOK]):
        return -1
    return option


# The loss of jobs yet to come, compiled: as if they were like the latest arrivals, and came at the same rate.
#
# The jobs of the next t seconds are estimated from the last t seconds, from the first arrival on (whose job only begins
# the count) and from at most `SAMPLE` jobs. The job that is tested does not count.

SAMPLE = 100  # jobs
MISSES = 0.2  # share of the jobs for a closed GPU that find no other one (tuned: seeds 101 to 130 of the recipes)
TURNS = 2.0  # a job that is slowed more by another one should wait


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
    """Return the expected number of jobs that arrive in the next seconds.

    Parameters
    ----------
    s
        State of the run.
    j
        The waiting job, which does not count.
    seconds
        Length of the time ahead, in seconds.
    """
    first, count = _first_of_sample(s, seconds), 0
    for i in range(first, s.engine[0].next):
        count += s.jobs[i].nth != j
    return count * _times(s, seconds, first)


@njit(**NESTED)
def closing_loss(s: State, b: Neighbours, j: int, e_a: float, idle: int) -> float:
    """Return the total waiting time that A causes jobs to come, by closing the GPUs that it shares.

    A GPU is closed for t seconds, while both jobs run. Of the jobs that arrive meanwhile, the share of the GPUs that
    are closed, times `MISSES`, waits for t / 2 on average.

    Parameters
    ----------
    s
        State of the run, with the GPUs chosen.
    b
        Jobs on every GPU.
    j
        The waiting job A.
    e_a
        Seconds that A takes alone.
    idle
        Number of the chosen GPUs that are idle; they come first.
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

    Parameters
    ----------
    s
        State of the run.
    b
        Jobs on every GPU.
    j
        The waiting job A.
    weight
        Factor of the loss of the jobs to come.
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


# The time at which a job could start on idle GPUs, and its speed on those chosen, compiled.
@njit(**KERNEL)
def select(candidates: Any, low: int, high: int, n: int) -> float:
    """Return the value that position ``n`` would have if the values of the candidates were sorted.

    Hoare's FIND, O(high - low) on average; the values change places.

    Parameters
    ----------
    candidates
        Records with a field ``value``.
    low, high
        First and last position of the values.
    n
        Position from ``low`` to ``high``.
    """
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


@njit(**NESTED)
def _wait_on(s: State, context: RunContext, b: Neighbours, j: int, first: int, end: int) -> float:
    # Seconds until n of the GPUs from `first` to `end` that suit A are idle, if no other job arrives: the n-th smallest
    # of the times at which they are; inf: there are fewer.
    base, count, now, n = b.gpus.size, 0, s.engine[0].now, s.jobs[j].gpus
    for g in range(first, end):
        gpu = b.gpus[g]
        if context.eligible[s.jobs[j].kind, gpu.node]:
            idle_at = 0.0
            if gpu.one >= 0:
                idle_at = max(idle_at, s.executions[s.jobs[gpu.one].execution].finish - now)
            if gpu.other >= 0:
                idle_at = max(idle_at, s.executions[s.jobs[gpu.other].execution].finish - now)
            b.candidates[base + count].value = idle_at
            count += 1
    return float(select(b.candidates, base, base + count - 1, base + n - 1)) if count >= n else np.inf


@njit(**NESTED)
def wait_for_idle(s: State, context: RunContext, b: Neighbours, j: int) -> float:
    """Return the seconds until the GPUs that a job needs are idle, if no other job arrives; inf: never.

    The GPUs must be on one node if one node can hold the gang and its speed may depend on the number of nodes.

    Parameters
    ----------
    s
        State of the run.
    context
        Constants of the run.
    b
        Jobs on every GPU.
    j
        The waiting job.
    """
    if b.sharers[j].spans != 0 or is_timed(context.tables, j):
        return _wait_on(s, context, b, j, np.int64(0), b.gpus.size)
    least = np.inf
    for node in range(b.nodes.size):
        least = min(least, _wait_on(s, context, b, j, b.nodes[node].first, end_of_node(b, node)))
    return float(least)


@njit(**NESTED)
def seconds_chosen(s: State, context: RunContext, b: Neighbours, j: int, option: int) -> float:
    """Return e_A: seconds that a waiting job takes alone on the GPUs chosen; their nodes are written to ``out``.

    Parameters
    ----------
    s
        State of the run, with the GPUs chosen.
    context
        Constants of the run.
    b
        Jobs on every GPU.
    j
        The waiting job.
    option
        Number of its sub-batch.
    """
    if is_timed(context.tables, j):
        return seconds_with(b, j, option)
    apart = list_nodes(s, b, s.jobs[j].gpus)
    unit = pace(context.tables, j, s.jobs[j].gpus, s.out[POOL], s.out[COUNT])
    return float(s.jobs[j].left * unit * b.stretch[j, option, apart])


# The policies.

WORDS = ("pair", "saving", "cost")  # for the orders of the partners


def _require_interval(policy: Any) -> None:
    legal = "a finite number of seconds >= 0"
    check_legal(0 <= policy.interval < math.inf, f"{policy.name}: interval", policy.interval, legal)


def _order(jobs: KnownJobs, width: bool, interval: float, *numbers: float) -> Order:
    key = jobs.duration * jobs.gpus if width else jobs.duration
    return Order(key, rule=best_sharing, numbers=tuple(map(float, numbers)), round=interval)


@queue_order("sjf-ffs", Knowledge.CLAIRVOYANT, uses=("sharing",), __post_init__=_require_interval)
def sjf_ffs(
    jobs: KnownJobs,
    accumulate: bool = False,
    consolidated: bool = False,
    width: bool = False,
    interval: Seconds = 0.0,
) -> Order:
    """SJF-FFS: without preemption; a job shares GPUs wherever memory allows, even if that does not pay.

    **Problem** gangs, at most two jobs on a GPU, slow-downs xi >= 1 | sum (C_j - r_j). **Knowledge** clairvoyant (the
    order). At every arrival and completion all waiting jobs are tried, shortest first, also those behind a job that
    does not start. A job takes idle GPUs first, then GPUs with one job and enough memory left, on nodes with fewest
    jobs first.

    **Guarantee** for two jobs, `sjf_bsbf`. **Complexity** O(G) a waiting job and event.
    **Reference** the baseline of SJF-BSBF (arXiv 2407.13088), as in its authors' public scheduler; see `sjf-bsbf`.

    Parameters
    ----------
    jobs
        Jobs of the run.
    accumulate
        Use a smaller sub-batch where the whole batch does not fit next to another job.
    consolidated
        Try one node alone first.
    width
        Order by seconds times GPUs instead of seconds.
    interval
        Decisions are made only at multiples of these seconds; 0: at every event.
    """
    return _order(jobs, width, interval, 0, consolidated, 0, 0, accumulate, 0)  # the rule without its test


def _require_legal(policy: Any) -> None:
    check_legal(policy.by in WORDS, "sjf-bsbf: by", policy.by, ", ".join(WORDS))
    check_legal(0 <= policy.outlook < math.inf, "sjf-bsbf: outlook", policy.outlook, "a finite number >= 0")
    _require_interval(policy)


@queue_order("sjf-bsbf", Knowledge.CLAIRVOYANT, uses=("sharing",), __post_init__=_require_legal)
def sjf_bsbf(
    jobs: KnownJobs,
    consolidated: bool = True,
    joint: bool = True,
    accumulate: bool = True,
    by: str = "cost",
    outlook: float = 0.5,
    width: bool = False,
    interval: Seconds = 0.0,
) -> Order:
    """SJF-BSBF: without preemption; a job shares GPUs if idle ones do not suffice and the sum of completions falls.

    **Problem** gangs, at most two jobs on a GPU, slow-downs xi >= 1, sub-batches by gradient accumulation | sum (C_j -
    r_j). **Knowledge** clairvoyant (seconds alone). At every arrival and completion all waiting jobs are tried,
    shortest first, also those behind a job that does not start. For job A of n GPUs the steps are tried on one node
    first, the tightest fit first, then on all nodes, those with fewest jobs first:

    1. If n GPUs F are idle, A takes them without sharing, unless it would complete sooner by waiting for one node.
    2. Otherwise, for every job R alone on a GPU in O that A fits: t_con is the average completion of A and R if both
       run together from now on, with the sub-batch of A that makes it least; t_seq is the average if A runs after R
       with its whole batch. R is a partner if t_con < t_seq.
    3. Partners give their GPUs in O until F and these are n GPUs. The first partners are those whose pair loses
       least for a GPU: 2 t_con less the seconds that both take alone. A uses the smallest of the chosen sub-batches.
       A starts next to all of them if the sum of all their completions is less than if A waited for n idle GPUs, by
       more than ``outlook`` times the loss of jobs yet to come, to which the GPUs with two jobs are closed.
       Otherwise A waits.
    4. A also waits while ``outlook`` times the loss of jobs yet to come that would run next to it is more than the
       time that A has waited and takes. So a job that needs many GPUs for hours starts when fewer jobs arrive, or
       after a long wait.

    Jobs to come are estimated: as if the latest arrivals came again.

    **The published rule** is ``consolidated=false,joint=false,by=pair,outlook=0``: the whole cluster at once, tests of
    pairs only, partners by t_con, no jobs yet to come.

    **Guarantee** for two jobs, `sjf_bsbf`; none for more. **Counterexample** there: pairwise tests
    are not joint ones. **Complexity** O(N + R) for N nodes and R running jobs, a waiting job and event, and again O(R
    + gang) a partner; O(G) where enough GPUs are open. **Reference** Luo et al., "Scheduling Deep Learning Jobs in
    Multi-Tenant GPU Clusters via Wise Resource Sharing", IWQoS 2024, arXiv 2407.13088; the choice of the sub-batch and
    t_seq with the whole batch are this project's reading, the joint test, jobs to come and the order of partners its
    own.

    Parameters
    ----------
    jobs
        Jobs of the run.
    consolidated
        Try one node alone first.
    joint
        Test A with all of its partners together, in addition to the pairs.
    accumulate
        Allow smaller sub-batches; false: whole batches only.
    by
        Order of the partners: ``cost`` (loss of the pair for a GPU), ``pair`` (t_con) or ``saving`` (t_con - t_seq).
    outlook
        Weight of the loss of jobs yet to come; 0: they are ignored.
    width
        Order by seconds times GPUs instead of seconds.
    interval
        Decisions are made only at multiples of these seconds; 0: at every event.
    """
    return _order(jobs, width, interval, 1, consolidated, joint, WORDS.index(by), accumulate, outlook)
