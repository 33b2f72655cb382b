"""Prices of running jobs over time: gangs that fit together pay the most that any of them can, not what all GPUs cost.

**Problem**: rigid gangs alone on their GPUs, of one type or several | sum w_j C_j, sum w_j (C_j - r_j),
sum w_j max(C_j - d_j, 0), and the unweighted forms. Asked for (``strong``), since the search takes up to a minute.
**Bound**: cut time into C cells. For any prices omega_kt >= 0 of a second of a GPU of type t in cell k, and delta_jk >= 0 of
a second in which job j runs there, both 0 outside the cells that job j has prices for,

    sum_j m_j - sum_k length_k (sum_t G_t omega_kt + D_k),      D_k = max over sets S of gangs with sum_S n_j <= G of
                                                                     sum_{j in S} delta_jk,

m_j the least over all ways to run j alone of what it costs and pays: n_j omega_kt + delta_jk a second on type t.
**Proof**: take any schedule. A job on k_t GPUs of the types t takes parts k_t / n_j of its modes, which do no less work
(`optsched.bounds.modes`) and pay sum_t k_t omega_kt + delta_jk a second. The jobs that run at a moment of cell k are a
set S, so they pay at most sum_t G_t omega_kt + D_k. The rest is that of `optsched.bounds.priced_time`.
**Relations**: delta_jk = n_j omega_k makes D_k <= G omega_k: it is never less than `priced_time` on the same cells with as
many GPUs as gangs can fill. That lets a gang run on a part of its GPUs beside others; here 32 GPUs run whole or not at all,
and 40 free ones beside a gang of 64 are of no use to it. It is the Lagrangian dual of the LP over configurations: in every
cell a convex combination of sets of gangs that fit, for every job one of ways to run (with preemption).
**Method**: prices by GPU first; then ascent with momentum on the prices of jobs, over finer and finer cells where more gangs
want to run than fit (`priced_gangs_search`). Certificates hold prices and the minima m_j, rounded down; the verifier solves
the knapsacks, in integers, and holds each minimum against every moment at which the job may end, in fractions.
**Guarantee** none. **Complexity** O(P (G + T log P)) a step for P pairs of a job and a cell in which it may run.
**Reference**: knapsack duals of time-indexed programs: van den Akker, Hurkens, Savelsbergh, INFORMS J. Comput. 12 (2000);
for gangs, and with job prices of their own, derived here.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import GANG_CLASSES, Certificate, register_kind
from optsched.bounds.modes import modes_of_gangs
from optsched.bounds.priced_gangs_search import GangsToPrice, PricedGangs, best_priced_gangs
from optsched.bounds.priced_time import MINIMUM_BITS, MOMENT_BITS, SAFE, SAFE_TIME, floats, integers
from optsched.bounds.proof import prove
from optsched.bounds.sum_costs import SUMS, sum_costs
from optsched.problem.instance import Instance

KIND = "priced-gangs"
MOST_JOBS = 20_000
PRICE_BITS = 26  # of the largest price: as many as are worth their place in files


@lower_bound(
    KIND,
    objectives=SUMS,
    classes=GANG_CLASSES,
    statement="gangs that fit together pay for running, by time",
    strong=True,
)
def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """The certificate with the best prices found; None for no job, for very many, and where times are too far apart."""
    if not 0 < instance.n <= MOST_JOBS:
        return None
    gangs = GangsToPrice(sum_costs(instance, objective), modes_of_gangs(instance))
    found = best_priced_gangs(gangs)
    proof = None if found is None else proof_of(gangs, found)
    return None if proof is None else Certificate(instance.digest, objective, schedule_class, KIND, *proof)


def proof_of(gangs: GangsToPrice, found: PricedGangs) -> tuple[Fraction, dict[str, Any]] | None:
    """(bound, data) of any prices; None where numbers are too far apart for floats."""
    modes = gangs.modes
    moments, moment_bits = integers(found.moments, MOMENT_BITS)
    together, price_bits = integers(np.concatenate([found.price.reshape(-1), found.own]), PRICE_BITS)
    price, own = together[: found.price.size].reshape(found.price.shape), together[found.price.size :]
    at = PricedGangs(
        floats(moments, moment_bits), floats(price, price_bits), found.first, found.start, floats(own, price_bits)
    )
    least, largest = gangs.responses(at)
    if not np.isfinite(least + largest).all():
        return None
    dearest = float(together.max(initial=0))
    time = float(np.abs(at.moments).max()) * (
        gangs.costs.weight + (modes.most_gpus + 1) * float(np.ldexp(dearest, -price_bits))
    )
    least -= SAFE * (largest + np.abs(least)) + SAFE_TIME * time
    minima, minimum_bits = integers(least, MINIMUM_BITS - gangs.costs.weight.size.bit_length())
    # integers as floats: exact sums, as far below 2**53
    paid = gangs.worth(at, own.astype(np.float64)).astype(np.int64).astype(object)
    paid += (price.astype(object) * modes.capacity.astype(object)).sum(axis=1)
    spent = int((np.diff(moments.astype(object)) * paid).sum())
    value = sum(minima.tolist()) / Fraction(2) ** minimum_bits - spent / Fraction(2) ** (moment_bits + price_bits)
    rows = [own[a:b].tolist() for a, b in pairwise(found.start.tolist())]
    data = {"moments": moments.tolist(), "moment_exponent": moment_bits}
    data |= {"prices": {gpu: price[:, t].tolist() for t, gpu in enumerate(modes.types)}, "price_exponent": price_bits}
    data |= {"own_prices": [[k, row] for k, row in zip(found.first.tolist(), rows, strict=True)]}
    return value, data | {"minima": minima.tolist(), "minimum_exponent": minimum_bits}


register_kind(KIND, objectives=SUMS, classes=GANG_CLASSES)(prove)
