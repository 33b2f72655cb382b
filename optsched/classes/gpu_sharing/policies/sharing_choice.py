"""The policies under which two jobs share GPUs: shortest job first, and a compiled choice of GPUs and partners.

A job takes idle GPUs if they suffice, otherwise also GPUs with one job, best partners first. Numbers of the rule: test
the benefit (else share wherever memory allows), consolidated, joint, order of the partners, accumulate, weight of the
jobs to come. Notation as in `sharing_gpus`.

What is looked at: nodes with enough idle and open GPUs, best ones first; if none serves, the whole cluster. A job that
equals another one in all but its arrival waits if that one waits, unless its own arrival made the difference.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optsched.classes.gpu_sharing.policies.roomy_nodes import list_roomy
from optsched.classes.gpu_sharing.policies.sharing_gpus import (
    MANY,
    WHOLE_CLUSTER,
    count_idle,
    joint_gains,
    largest_batch,
    seconds_with,
    take_idle,
    take_open,
)
from optsched.classes.gpu_sharing.policies.sharing_outlook import closing_loss, holds_back, latest, may_count
from optsched.classes.gpu_sharing.policies.sharing_partners import (
    ACCUMULATE,
    CONSOLIDATED,
    JOINT,
    OUTLOOK,
    TEST,
    best_partners,
    drop_first,
    fastest,
    make_heap,
    may_serve,
    most_gain,
)
from optsched.classes.gpu_sharing.policies.sharing_waits import any_node, generation, wait_for_idle
from optsched.compiled import NESTED, njit
from optsched.errors import check_legal
from optsched.policies.queue_orders import queue_order
from optsched.policies.ties import TIE
from optsched.registry import Seconds
from optsched.simulation.colocation import Neighbours, list_nodes
from optsched.simulation.ordered import sharing_rule
from optsched.simulation.policy import Knowledge, KnownJobs, Order
from optsched.simulation.records import COUNT, FREE, POOL
from optsched.simulation.state import RunContext, State
from optsched.speeds.speed_tables import is_timed, pace


@njit(**NESTED)
def _tightest(s: State, context: RunContext, b: Neighbours, j: int, need: float) -> int:
    # The node with enough idle GPUs: the tightest fit, then fewest jobs, then the number; -1: there is none.
    n, kind, best = s.jobs[j].gpus, s.jobs[j].kind, -1
    for v in range(b.nodes.size):
        idle = s.pools[FREE, v]
        if idle < n or not context.eligible[kind, v] or b.gpus[b.nodes[v].first].capacity < need:
            continue
        least = s.pools[FREE, best] if best >= 0 else MANY
        if idle < least or (idle == least and b.nodes[v].jobs < b.nodes[best].jobs):
            best = v
    return best


@njit(**NESTED)
def _nodes_to_share(s: State, context: RunContext, b: Neighbours, j: int, last: int, wait: float) -> int:
    # The nodes that may serve with open GPUs, too, of which none has enough idle ones, as a heap behind the candidates: the
    # tightest fit, then fewest jobs, then the number. Returns their number.
    n, kind, need, count = s.jobs[j].gpus, s.jobs[j].kind, b.memory[j, last], 0
    e_a, gain = seconds_with(b, j, fastest(b, j, last, np.inf)), most_gain(b, j, wait)
    for i in range(list_roomy(s, b)):
        v = b.nodes[i].roomy
        idle, node = s.pools[FREE, v], b.nodes[v]
        if idle + node.open < n or not context.eligible[kind, v] or b.gpus[node.first].capacity < need:
            continue
        if s.numbers[TEST] != 0.0 and not may_serve(s, b, j, v, e_a, gain):
            continue
        c = b.candidates[b.gpus.size + count]
        c.value, c.job = (n - idle) * (2.0 * b.gpus.size + 1.0) + node.jobs, v
        count += 1
    make_heap(b.candidates, b.gpus.size, count)
    return count


@njit(**NESTED)
def _on_nodes(s: State, context: RunContext, b: Neighbours, j: int, only: int, last: int) -> int:
    # Steps 1 to 3 on the node `only`, or the whole cluster.
    n, need, joint = s.jobs[j].gpus, b.memory[j, last], s.numbers[JOINT] != 0.0
    idle = count_idle(s, context, b, j, need, only)
    if idle < n and s.numbers[TEST] != 0.0:
        wait = wait_for_idle(s, context, b, j) if joint else np.inf
        option = best_partners(s, context, b, j, only, idle, last, wait)
        if option < 0:
            return -1
        take_idle(s, context, b, j, need, only)
        option = max(option, largest_batch(s, b, j))
        return option if not joint or _gains(s, context, b, j, option, idle, wait) else -1
    chosen = take_idle(s, context, b, j, need, only)
    if idle < n:
        chosen = take_open(s, context, b, j, idle, need, only)
    if chosen < n:
        return -1
    option = largest_batch(s, b, j)
    if not joint or s.numbers[CONSOLIDATED] == 0.0 or only != WHOLE_CLUSTER or (idle == n and any_node(context, b, j)):
        return option
    # Test whether A completes sooner on the idle GPUs chosen than later on one node.
    wait = wait_for_idle(s, context, b, j)
    if wait == 0.0:
        return option
    later = (wait + seconds_with(b, j, 0)) * (1 + TIE)
    return option if seconds_chosen(s, context, b, j, option) <= later else -1


@njit(**NESTED)
def _gains(s: State, context: RunContext, b: Neighbours, j: int, option: int, idle: int, wait: float) -> bool:
    # Test whether A and all its partners gain more than jobs to come lose.
    e_a, weight = seconds_chosen(s, context, b, j, option), s.numbers[OUTLOOK]
    if weight == 0.0:
        return joint_gains(s, b, j, e_a, idle, wait, 0.0)
    least = weight * closing_loss(s, b, j, latest(s), e_a, idle)
    if not joint_gains(s, b, j, e_a, idle, wait, least):
        return False
    loss = weight * closing_loss(s, b, j, b.sharers[j].rank, e_a, idle)
    if loss == least or joint_gains(s, b, j, e_a, idle, wait, loss):
        return True
    b.kept[0].firm = 0  # the same job would gain if it were itself one of the latest arrivals
    return False


@njit(**NESTED)
def _choose(s: State, context: RunContext, b: Neighbours, j: int) -> int:
    # Steps 1 to 3 on single nodes, the best one first, then on the whole cluster.
    last = b.sharers[j].options - 1 if s.numbers[ACCUMULATE] != 0.0 else 0
    if s.numbers[CONSOLIDATED] != 0.0 and b.sharers[j].spans == 0:
        node = _tightest(s, context, b, j, b.memory[j, last]) if s.engine[0].free >= s.jobs[j].gpus else -1
        if node >= 0:
            return _on_nodes(s, context, b, j, node, last)
        joint = s.numbers[TEST] != 0.0 and s.numbers[JOINT] != 0.0
        nodes = _nodes_to_share(s, context, b, j, last, wait_for_idle(s, context, b, j) if joint else np.inf)
        while nodes > 0:
            option = _on_nodes(s, context, b, j, b.candidates[b.gpus.size].job, last)
            if option >= 0:
                return option
            nodes = drop_first(b.candidates, b.gpus.size, nodes)
    return _on_nodes(s, context, b, j, WHOLE_CLUSTER, last)


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
    present, alike = generation(s, b), b.sharers[b.sharers[j].alike]
    counts = may_count(s, b, j)
    if alike.refused == present or (alike.waits == present and not counts):
        return -1
    b.kept[0].firm = 1
    b.kept[0].asks += 1
    option = _choose(s, context, b, j)
    if option < 0:
        if b.kept[0].firm == 1:
            alike.refused = present
        if not counts:
            alike.waits = present
        return -1
    if s.numbers[OUTLOOK] > 0.0 and holds_back(s, b, j, s.numbers[OUTLOOK]):
        return -1
    return option


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
    are not joint ones. **Complexity** for N nodes and R running jobs, O(1) for a waiting job that equals another one
    which waits; else O(N + R), and O(log R + gang) a partner; O(G) where enough GPUs are open. **Reference** Luo et al.,
    "Scheduling Deep Learning Jobs in Multi-Tenant GPU Clusters via Wise Resource Sharing", IWQoS 2024, arXiv
    2407.13088; the choice of the sub-batch and t_seq with the whole batch are this project's reading, the joint test,
    jobs to come and the order of partners its own.

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
