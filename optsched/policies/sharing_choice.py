"""The compiled choice of `sjf-bsbf` and `sjf-ffs`: idle GPUs if they suffice, else GPUs with one job, best partners first.

Numbers of the rule: test the benefit (else share wherever memory allows), consolidated, joint, order of the partners,
accumulate, weight of the jobs to come. Notation as in `optsched.policies.sharing_gain`. Rules and their reasons are in the
docstring of `optsched.policies.sharing_orders`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import njit
from optsched.compiled.heap import NESTED
from optsched.policies.sharing_gain import joint_gains, pair_average, pair_gains, pair_loss, seconds_left, seconds_with
from optsched.policies.sharing_gpus import (
    WHOLE_CLUSTER,
    end_of_node,
    holds_alone,
    largest_batch,
    only_job,
    order_nodes,
    take_beside,
    take_idle,
    take_open,
    xi_beside,
)
from optsched.policies.sharing_outlook import closing_loss, holds_back
from optsched.policies.sharing_wait import seconds_chosen, wait_for_idle
from optsched.policies.ties import TIE, leading_of
from optsched.simulation.clocks import is_set
from optsched.simulation.sharing_rule import sharing_rule
from optsched.simulation.state import Neighbours, RunContext, State

TEST, CONSOLIDATED, JOINT, BY, ACCUMULATE, OUTLOOK = range(6)
PAIR, SAVING, COST = range(3)  # orders of the partners
UNSEEN = -1.0  # GPUs of a candidate


@njit(**NESTED)
def _next_partner(b: Neighbours, count: int) -> int:
    # the one with the smallest value, ties by number; -1: none is left
    best, least = -1, np.inf
    for k in range(count):
        c = b.candidates[k]
        if c.job < 0:
            continue
        if best < 0 or c.value < least or (c.value == least and c.job < b.candidates[best].job):
            best, least = k, c.value
    return best


@njit(**NESTED)
def _fastest(b: Neighbours, j: int, last: int, room: float) -> int:
    # The sub-batch that fits and takes A least, so that all complete first; -1: none fits.
    chosen = -1
    for option in range(last + 1):
        if b.memory[j, option] <= room and (chosen < 0 or seconds_with(b, j, option) < seconds_with(b, j, chosen)):
            chosen = option
    return chosen


@njit(**NESTED)
def _weigh(s: State, b: Neighbours, j: int, x: int, e_a: float, at: int) -> bool:
    # Does A gain with the sub-batch that takes it e_a beside the execution x? Then a candidate: its value t_con (or minus
    # the saving, or what both lose together for a GPU that it gives).
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
    # Candidates: who runs on the node `only`, or anywhere, and gains with that sub-batch; how many
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
def _look(s: State, context: RunContext, b: Neighbours, j: int, at: int, only: int, last: int) -> None:
    # At the open GPUs of a candidate: its sub-batch and value, or it is none.
    c, room, is_open, need = b.candidates[at], np.inf, False, b.memory[j, last]
    x = s.jobs[c.job].execution
    for i in range(s.executions[x].entries):
        g = s.parts[x * s.engine[0].width + i].pool
        if holds_alone(s, context, b, j, g, need, only):
            room, is_open = min(room, b.gpus[g].free_memory), True
    option, r = _fastest(b, j, last, room) if is_open else -1, c.job
    c.job = -1
    if option >= 0 and _weigh(s, b, j, x, seconds_with(b, j, option), at):
        c.job, c.other = r, option


@njit(**NESTED)
def _have(s: State, b: Neighbours, count: int) -> int:
    # GPUs that the candidates have alone: at least as many as are open
    gpus = 0
    for k in range(count):
        gpus += s.jobs[b.candidates[k].job].alone
    return gpus


@njit(**NESTED)
def _best_partners(s: State, context: RunContext, b: Neighbours, j: int, only: int, idle: int, last: int) -> int:
    # Step 3 on one node or the whole cluster; the option, -1: j waits. Values as if the fastest sub-batch fitted come
    # first: they are at most the true ones, so that only the GPUs of those who come first by them are looked at.
    if idle + s.engine[0].alone < s.jobs[j].gpus:
        return -1
    count, taken, option = _weigh_all(s, b, j, only, _fastest(b, j, last, np.inf)), idle, 0
    if idle + _have(s, b, count) < s.jobs[j].gpus:
        return -1
    while taken < s.jobs[j].gpus:
        k = _next_partner(b, count)
        if k < 0:
            return -1
        c = b.candidates[k]
        if c.other == UNSEEN:
            _look(s, context, b, j, k, only, last)
            continue
        option = max(option, int(c.other))
        taken = take_beside(s, context, b, j, c.job, taken, b.memory[j, last], only)
        c.job = -1
    return max(option, largest_batch(s, b, j))


@njit(**NESTED)
def _all_gain(s: State, context: RunContext, b: Neighbours, j: int, option: int, idle: int, wait: float) -> bool:
    # Do A and all its partners gain, less what those lose who are yet to come?
    e_a = seconds_chosen(s, context, b, j, option)
    loss = s.numbers[OUTLOOK] * closing_loss(s, b, j, e_a, idle) if s.numbers[OUTLOOK] > 0.0 else 0.0
    return joint_gains(s, b, j, e_a, idle, wait, loss)


@njit(**NESTED)
def _is_soonest(s: State, context: RunContext, b: Neighbours, j: int, option: int, wait: float) -> bool:
    # Is A done sooner on the idle GPUs chosen, wherever they are, than later on one node?
    return wait == 0.0 or seconds_chosen(s, context, b, j, option) <= (wait + seconds_with(b, j, 0)) * (1 + TIE)


@njit(**NESTED)
def _on_nodes(s: State, context: RunContext, b: Neighbours, j: int, only: int, last: int, wait: float) -> int:
    # Steps 1 to 3 on the node `only`, or the whole cluster; in `wait` seconds A could run alone
    n, need, joint = s.jobs[j].gpus, b.memory[j, last], s.numbers[JOINT] != 0.0
    found = idle = take_idle(s, context, b, j, need, only)
    if idle < n and s.numbers[TEST] != 0.0:
        option = _best_partners(s, context, b, j, only, idle, last)
        return option if option < 0 or not joint or _all_gain(s, context, b, j, option, idle, wait) else -1
    if idle < n:
        found = take_open(s, context, b, j, idle, need, only)
    if found < n:
        return -1
    option = largest_batch(s, b, j)
    choosy = joint and s.numbers[CONSOLIDATED] != 0.0 and only == WHOLE_CLUSTER
    return option if not choosy or _is_soonest(s, context, b, j, option, wait) else -1


@sharing_rule
def best_sharing(s: Any, context: Any, j: Any) -> int:
    """See the module; the rule that `optsched.simulation.sharing_rule` describes."""
    b = context.colocation.neighbours
    if s.engine[0].free + s.engine[0].alone < s.jobs[j].gpus:
        return -1
    last = b.sharers[j].options - 1 if s.numbers[ACCUMULATE] != 0.0 else 0
    wait = wait_for_idle(s, context, b, j) if s.numbers[JOINT] != 0.0 else 0.0
    nodes, option = 0, -1
    if s.numbers[CONSOLIDATED] != 0.0 and b.sharers[j].spans == 0:  # one node is to be tried first
        order_nodes(s, b, s.jobs[j].gpus)
        nodes = b.nodes.size
    for i in range(nodes + 1):
        option = _on_nodes(s, context, b, j, b.nodes[i].order if i < nodes else WHOLE_CLUSTER, last, wait)
        if option >= 0:
            break
    if option >= 0 and s.numbers[OUTLOOK] > 0.0 and holds_back(s, b, j, s.numbers[OUTLOOK]):
        return -1
    return option
