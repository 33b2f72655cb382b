"""Compiled effects of jobs on each other: two may share a GPU, and whole jobs contend for network interfaces.

An execution whose rate changes when another one comes or goes is *settled*: its work is brought up to date at the old
speed, and its completion is computed again. The other executions do not change.

An execution over several nodes with communication is on the interfaces of its nodes. When it comes or goes, the number
of others that each execution meets is computed again for these interfaces only (`optsched.speeds.interface_sharing`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import INNER, NESTED, njit, record
from optsched.problem.arrays import Floats, Ints
from optsched.problem.gpu_names import node_first
from optsched.problem.instance import Instance
from optsched.simulation.next_event import set_change, set_finish
from optsched.simulation.records import (
    CANDIDATE,
    COUNT,
    FREE,
    GPU,
    KEPT,
    NODE,
    NUMBER,
    PARTNER,
    POOL,
    SHARER,
    WAIT,
    State,
)
from optsched.speeds.interface_sharing import CommunicationTables, communication_share, communication_tables, fill_met
from optsched.speeds.partner_rates import SharingRates
from optsched.speeds.speed_tables import SpeedTables

SENDER = record(
    share="real",  # of its time alone that it is on its interfaces; 0: on none
    job="int",
    nodes="int",  # different ones
)
INTERFACE = record(first="int", senders="int")  # the jobs on it are in `Interfaces.seats` from ``first`` on
SEAT = record(execution="int", met="real")  # how many others it meets there


class Interfaces(NamedTuple):
    """The executions on every network interface: N nodes, R executions at once at most.

    A gang has at most W nodes, and M executions at most are on an interface.
    """

    senders: Any  # SENDER[R]
    nodes: Ints  # i64[R, W]
    interfaces: Any  # INTERFACE[N]
    seats: Any  # SEAT[], by job: what a node does depends on the jobs there, not on the order of their arrival
    scratch: Floats  # f64[2, M]: shares and what comes of them, while they are weighed
    step: Floats  # f64[1]: s of the formula


class ColocationContext(NamedTuple):
    """The jobs that a job may meet on GPUs and on the network.

    It has no GPU if jobs never share GPUs, and no sender if they never contend for the network.
    """

    neighbours: Neighbours
    interfaces: Interfaces
    communication: CommunicationTables  # what they do on the interfaces


class Neighbours(NamedTuple):
    """The jobs on every GPU if two jobs may be on a GPU: n jobs, O options at most, K kinds, C classes of jobs."""

    gpus: Any  # GPU[G]
    nodes: Any  # NODE[P]
    sharers: Any  # SHARER[n]
    candidates: Any  # CANDIDATE[2 G], scratch of rules, as all down to `ends`
    partners: Any  # PARTNER[G]
    waits: Any  # WAIT[2 C]
    kept: Any  # KEPT[1]
    ends: Floats  # f64[2, G]
    memory: Floats  # f64[n, O] bytes on each GPU
    stretch: Floats  # f64[n, O, 2]: together, spread
    slowdown: Floats  # f64[K, K]


def _neighbours(instance: Instance, rates: SharingRates) -> Neighbours:
    cluster = instance.cluster
    gpus, nodes = np.zeros(cluster.gpus, dtype=GPU), np.zeros(cluster.node_count, dtype=NODE)
    gpus["one"] = gpus["other"] = -1
    gpus["node"] = np.repeat(np.arange(nodes.size), cluster.node_gpus)
    gpus["free_memory"] = gpus["capacity"] = np.repeat(cluster.node_memory, cluster.node_gpus)
    nodes["first"], nodes["changed"] = node_first(instance)[:-1], 1
    sharers = np.zeros(instance.n, dtype=SHARER)
    sharers["model"], sharers["options"], sharers["spans"] = rates.kind, rates.options, rates.spans
    sharers["alone"], sharers["alike"] = rates.alone, rates.alike
    sharers["mark"] = sharers["refused"] = sharers["waits"] = -1
    sharers["rank"][np.argsort(instance.arrival, kind="stable")] = np.arange(instance.n)
    waits, kept = np.zeros(2 * instance.class_gpus.size, dtype=WAIT), np.zeros(1, dtype=KEPT)
    waits["version"] = kept["version"] = kept["listed"] = kept["timed"] = kept["roomy_at"] = -1
    return Neighbours(
        gpus,
        nodes,
        sharers,
        np.zeros(2 * gpus.size, dtype=CANDIDATE),
        np.zeros(gpus.size, dtype=PARTNER),
        waits,
        kept,
        np.zeros((2, gpus.size)),
        np.ascontiguousarray(rates.memory),
        np.ascontiguousarray(rates.stretch),
        np.ascontiguousarray(rates.xi),
    )


def _interfaces(
    instance: Instance, tables: CommunicationTables, executions: int, parts: int, jobs_a_gpu: int
) -> Interfaces:
    # Empty interfaces, for at most this number of executions at once and of parts of a gang.
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


_NO_NEIGHBOURS = Neighbours(
    np.zeros(0, dtype=GPU),
    np.zeros(0, dtype=NODE),
    np.zeros(0, dtype=SHARER),
    np.zeros(0, dtype=CANDIDATE),
    np.zeros(0, dtype=PARTNER),
    np.zeros(0, dtype=WAIT),
    np.zeros(0, dtype=KEPT),
    np.zeros((2, 0)),
    np.zeros((0, 0)),
    np.zeros((0, 0, 0)),
    np.zeros((0, 0)),
)
_NO_INTERFACES = Interfaces(
    np.zeros(0, dtype=SENDER),
    np.zeros((0, 0), dtype=np.int64),
    np.zeros(0, dtype=INTERFACE),
    np.zeros(0, dtype=SEAT),
    np.zeros((2, 0)),
    np.zeros(1),
)


def new_colocation(
    instance: Instance, tables: SpeedTables, rates: SharingRates | None, contended: bool, executions: int, parts: int
) -> ColocationContext:
    """Return the context of a run in which jobs share GPUs, contend for interfaces, or both.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    tables
        Speed tables of the run.
    rates
        Slow-downs of jobs that share a GPU; None if every job holds its GPUs alone.
    contended
        Whether jobs contend for interfaces.
    executions
        Most executions at once.
    parts
        Most parts of a gang.
    """
    neighbours, interfaces = _NO_NEIGHBOURS, _NO_INTERFACES
    communication = CommunicationTables(np.zeros((0, 0)), tables, np.zeros(2))
    if rates is not None:
        neighbours = _neighbours(instance, rates)
    if contended:
        communication = communication_tables(instance)
        interfaces = _interfaces(instance, communication, executions, parts, 1 if rates is None else 2)
    return ColocationContext(neighbours, interfaces, communication)


# --- by name, where two jobs may be on a GPU ---------------------------------------------------------------------------


@njit(**NESTED)
def list_nodes(s: State, neighbours: Any, gang: int) -> int:
    """Write the nodes of the first ``gang`` GPUs of ``out[NUMBER]`` to ``out``, in the order of the replicas.

    Parameters
    ----------
    s
        State of the run.
    neighbours
        The jobs on every GPU.
    gang
        Number of GPUs.

    Returns
    -------
    int
        1 if the GPUs are on several nodes, else 0.
    """
    entries, apart = 0, 0
    for i in range(gang):
        node = neighbours.gpus[s.out[NUMBER, i]].node
        if entries > 0 and s.out[POOL, entries - 1] == node:
            s.out[COUNT, entries - 1] += 1
        else:
            s.out[POOL, entries], s.out[COUNT, entries] = node, 1
            entries += 1
        if node != s.out[POOL, 0]:
            apart = 1
    return apart


@njit(**NESTED)
def take_named(s: State, neighbours: Any, j: int, x: int) -> int:
    """Give the first g_j GPUs of ``out[NUMBER]`` to an execution, and list their nodes (`list_nodes`).

    Parameters
    ----------
    s
        State of the run.
    neighbours
        The jobs on every GPU.
    j
        Index of the job.
    x
        Index of its execution.

    Returns
    -------
    int
        1 if the GPUs are on several nodes, else 0.
    """
    w, at, gang = s.engine[0], x * s.engine[0].width, s.jobs[j].gpus
    s.executions[x].entries = gang
    for i in range(gang):
        g = s.out[NUMBER, i]
        s.parts[at + i].pool, s.parts[at + i].count = g, 1
        gpu = neighbours.gpus[g]
        if gpu.one < 0:
            gpu.one = j
        else:
            gpu.other = j
        if gpu.jobs == 0:
            s.pools[FREE, gpu.node] -= 1
            w.free -= 1
        _count_alone(s, neighbours, gpu, j, np.int64(1))
        gpu.jobs += 1
        gpu.free_memory = _free_memory(s, neighbours, g)
    _count_on_nodes(s, neighbours, x, np.int64(1))
    return list_nodes(s, neighbours, gang)


@njit(**NESTED)
def give_named(s: State, neighbours: Any, j: int, x: int) -> None:
    """Return the GPUs that an execution held.

    Parameters
    ----------
    s
        State of the run.
    neighbours
        The jobs on every GPU.
    j
        Index of the job.
    x
        Index of its execution.
    """
    w, at = s.engine[0], x * s.engine[0].width
    for i in range(s.executions[x].entries):
        g = s.parts[at + i].pool
        gpu = neighbours.gpus[g]
        if gpu.one == j:
            gpu.one = -1
        else:
            gpu.other = -1
        gpu.jobs -= 1
        _count_alone(s, neighbours, gpu, j, np.int64(-1))
        gpu.free_memory = _free_memory(s, neighbours, g)
        if gpu.jobs == 0:
            s.pools[FREE, gpu.node] += 1
            w.free += 1
    _count_on_nodes(s, neighbours, x, np.int64(-1))


@njit(**INNER)
def _count_alone(s: State, neighbours: Any, gpu: Any, j: int, sign: int) -> None:
    # Count GPUs with one job after j has come to a GPU (sign 1) or left it (-1).
    node = neighbours.nodes[gpu.node]
    node.changed = 1
    if gpu.jobs == 0:
        s.jobs[j].alone += sign
        s.engine[0].alone += sign
        node.open += sign
    else:
        s.engine[0].alone -= sign
        node.open -= sign
        s.jobs[gpu.other if gpu.one == j or gpu.one < 0 else gpu.one].alone -= sign


@njit(**NESTED)
def _free_memory(s: State, neighbours: Any, g: int) -> float:
    # Computed from the jobs there: a running sum would drift, and a job that needs all memory would wait for ever.
    gpu = neighbours.gpus[g]
    free = gpu.capacity
    if gpu.one >= 0:
        free -= neighbours.memory[gpu.one, s.executions[s.jobs[gpu.one].execution].option]
    if gpu.other >= 0:
        free -= neighbours.memory[gpu.other, s.executions[s.jobs[gpu.other].execution].option]
    return float(free)


@njit(**NESTED)
def _count_on_nodes(s: State, neighbours: Any, x: int, sign: int) -> None:
    # Different jobs on every node of the gang.
    at, last = x * s.engine[0].width, -1
    for i in range(s.executions[x].entries):
        node = neighbours.gpus[s.parts[at + i].pool].node
        if node == last:
            continue
        last, k = node, 0
        while neighbours.gpus[s.parts[at + k].pool].node != node:
            k += 1
        if k == i:
            neighbours.nodes[node].jobs += sign


# --- on the interfaces of its nodes ------------------------------------------------------------------------------------


@njit(**NESTED)
def enter(
    n: Any, tables: Any, x: int, job: int, gpus: int, option: int, own_pace: float, pool: Any, count: Any
) -> None:
    """Enter an execution that has begun on the interfaces of its nodes.

    Parameters
    ----------
    n
        Executions on every interface.
    tables
        Communication tables.
    x
        Index of the execution.
    job
        Index of the job.
    gpus
        GPUs of its gang.
    option
        Index of its sub-batch.
    own_pace
        Seconds that a unit of its work takes without others on its interfaces.
    pool
        Node of every entry of its placement, i64[].
    count
        GPUs of every entry, i64[].
    """
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
    """Remove an execution that has ended from the interfaces of its nodes.

    Parameters
    ----------
    n
        Executions on every interface.
    x
        Index of the execution.
    """
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
    end = interface.first
    for i in range(interface.first, interface.first + interface.senders):
        if n.seats[i].execution != x:
            n.seats[end].execution = n.seats[i].execution
            end += 1
    interface.senders = end - interface.first
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
    """Return the slow-down of an execution by the others on its interfaces, >= 1.

    Parameters
    ----------
    n
        Executions on every interface.
    x
        Index of the execution.
    """
    if n.senders[x].share == 0.0:
        return 1.0
    most = 0.0
    for k in range(n.senders[x].nodes):
        interface = n.interfaces[n.nodes[x, k]]
        for i in range(interface.first, interface.first + interface.senders):
            if n.seats[i].execution == x:
                most = max(most, n.seats[i].met)
    return float(1.0 + n.senders[x].share * n.step[0] * most)


# --- how fast it is next to others -------------------------------------------------------------------------------------


@njit(**INNER)
def slowdown(s: State, colocation: Any, x: int) -> float:
    """Return the slow-down of an execution by all others, on its GPUs and on its interfaces, >= 1.

    Parameters
    ----------
    s
        State of the run.
    colocation
        The jobs that it may meet.
    x
        Index of the execution.
    """
    slow = 1.0
    if colocation.neighbours.gpus.size > 0:
        slow = _slowest(s, colocation.neighbours, x)
    if colocation.interfaces.senders.size > 0:
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
            worst = max(worst, xi_beside(neighbours, j, other))
    return worst


@njit(**INNER)
def xi_beside(neighbours: Any, j: int, other: int) -> float:
    """Return xi, the slow-down of a job that shares a GPU with another job; inf if the two never share.

    Parameters
    ----------
    neighbours
        The jobs on every GPU.
    j
        Index of the job whose slow-down is asked.
    other
        Index of the other job.
    """
    return float(neighbours.slowdown[neighbours.sharers[j].model, neighbours.sharers[other].model])


@njit(**INNER)
def settle_others(s: State, colocation: Any, x: int) -> None:
    """Settle the executions whose speed changes because an execution has come or gone.

    Parameters
    ----------
    s
        State of the run.
    colocation
        The jobs that it may meet.
    x
        Index of the execution that has come or gone.
    """
    if colocation.neighbours.gpus.size > 0:
        _settle_neighbours(s, colocation, x)
    if colocation.interfaces.senders.size > 0:
        _settle_on_interfaces(s, colocation, x)


@njit(**NESTED)
def _settle_neighbours(s: State, colocation: Any, x: int) -> None:
    j, at, settled = s.executions[x].job, x * s.engine[0].width, -1
    for i in range(s.executions[x].entries):
        gpu = colocation.neighbours.gpus[s.parts[at + i].pool]
        other = gpu.one if gpu.one != j and gpu.one >= 0 else gpu.other  # j may have left it already
        if other >= 0 and other != j and other != settled:  # mostly the same as on the GPU before
            settled, y = other, s.jobs[other].execution
            if (gpu.one == j or gpu.other == j) and colocation.interfaces.senders.size == 0:
                # One more neighbour: the maximum over all of them need not be computed again.
                _settle(s, colocation, y, max(s.executions[y].slow, xi_beside(colocation.neighbours, other, j)))
            else:
                _settle(s, colocation, y, slowdown(s, colocation, y))


@njit(**NESTED)
def _settle_on_interfaces(s: State, colocation: Any, x: int) -> None:
    interfaces = colocation.interfaces
    if interfaces.senders[x].share == 0.0:
        return
    for k in range(interfaces.senders[x].nodes):
        interface = interfaces.interfaces[interfaces.nodes[x, k]]
        for i in range(interface.first, interface.first + interface.senders):
            if interfaces.seats[i].execution != x:
                y = interfaces.seats[i].execution
                _settle(s, colocation, y, slowdown(s, colocation, y))


@njit(**NESTED)
def _settle(s: State, colocation: Any, y: int, slow: float) -> None:
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
        if colocation.neighbours.gpus.size > 0:
            for i in range(run.entries):
                gpu = colocation.neighbours.gpus[s.parts[y * w.width + i].pool]
                colocation.neighbours.nodes[gpu.node].changed = 1
