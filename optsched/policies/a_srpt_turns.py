"""A-SRPT compiled: the loop that makes the decisions of `optsched.policies.a_srpt`, bit for bit.

`SrptTurns` is what that form keeps in its objects: the virtual machine, the queue of the jobs that have reached their
points, the budget of the jobs that overtake, the predicted ends of running jobs, and the times at which the policy asks
to be woken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from optsched.compiled import INNER, KERNEL, NESTED, njit, record
from optsched.policies.ties import TIE, leading
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance, Job
from optsched.simulation.kernel import apply_events, may_go_on, next_time, start
from optsched.simulation.next_event import ENTRY, end_of_instant, insert, remove
from optsched.simulation.ordered import ContextLoops, choose_gpus
from optsched.simulation.policy import Knowledge, KnownJobs
from optsched.simulation.records import ASKED, COUNT, FINISHED_RUN, FREE, POOL, SIZE, TRIAL
from optsched.simulation.state import RunContext, State
from optsched.speeds.partner_rates import first_alike
from optsched.speeds.speed_tables import pace

FASTEST, SLOWEST, IDLE = range(3)  # nominal iteration times
OFFERED, BLOCKED, PASSED = range(3)  # answers to a job, before a place is found for it
ZERO = np.int64(0)

# The parameters of a run, then the state of the virtual machine, of the queue and of the budget.
TURNS = record(
    beta="real",
    tau="real",
    rate="real",  # GPU-seconds a second of the budget; inf: there is none
    nominal="int",
    nodes="int",
    zero="real",  # the first arrival
    serving="int",  # the job on the virtual machine, -1: none
    left="real",  # its seconds left at ``since``
    since="real",
    virtual="int",  # jobs that wait for the virtual machine
    joined="int",  # jobs that have joined the queue
    head="int",  # the first of them that may still wait
    charged="real",  # all charges so far
    over="real",  # those of jobs that have completed
    widest="int",  # g_max so far
    waiting="int",
    running="int",
    heard="int",  # arrivals
    ended="int",  # segments
    delayed="int",  # the head that waits for a better place, -1: none
    delay_since="real",
    delay_rate="real",
    decisions="int",
    passes="int",  # over the kinds of jobs that may overtake
    starts="int",
    wakes="int",
)
TURN = record(
    predicted="real",  # units of work
    fastest="real",
    slowest="real",
    idle="real",  # seconds a unit of work on the GPUs that it would get in an idle cluster
    key="real",
    kind="int",  # jobs of one kind are offered the same GPUs at the same pace
    length="real",  # p_j, virtual seconds
    behind="real",  # those after its beta point
    reached="int",  # 1: its beta point has passed
    eligible="real",  # B_j
    delay="real",  # idle seconds for which it may still wait at the head of the queue
    limit="real",  # of the charges of jobs that overtake it
    started="int",
    charge="real",
    begun="real",
    seconds="real",  # predicted from its start on
    slot="int",  # in the heap of its kind
    virtual="int",  # in the heap of the virtual machine
    place="int",  # among the running jobs
)
KIND = record(first="int", jobs="int", blocked="int", passed="int")
GANG = record(at="real", starts="int", wait="real", nodes="int")


class SrptTurns(NamedTuple):
    """A run of n jobs of K kinds, with C gangs that differ in size or eligible nodes; the loop changes it."""

    facts: Any  # TURNS[1]
    jobs: Any  # TURN[n]
    kinds: Any  # KIND[K]
    gangs: Any  # GANG[C]
    shortest: Any  # ENTRY[n], a heap a kind, by (seconds, job)
    machine: Any  # ENTRY[n], a heap by (work left, job)
    queue: Ints  # i64[n] in the order of B_j
    running: Ints  # i64[n]
    ends: Any  # ENTRY[n], scratch: a heap by (predicted end, job)
    slot: Ints  # i64[n], scratch: places there
    wakes: Floats  # f64[2 n + 4], a heap: no more, since only an arrival or a completion adds one that replaces none


def new_turns(jobs: KnownJobs, beta: float, tau: float, overtake: float, nominal: int) -> SrptTurns:
    """Return the state of a run before the first event.

    Parameters
    ----------
    jobs
        Jobs of the run, with predictions.
    beta, tau, overtake
        Parameters of A-SRPT.
    nominal
        Nominal iteration time: `FASTEST`, `SLOWEST` or `IDLE`.
    """
    n, (fastest, slowest) = jobs.n, jobs.pace_range
    _, kind = np.unique(first_alike(jobs.kind, fastest, slowest), return_inverse=True)
    facts, rows = np.zeros(1, dtype=TURNS), np.zeros(n, dtype=TURN)
    facts["beta"], facts["tau"], facts["rate"], facts["nominal"] = beta, tau, overtake * jobs.cluster_gpus, nominal
    facts["nodes"], facts["widest"], facts["zero"] = jobs.node_count, 1, np.nan
    facts["serving"] = facts["delayed"] = -1
    rows["predicted"], rows["fastest"], rows["slowest"], rows["kind"] = jobs.predicted, fastest, slowest, kind
    rows["key"] = leading(jobs.predicted * fastest)
    rows["length"] = rows["eligible"] = np.nan
    rows["slot"] = rows["virtual"] = rows["place"] = -1
    kinds, gangs = np.zeros(int(kind.max(initial=0)) + 1, dtype=KIND), np.zeros(int(jobs.kind.max(initial=0)) + 1, GANG)
    kinds["first"][1:] = np.cumsum(np.bincount(kind, minlength=kinds.size))[:-1]
    gangs["starts"] = -1
    return SrptTurns(
        facts,
        rows,
        kinds,
        gangs,
        shortest=np.zeros(n, dtype=ENTRY),
        machine=np.zeros(n, dtype=ENTRY),
        queue=np.zeros(n, dtype=np.int64),
        running=np.zeros(n, dtype=np.int64),
        ends=np.zeros(n, dtype=ENTRY),
        slot=np.zeros(n, dtype=np.int64),
        wakes=np.zeros(2 * n + 4),
    )


# --- the virtual machine and the queue --------------------------------------------------------------------------------


@njit(**NESTED)
def _release(t: SrptTurns, j: int, now: float) -> None:
    w, job = t.facts[0], t.jobs[j]
    job.behind = (1.0 - w.beta) * job.length
    if w.serving >= 0:
        left = w.left - (now - w.since)
        if not job.length < left:
            w.virtual = insert(t.machine, ZERO, w.virtual, ZERO, job.length, j, t.jobs["virtual"])
            return
        w.virtual = insert(t.machine, ZERO, w.virtual, ZERO, left, w.serving, t.jobs["virtual"])
    w.serving, w.left, w.since = j, job.length, now


@njit(**NESTED)
def _next_point(t: SrptTurns) -> float:
    # The next beta point or completion on the virtual machine if no job arrives before; inf: it is idle.
    w = t.facts[0]
    if w.serving < 0:
        return np.inf
    job = t.jobs[w.serving]
    return float(w.since + (w.left - (0.0 if job.reached == 1 else job.behind)))


@njit(**KERNEL)
def join(t: SrptTurns, now: float) -> None:
    """Advance the virtual machine until ``now``; jobs that reach their points join the queue.

    Parameters
    ----------
    t
        State of the policy.
    now
        Time in seconds; inf completes all jobs.
    """
    w = t.facts[0]
    while w.serving >= 0 and _next_point(t) <= now:
        time, job = _next_point(t), t.jobs[w.serving]
        if job.reached == 0:
            job.reached = 1
            job.eligible = time
            job.delay = w.tau * job.length if job.slowest > job.fastest else 0.0
            if job.started == 0:
                job.limit = _limit(t, time)
                t.queue[w.joined] = w.serving
                w.joined += 1
        elif w.virtual > 0:
            left, j = t.machine[0].key, t.machine[0].number
            w.virtual = remove(t.machine, ZERO, w.virtual, j, t.jobs["virtual"])
            w.left, w.serving, w.since = left, j, time
        else:
            w.serving = -1


@njit(**NESTED)
def _limit(t: SrptTurns, time: float) -> float:
    # Of all charges, for a job that joins the queue at this time.
    w = t.facts[0]
    return float(w.over + w.rate * (time - w.zero)) if w.rate < np.inf else np.inf


@njit(**NESTED)
def _head(t: SrptTurns) -> int:
    # The first job of the queue, -1: none waits.
    w = t.facts[0]
    while w.head < w.joined and t.jobs[t.queue[w.head]].started == 1:
        w.head += 1
    return int(t.queue[w.head]) if w.head < w.joined else -1


# --- expected places --------------------------------------------------------------------------------------------------


@njit(**NESTED)
def _predicted_end(t: SrptTurns, j: int, now: float) -> float:
    # A job that has outlived its prediction is expected to take twice as long.
    begun, seconds = t.jobs[j].begun, t.jobs[j].seconds
    while begun + (1 - TIE) * seconds <= now and seconds > 0:
        seconds = max(2 * seconds, np.spacing(now))
    return float(begun + seconds)


@njit(**NESTED)
def _most(free: Ints, nodes: int) -> int:
    # GPUs on the nodes with most of them: those seen so far are the first in order of (most free, lowest number).
    total, last_free, last = 0, -1, -1
    for k in range(nodes):
        best = -1
        for m in range(free.size):
            later = k == 0 or free[m] < last_free or (free[m] == last_free and m > last)
            if later and (best < 0 or free[m] > free[best]):
                best = m
        if best < 0:
            return total
        total += free[best]
        last_free, last = free[best], best
    return total


@njit(**NESTED)
def _fewest(s: State, context: RunContext, t: SrptTurns, j: int) -> int:
    # The number of nodes that the gang needs in an idle cluster.
    gang = t.gangs[s.jobs[j].kind]
    if gang.nodes == 0:
        free = s.pools[TRIAL]
        for p in range(free.size):
            free[p] = s.pools[SIZE, p] if context.eligible[s.jobs[j].kind, p] else 0
        gang.nodes = 1
        while gang.nodes <= free.size and _most(free, gang.nodes) < s.jobs[j].gpus:
            gang.nodes += 1
    return int(gang.nodes)


@njit(**NESTED)
def _wait(s: State, context: RunContext, t: SrptTurns, j: int, now: float) -> float:
    # Seconds until the fewest nodes that suffice have GPUs for the gang, 0: now; known for its kind until a job starts.
    w, gang = t.facts[0], t.gangs[s.jobs[j].kind]
    if s.pools.shape[1] < w.nodes:  # GPUs are only counted, by type: no node is better than another
        return 0.0
    nodes = _fewest(s, context, t, j)
    if gang.at != now or gang.starts != w.starts:
        gang.at, gang.starts = now, w.starts
        gang.wait = _seconds(s, context, t, j, nodes, now)
    return float(gang.wait)


@njit(**NESTED)
def _seconds(s: State, context: RunContext, t: SrptTurns, j: int, nodes: int, now: float) -> float:
    w, need, kind, free, count = t.facts[0], s.jobs[j].gpus, s.jobs[j].kind, s.pools[TRIAL], 0
    for p in range(free.size):
        free[p] = s.pools[FREE, p] if context.eligible[kind, p] else 0
    if _most(free, nodes) >= need:
        return 0.0
    for i in range(w.running):
        k = t.running[i]
        count = insert(t.ends, ZERO, count, ZERO, _predicted_end(t, k, now), k, t.slot)
    while count > 0:
        end, k = t.ends[0].key, t.ends[0].number
        count = remove(t.ends, ZERO, count, k, t.slot)
        x, enough = s.jobs[k].execution, False
        for i in range(s.executions[x].entries if x >= 0 else 0):
            part = s.parts[x * s.engine[0].width + i]
            if context.eligible[kind, part.pool]:
                free[part.pool] += part.count
                enough = enough or free[part.pool] >= need
        if enough or (nodes > 1 and _most(free, nodes) >= need):
            return float(end - now)
    return np.inf


# --- decisions --------------------------------------------------------------------------------------------------------


@njit(**INNER)
def _pace(s: State, context: RunContext, j: int, entries: int) -> float:
    # Seconds that a unit of work takes on the GPUs in ``out``; -1: there are none.
    return pace(context.tables, j, s.jobs[j].gpus, s.out[POOL], s.out[COUNT]) if entries > 0 else -1.0


@njit(**INNER)
def _idle_share(s: State, t: SrptTurns) -> float:
    # While the head does not fit, at least G - g_max + 1 GPUs are busy.
    w = s.engine[0]
    return max(0.0, 1 - (w.gpus - w.free) / (w.gpus - t.facts[0].widest + 1))


@njit(**NESTED)
def _takes(s: State, context: RunContext, t: SrptTurns, j: int, offered: float, now: float) -> bool:
    # True if the job starts at this pace, false if it waits for a better place.
    job = t.jobs[j]
    if job.fastest == job.slowest or s.engine[0].free == s.engine[0].gpus:
        return True
    wait = _wait(s, context, t, j, now)
    if wait == 0:
        return True
    cost = job.predicted * (offered - job.idle) if _fewest(s, context, t, j) == 1 else np.inf
    if cost <= wait * (1 + TIE):
        return True
    return _is_due(s, t, j, now)


@njit(**NESTED)
def _is_due(s: State, t: SrptTurns, j: int, now: float) -> bool:
    # True for the head if it may not wait any longer.
    rate, delay = _idle_share(s, t), t.jobs[j].delay
    return _head(t) == j and not (delay > 0 and (rate == 0 or now + delay / rate > now))


@njit(**NESTED)
def _refused(s: State, context: RunContext, t: SrptTurns, j: int, head: int, limit: float, now: float) -> int:
    # Is the job refused wherever it is placed? Then its place, which may take long to find, is not needed. `BLOCKED`: it
    # waits for a better place; `PASSED`: it exceeds the budget even at its fastest; `OFFERED`: the place decides.
    job = t.jobs[j]
    if job.fastest == job.slowest:
        return OFFERED
    if s.engine[0].free < s.engine[0].gpus and _wait(s, context, t, j, now) > 0:
        return BLOCKED if _fewest(s, context, t, j) > 1 and not _is_due(s, t, j, now) else OFFERED
    least = s.jobs[j].gpus * job.predicted * job.fastest * (1 - TIE)
    return PASSED if j != head and not (t.facts[0].charged + least) * (1 - TIE) <= limit else OFFERED


@njit(**NESTED)
def _may_charge(s: State, t: SrptTurns, j: int, offered: float, limit: float) -> bool:
    w, job = t.facts[0], t.jobs[j]
    seconds = s.jobs[j].gpus * job.predicted * offered
    if not (w.charged + seconds) * (1 - TIE) <= limit:
        return False
    w.charged += seconds
    job.charge = seconds
    return True


@njit(**NESTED)
def _note_start(t: SrptTurns, j: int, offered: float, now: float) -> None:
    w, job = t.facts[0], t.jobs[j]
    kind = t.kinds[job.kind]
    kind.jobs = remove(t.shortest, kind.first, kind.jobs, j, t.jobs["slot"])
    job.started = 1
    job.begun, job.seconds = now, job.predicted * offered
    job.place = w.running
    t.running[w.running] = j
    w.running += 1
    w.waiting -= 1
    w.starts += 1


@njit(**NESTED)
def _next_kind(t: SrptTurns) -> int:
    # The kind with the shortest first job, of those that were neither refused at this decision nor in this pass; -1: none.
    w, best = t.facts[0], -1
    for k in range(t.kinds.size):
        kind = t.kinds[k]
        if kind.jobs > 0 and kind.blocked != w.decisions and kind.passed != w.passes:
            one, two = t.shortest[kind.first], t.shortest[t.kinds[best].first]
            if best < 0 or one.key < two.key or (one.key == two.key and one.number < two.number):
                best = k
    return best


@njit(**INNER)
def _decide(place: Any, s: State, context: RunContext, t: SrptTurns) -> None:
    # Again and again the shortest jobs start on the budget of the head until the head starts; then the head, if it may.
    w, now = t.facts[0], s.engine[0].now
    w.decisions += 1
    again = True
    while again and s.engine[0].free > 0:
        head, again = _head(t), False
        limit = _limit(t, now) if head < 0 else t.jobs[head].limit
        w.passes += 1
        turn = False  # of the head itself, after those that overtake
        while not again and not turn and s.engine[0].free > 0:
            k = _next_kind(t)
            turn = k < 0
            if turn and head < 0:
                return
            j = head if turn else t.shortest[t.kinds[k].first].number
            refused = _refused(s, context, t, j, head, limit, now) if s.jobs[j].gpus <= s.engine[0].free else BLOCKED
            if refused != OFFERED:
                if not turn and refused == BLOCKED:
                    t.kinds[k].blocked = w.decisions
                elif not turn:
                    t.kinds[k].passed = w.passes
                continue
            random = context.random[0]  # a question must not change what a random placement does next
            entries = choose_gpus(place, s, context, j, s.pools[FREE])
            offered = _pace(s, context, j, entries)
            if entries == 0 or not _takes(s, context, t, j, offered, now):
                context.random[0] = random
                if not turn:
                    t.kinds[k].blocked = w.decisions
            elif j != head and not _may_charge(s, t, j, offered, limit):
                context.random[0] = random
                t.kinds[k].passed = w.passes
            else:
                _note_start(t, j, offered, now)
                start(s, context, j, entries, ZERO)
                again = j == head


@njit(**INNER)
def _arrive(place: Any, s: State, context: RunContext, t: SrptTurns, j: int) -> None:
    w, job = t.facts[0], t.jobs[j]
    job.idle = job.fastest
    if job.slowest > job.fastest:
        random = context.random[0]
        entries = choose_gpus(place, s, context, j, s.pools[SIZE])
        job.idle = _pace(s, context, j, entries) if entries > 0 else np.inf
        context.random[0] = random
    nominal = job.fastest if w.nominal == FASTEST else job.slowest if w.nominal == SLOWEST else job.idle
    job.length = s.jobs[j].gpus * job.predicted * nominal / s.engine[0].gpus
    w.widest, w.waiting = max(w.widest, s.jobs[j].gpus), w.waiting + 1
    _release(t, j, s.engine[0].now)
    kind = t.kinds[job.kind]
    kind.jobs = insert(t.shortest, kind.first, kind.jobs, ZERO, job.key, j, t.jobs["slot"])


@njit(**NESTED)
def _spend_delay(t: SrptTurns, now: float) -> None:
    w = t.facts[0]
    if w.delayed >= 0:
        job = t.jobs[w.delayed]
        if now >= w.delay_since + job.delay / w.delay_rate:  # equal at the time of the wake-up
            job.delay = 0.0
        else:
            job.delay = max(0.0, job.delay - w.delay_rate * (now - w.delay_since))


@njit(**NESTED)
def _finish(s: State, t: SrptTurns) -> None:
    # Jobs that have completed since the last decision.
    w = t.facts[0]
    while w.ended < s.engine[0].segments:
        j = s.segments[w.ended].job
        w.over += t.jobs[j].charge
        w.ended += 1
        w.running -= 1
        last = t.running[w.running]
        t.running[t.jobs[j].place], t.jobs[last].place = last, t.jobs[j].place


@njit(**NESTED)
def _add_wake(s: State, t: SrptTurns) -> None:
    # Wake up only if a job could start then: the next one in turn, or a head that has spent its delay budget.
    w, now, head, wakes = t.facts[0], s.engine[0].now, _head(t), t.wakes
    w.delayed = -1
    if w.waiting == 0 or s.engine[0].free == 0:
        return
    time = _next_point(t)
    if head >= 0:
        rate, time = _idle_share(s, t), np.inf
        if rate > 0 and t.jobs[head].delay > 0:
            w.delayed, w.delay_since, w.delay_rate = head, now, rate
            time = now + t.jobs[head].delay / rate
    if now < time < np.inf:
        i = w.wakes
        w.wakes += 1
        while i > 0 and wakes[(i - 1) // 2] > time:
            wakes[i] = wakes[(i - 1) // 2]
            i = (i - 1) // 2
        wakes[i] = time


@njit(**NESTED)
def _drop_wakes(t: SrptTurns, until: float) -> float:
    # Remove the times up to this one, and return the last of them; inf: there is none.
    w, wakes, dropped = t.facts[0], t.wakes, np.inf
    while w.wakes > 0 and wakes[0] <= until:
        dropped = wakes[0]
        w.wakes -= 1
        time, i = wakes[w.wakes], 0
        while 2 * i + 1 < w.wakes:
            child = 2 * i + 1
            if child + 1 < w.wakes and wakes[child + 1] < wakes[child]:
                child += 1
            if time <= wakes[child]:
                break
            wakes[i] = wakes[child]
            i = child
        wakes[i] = time
    return dropped


def _run_turns(place: Any, s: State, context: RunContext, t: SrptTurns, events: int) -> int:
    e, w = s.engine[0], t.facts[0]
    pause = e.events + events
    while True:
        status = may_go_on(s, pause)
        if status != ASKED:
            return status
        time = next_time(s)
        if time == np.inf or e.finished == s.jobs.size:
            return FINISHED_RUN
        e.tick = _drop_wakes(t, end_of_instant(time))
        apply_events(s, context, time)
        _spend_delay(t, e.now)
        join(t, e.now)  # before completions count: a budget depends on the time of joining
        _finish(s, t)
        if np.isnan(w.zero):
            w.zero = e.now
        while w.heard < e.next:
            _arrive(place, s, context, t, s.jobs[w.heard].nth)
            w.heard += 1
        join(t, e.now)  # again, for jobs shorter than the resolution of the clock: no later event would follow
        _decide(place, s, context, t)
        _add_wake(s, t)
        _drop_wakes(t, e.now)
        e.tick = t.wakes[0] if w.wakes > 0 else np.inf


def _type() -> Any:
    instance = Instance([Job("a", duration=1.0)], "1x1")
    jobs = KnownJobs(instance, Knowledge.PREDICTED)
    jobs.predicted = instance.duration
    return numba.typeof(new_turns(jobs, 1.0, 1.0, 1.0, FASTEST))


turns_loop = ContextLoops(_run_turns, _type())
