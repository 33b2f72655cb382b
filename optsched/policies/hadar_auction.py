"""One round of Hadar as an auction: active jobs, their utilities, the cluster in; who gets which GPUs out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from optsched.policies.gpu_pools import GpuPools
from optsched.policies.hadar_allocation import COMM, SCALE, SLACK, SPAN, Lots
from optsched.policies.hadar_round import (
    FreeDevices,
    PriceRange,
    RoundJobs,
    Scratch,
    Taken,
    open_round,
    serve,
    value_all,
)
from optsched.policies.ties import leading
from optsched.problem.arrays import Floats, Ints

Where = tuple[tuple[int, int], ...]  # (node, GPUs there)
ANYWHERE, LATER = -1, -2  # instead of a pool: on several if need be; after those that have one
CHEAPEST = 4.0  # the price of an unsold device is this part of the least value of one


@dataclass(frozen=True, eq=False)
class Bidders:
    """m active jobs of a round; rates f64[m, P] units of work a second on every pool (see `GpuPools.rates`).

    ``gang`` i64[m]; ``left`` units of work, ``age`` seconds since the arrival, ``scale`` and ``span`` of the utility,
    ``restart`` seconds that a new allocation costs, all f64[m]; ``held`` what each holds now, () if it does not run.
    """

    gang: Ints
    together: Floats
    spread: Floats
    left: Floats
    age: Floats
    scale: Floats
    span: Floats
    restart: Floats
    held: Sequence[Where]


class Grant(NamedTuple):
    """Bidder ``job`` (its position) runs on ``on`` this round; ``kept``: it holds these GPUs already."""

    job: int
    on: Where
    kept: bool


@dataclass(frozen=True)
class Auction:
    """Rules of a round of ``length`` seconds; see `optsched.policies.hadar.Hadar` for the parameters."""

    length: float
    width: int = 1
    by_machine: bool = False
    safe: bool = True
    all_rounds: bool = True
    comm: float = 0.0
    fill: bool = True

    def grants(self, bidders: Bidders, pools: GpuPools) -> list[Grant]:
        """Who gets what, in the order of service. All GPUs of the cluster are for sale; what a job holds it may keep.

        Complexity: O(m P^2 + m log m), plus O(nodes) for each of the jobs that are served (times 2^width with windows);
        at prices by machine O(m P nodes).
        """
        m = bidders.gang.size
        jobs, devices, scratch, taken = self._arrays(bidders, pools)
        price_range, payoff, density = self._price_range(bidders, pools), np.empty(m), np.empty(m)
        open_round(devices, price_range)
        value_all(jobs, devices, price_range, scratch, payoff, density)
        order = np.lexsort((np.arange(m), jobs.gang, -leading(density)))
        worth = order[payoff[order] > 0]
        serve(jobs, worth, payoff, self.width, devices, price_range, scratch, taken)
        return self._filled(jobs, order, devices, scratch, taken)

    def placed(self, bidders: Bidders, pools: GpuPools, order: Ints, pool: Ints) -> list[Grant]:
        """Without prices: jobs on their ``pool``, the widest first; with ``fill`` then the others in ``order``; both i64[m].

        A job whose pool has too few devices left is one of the others. Complexity as of `grants`.
        """
        jobs, devices, scratch, taken = self._arrays(bidders, pools)
        wide = order[np.argsort(-jobs.gang[order], kind="stable")]
        here = (pool[:, None] == np.arange(pools.type.size)) | (pool == ANYWHERE)[:, None]
        there = jobs._replace(together=np.where(here, jobs.together, 0.0), spread=np.where(here, jobs.spread, 0.0))
        self._give(there, wide[pool[wide] != LATER], devices, scratch, taken)
        return self._filled(jobs, order, devices, scratch, taken)

    def _filled(self, jobs: RoundJobs, order: Ints, d: FreeDevices, scratch: Scratch, taken: Taken) -> list[Grant]:
        # What was given; with ``fill`` also of what nobody bought, to the others in this order, each where it ends first.
        waits = np.ones(jobs.gang.size, dtype=bool)
        waits[taken.job[: taken.size[0]]] = False
        rest = order[waits[order]]
        if self.fill and rest.size and d.free.any():
            theirs = np.repeat(waits, np.diff(jobs.held_first))
            d.claimed[:] = 0
            np.add.at(d.claimed, jobs.held_machine[theirs], jobs.held_count[theirs])
            self._give(jobs, rest, d, scratch, taken)
        grants, entries = taken.size.tolist()
        first = taken.first[: grants + 1].tolist()
        held = list(zip(taken.machine[:entries].tolist(), taken.amount[:entries].tolist(), strict=True))
        rows = zip(taken.job[:grants].tolist(), taken.kept[:grants].tolist(), first, first[1:], strict=False)
        return [Grant(job, tuple(held[begin:end]), bool(kept)) for job, kept, begin, end in rows]

    def _give(self, jobs: RoundJobs, order: Ints, d: FreeDevices, scratch: Scratch, taken: Taken) -> None:
        # At prices of 0, each where it would finish first.
        jobs.terms[:, SCALE], jobs.terms[:, SPAN], jobs.terms[:, COMM] = 1.0, 0.0, 0.0
        none = np.zeros(d.sold.size)
        prices = PriceRange(none, none, np.ones(d.sold.size), np.array([self.all_rounds, False]))
        open_round(d, prices)
        serve(jobs, order, np.full(jobs.gang.size, np.inf), 1, d, prices, scratch, taken)

    def _price_range(self, b: Bidders, pools: GpuPools) -> PriceRange:
        """Prices from a quarter of the least value of a device (and round) to the greatest among the bidders, by pool.

        A gang is worth its utility if it runs at its best rate on the pool to its end, in whole rounds: in equal parts that
        of its devices and, with ``all_rounds``, of their rounds.
        """
        best = np.maximum(b.together, b.spread)
        rate = np.where(best > 0, best, 1.0)
        left, age, scale, span, restart = (each[:, None] for each in (b.left, b.age, b.scale, b.span, b.restart))
        rounds = np.maximum(1.0, np.ceil((left / rate + restart) / self.length - SLACK))
        x = age + rounds * self.length
        worth = scale * np.where(span > 0, np.maximum(0.0, 1.0 - x / np.where(span > 0, span, 1.0)), 1.0 / x)
        worth = np.where(best > 0, worth / b.gang[:, None] / (rounds if self.all_rounds else 1.0), 0.0)
        least = np.where(worth > 0, worth, np.inf).min(axis=0, initial=np.inf)
        high = worth.max(axis=0, initial=0.0)
        some = high > 0
        low = np.where(some, least / CHEAPEST, 0.0)
        log_range = np.where(some, np.log(np.where(some, high, 1.0)) - np.log(np.where(some, low, 1.0)), 0.0)
        capacity = pools.size if self.by_machine else pools.capacity
        widest = np.minimum(capacity, int(b.gang.max(initial=1)))
        divisor = (capacity - widest + 1 if self.safe else capacity).astype(np.float64)
        of = pools.pool if self.by_machine else np.arange(capacity.size)
        return PriceRange(low[of], log_range[of], divisor, np.array([self.all_rounds, True]))

    def _arrays(self, b: Bidders, pools: GpuPools) -> tuple[RoundJobs, FreeDevices, Scratch, Taken]:
        m, count, nodes, gpus = b.gang.size, pools.type.size, pools.pool.size, int(pools.size.sum())
        # in the order of `hadar_allocation`
        columns = np.broadcast_arrays(b.left, b.age, b.scale, b.span, b.restart, self.comm, self.length)
        terms = np.column_stack(columns)
        first = np.zeros(m + 1, dtype=np.int64)
        np.cumsum([len(where) for where in b.held], out=first[1:])
        held = np.array([number for where in b.held for entry in where for number in entry], dtype=np.int64)
        machine, amount = np.ascontiguousarray(held.reshape(-1, 2).T)
        jobs = RoundJobs(b.gang, b.together, b.spread, terms, first, machine, amount)

        def zeros(*shape: int) -> Ints:
            return np.zeros(shape, dtype=np.int64)

        lot, pool = (np.arange(nodes), pools.pool) if self.by_machine else (pools.pool, np.arange(count))
        priced = pool.size
        lots = Lots(pool, zeros(priced), zeros(priced), zeros(priced), np.zeros(priced), zeros(priced))
        devices = FreeDevices(pools.pool, lot, pools.size.copy(), zeros(nodes), lots, zeros(priced))
        np.add.at(devices.claimed, machine, amount)
        width = self.width + 1
        scratch = Scratch(zeros(2, priced), zeros(width, nodes), zeros(width, nodes), zeros(3, width), np.zeros(width))
        served = min(m, gpus)
        taken = Taken(zeros(2), zeros(served), zeros(served), zeros(served + 1), zeros(gpus), zeros(gpus))
        return jobs, devices, scratch, taken
