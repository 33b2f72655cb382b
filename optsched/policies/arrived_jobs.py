"""The jobs that have arrived, for policies on several GPU types: rates by pool, utility, what they run on.

A utility falls with the completion of a job. Each is of one of two forms in the age x = f - a_j at the completion, which
compiled code knows: ``scale / x``, or with a ``span`` > 0 ``scale * max(0, 1 - x / span)``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from optsched.errors import check_legal
from optsched.policies.gpu_pools import GpuPools, PoolRates
from optsched.policies.hadar_allocation import SLACK
from optsched.policies.round_grants import Bidders, Where
from optsched.problem.arrays import Bools, Ints
from optsched.registry import near_matches
from optsched.simulation.policy import Decision, KnownJobs, Start, Stop, View

# throughput: w_j N_j / x, units of work a second (effective throughput). slowdown: w_j d_j / x, d_j the seconds alone, at
# least a round, which is what a job pays for: the same in a unit that is alike for all models. jct: w_j / x. deadline:
# w_j max(0, 1 - x / D_j). fairness: w_j T_j / x, T_j the seconds alone on a share 1/n of the cluster; share: T_j / x.
AUCTIONED = ("slowdown", "throughput", "jct", "deadline")
UTILITIES = (*AUCTIONED, "fairness")
SHARE = "share"  # for due dates, not for an auction
LOOSE = 10.0  # D_j of a job without a due date, in units of d_j: the loosest deadline of the public generator


def require_one_of(policy: Any, **legal: tuple[str, ...]) -> None:
    """Refuse parameters of a policy that are not among the legal words.

    Parameters
    ----------
    policy
        The policy.
    **legal
        Legal words by the name of the parameter.

    Raises
    ------
    InputError
        With near matches.
    """
    for name, words in legal.items():
        value = getattr(policy, name)
        check_legal(value in words, f"{policy.name}: {name}", value, near_matches(value, list(words)))


# A job ends at a boundary but for rounding if it ends this much later: SLACK of a round, which plans do not count, and
# some ulps of the clock; with what beginning late has cost it, but never more than a part of a round.
MOMENT = 2 * SLACK  # of a round
ULPS = 4
LONGEST = 0.25  # of a round


class ArrivedJobs:
    """The jobs that have arrived, in arrays over all n jobs; entries of jobs that have not arrived are zero.

    ``together``, ``spread`` f64[n, P] units of work a second; ``gang`` i64[n]; ``arrival``, ``scale``, ``span`` f64[n];
    ``restart`` f64[n] seconds that it costs to resume, nan where a job does not say; of active jobs ``rate`` f64[n] units of
    work a second (0: it does not run) and ``lost`` f64[n] seconds that late boundaries may have cost them.
    ``utility`` is one of `UTILITIES`, or `SHARE`; ``length`` is that of a round in seconds.
    """

    def __init__(self, n: int, pools: GpuPools, utility: str, length: float) -> None:
        count = pools.type.size
        self._rates: PoolRates | None = None
        self._pools, self._utility, self._length = pools, utility, length
        self.together, self.spread = np.zeros((n, count)), np.zeros((n, count))
        self.fastest, self.work, self.arrival = np.ones(n), np.zeros(n), np.zeros(n)
        self.scale, self.span, self.restart = np.zeros(n), np.zeros(n), np.zeros(n)
        self.gang: Ints = np.ones(n, dtype=np.int64)
        self.ran = np.zeros(n, dtype=bool)
        self._held: list[Where] = [()] * n  # of the active jobs, what they run on
        self.rate = np.zeros(n)  # of the active jobs, how fast they run
        self.lost = np.zeros(n)  # seconds that late boundaries and the rounding of the clock may have cost it

    def meet(self, view: View, active: int) -> None:
        """Write down the jobs that arrived now.

        Parameters
        ----------
        view
            The present state.
        active
            Number of jobs that share the cluster, the new ones included.
        """
        arrived = view.arrived
        if not arrived:
            return
        self._rates = self._rates or PoolRates(view, self._pools)
        for j, left in zip(arrived, view.left_of(np.array(arrived, dtype=np.int64)).tolist(), strict=True):
            self.together[j], self.spread[j] = self._rates.of(view, j)
            best = np.maximum(self.together[j], self.spread[j])
            self.fastest[j], self.work[j] = float(best.max()), left
            weight, due = view.weight(j), view.due(j) - view.arrival(j)
            self.scale[j], self.span[j] = self.terms(j, weight, due, view.gpus(j), active)
            self.gang[j], self.arrival[j], self.restart[j] = view.gpus(j), view.arrival(j), view.restart(j, math.nan)

    def terms(self, job: int, weight: float, due: float, gang: int, active: int) -> tuple[float, float]:
        """Return ``scale`` and ``span`` of the utility of a job, of which rates and work are known.

        Parameters
        ----------
        job
            Number of the job.
        weight
            Weight of the job.
        due
            Seconds from its arrival to its due date, inf if it has none.
        gang
            GPUs of its gang.
        active
            Number of jobs that share the cluster, the new ones included.
        """
        kind, work, rates = self._utility, float(self.work[job]), np.maximum(self.together[job], self.spread[job])
        alone = work / float(rates.max())
        if kind == "deadline":
            span = due if math.isfinite(due) else LOOSE * alone
            # A due date that has passed already: nothing is worth anything, as after any deadline.
            return weight if span > 0 else 0.0, max(span, 1e-300)
        if self.counts_active:
            share = self._pools.capacity / active / gang  # time on every pool, of a gang with 1/n of each
            share = share / max(1.0, float(share.sum()))
            return (1.0 if kind == SHARE else weight) * work / float(np.dot(share, rates)), 0.0
        return weight * {"throughput": work, "slowdown": max(alone, self._length), "jct": 1.0}[kind], 0.0

    def meet_all(self, jobs: KnownJobs) -> None:
        """Write down all jobs before a run, as `meet` does at their arrivals.

        Parameters
        ----------
        jobs
            Jobs of the run. Utilities that depend on the number of active jobs are left to `terms`.
        """
        rates, may = PoolRates(jobs, self._pools), jobs.eligible[:, self._pools.first][jobs.kind]
        self.together[:] = np.where(may, rates.together, 0.0)
        self.spread[:] = np.where(may, rates.spread, 0.0)
        best, self.work[:] = np.maximum(self.together, self.spread).max(axis=1, initial=0.0), jobs.work
        self.fastest[:], self.gang[:], self.arrival[:], self.restart[:] = best, jobs.gpus, jobs.arrival, jobs.restart
        alone = self.work / best
        if self._utility == "deadline":
            span = np.where(np.isfinite(jobs.due), jobs.due - jobs.arrival, LOOSE * alone)
            self.scale[:], self.span[:] = np.where(span > 0, jobs.weight, 0.0), np.maximum(span, 1e-300)
        elif not self.counts_active:
            unit = {"throughput": self.work, "slowdown": np.maximum(alone, self._length), "jct": 1.0}[self._utility]
            self.scale[:] = jobs.weight * unit

    @property
    def counts_active(self) -> bool:
        """True if the utility of a job depends on the number of active jobs at its arrival."""
        return self._utility in ("fairness", SHARE)

    def bidders(self, view: View, jobs: Ints, restart: float) -> Bidders:
        """Return active jobs with what counts for a round that begins now.

        Parameters
        ----------
        view
            The present state.
        jobs
            Numbers of the jobs, i64[m].
        restart
            Seconds that it costs to resume a job that does not say so itself.
        """
        of_job = self.restart[jobs]
        return Bidders(
            gang=self.gang[jobs],
            together=self.together[jobs],
            spread=self.spread[jobs],
            left=view.left_of(jobs),
            age=view.now - self.arrival[jobs],
            scale=self.scale[jobs],
            span=self.span[jobs],
            restart=np.where(self.ran[jobs], np.where(np.isnan(of_job), restart, of_job), 0.0),
            held=[self._held[j] for j in jobs.tolist()],
        )

    def moved(
        self, stopped: Iterable[int], started: Iterable[tuple[int, Where]], now: float, boundary: float
    ) -> list[Decision]:
        """Return the decisions by which some jobs stop and then others start.

        Parameters
        ----------
        stopped
            Jobs that stop.
        started
            Jobs that start, each with its GPUs.
        now
            The present, in seconds.
        boundary
            When the round was to begin, at most ``now``.
        """
        decisions: list[Decision] = []
        for job in stopped:
            self._held[job], self.rate[job] = (), 0.0
            decisions.append(Stop(job))
        for job, where in started:
            pool = [self._pools.pool[node] for node, _ in where]
            rate = self.together[job, pool[0]] if len(where) == 1 else min(self.spread[job, p] for p in pool)
            self.lost[job] += max(0.0, now - boundary) + ULPS * math.ulp(now)
            self.ran[job], self._held[job], self.rate[job] = True, where, rate
            decisions.append(Start(job, on=where))
        return decisions

    def runs(self, jobs: Ints) -> Bools:
        """Return which of these active jobs run, bool[m].

        Parameters
        ----------
        jobs
            Numbers of the jobs, i64[m].
        """
        return self.rate[jobs] > 0

    def about_to_end(self, view: View, boundary: float) -> bool:
        """Return true if a running job ends so soon after the boundary that only rounding kept it from being done.

        A round that began now would go on holding its GPUs, or stop it; and its completion is the next event.

        Parameters
        ----------
        view
            The present state.
        boundary
            When the round was to begin, in seconds, at most now.
        """
        now, length = view.now, self._length
        running = np.array(view.running, dtype=np.int64)
        if not running.size:
            return False
        moment = MOMENT * length + ULPS * math.ulp(max(now, length))
        until = boundary - now + np.minimum(moment + self.lost[running], LONGEST * length)  # seconds from now
        return bool((view.left_of(running) / self.rate[running] <= until).any())

    def at_best(self, jobs: Ints) -> bool:
        """Return true if all of these jobs run as fast as they ever can.

        Parameters
        ----------
        jobs
            Numbers of the jobs, i64[m].
        """
        return bool((self.rate[jobs] >= self.fastest[jobs]).all())
