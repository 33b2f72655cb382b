"""Rounds by the makespan LP: of the work that is left, which part should run on which GPU type."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optsched.errors import OptschedError
from optsched.models.gavel_allocation import ActiveJobs
from optsched.policies import POLICIES
from optsched.policies.arrived_jobs import SHARE
from optsched.policies.gavel_allocations.level_search import LevelSearch
from optsched.policies.gavel_allocations.share_program import ShareProgram
from optsched.policies.gpu_pools import GpuPools
from optsched.policies.hadar_allocation import SLACK
from optsched.policies.round_grants import ANYWHERE, LATER, Bidders, Grant, placed
from optsched.policies.ties import leading
from optsched.policies.typed_rounds import TypedRounds
from optsched.problem.arrays import Floats, Ints
from optsched.simulation.policy import View

WAITED = 1  # rounds: a job that then would still need longer than T is critical and goes first
TINY = 1e-12  # instead of a weight of 0
MEANT = 1e-6  # of the time that a job needs: less of it on a pool is rounding of the LP


@POLICIES.register("makespan-rounds")
@dataclass
class MakespanRounds(TypedRounds):
    """In every round the makespan LP of the work that is left says which jobs run on which GPU type.

    The shares of the LP (`optsched.policies.makespan_rounds.SharePlan`) keep the total time near its bound. In what order
    jobs take them is free: jobs that decide the total time go first, then the others by Smith's rule, which keeps mean JCT
    low. With ``fair`` the order follows from due dates instead, which keep the largest x / T where it is, x the age of a job
    at its completion and T its seconds alone on a share 1/n of the cluster. A gang may have GPUs of several types and
    nodes; it then runs at its slowest.

    A round lasts ``round`` seconds; the first begins at an arrival in an idle cluster, and a round ends early when nothing
    runs. With ``fill`` GPUs that are free within a round go at once to jobs that wait, in the order of the rule; without it
    nothing is decided between two rounds. A job that keeps its GPUs pays no ``restart`` (seconds).

    No policy that was measured (docs/speeds.md) has a lower total time without resizing or forking jobs, nor a lower mean
    JCT where many jobs wait. There ``fair`` lowers the largest x / T; where few wait it lowers mean JCT. It costs total
    time. ``fill`` keeps GPUs busy: without it short jobs that come within a round wait for longer than they run.

    **Problem** P | r_j, size_j, pmtn, online-r_j | C_max, and sum w_j (C_j - r_j) or max x_j / T_j as far as the order goes;
    speeds by GPU type. **Knowledge** clairvoyant: remaining work and rates. **Guarantee** none known: the shares of a round
    know nothing of later arrivals.
    **Complexity** two linear programs of m T shares for m jobs and T types, and O(m T + m log m), a round.
    **Reference** this project. The LP is Gavel's makespan policy (Narayanan et al., OSDI 2020), rounds on mixed types are
    Hadar's (Sultana et al., IPDPS 2024).
    """

    fair: bool = False

    name = "makespan-rounds"

    @property
    def measured_by(self) -> str:
        """The weight of a job for Smith's rule, its seconds on a share of the cluster for due dates."""
        return SHARE if self.fair else "jct"

    def begin(self, view: View) -> None:
        """Forget the last run.

        Parameters
        ----------
        view
            The view of the new run.
        """
        super().begin(view)
        self._plan = SharePlan(self._pools, self.fair)

    def grants(self, jobs: Ints, bidders: Bidders, pools: GpuPools, begins: bool) -> list[Grant]:
        """Return who runs where: by the LP at the beginning of a round, within one by urgency alone.

        Parameters
        ----------
        jobs
            Numbers of the jobs, i64[m].
        bidders
            The same jobs with what counts for a round.
        pools
            Free GPUs, and those that the jobs hold.
        begins
            True at the beginning of a round.
        """
        if begins:
            order, pool = self._plan.plan(jobs, bidders, self.round)
        else:
            order, pool = self._plan.by_urgency(bidders), np.full(jobs.size, LATER)
        return placed(bidders, pools, self.round, order, pool, self.fill)


