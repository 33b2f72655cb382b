"""Depth-first branch and bound over events, for jobs whose speed depends on who else runs; in floats or in fractions.

**Problem**: n jobs, released at r_j, with e_j seconds of work alone; minimise sum C_j. What may start together, and how fast
each job is beside the others, a subclass says: of transfers on links (`optsched.solvers.transfer_search`), of jobs that
share GPUs (`optsched.solvers.sharing_search`). **Method**: at every release and completion any of the waiting jobs may
start, also none where something will still happen; then time moves to the next event. The child with the least bound goes
next; it is cut when the flow times so far plus a bound for the rest reach the incumbent. Times count from the first
release, and what is added up and compared are flow times, so that clock times are never subtracted.
**Guarantee**: the best schedule among those that start jobs at releases and completions only. **Complexity**: exponential.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

CLOSE = 1e-12  # floats only: a bound so near to the incumbent, as a part of the flow time, differs by rounding
ULPS = 2  # and so near, of every time

Number = Any  # float or Fraction
Left = dict[int, Number]  # of running jobs: seconds still needed alone
On = tuple[tuple[int, ...], ...]  # who is where, if that matters: jobs on every GPU
Start = TypeVar("Start")


@dataclass(frozen=True, slots=True)
class Moment:
    """After an event: what running jobs still need, who waits, how many have come, flow time so far, who is where."""

    now: Number
    left: Left
    waits: tuple[int, ...]
    come: int
    paid: Number
    on: On = ()


class EventSearch(ABC, Generic[Start]):
    """One run. ``order`` has the jobs by release, and the first ``come`` of it are released.

    ``best`` is the flow time of the schedule ``found``, (starts, ends, what `placed` says of it); ``nodes`` is the same on
    every machine. ``node_limit``, or ``stop`` when it says so, ends the search early, but not before it has a schedule.
    """

    def __init__(
        self,
        release: Sequence[Number],
        alone: Sequence[Number],
        number: Callable[[float], Number],
        node_limit: int | None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.n, self.number, self.zero = len(release), number, number(0)
        self.release, self.alone = list(release), list(alone)
        self.order = sorted(range(self.n), key=lambda j: self.release[j])
        last = float(max(self.release, default=0.0) + sum(self.alone))
        exact = number is Fraction
        self.share: Number = self.zero if exact else CLOSE
        self.ulps: Number = self.zero if exact else ULPS * self.n * math.ulp(last)
        self.start, self.end = [self.zero] * self.n, [self.zero] * self.n
        self.best: Number = math.inf
        self.found: tuple[tuple[Any, ...], ...] = ()
        self.nodes, self.limit, self.stop = 0, math.inf if node_limit is None else node_limit, stop

    @abstractmethod
    def choices(self, at: Moment) -> Iterator[tuple[tuple[Start, ...], On]]:
        """What may start now, and who is then where."""

    @abstractmethod
    def begun(self, start: Start) -> tuple[int, Number]:
        """The job of a start and its seconds alone."""

    @abstractmethod
    def slowdowns(self, left: Left, on: On) -> dict[int, Number]:
        """Seconds that a second of work takes each running job."""

    @abstractmethod
    def least(self, now: Number, left: Left, later: Iterable[int]) -> Number:
        """A bound on the flow times of running jobs and of those that are yet to start."""

    def write(self, now: Number, starts: Sequence[Start]) -> None:
        """Note what starts now in the schedule that is being made."""
        for start in starts:
            self.start[self.begun(start)[0]] = now

    def placed(self) -> tuple[tuple[Any, ...], ...]:
        """What there is to keep of a schedule beside its times."""
        return ()

    def at_zero(self, on: On = ()) -> Moment:
        """Before anything starts."""
        come = self._come(self.zero, 0)
        return Moment(self.zero, {}, tuple(self.order[:come]), come, self.zero, on)

    def finished(self, at: Moment) -> bool:
        """Have all jobs come, and gone?"""
        return not at.left and not at.waits and at.come == self.n

    def explore(self, at: Moment) -> bool:
        """Find the best from there on; was the search complete?"""
        if self.finished(at):
            self.keep(at.paid)
            return True
        children: list[tuple[Number, int, tuple[Start, ...], Moment, list[int]]] = []
        for starts, on in self.choices(at):
            if not at.left and not starts and at.come == self.n:
                continue  # nothing would ever happen
            if self.best < math.inf and (self.nodes >= self.limit or self.stop()):
                return False
            self.nodes += 1
            then, ended = self.advance(at, starts, on)
            least = then.paid + self.least(then.now, then.left, (*then.waits, *self.order[then.come :]))
            children.append((least, len(children), starts, then, ended))
        for least, _, starts, then, ended in sorted(children, key=lambda child: child[:2]):
            # of that bound nothing is better than the best by more than rounding
            if self.best < math.inf and least >= self.best - self.best * self.share - self.ulps:
                break
            self.enter(at.now, starts, then, ended)
            if not self.explore(then):
                return False
        return True

    def enter(self, now: Number, starts: Sequence[Start], then: Moment, ended: Sequence[int]) -> None:
        """Note what starts now, and who ends at the next event."""
        self.write(now, starts)
        for j in ended:
            self.end[j] = then.now

    def keep(self, flow_time: Number) -> None:
        """Take the schedule that has been made, where it is better than the best."""
        if flow_time < self.best:
            self.best, self.found = flow_time, (tuple(self.start), tuple(self.end), *self.placed())

    def _come(self, now: Number, come: int) -> int:
        while come < self.n and self.release[self.order[come]] <= now:
            come += 1
        return come

    def advance(self, at: Moment, starts: Sequence[Start], on: On = ()) -> tuple[Moment, list[int]]:
        """To the next event, and who ends there."""
        begun = dict(self.begun(start) for start in starts)
        left = at.left | begun
        slow = self.slowdowns(left, on)
        need = {j: seconds * slow[j] for j, seconds in left.items()}
        coming = [self.release[self.order[at.come]] - at.now] if at.come < self.n else []
        step = min([*need.values(), *coming])
        ended = [j for j, seconds in need.items() if seconds <= step]
        rest = {j: max(left[j] - step / slow[j], self.zero) for j, seconds in need.items() if seconds > step}
        # a release is when it is, not a sum of steps
        then = self.release[self.order[at.come]] if coming and step == coming[0] else at.now + step
        come = self._come(then, at.come)
        waits = (*(j for j in at.waits if j not in begun), *self.order[at.come : come])
        on = tuple(tuple(j for j in here if j in rest) for here in on) if ended else on
        stayed = sum((then - self.release[j] for j in ended), self.zero)
        return Moment(then, rest, waits, come, at.paid + stayed, on), ended
