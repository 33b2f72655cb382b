"""What a search for bad instances varies: a `Candidate`, a table of integers with a row a job; a `Quantity` is a column.

Times and sizes are integers, so that a ratio found is one of fractions and a reader can check it by hand.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

Row = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of a job, or one that all jobs share: an integer from ``least`` to ``most``.

    ``work``: it may be split between two jobs, and those of two jobs added up (durations, bytes). ``origin``: only
    differences count, so that the least one is 0 (arrivals). ``tied``: it may be made equal to the work of its job, as
    weights are.
    """

    name: str
    least: int
    most: int
    work: bool = False
    origin: bool = False
    tied: bool = False

    def within(self, value: int) -> int:
        """The nearest legal value."""
        return min(max(value, self.least), self.most)

    def drawn(self, rng: random.Random) -> int:
        """A random value; small ones are as likely as large ones: uniform on a logarithmic scale, in one case of four."""
        if rng.random() < 0.75:
            return rng.randint(self.least, self.most)
        span = self.most - self.least + 1
        return self.within(self.least + int(span ** rng.random()) - 1)


class Candidate(NamedTuple):
    """``jobs``: a row a job, in the order of the instance, a column a `Quantity`; ``shared``: what belongs to no job."""

    jobs: tuple[Row, ...]
    shared: Row = ()

    @property
    def total(self) -> int:
        """The sum of all its numbers: what shrinking makes small."""
        return sum(map(sum, self.jobs)) + sum(self.shared)
