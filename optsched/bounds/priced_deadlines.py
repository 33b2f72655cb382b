"""Deadlines that jobs cannot all meet: each would pay for GPUs, by type and time, more together than all GPUs are worth.

**Problem**: every class of schedules of `optsched.bounds.priced_time` | max (C_j - r_j) / d_j, d_j the flow time under equal
sharing (`optsched.problem.fair_share`).
**Bound**: R, for prices omega_kt >= 0 of a second of a GPU of type t in cell k of time, 0 outside all cells, with

    sum_j m_j > sum_kt G_t length_k omega_kt,      m_j = the least that j's work costs within [r_j, r_j + R d_j].

**Proof**: in a schedule of value R or less, job j is done by r_j + R d_j. At every moment its jobs can be given parts of
their modes that do the work done then and pay for at most G_t GPUs of every type t (`optsched.bounds.modes`). With these
parts j pays m_j at least, and all pay what all GPUs are worth at most: there is no such schedule.
**What m_j is**: in a moment a job does more and more work along the lower hull of cost over speed, in one mode at a time, so
it cannot crowd into the cheapest moments. It buys its work where that is cheapest.
**Search**: prices are the duals of a program: all jobs meet their deadlines, in parts of their modes, and the largest load
of a type in a cell is least. A load above 1 is a proof; R rises to where it is 1. Then cells are cut where prices change.
**Relations**: `fair_share` has one price of a type at all times, and lets a job run on all GPUs at once. With cells
fine enough this is the optimum of all schedules of fluid gangs; of the makespan that is `makespan_prices`.
**Guarantee** none. **Complexity** some twenty linear programs with a variable for each job, cell and mode; up to 512 jobs.
**Reference**: Lawler and Labetoulle, J. ACM 25 (1978), the program for unrelated machines; deadlines by intervals.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import Certificate, ratio_text, register_kind
from optsched.bounds.modes import Modes
from optsched.bounds.priced_deadlines_search import Deadlines
from optsched.bounds.priced_time import (
    CLASSES,
    FEWEST_JOBS,
    MOMENT_BITS,
    MOST_JOBS,
    PRICE_BITS,
    floats,
    integers,
    modes_for,
)
from optsched.bounds.priced_time_search import PricedTime
from optsched.bounds.proof import prove
from optsched.bounds.sum_costs import FAIR
from optsched.problem.arrays import Floats
from optsched.problem.fair_share import fair_flow_times
from optsched.problem.instance import Instance

KIND = "priced-deadlines"


@lower_bound(KIND, objectives=(FAIR,), classes=CLASSES, statement="deadlines cost more than all GPUs, by type and time")
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """The certificate with the largest ratio found; data: it, moments and prices, charges if GPUs are shared.

    None for few and for very many jobs, and where no ratio above that of a job alone is found.
    """
    if not FEWEST_JOBS <= instance.n <= MOST_JOBS:
        return None
    fair, found = fair_flow_times(instance), []
    for modes, more in modes_for(instance, schedule_class):
        proof = _proof(modes, fair)
        if proof is not None:
            found.append((proof[0], {**proof[1], **more}))
    if not found:
        return None
    return Certificate(instance.digest, objective, schedule_class, KIND, *max(found, key=lambda pair: pair[0]))


def _proof(modes: Modes, fair: Floats) -> tuple[Fraction, dict[str, Any]] | None:
    """(R, data), with prices in integers; None where nothing is proved."""
    deadlines = Deadlines(modes, fair)
    best = deadlines.search()
    if best is None:
        return None
    moments, moment_bits = integers(best.moments, MOMENT_BITS)
    prices, price_bits = integers(best.price, PRICE_BITS)
    limit = deadlines.reach(PricedTime(floats(moments, moment_bits), floats(prices, price_bits)))
    if limit is None:
        return None
    data = {"limit": ratio_text(Fraction(limit)), "moments": moments.tolist(), "moment_exponent": moment_bits}
    data |= {"prices": {gpu: prices[:, t].tolist() for t, gpu in enumerate(modes.types)}, "price_exponent": price_bits}
    return Fraction(limit), data


register_kind(KIND, objectives=(FAIR,), classes=CLASSES)(prove)
