"""Branch and bound over events: the best starts of a few transfers, proved, in floats or in fractions.

**Problem**: `optsched.problem.transfers`, minimise sum C_j. **Method**: `EventSearch`; any subset of the pending transfers
may start. **Bound**: preemptive SRPT at full rate 1 / b of everything left (on several links: of the worst link, the others
alone). The first incumbent is the best of SRSF(1), SRSF(2), SRSF(3) and AdaDUAL.
**Guarantee**: exact among schedules that start transfers at events only. That these contain an optimal schedule is not
proved; `optsched.solvers.transfer_orders` and `optsched.models.link_contention` let starts lie anywhere, and have agreed
on every problem tried.
**Complexity**: exponential. Measured on 30 problems of `random_transfers`, mean and most nodes: n = 6 98 and 486, n = 7 310
and 1,838, n = 8 1,191 and 10,022; a node takes some 25 microseconds, more in fractions.
**Reference**: 4.1 (B) of the AdaDUAL sheet of this project.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from optsched.bounds.transfer_srpt import srpt_per_link
from optsched.errors import InputError
from optsched.problem.transfers import TransferProblem
from optsched.solvers.event_search import EventSearch, Left, Moment, Number, On

MOST = 16  # transfers; a node has up to 2**n children


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
    for admits in (search.at_most(1), search.at_most(2), search.at_most(3), search.adadual):
        search.follow(admits)
    proved = search.explore(search.at_zero())
    start, completion = search.found
    bound = value = sum(completion, search.zero)
    if not proved:
        srpt = srpt_per_link(problem.relative)
        bound = min(bound, srpt.value if exact else srpt.exact_float)
    epoch = number(problem.epoch)
    part = problem.n * epoch
    start, completion = (tuple(at + epoch for at in times) for times in (start, completion))
    return TransferOptimum(value + part, bound + part, start, completion, search.nodes, proved)


class _Search(EventSearch[int]):
    """One run; what starts is a transfer."""

    def __init__(self, problem: TransferProblem, number: Callable[[float], Number], node_limit: int | None) -> None:
        b = number(problem.contention.seconds_per_byte)
        release = [number(r) for r in problem.release.tolist()]
        super().__init__(release, [b * number(M) for M in problem.size.tolist()], number, node_limit)
        self.links, self.link_numbers = problem.links, problem.link_numbers
        self.ratio = number(problem.contention.penalty) / b
        self.theta = 1 / (2 * (1 + self.ratio))

    def choices(self, at: Moment) -> Iterator[tuple[tuple[int, ...], On]]:
        """All subsets of those that wait."""
        return ((some, ()) for size in range(len(at.waits) + 1) for some in combinations(at.waits, size))

    def begun(self, start: int) -> tuple[int, Number]:
        """b M_j."""
        return start, self.alone[start]

    def slowdowns(self, left: Left, on: On) -> dict[int, Number]:
        """k + (k - 1) eta / b beside k - 1 others, on the busiest link."""
        carried = Counter(link for j in left for link in self.links[j])
        counts = {j: max(carried[link] for link in self.links[j]) for j in left}
        return {j: k + (k - 1) * self.ratio for j, k in counts.items()}

    def least(self, now: Number, left: Left, later: Iterable[int]) -> Number:
        """SRPT at full rate."""
        jobs = [(now, work, j) for j, work in left.items()]
        jobs += [(max(now, self.release[j]), self.alone[j], j) for j in later]
        bounds = (_srpt(now, jobs, [link in self.links[j] for _, _, j in jobs]) for link in self.link_numbers)
        return max(bounds, default=self.zero) - sum((self.release[j] for _, _, j in jobs), self.zero)

    # --- rules for the first incumbent ---------------------------------------------------------------------------

    def follow(self, admits: Callable[[int, Left], bool]) -> None:
        """The schedule of a rule, asked at every event for each waiting transfer, the shortest first."""
        at = self.at_zero()
        while not self.finished(at):
            beside, starts = dict(at.left), []
            for j in sorted(at.waits, key=lambda j: (self.alone[j], j)):
                if admits(j, beside):
                    beside[j] = self.alone[j]
                    starts.append(j)
            then, ended = self.advance(at, starts)
            self.enter(at.now, starts, then, ended)
            at = then
        self.keep(at.paid)

    def _beside(self, j: int, left: Left) -> list[list[int]]:
        return [[i for i in left if link in self.links[i]] for link in self.links[j]]

    def at_most(self, k: int) -> Callable[[int, Left], bool]:
        """SRSF(k)."""
        return lambda j, left: all(len(others) < k for others in self._beside(j, left))

    def adadual(self, j: int, left: Left) -> bool:
        """Alone, or beside one that is much larger."""
        beside = self._beside(j, left)
        small = all(self.alone[j] < self.theta * left[i] for others in beside for i in others)
        return small and all(len(others) < 2 for others in beside)


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
