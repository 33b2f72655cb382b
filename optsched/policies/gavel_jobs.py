"""What Gavel knows of the jobs that have arrived, in arrays; and the prices that a user states."""

from __future__ import annotations

import math

import numpy as np

from optsched.errors import check_legal
from optsched.models.gavel_allocation import ActiveJobs
from optsched.policies.gpu_pools import GpuPools
from optsched.problem.arrays import Floats, Ints
from optsched.simulation.policy import View

ROUNDED = 1e-9  # relative: a product of floats this close below a whole number is that number


class GavelJobs:
    """n jobs, T pools of GPUs: the entries of a job are filled when it arrives.

    ``rate`` f64[n, T] units of work a second of the whole gang, on one node where a node can hold it, else over several; 0
    where it may not run or the pool is too small. ``may`` bool[n, T]: may it use these GPUs together with others? ``whole``
    f64[n, T]: the seconds of its iterations that fit into ``length``, 0 where they fill it, or not one does.
    """

    def __init__(self, n: int, pools: GpuPools, length: float) -> None:
        self._pools, self._length = pools, length
        self.rate = np.zeros((n, pools.type.size))
        self.may = np.zeros((n, pools.type.size), dtype=np.bool_)
        self.whole = np.zeros((n, pools.type.size))
        self.housed = np.zeros(n, dtype=np.bool_)  # some pool can hold all of it
        self.gang = np.zeros(n, dtype=np.int64)
        self.weight = np.zeros(n)
        self.arrival = np.zeros(n)
        self.due = np.full(n, math.inf)

    def meet(self, view: View, job: int) -> None:
        """A job arrives."""
        together, spread = self._pools.rates(view, job)
        gang = view.gpus(job)
        fits = np.where(gang <= self._pools.largest, together, spread)
        rate = self.rate[job] = np.where(gang <= self._pools.capacity, fits, 0.0)
        # where the rate is 0 so are the iterations
        whole = np.floor(rate * self._length * (1 + ROUNDED)) / np.where(rate > 0, rate, 1.0)
        self.whole[job] = np.where(whole < self._length * (1 - ROUNDED), whole, 0.0)
        self.may[job], self.housed[job] = together > 0, bool(self.rate[job].any())
        self.gang[job], self.weight[job] = gang, view.weight(job)
        self.arrival[job], self.due[job] = view.arrival(job), view.due(job)

    def active(self, ids: Ints, now: float, left: Floats) -> ActiveJobs:
        """These jobs for an allocation rule."""
        elapsed, time_left = now - self.arrival[ids], self.due[ids] - now
        return ActiveJobs(ids, self.rate[ids], self.gang[ids], self.weight[ids], elapsed, left, time_left)


def costs_in(text: str) -> dict[str, float]:
    """``v100:3.06/k80:0.9``: prices of a GPU-hour by type, lower case; `InputError` for what is none."""
    found: dict[str, float] = {}
    for part in filter(None, text.split("/")):
        name, _, price = part.partition(":")
        try:
            value = float(price)
        except ValueError:
            value = math.nan
        check_legal(math.isfinite(value) and value > 0, "gavel: costs", part, "TYPE:PRICE, a price > 0, joined by /")
        found[name.strip().lower()] = value
    return found
