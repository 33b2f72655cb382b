"""Who is on which network interface, where whole jobs contend (`optsched.speeds.interface_sharing`), compiled.

An execution over several nodes with communication is on the interfaces of its nodes. When it comes or goes, how many others
each one meets on these interfaces is worked out anew, and only there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from optsched.compiled import njit
from optsched.heap import KERNEL
from optsched.problem.instance import Instance
from optsched.speeds.interface_sharing import (
    CommunicationTables,
    communicating,
    communication_share,
    communication_tables,
    fill_met,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
STEP = 1  # of CommunicationTables.numbers


class Interfaces(NamedTuple):
    """N nodes, R executions at once at most, M of them on an interface at most."""

    tables: CommunicationTables
    share: Floats  # f64[R] of every execution, 0: on no interface
    first: Ints  # i64[N + 1] where in ``there`` those of a node begin
    number: Ints  # i64[N] how many there are
    there: Ints  # executions by job: what a node does depends on who is there, not on who came first
    met: Floats  # how many others each of them meets there
    room: Floats  # f64[M] their shares, while they are weighed


def new_interfaces(instance: Instance, executions: int, jobs_a_gpu: int) -> Interfaces | None:
    """Nobody is there; None where nobody contends. At most ``executions`` at once, so many ``jobs_a_gpu``."""
    if not communicating(instance).any():
        return None
    first = np.concatenate([[0], np.cumsum(jobs_a_gpu * instance.cluster.node_gpus)]).astype(np.int64)
    return Interfaces(
        tables=communication_tables(instance),
        share=np.zeros(executions),
        first=first,
        number=np.zeros(first.size - 1, dtype=np.int64),
        there=np.zeros(first[-1], dtype=np.int64),
        met=np.zeros(first[-1]),
        room=np.zeros(np.diff(first).max()),
    )


@njit(**KERNEL)
def node_of(s: Any, neighbours: Any, part: int) -> int:
    """The node of a part of an execution: parts are GPUs where jobs share them, else GPUs of a node."""
    pool = s.parts[part].pool
    if neighbours is None:
        return int(pool)
    return int(neighbours.gpus[pool].node)


@njit(**KERNEL)
def enter(s: Any, neighbours: Any, interfaces: Any, x: int, pool: Any, count: Any) -> None:
    """Execution ``x`` has begun on these entries, at its own pace."""
    run = s.executions[x]
    left, entries, apart = s.jobs[run.job].gpus, 0, False
    while left > 0:
        left -= count[entries]
        apart = apart or pool[entries] != pool[0]
        entries += 1
    interfaces.share[x] = 0.0
    if not apart or interfaces.tables.computing[run.job, run.option] == np.inf:
        return
    interfaces.share[x] = communication_share(interfaces.tables, run.job, run.option, run.pace, pool, count)
    if interfaces.share[x] > 0.0:
        at = x * s.world[0].width
        for k in range(run.entries):
            _add(s, interfaces, node_of(s, neighbours, at + k), x)


@njit(**KERNEL)
def leave(s: Any, neighbours: Any, interfaces: Any, x: int) -> None:
    """Execution ``x`` has ended."""
    if interfaces.share[x] > 0.0:
        at = x * s.world[0].width
        for k in range(s.executions[x].entries):
            _remove(interfaces, node_of(s, neighbours, at + k), x)


@njit(**KERNEL)
def _add(s: Any, interfaces: Any, m: int, x: int) -> None:
    first, number = interfaces.first[m], interfaces.number[m]
    for i in range(first, first + number):
        if interfaces.there[i] == x:
            return  # a node may be in several parts
    i = first + number
    while i > first and s.executions[interfaces.there[i - 1]].job > s.executions[x].job:
        interfaces.there[i] = interfaces.there[i - 1]
        i -= 1
    interfaces.there[i] = x
    interfaces.number[m] = number + 1
    _weigh(interfaces, m)


@njit(**KERNEL)
def _remove(interfaces: Any, m: int, x: int) -> None:
    first, number, kept = interfaces.first[m], interfaces.number[m], interfaces.first[m]
    for i in range(first, first + number):
        interfaces.there[kept] = interfaces.there[i]
        kept += interfaces.there[i] != x
    if kept < first + number:
        interfaces.number[m] = kept - first
        _weigh(interfaces, m)


@njit(**KERNEL)
def _weigh(interfaces: Any, m: int) -> None:
    first, number = interfaces.first[m], interfaces.number[m]
    for i in range(number):
        interfaces.room[i] = interfaces.share[interfaces.there[first + i]]
    fill_met(interfaces.room[:number], interfaces.tables.numbers[STEP], interfaces.met[first : first + number])


@njit(**KERNEL)
def slowed_by_network(s: Any, neighbours: Any, interfaces: Any, x: int) -> float:
    """How many times as long a unit of work takes ``x`` as without the others on its interfaces."""
    if interfaces.share[x] == 0.0:
        return 1.0
    at, most = x * s.world[0].width, 0.0
    for k in range(s.executions[x].entries):
        m = node_of(s, neighbours, at + k)
        for i in range(interfaces.first[m], interfaces.first[m] + interfaces.number[m]):
            if interfaces.there[i] == x:
                most = max(most, interfaces.met[i])
    return float(1.0 + interfaces.share[x] * interfaces.tables.numbers[STEP] * most)
