"""A price for every type of request, and the least cost of all that can follow a state at these prices.

**Relaxation.** Drop the demand that every request is served once, and charge its price lambda instead. Schedules may then
serve a type as often as they like, but each fits the cache in every round. A cheapest one is a shortest path over
(round, state), backwards in time, so ``sum_q lambda_q count_q + least cost`` bounds the optimum. That is far stronger than
the linear program over starts, where fractions of requests fill the cache: at 50 requests it is within .5 % of the optimum,
the linear program within 35 %.

**Horizon.** Completions after the largest lambda_q / weight_q cost more than they gain; leaving one out of a schedule leaves
a schedule. So rounds up to there are enough, and the bound holds for every horizon.

**Prices** come from a subgradient ascent and cutting planes. All is computed in integers, prices in units of 1 / ``scale``.

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
AIM = 1.015  # times the bound: at that value subgradient steps aim
SLOW, SHRINK, KEEP = 8, 0.7, 0.6  # steps without gain until steps shrink, by this factor; part of the last direction
BOX, GROW, CLOSER = 3.0, 1.2, 0.97  # prices may change so much in a step; factors after a gain, and without one
NEAR = 0.3  # gain that is possible within the box, below which an ascent ends


@dataclass
class PriceAscent:
    """Prices of one search. ``rest`` i32[T + 1, S] is the least cost from every node on, `FAR` if there is no way."""

    states: CellStates
    types: Types
    scale: int
    price: Floats  # f64[Q], in units of cost
    rest: Ints
    bound: int = 0  # in units of 1 / scale

    @classmethod
    def begin(cls, states: CellStates, types: Types, price: Floats, value: int) -> PriceAscent:
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
        return int((self.charged * self.types.number).sum())

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
        rounds = self.last(slack) + 1
        if self.rest.shape[0] != rounds:
            self.rest = np.full((rounds, self.states.before.size), FAR, np.int32)
        types = self.types
        _sweep(self.rest, *self.states, types.least, types.weight, self.charged, self.scale)
        return int(self.rest[-1, 0]) + self.base

    def step(self) -> tuple[int, Ints]:
        """Return the bound of the prices, and how many requests of every type a cheapest schedule lacks."""
        bound, used = self.evaluate(), np.zeros(self.price.size, np.int64)
        _trace(self.rest, *self.states, self.types.least, self.types.weight, self.charged, self.scale, used)
        return bound, self.types.number - used

    def climb(self, steps: int, deadline: Deadline) -> None:
        """Raise the bound by subgradients, from far away.

        Parameters
        ----------
        steps
            Largest number of steps.
        deadline
            Time at which to stop.
        """
        best, length, since, moved = self.price.copy(), 1.0, 0, np.zeros(self.price.size)
        for _ in range(steps):
            bound, missing = self.step()
            if bound > self.bound or not self.bound:
                self.bound, best, since = bound, self.price.copy(), 0
            elif (since := since + 1) >= SLOW:
                self.price, length, since, moved = best.copy(), length * SHRINK, 0, np.zeros(self.price.size)
            if deadline.passed or not missing.any():
                break
            moved = missing + KEEP * moved
            push = max(AIM * self.bound - bound, 1) / self.scale
            self.price = np.maximum(self.price + length * push / float((moved**2).sum()) * moved, 0)
        self.price = best

    def refine(self, steps: int, value: int, deadline: Deadline) -> None:
        """Raise the bound by cutting planes within a box around the best prices.

        Every cheapest schedule gives an upper bound on the bound that is linear in the prices.

        Parameters
        ----------
        steps
            Largest number of steps.
        value
            Cost of a schedule: a bound above ``value - 1`` ends the ascent.
        deadline
            Time at which to stop.
        """
        from scipy.optimize import linprog  # imported where it is used: it takes longer than small searches

        size, box = self.price.size, BOX
        rows, limits, best = list[Floats](), list[float](), self.price.copy()
        self.bound = 0
        for _ in range(steps):
            bound, missing = self.step()
            if bound > self.bound:
                box *= GROW if self.bound else 1
                self.bound, best = bound, self.price.copy()
            else:
                box *= CLOSER
            rows.append(np.append(-missing, 1.0))
            limits.append((bound - float(missing @ self.charged)) / self.scale)
            if deadline.passed or self.bound > (value - 1) * self.scale:
                break
            around = [(max(price - box, 0.0), price + box) for price in best.tolist()]
            aim = linprog(
                np.append(np.zeros(size), -1.0), np.array(rows), limits, bounds=[*around, (None, None)], method="highs"
            )
            if aim.x is None or -aim.fun * self.scale - self.bound < NEAR * self.scale:
                break
            self.price = aim.x[:size]
        self.price = best
        self.evaluate()


# --- compiled -------------------------------------------------------------------------------------------------------------


@njit
def _sweep(rest, added, before, least, weight, price, scale):  # type: ignore[no-untyped-def]
    """Set ``rest``, in the order of rounds."""
    rest[0, :] = FAR
    rest[0, 0] = 0
    for t in range(1, rest.shape[0]):
        for x in range(before.size - 1, -1, -1):
            best = rest[t - 1, before[x]]
            for q in range(price.size):
                y = added[x, q]
                if y < 0:
                    break
                if t >= least[q] and rest[t, y] < FAR:
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
