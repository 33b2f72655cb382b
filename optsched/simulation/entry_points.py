"""Functions of the engine that policies in plain Python call, and many of their moves in one compiled call.

A call of a numba dispatcher works out the types of all its arguments, which takes longer than the work of the call. The
types are known here, so that the machine code is called directly. Arguments must have exactly these types: nothing
checks them.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy as np

from optsched.compiled import KERNEL, NESTED, Function, njit, runs_compiled, types, worked
from optsched.problem.arrays import Floats, Ints
from optsched.simulation.kernel import apply_events, may_go_on, next_time, start, start_part, stop, work_left
from optsched.simulation.next_event import end_of_instant
from optsched.simulation.ordered import CONTEXT_TYPES, STATE_TYPE, context_kind
from optsched.simulation.placement import TABLES
from optsched.simulation.records import ASKED, COUNT, DONE, FREE, POOL, RUNNING, SIZE, WAITING
from optsched.simulation.run import CONSERVED
from optsched.simulation.state import RunContext, State, grown, log_reserve
from optsched.speeds.speed_tables import NO_ROW, pace

INDEX, TIME, ARRAY, TIMES = types.int64, types.float64, types.int64[::1], types.float64[::1]
UNLIMITED = np.iinfo(np.int64).max  # events


# --- many stops and starts: those that a round of a policy asks for, and stops that it has planned --------------------


@njit(patience=5, **KERNEL)
def apply_moves(
    s: State, context: RunContext, jobs: Any, first: Any, node: Any, count: Any, work: Any, copies: int
) -> int:
    """Apply stops and starts in order, until one is not possible.

    Move i stops ``jobs[i]`` if it has no entries, and else starts the job on ``count[k]`` GPUs of ``node[k]``, k =
    first[i] .. first[i + 1] - 1.

    Parameters
    ----------
    s
        State of the run.
    context
        Constants of the run.
    jobs
        Job of every move, i64[m].
    first
        Where the entries of every move begin, i64[m + 1].
    node
        Node of every entry, i64[].
    count
        GPUs of every entry, i64[].
    work
        Units of work that the copy of every move does, f64[m]; nan for a move that starts the whole job, or stops.
    copies
        Most copies of a job at once.

    Returns
    -------
    int
        Number of moves that were applied; nothing of the next one is.
    """
    for i in range(jobs.size):
        j = jobs[i]
        if j < 0 or j >= s.jobs.size:
            return i
        if first[i] == first[i + 1]:
            if s.jobs[j].status != RUNNING:
                return i
            stop(s, context, j)
            continue
        if s.jobs[j].status != WAITING and (s.jobs[j].status != RUNNING or np.isnan(work[i])):
            return i
        entries = _named(s, context, j, node[first[i] : first[i + 1]], count[first[i] : first[i + 1]])
        if entries == 0:
            return i
        if np.isnan(work[i]):
            start(s, context, j, entries, np.int64(0))
        elif _may_copy(s, context, j, entries, work[i], copies):
            start_part(s, context, j, entries, work[i], 0.0)
        else:
            return i
    return int(jobs.size)


@njit(**NESTED)
def _may_copy(s: State, context: RunContext, j: int, entries: int, work: float, copies: int) -> bool:
    # May ``j`` have a copy on the entries in ``out``: on nodes of its own, of work that no other copy does?
    job, planned, x = s.jobs[j], work, s.jobs[j].execution
    if not (work > 0.0 and work < np.inf) or (x >= 0 and job.copies >= copies):
        return False
    if not np.isfinite(pace(context.tables, j, job.gpus, s.out[POOL], s.out[COUNT])):
        return False
    while x >= 0:
        run = s.executions[x]
        for i in range(run.entries):
            for k in range(entries):
                if s.parts[x * s.engine[0].width + i].pool == s.out[POOL, k]:
                    return False
        planned += run.target
        x = run.other
    return planned <= job.left * (1.0 + CONSERVED)


@njit(**NESTED)
def _named(s: State, context: RunContext, j: int, node: Any, count: Any) -> int:
    # The entries of these GPUs in ``out``; 0 where j may not start there.
    job, total = s.jobs[j], 0
    if node.size > s.engine[0].width:
        return 0
    for k in range(node.size):
        p, given = node[k], count[k]
        if p < 0 or p >= s.pools.shape[1] or given < 1 or not context.eligible[job.kind, p]:
            return 0
        total += given
        for other in range(k):
            if node[other] == p:
                given += count[other]
        if given > s.pools[FREE, p]:
            return 0
        s.out[POOL, k], s.out[COUNT, k] = p, count[k]
    return int(node.size) if total == job.gpus else 0


@njit(**KERNEL)
def stop_as_planned(s: State, context: RunContext, until: Any, jobs: Any, at: int) -> int:
    """Stop running jobs at their planned times, from position ``at`` on, as long as no other event comes before.

    Parameters
    ----------
    s
        State of the run.
    context
        Constants of the run.
    until
        Planned times in seconds, ascending, f64[m].
    jobs
        Indices of the jobs, i64[m].
    at
        First position that is not yet carried out.

    Returns
    -------
    int
        First position that is left: another event falls into its instant or comes before it, or the log is full.
    """
    w = s.engine[0]
    while at < jobs.size and may_go_on(s, UNLIMITED) == ASKED:
        t = until[at]
        if next_time(s) <= end_of_instant(t):
            return at
        w.now = w.began = t
        w.stop_record = 0
        w.events += 1
        while at < jobs.size and until[at] == t:
            stop(s, context, jobs[at])
            at += 1
    return at


# --- functions of the engine ------------------------------------------------------------------------------------------

# What is called in each kind of context: its arguments after the state and the context.
_ARGUMENTS: dict[Any, tuple[Any, ...]] = {
    apply_events: (TIME,),
    start: (INDEX, INDEX, INDEX),
    start_part: (INDEX, INDEX, TIME, TIME),
    stop: (INDEX,),
    apply_moves: (ARRAY, ARRAY, ARRAY, ARRAY, TIMES, INDEX),
    stop_as_planned: (TIMES, ARRAY, INDEX),
}


@njit(signature=types.float64(STATE_TYPE), **KERNEL)
def _next_time(s: Any) -> float:
    return next_time(s)


@njit(signature=types.void(STATE_TYPE, ARRAY, TIMES), **KERNEL)
def _work_left(s: Any, jobs: Any, left: Any) -> None:
    work_left(s, jobs, left)


@njit(signature=types.float64(TABLES, INDEX, INDEX, ARRAY, ARRAY), **KERNEL)
def _pace(tables: Any, job: int, gpus: int, pool: Any, count: Any) -> float:
    return pace(tables, job, gpus, pool, count)


_NONE = np.zeros(0, dtype=np.int64)
_CODE: dict[Any, Callable[..., Any]] = {}  # of functions that are compiled, with the kind of context if they have one


def _entry(function: Any, context: int | None = None) -> Callable[..., Any]:
    code = _CODE.get((function, context))
    if code is not None:
        return code
    if context is None:
        ready = runs_compiled(function)
    else:
        ready = isinstance(function, Function) and function.runs_compiled_for(_types(function, context))
    return _machine_code(function, context) if ready else cast("Callable[..., Any]", function)


def _types(function: Any, context: int) -> tuple[Any, ...]:
    return STATE_TYPE, CONTEXT_TYPES[context], *_ARGUMENTS[function]


def _machine_code(function: Any, context: int | None = None) -> Callable[..., Any]:
    arguments = () if context is None else _types(function, context)
    return _CODE.setdefault((function, context), function.machine_code(arguments))


def compile_all() -> None:
    """Compile all functions now, and not when a policy first calls them."""
    for function in (_next_time, _work_left, _pace):
        _machine_code(function)
    for function in _ARGUMENTS:
        for context in range(len(CONTEXT_TYPES)):
            _machine_code(function, context)


class EntryPoints:
    """The functions of the engine for one run; whatever they need again and again is looked up once.

    Parameters
    ----------
    state
        State of the run.
    context
        Constants of the run.

    Attributes
    ----------
    state
        State of the run; another object after its log has grown.
    context
        Constants of the run.
    lists
        Jobs that wait and jobs that run.
    """

    def __init__(self, state: State, context: RunContext) -> None:
        self.state, self.context = state, context
        self._context_kind = context_kind(context)
        self._reserve, self._copying = log_reserve(int(state.engine[0].gpus)), bool(state.engine[0].copies)
        self._came, self._ended, self._logged = (state.engine[name] for name in ("next", "segments", "logged"))
        self._finished = state.engine["finished"]
        self._pools, self._size = list(state.pools), state.pools[SIZE]
        self._pool, self._count = state.out[POOL], state.out[COUNT]
        self._gpus: list[int] = state.jobs["gpus"].tolist()
        speeds = context.tables.jobs
        self._timed: list[bool] = ((speeds["profile"] < 0) & (speeds["row"] == NO_ROW)).tolist()
        self._kind: list[int] = state.jobs["kind"].tolist()
        self._eligible = list(context.eligible)
        self.lists = JobLists(state.jobs["nth"], state.jobs["status"])

    def next_time(self) -> float:
        """Return the time of the next event (`optsched.simulation.kernel.next_time`)."""
        return float(_entry(_next_time)(self.state))

    def work_left(self, jobs: Ints) -> Floats:
        """Return the units of work that jobs have left, f64[m] (`optsched.simulation.kernel.work_left`).

        Parameters
        ----------
        jobs
            Indices of jobs, i64[m].
        """
        left = np.empty(jobs.size)
        _entry(_work_left)(self.state, np.ascontiguousarray(jobs, dtype=np.int64), left)
        return left

    def make_room(self) -> None:
        """Enlarge the log if it has no room for everything that one event time may add."""
        s = self.state
        if s.segments.size - self._ended[0] < self._reserve or s.parts.size - self._logged[0] < self._reserve:
            self.state = grown(s)

    def apply_events(self, t: float) -> tuple[list[int], list[int]]:
        """Apply the events of an instant (`optsched.simulation.kernel.apply_events`).

        Parameters
        ----------
        t
            Time of the next event, in seconds.

        Returns
        -------
        tuple
            Jobs that arrived and jobs that finished, in order.
        """
        s, first, last = self.state, int(self._came[0]), int(self._ended[0])
        _entry(apply_events, self._context_kind)(s, self.context, t)
        ended = s.segments["job"][last : self._ended[0]]
        done = ended.tolist()  # only completions end a segment at an event
        if self._copying and done:  # also of some of its copies
            status = s.jobs["status"][ended]
            done = list(dict.fromkeys(ended[status == DONE].tolist()))
            if self.lists.known:
                for j in dict.fromkeys(ended[status == WAITING].tolist()):
                    self.lists.stopped(j)
        return s.jobs["nth"][first : self._came[0]].tolist(), done

    def paid(self) -> Floats:
        """Return the times at which running jobs' overheads are over, or at which they were last settled, f64[]."""
        running = self.state.jobs["execution"][self.state.jobs["status"] == RUNNING]
        paid: Floats = self.state.executions["paid"][running]
        return paid

    def start(self, job: int, entries: int, option: int = 0) -> None:
        """Start a waiting job on the GPUs in ``out`` (`optsched.simulation.kernel.start`).

        Parameters
        ----------
        job
            Index of the job.
        entries
            Number of entries in ``out``.
        option
            Index of the sub-batch if jobs share GPUs.
        """
        _entry(start, self._context_kind)(self.state, self.context, job, entries, option)
        self.lists.started(job)

    def start_part(self, job: int, entries: int, work: float, given: float) -> None:
        """Start a copy of a job on the GPUs in ``out`` (`optsched.simulation.kernel.start_part`).

        Parameters
        ----------
        job
            Index of the job.
        entries
            Number of entries in ``out``.
        work
            Most units of work that the copy does.
        given
            Seconds that a unit of work takes; 0: as the speed tables say.
        """
        waits = self.state.jobs["status"][job] == WAITING
        _entry(start_part, self._context_kind)(self.state, self.context, job, entries, work, given)
        if waits:
            self.lists.started(job)

    def on_network(self, job: int, pace: float, share: float) -> None:
        """Set the use of the network for the next start of a job, if jobs contend for it.

        Parameters
        ----------
        job
            Index of the job.
        pace
            Seconds that a unit of its work takes alone.
        share
            Share of that time that the job spends on the network.
        """
        colocation = self.context.colocation
        if colocation is not None and colocation.interfaces.senders.size:
            latency = float(colocation.communication.numbers[0])
            colocation.communication.computing[job] = pace * (1.0 - share) - latency if share > 0.0 else math.inf

    def planned(self, job: int) -> float:
        """Return the units of work that the present copies of a job have been given in all.

        Parameters
        ----------
        job
            Index of the job.
        """
        executions, x, work = self.state.executions, int(self.state.jobs["execution"][job]), 0.0
        while x >= 0:
            work += float(executions["target"][x])
            x = int(executions["other"][x])
        return work

    def stop(self, job: int) -> None:
        """Stop a running job (`optsched.simulation.kernel.stop`).

        Parameters
        ----------
        job
            Index of the job.
        """
        _entry(stop, self._context_kind)(self.state, self.context, job)
        if self.state.jobs["status"][job] == WAITING:
            self.lists.stopped(job)
        else:  # a copy had nothing left to do
            self.lists.refresh((), [job])

    def apply_moves(self, jobs: Ints, first: Ints, node: Ints, count: Ints, work: Floats, copies: int) -> int:
        """Apply stops and starts in order, and return the number that were possible (the function `apply_moves`).

        Parameters
        ----------
        jobs
            Job of every move, i64[m].
        first
            Where the entries of every move begin, i64[m + 1].
        node
            Node of every entry, i64[].
        count
            GPUs of every entry, i64[].
        work
            Units of work that the copy of every move does, f64[m]; nan for others.
        copies
            Most copies of a job at once.
        """
        apply = _entry(apply_moves, self._context_kind)
        finished = int(self._finished[0])
        moved = int(apply(self.state, self.context, jobs, first, node, count, work, copies))
        worked(apply_moves, moved)
        if self._copying:  # a job may have a copy already, or nothing left to do
            self.lists.known = False
            if self._finished[0] != finished:
                self.lists.drop_done()
            return moved
        if self.lists.known:
            stops = first[:moved] == first[1 : moved + 1]
            self.lists.moved(jobs[:moved][stops], jobs[:moved][~stops])
        return moved

    def stop_as_planned(self, until: Floats, jobs: Ints, at: int) -> int:
        """Stop jobs at their planned times (the function `stop_as_planned`); return the first position that is left.

        Parameters
        ----------
        until
            Planned times in seconds, ascending, f64[m].
        jobs
            Indices of the jobs, i64[m].
        at
            First position that is not yet carried out.
        """
        stop = _entry(stop_as_planned, self._context_kind)
        stopped = int(stop(self.state, self.context, until, jobs, at))
        self.lists.moved(jobs[at:stopped], _NONE)
        return stopped

    def place(self, rule: Any, job: int, row: int = FREE) -> int:
        """Ask a placement for GPUs for a job; they are written to ``out``.

        Parameters
        ----------
        rule
            The compiled placement.
        job
            Index of the job.
        row
            Row of ``pools`` with the GPUs that it may choose from.

        Returns
        -------
        int
            Number of entries in ``out``; 0 if the job does not fit.
        """
        eligible, free, tables = self._eligible[self._kind[job]], self._pools[row], self.context.tables
        gang, random = self._gpus[job], self.context.random
        return int(_entry(rule)(job, gang, free, self._size, eligible, random, tables, self._pool, self._count))

    def pace(self, job: int) -> float:
        """Return the seconds that a unit of work takes on the GPUs in ``out``.

        Parameters
        ----------
        job
            Index of the job.
        """
        if self._timed[job]:
            return 1.0
        return float(_entry(_pace)(self.context.tables, job, self._gpus[job], self._pool, self._count))


