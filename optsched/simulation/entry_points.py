"""The compiled functions of the engine as plain Python callables, for policies in plain Python.

A call of a numba dispatcher works out the types of all its arguments, which for a state of some eighty arrays takes
longer than anything the call does. The types are known here, so the machine code is called directly: ten to thirty times
faster. Arguments must have exactly the types of a `State`; nothing checks them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from optsched.compiled import runs_compiled, types
from optsched.simulation import kernel, moves
from optsched.simulation.ordered import STATE_TYPE
from optsched.simulation.placing import SIGNATURE, TABLES
from optsched.simulation.state import Ints, State
from optsched.speeds import speed_tables

STATE, INDEX, TIME, ARRAY = STATE_TYPE, types.int64, types.float64, types.int64[::1]
_TYPES: dict[Any, tuple[Any, ...]] = {
    kernel.next_time: (STATE,),
    kernel.apply_events: (STATE, TIME),
    kernel.start: (STATE, INDEX, INDEX),
    kernel.stop: (STATE, INDEX),
    moves.apply_moves: (STATE, ARRAY, ARRAY, ARRAY, ARRAY),
    speed_tables.pace: (TABLES, INDEX, INDEX, ARRAY, ARRAY),
}


def _entry(function: Any) -> Callable[..., Any]:
    found: Callable[..., Any] = _machine_code(function) if runs_compiled(function) else function
    return found


@cache
def _machine_code(function: Any) -> Callable[..., Any]:
    # By the function alone: the hash of a type of eighty arrays would cost what is to be saved.
    arguments = _TYPES.get(function, SIGNATURE.args)  # else a placement rule
    if arguments not in function.overloads:
        function.compile(arguments)
    found: Callable[..., Any] = function.get_overload(arguments)
    return found


def compile_all() -> None:
    """Compile them now rather than when a policy first asks."""
    for function in _TYPES:
        _entry(function)


def next_time(state: State) -> float:
    """See `optsched.simulation.kernel.next_time`."""
    return float(_entry(kernel.next_time)(state))


def apply_events(state: State, t: float) -> None:
    """See `optsched.simulation.kernel.apply_events`."""
    _entry(kernel.apply_events)(state, t)


def start(state: State, job: int, entries: int) -> None:
    """See `optsched.simulation.kernel.start`."""
    _entry(kernel.start)(state, job, entries)


def stop(state: State, job: int) -> None:
    """See `optsched.simulation.kernel.stop`."""
    _entry(kernel.stop)(state, job)


def apply_moves(state: State, jobs: Ints, first: Ints, node: Ints, count: Ints) -> int:
    """See `optsched.simulation.moves.apply_moves`."""
    return int(_entry(moves.apply_moves)(state, jobs, first, node, count))


def place(rule: Any, state: State, job: int, free: Ints) -> int:
    """Ask a placement rule for ``job`` on ``free``; the number of entries in ``out_pool``, 0 when it does not fit."""
    s = state
    eligible = s.eligible[s.kind[job]]
    return int(_entry(rule)(job, s.gpus[job], free, s.size, eligible, s.random, s.tables, s.out_pool, s.out_count))


def pace(state: State, job: int) -> float:
    """Seconds that a unit of work of ``job`` takes on the entries in ``out_pool``."""
    s = state
    if s.tables.profile[job] < 0 and s.tables.row[job] == -1:
        return 1.0
    return float(_entry(speed_tables.pace)(s.tables, job, s.gpus[job], s.out_pool, s.out_count))
