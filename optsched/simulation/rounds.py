"""Rounds as a service: a policy that uses them is asked only at multiples of its ``round`` after the first arrival.

Who arrives at the instant of one (`optsched.simulation.next_event`) is in it. Where nothing runs after a decision,
the next one is taken when another job has come.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optsched.errors import InputError, SimulationError, check_legal
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.simulation.next_event import next_tick
from optsched.simulation.policy import Use
from optsched.speeds.duration import paces
from optsched.speeds.goodput import Goodputs

MOST_ROUNDS = 1e6  # of the longest job alone: every round is played
LIVELOCK_LIMIT = 1000  # rounds, or restarts if these are longer, in which nobody works


class Rounds:
    """When a policy is asked next. ``length`` seconds; ``restart``: of a job that changes its GPUs, at most."""

    def __init__(self, policy: Any, name: str, instance: Instance, uses: frozenset[Use]) -> None:
        self.name, self.length = name, float(policy.round)
        self.restart = float(np.fmax(instance.restart, getattr(policy, "restart", 0.0)).max(initial=0.0))
        legal = "a finite number of seconds > 0"
        check_legal(0 < self.length < math.inf, f"{self.name}: round", policy.round, legal)
        longest, job = _longest(instance, Use.WIDTHS in uses)
        require_rounds(self.name, self.length, longest + self.restart, job)
        self._first = float(instance.arrival.min(initial=math.inf))
        self._next = math.inf
        self._fruitless = 0

    def begins(self, now: float) -> bool:
        """Does a round begin at the instant of ``now``?"""
        return float(next_tick(now, self._first, self.length)) <= now

    def waits(self, now: float, *, news: bool) -> float:
        """When it is asked next, between two rounds; ``news``: jobs have come."""
        if news and self._next == math.inf:
            self._next = float(next_tick(now, self._first, self.length))
        return self._next

    def asked(self, now: float, *, busy: bool) -> float:
        """When it is asked next, after a decision at ``now`` that left GPUs ``busy`` or none."""
        k = round((now - self._first) / self.length)
        self._next = self._first + (k + 1) * self.length if busy else math.inf
        return self._next

    def watch(self, now: float, paid: Floats) -> None:
        """`SimulationError` where all jobs have been moved again and again before any had worked: ``paid`` of who runs."""
        self._fruitless = self._fruitless + 1 if paid.size and (paid >= now).all() else 0
        if self._fruitless * self.length > LIVELOCK_LIMIT * max(self.length, self.restart):
            raise SimulationError(
                f"policy {self.name} at {now:g} s after the first arrival: for {self._fruitless:,} rounds of "
                f"{self.length:g} s no job has worked: its GPUs change before its restart of {self.restart:g} s is over"
            )


def require_rounds(name: str, length: float, longest: float, job: str = "") -> None:
    """`InputError` where a job of ``longest`` seconds alone has more than `MOST_ROUNDS` of them."""
    if longest / length > MOST_ROUNDS:
        legal = f"at least {longest / MOST_ROUNDS:.3g} s: a run of at most {MOST_ROUNDS:g} rounds"
        what = "too short for these jobs" if not job else f"too short for job {job!r} of {longest:g} s"
        raise InputError(what, field=f"{name}: round", value=length, legal=legal)


def require_rounds_of(instance: Instance, policy: Any, name: str) -> None:
    """The same, of a policy that keeps rounds of its own and says so (``plays_rounds``): before it plays them all.

    One that sleeps while all jobs have the best GPUs (``sleeps``) plays them where the long jobs do not fit together.
    """
    if not getattr(policy, "plays_rounds", False):
        return
    long = instance.work * paces(instance)[0] / policy.round > MOST_ROUNDS
    if not getattr(policy, "sleeps", False) or instance.gpus[long].sum() > instance.cluster.gpus:
        require_rounds(name, policy.round, *_longest(instance, any_width=False))


def _longest(instance: Instance, any_width: bool) -> tuple[float, str]:
    # Seconds of the longest job alone at its fastest, and which it is.
    alone = instance.work * paces(instance)[0]
    if any_width:
        goodputs = Goodputs(instance)
        best = [float(goodputs.table(j).max(initial=0.0)) for j in range(instance.n)]
        alone = np.array([w / v if v > 0 else 0.0 for w, v in zip(instance.work.tolist(), best, strict=True)])
    j = int(np.argmax(alone)) if instance.n else -1
    return (float(alone[j]), instance.ids[j]) if instance.n else (0.0, "")
