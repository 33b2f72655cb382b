"""Prices of a cell by round: requests pay for the cells that they hold, from the start that is the cheapest for them.

**Problem**: requests in rounds of length 1, sums of (weighted) completion or flow times.
**Bound**: for any prices pi_t >= 0 of a cell in round t, 0 after the last one that is stated,

    sum_i min over k >= a_i of [ w_i (k + o_i - c_i) + sum_j (s_i + j) pi_{k + j} ]  -  M sum_t pi_t.

**Proof**: at most M cells are used in a round, so requests pay at most the last sum; executions that are thrown out only pay
more. It suffices to look at k up to the last priced round, since w_i >= 0. Integers after scaling, so the bound is exact.
**Relations**: the best prices are the dual of the linear relaxation of the integer program of Jaillet et al.
(arXiv 2502.07115, equations 1 to 4); any solver's duals will do, also unfinished ones (`priced_certificate`).
**Complexity** of the bound O(n T) for T rounds; of the search a linear program with sum_i o_i entries for each start.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import Certificate, Proof
from optsched.bounds.proof import proved_bound
from optsched.bounds.sum_costs import COMPLETION, FLOW, sum_costs
from optsched.classes.kv_cache.bounds.cells_machine import needs_of
from optsched.classes.kv_cache.problem.requests import Requests, requests_of
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance

FEW, MANY = 20_000, 2_000_000  # entries of the linear program: solved with every run, and on request
BITS = 40  # prices are multiples of 2^-BITS
KIND = "kv-priced"


def priced_certificate(instance: Instance, objective: str, prices: Floats) -> Certificate:
    """Return the certificate of given prices.

    Parameters
    ----------
    instance
        Requests and one worker, rounds of length 1.
    objective
        Sum of (weighted) completion or flow times.
    prices
        Price of a cell in every round from the first arrival on, f64[T]; negative ones count as 0.
    """
    local = instance.relative
    return Certificate(local.digest, objective, "kv-cache", KIND, *_proof(local, objective, prices)).on_clock(instance)


def _proof(instance: Instance, objective: str, prices: Floats) -> Proof:
    requests, costs, unit = requests_of(instance), sum_costs(instance, objective), 1 << BITS
    whole = np.rint(np.ldexp(np.maximum(np.nan_to_num(prices), 0.0), BITS))
    p = np.trim_zeros(whole, "b").astype(np.int64).astype(object)
    t = np.arange(1, p.size + 1).astype(object)
    sums, moments = (np.concatenate([[0], np.cumsum(x)]).astype(object) for x in (p, t * p))
    value, known = -requests.cells * Fraction(int(sums[-1]), unit), dict[tuple[float, ...], Fraction]()
    rows = (requests.arrival, requests.prompt, requests.output, costs.weight, costs.counted)
    for a, s, o, w, c in zip(*(x.tolist() for x in rows), strict=True):
        key = a, s, o, w
        if key not in known:
            begin, last = int(a), max(int(a), p.size)
            k = np.arange(begin, last + 1)
            first, end = np.minimum(k, p.size), np.minimum(k + o, p.size)
            paid = (s - k) * (sums[end] - sums[first]) + moments[end] - moments[first]
            up, down = Fraction(w).as_integer_ratio()
            known[key] = Fraction(min(unit * up * k.astype(object) + down * paid), unit * down)
        value += known[key] + Fraction(w) * (o - Fraction(c))
    return value, {"prices": [int(x) for x in p], "unit": unit}


def best_prices(requests: Requests, weight: Floats, most: int) -> Floats | None:
    """Return the prices of the linear relaxation, f64[T]; None if it has more than ``most`` entries.

    Parameters
    ----------
    requests
        Requests, rounds of length 1.
    weight
        Weights, f64[n].
    most
        Largest number of entries.
    """
    from scipy.optimize import linprog  # imported where it is used: it takes longer than most runs
    from scipy.sparse import csr_array

    begin, o = requests.arrival.astype(np.int64), requests.output
    volume = int(needs_of(requests)[1].sum())
    horizon = int(begin.max() + o.max()) + 2 * volume // requests.cells
    while True:
        count = horizon - o - begin + 1
        if int((count * (o + 1)).sum()) > most:
            return None
        i = np.repeat(np.arange(requests.n), count)
        k = np.concatenate([np.arange(a, horizon - x + 1) for a, x in zip(begin.tolist(), o.tolist(), strict=True)])
        column = np.repeat(np.arange(i.size), o[i])
        j = np.arange(column.size) - np.repeat(np.cumsum(o[i]) - o[i], o[i]) + 1
        held = requests.prompt[i[column]] + j
        cells = csr_array((held, (k[column] + j - 1, column)), shape=(horizon, i.size))
        once = csr_array((np.ones(i.size), (i, np.arange(i.size))), shape=(requests.n, i.size))
        room, ones = np.full(horizon, requests.cells), np.ones(requests.n)
        found = linprog(weight[i] * (k + o[i]), A_ub=cells, b_ub=room, A_eq=once, b_eq=ones, method="highs")
        if found.status == 0:
            return np.asarray(-found.ineqlin.marginals, dtype=np.float64)
        if found.status != 2:
            return None
        horizon *= 2


def _search(instance: Instance, objective: str, most: int) -> Proof | None:
    requests = requests_of(instance)
    if requests.affine:
        return None
    costs = sum_costs(instance, objective)
    prices = best_prices(requests, costs.weight, most)
    return None if prices is None else _proof(instance, objective, prices)


@proved_bound(
    KIND,
    objectives=(*COMPLETION, *FLOW),
    classes=("kv-cache",),
    statement="prices of a cell by round, from a linear program",
)
def build(instance: Instance, objective: str, schedule_class: str) -> Proof | None:
    """Return the proof with the prices of the linear relaxation; None if it has more than 20,000 entries.

    Parameters
    ----------
    instance
        Requests and one worker.
    objective
        Name of the objective.
    schedule_class
        Not used: there is one class.
    """
    return _search(instance, objective, FEW)


@lower_bound(
    f"{KIND}-strong",
    objectives=(*COMPLETION, *FLOW),
    classes=("kv-cache",),
    statement="prices of a cell by round, from a linear program of up to two million entries",
    strong=True,
)
def build_strong(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
    """Return the certificate with the prices of a larger linear relaxation.

    Parameters
    ----------
    instance
        Requests and one worker.
    objective
        Name of the objective.
    schedule_class
        Not used: there is one class.
    """
    proof = _search(instance, objective, MANY)
    return None if proof is None else Certificate(instance.digest, objective, schedule_class, KIND, *proof)
