"""How fast an execution is beside others, compiled: one whose rate changes as another comes or goes is settled.

Settled: its work is brought up to date at the old speed, and its completion set anew. The others stay as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import INNER, NESTED, njit
from optsched.simulation.interfaces import slowed_by_network
from optsched.simulation.queues import set_change
from optsched.simulation.state import State


@njit(**INNER)
def set_finish(s: State, x: int) -> None:
    """When execution ``x`` will have done what is left, at its present speed."""
    run = s.executions[x]
    least = np.nextafter(s.engine[0].now, np.inf)  # work that is shorter than the rounding of time still takes time
    run.finish = max(run.paid + run.left * (run.pace * run.slow), least)


@njit(**INNER)
def slowdown(s: State, colocation: Any, x: int) -> float:
    """How many times as long a unit of work takes execution ``x`` beside all others as alone."""
    slow = 1.0
    if colocation is not None and colocation.neighbours.gpus.size > 0:
        slow = _slowest(s, colocation.neighbours, x)
    if colocation is not None and colocation.interfaces.senders.size > 0:
        slow *= slowed_by_network(colocation.interfaces, x)
    return slow


@njit(**NESTED)
def _slowest(s: State, neighbours: Any, x: int) -> float:
    # The slowest neighbour rules.
    j, at, worst = s.executions[x].job, x * s.engine[0].width, 1.0
    for i in range(s.executions[x].entries):
        gpu = neighbours.gpus[s.parts[at + i].pool]
        other = gpu.other if gpu.one == j else gpu.one
        if other >= 0:
            worst = max(worst, _xi(neighbours, j, other))
    return worst


@njit(**INNER)
def _xi(neighbours: Any, j: int, other: int) -> float:
    return float(neighbours.slowdown[neighbours.sharers[j].model, neighbours.sharers[other].model])


@njit(**INNER)
def settle_others(s: State, colocation: Any, x: int) -> None:
    """Whoever feels that execution ``x`` has come, or gone."""
    if colocation is not None and colocation.neighbours.gpus.size > 0:
        _settle_neighbours(s, colocation, x)
    if colocation is not None and colocation.interfaces.senders.size > 0:
        _settle_on_interfaces(s, colocation, x)


@njit(**NESTED)
def _settle_neighbours(s: State, colocation: Any, x: int) -> None:
    j, at, settled = s.executions[x].job, x * s.engine[0].width, -1
    for i in range(s.executions[x].entries):
        gpu = colocation.neighbours.gpus[s.parts[at + i].pool]
        other = gpu.one if gpu.one != j and gpu.one >= 0 else gpu.other  # j may have left it already
        if other >= 0 and other != j and other != settled:  # mostly the same as on the GPU before
            settled = other
            _settle_neighbour(s, colocation, other, j, gpu.one == j or gpu.other == j)


@njit(**INNER)
def _settle_neighbour(s: State, colocation: Any, other: int, j: int, came: bool) -> None:
    # One more neighbour: no need to ask who all of them are.
    y = s.jobs[other].execution
    if came and colocation.interfaces.senders.size == 0:
        _settle(s, y, max(s.executions[y].slow, _xi(colocation.neighbours, other, j)))
    else:
        _settle(s, y, slowdown(s, colocation, y))


@njit(**NESTED)
def _settle_on_interfaces(s: State, colocation: Any, x: int) -> None:
    interfaces = colocation.interfaces
    if interfaces.senders[x].share == 0.0:
        return
    for k in range(interfaces.senders[x].nodes):
        here = interfaces.interfaces[interfaces.nodes[x, k]]
        for i in range(here.first, here.first + here.senders):
            if interfaces.seats[i].execution != x:
                y = interfaces.seats[i].execution
                _settle(s, y, slowdown(s, colocation, y))


@njit(**NESTED)
def _settle(s: State, y: int, slow: float) -> None:
    # Work up to date at the old speed, completion at the new one.
    w, run = s.engine[0], s.executions[y]
    if run.finish <= w.last:
        return  # it ends at this instant
    if slow != run.slow:
        if w.now > run.paid:
            run.left = max(0.0, run.left - (w.now - run.paid) / (run.pace * run.slow))
            run.paid = w.now
        run.slow = slow
        set_finish(s, y)
        set_change(s, run.job)
