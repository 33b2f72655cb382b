"""Worst instance of 1 | r_j | sum w_j C_j for a queue order without preemption: a bilevel program as a single one.

The leader chooses an instance, the follower its best schedule. The ratio of the two values is a maximum over instances and
schedules at once, so the follower's choice belongs to the same program. The constraints describe what the policy does.
The optimum for the ratio a / b is above 0 if and only if some instance has a larger ratio (Dinkelbach).

Sets: jobs k = 1..n in the order in which the policy runs them, which is that of the rows, so that ties of keys are
resolved as the policy does; quantities q: duration, weight, arrival, each with its integer values v; cells: one value of
every quantity on which the key depends.
Data: P, W, R, the largest duration, weight and arrival; rank of the key of every cell, K the largest; a, b; H = R + n P, by
which everything is done in either schedule.
Variables: number[q, k] integer, in short p_k, w_k, r_k; equal[q, k, v] = 1 if it is v, for every q that the key depends on
and for weights that count; cell[k, c] = 1 if job k is of cell c; start[k] in the policy's schedule, begin[k] in the best;
waits[k] = 1 if the machine may be idle before start[k]; there[k, j] = 1 if job j > k may have come by start[k];
before[i, j] = 1 if i precedes j in the best schedule, for i < j, and 1 - before[j, i] else; work[i, j] = p_i before[i, j];
part[s, k, v] the completion (or flow) time of k in schedule s if its weight is v, else 0; value, best: integers.

    max  b value - a best                                                                                    (0)
    s.t. number[q, k] = sum_v v equal[q, k, v],  sum_v equal[q, k, v] = 1                                    (1)  named
         equal[q, k, v] = sum of cell[k, c] over the cells c with v                                          (2)  crossed
         start[k] >= r_k,  start[k] >= start[k-1] + p_{k-1}                                                  (3)  follows
         start[k] <= start[k-1] + p_{k-1} + R waits[k]                                                       (4)  busy
         start[k] <= r_j + H (1 - waits[k])                                           every j >= k           (5)  idle
         r_j >= start[k] + 1 - (H + 1) there[k, j]                                    every j > k            (6)  later
         rank_k <= rank_j + K (1 - there[k, j])                                       every j > k            (7)  first
         begin[j] >= r_j,  begin[j] >= begin[i] + p_i - H (1 - before[i, j])          every i != j           (8)  disjoint
         begin[j] >= sum_i work[i, j]                                                                        (9)  behind
         work[i, j] >= p_i - P (1 - before[i, j]),  work[i, j] >= before[i, j]        every i != j          (10)  pushed
         value = sum_kv v part[policy, k, v],  best = sum_kv v part[best, k, v]                             (11)  total
         sum_v part[s, k, v] = C_k (- r_k),  part[s, k, v] <= H equal[weight, k, v]                         (12)  shared

(9) and (10) are implied for integers; they make the relaxation strong. (6) uses that times are integers.

Optimum: above 0 if and only if an instance has a larger ratio than a / b. Size, with D values in the unary quantities and
c cells: columns O(n^2 + n (D + c)), rows O(n^2 + n D).
References: Dinkelbach, On nonlinear fractional programming, Management Science 13 (1967), 492-498; (8) Manne, Operations
Research 8 (1960), 219-223.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import numpy as np
import pyomo.environ as pyo

from optsched.models.fast_building import collector_paused
from optsched.problem.arrays import Ints

NAME = "worst-for-an-order"
QUANTITIES = ("duration", "weight", "arrival")
LEAST = (1, 1, 0)


@dataclass(frozen=True)
class QueueOrder:
    """A queue order over all jobs of a range, and the number ``jobs`` of them in the instance.

    ``rank`` i64[P, W, R + 1]: the rank, from 0, of the key of a job with duration p, weight w and arrival r at
    [p - 1, w - 1, r]; equal keys have equal ranks. ``weighted``: w_j counts in the objective; ``flow``: r_j counts too.
    """

    jobs: int
    rank: Ints
    weighted: bool
    flow: bool

    @property
    def used(self) -> tuple[int, ...]:
        """Positions of the quantities on which the rank depends."""
        return tuple(q for q, size in enumerate(self.rank.shape) if size > 1 and np.diff(self.rank, axis=q).any())

    def values(self, q: int) -> range:
        """Return the values of a quantity.

        Parameters
        ----------
        q
            Position of the quantity in `QUANTITIES`.
        """
        return range(LEAST[q], LEAST[q] + self.rank.shape[q])

    @property
    def horizon(self) -> int:
        """Time H = R + n P by which both schedules are over."""
        return self.values(2)[-1] + self.jobs * self.values(0)[-1]


@collector_paused
def build(order: QueueOrder) -> pyo.ConcreteModel:
    """Build the model with a = b = 1.

    The model has ``number[q, k]`` with q = 0, 1, 2 for p, w, r, ``value`` and ``best``.

    Parameters
    ----------
    order
        The queue order.
    """
    model = pyo.ConcreteModel(NAME)
    _jobs(model, order)
    _policy(model, order, _ranks(model, order))
    n, horizon, longest = order.jobs, order.horizon, order.values(0)[-1]
    jobs, pairs = range(n), list(permutations(range(n), 2))
    model.begin = pyo.Var(jobs, bounds=(0, horizon))
    model.precedes = pyo.Var([(i, j) for i, j in pairs if i < j], domain=pyo.Binary)
    model.work = pyo.Var(pairs, bounds=(0, longest))
    before = {(i, j): model.precedes[i, j] if i < j else 1 - model.precedes[j, i] for i, j in pairs}
    p, r = _column(model, 0, jobs), _column(model, 2, jobs)
    # (8)
    model.released = pyo.Constraint(jobs, expr={j: model.begin[j] >= r[j] for j in jobs})
    disjoint = {(i, j): model.begin[j] >= model.begin[i] + p[i] - horizon * (1 - before[i, j]) for i, j in pairs}
    model.disjoint = pyo.Constraint(pairs, expr=disjoint)
    # (9), (10)
    behind = {j: model.begin[j] >= sum(model.work[i, j] for i in jobs if i != j) for j in jobs}
    model.behind = pyo.Constraint(jobs, expr=behind)
    pushed = {(i, j): model.work[i, j] >= p[i] - longest * (1 - before[i, j]) for i, j in pairs}
    model.pushed = pyo.Constraint(pairs, expr=pushed)
    model.some = pyo.Constraint(pairs, expr={(i, j): model.work[i, j] >= before[i, j] for i, j in pairs})
    _totals(model, order)
    model.objective = pyo.Objective(expr=model.value - model.best, sense=pyo.maximize)  # (0)
    return model


def _jobs(model: Any, order: QueueOrder) -> None:
    jobs = range(order.jobs)
    limits = {(q, k): (order.values(q)[0], order.values(q)[-1]) for q in range(len(QUANTITIES)) for k in jobs}
    model.number = pyo.Var(list(limits), domain=pyo.Integers, bounds=limits)
    model.number[2, 0].setub(0)  # time counts from the first arrival
    unary = sorted({*order.used, *([1] if order.weighted else [])})
    model.equal = pyo.Var([(q, k, v) for q in unary for k in jobs for v in order.values(q)], domain=pyo.Binary)
    # (1)
    model.named = pyo.ConstraintList()
    for q, k in product(unary, jobs):
        model.named.add(sum(v * model.equal[q, k, v] for v in order.values(q)) == model.number[q, k])
        model.named.add(sum(model.equal[q, k, v] for v in order.values(q)) == 1)


def _ranks(model: Any, order: QueueOrder) -> list[Any]:
    """Return the rank of every job, linear in the cells."""
    used, jobs = order.used, range(order.jobs)
    cells = list(product(*(order.values(q) for q in used)))
    at = [np.array([c[used.index(q)] - LEAST[q] if q in used else 0 for c in cells], dtype=np.int64) for q in range(3)]
    rank = order.rank[tuple(at)].tolist()
    model.cell = pyo.Var([(k, c) for k in jobs for c in range(len(cells))], domain=pyo.NonNegativeReals)
    # (2)
    model.crossed = pyo.ConstraintList()
    for place, q in enumerate(used):
        for k, v in product(jobs, order.values(q)):
            those = [model.cell[k, c] for c, each in enumerate(cells) if each[place] == v]
            model.crossed.add(sum(those) == model.equal[q, k, v])
    return [sum(r * model.cell[k, c] for c, r in enumerate(rank) if r) for k in jobs]


def _policy(model: Any, order: QueueOrder, rank: list[Any]) -> None:
    # constraints for an order without preemption, in the order of its starts
    n, horizon, latest = order.jobs, order.horizon, order.values(2)[-1]
    jobs, after = range(n), [(k, j) for k in range(n) for j in range(k + 1, n)]
    model.start = pyo.Var(jobs, bounds=(0, horizon))
    model.waits = pyo.Var(jobs, domain=pyo.Binary)
    model.there = pyo.Var(after, domain=pyo.Binary)
    p, r = _column(model, 0, jobs), _column(model, 2, jobs)
    free = [0, *(model.start[k] + p[k] for k in jobs[:-1])]
    # (3), (4), (5)
    model.arrived = pyo.Constraint(jobs, expr={k: model.start[k] >= r[k] for k in jobs})
    model.follows = pyo.Constraint(jobs, expr={k: model.start[k] >= free[k] for k in jobs})
    model.busy = pyo.Constraint(jobs, expr={k: model.start[k] <= free[k] + latest * model.waits[k] for k in jobs})
    idle = {(k, j): model.start[k] <= r[j] + horizon * (1 - model.waits[k]) for k in jobs for j in jobs[k:]}
    model.idle = pyo.Constraint(list(idle), expr=idle)
    # (6), (7)
    later = {(k, j): r[j] >= model.start[k] + 1 - (horizon + 1) * model.there[k, j] for k, j in after}
    model.later = pyo.Constraint(after, expr=later)
    most = int(order.rank.max())
    if most:
        first = {(k, j): rank[k] <= rank[j] + most * (1 - model.there[k, j]) for k, j in after}
        model.first = pyo.Constraint(after, expr=first)


def _totals(model: Any, order: QueueOrder) -> None:
    jobs, heaviest, horizon = range(order.jobs), order.values(1)[-1], order.horizon
    most = order.jobs * horizon * (heaviest if order.weighted else 1)
    p, r = _column(model, 0, jobs), _column(model, 2, jobs)
    model.total, model.shared = pyo.ConstraintList(), pyo.ConstraintList()
    for name, starts in (("value", model.start), ("best", model.begin)):
        total = pyo.Var(domain=pyo.NonNegativeIntegers, bounds=(0, most))
        model.add_component(name, total)
        times = [starts[k] + p[k] - (r[k] if order.flow else 0) for k in jobs]
        if not order.weighted:
            model.total.add(total == sum(times))
            continue
        part = pyo.Var(jobs, order.values(1), bounds=(0, horizon))
        model.add_component(f"part_of_{name}", part)
        # (11), (12)
        model.total.add(total == sum(v * part[k, v] for k in jobs for v in order.values(1)))
        for k in jobs:
            model.shared.add(sum(part[k, v] for v in order.values(1)) == times[k])
            for v in order.values(1):
                model.shared.add(part[k, v] <= horizon * model.equal[1, k, v])


def _column(model: Any, q: int, jobs: range) -> list[Any]:
    return [model.number[q, k] for k in jobs]


def rows(model: Any, order: QueueOrder) -> tuple[tuple[int, int, int], ...]:
    """Return duration, weight and arrival of the jobs of a solved model, in the order in which the policy runs them.

    Parameters
    ----------
    model
        The solved model.
    order
        The queue order.
    """
    number = {key: round(variable.value) for key, variable in model.number.items() if variable.value is not None}
    return tuple((number[0, k], number.get((1, k), 1), number.get((2, k), 0)) for k in range(order.jobs))
