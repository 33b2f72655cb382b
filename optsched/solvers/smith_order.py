"""Identical machines, all jobs released at 0, sum w_j C_j: dynamic programs over one machine in Smith's order.

Jobs are numbered by p / w; on one machine that order is optimal (Smith 1956), so a machine's **schedule** is a path that
takes or leaves job after job and whose length is its load: layer j, load t, at most n H states. Everything is an integer.

* `least_before` and `least_after`: with a price of every job, the cheapest path to and from every state. **Bound**: with
  prices y every solution costs at least sum y + m (cheapest path), since it has m paths and every job is on one of them.
* `close_starts`: a start (job, slot) is in no better solution if the cheapest path through it and m - 1 cheapest ones cost
  more than is allowed (reduced-cost fixing).

References: van den Akker, Hoogeveen and van de Velde, Parallel machine scheduling by column generation, Operations Research
47 (1999), 862-872; Kramer, Dell'Amico and Iori, Enhanced arc-flow formulations to minimize weighted completion time on
identical parallel machines, EJOR 275 (2019), 67-79.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optsched.compiled import njit
from optsched.problem.arrays import Bools, Floats, Ints

FAR = 1 << 60  # larger than the cost of any path
LARGE = 1 << 58  # larger than the sum of all prices on all machines
BITS = 24  # largest number of fractional bits of a price


@dataclass(frozen=True)
class ParallelJobs:
    """Jobs ``length`` i64[n] >= 1 and ``weight`` i64[n] >= 0 in Smith's order (p / w rises), on a number of ``machines``."""

    length: Ints
    weight: Ints
    machines: int

    @property
    def n(self) -> int:
        """Number of jobs."""
        return int(self.length.size)

    @cached_property
    def latest_start(self) -> Ints:
        """Latest starts of an optimal schedule, i64[n].

        Some machine is free for job j when the machines have done all the other work on average.
        """
        return (self.length.sum() - self.length) // self.machines

    @cached_property
    def horizon(self) -> int:
        """Largest load of a machine in an optimal schedule."""
        return int((self.latest_start + self.length).max())

    @cached_property
    def first_end(self) -> int:
        """Lower bound on the loads of some optimal schedule: a machine with less would take the last job of another one."""
        total, longest = int(self.length.sum()), int(self.length.max())
        return max(0, -((self.machines - 1) * longest - total) // self.machines)

    @cached_property
    def dearest(self) -> Ints:
        """Amount above the cost of any job, with the delay that it causes for others, i64[n]."""
        return self.weight * self.horizon + self.length * int(self.weight.sum()) + 1

    @cached_property
    def scale(self) -> int:
        """Steps of a price in a unit of cost; 0 where integers are too large."""
        largest = 2 * (self.machines + 1) * sum(self.dearest.tolist())
        return next((1 << k for k in range(BITS, -1, -1) if largest << k < LARGE), 0)

    def open_starts(self) -> Bools:
        """Return the starts that are allowed, bool[n, H + 1]."""
        return np.arange(self.horizon + 1) <= self.latest_start[:, None]

    def list_starts(self) -> Ints:
        """Return the starts of the list schedule in Smith's order, i64[n]: every job goes to the least load."""
        load, start = np.zeros(self.machines, dtype=np.int64), np.zeros(self.n, dtype=np.int64)
        for j in range(self.n):
            machine = np.argmin(load)
            start[j] = load[machine]
            load[machine] += self.length[j]
        return start

    def cost(self, start: Ints) -> int:
        """Return the cost of a schedule.

        Parameters
        ----------
        start
            Start of every job in slots, i64[n].
        """
        return int(self.weight @ (start + self.length))


@dataclass(frozen=True, eq=False)
class Potentials:
    """Cheapest paths at given prices, over the starts that are open.

    ``price`` i64[n] in steps of 1 / ``scale``; ``open_start`` bool[n, H + 1]; ``before`` and ``after`` i64[n + 1, H + 1] are
    the results of `least_before` and `least_after`.
    """

    jobs: ParallelJobs
    price: Ints
    open_start: Bools
    before: Ints
    after: Ints

    @classmethod
    def at(cls, jobs: ParallelJobs, prices: Floats, open_start: Bools) -> Potentials:
        """Return the cheapest paths at prices, rounded to the nearest step.

        Parameters
        ----------
        jobs
            The jobs.
        prices
            Price of every job, f64[n].
        open_start
            Starts that are allowed, bool[n, H + 1].
        """
        price = np.rint(np.clip(prices, -jobs.dearest, jobs.dearest) * jobs.scale).astype(np.int64)
        paths = np.empty((2, jobs.n + 1, jobs.horizon + 1), dtype=np.int64)
        potentials = cls(jobs, price, open_start, paths[0], paths[1])
        least_before(jobs.length, jobs.weight * jobs.scale, price, open_start, paths[0])
        potentials.look_back()
        return potentials

    @property
    def scale(self) -> int:
        """Steps of a price in a unit of cost."""
        return self.jobs.scale

    @cached_property
    def paid(self) -> int:
        """Sum of all prices, in steps."""
        return sum(self.price.tolist())

    @property
    def bound(self) -> int:
        """Lower bound on the cost of all schedules of open starts, in steps; at least `FAR` if there is none."""
        cheapest = int(self.after[0, 0])
        return FAR if cheapest >= FAR else self.paid + self.jobs.machines * cheapest

    def look_back(self) -> None:
        """Compute the cheapest paths to the end once more, after starts have been closed."""
        jobs = self.jobs
        least_after(jobs.length, jobs.weight * jobs.scale, self.price, self.open_start, jobs.first_end, self.after)

    def close(self, cost: int, open_start: Bools) -> int:
        """Close the starts that are in no schedule of at most a cost, and return the number of those that are left.

        Parameters
        ----------
        cost
            The largest cost.
        open_start
            The starts, bool[n, H + 1]; changed.
        """
        jobs, allowed = self.jobs, int(self.after[0, 0]) + cost * self.scale - self.bound
        weight = jobs.weight * jobs.scale
        return close_starts(jobs.length, weight, self.price, self.before, self.after, allowed, open_start)


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
        for t in range(before.shape[1]):
            end = t + length[j]
            if end >= before.shape[1]:
                open_start[j, t] = False
            elif open_start[j, t]:
                open_start[j, t] = before[j, t] + weight[j] * end - price[j] + after[j + 1, end] <= allowed
                left += open_start[j, t]
    return left
