"""Hadar's rounds for the makespan, and for fairness: who goes next, on which type, by the makespan LP of the work left."""

from __future__ import annotations

import numpy as np

from optsched.models.gavel_allocation import ActiveJobs
from optsched.policies.gavel_allocations.level_search import LevelSearch
from optsched.policies.gpu_pools import GpuPools
from optsched.policies.hadar_allocation import SLACK
from optsched.policies.hadar_auction import ANYWHERE, LATER, Bidders
from optsched.policies.ties import leading
from optsched.problem.arrays import Floats, Ints

CRITICAL = 0.95  # of T: a job that still needs so long goes first
MEANT = 1e-6  # of the time that a job needs: less of it on a pool is rounding of the LP


class MakespanRounds:
    """Shares of the fluid LP (`optsched.models.hadar_makespan`), solved again in every round from its last basis.

        min T   s.t.  sum_r x_jr y_jr >= left_j,  sum_r y_jr <= T (all j),  sum_j W_j y_jr <= c_r T (all r),  y >= 0

    With prices l_r of a GPU-second and u_j of a unit of work, its dual, a job has y_jr > 0 only where its payoff
    x_jr u_j - W_j l_r is the largest that it can have: the LP's shares are what these prices would sell, and they also say
    who runs where payoffs are equal, as those of all jobs but the critical ones are (0). So the shares decide.

    ``fair``: the same shares, another order. R is the largest (age + seconds left at best) / T_j that any job has come to,
    T_j its ``scale``, the seconds on a share 1/n; nobody is served better for being below R, so a job is due R T_j after its
    arrival, and the earliest due date is first: the rule that keeps a ratio on one machine if any does (Bender et al. 1998).
    """

    def __init__(self, pools: GpuPools, fair: bool = False) -> None:
        self._pools, self._fair, self._worst = pools, fair, 0.0
        self._search = LevelSearch(pools.capacity.astype(np.float64))

    def plan(self, ids: Ints, b: Bidders, length: float) -> tuple[Ints, Ints]:
        """(order i64[m] of service, pool i64[m] to run on, `ANYWHERE` or `LATER`) in a round of ``length`` s.

        For fairness by due dates. Else first who needs `CRITICAL` T or more, the longest first; then the others, the
        shortest first: they have time, and mean JCT gains. In this order a job gets the pool that it is on, if it has time
        left to spend there and it fits the pool, else the one where it has most. A gang larger than every pool takes what
        is left of several. O(m P + m log m) and the LP.
        """
        rate, needs, meant, T = self._times(ids, b, length)
        critical = needs >= CRITICAL * T
        first = np.where(critical, -needs, needs)
        if self._fair:
            first, meant = self._due(b, rate, needs, meant)
            critical[:] = True
        order = np.lexsort((np.arange(needs.size), -b.gang, leading(first), ~critical))
        stock, chosen = self._pools.capacity.copy(), np.full(needs.size, LATER)
        for j in order.tolist():
            if not stock.any():
                break
            gang, held = b.gang[j], b.held[j]
            may = (meant[j] > MEANT * needs[j]) & (stock >= gang)
            if may.any():
                here = int(self._pools.pool[held[0][0]]) if held else LATER
                chosen[j] = here if held and may[here] else np.where(may, meant[j], -1.0).argmax()
                stock[chosen[j]] -= gang
            elif not meant[j].any():
                usable = np.where(b.spread[j] > 0, stock, 0)
                if usable.sum() >= gang:
                    chosen[j] = ANYWHERE
                    stock -= np.diff(np.minimum(np.cumsum(usable), gang), prepend=0)
        return order, chosen

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
            jobs = ActiveJobs(ids[housed], some, b.gang[housed], unused, unused, left[housed], unused)
            share, T = self._search.least(jobs, np.zeros(housed.size), np.ones(housed.size))
            fastest = np.arange(rate.shape[1]) == some.argmax(axis=1)[:, None]
            share = np.where(share.any(axis=1, keepdims=True), share * (some > 0), fastest)  # shorter than LPs can see
            meant[housed] = share * (left[housed] / (share * some).sum(axis=1))[:, None]
        slowest = np.where(b.spread > 0, b.spread, np.inf).min(axis=1)
        needs = np.where(meant.any(axis=1), meant.sum(axis=1), left / slowest)
        return rate, needs, meant, max(T, float(needs.max()))
