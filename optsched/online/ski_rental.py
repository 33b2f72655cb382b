"""Ski rental: rent for 1 a day or buy for B, while the length of the season is not known.

**Problem** min B x + sum_j z_j, x + z_j >= 1 on every day j of the season; days arrive, x never decreases. Its dual: max
sum_j y_j, sum_j y_j <= B, y_j <= 1. The optimum of a season of n days is min(n, B).

**Methods and guarantees**, all exact here, each run with its dual (`optsched.online.program_proof`):

* `bought_at_once` on day B: 2 - 1/B, the best deterministic ratio. **Tight**: any season of B days or more.
* `fractionally_bought`: on every day with x < 1, z_j = 1 - x, y_j = 1, and x becomes x (1 + 1/B) + 1 / (B gamma), where
  gamma = (1 + 1/B)^B - 1, so that x is 1 after B days. Each such day costs 1 + 1 / gamma and earns 1: `fractional_factor`,
  which tends to e / (e - 1) = 1.5820 from above. **Tight**: every season of at least one day.
* `purchase_probabilities`: an algorithm that buys on the morning of day k with the probability by which x rises then has an
  expected cost that is lower than the fractional one by the final x.

**Complexity** O(n) fractions of at most n log B bits.
**Reference** Karlin, Manasse, Rudolph and Sleator, Competitive snoopy caching, Algorithmica 3 (1988), 79-119; Buchbinder and
Naor, Foundations and Trends in Theoretical Computer Science 3 (2009), 93-263, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from optsched.errors import check_legal
from optsched.online.program_proof import ProgramProof, Row, prove


@dataclass(frozen=True)
class SkiSeason:
    """Decisions in a season: ``bought`` x at its end, ``rented`` z_j and ``dual`` y_j day by day; ``price`` B."""

    price: int
    bought: Fraction
    rented: tuple[Fraction, ...]
    dual: tuple[Fraction, ...]

    @property
    def cost(self) -> Fraction:
        """Cost of the season, B x + sum z_j."""
        return self.price * self.bought + sum(self.rented, Fraction(0))

    @property
    def optimum(self) -> int:
        """Optimal cost min(n, B): rent for the whole season, or buy on its first day."""
        return min(len(self.rented), self.price)

    @property
    def ratio(self) -> Fraction:
        """Cost / optimum; 1 for a season without days."""
        return self.cost / self.optimum if self.optimum else Fraction(1)

    def proof(self) -> ProgramProof:
        """Return the proof by primal and dual of the season, without knowledge of the optimum."""
        cost = [Fraction(self.price), *(Fraction(1) for _ in self.rented)]
        rows: list[Row] = [({0: Fraction(1), 1 + j: Fraction(1)}, Fraction(1)) for j in range(len(self.rented))]
        return prove(cost, rows, [self.bought, *self.rented], self.dual)


def bought_at(price: int, season: int, day: int) -> SkiSeason:
    """Rent before a day, and buy on it if the season lasts so long.

    Parameters
    ----------
    price
        Price B >= 1 of buying, in days of rent.
    season
        Days of the season.
    day
        Day of buying, from 1 on.
    """
    _check(price, season)
    check_legal(day >= 1, "day", day, "an integer >= 1")
    bought, one = season >= day, Fraction(1)
    rented = tuple(one if j < day else Fraction(0) for j in range(1, season + 1))
    return SkiSeason(price, Fraction(bought), rented, _dual(price, season))


def bought_at_once(price: int, season: int) -> SkiSeason:
    """Buy on day B: the deterministic algorithm.

    Parameters
    ----------
    price
        Price B >= 1 of buying, in days of rent.
    season
        Days of the season.
    """
    return bought_at(price, season, price)


def fractionally_bought(price: int, season: int) -> SkiSeason:
    """Buy by the fractional primal-dual algorithm.

    Parameters
    ----------
    price
        Price B >= 1 of buying, in days of rent.
    season
        Days of the season.
    """
    _check(price, season)
    bought, rented = Fraction(0), list[Fraction]()
    for rise in _rises(price)[:season]:
        rented.append(1 - bought)
        bought += rise
    rented += [Fraction(0)] * (season - len(rented))
    return SkiSeason(price, bought, tuple(rented), _dual(price, season))


def fractional_factor(price: int) -> Fraction:
    """Return the factor of the fractional algorithm, 1 + 1 / ((1 + 1/B)^B - 1).

    Parameters
    ----------
    price
        Price B >= 1 of buying, in days of rent.
    """
    _check(price, 0)
    return 1 + 1 / ((1 + Fraction(1, price)) ** price - 1)


def purchase_probabilities(price: int) -> tuple[Fraction, ...]:
    """Return the probabilities, with sum 1, with which a randomised algorithm buys on days 1..B.

    Parameters
    ----------
    price
        Price B >= 1 of buying, in days of rent.
    """
    _check(price, 0)
    return tuple(_rises(price))


def _rises(price: int) -> list[Fraction]:
    """By how much x rises on days 1..B: (1 + 1/B)^(k - 1) / (B gamma)."""
    step = 1 + Fraction(1, price)
    first = 1 / (price * (step**price - 1))
    return [first * step**k for k in range(price)]


def _dual(price: int, season: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(j < price) for j in range(season))


def _check(price: int, season: int) -> None:
    check_legal(price >= 1, "price", price, "an integer >= 1")
    check_legal(season >= 0, "season", season, "an integer >= 0")
