"""The partners of a job that shares GPUs, compiled: which running jobs gain, in which order, and how many GPUs they give.

Candidates are a heap by (value, job). Their values with the fastest sub-batch are lower bounds on the true ones, so only
the GPUs of the first candidates are examined.

**A sure loss.** The joint test compares A and all its partners with A waiting. Each partner that is taken adds to a lower
bound on what is lost (`_price`). If the bound exceeds what A can gain by not waiting, A waits whatever the other
partners are, and the choice ends there. The bound is compared with a margin far above its rounding, so that the answer is
that of the full test.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.classes.gpu_sharing.policies.sharing_gpus import (
    WHOLE_CLUSTER,
    end_of_node,
    holds_alone,
    only_job,
    pair_average,
    pair_gains,
    pair_loss,
    seconds_left,
    seconds_with,
    take_open_of,
)
from optsched.classes.gpu_sharing.policies.sharing_outlook import MISSES, latest, to_come
from optsched.classes.gpu_sharing.policies.sharing_waits import list_partners
from optsched.compiled import INNER, NESTED, njit
from optsched.policies.ties import leading_of
from optsched.simulation.colocation import Neighbours, xi_beside
from optsched.simulation.records import FREE
from optsched.simulation.state import RunContext, State

TEST, CONSOLIDATED, JOINT, BY, ACCUMULATE, OUTLOOK = range(6)  # numbers of the rule
PAIR, SAVING, COST = range(3)  # orders of the partners
UNSEEN = -1.0  # GPUs of a candidate
FIRST = np.int64(0)
SURE, OF_LENGTH = 1e-6, 1e-9  # margins of a sure loss, relative: to the wait, to the seconds of A
TRUSTED = 1e3  # slow-downs beyond which no loss is sure


# A heap of candidates by (value, job).


@njit(**NESTED)
def _sift(c: Any, base: int, size: int, i: int) -> None:
    # Move the i-th of a heap, whose value has grown, to where it belongs.
    entry = c[base + i]
    value, job, other, room = entry.value, entry.job, entry.other, entry.open
    while 2 * i + 1 < size:
        child = 2 * i + 1
        one = c[base + child]
        if child + 1 < size:
            two = c[base + child + 1]
            if two.value < one.value or (two.value == one.value and two.job < one.job):
                child, one = child + 1, two
        if value < one.value or (value == one.value and job < one.job):
            break
        over = c[base + i]
        over.value, over.job, over.other, over.open = one.value, one.job, one.other, one.open
        i = child
    entry = c[base + i]
    entry.value, entry.job, entry.other, entry.open = value, job, other, room


@njit(**NESTED)
def make_heap(c: Any, base: int, size: int) -> None:
    """Order candidates as a heap by (value, job). O(size).

    Parameters
    ----------
    c
        CANDIDATE[].
    base
        Position of the first one.
    size
        Number of them.
    """
    for i in range(size // 2 - 1, -1, -1):
        _sift(c, base, size, i)


@njit(**NESTED)
def drop_first(c: Any, base: int, size: int) -> int:
    """Remove the first candidate of a heap, and return the number of the others. O(log size).

    Parameters
    ----------
    c
        CANDIDATE[].
    base
        Position of the first one.
    size
        Number of them.
    """
    first, last = c[base], c[base + size - 1]
    first.value, first.job, first.other, first.open = last.value, last.job, last.other, last.open
    _sift(c, base, size - 1, FIRST)
    return size - 1


# The candidates.


@njit(**NESTED)
def most_gain(b: Neighbours, j: int, wait: float) -> float:
    """Return the most that a job gains by not waiting for idle GPUs, with the margins of a sure loss.

    Parameters
    ----------
    b
        Jobs on every GPU.
    j
        The waiting job A.
    wait
        Seconds until it could run alone.
    """
    return wait * (1.0 + SURE) + OF_LENGTH * seconds_with(b, j, 0)


@njit(**NESTED)
def fastest(b: Neighbours, j: int, last: int, room: float) -> int:
    """Return the sub-batch that fits and takes a job least time; -1: none fits.

    Parameters
    ----------
    b
        Jobs on every GPU.
    j
        The job.
    last
        Number of the last sub-batch that it may use.
    room
        Memory that it may take on a GPU, in bytes.
    """
    chosen = -1
    for option in range(last + 1):
        if b.memory[j, option] <= room and (chosen < 0 or seconds_with(b, j, option) < seconds_with(b, j, chosen)):
            chosen = option
    return chosen


@njit(**NESTED)
def _value(s: State, b: Neighbours, j: int, r: int, e_r: float, e_a: float) -> float:
    # The value of the running job R as a partner if A gains next to it with the sub-batch that takes it e_a: t_con, or t_con
    # - t_seq, or the loss of both for a GPU that it gives; inf if A does not gain.
    xi_a = xi_beside(b, j, r)
    if xi_a == np.inf:
        return np.inf
    xi_r, e_first = xi_beside(b, r, j), seconds_with(b, j, 0)
    if not pair_gains(e_a, e_first, e_r, xi_a, xi_r):
        return np.inf
    if s.numbers[BY] == COST:
        value = pair_loss(e_a, e_first, e_r, xi_a, xi_r) / min(s.jobs[j].gpus, s.jobs[r].alone)
    else:
        value = pair_average(e_a, e_r, xi_a, xi_r)
        if s.numbers[BY] == SAVING:
            value -= e_r + e_first / 2
    return leading_of(value)


@njit(**INNER)
def _gainful(s: State, b: Neighbours, j: int, r: int, e_a: float) -> bool:
    # True if A gains next to the running job R with its fastest sub-batch; the value of R is computed once a question.
    c = b.sharers[r]
    if c.asked != b.kept[0].asks:
        c.asked = b.kept[0].asks
        c.value = _value(s, b, j, r, seconds_left(s, s.jobs[r].execution), e_a)
    return bool(c.value < np.inf)


@njit(**INNER)
def _priced(s: State, b: Neighbours, j: int, r: int) -> Any:
    # The record of a running job R with what A next to it costs at least, computed once a question.
    if b.sharers[r].priced != b.kept[0].asks:
        _price(s, b, j, r)
    return b.sharers[r]


@njit(**NESTED)
def _price(s: State, b: Neighbours, j: int, r: int) -> None:
    # What A next to R costs at least, whoever the other partners are: ``loss`` of R, ``closing`` of jobs to come for each
    # GPU, and ``own`` of A.
    c, x = b.sharers[r], s.jobs[r].execution
    c.priced, c.loss, c.closing, c.own = b.kept[0].asks, 0.0, 0.0, 0.0
    e_a, e_r, slow = seconds_with(b, j, 0), seconds_left(s, x), s.executions[x].slow
    xi_a, xi_r = xi_beside(b, j, r), xi_beside(b, r, j)
    beside = max(slow, xi_r)
    if max(xi_a, beside) > TRUSTED:
        c.loss = -np.inf
        return
    # R ends later by all that A slows it, or it is slowed for as long as A takes alone
    c.loss = min(e_r * (beside - slow), e_a * (1.0 - slow / beside))
    c.own = min(e_a * (xi_a - 1.0), e_r * beside * (1.0 - 1.0 / xi_a))
    closed = min(xi_a * e_a, xi_r * e_r)
    if s.numbers[OUTLOOK] > 0.0 and closed > 0.0:
        c.closing = s.numbers[OUTLOOK] * MISSES / b.gpus.size * closed / 2 * to_come(s, latest(s), closed)


@njit(**NESTED)
def _list_all(s: State, b: Neighbours, j: int, idle: int, e_a: float) -> int:
    # Candidates: jobs that gain with the sub-batch that takes A e_a; returns their number, 0: they have too few GPUs.
    count, have, asks = 0, idle, b.kept[0].asks
    for k in range(list_partners(s, b)):
        r = b.partners[k].job
        c = b.sharers[r]
        if c.asked != asks:
            c.asked, c.value = asks, _value(s, b, j, r, b.partners[k].left, e_a)
        if c.value < np.inf:
            candidate = b.candidates[count]
            candidate.job, candidate.value, candidate.other = r, c.value, UNSEEN
            have += s.jobs[r].alone  # at least the number of open ones
            count += 1
    return count if have >= s.jobs[j].gpus else 0


@njit(**INNER)
def may_serve(s: State, b: Neighbours, j: int, node: int, e_a: float, gain: float) -> bool:
    """Return False if the idle GPUs of a node and its jobs that gain are too few for a job, or cost too much. O(its GPUs).

    Parameters
    ----------
    s
        State of the run.
    b
        Jobs on every GPU.
    j
        The waiting job A.
    node
        Number of the node.
    e_a
        Seconds that A takes alone with its fastest sub-batch.
    gain
        Most that A gains by not waiting (`most_gain`).
    """
    need, have, first, end = s.jobs[j].gpus - s.pools[FREE, node], 0, b.nodes[node].first, end_of_node(b, node)
    for g in range(first, end):
        have += b.gpus[g].jobs == 1 and _gainful(s, b, j, only_job(b, g), e_a)
    if have < need or gain == np.inf:
        return bool(have >= need)
    loss, closing, own, last = np.inf, np.inf, np.inf, -1
    for g in range(first, end):
        r = only_job(b, g)
        if b.gpus[g].jobs == 1 and r != last and b.sharers[r].value < np.inf:  # mostly the same as on the GPU before
            c = _priced(s, b, j, r)
            loss, closing, own, last = min(loss, c.loss), min(closing, c.closing), min(own, c.own), r
    return not loss + need * closing + own >= gain


@njit(**NESTED)
def _list_on(s: State, b: Neighbours, j: int, node: int, e_a: float) -> int:
    # The same on one node.
    count = 0
    for g in range(b.nodes[node].first, end_of_node(b, node)):
        if b.gpus[g].jobs == 1:
            r = only_job(b, g)
            c = b.sharers[r]
            if _gainful(s, b, j, r, e_a) and c.mark != j:
                c.mark = j
                candidate = b.candidates[count]
                candidate.job, candidate.value, candidate.other = r, c.value, UNSEEN
                count += 1
    for k in range(count):
        b.sharers[b.candidates[k].job].mark = -1
    return count


@njit(**NESTED)
def _look_at_gpus(s: State, context: RunContext, b: Neighbours, j: int, only: int, last: int, e_a: float) -> bool:
    # The first candidate by its open GPUs: their number, its sub-batch and value; False: it is no candidate.
    c = b.candidates[0]
    room, count, x = np.inf, 0, s.jobs[c.job].execution
    for i in range(s.executions[x].entries):
        g = s.parts[x * s.engine[0].width + i].pool
        if holds_alone(s, context, b, j, g, b.memory[j, last], only):
            room = min(room, b.gpus[g].free_memory)
            count += 1
    option = fastest(b, j, last, room) if count > 0 else -1
    if option < 0:
        return False
    if seconds_with(b, j, option) != e_a:
        c.value = _value(s, b, j, c.job, seconds_left(s, x), seconds_with(b, j, option))
    c.other, c.open = option, count
    return bool(c.value < np.inf)


@njit(**NESTED)
def best_partners(
    s: State, context: RunContext, b: Neighbours, j: int, only: int, idle: int, last: int, wait: float
) -> int:
    """Choose GPUs of the best partners of a job on one node or the whole cluster, after the idle GPUs.

    O(jobs with GPUs alone), and O(gang of the partner + log) for each partner examined.

    Parameters
    ----------
    s
        State of the run; the GPUs are written to it.
    context
        Constants of the run.
    b
        Jobs on every GPU.
    j
        The waiting job A.
    only
        The only node to use, or `WHOLE_CLUSTER`.
    idle
        Number of idle GPUs that it takes as well.
    last
        Number of the last sub-batch that it may use.
    wait
        Seconds that A saves by not waiting for idle GPUs; inf if there is no joint test.

    Returns
    -------
    int
        Number of the sub-batch that suits all partners; -1: the job waits.
    """
    n = s.jobs[j].gpus
    if idle + s.engine[0].alone < n:
        return -1
    e_a, taken, option = seconds_with(b, j, fastest(b, j, last, np.inf)), idle, 0
    gain, lost, most = most_gain(b, j, wait), 0.0, 0.0
    count = _list_all(s, b, j, idle, e_a) if only == WHOLE_CLUSTER else _list_on(s, b, j, only, e_a)
    make_heap(b.candidates, FIRST, count)
    while taken < n:
        if count == 0:
            return -1
        c = b.candidates[0]
        if c.other == UNSEEN:
            if _look_at_gpus(s, context, b, j, only, last, e_a):
                _sift(b.candidates, FIRST, count, FIRST)
            else:
                count = drop_first(b.candidates, FIRST, count)
            continue
        if gain < np.inf:
            partner = _priced(s, b, j, c.job)
            lost += partner.loss + min(n - taken, c.open) * partner.closing
            most = max(most, partner.own)
            if lost + most >= gain:
                return -1
        option = max(option, int(c.other))
        taken = take_open_of(s, context, b, j, c.job, taken, b.memory[j, last], only)
        count = drop_first(b.candidates, FIRST, count)
    return option
