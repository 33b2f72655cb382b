"""Optimum of a few transfers: branch and bound over starts at events, and all orders of events with starts anywhere.

**Problem**: `transfers`, minimise sum C_j. In a set of active transfers where k is the largest count on the
links of j, a byte of j takes k b + (k - 1) eta seconds: k + (k - 1) eta / b times as long as alone (`slowdowns`).

**`transfer_optimum`**: `EventSearch`, in floats or in fractions; any subset of the pending transfers may start. Bound:
preemptive SRPT at full rate 1 / b of everything left (on several links: of the worst link, the others alone). The first
incumbent is the best of SRSF(1), SRSF(2), SRSF(3) and AdaDUAL. Exact among schedules that start transfers at events only.
These are proved to contain an optimal schedule for two transfers (`optsched.speeds.sharing_pair`: the sum of completion
times as a function of the delay of the second start first rises and then falls). For more, `best_event_order` and
`link_contention` allow starts at any time, and have agreed on every problem tried. Exponential; measured on
30 problems of `random_transfers`, mean and most nodes: n = 6 98 and 486, n = 7 310 and 1,838, n = 8 1,191 and 10,022; a node
takes some 25 microseconds, more in fractions.

**`two_transfer_optimum`**: the closed form that follows for two, exact in fractions, O(1).

**`best_event_order`**: `optsched.solvers.event_search` over the (2n)! / 2^n orders of starts and ends (6, 90, 2,520, 113,400
for n = 2..5), any set of transfers active. Exact, to the tolerance of the LP solver; some 0.15 ms an order.
**Reference**: own methods, for the contention of Wang, Shi, Wang and Chu, arXiv 2002.10105 (2020).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

from optsched.classes.task_sharing.bounds.transfer_srpt import srpt_per_link
from optsched.classes.task_sharing.problem.transfers import TransferProblem
from optsched.errors import InputError
from optsched.models.sharing_least import srpt_stay
from optsched.solvers.event_search import EventOrders, EventSearch, LeastOrder, Left, Moment, Number, On, Start

MOST = 16  # transfers; a node has up to 2**n children
MOST_ORDERED = 5  # transfers; 7,484,400 orders for 6


def slowdowns(problem: TransferProblem, active: Collection[int], penalty: Number) -> dict[int, Number]:
    """Return k + (k - 1) ``penalty`` of every active transfer, where k transfers are on its busiest link.

    Parameters
    ----------
    problem
        The transfers.
    active
        Numbers of the active transfers.
    penalty
        eta / b.
    """
    carried = Counter(link for j in active for link in problem.links[j])
    counts = {j: max(carried[link] for link in problem.links[j]) for j in active}
    return {j: k + (k - 1) * penalty for j, k in counts.items()}


def two_transfer_optimum(problem: TransferProblem) -> Fraction:
    """Return the least sum of completion times of two transfers with any releases, in seconds.

    The result is exact for the floats as given.

    Let x bytes be left of the transfer that runs first when the other is released or starts, whichever is later. The other
    starts at once, which takes both b x + M (3 b + 2 eta) seconds from then if M <= x, or afterwards, 2 b x + b M. The first
    released starts at its release, or lets the other go first: a start between them is worse than one at its release, since
    both sums rise with x. Transfers without a common link do not meet.

    Parameters
    ----------
    problem
        The transfers.

    Raises
    ------
    InputError
        If there are not two transfers.
    """
    if problem.n != 2:
        raise InputError("the closed form is for two transfers", field="n", value=problem.n, legal="2")
    b, eta = Fraction(problem.contention.seconds_per_byte), Fraction(problem.contention.penalty)
    release, size = [Fraction(r) for r in problem.release.tolist()], [Fraction(M) for M in problem.size.tolist()]
    first, second = (0, 1) if release[0] <= release[1] else (1, 0)
    left = size[first] - (release[second] - release[first]) / b
    if left <= 0 or not set.intersection(*(set(links) for links in problem.links)):
        return sum(release, Fraction(0)) + b * sum(size)

    def both(x: Fraction, M: Fraction) -> Fraction:
        afterwards = 2 * b * x + b * M
        return min(afterwards, b * x + M * (3 * b + 2 * eta)) if x >= M else afterwards

    return 2 * release[second] + min(both(left, size[second]), both(size[second], size[first]))


def best_event_order(problem: TransferProblem, *, certify: bool = False) -> LeastOrder:
    """Solve the program of every order.

    Parameters
    ----------
    problem
        The transfers.
    certify
        Prove a bound in fractions, too; some milliseconds more an order.

    Raises
    ------
    InputError
        If there are no transfers or more than `MOST_ORDERED`.
    """
    if not 1 <= problem.n <= MOST_ORDERED:
        legal = f"1 to {MOST_ORDERED}"
        raise InputError("not a number of transfers to enumerate", field="n", value=problem.n, legal=legal)
    epoch = problem.epoch
    least_order = transfer_orders(problem.relative).least(certify=certify)
    bound = None if least_order.bound is None else least_order.bound + problem.n * Fraction(epoch)
    return replace(
        least_order, value=least_order.value + problem.n * epoch, start=least_order.start + epoch, bound=bound
    )


def transfer_orders(problem: TransferProblem) -> EventOrders:
    """Return the orders of the problem's events. O(2^n n).

    Parameters
    ----------
    problem
        The transfers.
    """
    b = Fraction(problem.contention.seconds_per_byte)
    eta = Fraction(problem.contention.penalty) / b
    seconds = [b * Fraction(size) for size in problem.size.tolist()]
    release = [Fraction(r) for r in problem.release.tolist()]
    return EventOrders.of(seconds, release, lambda active: slowdowns(problem, active, eta))


@dataclass(frozen=True)
class TransferOptimum:
    """Result of the search: ``value`` sum C_j and a ``bound`` on the optimum.

    ``start`` and their ends ``completion``, in seconds, have that value.

    ``proved``: the search was complete, and ``bound`` is the value. Otherwise it is that of SRPT. ``nodes`` is the same on
    every machine. Numbers are fractions if they were requested.
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
    """Return the best starts at events.

    Parameters
    ----------
    problem
        The transfers.
    exact
        Compute in fractions, for the floats as given.
    node_limit
        Number of nodes after which the search ends; None: no limit.

    Raises
    ------
    InputError
        If there are more than `MOST` transfers.
    """
    if problem.n > MOST:
        raise InputError("too many transfers for an exact search", field="n", value=problem.n, legal=f"at most {MOST}")
    number: Callable[[float], Number] = Fraction if exact else float
    search = _Search(problem.relative, number, node_limit)
    for admits in (search.at_most(1), search.at_most(2), search.at_most(3), search.adadual):
        search.follow(admits)
    proved = search.explore(search.at_zero())
    start, completion, _ = search.found
    bound = value = sum(completion, search.zero)
    if not proved:
        srpt = srpt_per_link(problem.relative)
        bound = min(bound, srpt.value if exact else srpt.exact_float)
    epoch = number(problem.epoch)
    part = problem.n * epoch
    start, completion = (tuple(at + epoch for at in times) for times in (start, completion))
    return TransferOptimum(value + part, bound + part, start, completion, search.nodes, proved)


