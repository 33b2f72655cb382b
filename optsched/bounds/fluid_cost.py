"""The least that any schedule of a job pays for its work by a time, when GPU time has prices that change over time.

A gang of one type t costs ``cost[i, t]`` a second in interval i and does ``rate[t]`` units of work; the job may split its
time among types as it likes and stop when it likes. (A gang of several types runs at its slowest; its devices used type
by type for the same time cost the same and do no less, so it is covered.) The least cost of ``work`` within the first
i + 1 intervals is a linear program; for every price v >= 0 of a unit of work its Lagrangian

    v * work - sum_{i' <= i} seconds[i'] * max(0, max_t (v * rate[t] - cost[i', t]))

is a lower bound. Here the best of several v. **Complexity** O(V R T), compiled.
"""

from __future__ import annotations

import numpy as np

from optsched.compiled import njit
from optsched.problem.arrays import Floats

SAFE = 1e-10  # relative to the terms added: what rounding cannot reach


@njit
def fluid_costs(work: float, seconds: Floats, rate: Floats, cost: Floats, prices: Floats) -> Floats:
    """A lower bound on the cost of ``work`` units by the end of each of R intervals, f64[R], rounded down.

    ``seconds`` f64[R] that the job may use of each, ``rate`` f64[T] units a second, ``cost`` f64[R, T] a second,
    ``prices`` f64[V] of a unit of work that are tried.
    """
    least = np.zeros(seconds.size)
    for v in prices:
        saved = 0.0
        for i in range(seconds.size):
            gain = 0.0
            for t in range(rate.size):
                gain = max(gain, v * rate[t] - cost[i, t])
            saved += seconds[i] * gain
            bound = v * work - saved
            if bound <= 0.0:
                break  # it only falls from here on
            least[i] = max(least[i], bound - SAFE * (v * work + saved))
    return least
