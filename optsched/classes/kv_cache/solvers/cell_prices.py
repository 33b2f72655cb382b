"""A price for every type of request, and the least cost of all that can follow a state at these prices.

**Relaxation.** Drop the demand that every request is served once, and charge its price lambda instead. Schedules may then
serve a type as often as they like, but each fits the cache in every round. A cheapest one is a shortest path over
(round, state), backwards in time, so ``sum_q lambda_q count_q + least cost`` bounds the optimum. That is far stronger than
the linear program over starts, where fractions of requests fill the cache: at 50 requests it is within .5 % of the optimum,
the linear program within 35 %.

**Arrivals.** Requests of one kind differ in their arrival only. In some optimal schedule they end in order of arrival:
exchange two that do not. Each has a price of its own. In round t the relaxation serves, of every kind, the request with the
largest price among those that can end. A later request with a smaller price would only lower the sum, so prices rise in
order of arrival. A step takes as long as for kinds whose requests all arrive at 0.

**Horizon.** Completions after the largest lambda_q / weight_q cost more than they gain; leaving one out of a schedule leaves
a schedule. So rounds up to there are enough, and the bound holds for every horizon.

**Prices** come from a subgradient ascent, and then from a level method: every cheapest schedule gives an upper bound on the
bound that is linear in the prices, and the next prices are the nearest ones at which all of these reach a level. Both move
the price of the first request of a kind, and the rises from one to the next. All bounds are computed in integers, prices in
units of 1 / ``scale``.

**Stretches.** Any prices give a bound. A search adapts prices to partial schedules: those that it keeps in a round say where
the prices let it cheat, and new prices are chosen that raise their bounds. Each stretch of rounds has such prices.

**Complexity** O(rounds x states x kinds) a step. **References** Lagrangian state-space relaxation: Tanaka, Fujikuma and
Araki, J. Sched. 12 (2009), for one machine; the states of a cache are derived here. Level method: Lemarechal, Nemirovskii
and Nesterov, Math. Programming 69 (1995). Nearest prices: Lawson and Hanson, Solving Least Squares Problems (1974), ch. 23.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from optsched.classes.kv_cache.solvers.cell_states import CellStates, Kinds, Types
from optsched.compiled import njit
from optsched.deadline import Deadline
from optsched.problem.arrays import Floats, Ints

FAR = 1 << 30  # what cannot be completed
NONE = 1 << 60  # cost of what cannot end in a round
SLOW, SHRINK, KEEP = 8, 0.7, 0.6  # steps without gain until steps shrink, by this factor; part of the last direction
LEVEL, LOWER = 0.3, 0.7  # part of the way to the target at which a level is; of what is left of it after SLOW steps
NEAR = 0.3  # distance of the target below which an ascent ends
CUTS, KEPT = 150, 110  # linear functions of a level method, and those that are kept of more
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
    kinds: Kinds
    scale: int
    price: Floats  # f64[Q], in units of cost
    rest: Ints
    bound: int = 0  # in units of 1 / scale
    stretches: Stretches = field(default_factory=lambda: Stretches(*[np.zeros(0, np.int64)] * 3))

    @classmethod
    def begin(cls, states: CellStates, types: Types, kinds: Kinds, price: Floats, value: int) -> PriceAscent:
        """Return an ascent from given prices.

        Parameters
        ----------
        states
            States of the cache.
        types
            Types of requests.
        kinds
            Kinds of requests.
        price
            Prices to begin with, f64[Q].
        value
            Cost sum w C of a schedule.
        """
        scale = max(1, min(100, (1 << 27) // max(value, 1)))
        ascent = cls(states, types, kinds, scale, price, np.zeros((0, 0), np.int32))
        ascent.price = ascent.rising(price)
        return ascent

    def rising(self, price: Floats) -> Floats:
        """Return prices that do not fall in order of arrival, f64[Q].

        Parameters
        ----------
        price
            Prices, f64[Q]; those that fall are raised.
        """
        parts = np.split(price, np.flatnonzero(np.diff(self.types.kind)) + 1)
        return np.concatenate([np.maximum.accumulate(part) for part in parts])

    def whole(self, price: Floats) -> Ints:
        """Return prices in units of 1 / scale, i64[Q].

        Parameters
        ----------
        price
            Prices, f64[Q].
        """
        return np.rint(self.rising(price) * self.scale).astype(np.int64)

    def moved(self, price: Floats, move: Floats) -> Floats:
        """Return prices after a move of the first price of every kind and of the rises from type to type, f64[Q].

        Parameters
        ----------
        price
            Prices, f64[Q].
        move
            The move, f64[Q]; prices and rises stay at least 0.
        """
        first = self._first
        rise = np.diff(price, prepend=0.0)
        rise[first] = price[first]
        summed = np.cumsum(np.maximum(rise + move, 0.0))
        return self.rising(summed - np.repeat(np.append(0.0, summed[first[1:] - 1]), np.diff(first, append=price.size)))

    def slope(self, missing: Ints) -> Floats:
        """Return how much the bound rises with the first prices and the rises of `moved`, f64[Q].

        Parameters
        ----------
        missing
            How many requests of every type a cheapest schedule lacks, i64[Q].
        """
        summed, last = np.cumsum(missing), np.append(self._first[1:], missing.size) - 1
        return (summed[last][self.types.kind] - summed + missing).astype(np.float64)

    @property
    def _first(self) -> Ints:
        """First type of every kind, i64[K]."""
        return np.flatnonzero(np.diff(self.types.kind, prepend=-1))

    def offers(self, rounds: int, charged: Ints) -> tuple[Ints, Ints]:
        """Return what the end of a kind in a round costs, and the type that ends, i64[rounds, K]; `NONE`, -1: none can.

        Parameters
        ----------
        rounds
            Number of rounds.
        charged
            Prices in units of 1 / scale, i64[Q].
        """
        types, kinds = self.types, self.kinds
        chosen = np.full((rounds, kinds.peak.size), -1, np.int64)
        within = types.least < rounds
        chosen[types.least[within], types.kind[within]] = np.flatnonzero(within)
        np.maximum.accumulate(chosen, axis=0, out=chosen)
        paid = np.arange(rounds)[:, None] * kinds.weight * self.scale - charged[chosen]
        return np.where(chosen >= 0, paid, NONE), chosen

    @property
    def charged(self) -> Ints:
        """Prices in units of 1 / scale, i64[Q]."""
        return self.whole(self.price)

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
        _sweep(self.rest, *self.states, self.offers(rounds, self.charged)[0])
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
        top = self.rest.shape[0] - 1
        if not samples:
            return
        moments = np.array([sample.round for sample in samples])
        of = np.searchsorted(-(moments[1:] + moments[:-1]) / 2, -np.arange(top + 1.0))
        rest, work, chosen = self.rest.copy(), self.rest.copy(), np.tile(self.charged, (moments.size, 1))
        for k, sample in enumerate(samples):
            if deadline.passed:
                break
            price, stretch = self._adapted(sample, limit, work[: sample.round + 1], deadline), np.flatnonzero(of == k)
            least = _sweep(work[: stretch[-1] + 1], *self.states, self.offers(stretch[-1] + 1, price)[0])
            if least > -FAR:
                chosen[k], rest[stretch] = price, work[stretch]
        self.stretches = Stretches(of, chosen, rest)

    def _adapted(self, sample: Sample, limit: int, rest: Ints, deadline: Deadline) -> Ints:
        """Return prices that raise the bounds of a sample to the limit, by subgradients."""
        t, state, paid, left = sample
        types, price, scale = self.types, self.price.copy(), self.scale
        best, highest, length, since, moved = self.charged, -np.inf, 1.0, 0, np.zeros(self.price.size)
        for _ in range(ADAPT):
            charged = self.whole(price)
            cost, chosen = self.offers(t + 1, charged)
            if deadline.passed or _sweep(rest, *self.states, cost) <= -FAR:
                break
            bounds = paid * scale + left @ charged + rest[t, state]
            low = bounds <= limit
            if (reached := float(np.minimum(bounds, limit).mean())) > highest:
                best, highest, since = charged, reached, 0
            elif (since := since + 1) >= PATIENT:
                price, length, since, moved = best / scale, length * SLOWER, 0, np.zeros(price.size)
            missing = left[low].sum(axis=0)
            for x in state[low].tolist():
                used = np.zeros(price.size, np.int64)
                _trace(rest, *self.states, cost, chosen, types.kind, types.number, charged, used, t, x)
                missing -= used
            moved = self.slope(missing) / low.size + DAMP * moved
            if not moved.any():
                break
            push = max(OVER * limit - float(bounds.mean()), 1.0) / scale
            price = np.minimum(self.moved(price, length * push / float((moved**2).sum()) * moved), 2 * self.price)
        return best

    def step(self) -> tuple[int, Ints]:
        """Return the bound of the prices, and how many requests of every type a cheapest schedule lacks."""
        bound, used, charged, types = self.evaluate(), np.zeros(self.price.size, np.int64), self.charged, self.types
        cost, chosen = self.offers(self.rest.shape[0], charged)
        top = self.rest.shape[0] - 1
        _trace(self.rest, *self.states, cost, chosen, types.kind, types.number, charged, used, top, 0)
        return bound, types.number - used

    def climb(self, steps: int, value: int, deadline: Deadline) -> None:
        """Raise the bound by subgradients, from far away.

        Parameters
        ----------
        steps
            Largest number of steps.
        value
            Cost of a schedule, at which steps aim.
        deadline
            Time at which to stop.
        """
        best, length, since, moved = self.price.copy(), 1.0, 0, np.zeros(self.price.size)
        highest: float = -np.inf
        for _ in range(steps):
            bound, missing = self.step()
            if bound > highest:
                highest, best, since = bound, self.price.copy(), 0
            elif (since := since + 1) >= SLOW:
                self.price, length, since, moved = best.copy(), length * SHRINK, 0, np.zeros(self.price.size)
            if deadline.passed or not missing.any():
                break
            moved = self.slope(missing) + KEEP * moved
            push = max(value * self.scale - bound, 1) / self.scale
            self.price = self.moved(self.price, length * push / float((moved**2).sum()) * moved)
        self.price, self.bound = best, int(highest)

    def refine(self, steps: int, value: int, deadline: Deadline) -> None:
        """Raise the bound by a level method.

        Parameters
        ----------
        steps
            Largest number of steps.
        value
            Cost of a schedule: a bound above ``value - 1`` ends the ascent.
        deadline
            Time at which to stop.
        """
        slopes, heights, levels = list[Floats](), list[float](), list[Ints]()
        best, highest = self.price.copy(), -np.inf
        target, since = float(value), 0
        for _ in range(steps):
            bound, missing = self.step()
            slopes.append(self.slope(missing))
            heights.append((bound - float(missing @ self.charged)) / self.scale)
            levels.append(missing)
            if bound / self.scale > highest:
                highest, best, since = bound / self.scale, self.price.copy(), 0
            elif (since := since + 1) >= SLOW:
                target, since = highest + LOWER * (target - highest), 0
            if deadline.passed or highest > value - 1:
                break
            given, need = np.array(slopes), -np.array(heights) - np.array(levels) @ best
            while (found := _shortest(given, need + highest + LEVEL * (target - highest))) is None:
                target = highest + LEVEL * (target - highest)
                if target - highest < NEAR:
                    break
            if found is None or target - highest < NEAR:
                break
            move, used = found
            if len(slopes) > CUTS:  # the newest ones, and those that hold the level
                order = np.sort(np.argsort(-used - 1e-9 * np.arange(used.size), kind="stable")[:KEPT])
                slopes, heights, levels = ([x[k] for k in order.tolist()] for x in (slopes, heights, levels))
            self.price = self.moved(best, move)
        self.price = best
        self.bound = self.evaluate()


def _shortest(slopes: Floats, need: Floats) -> tuple[Floats, Floats] | None:
    """Return the shortest move that raises every linear function by what it needs, and their multipliers; None: no move."""
    from scipy.optimize import nnls  # imported where it is used: it takes longer than small searches

    size = max(1.0, float(np.abs(need).max()))
    rows, aim = np.vstack([slopes.T, need / size]), np.append(np.zeros(slopes.shape[1]), 1.0)
    used, far = nnls(rows, aim)
    if far < 1e-6:
        return None
    left = rows @ used - aim
    return -left[:-1] / left[-1] * size, used


# --- compiled -------------------------------------------------------------------------------------------------------------


@njit
def _sweep(rest, added, before, cost):  # type: ignore[no-untyped-def]
    """Set ``rest``, in the order of rounds, and return its least number; 32 bits hold those above -FAR."""
    lowest = 0
    rest[0, :] = FAR
    rest[0, 0] = 0
    for t in range(1, rest.shape[0]):
        for x in range(before.size - 1, -1, -1):
            best = rest[t - 1, before[x]]
            for k in range(cost.shape[1]):
                y = added[x, k]
                if y < 0:
                    break
                if rest[t, y] < FAR and rest[t, y] + cost[t, k] < best:
                    best = rest[t, y] + cost[t, k]
            rest[t, x] = best
            lowest = min(lowest, best)
    return lowest


@njit
def _trace(rest, added, before, cost, chosen, kind, number, charged, used, t, x):  # type: ignore[no-untyped-def]
    """Count how often a cheapest schedule from round t and state x on serves every type; equal prices share the count."""
    while t > 0:
        if rest[t, x] == rest[t - 1, before[x]]:
            x = before[x]
            t -= 1
            continue
        for k in range(cost.shape[1]):
            y = added[x, k]
            if y < 0:
                break
            if rest[t, y] < FAR and rest[t, y] + cost[t, k] == rest[t, x]:
                last = chosen[t, k]
                q = last
                while q > 0 and used[q] >= number[q] and kind[q - 1] == k and charged[q - 1] == charged[last]:
                    q -= 1
                if used[q] >= number[q]:
                    q = last
                used[q] += 1
                x = y
                break
