"""Who is on which network interface, where whole jobs contend (`optsched.speeds.interface_sharing`), compiled.

An execution over several nodes with communication is on the interfaces of its nodes. When it comes or goes, how many others
each one meets on these interfaces is worked out anew, and only there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import NESTED, njit, record
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.speeds.interface_sharing import CommunicationTables, communication_share, fill_met

SENDER = record(
    share="real",  # of its time alone that it is on its interfaces; 0: on none
    job="int",
    nodes="int",  # different ones
)
INTERFACE = record(first="int", senders="int")  # the jobs on it are in `Interfaces.seats` from ``first`` on
SEAT = record(execution="int", met="real")  # how many others it meets there


class Interfaces(NamedTuple):
    """N nodes, R executions at once at most, W nodes that a gang may have, M executions on an interface at most."""

    senders: Any  # SENDER[R]
    nodes: Ints  # i64[R, W]
    interfaces: Any  # INTERFACE[N]
    seats: Any  # SEAT[], by job: what a node does depends on who is there, not on who came first
    scratch: Floats  # f64[2, M]: shares and what comes of them, while they are weighed
    step: Floats  # f64[1]: s of the formula


def new_interfaces(
    instance: Instance, tables: CommunicationTables, executions: int, parts: int, jobs_a_gpu: int
) -> Interfaces:
    """Nobody is there yet. At most ``executions`` at once, of so many ``parts`` of gangs, so many ``jobs_a_gpu``."""
    places = jobs_a_gpu * instance.cluster.node_gpus
    interfaces = np.zeros(places.size, dtype=INTERFACE)
    interfaces["first"][1:] = np.cumsum(places)[:-1]
    return Interfaces(
        senders=np.zeros(executions, dtype=SENDER),
        nodes=np.zeros((executions, min(parts, places.size)), dtype=np.int64),
        interfaces=interfaces,
        seats=np.zeros(int(places.sum()), dtype=SEAT),
        scratch=np.zeros((2, int(places.max()))),
        step=tables.numbers[1:],
    )


NO_INTERFACES = Interfaces(
    senders=np.zeros(0, dtype=SENDER),
    nodes=np.zeros((0, 0), dtype=np.int64),
    interfaces=np.zeros(0, dtype=INTERFACE),
    seats=np.zeros(0, dtype=SEAT),
    scratch=np.zeros((2, 0)),
    step=np.zeros(1),
)


@njit(**NESTED)
def enter(
    n: Any, tables: Any, x: int, job: int, gpus: int, option: int, own_pace: float, pool: Any, count: Any
) -> None:
    """Execution ``x`` of ``job`` has begun on these entries of nodes, at its own pace."""
    sender, left, k = n.senders[x], gpus, 0
    sender.job, sender.nodes, sender.share = job, 0, 0.0
    if tables.computing[job, option] == np.inf:
        return
    while left > 0:
        left -= count[k]
        seen = False
        for i in range(sender.nodes):
            seen = seen or n.nodes[x, i] == pool[k]
        if not seen:
            n.nodes[x, sender.nodes] = pool[k]
            sender.nodes += 1
        k += 1
    if sender.nodes == 1:
        return
    sender.share = communication_share(tables, job, option, own_pace, pool, count)
    if sender.share > 0.0:
        for i in range(sender.nodes):
            _add(n, n.nodes[x, i], x)


@njit(**NESTED)
def leave(n: Any, x: int) -> None:
    """Execution ``x`` has ended."""
    if n.senders[x].share > 0.0:
        for i in range(n.senders[x].nodes):
            _remove(n, n.nodes[x, i], x)


@njit(**NESTED)
def _add(n: Any, m: int, x: int) -> None:
    interface = n.interfaces[m]
    i = interface.first + interface.senders
    while i > interface.first and n.senders[n.seats[i - 1].execution].job > n.senders[x].job:
        n.seats[i].execution = n.seats[i - 1].execution
        i -= 1
    n.seats[i].execution = x
    interface.senders += 1
    _weigh(n, m)


@njit(**NESTED)
def _remove(n: Any, m: int, x: int) -> None:
    interface = n.interfaces[m]
    kept = interface.first
    for i in range(interface.first, interface.first + interface.senders):
        if n.seats[i].execution != x:
            n.seats[kept].execution = n.seats[i].execution
            kept += 1
    interface.senders = kept - interface.first
    _weigh(n, m)


@njit(**NESTED)
def _weigh(n: Any, m: int) -> None:
    first, senders = n.interfaces[m].first, n.interfaces[m].senders
    for i in range(senders):
        n.scratch[0, i] = n.senders[n.seats[first + i].execution].share
    fill_met(n.scratch[0, :senders], n.step[0], n.scratch[1, :senders])
    for i in range(senders):
        n.seats[first + i].met = n.scratch[1, i]


@njit(**NESTED)
def slowed_by_network(n: Any, x: int) -> float:
    """How many times as long a unit of work takes ``x`` as without the others on its interfaces."""
    if n.senders[x].share == 0.0:
        return 1.0
    most = 0.0
    for k in range(n.senders[x].nodes):
        interface = n.interfaces[n.nodes[x, k]]
        for i in range(interface.first, interface.first + interface.senders):
            if n.seats[i].execution == x:
                most = max(most, n.seats[i].met)
    return float(1.0 + n.senders[x].share * n.step[0] * most)
