"""Prices of a cell by round: requests pay for the cells that they hold, from the start that is the cheapest for them.

**Problem**: requests in rounds of length 1, sums of (weighted) completion or flow times.
**Bound**: for any prices pi_t >= 0 of a cell in round t, 0 after the last one that is stated,

    sum_i min over k >= a_i of [ w_i (k + o_i - c_i) + sum_j (s_i + j) pi_{k + j} ]  -  M sum_t pi_t.

**Proof**: at most M cells are used in a round, so requests pay at most the last sum; executions that are thrown out only pay
more. It suffices to look at k up to the last priced round, since w_i >= 0. Integers after scaling, so the bound is exact.
**Relations**: the best prices are the dual of the linear relaxation of the integer program of Jaillet et al.
(arXiv 2502.07115, equations 1 to 4); any solver's duals will do, also unfinished ones (`priced_certificate`).
**Complexity** of the bound O(n T) for T rounds; of the search a linear program with o_i entries for every start.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import Certificate, register_kind
from optsched.bounds.proof import prove
from optsched.bounds.sum_costs import COMPLETION, FLOW, sum_costs
from optsched.classes.kv_cache.problem.requests import Requests, requests_of
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance

KIND, BITS = "kv-priced", 40  # prices are multiples of 2^-BITS
FEW, MANY = 20_000, 2_000_000  # entries of the linear program: solved with every run, and on request
OBJECTIVES, STATED = (*COMPLETION, *FLOW), "prices of a cell by round, from a linear program of {:,} entries or fewer"


def priced_certificate(instance: Instance, objective: str, prices: Floats, kind: str = KIND) -> Certificate:
    """Return the certificate of given prices.

    Parameters
    ----------
    instance
        Requests and one worker, rounds of length 1.
    objective
        Sum of (weighted) completion or flow times.
    prices
        Price of a cell in every round from the first arrival on, f64[T]; negative ones count as 0.
    kind
        Kind of the certificate: that of a bound which chooses such prices.
    """
    local, unit = instance.relative, 1 << BITS
    requests, costs = requests_of(local), sum_costs(local, objective)
    whole = np.rint(np.ldexp(np.maximum(np.nan_to_num(prices), 0.0), BITS))
    p = np.trim_zeros(whole, "b").astype(np.int64).astype(object)
    sums, moments = (np.array([0, *np.cumsum(x)], dtype=object) for x in (p, np.arange(1, p.size + 1) * p))
    value, known = Fraction(-requests.cells * int(sums[-1]), unit), dict[tuple[float, ...], Fraction]()
    columns = (requests.arrival, requests.prompt, requests.output, costs.weight, costs.counted)
    for a, s, o, w, c in zip(*(x.tolist() for x in columns), strict=True):
        key = a, s, o, w
        if key not in known:
            k = np.arange(int(a), max(int(a), p.size) + 1)
            first, end = np.minimum(k, p.size), np.minimum(k + o, p.size)
            paid = (s - k) * (sums[end] - sums[first]) + moments[end] - moments[first]
            up, down = Fraction(w).as_integer_ratio()
            known[key] = Fraction(min(unit * up * k.astype(object) + down * paid), unit * down)
        value += known[key] + Fraction(w) * (o - Fraction(c))
    data = {"prices": [int(x) for x in p], "unit": unit}
    return Certificate(local.digest, objective, "kv-cache", kind, value, data).on_clock(instance)


def _best_prices(requests: Requests, weight: Floats, most: int) -> Floats | None:
    from scipy.optimize import linprog  # imported where it is used: it takes longer than most runs
    from scipy.sparse import csr_array

    a, o, n = requests.arrival.astype(np.int64), requests.output, requests.n
    horizon = int(a.max() + o.max()) + 2 * int(requests.volume.sum()) // requests.cells
    while True:
        count = horizon - o - a + 1  # starts of every request
        if int((count * (o + 1)).sum()) > most:
            return None
        i = np.repeat(np.arange(n), count)
        k = np.arange(i.size) - np.repeat(np.cumsum(count) - count - a, count)
        column = np.repeat(np.arange(i.size), o[i])
        j = np.arange(column.size) - np.repeat(np.cumsum(o[i]) - o[i], o[i]) + 1
        held = csr_array((requests.prompt[i[column]] + j, (k[column] + j - 1, column)), shape=(horizon, i.size))
        once = csr_array((np.ones(i.size), (i, np.arange(i.size))), shape=(n, i.size))
        room = np.full(horizon, requests.cells)
        found = linprog(weight[i] * (k + o[i]), held, room, once, np.ones(n), method="highs")
        if found.status != 2:  # else it is infeasible
            return -found.ineqlin.marginals if found.status == 0 else None
        horizon *= 2


def _bound(name: str, most: int, *, strong: bool) -> None:
    stated = STATED.format(most)
    register_kind(name, objectives=OBJECTIVES, classes=("kv-cache",))(prove)

    @lower_bound(name, objectives=OBJECTIVES, classes=("kv-cache",), statement=stated, strong=strong)
    def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
        requests, weight = requests_of(instance), sum_costs(instance, objective).weight
        prices = None if requests.affine else _best_prices(requests, weight, most)
        return None if prices is None else priced_certificate(instance, objective, prices, name)


_bound(KIND, FEW, strong=False)
_bound(f"{KIND}-strong", MANY, strong=True)
