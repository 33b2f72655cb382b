"""One round of Hadar as an auction: active jobs, their utilities, the cluster in; who gets which GPUs out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from optsched.policies.gpu_pools import GpuPools
from optsched.policies.hadar_allocation import (
    AGE,
    ALL_ROUNDS,
    COMM,
    LEFT,
    LENGTH,
    RESTART,
    SCALE,
    SPAN,
    TERMS,
    THIS_ROUND,
)
from optsched.policies.hadar_round import (
    BY_MACHINE,
    BY_POOL,
    FreeDevices,
    Market,
    Room,
    RoundJobs,
    Taken,
    open_round,
    serve,
    value_all,
)
from optsched.policies.ties import leading
from optsched.problem.arrays import Floats, Ints

Where = tuple[tuple[int, int], ...]  # (node, GPUs there)
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


@dataclass(frozen=True)
class Grant:
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
    whole_cost: bool = True
    comm: float = 0.0
    fill: bool = True

    def grants(self, bidders: Bidders, pools: GpuPools) -> list[Grant]:
        """Who gets what, in the order of service. All GPUs of the cluster are for sale; what a job holds it may keep.

        Complexity: O(m P^2 + m log m), plus O(nodes) for each of the jobs that are served (times 2^width with windows);
        at prices by machine O(m P nodes).
        """
        m = bidders.gang.size
        jobs, devices, room, taken = self._arrays(bidders, pools)
        market, order, payoff = self._market(bidders, pools), np.arange(m), np.empty(m)
        density = np.empty(m)
        open_round(devices, market)
        value_all(jobs, devices, market, room, payoff, density)
        order = np.lexsort((np.arange(m), jobs.gang, -leading(density)))
        worth = order[payoff[order] > 0]
        serve(jobs, worth, payoff, self.width, devices, market, room, taken)
        if self.fill and devices.free.any():
            self._fill(jobs, order, devices, market, room, taken)
        return self._read(taken)

    def _fill(self, jobs: RoundJobs, order: Ints, d: FreeDevices, market: Market, room: Room, taken: Taken) -> None:
        # GPUs that nobody bought at their price: the others in the same order, each where it would finish first.
        got = np.zeros(jobs.gang.size, dtype=bool)
        got[taken.job[: taken.size[0]]] = True
        rest = order[~got[order]]
        if not rest.size:
            return
        jobs.terms[:, SCALE], jobs.terms[:, SPAN], jobs.terms[:, COMM] = 1.0, 0.0, 0.0
        d.claimed[:] = 0
        owner = np.repeat(np.arange(jobs.gang.size), np.diff(jobs.held_first))
        waits = ~got[owner]
        np.add.at(d.claimed, jobs.held_machine[waits], jobs.held_count[waits])
        for_nothing = market._replace(low=np.zeros_like(market.low), rule=market.rule * np.array([1, 1, 0]))
        open_round(d, for_nothing)
        serve(jobs, rest, np.full(jobs.gang.size, np.inf), 1, d, for_nothing, room, taken)

    def _market(self, b: Bidders, pools: GpuPools) -> Market:
        """Prices from the least to the greatest value of a device (and round) among the bidders, pool by pool."""
        rate = np.maximum(b.together, b.spread)
        runs = rate > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            rounds = np.maximum(1.0, np.ceil((b.left[:, None] / rate + b.restart[:, None]) / self.length - 1e-9))
            x = b.age[:, None] + np.where(runs, rounds, 1.0) * self.length
            worth = b.scale[:, None] * np.where(
                b.span[:, None] > 0, np.maximum(0.0, 1.0 - x / np.where(b.span > 0, b.span, 1.0)[:, None]), 1.0 / x
            )
            worth = worth / b.gang[:, None] / (np.where(runs, rounds, 1.0) if self.whole_cost else 1.0)
        some = runs & (worth > 0)
        high = np.where(some, worth, 0.0).max(axis=0, initial=0.0)
        low = np.where(some, worth, np.inf).min(axis=0, initial=np.inf) / CHEAPEST
        low = np.where(high > 0, np.minimum(low, high / np.e), 0.0)
        span = np.where(high > 0, np.log(np.where(high > 0, high, 1.0)) - np.log(np.where(high > 0, low, 1.0)), 0.0)
        capacity = pools.size if self.by_machine else pools.capacity
        widest = np.minimum(capacity, int(b.gang.max(initial=1)))
        scale = (capacity - widest + 1 if self.safe else capacity).astype(np.float64)
        of = pools.pool if self.by_machine else np.arange(capacity.size)
        level = BY_MACHINE if self.by_machine else BY_POOL
        rule = np.array([level, ALL_ROUNDS if self.whole_cost else THIS_ROUND, 1], dtype=np.int64)
        return Market(np.ascontiguousarray(low[of]), np.ascontiguousarray(span[of]), scale, rule)

    def _arrays(self, b: Bidders, pools: GpuPools) -> tuple[RoundJobs, FreeDevices, Room, Taken]:
        m, count, nodes, gpus = b.gang.size, pools.type.size, pools.pool.size, int(pools.size.sum())
        terms = np.empty((m, TERMS))
        terms[:, LEFT], terms[:, AGE], terms[:, SCALE], terms[:, SPAN] = b.left, b.age, b.scale, b.span
        terms[:, RESTART], terms[:, COMM], terms[:, LENGTH] = b.restart, self.comm, self.length
        first = np.zeros(m + 1, dtype=np.int64)
        first[1:] = np.cumsum([len(where) for where in b.held])
        entries = [entry for where in b.held for entry in where]
        held = np.array(entries, dtype=np.int64).reshape(-1, 2)
        machine, amount = np.ascontiguousarray(held[:, 0]), np.ascontiguousarray(held[:, 1])
        jobs = RoundJobs(b.gang, b.together, b.spread, terms, first, machine, amount)

        def zeros(*shape: int) -> Ints:
            return np.zeros(shape, dtype=np.int64)

        claimed = zeros(nodes)
        np.add.at(claimed, machine, amount)
        priced = nodes if self.by_machine else count
        devices = FreeDevices(
            pools.pool, pools.size.copy(), claimed, zeros(count), zeros(count), zeros(count),
            zeros(priced), np.zeros(priced), zeros(priced),
        )  # fmt: skip
        width = self.width + 1
        room = Room(
            zeros(2, count), zeros(2, nodes), zeros(width, nodes), zeros(width, nodes), zeros(3, width), np.zeros(width)
        )
        served = min(m, gpus)
        taken = Taken(zeros(2), zeros(served), zeros(served), zeros(served + 1), zeros(gpus), zeros(gpus))
        return jobs, devices, room, taken

    def _read(self, taken: Taken) -> list[Grant]:
        found = []
        for k in range(int(taken.size[0])):
            here = slice(taken.first[k], taken.first[k + 1])
            on = tuple(zip(taken.machine[here].tolist(), taken.amount[here].tolist(), strict=True))
            found.append(Grant(int(taken.job[k]), on, bool(taken.kept[k])))
        return found
