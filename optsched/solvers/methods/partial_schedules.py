"""The method ``partial-schedules``: rigid gangs on a grid of time, partial schedules bounded by prices of slots."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.bounds.certificate import Certificate
from optsched.bounds.lp_dual import Integers, Prices, integers, price_certificate
from optsched.deadline import NEVER
from optsched.solvers.list_schedule import FEW, list_schedule
from optsched.solvers.lp_bound import lp_bound
from optsched.solvers.method import EXCLUSIVE, MethodReport, add_method, there
from optsched.solvers.methods.sequence_branching import machine_of
from optsched.solvers.partial_schedules import Searched, search_states
from optsched.solvers.size import Size
from optsched.solvers.solve_state import SolveState
from optsched.solvers.start_prices import BEYOND, StartBounds, StartJobs

NAME = "partial-schedules"
SLOTS, GPUS, LARGEST = 4_000_000, 128, 1 << 44  # jobs times slots; in units of all gangs; a value in steps
STEPS = (300, 2000, 2000, 2000)  # of ascents, between which starts are given up
SMALL, LEFT = 8, 0.9  # jobs that need no prices; of the starts: another ascent for so few would not pay
FIRST, WIDER, BYTES = 1000, 4, 400_000_000  # states of a level; times those of the pass before; of all that it keeps
WIDE, AGAIN = 16_000, 300  # states beyond which a limit between bound and value proves more; steps of ascent below it
BUDGET, PART, ENDLESS = 100_000, 0.2, 10**15  # of the local search, times n^2, but no more than this part of the time


def _applies(state: SolveState) -> str | None:
    if reason := state.misfit():
        return reason
    if state.grid is None or state.step is None:
        return "the times or the values are multiples of no useful unit"
    if state.value is None or state.steps(state.value) >= LARGEST:
        return "there is no schedule to begin with, or values are too large for exact arithmetic"
    units = state.instance.cluster.gpus // int(np.gcd.reduce(state.instance.gpus))
    if state.instance.n * _slots(state) > SLOTS or units > GPUS:
        return f"{state.instance.n} jobs x {_slots(state)} slots on {units} GPUs are too many"
    return None


def _slots(state: SolveState) -> int:
    """By which every left-shifted schedule is over."""
    return int(there(state.grid).release.max() + there(state.grid).duration.sum()) + 1


class Search:
    """One search: the starts that are left, their prices, and the interval in steps of values."""

    def __init__(self, state: SolveState) -> None:
        self.state, self.grid = state, there(state.grid)
        self.order = np.argsort(self.grid.release, kind="stable")
        release, length, gpus = (a[self.order] for a in (self.grid.release, self.grid.duration, state.instance.gpus))
        unit, slot = int(np.gcd.reduce(gpus)), np.arange(_slots(state))
        cost = machine_of(state, slot.size).cost[self.order, : slot.size]
        least = cost[np.arange(length.size), release]
        # what a job pays more than it must, in a schedule that is no worse than the incumbent
        open_ = cost - least[:, None] <= state.steps(there(state.value)) - least.sum()
        open_ &= (slot >= release[:, None]) & (slot + length[:, None] < slot.size)
        last = int(np.flatnonzero(open_.any(axis=0))[-1]) + 1
        total = state.instance.cluster.gpus // unit
        self.jobs = StartJobs(release, length, gpus // unit, total, cost[:, :last], open_[:, :last])
        self.passes = 0

    @property
    def limit(self) -> int:
        """The value in steps that a better schedule has at most."""
        return self.state.steps(there(self.state.value)) - 1

    def raise_bound(self, steps: int) -> None:
        """No schedule of open starts is below."""
        steps = min(steps, self.limit + 1)
        self.state.raise_bound(self.state.values_from + steps * there(self.state.step), "solver", tell=False)
        self.state.report(self.passes)

    def certificate(self, bounds: StartBounds) -> Certificate:
        """What prices prove of all starts."""
        state, grid, step = self.state, self.grid, there(self.state.step)
        own = list[tuple[int, Integers]]()
        for row in bounds.prices[np.argsort(self.order)]:
            paid = [price * step.numerator for price in np.trim_zeros(row).tolist()]
            own.append((int((row > 0).argmax()), integers(paid)))
        size = step.denominator << bounds.bits
        prices = Prices("rigid-time-indexed", Fraction(grid.origin), grid.unit, size, (), tuple(own))
        return price_certificate(state.instance, state.goal.name, EXCLUSIVE, prices)

    def price(self) -> StartBounds | None:
        """Prices, and without the starts that they prove to be of no use; None where no better schedule is left."""
        own, deadline = np.zeros((self.jobs.release.size, self.jobs.slots)), self.state.deadline.share(0.5)
        if self.jobs.release.size <= SMALL:
            given, goal = self.state.schedule, self.state.goal.name
            self.state.offer_certificate(lp_bound(self.state.instance, goal, schedule=given, deadline=deadline))
            return None if self.state.closed else self.jobs.prove(own)
        for steps in STEPS:
            own = self.jobs.ascend(own, steps, deadline)
            bounds = self.jobs.prove(own)
            self.raise_bound(bounds.steps)
            if steps != STEPS[0]:
                self.state.offer_certificate(self.certificate(bounds))
            fewer = self.jobs.without(bounds, self.limit)
            if fewer is None or self.state.closed:
                self.raise_bound(self.limit + 1)
                return None
            settled = fewer.open.sum() > LEFT * self.jobs.open.sum()
            self.jobs = fewer
            if settled or deadline.passed:
                break
        return self.jobs.prove(own)

    def run(self) -> None:
        """Pass after pass to the proof, the deadline or the end of memory: wider ones, at last with limits that rise."""
        bounds, width, gain = self.price(), FIRST, 1
        most = BYTES // (8 * (self.jobs.release.size + 3 * self.jobs.total))
        target, proved = self.limit, 0 if bounds is None else bounds.steps
        while bounds is not None and not self.state.late:
            found = self.search(bounds, target, width)
            whole = found.finished and found.bound == BEYOND
            reached = target + 1 if whole else -(-found.bound >> bounds.bits)
            self.raise_bound(reached)
            if self.state.closed or not found.finished or not (whole or width < most):
                return
            width = width if whole else min(WIDER * width, most)
            gain, proved = 2 * gain if whole else reached - proved, max(proved, reached)
            gain = max(gain, (self.limit - proved) // 4)
            target = min(self.limit, proved + gain) if width > WIDE and 2 * gain < self.limit - proved else self.limit

    def search(self, bounds: StartBounds, target: int, width: int) -> Searched:
        """A pass for schedules of at most ``target`` steps, at prices for what is left of the starts then."""
        self.passes += 1
        jobs = self.jobs.without(bounds, target)
        if jobs is None:
            return Searched(None, BEYOND, BEYOND, True)
        own, steps = bounds.prices / 2.0**bounds.bits, AGAIN if jobs.release.size > SMALL else 0
        own = jobs.ascend(own, steps, self.state.deadline)
        here = jobs.prove(own, bounds.bits)
        found = search_states(here, target << here.bits, width, self.state.deadline)
        if found.order is not None:
            self.state.offer(list_schedule(self.state.instance, self.order[found.order]))
        return found


def _run(state: SolveState) -> MethodReport:
    if state.instance.n > FEW:
        state.search(BUDGET * state.instance.n**2, part=PART)
    search = Search(state)
    search.run()
    if not state.closed and state.deadline is not NEVER:
        state.search(ENDLESS)
    note = "" if state.closed else f"the limit of time or memory came after {search.passes} passes"
    size = Size(state.instance.n, int(search.jobs.open.sum()))
    return MethodReport("dynamic programming", size, search.passes, note=note)


add_method(NAME, _applies, _run)
