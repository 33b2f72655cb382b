"""A price for every type of request, and the least cost of all that can follow a state at these prices.

**Relaxation.** Drop the demand that every request is served once, and charge its price lambda instead. Schedules may then
serve a type as often as they like, but each fits the cache in every round. A cheapest one is a shortest path over
(round, state), backwards in time, so ``sum_q lambda_q count_q + least cost`` bounds the optimum. That is far stronger than
the linear program over starts, where fractions of requests fill the cache: at 50 requests it is within .5 % of the optimum,
the linear program within 35 %.

**Horizon.** Completions after the largest lambda_q / weight_q cost more than they gain; leaving one out of a schedule leaves
a schedule. So rounds up to there are enough, and the bound holds for every horizon.

**Prices** come from a subgradient ascent and cutting planes. All is computed in integers, prices in units of 1 / ``scale``.

**Stretches.** Any prices give a bound. A search adapts prices to partial schedules: those that it keeps in a round say where
the prices let it cheat, and new prices are chosen that raise their bounds. Each stretch of rounds has such prices.

**Complexity** O(rounds x states x types) a step. **Reference** Lagrangian state-space relaxation: Tanaka, Fujikuma and
Araki, J. Sched. 12 (2009), for one machine; the states of a cache are derived here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

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
ADAPT, PATIENT, SLOWER, DAMP, OVER = 16, 4, 0.6, 0.5, 1.003  # steps for a sample; as SLOW, SHRINK, KEEP; aim over limit


class Sample(NamedTuple):
    """Partial schedules before a round: state i32[k], cost i64[k], numbers of requests left i64[k, Q]."""

    round: int
    state: Ints
    cost: Ints
    left: Ints


class Stretches(NamedTuple):
    """Prices adapted to stretches of rounds: those of stretch ``of[t]`` with least costs ``rest[t]`` from round t on."""

    of: Ints
    charged: Ints
    rest: Ints


@dataclass
class PriceAscent:
    """Prices of one search. ``rest`` i32[T + 1, S] is the least cost from every node on, `FAR` if there is no way."""

    states: CellStates
    types: Types
    scale: int
    price: Floats  # f64[Q], in units of cost
    rest: Ints
    bound: int = 0  # in units of 1 / scale
    stretches: Stretches = field(default_factory=lambda: Stretches(*[np.zeros(0, np.int64)] * 3))

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
        self.stretches = Stretches(np.zeros(rounds, np.int64), self.charged[None], self.rest)
        return int(self.rest[-1, 0]) + self.base

    def prices(self, t: int) -> Ints:
        """Return the two sets of prices in a round, i64[2, Q].

        Parameters
        ----------
        t
            The round.
        """
        return np.stack([self.charged, self.stretches.charged[self.stretches.of[t]]])

    def rests(self, t: int, priced: int | None = None) -> Ints:
        """Return the least costs from a round on at both sets of prices, i32[2, S].

        Parameters
        ----------
        t
            The round.
        priced
            Round whose prices are meant, t or t + 1; None: t. In another stretch only the first set has a bound.
        """
        of = self.stretches.of
        same = priced is None or of[t] == of[priced]
        return np.stack([self.rest[t], self.stretches.rest[t] if same else np.full_like(self.rest[t], -FAR)])

    def adapt(self, samples: tuple[Sample, ...], limit: int, deadline: Deadline) -> None:
        """Choose prices for the stretches around samples; `evaluate` drops them.

        Parameters
        ----------
        samples
            Partial schedules, those of later rounds first.
        limit
            Value above which bounds of partial schedules are of use, in units of 1 / scale.
        deadline
            Time at which to stop.
        """
        types, top = self.types, self.rest.shape[0] - 1
        if not samples:
            return
        moments = np.array([sample.round for sample in samples])
        of = np.searchsorted(-(moments[1:] + moments[:-1]) / 2, -np.arange(top + 1.0))
        rest, work, chosen = self.rest.copy(), self.rest.copy(), np.tile(self.charged, (moments.size, 1))
        for k, sample in enumerate(samples):
            if deadline.passed:
                break
            price, stretch = self._adapted(sample, limit, work[: sample.round + 1]), np.flatnonzero(of == k)
            least = _sweep(work[: stretch[-1] + 1], *self.states, types.least, types.weight, price, self.scale)
            if least > -FAR:
                chosen[k], rest[stretch] = price, work[stretch]
        self.stretches = Stretches(of, chosen, rest)

    def _adapted(self, sample: Sample, limit: int, rest: Ints) -> Ints:
        """Return prices that raise the bounds of a sample to the limit, by subgradients."""
        t, state, cost, left = sample
        types, price, scale = self.types, self.price.copy(), self.scale
        best, highest, length, since, moved = self.charged, -np.inf, 1.0, 0, np.zeros(self.price.size)
        for _ in range(ADAPT):
            charged = np.rint(price * scale).astype(np.int64)
            if _sweep(rest, *self.states, types.least, types.weight, charged, scale) <= -FAR:
                break
            bounds = cost * scale + left @ charged + rest[t, state]
            low = bounds <= limit
            if (reached := float(np.minimum(bounds, limit).mean())) > highest:
                best, highest, since = charged, reached, 0
            elif (since := since + 1) >= PATIENT:
                price, length, since, moved = best / scale, length * SLOWER, 0, np.zeros(price.size)
            missing = left[low].sum(axis=0)
            for x in state[low].tolist():
                used = np.zeros(price.size, np.int64)
                _trace(rest, *self.states, types.least, types.weight, charged, scale, used, t, x)
                missing -= used
            moved = missing / low.size + DAMP * moved
            if not moved.any():
                break
            push = max(OVER * limit - float(bounds.mean()), 1.0) / scale
            price = np.clip(price + length * push / float((moved**2).sum()) * moved, 0, 2 * self.price)
        return best

    def step(self) -> tuple[int, Ints]:
        """Return the bound of the prices, and how many requests of every type a cheapest schedule lacks."""
        bound, used = self.evaluate(), np.zeros(self.price.size, np.int64)
        top, types = self.rest.shape[0] - 1, self.types
        _trace(self.rest, *self.states, types.least, types.weight, self.charged, self.scale, used, top, 0)
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
    """Set ``rest``, in the order of rounds, and return its least number; 32 bits hold those above -FAR."""
    lowest = 0
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
            lowest = min(lowest, best)
    return lowest


@njit
def _trace(rest, added, before, least, weight, price, scale, used, t, x):  # type: ignore[no-untyped-def]
    """Count how often a cheapest schedule from round t and state x on serves every type."""
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
