"""A price for every type of request, and the least cost of all that can follow a state at these prices.

**Relaxation.** Drop the demand that every request is served once, and charge its price lambda instead. Schedules may then
serve a type as often as they like, but each fits the cache in every round. A cheapest one is a shortest path over
(round, state), backwards in time, so ``sum_q lambda_q count_q + least cost`` bounds the optimum. That is far stronger than
the linear program over starts, where fractions of requests fill the cache: at 50 requests it is within .5 % of the optimum,
the linear program within 35 %.

**Horizon.** Completions after the largest lambda_q / weight_q cost more than they gain; leaving one out of a schedule leaves
a schedule. So rounds up to there are enough, and the bound holds for every horizon.

**Prices** come from a subgradient ascent. All is computed in integers, prices in units of 1 / ``scale``.

**Complexity** O(rounds x states x types) a step. **Reference** Lagrangian state-space relaxation: Tanaka, Fujikuma and
Araki, J. Sched. 12 (2009), for one machine; the states of a cache are derived here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optsched.classes.kv_cache.solvers.cell_states import CellStates, Types
from optsched.compiled import njit
from optsched.deadline import Deadline
from optsched.problem.arrays import Floats, Ints

FAR = 1 << 30  # what cannot be completed
FEW, FULL, NARROW = 12, 68, 200  # steps of the ascent: first, over all nodes, and over those that are open
SMALL = 40_000  # nodes
SLOW, SHRINK, KEEP = 8, 0.7, 0.6  # steps without gain until steps shrink, by this factor; part of the last direction
NARROWING = 0.01  # nodes of dearer schedules, relative to the bound, are closed after the first ascent
STALLED = 2e-4  # relative gain of ten steps below which the first ascent ends


@dataclass
class Ascent:
    """Prices of one search. ``rest`` i32[T + 1, S] is the least cost from every node on, `FAR` if it is closed.

    ``limit``: closed nodes are on no schedule with at most this cost; None: no node is closed.
    """

    states: CellStates
    types: Types
    scale: int
    price: Floats  # f64[Q], in units of cost
    rest: Ints
    bound: int = 0  # in units of 1 / scale
    limit: int | None = None
    nodes: Ints | None = None  # i32[nodes]: open states by round, from the last round on
    first: Ints | None = None  # i64[T + 2]: where those of a round begin

    @classmethod
    def begin(cls, states: CellStates, types: Types, price: Floats, value: int) -> Ascent:
        """Return an ascent from given prices.

        Parameters
        ----------
        states
            States of the cache.
        types
            Types of requests.
        price
            Prices to begin with, f64[Q].
        value
            Cost sum w C of a schedule.
        """
        return cls(states, types, max(1, min(100, (1 << 27) // max(value, 1))), price, np.zeros((0, 0), np.int32))

    @property
    def charged(self) -> Ints:
        """Prices in units of 1 / scale, i64[Q]."""
        return np.rint(self.price * self.scale).astype(np.int64)

    @property
    def base(self) -> int:
        """Sum of the prices of all requests, in units of 1 / scale."""
        return int((self.charged * self.types.count).sum())

    def last(self, slack: int) -> int:
        """Return the last round in which a request of a schedule can end.

        Parameters
        ----------
        slack
            Largest cost of the schedule above the bound, in units of 1 / scale.
        """
        return int(((self.charged + slack) // (self.types.weight * self.scale)).max()) + 1

    def evaluate(self, slack: int = 0) -> int:
        """Return the bound of the prices, in units of 1 / scale, and set ``rest``.

        Parameters
        ----------
        slack
            Makes room for later completions, as in `last`.
        """
        if self.nodes is None:
            rounds = self.last(slack) + 1
            if self.rest.shape[0] != rounds:
                self.rest = np.full((rounds, self.states.before.size), FAR, np.int32)
        nodes, first = (
            (np.zeros(0, np.int32), np.zeros(0, np.int64)) if self.first is None else (self.nodes, self.first)
        )
        _sweep(self.rest, *self.states, self.types.least, self.types.weight, self.charged, self.scale, nodes, first)
        bound = int(self.rest[-1, 0]) + self.base
        return bound if self.limit is None else min(bound, self.limit + 1)

    def climb(self, steps: int, target: int, deadline: Deadline) -> None:
        """Raise the bound.

        Parameters
        ----------
        steps
            Largest number of steps.
        target
            Value at which steps aim, in units of 1 / scale.
        deadline
            Time at which to stop.
        """
        best, length, since, moved = self.price.copy(), 1.0, 0, np.zeros(self.price.size)
        before, top = self.bound, target - self.scale  # costs are whole numbers
        for step in range(steps):
            bound = self.evaluate()
            used = np.zeros(self.price.size, np.int64)
            _trace(self.rest, *self.states, self.types.least, self.types.weight, self.charged, self.scale, used)
            missing = self.types.count - used
            if bound > self.bound or not self.bound:
                self.bound, best, since = bound, self.price.copy(), 0
            elif (since := since + 1) >= SLOW:
                self.price, length, since, moved = best.copy(), length * SHRINK, 0, np.zeros(self.price.size)
            if deadline.passed or not missing.any() or self.bound > top or self.bound == (self.limit or -1) + 1:
                break
            if self.nodes is None and step % 10 == 9:
                if self.bound - before <= STALLED * self.bound and step > 30:
                    break
                before = self.bound
            moved = missing + KEEP * moved
            push = max(target - bound, 1) / self.scale
            self.price = np.maximum(self.price + length * push / float((moved**2).sum()) * moved, 0)
        self.price = best
        self.evaluate()

    def open(self, limit: int) -> None:
        """Set ``rest`` for schedules up to a given cost; open all nodes if closed ones can be on such a schedule.

        Parameters
        ----------
        limit
            The cost, in units of 1 / scale.
        """
        if self.limit is not None and limit > self.limit:
            self.nodes = self.first = self.limit = None
            self.rest = np.zeros((0, 0), np.int32)
        if self.limit is None:
            self.evaluate(max(limit - self.bound, 0))

    def close(self, limit: int) -> None:
        """Close nodes that are on no schedule with at most a given cost.

        Parameters
        ----------
        limit
            The cost, in units of 1 / scale.
        """
        self.open(limit)
        old, begin = (np.zeros(0, np.int32), np.zeros(0, np.int64)) if self.first is None else (self.nodes, self.first)
        given = *self.states, self.types.least, self.types.weight, self.charged, self.scale, old, begin
        first = np.zeros(self.rest.shape[0] + 1, np.int64)
        _close(self.rest, *given, limit - self.base, np.zeros(0, np.int32), first)
        nodes = np.zeros(max(int(first[0]), 1), np.int32)
        _close(self.rest, *given, limit - self.base, nodes, first)
        self.nodes, self.first, self.limit = nodes, first, limit


def ascend(states: CellStates, types: Types, price: Floats, value: int, deadline: Deadline) -> Ascent:
    """Return good prices.

    Parameters
    ----------
    states
        States of the cache.
    types
        Types of requests.
    price
        Prices to begin with, f64[Q].
    value
        Cost sum w C of a schedule.
    deadline
        Time at which to stop.
    """
    ascent = Ascent.begin(states, types, price, value)
    top = value * ascent.scale
    ascent.climb(FEW, top, deadline)
    if ascent.rest.size <= SMALL:  # a search is quicker
        return ascent
    ascent.climb(FULL, top, deadline)
    ascent.close(min(top, int(ascent.bound * (1 + NARROWING))))
    for _ in range(2):
        if not deadline.passed:
            ascent.climb(NARROW // 2, min(top, int(ascent.bound * 1.003)), deadline)
            ascent.close(int(ascent.limit or 0))
    return ascent


# --- compiled -------------------------------------------------------------------------------------------------------------


@njit
def _sweep(rest, added, before, least, weight, price, scale, nodes, first):  # type: ignore[no-untyped-def]
    """Set ``rest``, in the order of rounds. Closed nodes are not touched."""
    far = FAR
    rest[0, :] = far
    rest[0, 0] = 0
    for t in range(1, rest.shape[0]):
        begin, end = 0, before.size
        if first.size:
            begin, end = first[t + 1], first[t]
        for k in range(end - 1, begin - 1, -1):
            x = nodes[k] if first.size else k
            best = rest[t - 1, before[x]]
            for q in range(price.size):
                y = added[x, q]
                if y < 0:
                    break
                if t >= least[q] and rest[t, y] < far:
                    best = min(best, rest[t, y] + weight[q] * t * scale - price[q])
            rest[t, x] = best


@njit
def _trace(rest, added, before, least, weight, price, scale, used):  # type: ignore[no-untyped-def]
    """Count how often a cheapest schedule serves every type."""
    t, x = rest.shape[0] - 1, 0
    while t > 0:
        if rest[t, x] == rest[t - 1, before[x]]:
            x = before[x]
            t -= 1
            continue
        for q in range(price.size):
            y = added[x, q]
            if y < 0:
                break
            if t >= least[q] and rest[t, y] < FAR and rest[t, y] + weight[q] * t * scale - price[q] == rest[t, x]:
                used[q] += 1
                x = y
                break


@njit
def _close(rest, added, before, least, weight, price, scale, old, begin, limit, nodes, first):  # type: ignore[no-untyped-def]
    """Collect the nodes on paths of at most ``limit``; with room for none of them, only count and keep ``rest``."""
    far, count, total = FAR, 0, before.size
    here, later = np.full(total, far, np.int64), np.full(total, far, np.int64)
    here[0] = 0
    for t in range(rest.shape[0] - 1, -1, -1):
        first[t + 1] = count
        later[:] = far
        low, high = 0, total
        if begin.size:
            low, high = begin[t + 1], begin[t]
        for k in range(low, high):
            x = old[k] if begin.size else k
            if here[x] >= far or rest[t, x] >= far or here[x] + rest[t, x] > limit:
                if nodes.size:
                    rest[t, x] = far
                continue
            if nodes.size:
                nodes[count] = x
            count += 1
            for q in range(price.size):
                y = added[x, q]
                if y < 0:
                    break
                if t >= least[q]:
                    here[y] = min(here[y], here[x] + weight[q] * t * scale - price[q])
            later[before[x]] = min(later[before[x]], here[x])
        here[:] = later
    first[0] = count
