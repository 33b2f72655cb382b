"""A few transfers as logs have them, late clocks, ties and any unit; and the least sum of completions by exhaustion.

The exhaustion starts transfers at releases and completions, in every way there is, in fractions: nothing is cut, and it
shares nothing with `optsched.solvers.transfer_search`.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np

from optsched.problem.contention import Contention
from optsched.problem.transfers import TransferProblem

CLOCKS = (0.0, 0.0, 1e6, 1.6e9, 1.7e9 + 0.25, 1e12)
UNITS = (1e-3, 0.025, 1.0, 1.0, 60.0, 1e3, 1e6)
BYTES = (1.0, 1.0, 1e6, 1e9)  # of a unit of size: seconds do not change

Left = dict[int, Fraction]  # of started transfers: bytes still to move


def clocked_transfers(seed: int) -> TransferProblem:
    """Two to four transfers, decided by the seed."""
    rng = np.random.default_rng([17, seed])
    n = int(rng.choice([2, 3, 3, 4], p=[0.4, 0.25, 0.25, 0.1]))
    clock, unit, byte = float(rng.choice(CLOCKS)), float(rng.choice(UNITS)), float(rng.choice(BYTES))
    whole, step = rng.random() < 0.5, max(unit, float(np.spacing(clock)))
    after = (rng.integers(0, 5, n) if whole else rng.random(n) * 5) * step * (rng.random(n) < 0.7)
    size = rng.integers(1, 9, n) if whole else rng.random(n) * 8 + 0.05
    if rng.random() < 0.15:
        size = size * 10.0 ** rng.integers(-3, 4, n)
    b = unit / byte
    contention = Contention(b, b * float(rng.choice([0.0, 0.25, 0.2745, 1.0, 3.0])))
    links = [(0,), (1,), (0, 1)]
    where = tuple(links[int(k)] for k in rng.integers(0, 3, n)) if rng.random() < 0.4 else ()
    return TransferProblem(clock + after, size * byte, contention, where)


def least_sum_of_completions(problem: TransferProblem) -> Fraction:
    """Over all starts at events; exponential, for four transfers at most."""
    return _Exhaustion(problem).least(Fraction(0), {}, frozenset())


class _Exhaustion:
    def __init__(self, problem: TransferProblem) -> None:
        self.release = [Fraction(r) for r in problem.release.tolist()]
        self.size = [Fraction(size) for size in problem.size.tolist()]
        self.links = problem.links
        self.b, self.eta = Fraction(problem.contention.seconds_per_byte), Fraction(problem.contention.penalty)

    def least(self, now: Fraction, left: Left, over: frozenset[int]) -> Fraction:
        """The least sum of the completions still to come."""
        waiting = [j for j in range(len(self.size)) if j not in left and j not in over]
        if not waiting and not left:
            return Fraction(0)
        here = [j for j in waiting if self.release[j] <= now]
        found = []
        for count in range(len(here) + 1):
            for chosen in combinations(here, count):
                running = {**left, **{j: self.size[j] for j in chosen}}
                value = self._until_something_happens(now, running, over, [j for j in waiting if j not in chosen])
                if value is not None:
                    found.append(value)
        return min(found)

    def _until_something_happens(
        self, now: Fraction, running: Left, over: frozenset[int], waiting: list[int]
    ) -> Fraction | None:
        users = Counter(link for j in running for link in self.links[j])
        most = {j: max(users[link] for link in self.links[j]) for j in running}
        pace = {j: k * self.b + (k - 1) * self.eta for j, k in most.items()}
        ends = {j: now + bytes_ * pace[j] for j, bytes_ in running.items()}
        coming = [self.release[j] for j in waiting if self.release[j] > now]
        if not ends and not coming:
            return None  # all of them wait, and nothing would ever happen
        then = min([*ends.values(), *coming])
        ended = [j for j, at in ends.items() if at == then]
        left = {j: bytes_ - (then - now) / pace[j] for j, bytes_ in running.items() if j not in ended}
        return len(ended) * then + self.least(then, left, over.union(ended))
