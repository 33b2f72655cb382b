"""List schedules where the speed of a job depends on its placement: the incumbent of `solve` for such instances.

**Problem** P | r_j, size_j, alpha_j(placement) | f, f regular, without preemption. **Knowledge** clairvoyant. At every
arrival and completion the scheduler looks at the waiting jobs in order and starts them where they run fastest on the GPUs
that are free now. **Eager** schedules start a job at once, **patient** ones only where it is as fast as on the empty cluster
(which is empty at some time).
**Guarantee** none; the value is an upper bound on the optimum of ``gang-nonpreemptive``.
**Complexity** O(n) events that look at the waiting jobs, a placement each.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from heapq import heappop, heappush

import numpy as np

from optsched.bounds.regular import regular_cost
from optsched.models.mapped_modes import MappedModes, Mode
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.objectives import objective_of
from optsched.problem.schedule import Schedule
from optsched.solvers.list_schedule import ORDERS, ListProblem
from optsched.solvers.outcome import there
from optsched.speeds.duration import seconds_alone
from optsched.speeds.speed_tables import pace, speed_tables

Place = Callable[[int, Ints], tuple[Mode, float] | None]

MANY = 2000  # jobs beyond which only two orders are tried
QUICK = ("release-area", "arrival")


def best_placed_schedule(
    instance: Instance, objective: str | None = None, *, modes: MappedModes | None = None
) -> Schedule:
    """Return the best of the eager and the patient list schedules of all `ORDERS` (of two orders beyond `MANY` jobs).

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective (default: the instance's own).
    modes
        All placements of all jobs, if they can be listed; without them gangs take the fullest node that holds them,
        or the emptiest nodes.
    """
    goal = objective_of(instance, objective)
    if instance.n == 0:
        return Schedule.from_segments(instance, [], "list")
    counted = instance.relative
    cost = regular_cost(goal, counted)
    jobs = ListProblem.of(counted, seconds_alone(counted)).jobs
    place = _by_greed(counted) if modes is None else _by_modes(modes)
    best, least = None, np.inf
    for name in QUICK if instance.n > MANY else ORDERS.names():
        order = ORDERS.get(name)(jobs, cost)
        for patient in (False, True):
            start, seconds, mapping = _generate(counted, order, place, patient)
            value = cost.value(start + seconds)
            if value < least:
                best, least = (name, start, seconds, mapping), value
    name, start, seconds, mapping = there(best)
    schedule = Schedule.from_starts(counted, start, node_counts=mapping, duration=seconds, policy=name)
    return schedule.on_clock(instance)


def _generate(instance: Instance, order: Ints, place: Place, patient: bool) -> tuple[Floats, Floats, dict[int, Mode]]:
    """Return (starts, seconds held, mapping of every job)."""
    n, gpus, arrival = instance.n, instance.gpus.tolist(), instance.arrival.tolist()
    start, seconds = np.empty(n), np.empty(n)
    mapping: dict[int, Mode] = {}
    empty = [there(place(j, instance.cluster.node_gpus))[1] if patient else np.inf for j in range(n)]
    rank = np.argsort(order).tolist()
    coming = np.lexsort((rank, instance.arrival))[::-1].tolist()  # the next job last
    free, waiting, running = instance.cluster.node_gpus.copy(), list[int](), list[tuple[float, int]]()
    while coming or waiting:
        now = min([end for end, _ in running[:1]] + [arrival[j] for j in coming[-1:]])
        while coming and arrival[coming[-1]] <= now:
            insort(waiting, rank[coming.pop()])
        while running and running[0][0] <= now:
            for v, count in mapping[heappop(running)[1]]:
                free[v] += count
        left, still_waiting = int(free.sum()), []
        for position in waiting:
            j = int(order[position])
            placement = place(j, free) if gpus[j] <= left else None
            if placement is None or placement[1] > empty[j]:
                still_waiting.append(position)
                continue
            start[j], seconds[j], mapping[j] = now, placement[1], placement[0]
            heappush(running, (now + placement[1], j))
            for v, count in placement[0]:
                free[v] -= count
            left -= gpus[j]
        waiting = still_waiting
    return start, seconds, mapping


def _by_modes(modes: MappedModes) -> Place:
    def place(j: int, free: Ints) -> tuple[Mode, float] | None:
        own = slice(int(modes.offset[j]), int(modes.offset[j + 1]))
        held = modes.held[own]
        fits = np.flatnonzero((held <= free).all(axis=1))
        if fits.size == 0:
            return None
        # of equally fast modes, the one that leaves the fewest free GPUs on the nodes it uses
        spare = np.where(held[fits] > 0, free - held[fits], 0).sum(axis=1)
        b = own.start + int(fits[np.lexsort((spare, modes.seconds[own][fits]))[0]])
        return modes.mapping[b], float(modes.seconds[b])

    return place


def _by_greed(instance: Instance) -> Place:
    table, work, gpus = speed_tables(instance), instance.work.tolist(), instance.gpus.tolist()

    def place(j: int, free: Ints) -> tuple[Mode, float] | None:
        room = np.where(instance.eligible(j), free, 0)
        if room.sum() < gpus[j]:
            return None
        holds = np.flatnonzero(room >= gpus[j])
        if holds.size:
            mapping: Mode = ((int(holds[np.argmin(room[holds])]), gpus[j]),)
        else:
            need, parts = gpus[j], []
            for v in np.argsort(-room, kind="stable").tolist():
                taken = min(need, int(room[v]))
                if taken == 0:
                    break
                parts.append((v, taken))
                need -= taken
            mapping = tuple(parts)
        node, count = np.array(mapping, dtype=np.int64).T.copy()
        return mapping, work[j] * float(pace(table, j, gpus[j], node, count))

    return place
