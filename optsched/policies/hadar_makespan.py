"""Hadar's rounds for the makespan, and for fairness: who goes next, on which type, by the makespan LP of the work left."""

from __future__ import annotations

import numpy as np

from optsched.errors import OptschedError
from optsched.models.gavel_allocation import ActiveJobs
from optsched.policies.gavel_allocations.level_search import LevelSearch
from optsched.policies.gavel_allocations.share_program import ShareProgram
from optsched.policies.gpu_pools import GpuPools
from optsched.policies.hadar_allocation import SLACK
from optsched.policies.hadar_auction import ANYWHERE, LATER, Bidders, Where
from optsched.policies.ties import leading
from optsched.problem.arrays import Floats, Ints

WAITED = 1  # rounds: a job that then would still need longer than T is critical and goes first
TINY = 1e-12  # instead of a weight of 0
MEANT = 1e-6  # of the time that a job needs: less of it on a pool is rounding of the LP


class MakespanRounds:
    """Shares of the fluid LP (`optsched.models.hadar_makespan`), solved again in every round from its last basis.

        min T   s.t.  sum_r x_jr y_jr >= left_j,  sum_r y_jr <= T (all j),  sum_j W_j y_jr <= c_r T (all r),  y >= 0

    With prices l_r of a GPU-second and u_j of a unit of work, its dual, a job has y_jr > 0 only where its payoff
    x_jr u_j - W_j l_r is the largest that it can have: the LP's shares are what these prices would sell, and they also say
    who runs where payoffs are equal, as those of all jobs but the critical ones are (0). So the shares decide, and of the
    optimal ones those of least GPU time, by a second LP: min sum_jr W_j y_jr at that T.

    ``scale`` of the bidders is their weight. ``fair``: the same shares, another order. R is the largest (age + seconds left
    at best) / T_j that any job has come to, T_j its ``scale``, the seconds on a share 1/n; nobody is served better for
    being below R, so a job is due R T_j after its arrival, and the earliest due date is first: the rule that keeps a ratio
    on one machine if any does (Bender et al. 1998).
    """

    def __init__(self, pools: GpuPools, fair: bool = False) -> None:
        self._pools, self._fair, self._worst = pools, fair, 0.0
        self._search = LevelSearch(pools.capacity.astype(np.float64))
        self._thrift = ShareProgram(pools.capacity.astype(np.float64), total=True)

    def plan(self, ids: Ints, b: Bidders, length: float) -> tuple[Ints, Ints]:
        """(order i64[m] of service, pool i64[m] to run on, `ANYWHERE` or `LATER`) in a round of ``length`` s.

        Who ends within the round on what it has keeps that. For fairness the others go by due dates; else, where the longest
        job alone decides T, first who could not wait `WAITED` rounds and end by T, the longest first; then by Smith's rule,
        the least GPU time a unit of weight first: they have time, and mean JCT gains. In this order a job keeps its pool, if
        it has time left to spend there or would gain nothing by moving, else it gets the one where it has most. A gang
        larger than every pool takes what is left of several. O(m P + m log m) and two LPs.
        """
        rate, needs, meant, T = self._times(ids, b, length)
        critical = (needs > T - WAITED * length) & (needs.max() * (1 + MEANT) >= T)  # else capacity alone decides T
        first = np.where(critical, -needs, needs * b.gang / np.maximum(b.scale, TINY))
        if self._fair:
            first, meant = self._due(b, rate, needs, meant)
            critical[:] = True
        here = np.array([self._only(where) for where in b.held])
        staying = np.where(here < 0, np.inf, b.left / np.maximum(rate[np.arange(here.size), np.maximum(here, 0)], TINY))
        ends = staying <= length
        order = np.lexsort((np.arange(needs.size), -b.gang, leading(first), ~critical, ~ends))
        stock, chosen = self._pools.capacity.copy(), np.full(needs.size, LATER)
        for j in order.tolist():
            if not stock.any():
                break
            gang, may = b.gang[j], (meant[j] > MEANT * needs[j]) & (stock >= b.gang[j])
            if may.any() or ends[j]:
                there = int(np.where(may, meant[j], -1.0).argmax())
                stays = here[j] >= 0 and stock[here[j]] >= gang
                stays = stays and (ends[j] or may[here[j]] or staying[j] <= b.restart[j] + b.left[j] / rate[j, there])
                chosen[j] = here[j] if stays else there
                stock[chosen[j]] -= gang
            elif not meant[j].any():
                usable = np.where(b.spread[j] > 0, stock, 0)
                if usable.sum() >= gang:
                    chosen[j] = ANYWHERE
                    stock -= np.diff(np.minimum(np.cumsum(usable), gang), prepend=0)
        return order, chosen

    def _only(self, held: Where) -> int:
        # The one pool of what a job holds.
        pools = {int(self._pools.pool[node]) for node, _ in held}
        return pools.pop() if len(pools) == 1 else LATER

    def by_urgency(self, b: Bidders) -> Ints:
        """The order of jobs that wait within a round: by Smith's rule; for fairness by due dates."""
        alone = b.left / np.maximum(b.together, b.spread).max(axis=1)
        first = self._worst * b.scale - b.age if self._fair else alone * b.gang / np.maximum(b.scale, TINY)
        return np.lexsort((np.arange(alone.size), leading(first)))

    def _due(self, b: Bidders, rate: Floats, needs: Floats, meant: Floats) -> tuple[Floats, Floats]:
        """(seconds until every job is due f64[m], seconds on each pool f64[m, P]), for fairness.

        Who would be late on all pools that the LP means for it takes the fastest with GPUs enough.
        """
        alone = b.left / np.maximum(b.together, b.spread).max(axis=1)
        self._worst = max(self._worst, float(((b.age + alone) / b.scale).max()))
        due = self._worst * b.scale - b.age
        kept = np.where(b.left[:, None] <= due[:, None] * rate, meant, 0.0)
        fastest = rate.max(axis=1, keepdims=True)
        late = ~kept.any(axis=1, keepdims=True) & (fastest > 0)
        return due, np.where(late, needs[:, None] * rate / np.where(late, fastest, 1.0), kept)

    def _cheapest(self, jobs: ActiveJobs, share: Floats, T: float) -> Floats:
        # Of the shares that reach T those of least GPU time: where one long job needs T, others go to where they are fast.
        fastest = jobs.rate.max(axis=1)
        slots = self._thrift.open(jobs.ids.tolist(), jobs.rate / fastest[:, None], jobs.gang.astype(np.float64))
        self._thrift.reward(slots, -np.broadcast_to(jobs.gang[:, None], jobs.rate.shape).astype(np.float64))
        self._thrift.demand(slots, jobs.left / fastest / (T * (1 + MEANT)))
        try:
            found = self._thrift.solve(slots)
        except OptschedError:  # lost on its last basis: the next round begins from none
            self._thrift, found = ShareProgram(self._thrift.capacity, total=True), None
        return share if found is None else found[0]

    def _times(self, ids: Ints, b: Bidders, length: float) -> tuple[Floats, Floats, Floats, float]:
        """(rate on each pool f64[m, P], seconds needed f64[m], of these on each pool f64[m, P], T).

        No pool: the gang is larger than each of them.
        """
        pools, best = self._pools, np.maximum(b.together, b.spread)
        left = np.maximum(b.left, SLACK * length * best.max(axis=1))  # what rounding has left is not nothing
        rate = np.where(b.gang[:, None] <= pools.largest, b.together, b.spread)
        rate = np.where(b.gang[:, None] <= pools.capacity, rate, 0.0)
        meant, T = np.zeros_like(rate), 0.0
        housed = np.flatnonzero(rate.any(axis=1))
        if housed.size:
            some, unused = rate[housed], np.full(housed.size, np.nan)
            jobs = ActiveJobs(ids[housed], some, b.gang[housed], unused, unused, left[housed])
            share, T = self._search.least(jobs, np.zeros(housed.size), np.ones(housed.size))
            share = self._cheapest(jobs, share, T)
            fastest = np.arange(rate.shape[1]) == some.argmax(axis=1)[:, None]
            share = np.where(share.any(axis=1, keepdims=True), share * (some > 0), fastest)  # shorter than LPs can see
            meant[housed] = share * (left[housed] / (share * some).sum(axis=1))[:, None]
        slowest = np.where(b.spread > 0, b.spread, np.inf).min(axis=1)
        needs = np.where(meant.any(axis=1), meant.sum(axis=1), left / slowest)
        return rate, needs, meant, max(T, float(needs.max()))
