"""Branch and bound over events: the best starts of a few transfers, proved, in floats or in fractions.

**Problem**: `optsched.problem.transfers`, minimise sum C_j; times count from the first release. **Method**: depth
first. At every release and completion any subset of the pending transfers may start, also none where something will
still happen; then time moves to the next event. A node is cut when the completions so far plus preemptive SRPT at full
rate 1 / b of everything left reach the incumbent (on several links: of the worst link, the others alone). The first
incumbent is the best of SRSF(1), SRSF(2), SRSF(3) and AdaDUAL.
**Guarantee**: exact among schedules that start transfers at events only. That these contain an optimal schedule is not
proved; `optsched.solvers.transfer_orders` and `optsched.models.link_contention` let starts lie anywhere, and have agreed
on every problem tried.
**Complexity**: exponential. Measured on 30 problems of `random_transfers`, mean and most nodes: n = 6 116 and 558, n = 7 395
and 2,296, n = 8 4,483 and 100,384; a node takes some 70 microseconds, more in fractions.
**Reference**: 4.1 (B) of the AdaDUAL sheet of this project.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from optsched.bounds.transfer_srpt import srpt_per_link
from optsched.errors import InputError
from optsched.problem.transfers import TransferProblem

__all__ = ["MOST", "TransferOptimum", "transfer_optimum"]

MOST = 16  # transfers; a node has up to 2**n children
CLOSE, ULPS = (
    1e-12,
    2,
)  # floats only: a bound that near to the incumbent, of the flow and of every time, differs by rounding

Number = Any  # float or Fraction
Left = dict[int, Number]  # of running transfers: seconds still needed alone


@dataclass(frozen=True)
class TransferOptimum:
    """``value`` sum C_j of ``start``, whose ends are ``completion``, all in seconds; ``bound`` on the optimum.

    ``proved``: the search was complete, and ``bound`` is the value. Otherwise it is that of SRPT. ``nodes`` is the same on
    every machine. Numbers are fractions when they were asked for.
    """

    value: Number
    bound: Number
    start: tuple[Number, ...]
    completion: tuple[Number, ...]
    nodes: int
    proved: bool


def transfer_optimum(
    problem: TransferProblem, *, exact: bool = False, node_limit: int | None = None
) -> TransferOptimum:
    """The best starts; ``exact``: in fractions, for the floats as given; ``node_limit`` stops the search early.

    Raises `InputError` for more than `MOST` transfers.
    """
    if problem.n > MOST:
        raise InputError("too many transfers for an exact search", field="n", value=problem.n, legal=f"at most {MOST}")
    number: Callable[[float], Number] = Fraction if exact else float
    search = _Search(problem.relative, number, node_limit)
    proved = search.run()
    bound = search.best
    if not proved:
        srpt = srpt_per_link(problem.relative)
        bound = min(bound, srpt.value if exact else srpt.exact_float)
    epoch = number(problem.epoch)
    part = problem.n * epoch
    start, completion = (tuple(at + epoch for at in times) for times in (search.best_start, search.best_completion))
    return TransferOptimum(search.best + part, bound + part, start, completion, search.nodes, proved)


class _Search:
    """One run. Transfers are numbered; ``order`` has them by release, and the first ``come`` of it are released."""

    def __init__(self, problem: TransferProblem, number: Callable[[float], Number], node_limit: int | None) -> None:
        b = number(problem.contention.seconds_per_byte)
        self.n, self.links, self.link_numbers = problem.n, problem.links, problem.link_numbers
        self.ratio = number(problem.contention.penalty) / b
        self.theta = 1 / (2 * (1 + self.ratio))
        self.release = [number(r) for r in problem.release.tolist()]
        self.length = [b * number(M) for M in problem.size.tolist()]
        self.order = sorted(range(self.n), key=lambda j: self.release[j])
        self.zero = number(0)
        self.before = sum(self.release, self.zero)
        last = max(self.release, default=self.zero) + sum(self.length, self.zero)
        exact = number is Fraction
        self.share: Number = self.zero if exact else CLOSE
        self.ulps: Number = self.zero if exact else ULPS * self.n * math.ulp(last)
        self.start, self.completion = [self.zero] * self.n, [self.zero] * self.n
        self.best: Number = math.inf
        self.best_start: tuple[Number, ...] = ()
        self.best_completion: tuple[Number, ...] = ()
        self.nodes, self.limit = 0, node_limit

    def run(self) -> bool:
        """Find the best; was the search complete?"""
        rules = [self._at_most(1), self._at_most(2), self._at_most(3), self._adadual]
        for admits in rules:
            self._follow(admits)
        come = self._come(self.zero, 0)
        return self._explore(self.zero, {}, tuple(self.order[:come]), come)

    def _explore(self, now: Number, left: Left, pending: tuple[int, ...], come: int) -> bool:
        if not left and not pending and come == self.n:
            self._keep()
            return True
        for chosen in _subsets(pending):
            if not left and not chosen and come == self.n:
                continue  # nothing would ever happen
            if self.limit is not None and self.nodes >= self.limit:
                return False
            self.nodes += 1
            for j in chosen:
                self.start[j] = now
            then, rest, later = self._advance(now, left | {j: self.length[j] for j in chosen}, come)
            waits = (*(j for j in pending if j not in chosen), *self.order[come:later])
            if self._hopeless(then, rest, waits, later):
                continue
            if not self._explore(then, rest, waits, later):
                return False
        return True

    def _hopeless(self, now: Number, left: Left, waits: Iterable[int], come: int) -> bool:
        """Can nothing below beat the incumbent?"""
        jobs = [(now, work, j) for j, work in left.items()]
        jobs += [(now, self.length[j], j) for j in waits]
        jobs += [(self.release[j], self.length[j], j) for j in self.order[come:]]
        waiting = {j for _, _, j in jobs}
        paid = sum((end for j, end in enumerate(self.completion) if j not in waiting), self.zero)
        bounds = (_srpt(now, jobs, [link in self.links[j] for _, _, j in jobs]) for link in self.link_numbers)
        rounding = (self.best - self.before) * self.share + self.ulps
        return bool(paid + max(bounds, default=self.zero) >= self.best - rounding)

    def _keep(self) -> None:
        value = sum(self.completion, self.zero)
        if value < self.best:
            self.best, self.best_start, self.best_completion = value, tuple(self.start), tuple(self.completion)

    # --- time ----------------------------------------------------------------------------------------------------

    def _come(self, now: Number, come: int) -> int:
        while come < self.n and self.release[self.order[come]] <= now:
            come += 1
        return come

    def _advance(self, now: Number, left: Left, come: int) -> tuple[Number, Left, int]:
        """To the next event: (its time, what is left, how many are released). Writes ``completion``."""
        carried = Counter(link for j in left for link in self.links[j])
        counts = {j: max(carried[link] for link in self.links[j]) for j in left}
        pace = {j: k + (k - 1) * self.ratio for j, k in counts.items()}
        ends = {j: now + work * pace[j] for j, work in left.items()}
        then = min([*ends.values(), *([self.release[self.order[come]]] if come < self.n else [])])
        rest = {}
        for j, end in ends.items():
            if end <= then:
                self.completion[j] = then
            else:
                rest[j] = max(left[j] - (then - now) / pace[j], self.zero)
        return then, rest, self._come(then, come)

    # --- rules for the first incumbent ---------------------------------------------------------------------------

    def _follow(self, admits: Callable[[int, Left], bool]) -> None:
        """The schedule of a rule, asked at every event for each waiting transfer, the shortest first."""
        now, come = self.zero, self._come(self.zero, 0)
        left: Left = {}
        pending = set(self.order[:come])
        while left or pending or come < self.n:
            for j in sorted(pending, key=lambda j: (self.length[j], j)):
                if admits(j, left):
                    self.start[j], left[j] = now, self.length[j]
            before = come
            pending -= left.keys()
            now, left, come = self._advance(now, left, come)
            pending |= set(self.order[before:come])
        self._keep()

    def _beside(self, j: int, left: Left) -> list[list[int]]:
        return [[i for i in left if link in self.links[i]] for link in self.links[j]]

    def _at_most(self, k: int) -> Callable[[int, Left], bool]:
        return lambda j, left: all(len(others) < k for others in self._beside(j, left))

    def _adadual(self, j: int, left: Left) -> bool:
        beside = self._beside(j, left)
        small = all(self.length[j] < self.theta * left[i] for others in beside for i in others)
        return small and all(len(others) < 2 for others in beside)


def _subsets(pending: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """All of them, single transfers first and none last: that order finds good schedules early."""
    for size in (*range(1, len(pending) + 1), 0):
        yield from combinations(pending, size)


def _srpt(now: Number, jobs: list[tuple[Number, Number, int]], on_link: list[bool]) -> Number:
    """sum C_j: SRPT of the jobs (release, work, _) on the link, the others alone."""
    alone = sum(release + work for (release, work, _), shared in zip(jobs, on_link, strict=True) if not shared)
    waiting = [(release, work) for (release, work, _), shared in zip(jobs, on_link, strict=True) if shared]
    total = alone
    while waiting:
        here = [work for release, work in waiting if release <= now]
        coming = min((release for release, _ in waiting if release > now), default=None)
        if not here:
            now = coming
            continue
        least = min(here)
        k = next(k for k, (release, work) in enumerate(waiting) if release <= now and work == least)
        if coming is None or now + least <= coming:
            now += least
            total += now
            waiting.pop(k)
        else:
            waiting[k] = (now, least - (coming - now))
            now = coming
    return total
