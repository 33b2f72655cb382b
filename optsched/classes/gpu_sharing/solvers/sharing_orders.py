"""All orders of the 2n events, a linear program each: the optimum of very few jobs that share GPUs, with starts anywhere.

**Problem**: `optsched.models.shared_jobs`, minimise sum C_j. **Method**: enumerate the GPUs of all jobs (one of several
choices that are alike: `SharedPlaces`; on one gang set the GPUs do not matter), their sub-batches, and the orders of
starts and ends in which the active jobs may run at once (`optsched.solvers.event_search`). On one gang set at most two jobs
are active: 6, 54, 648, 9,720 orders for n = 2..5. The rate of a job is 1 over the worst xi_{j|k} of the jobs k that share a
GPU with it.

**Guarantee**: exact over all schedules, to the tolerance of the LP solver; with ``certify`` a bound proved in fractions.
**Complexity**: some 0.15 ms an order. **Reference**: own method.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby, islice, product

from optsched.errors import InputError
from optsched.models.mapped_modes import counts
from optsched.models.shared_jobs import (
    Gang,
    SharedJobs,
    first_gangs,
    may_be_on,
    on_events,
    one_gang_set,
    shared_completions,
)
from optsched.problem.instance import Instance
from optsched.problem.schedule import SharedSchedule
from optsched.solvers.event_search import EventOrders, LeastOrder

MOST, MOST_PROGRAMS = 5, 300_000  # jobs; orders, including impossible ones: (2n)! / 2^n for each choice
NEAR = 1e-8  # relative to the flow time: a start of the LP this close to an event counts as at the event
NAME = "sharing-orders"


@dataclass(frozen=True)
class SharedOrderOptimum(LeastOrder):
    """Best order over all ``gangs`` and ``options`` of ``jobs``; ``orders`` and ``bound`` are of all choices together."""

    jobs: SharedJobs
    gangs: tuple[Gang, ...]
    options: tuple[int, ...]
    relative: SharedOrderOptimum | None = None  # the same, counted from the first arrival

    def on_clock(self, jobs: SharedJobs) -> SharedOrderOptimum:
        """Return this optimum of ``jobs.relative`` on the clock of ``jobs``.

        Parameters
        ----------
        jobs
            The jobs on their own clock.
        """
        if jobs is self.jobs:
            return self
        bound = None if self.bound is None else self.bound + jobs.clock_part
        value, start = self.value + float(jobs.clock_part), self.start + jobs.instance.epoch
        return replace(self, value=value, start=start, bound=bound, jobs=jobs, relative=self)

    @property
    def schedule(self) -> SharedSchedule:
        """Schedule to which these starts lead."""
        if self.relative is not None:
            return self.relative.schedule.on_clock(self.jobs.instance)
        flow = self.value - sum(self.jobs.release)
        start = on_events(self.jobs, self.start.tolist(), self.gangs, self.options, NEAR * flow)
        end = shared_completions(self.jobs, start, self.gangs, self.options)
        return self.jobs.schedule(start, end, self.gangs, self.options, NAME)


def shared_orders(jobs: SharedJobs, gangs: tuple[Gang, ...], options: tuple[int, ...]) -> EventOrders:
    """Return the orders of the events with the given GPUs and sub-batches.

    Jobs that are active at once must fit on their GPUs together.

    Parameters
    ----------
    jobs
        The jobs.
    gangs
        GPUs of every job.
    options
        Option of every job.
    """

    def slowdowns(active: list[int]) -> dict[int, Fraction] | None:
        on = [[j for j in active if g in gangs[j]] for g in range(len(jobs.gpu_node))]
        if not all(may_be_on(jobs, here, g, options) for g, here in enumerate(on)):
            return None
        return {j: Fraction(jobs.slowdown(j, {k for here in on if j in here for k in here})) for j in active}

    work = [Fraction(jobs.seconds(j, o, gang)) for j, (o, gang) in enumerate(zip(options, gangs, strict=True))]
    return EventOrders.of(work, [Fraction(r) for r in jobs.release], slowdowns)


def best_shared_order(instance: Instance | SharedJobs, *, certify: bool = False) -> SharedOrderOptimum:
    """Solve the program of every order.

    Parameters
    ----------
    instance
        Jobs and cluster, or the jobs as exact methods see them.
    certify
        Prove a bound in fractions, too.

    Raises
    ------
    InputError
        If there are no jobs, more than `MOST`, or more than `MOST_PROGRAMS` programs.
    """
    given = instance if isinstance(instance, SharedJobs) else SharedJobs.of(instance)
    jobs = given.relative
    if not 1 <= jobs.n <= MOST:
        raise InputError("not a number of jobs to enumerate", field="n", value=jobs.n, legal=f"1 to {MOST}")
    every = choices(jobs)
    optima = [shared_orders(jobs, gangs, options).least(certify=certify) for gangs, options in every]
    best = min(range(len(optima)), key=lambda k: optima[k].value)
    value, order, start = optima[best].value, optima[best].order, optima[best].start
    bound = min((optimum.bound for optimum in optima if optimum.bound is not None), default=None)
    orders = sum(optimum.orders for optimum in optima)
    return SharedOrderOptimum(value, order, start, orders, bound, jobs, *every[best]).on_clock(given)


def choices(jobs: SharedJobs) -> list[tuple[tuple[Gang, ...], tuple[int, ...]]]:
    """Return GPUs and options of all jobs, one of several choices that are alike.

    Parameters
    ----------
    jobs
        The jobs.

    Raises
    ------
    InputError
        If there are more than `MOST_PROGRAMS` programs.
    """
    assignments = [first_gangs(jobs)] if one_gang_set(jobs) is None else SharedPlaces(jobs).assignments()
    most = MOST_PROGRAMS * 2**jobs.n // math.factorial(2 * jobs.n)
    every = ((gangs, options) for gangs in assignments for options in product(*jobs.options))
    chosen = list(islice(every, most + 1))
    if len(chosen) > most:
        legal = f"at most {most} for {jobs.n} jobs"
        raise InputError("too many choices of GPUs and sub-batches", field="jobs", value=len(chosen), legal=legal)
    return chosen


# Choices of GPUs for a job, given the running jobs: every choice, but only one of several choices that are alike.
#
# GPUs of a node with the same jobs on them are alike: exchanging them changes no job's speed, now or later. Nodes of
# one kind (GPUs, memory, type, jobs that may use them) that hold the same jobs in the same way are alike, too.

Residents = tuple[tuple[int, ...], ...]  # jobs on every GPU
Cells = list[list[list[int]]]  # for every node, its sets of alike GPUs


class SharedPlaces:
    """Choices of GPUs in one instance."""

    def __init__(self, jobs: SharedJobs) -> None:
        cluster = jobs.instance.cluster
        self.jobs = jobs
        self.gpus = [[g for g, v in enumerate(jobs.gpu_node) if v == node] for node in range(cluster.node_count)]
        looks = [
            (len(own), jobs.node_memory[v], int(cluster.node_type[v]), tuple(row[v] for row in jobs.suits))
            for v, own in enumerate(self.gpus)
        ]
        self.kind = [looks.index(look) for look in looks]

    def of(self, j: int, on: Residents, option: Sequence[int]) -> Iterator[tuple[int, Gang]]:
        """Yield (option, GPUs) for a job, given the jobs that run.

        Parameters
        ----------
        j
            Number of the job.
        on
            Jobs on every GPU.
        option
            Option of every job that runs.
        """
        for sub_batch in self.jobs.options[j]:
            options = [*option[:j], sub_batch, *option[j + 1 :]]

            def usable(g: int, options: Sequence[int] = options) -> bool:
                suits = self.jobs.suits[j][self.jobs.gpu_node[g]]
                return suits and may_be_on(self.jobs, (*on[g], j), g, options)

            yield from ((sub_batch, gang) for gang in self._gangs(j, on, usable))

    def assignments(self) -> Iterator[tuple[Gang, ...]]:
        """Yield GPUs for all jobs at once, whatever the times: one of several choices that are alike."""
        return self._assign((), ((),) * len(self.jobs.gpu_node))

    def _assign(self, gangs: tuple[Gang, ...], on: Residents) -> Iterator[tuple[Gang, ...]]:
        j = len(gangs)
        if j == self.jobs.n:
            yield gangs
            return
        for gang in self._gangs(j, on, lambda g: self.jobs.suits[j][self.jobs.gpu_node[g]]):
            yield from self._assign((*gangs, gang), joined(on, j, gang))

    def _gangs(self, j: int, on: Residents, usable: Callable[[int], bool]) -> Iterator[Gang]:
        alike = [
            [list(cell) for _, cell in groupby(sorted(own, key=lambda g: (on[g], g)), key=lambda g: on[g])]
            for own in self.gpus
        ]
        cells = [[cell for cell in each if usable(cell[0])] for each in alike]
        looks = [(self.kind[v], tuple(sorted(on[g] for g in self.gpus[v]))) for v in range(len(self.gpus))]
        for taken in _counts(self.jobs.gang[j], cells, looks):
            chosen = [
                cell[:count]
                for cells_of, counts_of in zip(cells, taken, strict=True)
                for cell, count in zip(cells_of, counts_of, strict=True)
            ]
            yield tuple(sorted(g for part in chosen for g in part))


def joined(on: Residents, j: int, gang: Gang) -> Residents:
    """Return the jobs on every GPU after a job is added.

    Parameters
    ----------
    on
        Jobs on every GPU.
    j
        Number of the job.
    gang
        Its GPUs.
    """
    chosen = set(gang)
    return tuple((*here, j) if g in chosen else here for g, here in enumerate(on))


def _counts(need: int, cells: Cells, looks: list[tuple[int, Residents]]) -> Iterator[list[tuple[int, ...]]]:
    """Yield the number of GPUs of every cell of every node; of nodes that look alike the earlier takes the larger counts."""
    room = [sum(map(len, own)) for own in cells]

    def grow(v: int, left: int, before: list[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
        if v == len(cells):
            if left == 0:
                yield before
            return
        if left > sum(room[v:]):
            return
        for here in range(min(left, room[v]), -1, -1):
            for taken in counts(here, [len(cell) for cell in cells[v]]):
                if all(before[u] >= taken for u in range(v) if looks[u] == looks[v]):
                    yield from grow(v + 1, left - here, [*before, taken])

    return grow(0, need, [])
