"""Identical machines, all jobs released at 0, sum w_j C_j: dynamic programs over one machine, or two, in Smith's order.

Jobs are numbered by p / w; on one machine that order is optimal (Smith 1956), so a machine's **schedule** is a path that
takes or leaves job after job and whose length is its load: layer j, load t, at most n H states. Everything is an integer.

* `least_before` and `least_after`: with a price of every job, the cheapest path to and from every state. **Bound**: with
  prices y every solution costs at least sum y + m (cheapest path), since it has m paths and every job is on one of them.
* `close_starts`: a start (job, slot) is in no better solution if the cheapest path through it and m - 1 cheapest ones cost
  more than is allowed (reduced-cost fixing).
* `split`: the jobs of two machines are split again in the best way, O(k P) for k jobs with P slots of work; `improve` does
  so with all pairs until none gains, then moves some jobs at random.

References: van den Akker, Hoogeveen and van de Velde, Parallel machine scheduling by column generation, Operations Research
47 (1999), 862-872; Kramer, Dell'Amico and Iori, Enhanced arc-flow formulations to minimize weighted completion time on
identical parallel machines, EJOR 275 (2019), 67-79. (`improve` is the project's own.)
"""

from __future__ import annotations

import numpy as np

from optsched.compiled import njit
from optsched.problem.arrays import Bools, Ints
from optsched.solvers.generation import copy_to, next_random

FAR = 1 << 60  # larger than the cost of any path


@njit(interpreted=False)
def least_before(length: Ints, weight: Ints, price: Ints, open_start: Bools, least: Ints) -> None:
    """Compute the cheapest way to load t with jobs before j. O(n H).

    Parameters
    ----------
    length
        Durations in slots, i64[n], in Smith's order.
    weight
        Weights, i64[n].
    price
        Price of every job, i64[n].
    open_start
        Starts that are allowed, bool[n, H + 1].
    least
        Output, i64[n + 1, H + 1]; `FAR` where there is no way.
    """
    n, last = length.size, least.shape[1] - 1
    for t in range(last + 1):
        least[0, t] = 0 if t == 0 else FAR
    for j in range(n):
        for t in range(last + 1):
            least[j + 1, t] = least[j, t]
        for t in range(last + 1 - length[j]):
            end = t + length[j]
            if open_start[j, t] and least[j, t] < FAR:
                least[j + 1, end] = min(least[j + 1, end], least[j, t] + weight[j] * end - price[j])


@njit(interpreted=False)
def least_after(length: Ints, weight: Ints, price: Ints, open_start: Bools, first_end: int, least: Ints) -> None:
    """Compute the cheapest way from load t with the jobs from j on to a load >= ``first_end``. O(n H).

    Parameters
    ----------
    length
        Durations in slots, i64[n], in Smith's order.
    weight
        Weights, i64[n].
    price
        Price of every job, i64[n].
    open_start
        Starts that are allowed, bool[n, H + 1].
    first_end
        Least load of a machine.
    least
        Output, i64[n + 1, H + 1]; `FAR` where there is no way.
    """
    n, last = length.size, least.shape[1] - 1
    for t in range(last + 1):
        least[n, t] = 0 if t >= first_end else FAR
    for j in range(n - 1, -1, -1):
        for t in range(last + 1):
            least[j, t] = least[j + 1, t]
            end = t + length[j]
            if end <= last and open_start[j, t] and least[j + 1, end] < FAR:
                least[j, t] = min(least[j, t], least[j + 1, end] + weight[j] * end - price[j])


@njit(interpreted=False)
def close_starts(
    length: Ints, weight: Ints, price: Ints, before: Ints, after: Ints, allowed: int, open_start: Bools
) -> int:
    """Close the starts whose cheapest path costs more than ``allowed``; return the number of open ones. O(n H).

    Parameters
    ----------
    length
        Durations in slots, i64[n], in Smith's order.
    weight
        Weights, i64[n].
    price
        Price of every job, i64[n].
    before
        Result of `least_before`.
    after
        Result of `least_after`.
    allowed
        Largest cost of a path.
    open_start
        Starts that are allowed, bool[n, H + 1]; changed.
    """
    left = 0
    for j in range(length.size):
        for t in range(before.shape[1] - length[j]):
            if open_start[j, t]:
                end = t + length[j]
                open_start[j, t] = before[j, t] + weight[j] * end - price[j] + after[j + 1, end] <= allowed
                left += open_start[j, t]
    return left


@njit(interpreted=False)
def paths_to(length: Ints, before: Ints, ends: Ints, taken: Bools) -> None:
    """Find the jobs on a cheapest path to each of several loads.

    Parameters
    ----------
    length
        Durations in slots, i64[n], in Smith's order.
    before
        Result of `least_before`.
    ends
        The loads, i64[k].
    taken
        Output, bool[k, n].
    """
    for i in range(ends.size):
        t = ends[i]
        for j in range(length.size - 1, -1, -1):
            taken[i, j] = before[j + 1, t] != before[j, t]
            if taken[i, j]:
                t -= length[j]


