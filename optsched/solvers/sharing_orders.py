"""All orders of the 2n events, a linear program each: the optimum of very few jobs that share GPUs, with starts anywhere.

**Problem**: `optsched.models.shared_jobs`, minimise sum C_j. **Method**: enumerate the GPUs of all jobs (of choices that are
alike one: `optsched.solvers.sharing_places`; on one gang set it does not matter), their sub-batches, and the orders of
starts and ends in which the active jobs may run at once (`optsched.solvers.event_orders`); on one gang set these are at most
two: 6, 54, 648, 9,720 orders for n = 2..5. The rate of a job is 1 over the worst xi_{j|k} of the jobs k beside it on a GPU.

**Guarantee**: exact over all schedules, to the tolerance of the LP solver; with ``certify`` a bound proved in fractions.
**Complexity**: some 0.15 ms an order. **Reference**: own method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, product

from optsched.errors import InputError
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
from optsched.solvers.event_orders import EventOrders, LeastOrder
from optsched.solvers.sharing_places import SharedPlaces

MOST, MOST_PROGRAMS = 5, 300_000  # jobs; orders, some of which are not possible: (2n)! / 2^n a choice
NEAR = 1e-8  # of the flow time: a start of the LP this near to an event is at the event
NAME = "sharing-orders"


@dataclass(frozen=True)
class SharedOrderOptimum(LeastOrder):
    """The best over all ``gangs`` and ``options`` of ``jobs``; ``orders`` and ``bound`` are of all choices together."""

    jobs: SharedJobs
    gangs: tuple[Gang, ...]
    options: tuple[int, ...]
    relative: SharedOrderOptimum | None = None  # the same, counted from the first arrival

    def on_clock(self, jobs: SharedJobs) -> SharedOrderOptimum:
        """This optimum of ``jobs.relative`` on the clock of ``jobs``."""
        if jobs is self.jobs:
            return self
        bound = None if self.bound is None else self.bound + jobs.clock_part
        value, start = self.value + float(jobs.clock_part), self.start + jobs.instance.epoch
        return replace(self, value=value, start=start, bound=bound, jobs=jobs, relative=self)

    @property
    def schedule(self) -> SharedSchedule:
        """The schedule that these starts lead to."""
        if self.relative is not None:
            return self.relative.schedule.on_clock(self.jobs.instance)
        flow = self.value - sum(self.jobs.release)
        start = on_events(self.jobs, self.start.tolist(), self.gangs, self.options, NEAR * flow)
        end = shared_completions(self.jobs, start, self.gangs, self.options)
        return self.jobs.schedule(start, end, self.gangs, self.options, NAME)


def shared_orders(jobs: SharedJobs, gangs: tuple[Gang, ...], options: tuple[int, ...]) -> EventOrders:
    """The orders of the events with these GPUs and sub-batches; the jobs of a set must fit on their GPUs together."""

    def slowdowns(active: list[int]) -> dict[int, Fraction] | None:
        on = [[j for j in active if g in gangs[j]] for g in range(len(jobs.gpu_node))]
        if not all(may_be_on(jobs, here, g, options) for g, here in enumerate(on)):
            return None
        return {j: Fraction(jobs.slowdown(j, {k for here in on if j in here for k in here})) for j in active}

    work = [Fraction(jobs.seconds(j, o, gang)) for j, (o, gang) in enumerate(zip(options, gangs, strict=True))]
    return EventOrders.of(work, [Fraction(r) for r in jobs.release], slowdowns)


def best_shared_order(instance: Instance | SharedJobs, *, certify: bool = False) -> SharedOrderOptimum:
    """Solve the program of every order; ``certify``: also prove a bound in fractions.

    Raises `InputError` for no jobs, more than `MOST`, and more than `MOST_PROGRAMS` programs.
    """
    given = instance if isinstance(instance, SharedJobs) else SharedJobs.of(instance)
    jobs = given.relative
    if not 1 <= jobs.n <= MOST:
        raise InputError("not a number of jobs to enumerate", field="n", value=jobs.n, legal=f"1 to {MOST}")
    every = choices(jobs)
    found = [shared_orders(jobs, gangs, options).least(certify=certify) for gangs, options in every]
    best = min(range(len(found)), key=lambda k: found[k].value)
    value, order, start = found[best].value, found[best].order, found[best].start
    bound = min((each.bound for each in found if each.bound is not None), default=None)
    orders = sum(each.orders for each in found)
    return SharedOrderOptimum(value, order, start, orders, bound, jobs, *every[best]).on_clock(given)


def choices(jobs: SharedJobs) -> list[tuple[tuple[Gang, ...], tuple[int, ...]]]:
    """GPUs and options of all jobs, of choices that are alike one; `InputError` for more than `MOST_PROGRAMS` programs."""
    assignments = [first_gangs(jobs)] if one_gang_set(jobs) is None else SharedPlaces(jobs).assignments()
    most = MOST_PROGRAMS * 2**jobs.n // math.factorial(2 * jobs.n)
    every = ((gangs, options) for gangs in assignments for options in product(*jobs.options))
    found = list(islice(every, most + 1))
    if len(found) > most:
        legal = f"at most {most} for {jobs.n} jobs"
        raise InputError("too many choices of GPUs and sub-batches", field="jobs", value=len(found), legal=legal)
    return found
