"""The compiled functions of the engine as plain Python callables, for policies in plain Python.

A call of a numba dispatcher works out the types of all its arguments, which takes longer than what the call does. The types
are known here, so the machine code is called directly. Arguments must have exactly these types; nothing checks them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from optsched.compiled import njit, runs_compiled, types
from optsched.compiled.heap import KERNEL
from optsched.problem.arrays import Floats, Ints
from optsched.simulation import executions, kernel, moves
from optsched.simulation.job_lists import JobLists
from optsched.simulation.ordered import SITE_TYPES, STATE_TYPE, site_kind
from optsched.simulation.placing import TABLES
from optsched.simulation.records import WAITING
from optsched.simulation.state import COUNT, FREE, POOL, SIZE, Site, State, grown
from optsched.speeds import speed_tables
from optsched.speeds.speed_records import NO_ROW

OPTIONS = {**KERNEL, "no_cfunc_wrapper": True}  # called from Python only
INDEX, TIME, ARRAY, TIMES = types.int64, types.float64, types.int64[::1], types.float64[::1]


@njit(types.float64(STATE_TYPE), **OPTIONS)
def _next_time(s: Any) -> float:
    return kernel.next_time(s)


@njit(types.void(STATE_TYPE, ARRAY, TIMES), **OPTIONS)
def _work_left(s: Any, jobs: Any, left: Any) -> None:
    executions.work_left(s, jobs, left)


@njit(types.float64(TABLES, INDEX, INDEX, ARRAY, ARRAY), **OPTIONS)
def _pace(tables: Any, job: int, gpus: int, pool: Any, count: Any) -> float:
    return speed_tables.pace(tables, job, gpus, pool, count)


# What the engine is asked to do is one function's argument, not a function each: what these have in common, most of all
# the state of a run to be taken in, is compiled once.
EVENTS, START, PART, STOP = range(4)


def _act(s: Any, site: Any, what: int, job: int, entries: int, option: int, work: float, seconds: float) -> None:
    # ``seconds``: the time of the events; what a unit of a part takes.
    if what == EVENTS:
        kernel.apply_events(s, site, seconds)
    elif what == START:
        executions.start(s, site, job, entries, option)
    elif what == PART:
        executions.start_part(s, site, job, entries, work, seconds)
    else:
        executions.stop(s, site, job)


def _move(s: Any, site: Any, jobs: Any, reals: Any, first: Any, node: Any, count: Any, copies: int, begin: int) -> int:
    # ``reals``: when who stops as planned, from ``begin`` on; else (-1) the work of copies.
    if begin >= 0:
        return moves.stop_as_planned(s, site, reals, jobs, begin)
    return moves.apply_moves(s, site, jobs, first, node, count, reals, copies)


def _of_sites(result: Any, *arguments: Any) -> Callable[[Any], list[Any]]:
    # Compiled for jobs that have their GPUs, or the network, alone, and for jobs that share them.
    def decorate(function: Any) -> list[Any]:
        return [njit(result(STATE_TYPE, site, *arguments), **OPTIONS)(function) for site in SITE_TYPES]

    return decorate


_ACT = _of_sites(types.void, INDEX, INDEX, INDEX, INDEX, TIME, TIME)(_act)
_MOVE = _of_sites(types.int64, ARRAY, TIMES, ARRAY, ARRAY, ARRAY, INDEX, INDEX)(_move)
_NONE = np.zeros(0, dtype=np.int64)


_CODE: dict[Any, Callable[..., Any]] = {}  # of functions that are compiled


def _entry(function: Any) -> Callable[..., Any]:
    found = _CODE.get(function)
    if found is not None:
        return found
    return _machine_code(function) if runs_compiled(function) else cast("Callable[..., Any]", function)


def _machine_code(function: Any) -> Callable[..., Any]:
    return _CODE.setdefault(function, function.machine_code())


def compile_all() -> None:
    """Compile them now rather than when a policy first asks."""
    for function in (_next_time, _work_left, _pace, *_ACT, *_MOVE):
        _machine_code(function)


class EntryPoints:
    """The functions of the engine for one run; what they need again and again is looked up once."""

    def __init__(self, state: State, site: Site) -> None:
        self.state, self.site = state, site
        self._site = site_kind(site)
        self._pools, self._size = list(state.pools), state.pools[SIZE]
        self._pool, self._count = state.out[POOL], state.out[COUNT]
        self._gpus: list[int] = state.jobs["gpus"].tolist()
        speeds = site.tables.jobs
        self._timed: list[bool] = ((speeds["profile"] < 0) & (speeds["row"] == NO_ROW)).tolist()
        self._kind: list[int] = state.jobs["kind"].tolist()
        self._eligible = list(site.eligible)
        self.lists = JobLists(state.jobs["nth"], state.jobs["status"])

    def next_time(self) -> float:
        """See `optsched.simulation.kernel.next_time`."""
        return float(_entry(_next_time)(self.state))

    def work_left(self, jobs: Ints) -> Floats:
        """See `optsched.simulation.executions.work_left`."""
        left = np.empty(jobs.size)
        _entry(_work_left)(self.state, np.ascontiguousarray(jobs, dtype=np.int64), left)
        return left

    def apply_events(self, t: float) -> None:
        """See `optsched.simulation.kernel.apply_events`."""
        _entry(_ACT[self._site])(self.state, self.site, EVENTS, 0, 0, 0, 0.0, t)

    def start(self, job: int, entries: int, option: int = 0) -> None:
        """See `optsched.simulation.executions.start`."""
        _entry(_ACT[self._site])(self.state, self.site, START, job, entries, option, 0.0, 0.0)
        self.lists.started(job)

    def start_part(self, job: int, entries: int, work: float, given: float) -> None:
        """See `optsched.simulation.executions.start_part`."""
        waits = self.state.jobs["status"][job] == WAITING
        _entry(_ACT[self._site])(self.state, self.site, PART, job, entries, 0, work, given)
        if waits:
            self.lists.started(job)

    def on_network(self, job: int, pace: float, share: float) -> None:
        """Where jobs contend: the next start of ``job`` runs at this pace alone, this share of its time on the network."""
        company = self.site.company
        if company is not None and company.interfaces.senders.size:
            latency = float(company.communication.numbers[0])
            company.communication.computing[job] = pace * (1.0 - share) - latency if share > 0.0 else math.inf

    def planned(self, job: int) -> float:
        """Units of work that the copies of a running job are to do since they began."""
        executions, x, work = self.state.executions, int(self.state.jobs["execution"][job]), 0.0
        while x >= 0:
            work += float(executions["target"][x])
            x = int(executions["other"][x])
        return work

    def stop(self, job: int) -> None:
        """See `optsched.simulation.executions.stop`."""
        _entry(_ACT[self._site])(self.state, self.site, STOP, job, 0, 0, 0.0, 0.0)
        if self.state.jobs["status"][job] == WAITING:
            self.lists.stopped(job)
        else:  # a copy had nothing left to do
            self.lists.refresh((), [job])

    def apply_moves(self, jobs: Ints, first: Ints, node: Ints, count: Ints, work: Floats, copies: int) -> int:
        """See `optsched.simulation.moves.apply_moves`."""
        moved = int(_entry(_MOVE[self._site])(self.state, self.site, jobs, work, first, node, count, copies, -1))
        if copies > 1:  # who has one already, or has nothing left to do
            self.lists.forget()
            return moved
        if self.lists.known:
            stops = first[:moved] == first[1 : moved + 1]
            self.lists.moved(jobs[:moved][stops], jobs[:moved][~stops])
        return moved

    def stop_as_planned(self, until: Floats, jobs: Ints, at: int) -> int:
        """See `optsched.simulation.moves.stop_as_planned`."""
        move = _entry(_MOVE[self._site])
        stopped = int(move(self.state, self.site, jobs, until, _NONE, _NONE, _NONE, 0, at))
        self.lists.moved(jobs[at:stopped], _NONE)
        return stopped

    def place(self, rule: Any, job: int, row: int = FREE) -> int:
        """Ask a placement for ``job`` on the GPUs ``pools[row]``; the number of entries in ``out``, 0: it does not fit."""
        eligible, free, tables = self._eligible[self._kind[job]], self._pools[row], self.site.tables
        gang, random = self._gpus[job], self.site.random
        return int(_entry(rule)(job, gang, free, self._size, eligible, random, tables, self._pool, self._count))

    def pace(self, job: int) -> float:
        """Seconds that a unit of work of ``job`` takes on the entries in ``out``."""
        if self._timed[job]:
            return 1.0
        return float(_entry(_pace)(self.site.tables, job, self._gpus[job], self._pool, self._count))

    def grow(self) -> None:
        """Twice the room in the log."""
        self.state = grown(self.state)
