"""What it is worth to Hadar that a job finishes: utilities that fall with its completion, one value each arrival.

All are of one of two forms in the age x = f - a_j of a job at its completion, which compiled code knows:
``scale / x``, or with a ``span`` > 0 ``scale * max(0, 1 - x / span)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optsched.problem.arrays import Floats
from optsched.simulation.policy import View

# throughput: w_j N_j / x, units of work a second (effective throughput). slowdown: w_j d_j / x, d_j the seconds alone, at
# least a round, which is what a job pays for: the same in a unit that is alike for all models. jct: w_j / x. deadline:
# w_j max(0, 1 - x / D_j). fairness: w_j T_j / x, T_j the seconds alone on a share 1/n of the cluster; share: T_j / x.
UTILITIES = ("throughput", "slowdown", "jct", "deadline", "fairness")
SHARE = "share"  # where nobody bids
LOOSE = 10.0  # D_j of a job without a due date, in units of d_j: the loosest deadline of the public generator


@dataclass(frozen=True)
class UtilityTerms:
    """``scale`` and ``span`` of a job (see the module); ``kind`` one of `UTILITIES`."""

    scale: float
    span: float

    @staticmethod
    def of(
        kind: str, view: View, job: int, work: float, rates: Floats, capacity: Floats, active: int, length: float
    ) -> UtilityTerms:
        """At the arrival of ``job`` with ``work`` units; ``rates`` f64[P] its best rates, ``capacity`` GPUs of each pool.

        ``active``: jobs that share the cluster now, this one included; ``length`` of a round in seconds.
        """
        weight, alone = view.weight(job), work / float(rates.max())
        if kind == "deadline":
            due = view.due(job)
            span = due - view.arrival(job) if math.isfinite(due) else LOOSE * alone
            # A due date that has passed already: nothing is worth anything, as after any deadline.
            return UtilityTerms(weight if span > 0 else 0.0, max(span, 1e-300))
        if kind in ("fairness", SHARE):
            share = capacity / active / view.gpus(job)  # time on every pool, of a gang that has a 1/n share of each
            share = share / max(1.0, float(share.sum()))
            return UtilityTerms((1.0 if kind == SHARE else weight) * work / float(np.dot(share, rates)), 0.0)
        return UtilityTerms(weight * {"throughput": work, "slowdown": max(alone, length), "jct": 1.0}[kind], 0.0)
