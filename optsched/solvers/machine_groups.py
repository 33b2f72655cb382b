"""Local search on identical machines: the jobs of a few machines are scheduled again, by a search over loads.

**Problem** P || sum w_j C_j, jobs in Smith's order (`optsched.solvers.smith_order`). **Method** A group of machines with
their jobs is a smaller problem of the same kind. A search over loads (`optsched.solvers.machine_loads`) looks for a schedule
of the group that costs no more. It is limited by the prices of the jobs. At these prices a machine costs at least as much as
the cheapest path. The difference is the machine's excess, and the sum of all excesses is the gap. So a group can only
improve if its excess is at least one unit, and machines with a large excess are chosen more often. Each search has its own
prices, which differ a little at random, so that it finds other schedules. A schedule of equal cost is taken, too.
**Guarantee** none; the cost never rises. The same arguments give the same schedule if the time is not up.
**Reference** Shaw, Using constraint programming and local search methods to solve vehicle routing problems, CP 1998 (large
neighbourhoods).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from optsched.deadline import Deadline
from optsched.problem.arrays import Floats, Ints
from optsched.solvers.machine_loads import LoadSearch, search_loads
from optsched.solvers.smith_order import ParallelJobs, Potentials

NOISE = 0.05  # standard deviation of the price of a job from search to search, in units of cost
BY_EXCESS = 0.7  # share of the choices of machines that go by the excess; the others are uniform


@dataclass(frozen=True)
class Effort:
    """Work of a local search: groups of ``fewest`` to ``most`` machines, ``width`` states of a stage.

    The search ends after ``patience`` groups without a better schedule.
    """

    fewest: int
    most: int
    width: int
    patience: int


def regroup(
    jobs: ParallelJobs, start: Ints, potentials: Potentials, target: int, effort: Effort, seed: int, deadline: Deadline
) -> Ints:
    """Return the starts of a schedule that is no worse, i64[n].

    Parameters
    ----------
    jobs
        The jobs.
    start
        Start of every job in slots, i64[n]; no machine waits between its jobs.
    potentials
        Prices of the jobs, and the cheapest path for them.
    target
        Cost at which the search ends.
    effort
        Size of the groups and number of tries. Groups are smaller than the number of machines.
    seed
        Seed of the choice of groups.
    deadline
        Time at which to stop.
    """
    most = min(effort.most, jobs.machines - 1)
    start, cost, idle = start.copy(), jobs.cost(start), 0
    if most < max(effort.fewest, 2):
        return start
    random, machine = np.random.default_rng(seed), machines_of(jobs, start)
    excess = _excess(potentials, start, machine)
    while cost > target and idle < effort.patience and not deadline.passed:
        idle += 1
        size = int(random.integers(effort.fewest, most + 1))
        chance = BY_EXCESS * excess / excess.sum() + (1 - BY_EXCESS) / jobs.machines
        group = random.choice(jobs.machines, size, replace=False, p=chance)
        if excess[group].sum() < 1.0:
            continue
        members = np.flatnonzero(np.isin(machine, group))
        part = ParallelJobs(jobs.length[members], jobs.weight[members], size)
        price = potentials.price[members] / potentials.scale + NOISE * random.standard_normal(members.size)
        result = _schedule_again(part, start[members], price, effort, deadline)
        if result.start is None:
            continue
        gain = part.cost(start[members]) - result.cost
        start[members], machine[members] = result.start, group[machines_of(part, result.start)]
        excess, cost = _excess(potentials, start, machine), cost - gain
        if gain:
            idle = 0
    return start


def machines_of(jobs: ParallelJobs, start: Ints) -> Ints:
    """Return the machine of every job, i64[n].

    Parameters
    ----------
    jobs
        The jobs.
    start
        Start of every job in slots, i64[n]; no machine waits between its jobs.
    """
    free = defaultdict(list, {0: list(range(jobs.machines))})
    machine = np.zeros(jobs.n, dtype=np.int64)
    for j, (begin, length) in enumerate(zip(start.tolist(), jobs.length.tolist(), strict=True)):
        machine[j] = free[begin].pop()
        free[begin + length].append(int(machine[j]))
    return machine


def _excess(potentials: Potentials, start: Ints, machine: Ints) -> Floats:
    """Return the cost of every machine above the cheapest path at these prices, f64[m], in units; a little at least."""
    jobs, scale = potentials.jobs, potentials.scale
    reduced = (jobs.weight * (start + jobs.length) * scale - potentials.price) / scale
    path = np.bincount(machine, reduced, jobs.machines)
    return np.maximum(path - int(potentials.after[0, 0]) / scale, 1e-9)


def _schedule_again(part: ParallelJobs, start: Ints, price: Floats, effort: Effort, deadline: Deadline) -> LoadSearch:
    """Search for a schedule of a group that costs no more."""
    cost = part.cost(start)
    potentials = Potentials.at(part, price, part.open_starts())
    if potentials.bound > cost * potentials.scale:
        return LoadSearch(None, 0, True, 0)
    potentials.close(cost, potentials.open_start)
    potentials.look_back()
    return search_loads(part, potentials, cost, effort.width, deadline)
