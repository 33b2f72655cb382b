"""Rounds on GPUs of several types: the part that is alike in `auction-rounds` and `makespan-rounds`."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from optsched.errors import check_legal
from optsched.policies.arrived_jobs import ArrivedJobs
from optsched.policies.gpu_pools import GpuPools, gpu_pools
from optsched.policies.round_clock import SHORTEST, RoundClock
from optsched.policies.round_grants import Bidders, Grant
from optsched.problem.arrays import Ints
from optsched.registry import Seconds
from optsched.simulation.policy import Decision, Knowledge, Policy, View, Wake


@dataclass
class TypedRounds(Policy):
    """A policy that deals all GPUs again in every round; a subclass says who gets which.

    A round lasts ``round`` seconds. The first begins at an arrival in an idle cluster, and a round ends early when nothing
    runs. With ``fill`` GPUs that are free within a round go to jobs that wait, at once; without it nothing is decided
    between two rounds. A job that keeps its GPUs pays no ``restart`` (seconds).
    """

    round: Seconds = 360.0
    restart: Seconds = 10.0
    fill: bool = True

    knowledge = Knowledge.CLAIRVOYANT
    uses = ("nodes",)
    plays_rounds = True
    sleeps = True

    def __post_init__(self) -> None:
        legal = f"a finite number of seconds >= {SHORTEST:g}"
        check_legal(SHORTEST <= self.round < math.inf, f"{self.name}: round", self.round, legal)
        legal = "a finite number of seconds >= 0"
        check_legal(0 <= self.restart < math.inf, f"{self.name}: restart", self.restart, legal)

    @property
    @abstractmethod
    def measured_by(self) -> str:
        """The utility of the jobs, by which they are compared (`optsched.policies.arrived_jobs`)."""

    @abstractmethod
    def grants(self, jobs: Ints, bidders: Bidders, pools: GpuPools, begins: bool) -> list[Grant]:
        """Return who gets which GPUs.

        Parameters
        ----------
        jobs
            Numbers of the jobs, i64[m].
        bidders
            The same jobs with what counts for a round.
        pools
            Free GPUs, and those that the jobs hold.
        begins
            True at the beginning of a round, false within one.
        """

    def begin(self, view: View) -> None:
        """Forget the last run.

        Parameters
        ----------
        view
            The view of the new run.
        """
        self._pools, self._clock = gpu_pools(view), RoundClock(self.round)
        self._asleep = False  # no round can better anything until a job comes or goes
        self._arrived = ArrivedJobs(len(view.speeds.together), self._pools, self.measured_by, self.round)

    def decide(self, view: View) -> list[Decision]:
        """Deal all GPUs at the beginning of a round, and those that are free within one.

        Parameters
        ----------
        view
            The present state.
        """
        now, active = view.now, view.active
        self._arrived.meet(view, active.size)
        asleep, self._asleep = self._asleep, False
        if not len(view.running):
            self._clock.stop()  # the round is over: else the cluster would idle while short jobs wait
            asleep = False
        if not active.size:
            return []
        within = asleep and self._clock.upcoming(now) > now  # slept through boundaries
        boundary = self._clock.boundary(now)
        if not within and self._clock.due(now):
            if self._arrived.about_to_end(view, boundary):
                return []
            grants = self.grants(active, self._arrived.bidders(view, active, self.restart), self._pools, True)
            decisions = self._changes(now, boundary, active, grants)
            end = self._clock.begin(now)
            self._asleep = len(grants) == active.size and self._arrived.at_best(active)
            return decisions if self._asleep else [*decisions, Wake(end)]
        decisions = self._filled(view, active) if self.fill else []
        return [*decisions, Wake(self._clock.upcoming(now))] if asleep else decisions

    def _filled(self, view: View, active: Ints) -> list[Decision]:
        waiting = active[~self._arrived.runs(active)]
        if not view.free_gpus or not waiting.size:
            return []
        free = replace(self._pools, size=view.free)
        grants = self.grants(waiting, self._arrived.bidders(view, waiting, self.restart), free, False)
        return self._changes(view.now, view.now, waiting, grants)

    def _changes(self, now: float, boundary: float, jobs: Ints, grants: list[Grant]) -> list[Decision]:
        kept = {grant.job for grant in grants if grant.kept}
        stopped = [int(jobs[k]) for k in np.flatnonzero(self._arrived.runs(jobs)).tolist() if k not in kept]
        started = [(int(jobs[grant.job]), grant.on) for grant in grants if not grant.kept]
        return self._arrived.moved(stopped, started, now, boundary)
