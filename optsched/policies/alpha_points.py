"""Alpha points: the order in which preemptive WSPT has done a part of each job, without preemption."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.alpha_schedule import AlphaQueue
from optsched.simulation.policy import Decision, Knowledge, View


@POLICIES.register("alpha-points")
@dataclass
class AlphaPoints:
    """Alpha points, not preemptive: a job queues up when preemptive WSPT, alongside, has done a part ``alpha`` of it.

    The queue is first in, first out, and its head blocks. For gangs preemptive WSPT runs on one machine as fast as the
    cluster, to which a job is g_j p_j / G seconds of work.

    **Problem** P | r_j, size_j, online-r_j | sum w_j C_j. **Knowledge** clairvoyant.

    **Guarantee** 1 | r_j, online-r_j | sum w_j C_j: max(1 + 1 / alpha, 1 + 2 alpha) times the linear program, which is 1 +
    sqrt(2) for alpha = 1 / sqrt(2), the default; 1.6853 in expectation for a well-chosen random alpha. None for gangs.
    **Tight family** none known here. **Complexity** O(log n) an event.
    **Reference** Goemans, Queyranne, Schulz, Skutella and Wang, Single machine scheduling with release dates, SIAM J.
    Discrete Math. 15 (2002), 165-192; Hall, Schulz, Shmoys and Wein 1997 for the order of the program itself.
    """

    alpha: float = math.sqrt(0.5)

    name: ClassVar[str] = "alpha-points"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT

    _queue: AlphaQueue = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_legal(0 < self.alpha <= 1, "alpha-points: alpha", self.alpha, "a number in (0, 1]")

    def begin(self, view: View) -> None:
        """Forget the last run."""
        self._queue = AlphaQueue()

    def decide(self, view: View) -> Iterator[Decision]:
        """Start whose alpha points have come."""
        yield from self._queue.decide(view, self._alpha_of)

    def _alpha_of(self, job: int) -> float:
        return self.alpha
