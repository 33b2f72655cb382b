"""Speeds of jobs, what a unit of their work may cost, and prices of GPU types, for verifiers without optsched.

Beside verify_on_clusters.py, which reads them. A *mode*: (GPU type, seconds a unit of work, GPUs paid for).
**Theorem** makespan: after a moment jobs pay for the work that is left, GPUs and own time, no more than all of them cost for
what is left of the time (optsched/bounds/makespan_prices.py).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING or __package__:
    from optsched.check.verify_case import DUAL, Data, need, ratio, the, written
    from optsched.check.verify_sharing import Needs, whole
    from optsched.check.verify_time_prices import LARGEST_PRICE
else:  # copied
    from verify_case import DUAL, Data, need, ratio, the, written
    from verify_sharing import Needs, whole
    from verify_time_prices import LARGEST_PRICE

ModeRows = tuple[tuple[str, Fraction, Fraction], ...]  # of a job: GPU type, seconds a unit of work, GPUs paid for


class Speed(NamedTuple):
    """Of jobs that are alike: seconds of a unit of work by GPU type, and at the least; rates on r GPUs of elastic ones."""

    pace: dict[str, float]
    least: float
    rates: list[tuple[int, float]] | None = None


class PricesByType(NamedTuple):
    """Prices of GPU types; what all GPUs cost a second; what jobs may do at them; what files state."""

    of: dict[str, int]
    capacity: int
    modes: list[ModeRows]
    stated: Data

    def cost(self, modes: ModeRows, own: int = 0) -> Fraction:
        """The least that a unit of work costs, with a price of the job's own time."""
        return min((a * (own + n * self.of[t]) for t, a, n in modes), default=Fraction(0))


def by_id(rows: list[ModeRows]) -> list[ModeRows]:
    """One of each."""
    return list({id(row): row for row in rows}.values())


class SpeedSource(Protocol):
    """Gives what this program does not know of some jobs: optsched's `Instance` is behind it."""

    def speed(self, job: int, *, elastic: bool) -> Speed | None:
        """None: it is known here."""

    def needs(self, job: int) -> Needs:
        """(bytes, how many times as long an iteration takes at least) of its sub-batches."""


def makespan(case: Any, data: Data) -> tuple[Fraction, Data]:
    """A moment plus the work that is left then, whatever was done before, GPUs and jobs' own time at prices."""
    moment, own, prices = ratio(data.get("moment"), "data.moment"), the(dict, data, "own_prices"), case.prices(data)
    need(own.keys() <= set(case.ids), "data.own_prices must name jobs of the instance")
    legal = whole(own.values(), LARGEST_PRICE) and all(own.values()) and not (own and case.schedule_class == "forking")
    need(legal, "data.own_prices must be integers > 0, below 2^64, of jobs that are not copied", DUAL)
    total = prices.capacity + sum(own.values())
    need(total > 0, "data.prices and data.own_prices are all 0", DUAL)
    worth, some = Fraction(0), not case.ids
    known = {id(modes): (case.fastest(modes), prices.cost(modes)) for modes in by_id(prices.modes)}
    for j, (release, left, modes) in enumerate(zip(case.release, case.work, prices.modes, strict=True)):
        fastest, unit = known[id(modes)]
        if moment * case.unit > release:
            left -= (moment - Fraction(release, case.unit)) * fastest
        if left > 0:
            worth += left * (prices.cost(modes, own[case.ids[j]]) if case.ids[j] in own else unit)
            some = True
    need(some, "all work may be done by data.moment: it bounds nothing", DUAL)
    stated = {"moment": written(moment), "own_prices": own, **prices.stated}
    return moment + worth / total if case.ids else Fraction(0), stated