# --- who waits and who runs -------------------------------------------------------------------------------------------
# In order of (arrival, index), kept up to date instead of looked for among all jobs.

MANY = 256  # jobs that are looked at in the time in which one changes its list


class JobLists:
    """The jobs of a run that wait and those that run; nothing is kept before a policy asks.

    Parameters
    ----------
    order
        All jobs in order of (arrival, index), i[n].
    status
        Status of every job, as the engine keeps it, i[n].

    Attributes
    ----------
    known
        Whether the lists are up to date; if not, moves need not be reported, and all jobs are looked at when a policy
        asks.
    """

    def __init__(self, order: Ints, status: Ints) -> None:
        self._order, self._status = order, status
        self.known = False  # True if the lists below are up to date; if not, moves need not be reported
        self._jobs: list[int] = []  # by rank
        self._rank: list[int] = []
        self._waiting: list[int] = []  # ranks, ascending
        self._running: list[int] = []
        self._active: Ints | None = None  # once a policy has asked for them; stops and starts do not change them

    @property
    def waiting(self) -> list[int]:
        """Arrived jobs that neither run nor are finished, in order of (arrival, index)."""
        self._begin()
        return [self._jobs[rank] for rank in self._waiting]

    @property
    def running(self) -> list[int]:
        """Running jobs, in order of (arrival, index)."""
        self._begin()
        return [self._jobs[rank] for rank in self._running]

    @property
    def active(self) -> Ints:
        """Jobs that wait or run, i64[]."""
        if self._active is None:
            status = self._status[self._order]
            self._active = self._order[(status == WAITING) | (status == RUNNING)].astype(np.int64)
        return self._active.copy()

    def _begin(self) -> None:
        if not self.known and self._order.size:
            self._jobs = self._jobs or self._order.tolist()
            self._rank = self._rank or np.argsort(self._order).tolist()
            status = self._status[self._order]
            self._waiting = np.flatnonzero(status == WAITING).tolist()
            self._running = np.flatnonzero(status == RUNNING).tolist()
            self.known = True

    def drop_done(self) -> None:
        """Remove jobs that are done from the active ones: stopped copies may have done all their work."""
        if self._active is not None:
            self._active = self._active[self._status[self._active] != DONE]

    def refresh(self, arrived: Sequence[int], finished: Iterable[int]) -> None:
        """Add jobs that have arrived, and remove jobs that have finished.

        Parameters
        ----------
        arrived
            Jobs that have arrived since the last call, in order.
        finished
            Jobs that have finished since the last call.
        """
        if self._active is not None:
            for job in finished:
                self._active = self._active[self._active != job]
            if arrived:
                self._active = np.concatenate((self._active, np.array(arrived, dtype=np.int64)))
        if self.known:
            self._waiting.extend(self._rank[job] for job in arrived)
            for job in finished:
                _leave(self._running, self._rank[job])

    def moved(self, stopped: Ints, started: Ints) -> None:
        """Record many stops and starts; if there are too many, all jobs are looked at when a policy asks next.

        Parameters
        ----------
        stopped
            Jobs that wait again, i64[]; a job that is also in ``started`` stops first.
        started
            Jobs that run now, i64[].
        """
        self.known = self.known and (len(stopped) + len(started)) * MANY < self._order.size
        if self.known:
            for job in stopped.tolist():
                self.stopped(job)
            for job in started.tolist():
                self.started(job)

    def started(self, job: int) -> None:
        """Record that a job runs now.

        Parameters
        ----------
        job
            Index of the job.
        """
        if self.known:
            _leave(self._waiting, self._rank[job])
            insort(self._running, self._rank[job])

    def stopped(self, job: int) -> None:
        """Record that a job waits again.

        Parameters
        ----------
        job
            Index of the job.
        """
        if self.known:
            _leave(self._running, self._rank[job])
            insort(self._waiting, self._rank[job])


def _leave(ranks: list[int], rank: int) -> None:
    del ranks[bisect_left(ranks, rank)]
