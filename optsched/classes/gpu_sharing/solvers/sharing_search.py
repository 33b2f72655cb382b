"""Branch and bound over events: the best schedule of a few jobs that share GPUs and start at events, floats or fractions.

**Problem**: `optsched.models.shared_jobs`, minimise sum C_j (sum of flow times plus sum r_j). **Method**: `EventSearch`;
waiting jobs may start on any GPUs that hold them, with any of their sub-batches. GPUs of a node with the same jobs on them
are alike, and so are nodes of one kind with the same jobs: only one of the placements that differ by them is tried.

**Bound** for jobs with a seconds left alone, m GPUs, from now or their release on; S = max(1, 1/xi_{j|k} + 1/xi_{k|j}) over
pairs of these jobs that may share: the largest of (LB1) sum C of SRPT on one machine with times m a / (G S), (LB2)
sum (release + a), (LB3) mean busy times of the preemptive schedule that always runs the job with the least m a, plus a / 2.

**Guarantee**: exact among schedules that start jobs at releases and completions only. For two jobs these contain an optimal
schedule. Let B start first. As long as A's start is fixed, starting B earlier never adds to the sum, so B starts at its
release. Then the pair theorem (`optsched.speeds.sharing_pair`) says that A starts as early as it may, or after B.

**Counterexample** for three: one GPU, xi = 7/5, (r_j, e_j) = (0, 10), (0, 100), (12, 1). The best start of the long job is
5: it then delays the first job just so long that it ends at 12, when the third one comes and may share with the long one;
sum 132.8. Starts at events give 133.8: at 0 the third one finds two jobs and waits until 14, at 10 the long one is late. So
the value is an upper bound on the optimum; `sharing_orders` and `optsched.models.gpu_sharing` allow starts
at any time.
**Complexity**: exponential; see `MOST`.
**Reference**: own method; the problem is that of Luo et al., IWQoS 2024, arXiv 2407.13088.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optsched.classes.gpu_sharing.solvers.sharing_orders import SharedPlaces, joined
from optsched.errors import InputError
from optsched.models.shared_jobs import Gang, SharedJobs
from optsched.models.sharing_least import least_stay, work_rate
from optsched.problem.instance import Instance
from optsched.problem.schedule import SharedSchedule
from optsched.solvers.event_search import EventSearch, Left, Moment, Number, On as Residents, Start

MOST, MOST_NODES = 12, 8  # jobs, nodes
NAME = "sharing-branching"


@dataclass(frozen=True)
class SharingOptimum:
    """Result of the search: ``value`` sum C_j of these starts, ends, GPUs and options.

    Numbers are in seconds, and fractions if they were requested. ``flow_time``: the sum of flow times, added up as such
    and not computed from clock times. ``complete``: the search was complete, so that no schedule that starts jobs at
    events is better. ``bound``: no schedule at all is better. ``nodes`` is the same on every machine.
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
        """True if it is proved that no schedule is better, whenever it starts jobs."""
        return bool(self.bound >= self.value)

    @property
    def schedule(self) -> SharedSchedule:
        """Schedule in floats."""
        return self.jobs.schedule(self.start, self.completion, self.gangs, self.options, NAME)


