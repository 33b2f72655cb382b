"""One round of Hadar's auction: active jobs, their utilities and the free GPUs in; who gets which GPUs out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optsched.policies.gpu_pools import GpuPools
from optsched.policies.hadar_allocation import SLACK
from optsched.policies.hadar_round import PriceRange, open_round, serve, value_all
from optsched.policies.round_grants import Bidders, Deal, Grant
from optsched.policies.ties import leading

CHEAPEST = 4.0  # the price of an unsold GPU is the least value of one, divided by this


@dataclass(frozen=True)
class Auction:
    """The rules of a round of ``length`` seconds; with ``fill`` the GPUs that nobody buys are given away."""

    length: float
    fill: bool = True

    def grants(self, bidders: Bidders, pools: GpuPools) -> list[Grant]:
        """Return who gets which GPUs, in the order of service.

        All GPUs of ``pools`` are for sale; a job may buy those that it holds.

        Parameters
        ----------
        bidders
            The active jobs.
        pools
            Free GPUs, and those that the bidders hold.

        Notes
        -----
        **Complexity** O(m P^2 + m log m) for m jobs and P pools, plus O(nodes) for each job that is served.
        """
        m, deal = bidders.gang.size, Deal(bidders, pools, self.length)
        prices, payoff, density = self.price_range(bidders, pools), np.empty(m), np.empty(m)
        open_round(deal.devices, prices)
        value_all(deal.jobs, np.arange(m), deal.devices, prices, deal.scratch, payoff, density)
        order = np.lexsort((np.arange(m), deal.jobs.gang, -leading(density)))
        serve(deal.jobs, order[payoff[order] > 0], deal.devices, prices, deal.scratch, deal.taken)
        if self.fill:
            deal.give_rest(order)
        return deal.grants

    def price_range(self, bidders: Bidders, pools: GpuPools) -> PriceRange:
        """Return the range of the price on every pool: a quarter of the least value of a GPU for a round, to the greatest.

        A gang is worth its utility if it runs at its best rate on the pool to its end, in whole rounds. Each of its GPUs in
        each of these rounds is worth an equal part. The price is highest when the widest gang finds one GPU too few.

        Parameters
        ----------
        bidders
            The active jobs.
        pools
            Free GPUs.
        """
        b, best = bidders, np.maximum(bidders.together, bidders.spread)
        rate = np.where(best > 0, best, 1.0)
        left, age, scale, span, restart = (column[:, None] for column in (b.left, b.age, b.scale, b.span, b.restart))
        rounds = np.maximum(1.0, np.ceil((left / rate + restart) / self.length - SLACK))
        x = age + rounds * self.length
        worth = scale * np.where(span > 0, np.maximum(0.0, 1.0 - x / np.where(span > 0, span, 1.0)), 1.0 / x)
        worth = np.where(best > 0, worth / b.gang[:, None] / rounds, 0.0)
        least = np.where(worth > 0, worth, np.inf).min(axis=0, initial=np.inf)
        high = worth.max(axis=0, initial=0.0)
        wanted = high > 0
        low = np.where(wanted, least / CHEAPEST, 0.0)
        # numpy has its own logarithm for some processors
        spans = [math.log(most) - math.log(least) if most > 0 else 0.0 for least, most in zip(low, high, strict=True)]
        widest = np.minimum(pools.capacity, int(b.gang.max(initial=1)))
        return PriceRange(low, np.array(spans), (pools.capacity - widest + 1).astype(np.float64), np.array(True))
