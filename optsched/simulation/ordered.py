"""The compiled loop of policies that are a queue order.

Not preemptive: jobs start in order of (level, key, index). A job that does not fit blocks the queue (strict) or is
passed over (skip). Jobs of one kind (gang size, eligible nodes) fit or do not fit together, so each kind has its own
heap, and a kind that did not fit is not tried again before GPUs are released. This makes the same decisions as a scan
of the whole queue, at O(kinds + log n) a start.

Preemptive: active jobs are walked in that order. A running job keeps its GPUs unless a more important one took them. A
waiting job takes idle GPUs. If these do not hold it, less important running jobs are evicted, the least important
first, until it fits; evicted jobs whose GPUs turn out not to be needed keep running, the most important first. If the
job would not fit even after the eviction of all of them, no job is evicted and the job waits. Running jobs are in a
heap, the least important first, by keys that may be out of date. A key that falls with work is never larger than its
stored value, so that the first job of the heap, brought up to date until it stays first, is the least important one.

Rules (`sharing_rule`): all waiting jobs are asked about, in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from optsched.compiled import INNER, KERNEL, njit, types
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.profile import Profile, Stage
from optsched.simulation.kernel import apply_events, may_go_on, next_time, start, stop
from optsched.simulation.next_event import before, end_of_instant, insert, lower, next_tick, queue_of, remove, shortened
from optsched.simulation.placement import SIGNATURE, Placement
from optsched.simulation.policy import Order
from optsched.simulation.records import ASKED, COUNT, FINISHED_RUN, FREE, POOL, SIZE, TRIAL, WAITING
from optsched.simulation.state import Residents, RunContext, State, new_state
from optsched.speeds.partner_rates import sharing_rates


def _types() -> list[Any]:
    # Those of a real state and of its contexts: explicit types let any placement be passed as a function value.
    profile = Profile((Stage(2, 1.0, 1.0, 1.0),))
    links = NodeGroup(count=2, gpus=1, nic_bandwidth=1.0, intra_bandwidth=1.0)
    alone = Instance(
        [Job("a", gpus=2, iterations=1, profile="p")], Cluster((links,)), profiles={"p": profile}, interference=1.0
    )
    order, none, partners = Order(key=alone.arrival), Placement("none", lambda *_: 0), Residents(sharing_rates(alone))
    state, apart = new_state(alone, order, none)
    _, beside = new_state(alone, order, none, partners)
    return [numba.typeof(value) for value in (state, apart, beside)]


PLACE_TYPE = types.FunctionType(SIGNATURE)
STATE_TYPE, *CONTEXT_TYPES = _types()  # jobs have GPUs and network alone; or they may meet others
RULE_SIGNATURE = types.int64(STATE_TYPE, CONTEXT_TYPES[1], types.int64)
RULE_TYPE = types.FunctionType(RULE_SIGNATURE)


def context_kind(context: RunContext) -> int:
    """Return the position of the type of a context in `CONTEXT_TYPES`.

    Parameters
    ----------
    context
        Constants of the run.
    """
    return int(context.colocation is not None)


@njit(**INNER)
def choose_gpus(place: Any, s: State, context: RunContext, j: int, free: Any) -> int:
    """Let a placement choose GPUs for a job, and return the number of entries in ``s.out``; 0: it finds no place.

    Parameters
    ----------
    place
        The compiled rule of the placement.
    s
        State of the run.
    context
        Constants of the run.
    j
        Index of the job.
    free
        GPUs to choose from, i64[P].
    """
    job = s.jobs[j]
    eligible = context.eligible[job.kind]
    return place(j, job.gpus, free, s.pools[SIZE], eligible, context.random, context.tables, s.out[POOL], s.out[COUNT])


@njit(**INNER)
def _head(s: State) -> int:
    # The most important waiting job of a kind that is not known not to fit; -1 when there is none.
    best = -1
    for q in range(s.queues.size):
        queue = s.queues[q]
        if queue.jobs > 0 and queue.blocked == 0:
            first = s.heap[queue.first]
            if best < 0 or before(first.level, first.key, first.number, s.heap[best]):
                best = queue.first
    return s.heap[best].number if best >= 0 else -1


@njit(**INNER)
def _present_key(s: State, j: int) -> float:
    # What the key of a running job has become with its work.
    job = s.jobs[j]
    run = s.executions[job.execution]
    done = job.left - run.left + max(0.0, s.engine[0].now - run.paid) / (run.pace * run.slow)
    return shortened(job.origin + job.slope * done)


@njit(**INNER)
def _bring_up_to_date(s: State) -> None:
    # All running jobs: where keys grow, any of them may have become the least important.
    w = s.engine[0]
    for i in range(w.ranked):
        j = ~s.heap[w.runner + i].number
        s.jobs[j].key = _present_key(s, j)
        insert(s.heap, w.runner, i, s.heap[w.runner + i].level, -s.jobs[j].key, ~j, s.jobs["place"])


@njit(**INNER)
def _least_important(s: State) -> int:
    # The least important running job, -1: none runs. It is first in the heap, its key up to date.
    w = s.engine[0]
    while w.ranked > 0:
        j = ~s.heap[w.runner].number
        if w.fading == 0 or w.growing != 0:
            return j
        key = _present_key(s, j)
        if key == s.jobs[j].key:
            return j
        s.jobs[j].key = key
        lower(s.heap, w.runner, w.ranked, s.heap[w.runner].level, -key, s.jobs["place"])
        if ~s.heap[w.runner].number == j:
            return j
    return -1


@njit(**INNER)
def _hold(s: State, j: int, sign: int) -> None:
    run, at = s.executions[s.jobs[j].execution], s.jobs[j].execution * s.engine[0].width
    for k in range(run.entries):
        s.pools[TRIAL, s.parts[at + k].pool] += sign * s.parts[at + k].count


@njit(**INNER)
def _kept(s: State, j: int) -> bool:
    # Take the GPUs of j off the trial if they are all still there.
    _hold(s, j, np.int64(-1))
    run, at = s.executions[s.jobs[j].execution], s.jobs[j].execution * s.engine[0].width
    for k in range(run.entries):
        if s.pools[TRIAL, s.parts[at + k].pool] < 0:
            _hold(s, j, np.int64(1))
            return False
    return True


@njit(**INNER)
def _outranks(s: State, j: int, other: int) -> bool:
    one, two = s.jobs[j], s.jobs[other]
    if one.level != two.level:
        return bool(one.level < two.level)
    return bool(one.key < two.key or (one.key == two.key and j < other))


@njit(**INNER)
def _evict_for(place: Any, s: State, context: RunContext, j: int) -> int:
    # Free GPUs for j by evicting; the entries of its placement, 0 when evicting all less important jobs would not do.
    w, gang = s.engine[0], s.jobs[j].gpus
    running, free, entries = w.ranked, w.free, 0
    while entries == 0:
        victim = _least_important(s)
        if victim < 0 or not _outranks(s, j, victim):
            break
        if w.ranked == running:
            for p in range(s.pools.shape[1]):
                s.pools[TRIAL, p] = s.pools[FREE, p]
        level, key = s.heap[w.runner].level, s.heap[w.runner].key
        w.ranked = remove(s.heap, w.runner, w.ranked, ~victim, s.jobs["place"])
        off = s.heap[w.runner + w.ranked]  # behind the heap
        off.level, off.key, off.number = level, key, ~victim
        _hold(s, victim, np.int64(1))
        free += s.jobs[victim].gpus
        if free >= gang:
            entries = choose_gpus(place, s, context, j, s.pools[TRIAL])
    for k in range(entries):
        s.pools[TRIAL, s.out[POOL, k]] -= s.out[COUNT, k]
    for i in range(w.ranked, running):  # the most important victim first
        level, key, victim = s.heap[w.runner + i].level, s.heap[w.runner + i].key, ~s.heap[w.runner + i].number
        w.ranked = insert(s.heap, w.runner, w.ranked, level, key, ~victim, s.jobs["place"])
        if entries > 0 and not _kept(s, victim):
            stop(s, context, victim)
    return entries


@njit(**INNER)
def _decide(place: Any, s: State, context: RunContext) -> None:
    w = s.engine[0]
    if w.preemptive != 0 and w.queued > 0:  # what did not fit may evict others by now
        if w.growing != 0:
            _bring_up_to_date(s)
        for q in range(s.queues.size):
            s.queues[q].blocked = 0
    while w.queued > 0:
        j = _head(s)
        if j < 0:
            return
        entries = 0
        if s.jobs[j].gpus <= w.free:
            entries = choose_gpus(place, s, context, j, s.pools[FREE])
        if entries == 0 and w.preemptive != 0:
            entries = _evict_for(place, s, context, j)
        if entries > 0:
            start(s, context, j, entries, np.int64(0))
        elif w.skip != 0 or w.preemptive != 0:
            queue_of(s, j).blocked = 1
        else:
            return


@njit(**INNER)
def next_decision(s: State, context: RunContext, pause: int) -> int:
    """Apply events until something is to be decided, and return `ASKED`; else the reason why the loop ends.

    Parameters
    ----------
    s
        State of the run.
    context
        Constants of the run.
    pause
        Number of events after which the loop pauses.
    """
    w = s.engine[0]
    while True:
        status = may_go_on(s, pause)
        if status != ASKED:
            return status
        t = next_time(s)
        if t == np.inf:
            return FINISHED_RUN
        end_of_round = w.tick <= end_of_instant(t)
        apply_events(s, context, t)
        if w.period > 0.0 and not end_of_round:
            tick = next_tick(w.now, w.first_round, w.period)
            if tick > w.now:  # decisions only at the end of a round
                if w.queued > 0:
                    w.tick = tick
                continue
        return ASKED


def _run_ordered(place: Any, s: State, context: RunContext, events: int) -> int:
    pause = s.engine[0].events + events
    while True:
        status = next_decision(s, context, pause)
        if status != ASKED:
            return status
        _decide(place, s, context)


def sharing_rule(function: Callable[..., int]) -> Callable[..., int]:
    """Compile a function with the signature of a rule for sharing, and keep the code on disk.

    A rule says where a job starts, and with which sub-batch.

    Parameters
    ----------
    function
        ``rule(state, context, job) -> option``: -1 if the job waits, else the index of the sub-batch that it runs. Its
        GPUs are in ``state.out[NUMBER]``: g_j different ones that suit it, each with at most one resident with which it
        may share, and room for the sub-batch.

    Notes
    -----
    The rule may read everything (`optsched.simulation.state`) and change only scratch: ``state.out``, and of
    ``context.colocation.neighbours`` the field ``sharers.mark`` (it must remain -1) and ``candidates``. The package's
    own rules also keep what they know between two questions: ``partners``, ``waits``, ``kept``, ``ends``,
    ``nodes.changed``, ``nodes.roomy`` and the fields of ``sharers`` after ``mark``.

    It runs interpreted or compiled, whichever pays for the amount of work. Everything that numba compiles is allowed,
    also allocation. (The package's own rules allocate nothing and are compiled without numba's reference counts:
    `optsched.compiled.KERNEL`.)
    """
    result: Callable[..., Any] = njit(signature=RULE_SIGNATURE)(function)
    return result


@njit(**INNER)
def forget_started(s: State) -> None:
    """Take jobs that have started off the sorted list of jobs that wait.

    Parameters
    ----------
    s
        State of the run.
    """
    w, waiting = s.engine[0], 0
    for i in range(w.queued):
        j = s.heap[i].number
        if s.jobs[j].status == WAITING:
            s.heap[waiting].key, s.heap[waiting].number = s.heap[i].key, j
            waiting += 1
    w.queued = waiting


@njit(signature=types.int64(RULE_TYPE, STATE_TYPE, CONTEXT_TYPES[1], types.int64, types.boolean), **KERNEL)
def run_rule(rule: Any, s: State, context: RunContext, events: int, strict: bool) -> int:
    """Run the loop of `ordered_loop` with a rule that chooses GPUs.

    Parameters
    ----------
    rule
        A compiled rule (`sharing_rule`).
    s
        State of the run.
    context
        Constants of the run.
    events
        Number of events after which the loop pauses.
    strict
        Whether the first job that has to wait blocks the others.

    Returns
    -------
    int
        Reason why the loop ended, as from `ordered_loop`.
    """
    pause = s.engine[0].events + events
    while True:
        status = next_decision(s, context, pause)
        if status != ASKED:
            return status
        for i in range(s.engine[0].queued):
            j = s.heap[i].number
            option = rule(s, context, j)
            if option >= 0:
                start(s, context, j, 0, option)
            elif strict:
                break
        forget_started(s)


class ContextLoops:
    """A loop of the engine, compiled for every type of context.

    The call ``loops(context)`` returns the loop for a context. A loop runs for about ``events`` events and returns the
    reason why it ended: `FINISHED_RUN`, `LOG_FULL` (the log is nearly full), `PAUSED`, `THRASHES` (jobs only stop each
    other), or `ASKED` (Python is to do a step of the policy).

    Parameters
    ----------
    run
        Python of the loop: ``run(place, state, context, events)``, or ``run(place, state, context, plan, events)``.
    *plan
        numba type of the plan, if the loop has one.
    """

    def __init__(self, run: Callable[..., int], *plan: Any) -> None:
        self.forms = tuple(
            njit(signature=types.int64(PLACE_TYPE, STATE_TYPE, context, *plan, types.int64), **KERNEL)(run)
            for context in CONTEXT_TYPES
        )

    def __call__(self, context: RunContext) -> Any:
        """Return the compiled loop for a context.

        Parameters
        ----------
        context
            Constants of the run.
        """
        return self.forms[context_kind(context)]


ordered_loop = ContextLoops(_run_ordered)