@njit(interpreted=False)
def load_cost(length: Ints, weight: Ints, machine: Ints, which: int) -> int:
    """Return the cost of the jobs on one machine.

    Parameters
    ----------
    length
        Durations in slots, i64[n], in Smith's order.
    weight
        Weights, i64[n].
    machine
        Machine of every job, i64[n].
    which
        Number of the machine.
    """
    t, cost = 0, 0
    for j in range(length.size):
        if machine[j] == which:
            t += length[j]
            cost += weight[j] * t
    return cost


@njit(interpreted=False)
def split(length: Ints, weight: Ints, one: int, two: int, machine: Ints, least: Ints, choice: Bools) -> int:
    """Split the jobs of two machines in the best way, and return their cost.

    Parameters
    ----------
    length
        Durations in slots, i64[n], in Smith's order.
    weight
        Weights, i64[n].
    one
        Number of one machine.
    two
        Number of the other machine.
    machine
        Machine of every job, i64[n]; changed.
    least
        Working memory, i64[2, P + 1].
    choice
        Working memory, bool[n, P + 1].
    """
    done = 0
    least[0, 0] = 0
    for j in range(length.size):
        if machine[j] != one and machine[j] != two:
            continue
        for t in range(done + length[j] + 1):
            least[1, t] = FAR
        for t in range(done + 1):
            if least[0, t] >= FAR:
                continue
            other, same = t, t + length[j]
            if least[0, t] + weight[j] * (done - t + length[j]) < least[1, other]:
                least[1, other] = least[0, t] + weight[j] * (done - t + length[j])
                choice[j, other] = False
            if least[0, t] + weight[j] * same < least[1, same]:
                least[1, same] = least[0, t] + weight[j] * same
                choice[j, same] = True
        done += length[j]
        for t in range(done + 1):
            least[0, t] = least[1, t]
    best = 0
    for t in range(done + 1):
        if least[0, t] < least[0, best]:
            best = t
    at = best
    for j in range(length.size - 1, -1, -1):
        if machine[j] == one or machine[j] == two:
            machine[j] = one if choice[j, at] else two
            if machine[j] == one:
                at -= length[j]
    return least[0, best]


@njit(interpreted=False)
def _split_pairs(length: Ints, weight: Ints, machine: Ints, stale: Bools, least: Ints, choice: Bools) -> int:
    # split all pairs of machines of which one has changed, until none gains; return the total cost
    m, gains, total = stale.shape[0], True, 0
    trial = machine.copy()
    while gains:
        gains = False
        for one in range(m):
            for two in range(one + 1, m):
                if not stale[one, two]:
                    continue
                stale[one, two] = False
                before = load_cost(length, weight, machine, one) + load_cost(length, weight, machine, two)
                if split(length, weight, one, two, trial, least, choice) >= before:
                    copy_to(trial, machine)
                    continue
                copy_to(machine, trial)
                gains = True
                for i in range(m):
                    stale[min(i, one), max(i, one)] = stale[min(i, two), max(i, two)] = True
                stale[one, two] = False
    for i in range(m):
        total += load_cost(length, weight, machine, i)
    return total


@njit(interpreted=False)
def improve(length: Ints, weight: Ints, machine: Ints, machines: int, kicks: int, target: int, seed: Ints) -> int:
    """Split pairs of machines again and exchange a few jobs at random, repeatedly; return the best cost.

    Deterministic for a ``seed``.

    Parameters
    ----------
    length
        Durations in slots, i64[n], in Smith's order.
    weight
        Weights, i64[n].
    machine
        Machine of every job, i64[n]; changed to the best assignment found.
    machines
        Number of machines.
    kicks
        Number of repetitions.
    target
        Cost at which to stop.
    seed
        State of the random numbers, i64[1]; changed.
    """
    n, total = length.size, 0
    for j in range(n):
        total += length[j]
    least, choice = np.zeros((2, total + 1), dtype=np.int64), np.zeros((n, total + 1), dtype=np.bool_)
    stale = np.ones((machines, machines), dtype=np.bool_)
    best, trial = FAR, machine.copy()
    for _ in range(kicks):
        cost = _split_pairs(length, weight, trial, stale, least, choice)
        if cost <= best:  # an equally good schedule replaces the best one, so that the search can leave plateaus
            best = cost
            copy_to(machine, trial)
        if best <= target:
            break
        copy_to(trial, machine)
        for _ in range(2 + next_random(seed, 4)):
            j, k = next_random(seed, n), next_random(seed, n)
            trial[j], trial[k] = trial[k], trial[j]
            for i in range(machines):
                for changed in (trial[j], trial[k]):
                    stale[min(i, changed), max(i, changed)] = True
    return best
