"""Random alpha points: the order in which preemptive WSPT has done a part of each job that is drawn at random."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.alpha_schedule import AlphaQueue
from optsched.problem.arrays import Floats
from optsched.simulation.policy import Decision, Knowledge, View

APART, COMMON = 0.8999, 0.85106  # the largest alpha, of jobs that draw for themselves and of all together


@POLICIES.register("random-alpha-points")
@dataclass
class RandomAlphaPoints:
    """Random alpha points, not preemptive: ``alpha-points`` with a part alpha_j drawn for every job.

    Each has the density e^alpha / (e^delta - 1) on [0, delta], delta = 0.8999. The k-th job that comes has
    the k-th draw of a generator seeded with ``seed``. With ``common`` there is one draw for all jobs, delta = 0.85106.

    **Problem** P | r_j, size_j, online-r_j | sum w_j C_j. **Knowledge** clairvoyant.

    **Guarantee** 1 | r_j, online-r_j | sum w_j C_j: in expectation 1.6853 times the linear program, 1.7451 with ``common``;
    every run within what its own draws allow (`optsched.guarantees.alpha_points`). None for gangs. **Tight family**
    a long job of no weight, then a short one: 1.68524 in expectation (``late-short-job``). **Complexity** O(log n) an event.
    **Reference** Goemans, Queyranne, Schulz, Skutella and Wang, Single machine scheduling with release dates, SIAM J.
    Discrete Math. 15 (2002), 165-192.
    """

    seed: int = 0
    common: bool = False

    name: ClassVar[str] = "random-alpha-points"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT

    _queue: AlphaQueue = field(init=False, repr=False)
    _random: np.random.Generator = field(init=False, repr=False)
    _drawn: dict[int, float] = field(init=False, repr=False)  # alpha of those that have come, in their order

    def __post_init__(self) -> None:
        check_legal(self.seed >= 0, "random-alpha-points: seed", self.seed, "an integer >= 0")

    @property
    def largest(self) -> float:
        """delta."""
        return COMMON if self.common else APART

    def begin(self, view: View) -> None:
        """Forget the last run and its draws."""
        self._queue, self._random, self._drawn = AlphaQueue(), np.random.Generator(np.random.PCG64(self.seed)), {}

    def notes(self) -> dict[str, Floats]:
        """For audits: ``alpha`` of every job."""
        return {"alpha": np.array([self._drawn[job] for job in sorted(self._drawn)])}

    def decide(self, view: View) -> Iterator[Decision]:
        """Start whose alpha points have come."""
        yield from self._queue.decide(view, self._alpha_of)

    def _alpha_of(self, job: int) -> float:
        again = self.common and self._drawn
        self._drawn[job] = next(iter(self._drawn.values())) if again else self._draw()
        return self._drawn[job]

    def _draw(self) -> float:
        """By inversion, never 0."""
        return math.log1p((1.0 - float(self._random.random())) * math.expm1(self.largest))