class SharePlan:
    """The shares of time on every pool by the makespan LP, solved again in every round from its last basis.

        min T   s.t.  sum_r x_jr y_jr >= left_j,  sum_r y_jr <= T (all j),  sum_j W_j y_jr <= c_r T (all r),  y >= 0

    Of the optimal shares those of least GPU time are taken, by a second LP: min sum_jr W_j y_jr at that T. Gangs larger than
    every pool have no share. `optsched.models.hadar_makespan` has this LP (``single``) as a formulation.

    With prices l_r of a GPU-second and u_j of a unit of work, its dual, a job has y_jr > 0 only where its payoff
    x_jr u_j - W_j l_r is the largest that it can have. So the shares are what these prices would sell, and they also say
    who runs where payoffs are equal, as those of all jobs but the critical ones are (0). No price needs to be computed.

    ``scale`` of the bidders is their weight. With ``fair`` the shares are the same and the order is another one. R is the
    largest (age + seconds left at best) / T_j that any job has come to, T_j its ``scale``, the seconds on a share 1/n of the
    cluster. Nobody is served better for being below R, so a job is due R T_j after its arrival, and the earliest due date is
    first: the rule that keeps a ratio on one machine if any rule does (Bender et al. 1998).
    """

    def __init__(self, pools: GpuPools, fair: bool = False) -> None:
        self._pools, self._fair, self._worst = pools, fair, 0.0
        self._search = LevelSearch(pools.capacity.astype(np.float64))
        self._thrift = ShareProgram(pools.capacity.astype(np.float64), total=True)

    def plan(self, ids: Ints, b: Bidders, length: float) -> tuple[Ints, Ints]:
        """Return the order of service and the pool of every job in a round.

        A job that ends within the round on the GPUs that it has keeps them. For fairness the others go by due dates. Else,
        if the longest job alone decides T, jobs that could not wait `WAITED` rounds and end by T are first, the longest
        first; then the others by Smith's rule, the least GPU time for a unit of weight first: they have time, and mean JCT
        gains. In this order a job keeps its pool if it has time left to spend there or would gain nothing by moving, else
        it gets the pool where it has most. A gang larger than every pool takes what is left of several.

        Parameters
        ----------
        ids
            Numbers of the jobs, i64[m].
        b
            The same jobs with what counts for a round.
        length
            Seconds of the round.

        Returns
        -------
        tuple of i64[m], i64[m]
            Positions in the order of service; pools, or `ANYWHERE` or `LATER`.

        Notes
        -----
        **Complexity** O(m P + m log m) for P pools, and two LPs.
        """
        rate, needs, meant, T = self._times(ids, b, length)
        critical = (needs > T - WAITED * length) & (needs.max() * (1 + MEANT) >= T)  # else capacity alone decides T
        first = np.where(critical, -needs, needs * b.gang / np.maximum(b.scale, TINY))
        if self._fair:
            first, meant = self._due(b, rate, needs, meant)
            critical[:] = True
        held = [{int(self._pools.pool[node]) for node, _ in where} for where in b.held]
        present = np.array(
            [pools.pop() if len(pools) == 1 else LATER for pools in held]
        )  # the one pool of what it holds
        present_rate = rate[np.arange(present.size), np.maximum(present, 0)]
        staying = np.where(present < 0, np.inf, b.left / np.maximum(present_rate, TINY))
        ends = staying <= length
        order = np.lexsort((np.arange(needs.size), -b.gang, leading(first), ~critical, ~ends))
        stock, chosen = self._pools.capacity.copy(), np.full(needs.size, LATER)
        for j in order.tolist():
            if not stock.any():
                break
            gang, may = b.gang[j], (meant[j] > MEANT * needs[j]) & (stock >= b.gang[j])
            if may.any() or ends[j]:
                pool = int(np.where(may, meant[j], -1.0).argmax())
                stays = present[j] >= 0 and stock[present[j]] >= gang
                stays = stays and (ends[j] or may[present[j]] or staying[j] <= b.restart[j] + b.left[j] / rate[j, pool])
                chosen[j] = present[j] if stays else pool
                stock[chosen[j]] -= gang
            elif not meant[j].any():
                usable = np.where(b.spread[j] > 0, stock, 0)
                if usable.sum() >= gang:
                    chosen[j] = ANYWHERE
                    stock -= np.diff(np.minimum(np.cumsum(usable), gang), prepend=0)
        return order, chosen

    def by_urgency(self, b: Bidders) -> Ints:
        """Return the order of jobs that wait within a round, i64[m]: by Smith's rule, for fairness by due dates.

        Parameters
        ----------
        b
            The waiting jobs.
        """
        alone = b.left / np.maximum(b.together, b.spread).max(axis=1)
        first = self._worst * b.scale - b.age if self._fair else alone * b.gang / np.maximum(b.scale, TINY)
        return np.lexsort((np.arange(alone.size), leading(first)))

    def _due(self, b: Bidders, rate: Floats, needs: Floats, meant: Floats) -> tuple[Floats, Floats]:
        """Return the seconds until every job is due, f64[m], and its seconds on each pool, f64[m, P], for fairness.

        A job that would be late on all pools that the LP means for it takes the fastest with GPUs enough.
        """
        alone = b.left / np.maximum(b.together, b.spread).max(axis=1)
        self._worst = max(self._worst, float(((b.age + alone) / b.scale).max()))
        due = self._worst * b.scale - b.age
        in_time = np.where(b.left[:, None] <= due[:, None] * rate, meant, 0.0)
        fastest = rate.max(axis=1, keepdims=True)
        late = ~in_time.any(axis=1, keepdims=True) & (fastest > 0)
        return due, np.where(late, needs[:, None] * rate / np.where(late, fastest, 1.0), in_time)

    def _cheapest(self, jobs: ActiveJobs, share: Floats, T: float) -> Floats:
        # Of the shares that reach T those of least GPU time: where one long job needs T, others go to where they are fast.
        fastest = jobs.rate.max(axis=1)
        slots = self._thrift.open(jobs.ids.tolist(), jobs.rate / fastest[:, None], jobs.gang.astype(np.float64))
        self._thrift.reward(slots, -np.broadcast_to(jobs.gang[:, None], jobs.rate.shape).astype(np.float64))
        self._thrift.demand(slots, jobs.left / fastest / (T * (1 + MEANT)))
        try:
            solution = self._thrift.solve(slots)
        except OptschedError:  # lost on its last basis: the next round begins from none
            self._thrift, solution = ShareProgram(self._thrift.capacity, total=True), None
        return share if solution is None else solution[0]

    def _times(self, ids: Ints, b: Bidders, length: float) -> tuple[Floats, Floats, Floats, float]:
        """Return the rate on each pool, f64[m, P], the seconds needed, f64[m], of these on each pool, f64[m, P], and T.

        A gang that is larger than each pool has no pool.
        """
        pools, best = self._pools, np.maximum(b.together, b.spread)
        left = np.maximum(b.left, SLACK * length * best.max(axis=1))  # what rounding has left is not nothing
        rate = np.where(b.gang[:, None] <= pools.largest, b.together, b.spread)
        rate = np.where(b.gang[:, None] <= pools.capacity, rate, 0.0)
        meant, T = np.zeros_like(rate), 0.0
        housed = np.flatnonzero(rate.any(axis=1))
        if housed.size:
            rates, unused = rate[housed], np.full(housed.size, np.nan)
            jobs = ActiveJobs(ids[housed], rates, b.gang[housed], unused, unused, left[housed])
            share, T = self._search.least(jobs, np.zeros(housed.size), np.ones(housed.size))
            share = self._cheapest(jobs, share, T)
            fastest = np.arange(rate.shape[1]) == rates.argmax(axis=1)[:, None]
            share = np.where(share.any(axis=1, keepdims=True), share * (rates > 0), fastest)  # shorter than LPs can see
            meant[housed] = share * (left[housed] / (share * rates).sum(axis=1))[:, None]
        slowest = np.where(b.spread > 0, b.spread, np.inf).min(axis=1)
        needs = np.where(meant.any(axis=1), meant.sum(axis=1), left / slowest)
        return rate, needs, meant, max(T, float(needs.max()))