class _Search(EventSearch):
    """One run."""

    def __init__(self, problem: TransferProblem, number: Callable[[float], Number], node_limit: int | None) -> None:
        b = number(problem.contention.seconds_per_byte)
        release = [number(r) for r in problem.release.tolist()]
        super().__init__(release, [b * number(M) for M in problem.size.tolist()], number, node_limit)
        self.problem, self.links = problem, problem.links
        self.penalty = number(problem.contention.penalty) / b
        self.theta = 1 / (2 * (1 + self.penalty))

    def choices(self, at: Moment) -> Iterator[tuple[tuple[Start, ...], On]]:
        """Yield all subsets of the waiting transfers."""
        waits = [(j, self.alone[j]) for j in at.waits]
        return ((some, ()) for size in range(len(waits) + 1) for some in combinations(waits, size))

    def slowdowns(self, left: Left, on: On) -> dict[int, Number]:
        return slowdowns(self.problem, left, self.penalty)

    def least(self, now: Number, left: Left, later: Iterable[int]) -> Number:
        """Return the bound of SRPT at full rate."""
        jobs = [(j, now, work) for j, work in left.items()]
        jobs += [(j, max(now, self.release[j]), self.alone[j]) for j in later]

        def of(link: int) -> Number:
            on = sorted((begin, work) for j, begin, work in jobs if link in self.links[j])
            return srpt_stay(on) + sum(work for j, _, work in jobs if link not in self.links[j])

        waited = sum((begin - self.release[j] for j, begin, _ in jobs), self.zero)
        return waited + max(map(of, self.problem.link_numbers), default=self.zero)

    # --- rules for the first incumbent ---------------------------------------------------------------------------

    def follow(self, admits: Callable[[int, Left], bool]) -> None:
        """Make the schedule of a rule that is asked at every event for each waiting transfer, the shortest first."""
        at = self.at_zero()
        while not self.finished(at):
            beside, starts = dict(at.left), list[Start]()
            for j in sorted(at.waits, key=lambda j: (self.alone[j], j)):
                if admits(j, beside):
                    beside[j] = self.alone[j]
                    starts.append((j, self.alone[j]))
            then, ended = self.advance(at, starts)
            self.enter(at.now, starts, then, ended)
            at = then
        self.keep(at.paid)

    def _beside(self, j: int, left: Left) -> list[list[int]]:
        return [[i for i in left if link in self.links[i]] for link in self.links[j]]

    def at_most(self, k: int) -> Callable[[int, Left], bool]:
        """Return the rule SRSF(k)."""
        return lambda j, left: all(len(others) < k for others in self._beside(j, left))

    def adadual(self, j: int, left: Left) -> bool:
        """Admit a transfer that is alone, or shares only with one that is much larger."""
        beside = self._beside(j, left)
        small = all(self.alone[j] < self.theta * left[i] for others in beside for i in others)
        return small and all(len(others) < 2 for others in beside)
