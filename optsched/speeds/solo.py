"""The solo time of a job: how long it takes alone on this cluster, on the best placement that there is.

`optsched.speeds.duration.seconds_alone` is what bounds may count on: no placement is faster, but none need be as fast. Here
every time is that of a placement. Durations: themselves. Tables: the best of one node, and of several with the rate of the
slowest type used. Scaling profiles: the fastest split of the gang. Tasks: one node where one holds the gang, else an
all-reduce an iteration. Stage profiles: every mapping of replicas to nodes but those that are certainly no better
(`best_pace`); where these are too many, the bound stands in for the time, and `SoloTimes.exact` says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optsched.problem.arrays import Bools, Floats
from optsched.problem.instance import Instance


@dataclass(frozen=True, eq=False)
class SoloTimes:
    """``seconds`` f64[n] alone; where ``exact`` bool[n] is false, no placement is faster and perhaps none as fast."""

    seconds: Floats
    exact: Bools


def solo_times(instance: Instance) -> SoloTimes:
    """The solo times of all jobs, for their own gangs.

    Complexity O(n), O(T log T) for each class of jobs at table rates, and a search of at most `solo_mapping.TRIED` mappings
    for each different (profile, nodes it may use), which is remembered between calls. `InputError` as `seconds_alone`.
    """
    seconds, exact = np.zeros(instance.n), np.ones(instance.n, dtype=np.bool_)
    for speeds in instance.speeds:
        seconds[speeds.jobs], exact[speeds.jobs] = speeds.solo()
    return SoloTimes(seconds, exact)
