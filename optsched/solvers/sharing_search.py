"""Branch and bound over events: the best schedule of a few jobs that share GPUs and start at events, floats or fractions.

**Problem**: `optsched.models.shared_jobs`, minimise sum C_j (sum of flow times plus sum r_j). Times count from the first
arrival, and what is added up and compared are flow times, so that clocks are never told apart. **Method**: depth first, the
child with the least bound next. At every release and completion any of the waiting jobs may start, on any GPUs that hold
them, with any of their sub-batches, also none where something will still happen; then time moves to the next event. GPUs
of a node with the same jobs on them are alike, and so are nodes of one kind with the same jobs: of placements that differ
by them one is tried. A node is cut when what is completed plus a bound for the rest reaches the incumbent.

**Bound** for jobs with a seconds left alone, m GPUs, from now or their release on; S = max(1, 1/xi_{j|k} + 1/xi_{k|j}) over
pairs of these jobs that may share: the largest of (LB1) sum C of SRPT on one machine with times m a / (G S), (LB2)
sum (release + a), (LB3) mean busy times of the preemptive schedule that always runs the job with the least m a, plus a / 2.

**Guarantee**: exact among schedules that start jobs at releases and completions only. For two jobs these contain an optimal
schedule: let B start first; as long as A's start is fixed, starting B earlier never adds to the sum, so B starts at its
release, and then the pair theorem (`optsched.speeds.sharing_pair`) says that A starts as early as it may, or after B.

**Counterexample** for three: one GPU, xi = 7/5, (r_j, e_j) = (0, 10), (0, 100), (12, 1). The long job starts best at 5: it
then holds up the first one just so long that it ends at 12, when the third one comes and finds room beside the long one;
sum 132.8. Starts at events give 133.8: at 0 the third one finds two jobs and waits until 14, at 10 the long one is late. So
the value is an upper bound on the optimum; `optsched.solvers.sharing_orders` and `optsched.models.gpu_sharing` let starts
lie anywhere.
**Complexity**: exponential; see `MOST`.
**Reference**: 4.1 (B) and 4.3 of the SJF-BSBF sheet of this project.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optsched.errors import InputError
from optsched.models.shared_jobs import Gang, SharedJobs
from optsched.models.sharing_least import least_stay, work_rate
from optsched.problem.instance import Instance
from optsched.problem.schedule import SharedSchedule
from optsched.solvers.sharing_places import SharedPlaces, joined

__all__ = ["MOST", "SharingOptimum", "sharing_optimum"]

MOST, MOST_NODES = 12, 8  # jobs, nodes
CLOSE, ULPS = (
    1e-12,
    2,
)  # floats only: a bound that near to the incumbent, of the flow and of every time, differs by rounding
NAME = "sharing-branching"

Number = Any  # float or Fraction
Left = dict[int, Number]  # of running jobs: seconds still needed alone
Residents = tuple[tuple[int, ...], ...]  # jobs on every GPU
Start = tuple[int, int, Gang]  # job, option, GPUs


@dataclass(frozen=True)
class SharingOptimum:
    """``value`` sum C_j of these starts, ends, GPUs and options (seconds; fractions when they were asked for).

    ``flow_time``: the sum of flow times, added up as such, not told from clocks.
    ``complete``: the search was, so that no schedule that starts jobs at events is better; ``bound``: no schedule at all
    is. ``nodes`` is the same on every machine.
    """

    jobs: SharedJobs
    value: Number
    bound: Number
    start: tuple[Number, ...]
    completion: tuple[Number, ...]
    gangs: tuple[Gang, ...]
    options: tuple[int, ...]
    nodes: int
    complete: bool
    flow_time: Number

    @property
    def optimal(self) -> bool:
        """Is it proved that no schedule is better, whenever it starts jobs?"""
        return bool(self.bound >= self.value)

    @property
    def schedule(self) -> SharedSchedule:
        """The schedule, in floats."""
        return self.jobs.schedule(self.start, self.completion, self.gangs, self.options, NAME)


def sharing_optimum(
    instance: Instance | SharedJobs,
    *,
    exact: bool = False,
    node_limit: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> SharingOptimum:
    """The best starts at events; ``exact``: in fractions, for the floats as given.

    ``node_limit``, or ``stop`` when it says so, ends the search early, but not before it has a schedule.

    Raises `InputError` for more than `MOST` jobs or `MOST_NODES` nodes, and as `SharedJobs.of`.
    """
    jobs = instance if isinstance(instance, SharedJobs) else SharedJobs.of(instance)
    if jobs.n > MOST:
        raise InputError("too many jobs for an exact search", field="n", value=jobs.n, legal=f"at most {MOST}")
    if len(jobs.node_memory) > MOST_NODES:
        value, legal = len(jobs.node_memory), f"at most {MOST_NODES}"
        raise InputError("too many nodes for an exact search", field="nodes", value=value, legal=legal)
    search = _Search(jobs, Fraction if exact else float, node_limit, stop)
    complete = search.run()
    proved = complete and jobs.n <= 2
    epoch = search.number(jobs.instance.epoch)
    before = sum((search.number(r) for r in jobs.release), search.zero)
    bound = search.best if proved else min(search.best, search.root)
    start, end, gangs, options = search.found
    start, end = (tuple(at + epoch for at in times) for times in (start, end))
    value, nodes = search.best + before, search.nodes
    return SharingOptimum(jobs, value, bound + before, start, end, gangs, options, nodes, complete, search.best)


@dataclass(frozen=True, slots=True)
class _Moment:
    """After an event: what running jobs still need, who is on which GPU, who waits, how many have come, flow time so far."""

    now: Number
    left: Left
    on: Residents
    waits: tuple[int, ...]
    come: int
    paid: Number


class _Search:
    """One run. ``order`` has the jobs by release, and the first ``come`` of it are released."""

    def __init__(
        self, jobs: SharedJobs, number: Callable[[float], Number], node_limit: int | None, stop: Callable[[], bool]
    ) -> None:
        self.jobs, self.n, self.number = jobs, jobs.n, number
        self.places, self.twin = SharedPlaces(jobs), _twins(jobs)
        self.release = [number(r) - number(jobs.instance.epoch) for r in jobs.release]
        self.alone = [number(e) for e in jobs.least_seconds]
        self.xi = [[number(x) if math.isfinite(x) else x for x in row] for row in jobs.xi]
        self.order = sorted(range(self.n), key=lambda j: self.release[j])
        self.rates: dict[frozenset[int], Number] = {}
        self.zero = number(0)
        self.share: Number = self.zero if number is Fraction else CLOSE
        self.ulps: Number = self.zero if number is Fraction else ULPS * self.n * self._ulp()
        self.start, self.end = [self.zero] * self.n, [self.zero] * self.n
        self.gang: list[Gang] = [()] * self.n
        self.option = [0] * self.n
        self.best: Number = math.inf
        self.found: tuple[tuple[Any, ...], ...] = ((), (), (), ())
        self.nodes, self.limit, self.stop = 0, math.inf if node_limit is None else node_limit, stop
        self.root = self._least(self.zero, {}, range(self.n))

    def _ulp(self) -> float:
        """Of the latest time that matters."""
        return math.ulp(float(max(self.release, default=0.0) + sum(self.alone)))

    def run(self) -> bool:
        """Find the best; was the search complete?"""
        come = self._come(self.zero, 0)
        nobody: Residents = ((),) * len(self.jobs.gpu_node)
        return self._explore(_Moment(self.zero, {}, nobody, tuple(self.order[:come]), come, self.zero))

    def _explore(self, at: _Moment) -> bool:
        if not at.left and not at.waits and at.come == self.n:
            self._keep(at.paid)
            return True
        children: list[tuple[Number, int, tuple[Start, ...], _Moment, list[int]]] = []
        for starts, on in self._choices(at.waits, at.on, (), frozenset()):
            if not at.left and not starts and at.come == self.n:
                continue  # nothing would ever happen
            self.nodes += 1
            then, ended = self._advance(at, starts, on)
            least = then.paid + self._least(then.now, then.left, (*then.waits, *self.order[then.come :]))
            children.append((least, len(children), starts, then, ended))
        for least, _, starts, then, ended in sorted(children, key=lambda child: child[:2]):
            if self._hopeless(least):
                break
            if self.best < math.inf and (self.nodes >= self.limit or self.stop()):
                return False
            self._write(at.now, starts)
            for j in ended:
                self.end[j] = then.now
            if not self._explore(then):
                return False
        return True

    def _hopeless(self, least: Number) -> bool:
        """Is nothing of that bound better than the best by more than rounding?"""
        return bool(self.best < math.inf and least >= self.best - self.best * self.share - self.ulps)

    def _write(self, now: Number, starts: Sequence[Start]) -> None:
        for j, option, gang in starts:
            self.start[j], self.option[j], self.gang[j] = now, option, gang

    def _choices(
        self, waits: tuple[int, ...], on: Residents, starts: tuple[Start, ...], passed: frozenset[int]
    ) -> Iterator[tuple[tuple[Start, ...], Residents]]:
        """What may start now, and who is then on which GPU. Of jobs that are alike the first one starts first."""
        if not waits:
            yield starts, on
            return
        j, behind = waits[0], waits[1:]
        if self.twin[j] not in passed:
            for option, gang in self.places.of(j, on, self.option):
                self.option[j] = option  # what those behind it must fit beside
                yield from self._choices(behind, joined(on, j, gang), (*starts, (j, option, gang)), passed)
        yield from self._choices(behind, on, starts, passed | {j})

    # --- time ----------------------------------------------------------------------------------------------------

    def _come(self, now: Number, come: int) -> int:
        while come < self.n and self.release[self.order[come]] <= now:
            come += 1
        return come

    def _advance(self, at: _Moment, starts: Sequence[Start], on: Residents) -> tuple[_Moment, list[int]]:
        """To the next event, and who ends there."""
        left = at.left | {j: self.number(self.jobs.seconds(j, option, gang)) for j, option, gang in starts}
        slow: dict[int, Number] = dict.fromkeys(left, self.zero + 1)
        for pair in {here for here in on if len(here) == 2}:
            for j, k in (pair, pair[::-1]):
                slow[j] = max(slow[j], self.xi[j][k])
        need = {j: seconds * slow[j] for j, seconds in left.items()}
        coming = [self.release[self.order[at.come]] - at.now] if at.come < self.n else []
        step = min([*need.values(), *coming])
        ended = [j for j, seconds in need.items() if seconds <= step]
        rest = {j: max(left[j] - step / slow[j], self.zero) for j, seconds in need.items() if seconds > step}
        # a release is when it is, not a sum of steps
        then = self.release[self.order[at.come]] if coming and step == coming[0] else at.now + step
        come = self._come(then, at.come)
        started = {j for j, _, _ in starts}
        waits = (*(j for j in at.waits if j not in started), *self.order[at.come : come])
        on = tuple(tuple(j for j in here if j in rest) for here in on) if ended else on
        stayed = sum((then - self.release[j] for j in ended), self.zero)
        return _Moment(then, rest, on, waits, come, at.paid + stayed), ended

    # --- value ---------------------------------------------------------------------------------------------------

    def _least(self, now: Number, left: Left, others: Iterable[int]) -> Number:
        """A bound on the flow times of running jobs and of ``others``."""
        later = list(others)
        some = frozenset((*left, *later))
        if some not in self.rates:
            self.rates[some] = work_rate(self.jobs, some, self.xi) * len(self.jobs.gpu_node)
        rate = self.rates[some]
        rows = [(now, a, self.jobs.gang[j] * a / rate) for j, a in left.items()]
        rows += [(self.release[j], self.alone[j], self.jobs.gang[j] * self.alone[j] / rate) for j in later]
        begun = sum((now - self.release[j] for j in left), self.zero)
        return begun + least_stay(now, rows)

    def _keep(self, value: Number) -> None:
        if value < self.best:
            self.best = value
            self.found = (tuple(self.start), tuple(self.end), tuple(self.gang), tuple(self.option))


def _twins(jobs: SharedJobs) -> list[int | None]:
    """Of every job, the nearest earlier one that nothing tells from it."""
    looks = [_look(jobs, j) for j in range(jobs.n)]
    return [max((i for i in range(j) if looks[i] == looks[j]), default=None) for j in range(jobs.n)]


def _look(jobs: SharedJobs, j: int) -> tuple[Any, ...]:
    rates, row = jobs.rates, jobs.instance.table.row(j, named=True)
    same = (row["duration"], row["iterations"], row["profile"])
    options = tuple((jobs.memory(j, o), int(rates.steps[j, o])) for o in jobs.options[j])
    return (jobs.release[j], jobs.gang[j], jobs.suits[j], int(rates.kind[j]), options, same)
