"""Settings of `backfill` that have names of their own in the literature."""

from __future__ import annotations

from dataclasses import dataclass

from optsched.policies import POLICIES
from optsched.policies.backfill import FewReservations, ReservingPolicy
from optsched.simulation.reservation_plan import EVERY


@POLICIES.register("easy")
@dataclass
class Easy(FewReservations):
    """EASY backfilling: a job starts out of turn if, by belief, the head of the queue waits no longer.

    It is ``backfill:depth=1``: the head has a reservation, made again at every decision (`backfill`).

    **Problem** P | r_j, size_j, online-r_j | sum (C_j - r_j). **Knowledge** user-limits; clairvoyant for
    ``walltime=exact``, predicted for a predictor.

    **Guarantee** none with a constant; not a list schedule, so not that of Garey and Graham (`backfill`). **Complexity**
    O(running jobs + queue x running jobs) a decision. **Reference** Lifka 1995; Mu'alem and Feitelson, TPDS 2001.

    Parameters
    ----------
    walltime
        What a job is believed to take: ``user`` (its walltime), ``exact`` (its duration), or a predictor.
    believe
        What is believed of a job beyond its believed end: ``next-second`` or ``double``.
    unlimited
        Seconds that a job without a walltime is believed to take.
    forecast
        Promise every job a start at its arrival, as if all jobs waited in the order of the queue.
    """

    name = "easy"
    _depth = 1


@POLICIES.register("easy-sjbf")
@dataclass
class EasyShortestFirst(FewReservations):
    """EASY-SJBF: EASY backfilling that considers the jobs behind the head the shortest first, by belief.

    It is ``backfill:depth=1,by=sjf``. With ``walltime=last-two,believe=double`` it is EASY++.

    **Problem** P | r_j, size_j, online-r_j | sum (C_j - r_j). **Knowledge** user-limits; clairvoyant for
    ``walltime=exact``, predicted for a predictor.

    **Guarantee** none with a constant (`backfill`). **Complexity** O(running jobs + queue x running jobs) a decision.
    **Reference** Tsafrir, Etsion and Feitelson, TPDS 2007.

    Parameters
    ----------
    walltime
        What a job is believed to take: ``user`` (its walltime), ``exact`` (its duration), or a predictor.
    believe
        What is believed of a job beyond its believed end: ``next-second`` or ``double``.
    unlimited
        Seconds that a job without a walltime is believed to take.
    forecast
        Promise every job a start at its arrival, as if all jobs waited in the order of the queue.
    """

    name = "easy-sjbf"
    _depth = 1
    _by_length = True


@POLICIES.register("conservative")
@dataclass
class Conservative(ReservingPolicy):
    """Conservative backfilling: every job is promised a start at its arrival, and no promise moves to a later time.

    It is ``backfill:depth=all``: when a job ends early, waiting jobs move to earlier intervals, in order of arrival.

    **Problem** P | r_j, size_j, online-r_j | sum (C_j - r_j). **Knowledge** user-limits; clairvoyant for
    ``walltime=exact``, predicted for a predictor.

    **Guarantee** one node, no job beyond its walltime: a job starts by the start promised at its arrival
    (`Run.notes`: ``promised``). No constant for flow times. **Complexity** O(queue^2) an early end, O(queue) an arrival.
    **Reference** Mu'alem and Feitelson, TPDS 2001.

    Parameters
    ----------
    walltime
        What a job is believed to take: ``user`` (its walltime), ``exact`` (its duration), or a predictor.
    believe
        What is believed of a job beyond its believed end: ``next-second`` or ``double``.
    unlimited
        Seconds that a job without a walltime is believed to take.
    """

    name = "conservative"
    _depth = EVERY
