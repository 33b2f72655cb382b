"""No job completes before its release plus its time alone: the bound of the schedule in which no job waits.

**Problem**: sum w_j C_j, sum w_j (C_j - r_j), sum w_j max(C_j - d_j, 0), the unweighted forms, C_max, max (C_j - r_j),
max (C_j - r_j) / d_j with d_j the flow time on an equal share (`optsched.problem.fair_share`), and from above max sum
w_j N_j / (C_j - r_j), N_j the work (iterations, or seconds); every class of schedules.
**Bound**: let e_j be the fewest seconds that the class allows from j's release to its completion: those of its gang on
the best placement, also if a partner on its GPUs slows it down; of copies on all GPUs at once; of an elastic job at its
best rate; of the path of a job with tasks. The bound is ``sum w_j max(0, r_j + e_j - c_j)`` with c_j = 0, r_j or the
due date, exact in the float64 data; ``max (r_j + e_j)``, ``max e_j`` or ``max e_j / d_j``, with the job that attains
it; ``sum w_j N_j / e_j``, terms rounded up to multiples of 2**-100.
**Proof**: C_j >= r_j + e_j, every term of a cost is nondecreasing in C_j, and that of utility is nonincreasing.
**Guarantee** none: with many jobs at once the optimum may be larger by any factor. **Complexity** O(n).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optsched.bounds.certificate import Proof
from optsched.bounds.relaxation import Relaxed, Theorem, theorem
from optsched.bounds.sum_costs import FAIR, LARGEST_FLOW, MAKESPAN, SUMS, UTILITY, two_sum
from optsched.problem.arrays import Floats
from optsched.problem.fair_share import fair_flow_times
from optsched.problem.objectives import GAIN_BITS

MAXIMA = (MAKESPAN, LARGEST_FLOW, FAIR)


def build(relaxed: Relaxed, objective: str) -> Proof | None:
    """Return the proof that every job takes its seconds alone.

    Parameters
    ----------
    relaxed
        The relaxed instance.
    objective
        Name of the objective.

    Returns
    -------
    Proof | None
        The value, and as data the flow constant for flow times or the critical job for maxima; None for utility if a
        job takes no time.
    """
    if objective == FAIR:
        return _slowest(relaxed)
    if objective in MAXIMA:
        return _last(relaxed, relaxed.instance.arrival if objective == MAKESPAN else np.zeros(relaxed.instance.n))
    if objective == UTILITY:
        return (_gained(relaxed), {}) if bool((relaxed.alone > 0).all()) else None
    costs = relaxed.costs(objective)
    return costs.alone(costs.weight), costs.data()


def _last(relaxed: Relaxed, begin: Floats) -> tuple[Fraction, dict[str, Any]]:
    instance = relaxed.instance
    if not instance.n:
        return Fraction(0), {"job": None}
    # rounding is monotone: the largest sum is among those whose rounded sum is largest, and there the error decides
    end, error = two_sum(begin, relaxed.alone)
    last = np.flatnonzero(end == end.max())
    critical = int(last[np.argmax(error[last])])
    return Fraction(float(end[critical])) + Fraction(float(error[critical])), {"job": instance.ids[critical]}


def _slowest(relaxed: Relaxed) -> tuple[Fraction, dict[str, Any]]:
    pairs = zip(relaxed.alone.tolist(), fair_flow_times(relaxed.instance).tolist(), strict=True)
    ratios = [Fraction(e) / Fraction(d) for e, d in pairs]
    worst = max(ratios, default=Fraction(0))
    return worst, {"job": relaxed.instance.ids[ratios.index(worst)] if ratios else None}


def _gained(relaxed: Relaxed) -> Fraction:
    rows = zip(relaxed.instance.weight.tolist(), relaxed.instance.work.tolist(), relaxed.alone.tolist(), strict=True)
    scaled = sum(-int(-Fraction(w) * Fraction(work) * 2**GAIN_BITS // Fraction(p)) for w, work, p in rows)
    return Fraction(scaled, 2**GAIN_BITS)


theorem(Theorem("alone", (*SUMS, *MAXIMA, UTILITY), "every C_j >= r_j + seconds alone", build))
