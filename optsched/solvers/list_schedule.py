"""List schedules: jobs in some order, each at its earliest start; they are the first incumbents of proofs.

**Problem** P | r_j, size_j, nodes | f, f regular, without preemption. **Knowledge** clairvoyant. **Guarantee** none in
general (2 - 1/m for P || C_max: Graham 1966); the value is an upper bound on the optimum of ``gang-nonpreemptive``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from optsched.bounds.regular import RegularCost, regular_cost
from optsched.compiled import njit
from optsched.deadline import NEVER as ENDLESS, Deadline
from optsched.errors import InputError
from optsched.problem.arrays import Floats, Ints
from optsched.problem.gpu_names import assign_gpus, node_first
from optsched.problem.instance import Instance
from optsched.problem.objectives import objective_of
from optsched.problem.schedule import Schedule
from optsched.registry import Registry
from optsched.solvers.generation import (
    INTERPRETED,
    Costs,
    PooledJobs,
    copy_to,
    generate_parallel,
    generate_serial,
    improve_order,
    move_job,
    next_random,
    objective_value,
)
from optsched.speeds.duration import fixed_durations

BUDGET = 20_000_000  # profile segments of the local search: about 0.3 s
# the search begins from STARTS orders with the part SHARE of the budget, then continues from the best
STARTS, SHARE = 6, 0.6
# Annealing: the temperature falls from HOT to COLD, in mean costs of a mean duration; MOVES n^2 moves each time.
HOT, COLD, MOVES, STATES, STRETCH = 3.0, 0.05, 1000, 2_000_000, 2_000_000_000
FEW = 12  # jobs up to which descents, which need no compilation, order the jobs
LIKELY = "release-area"  # the order that is best most of the time
SMALL = 2000  # jobs up to which orders that cost O(n^2) are made
NEVER = 1e300  # a key larger than any time


@dataclass(frozen=True)
class ListProblem:
    """An instance with its ``jobs`` in the form of the compiled loops.

    GPUs that are alike for every job form a pool; pools that fewest jobs may use come first. ``pool_nodes``: the nodes
    of each pool.
    """

    instance: Instance
    jobs: PooledJobs
    pool_nodes: tuple[Ints, ...]

    @classmethod
    def of(cls, instance: Instance, duration: Floats | None = None) -> ListProblem:
        """Return the problem of an instance.

        Parameters
        ----------
        instance
            Jobs and cluster.
        duration
            Durations in seconds to count with instead, for orders only, f64[n].

        Raises
        ------
        InputError
            If the speed of a job depends on its placement and no ``duration`` is given.
        """
        patterns, pool = np.unique(instance.class_eligible, axis=1, return_inverse=True)
        wanted = np.bincount(instance.job_class, minlength=patterns.shape[0]) @ patterns
        order = np.argsort(wanted, kind="stable")
        nodes = tuple(np.flatnonzero(pool.reshape(-1) == p) for p in order)
        jobs = PooledJobs(
            release=instance.arrival.copy(),
            duration=(fixed_durations(instance) if duration is None else duration).copy(),
            gpus=instance.gpus.copy(),
            job_class=instance.job_class.copy(),
            usable=np.ascontiguousarray(patterns[:, order]),
            pool_gpus=np.array([int(instance.cluster.node_gpus[v].sum()) for v in nodes], dtype=np.int64),
        )
        return cls(instance, jobs, nodes)

    def generate(self, order: Ints, parallel: bool = False) -> tuple[Floats, Ints]:
        """Return the starts and the GPUs taken of an order.

        Parameters
        ----------
        order
            The jobs in order, i64[n].
        parallel
            Use parallel generation instead of serial generation.

        Returns
        -------
        start
            Starts in seconds, f64[n].
        taken
            GPUs taken, i64[n, pools].
        """
        start = np.empty(self.jobs.release.size)
        taken = np.zeros((self.jobs.release.size, self.jobs.pool_gpus.size), dtype=np.int64)
        scheme = generate_parallel if parallel else generate_serial
        scheme(np.asarray(order, dtype=np.int64), self.jobs, start, taken)
        return start, taken

    def schedule(self, start: Floats, taken: Ints, policy: str) -> Schedule:
        """Return the schedule of starts and pool counts, with the GPUs of every job.

        Parameters
        ----------
        start
            Starts in seconds, f64[n].
        taken
            GPUs taken, i64[n, pools].
        policy
            Name that the schedule records.

        Raises
        ------
        InputError
            If a job does not fit at its start.
        """
        instance = self.instance
        if instance.unrestricted:
            return Schedule.from_starts(instance, start, duration=self.jobs.duration, policy=policy)
        job, pool = np.nonzero(taken)
        offset = np.concatenate([[0], np.cumsum(np.bincount(job, minlength=instance.n))]).astype(np.int64)
        first = np.concatenate([[0], np.cumsum(self.jobs.pool_gpus)]).astype(np.int64)
        end = start + self.jobs.duration
        gpu_offset, gpu, failed = assign_gpus(first, start, end, offset, pool.astype(np.int64), taken[job, pool])
        if failed >= 0:
            raise InputError(f"job {instance.ids[failed]!r} does not fit at {start[failed]:g} s")
        # number within the pools -> (node, index)
        starts_of_nodes, gpus_of_nodes = node_first(instance), instance.cluster.node_gpus
        names = np.concatenate(
            [starts_of_nodes[v] + np.arange(gpus_of_nodes[v]) for nodes in self.pool_nodes for v in nodes]
        )
        number = names[gpu]
        node = np.searchsorted(starts_of_nodes, number, side="right") - 1
        index = number - starts_of_nodes[node]
        jobs = np.arange(instance.n, dtype=np.int64)
        return Schedule(instance, jobs, start, end, instance.work, gpu_offset, node, index, policy)


# --- orders ----------------------------------------------------------------------------------------------------------

ListOrder = Callable[[PooledJobs, RegularCost], Ints]
ORDERS: Registry[ListOrder] = Registry("order")


def _by(*keys: Floats | Ints) -> Ints:
    # keys in order of importance; ties by position
    return np.lexsort(tuple(reversed(keys)))


def _per_slope(amount: Floats, cost: RegularCost) -> Floats:
    return np.where(cost.slope > 0, amount / np.where(cost.slope > 0, cost.slope, 1.0), NEVER)


_TABLE: dict[str, ListOrder] = {
    # smallest r_j first (FIFO)
    "arrival": lambda p, cost: _by(p.release, p.duration),
    # smallest p_j first
    "spt": lambda p, cost: _by(p.duration),
    # largest p_j first: for the makespan (4/3 - 1/(3m) on P || C_max, Graham 1969)
    "lpt": lambda p, cost: _by(-p.duration),
    # largest gang first, then largest p_j
    "widest": lambda p, cost: _by(-p.gpus, -p.duration),
    # smallest p_j / w_j first (Smith's rule)
    "wspt": lambda p, cost: _by(_per_slope(p.duration, cost)),
    # smallest g_j p_j / w_j first: GPU-seconds per weight
    "area": lambda p, cost: _by(_per_slope(p.duration * p.gpus, cost)),
    # smallest r_j + g_j p_j / (w_j G) first: arrivals and areas on one scale
    "release-area": lambda p, cost: _by(
        p.release + _per_slope(p.duration * p.gpus, cost) * float(np.mean(cost.slope)) / p.pool_gpus.sum()
    ),
    # earliest due date first
    "edd": lambda p, cost: _by(np.where(cost.slope > 0, cost.kink, NEVER), p.release),
    # smallest d_j - p_j first: the latest start without tardiness
    "slack": lambda p, cost: _by(np.where(cost.slope > 0, cost.kink - p.duration, NEVER)),
}
for _name, _order in _TABLE.items():
    ORDERS.register(_name)(_order)


@ORDERS.register("atc")
def atc(p: PooledJobs, cost: RegularCost) -> Ints:
    """Return the order of apparent tardiness cost.

    The next job has the largest w/(g p) exp(-slack / (2 mean p)) at the time at which the cluster's work would begin it.
    Vepsalainen and Morton, Management Sci. 33 (1987). O(n^2); beyond 2,000 jobs the order is `area`.

    Parameters
    ----------
    p
        Jobs and pools.
    cost
        Costs of the jobs.
    """
    n = p.release.size
    if n > SMALL:
        return ORDERS.get("area")(p, cost)
    work = p.duration * p.gpus / p.pool_gpus.sum()
    scale = 2.0 * float(p.duration.mean())
    left, now, order = np.ones(n, dtype=bool), float(p.release.min()), []
    density = cost.slope / (p.duration * p.gpus)
    for _ in range(n):
        waiting = left & (p.release <= now)
        if not waiting.any():
            now = float(p.release[left].min())
            waiting = left & (p.release <= now)
        urgency = density * np.exp(-np.maximum(cost.kink - p.duration - now, 0.0) / scale)
        j = int(np.argmax(np.where(waiting, urgency, -1.0)))
        left[j] = False
        order.append(j)
        now += float(work[j])
    return np.array(order, dtype=np.int64)


# --- faces -----------------------------------------------------------------------------------------------------------


def list_schedule(
    instance: Instance, order: str | Sequence[int] | Ints, objective: str | None = None, *, parallel: bool = False
) -> Schedule:
    """Return the list schedule of an order.

    A gang takes any free GPUs of nodes that suit it. Times are computed from the first arrival on and put back on the clock
    of the instance.

    Parameters
    ----------
    instance
        Jobs and cluster.
    order
        A name of `ORDERS`, or a permutation of the jobs' positions.
    objective
        Objective whose weights and due dates a named order reads (default: the instance's own).
    parallel
        False: serial generation, each job at its earliest feasible start given those before it in the order. True:
        at every moment all jobs that fit start, in order (Graham).

    Raises
    ------
    InputError
        If ``order`` is not an order of the jobs.
    """
    counted = instance.relative
    problem = ListProblem.of(counted)
    if isinstance(order, str):
        cost = regular_cost(objective_of(counted, objective), counted)
        positions, name = ORDERS.get(order)(problem.jobs, cost), order
    else:
        positions, name = np.asarray(order, dtype=np.int64), "list"
        if not np.array_equal(np.sort(positions), np.arange(instance.n)):
            raise InputError("not an order of the jobs", field="order", legal=f"a permutation of 0..{instance.n - 1}")
    return problem.schedule(*problem.generate(positions, parallel), name).on_clock(instance)


def best_list_schedule(
    instance: Instance,
    objective: str | None = None,
    *,
    budget: int = BUDGET,
    target: float = -math.inf,
    orders: Iterable[Ints] = (),
    deadline: Deadline = ENDLESS,
) -> Schedule:
    """Return the best list schedule of all `ORDERS` under both generation schemes, improved by a bounded local search.

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective (default: the instance's own).
    budget
        Number of profile segments that the search may look at; it bounds the work, not the time, so the result is
        deterministic.
    target
        A proven lower bound; the search stops when it is reached.
    orders
        Further orders to try, e.g. jobs by their mean start in an LP.
    deadline
        Time at which the search stops, whatever is left of the budget.
    """
    goal = objective_of(instance, objective)
    if instance.n == 0:
        return Schedule.from_segments(instance, [], "list")
    target -= float(goal.clock_part(instance))
    problem, cost = ListProblem.of(instance.relative), regular_cost(goal, instance.relative)
    costs = Costs(cost.slope, cost.kink, cost.base, cost.maximum)
    tried = [(name, make(problem.jobs, cost)) for name, make in ORDERS.items()]
    if instance.n > SMALL:  # the time may be up after the first
        tried.sort(key=lambda order: order[0] != LIKELY)
    tried += [("given", np.asarray(order, dtype=np.int64)) for order in orders]
    schedules: dict[float, tuple[str, tuple[Floats, Ints]]] = {}
    for label, order in tried:
        for parallel in (False, True):
            if schedules and deadline.passed:
                break
            generated = problem.generate(order, parallel)
            schedules.setdefault(objective_value(generated[0], problem.jobs.duration, costs), (label, generated))
    for label, (start, _) in [schedules[v] for v in sorted(schedules)[:STARTS]]:
        if deadline.passed:
            break
        generated = problem.generate(np.argsort(start, kind="stable"))  # waiting jobs may fit earlier
        schedules.setdefault(objective_value(generated[0], problem.jobs.duration, costs), (label, generated))
    value = min(schedules)
    name, best = schedules[value]
    if value <= target or budget <= 0:
        return problem.schedule(*best, name).on_clock(instance)
    begin = [np.argsort(schedules[v][1][0], kind="stable") for v in sorted(schedules)[:STARTS]]
    gpus = problem.jobs.pool_gpus
    quick = gpus.size == 1 and not cost.maximum and instance.n > FEW and instance.n * int(gpus[0]) <= STATES
    quick = quick and budget > INTERPRETED
    search = _annealed if quick else _descended
    generated = problem.generate(search(problem, costs, begin, budget, target, deadline))
    if objective_value(generated[0], problem.jobs.duration, costs) < value:
        name, best = f"{name}+search", generated
    return problem.schedule(*best, name).on_clock(instance)


def _descended(
    problem: ListProblem, costs: Costs, begin: list[Ints], budget: int, target: float, deadline: Deadline
) -> Ints:
    """Return the best order of descents from all given orders, then of descents with kicks from the best."""
    part = int(min(budget, BUDGET) * SHARE / len(begin))
    searched = [improve_order(order, part, target, 1, problem.jobs, costs) for order in begin]
    order, spent, seed = begin[int(np.argmin(searched))], part * len(begin), 2
    while spent < budget and not deadline.passed:
        if improve_order(order, min(budget - spent, BUDGET), target, seed, problem.jobs, costs) <= target:
            break
        spent, seed = spent + BUDGET, seed + 1
    return order


def _annealed(
    problem: ListProblem, costs: Costs, begin: list[Ints], budget: int, target: float, deadline: Deadline
) -> Ints:
    """Return the best order of annealing from each given order.

    The temperature falls with the moves made, or with the time that is left.
    """
    jobs, gpus = problem.jobs, int(problem.jobs.pool_gpus[0])
    best, value, seed, steps, turn = begin[0].copy(), math.inf, np.array([1]), budget // (2 * (gpus + 8)), 0
    warm = float(np.mean(costs.slope) * np.mean(jobs.duration))
    stretch = min(1 + STRETCH // ((best.size + 1000) * (gpus + 8)), 1 + steps // 100)
    while steps > 0 and value > target and not deadline.passed:
        order, made, span = begin[turn % len(begin)].copy(), 0, deadline.left
        most = min(steps, MOVES * best.size**2)
        while value > target and made < most and (left := deadline.left) > 0:
            share = max(made / most, 0.0 if span == math.inf else 1 - left / span)
            value = anneal(order, best, value, jobs, costs, stretch, warm * HOT * (COLD / HOT) ** share, seed)
            made += stretch
        steps, turn = steps - most, turn + 1
    return best


# Simulated annealing over orders of starts on one pool of GPUs, compiled: millions of moves a second.
#
# **Decoding.** In an order of starts every job begins as soon as its GPUs are free, and not before the job ahead of it.
# Every schedule is that of its own order, so an optimum is among them. The state of the jobs placed so far is the time
# at which each GPU is free: a sorted vector, kept for every position. A move is therefore evaluated from the first
# position that it changes. **Early end.** Later vectors never give earlier starts. Behind the changed positions the
# evaluation ends in two cases. Either the vector is nowhere earlier than before and the loss so far is more than the
# limit, or the vector is equal to the old one. This takes 10 to 30 jobs, however many follow. **Reference**
# Kirkpatrick, Gelatt and Vecchi, Science 220 (1983); the decoding is the project's own.

FINE = 1 << 22  # number of different random reals
REACH = 15.0  # mean distance of a move, in positions


@njit(interpreted=False)
def _place(free: Floats, earliest: float, gang: int, duration: float) -> float:
    """Return the start of a gang not before ``earliest``; change ``free`` f64[G] (when each GPU is free, ascending)."""
    start = max(earliest, free[gang - 1])
    k = gang
    while k < free.size and free[k] < start + duration:
        free[k - gang] = free[k]
        k += 1
    for at in range(k - gang, k):
        free[at] = start + duration
    return start


@njit(interpreted=False)
def _compare(free: Floats, begun: float, old: Floats, old_begun: float) -> tuple[bool, bool]:
    """Return (nowhere earlier, nowhere later) than before; a GPU that is free before the last start counts as free at it."""
    not_earlier, not_later = begun >= old_begun, begun <= old_begun
    for k in range(free.size):
        now, before = max(free[k], begun), max(old[k], old_begun)
        not_earlier, not_later = not_earlier and now >= before, not_later and now <= before
        if not (not_earlier or not_later):
            break
    return not_earlier, not_later


@njit(interpreted=False)
def anneal(
    order: Ints, best: Ints, value: float, jobs: PooledJobs, costs: Costs, steps: int, temperature: float, seed: Ints
) -> float:
    """Make ``steps`` moves from ``order`` at one temperature, and return the value of ``best``.

    Moves are insertions and swaps over a distance of 15 positions on average. For one pool and costs that are added up.

    Parameters
    ----------
    order
        The jobs in order, i64[n]; changed.
    best
        Best order known, i64[n]; changed if a better one is found.
    value
        Value of ``best``.
    jobs
        Jobs and pools.
    costs
        Costs of the jobs.
    steps
        Number of moves.
    temperature
        Temperature, in units of cost.
    seed
        State of the generator, i64[1]; changed.
    """
    n = order.size
    free = np.zeros((n + 1, jobs.pool_gpus[0]))
    begun, paid = np.full(n + 1, -np.inf), np.zeros(n + 1)
    new_free, new_begun, new_paid = np.zeros_like(free), begun.copy(), paid.copy()
    first, last, current, limit = 0, n - 1, np.inf, np.inf
    source, target, swap = 0, 0, False
    for step in range(steps + 1):
        if step:  # the first round evaluates the order unchanged
            source = next_random(seed, n)
            distance = 1 + int(-math.log((1 + next_random(seed, FINE)) / FINE) * REACH)
            target = source + distance if next_random(seed, 2) else source - distance
            if target < 0 or target >= n:
                continue
            swap = next_random(seed, 2) == 1
            first, last = min(source, target), max(source, target)
            limit = current - temperature * math.log((1 + next_random(seed, FINE)) / FINE)
            move_job(order, source, target, swap)
        k, total = first, np.inf
        for g in range(free.shape[1]):
            new_free[k, g] = free[k, g]
        new_begun[k], new_paid[k] = begun[k], paid[k]
        while k < n:
            j = order[k]
            for g in range(free.shape[1]):
                new_free[k + 1, g] = new_free[k, g]
            start = _place(new_free[k + 1], max(new_begun[k], jobs.release[j]), jobs.gpus[j], jobs.duration[j])
            late = max(start + jobs.duration[j] - costs.kink[j], 0.0)
            new_begun[k + 1], new_paid[k + 1] = start, new_paid[k] + costs.base[j] + costs.slope[j] * late
            k += 1
            if k > last and step:
                total = new_paid[k] + current - paid[k]
                not_earlier, not_later = _compare(new_free[k], start, free[k], begun[k])
                if not_earlier and (not_later or total > limit):
                    break
        total = new_paid[n] if k == n else total
        if total > limit:
            move_job(order, target, source, swap)
            continue
        for at in range(first + 1, k + 1):
            begun[at], paid[at] = new_begun[at], new_paid[at]
            for g in range(free.shape[1]):
                free[at, g] = new_free[at, g]
        for at in range(k + 1, n + 1):
            paid[at] += total - current
        current = total
        if current < value:
            value = current
            copy_to(best, order)
    return value