def sharing_optimum(
    instance: Instance | SharedJobs,
    *,
    exact: bool = False,
    node_limit: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> SharingOptimum:
    """Return the best starts at events.

    Parameters
    ----------
    instance
        Jobs and cluster, or the jobs as exact methods see them.
    exact
        Compute in fractions, for the floats as given.
    node_limit
        Number of nodes after which the search ends once it has a schedule; None: no limit.
    stop
        Function that ends the search when it returns true, once there is a schedule.

    Raises
    ------
    InputError
        If there are more than `MOST` jobs or `MOST_NODES` nodes, or for a reason of `SharedJobs.of`.
    """
    jobs = instance if isinstance(instance, SharedJobs) else SharedJobs.of(instance)
    if jobs.n > MOST:
        raise InputError("too many jobs for an exact search", field="n", value=jobs.n, legal=f"at most {MOST}")
    if len(jobs.node_memory) > MOST_NODES:
        value, legal = len(jobs.node_memory), f"at most {MOST_NODES}"
        raise InputError("too many nodes for an exact search", field="nodes", value=value, legal=legal)
    search = _Search(jobs, Fraction if exact else float, node_limit, stop)
    complete = search.explore(search.at_zero(((),) * len(jobs.gpu_node)))
    proved = complete and jobs.n <= 2
    epoch = search.number(jobs.instance.epoch)
    before = sum((search.number(r) for r in jobs.release), search.zero)
    bound = search.best if proved else min(search.best, search.root)
    start, end = (tuple(at + epoch for at in times) for times in search.found[:2])
    options, gangs = (tuple(each[k] for each in search.found[2]) for k in range(2))
    value, nodes = search.best + before, search.nodes
    return SharingOptimum(jobs, value, bound + before, start, end, gangs, options, nodes, complete, search.best)


class _Search(EventSearch):
    """One run, with the option and the GPUs of every job that has started."""

    def __init__(
        self, jobs: SharedJobs, number: Callable[[float], Number], node_limit: int | None, stop: Callable[[], bool]
    ) -> None:
        release = [number(r) - number(jobs.instance.epoch) for r in jobs.release]
        super().__init__(release, [number(e) for e in jobs.least_seconds], number, node_limit, stop)
        self.jobs, self.places, self.twin = jobs, SharedPlaces(jobs), list[int | None]()
        rates, looks = jobs.rates, list[tuple[Any, ...]]()
        for j, row in enumerate(jobs.instance.table.select("duration", "iterations", "profile").rows()):
            options = tuple((jobs.memory(j, o), int(rates.steps[j, o])) for o in jobs.options[j])
            looks.append((jobs.release[j], jobs.gang[j], jobs.suits[j], int(rates.kind[j]), options, row))
            # the nearest earlier job that is identical to it
            self.twin.append(max((i for i in range(j) if looks[i] == looks[j]), default=None))
        self.xi = [[number(x) if math.isfinite(x) else x for x in row] for row in jobs.xi]
        self.rates: dict[frozenset[int], Number] = {}
        self.held = [(0, ())] * self.n
        self.root = self.least(self.zero, {}, range(self.n))

    def choices(self, at: Moment) -> Iterator[tuple[tuple[Start, ...], Residents]]:
        """Yield the choices of the base class; among jobs that are alike the first one starts first."""

        def grow(
            waits: tuple[int, ...], on: Residents, starts: tuple[Start, ...], passed: frozenset[int]
        ) -> Iterator[tuple[tuple[Start, ...], Residents]]:
            if not waits:
                yield starts, on
                return
            j, behind = waits[0], waits[1:]
            if self.twin[j] not in passed:
                for option, gang in self.places.of(j, on, [each[0] for each in self.held]):
                    self.held[j] = option, gang  # the jobs behind it must fit together with it
                    start = j, self.number(self.jobs.seconds(j, option, gang)), option, gang
                    yield from grow(behind, joined(on, j, gang), (*starts, start), passed)
            yield from grow(behind, on, starts, passed | {j})

        return grow(at.waits, at.on, (), frozenset())

    def slowdowns(self, left: Left, on: Residents) -> dict[int, Number]:
        """Return the slow-downs of the base class: the slowest of a job's GPUs determines its speed."""
        slow: dict[int, Number] = dict.fromkeys(left, self.zero + 1)
        for pair in {here for here in on if len(here) == 2}:
            for j, k in (pair, pair[::-1]):
                slow[j] = max(slow[j], self.xi[j][k])
        return slow

    def least(self, now: Number, left: Left, later: Iterable[int]) -> Number:
        """Return the largest of the three bounds in the module's docstring."""
        others = list(later)
        some = frozenset((*left, *others))
        if some not in self.rates:
            self.rates[some] = work_rate(self.jobs, some, self.xi) * len(self.jobs.gpu_node)
        rate = self.rates[some]
        rows = [(now, a, self.jobs.gang[j] * a / rate) for j, a in left.items()]
        rows += [(self.release[j], self.alone[j], self.jobs.gang[j] * self.alone[j] / rate) for j in others]
        begun = sum((now - self.release[j] for j in left), self.zero)
        return begun + least_stay(now, rows)
