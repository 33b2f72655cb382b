"""The compiled functions of the engine as plain Python callables, for policies in plain Python.

A call of a numba dispatcher works out the types of all its arguments, which takes longer than what the call does. The types
are known here, so the machine code is called directly. Arguments must have exactly these types; nothing checks them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from optsched.compiled import njit, runs_compiled, types
from optsched.heap import KERNEL
from optsched.simulation import executions, kernel, moves, queues
from optsched.simulation.ordered import SHARED_SITE_TYPE, SITE_TYPE, STATE_TYPE
from optsched.simulation.placing import SIGNATURE, TABLES
from optsched.simulation.state import COUNT, FREE, POOL, SIZE, Ints, Site, State
from optsched.speeds import speed_tables

INDEX, TIME, ARRAY = types.int64, types.float64, types.int64[::1]


@njit(types.float64(STATE_TYPE), **KERNEL)
def _next_time(s: Any) -> float:
    return kernel.next_time(s)


@njit(types.void(STATE_TYPE), **KERNEL)
def _forget_started(s: Any) -> None:
    queues.forget_started(s)


@njit(types.float64(TABLES, INDEX, INDEX, ARRAY, ARRAY), **KERNEL)
def _pace(tables: Any, job: int, gpus: int, pool: Any, count: Any) -> float:
    return speed_tables.pace(tables, job, gpus, pool, count)


def _apply_events(s: Any, site: Any, t: float) -> None:
    kernel.apply_events(s, site, t)


def _start(s: Any, site: Any, job: int, entries: int, option: int) -> None:
    executions.start(s, site, job, entries, option)


def _stop(s: Any, site: Any, job: int) -> None:
    executions.stop(s, site, job)


def _apply_moves(s: Any, site: Any, jobs: Any, first: Any, node: Any, count: Any) -> int:
    return moves.apply_moves(s, site, jobs, first, node, count)


def _of_both(result: Any, *arguments: Any) -> Callable[[Any], tuple[Any, Any]]:
    # Compiled for jobs that have their GPUs alone, and for jobs that share them.
    def decorate(function: Any) -> tuple[Any, Any]:
        alone, shared = (
            njit(result(STATE_TYPE, site, *arguments), **KERNEL)(function) for site in (SITE_TYPE, SHARED_SITE_TYPE)
        )
        return alone, shared

    return decorate


_EVENTS = _of_both(types.void, TIME)(_apply_events)
_START = _of_both(types.void, INDEX, INDEX, INDEX)(_start)
_STOP = _of_both(types.void, INDEX)(_stop)
_MOVES = _of_both(types.int64, ARRAY, ARRAY, ARRAY, ARRAY)(_apply_moves)


def _entry(function: Any) -> Callable[..., Any]:
    found: Callable[..., Any] = _machine_code(function) if runs_compiled(function) else function
    return found


@cache
def _machine_code(function: Any) -> Callable[..., Any]:
    function.prepare()
    found: Callable[..., Any] = function.get_overload(function.signatures[0])
    return found


def compile_all() -> None:
    """Compile them now rather than when a policy first asks."""
    for function in (_next_time, _forget_started, _pace, *_EVENTS, *_START, *_STOP, *_MOVES):
        _entry(function)


def _of(both: tuple[Any, Any], site: Site) -> Callable[..., Any]:
    return _entry(both[site.neighbours is not None])


def next_time(state: State) -> float:
    """See `optsched.simulation.kernel.next_time`."""
    return float(_entry(_next_time)(state))


def forget_started(state: State) -> None:
    """See `optsched.simulation.queues.forget_started`."""
    _entry(_forget_started)(state)


def apply_events(state: State, site: Site, t: float) -> None:
    """See `optsched.simulation.kernel.apply_events`."""
    _of(_EVENTS, site)(state, site, t)


def start(state: State, site: Site, job: int, entries: int, option: int = 0) -> None:
    """See `optsched.simulation.executions.start`."""
    _of(_START, site)(state, site, job, entries, option)


def stop(state: State, site: Site, job: int) -> None:
    """See `optsched.simulation.executions.stop`."""
    _of(_STOP, site)(state, site, job)


def apply_moves(state: State, site: Site, jobs: Ints, first: Ints, node: Ints, count: Ints) -> int:
    """See `optsched.simulation.moves.apply_moves`."""
    return int(_of(_MOVES, site)(state, site, jobs, first, node, count))


def place(rule: Any, state: State, site: Site, job: int, row: int = FREE) -> int:
    """Ask a placement for ``job`` on the GPUs ``pools[row]``; the number of entries in ``out``, 0: it does not fit."""
    known = state.jobs[job]
    eligible, free, size = site.eligible[known.kind], state.pools[row], state.pools[SIZE]
    pool, count = state.out[POOL], state.out[COUNT]
    return int(_entry_of_rule(rule)(job, known.gpus, free, size, eligible, site.random, site.tables, pool, count))


def _entry_of_rule(rule: Any) -> Callable[..., Any]:
    found: Callable[..., Any] = _code_of_rule(rule) if runs_compiled(rule) else rule
    return found


@cache
def _code_of_rule(rule: Any) -> Callable[..., Any]:
    if SIGNATURE.args not in rule.overloads:
        rule.compile(SIGNATURE.args)
    found: Callable[..., Any] = rule.get_overload(SIGNATURE.args)
    return found


def pace(state: State, site: Site, job: int) -> float:
    """Seconds that a unit of work of ``job`` takes on the entries in ``out``."""
    tables = site.tables
    if tables.profile[job] < 0 and tables.row[job] == -1:
        return 1.0
    return float(_entry(_pace)(tables, job, state.jobs[job].gpus, state.out[POOL], state.out[COUNT]))
